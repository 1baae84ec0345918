#include "analysis/theory/two_state_acceptance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/core/checks.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::theory {
namespace {

constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

/// [row][column], over the states.
using Matrix = std::array<std::array<double, 2>, 2>;

constexpr Matrix identity = {{{1, 0}, {0, 1}}};

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix product{};
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 2; ++j) product[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j];
  }
  return product;
}

Matrix operator+(const Matrix& a, const Matrix& b) {
  return {{{a[0][0] + b[0][0], a[0][1] + b[0][1]}, {a[1][0] + b[1][0], a[1][1] + b[1][1]}}};
}

Matrix scaled(double factor, const Matrix& a) {
  return {{{factor * a[0][0], factor * a[0][1]}, {factor * a[1][0], factor * a[1][1]}}};
}

Matrix transitions(const TwoStateChain& chain) {
  return {{{1 - chain.leave_first, chain.leave_first}, {chain.leave_second, 1 - chain.leave_second}}};
}

/// A: a draft is accepted, and the state moves on.
Matrix accepting(const TwoStateChain& chain) {
  const Matrix p = transitions(chain);
  return {{{chain.beta_first * p[0][0], chain.beta_first * p[0][1]},
           {chain.beta_second * p[1][0], chain.beta_second * p[1][1]}}};
}

Matrix rejecting(const TwoStateChain& chain) {
  const Matrix p = transitions(chain);
  const double first = 1 - chain.beta_first;
  const double second = 1 - chain.beta_second;
  return {{{first * p[0][0], first * p[0][1]}, {second * p[1][0], second * p[1][1]}}};
}

/// a^count and the sum of a^k over k < count, by doubling; no term is negative, so nothing cancels.
struct PowerAndSum {
  Matrix power = identity;
  Matrix sum{};

  PowerAndSum(const Matrix& a, std::uint64_t count) {
    for (int bit = 63; bit >= 0; --bit) {
      sum = sum + power * sum;
      power = power * power;
      if (((count >> bit) & 1U) == 0) continue;
      sum = identity + a * sum;
      power = a * power;
    }
  }
};

/// Maps the law at one step's start to that at the next one's.
Matrix step_transitions(const TwoStateChain& chain, std::int64_t gamma) {
  const PowerAndSum drafts(accepting(chain), static_cast<std::uint64_t>(gamma));
  return drafts.sum * rejecting(chain) + drafts.power * transitions(chain);
}

/// The fixed point of T; if no state is ever left the starts do not matter, and the given law is one.
StateLaw fixed_point(const Matrix& t, const StateLaw& otherwise) {
  const double left = t[0][1] + t[1][0];
  if (!(left > 0)) return otherwise;
  return {t[1][0] / left, t[0][1] / left};
}

double power_sum(double rate, std::int64_t gamma) {
  if (rate >= 0) return expected_tokens(core::AcceptanceRate(std::min(rate, 1.0)), gamma);
  return (1 - std::pow(rate, static_cast<double>(gamma) + 1)) / (1 - rate);
}

}  // namespace

TwoStateAcceptance::TwoStateAcceptance(const TwoStateChain& chain) : chain_(chain) {
  core::require_in("TwoStateAcceptance", "beta_first", chain.beta_first, 0, 1);
  core::require_in("TwoStateAcceptance", "beta_second", chain.beta_second, 0, 1);
  core::require_in("TwoStateAcceptance", "leave_first", chain.leave_first, 0, 1);
  core::require_in("TwoStateAcceptance", "leave_second", chain.leave_second, 0, 1);
  if (chain.leave_first == 0 && chain.leave_second == 0) {
    throw std::domain_error(
        "TwoStateAcceptance: leave_first and leave_second are 0, but one must be positive: the long run would depend "
        "on the start");
  }
}

StateLaw TwoStateAcceptance::stationary() const {
  const double left = chain_.leave_first + chain_.leave_second;
  return {chain_.leave_second / left, chain_.leave_first / left};
}

double TwoStateAcceptance::alpha() const {
  const StateLaw law = stationary();
  return law[0] * chain_.beta_first + law[1] * chain_.beta_second;
}

double TwoStateAcceptance::expected_tokens_limit() const {
  const StateLaw law = stationary();
  return 1 / (law[0] * (1 - chain_.beta_first) + law[1] * (1 - chain_.beta_second));
}

StateLaw TwoStateAcceptance::round_starts(std::int64_t gamma) const {
  core::require_in("TwoStateAcceptance::round_starts", "gamma", gamma, std::int64_t{0}, unbounded);
  return fixed_point(step_transitions(chain_, gamma), stationary());
}

StateLaw TwoStateAcceptance::round_starts(std::span<const double> share_by_gamma) const {
  constexpr std::string_view function = "TwoStateAcceptance::round_starts";
  Matrix mean{};
  double total = 0;
  for (std::size_t gamma = 0; gamma < share_by_gamma.size(); ++gamma) {
    const double share = share_by_gamma[gamma];
    core::require_in(function, fmt::format("the share of gamma {}", gamma), share, 0, 1);
    if (share > 0) mean = mean + scaled(share, step_transitions(chain_, static_cast<std::int64_t>(gamma)));
    total += share;
  }
  core::require_in(function, "the sum of shares", total, 1 - 1e-9, 1 + 1e-9);
  return fixed_point(mean, stationary());
}

std::vector<double> TwoStateAcceptance::survival(const StateLaw& start, std::int64_t positions) const {
  core::require_in("TwoStateAcceptance::survival", "positions", positions, std::int64_t{0}, unbounded);
  const Matrix a = accepting(chain_);
  StateLaw law = start;
  std::vector<double> survival;
  survival.reserve(static_cast<std::size_t>(positions));
  for (std::int64_t j = 0; j < positions; ++j) {
    law = {law[0] * a[0][0] + law[1] * a[1][0], law[0] * a[0][1] + law[1] * a[1][1]};
    survival.push_back(law[0] + law[1]);
  }
  return survival;
}

std::vector<double> TwoStateAcceptance::hazards(std::int64_t gamma) const {
  std::vector<double> rates = survival(round_starts(gamma), gamma);
  double before = 1;
  for (double& rate : rates) {
    const double here = rate;
    rate = before > 0 ? here / before : 0;
    before = here;
  }
  return rates;
}

double TwoStateAcceptance::expected_tokens(std::int64_t gamma) const {
  const StateLaw start = round_starts(gamma);
  const Matrix sum = PowerAndSum(accepting(chain_), static_cast<std::uint64_t>(gamma) + 1).sum;
  return std::clamp(start[0] * (sum[0][0] + sum[0][1]) + start[1] * (sum[1][0] + sum[1][1]), 1.0,
                    static_cast<double>(gamma) + 1);
}

double TwoStateAcceptance::full_accepts(std::int64_t gamma) const {
  const StateLaw start = round_starts(gamma);
  const Matrix power = PowerAndSum(accepting(chain_), static_cast<std::uint64_t>(gamma)).power;
  return std::min(1.0, start[0] * (power[0][0] + power[0][1]) + start[1] * (power[1][0] + power[1][1]));
}

std::optional<TwoRates> two_rates(const TwoStateChain& chain) {
  const double alpha = TwoStateAcceptance(chain).alpha();
  const Matrix a = accepting(chain);
  // The discriminant is a sum of terms >= 0.
  const double half_gap = std::sqrt(std::pow((a[0][0] - a[1][1]) / 2, 2) +
                                    chain.beta_first * chain.beta_second * chain.leave_first * chain.leave_second);
  const double middle = (a[0][0] + a[1][1]) / 2;
  if (half_gap == 0) {
    if (middle == alpha) return TwoRates{middle, middle, 1};
    return std::nullopt;
  }
  const double high = middle + half_gap;
  // The determinant over the other eigenvalue: middle - half_gap would cancel if a rate is near 0.
  const double low = chain.beta_first * chain.beta_second * (1 - chain.leave_first - chain.leave_second) / high;
  return TwoRates{high, low, (alpha - low) / (2 * half_gap)};
}

double expected_tokens(const TwoRates& rates, std::int64_t gamma) {
  core::require_in("expected_tokens", "gamma", gamma, std::int64_t{0}, unbounded);
  const double low = rates.share_high == 1 ? 0 : (1 - rates.share_high) / power_sum(rates.low, gamma);
  return 1 / (rates.share_high / power_sum(rates.high, gamma) + low);
}

double share_of_rounds(const TwoRates& rates, std::int64_t gamma) {
  return rates.share_high / power_sum(rates.high, gamma) * expected_tokens(rates, gamma);
}

double survival(const TwoRates& rates, std::int64_t gamma, std::int64_t j) {
  core::require_in("survival", "j", j, std::int64_t{0}, unbounded);
  const double share = share_of_rounds(rates, gamma);
  const auto drafts = static_cast<double>(j);
  return share * std::pow(rates.high, drafts) + (1 - share) * std::pow(rates.low, drafts);
}

}  // namespace specdec::theory
