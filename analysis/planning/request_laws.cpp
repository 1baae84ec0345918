#include "analysis/planning/request_laws.hpp"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/core/bisection.hpp"
#include "analysis/core/checks.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::planning {
namespace {

/// Rates of 0 and 1 take part in the mixture with odds that can be moved.
constexpr double nearly_certain = 1e-9;

struct RateMoments {
  double weight = 0, mean = 0, variance = 0, error = 0, squared_weights = 0;
};

RateMoments moments_of(std::span<const RequestRate> rates) {
  if (rates.empty()) throw std::invalid_argument("variance_between: rates is empty, but must not be");
  RateMoments m;
  for (const RequestRate& request : rates) {
    core::require_in("variance_between", "rate", request.rate, 0.0, 1.0);
    core::require_in("variance_between", "error_variance", request.error_variance, 0.0, 1.0);
    core::require_in("variance_between", "weight", request.weight, std::numeric_limits<double>::min(),
                     std::numeric_limits<double>::max());
    m.weight += request.weight;
    m.mean += request.weight * request.rate;
  }
  m.mean /= m.weight;
  for (const RequestRate& request : rates) {
    const double share = request.weight / m.weight;
    m.variance += share * (request.rate - m.mean) * (request.rate - m.mean);
    m.error += share * (1 - share) * request.error_variance;
    m.squared_weights += share * share;
  }
  return m;
}

double between_of(const RateMoments& m) {
  return m.squared_weights < 1 ? std::max(0.0, (m.variance - m.error) / (1 - m.squared_weights)) : 0;
}

/// sum_i alive_i k odds_i / (1 + k odds_i)
double accepted_at(double k, const std::vector<double>& odds, const std::vector<double>& alive) {
  double accepted = 0;
  for (std::size_t i = 0; i < odds.size(); ++i) accepted += alive[i] * k * odds[i] / (1 + k * odds[i]);
  return accepted;
}

/// k_j by bisection over its logarithm.
double factor_for(double wanted, const std::vector<double>& odds, const std::vector<double>& alive) {
  const auto [low, high] =
      core::bisected(-60, 60, [&](double log_k) { return accepted_at(std::exp(log_k), odds, alive) < wanted; });
  return std::exp((low + high) / 2);
}

}  // namespace

ConditionalRates conditionals_of(std::span<const double> tokens) {
  ConditionalRates rates;
  double survival = 1;
  for (std::size_t gamma = 1; gamma < tokens.size(); ++gamma) {
    const double next = std::clamp(tokens[gamma] - tokens[gamma - 1], 0.0, survival);
    rates.push_back(survival > 0 ? next / survival : 0);
    survival = next;
  }
  return rates;
}

std::vector<RequestRate> beta_rates(double mean, double standard_deviation, std::int64_t gamma, std::int64_t count) {
  constexpr double tiny = std::numeric_limits<double>::min();
  core::require_in("beta_rates", "mean", mean, tiny, 1 - std::numeric_limits<double>::epsilon());
  core::require_in("beta_rates", "standard_deviation", standard_deviation, tiny,
                   std::sqrt(mean * (1 - mean)) * (1 - 1e-9));
  core::require_in("beta_rates", "gamma", gamma, 0, std::int64_t{1} << 20);
  core::require_in("beta_rates", "count", count, 1, std::int64_t{1} << 20);
  const double sum = mean * (1 - mean) / (standard_deviation * standard_deviation) - 1;
  const double a = mean * sum, b = (1 - mean) * sum;
  const auto parts = static_cast<double>(count);
  std::vector<RequestRate> rates;
  double below = 0;
  for (std::int64_t i = 1; i <= count; ++i) {
    // The integral of x over the part, by P(X <= x) of the law with a + 1; parts whose ends round to 1 share theirs.
    double to_one = 0;
    const double end = i == count ? 1 : boost::math::ibeta_inv(a, b, static_cast<double>(i) / parts, &to_one);
    double up_to = below + (1 - below) / static_cast<double>(count - i + 1);
    if (to_one > 0) up_to = end < 0.5 ? boost::math::ibeta(a + 1, b, end) : boost::math::ibetac(b, a + 1, to_one);
    RequestRate request;
    request.rate = std::clamp(mean * (up_to - below) * parts, 0.0, 1.0);
    request.weight = 1 / theory::expected_tokens(core::AcceptanceRate(request.rate), gamma);
    rates.push_back(request);
    below = up_to;
  }
  return rates;
}

std::optional<RequestRate> rate_of_request(const traces::ServingCounts& counts, std::optional<std::int64_t> gamma) {
  if (counts.unit != traces::CountUnit::request) return std::nullopt;
  estimate::ServingSummaryOptions options;
  options.gamma = gamma;
  estimate::ServingSummaries one(options);
  one.add(counts);
  const estimate::ServingSummary summary = one.summaries().front();
  if (!summary.alpha_hat || !summary.alpha_hat->value || !summary.rounds || *summary.rounds <= 0) return std::nullopt;
  double evaluated = 0;
  for (std::int64_t j = 1; j <= summary.moments.positions(); ++j) evaluated += summary.moments.evaluated(j);
  if (evaluated <= 0) evaluated = *summary.rounds + summary.accepted.value_or(0);
  RequestRate request;
  request.rate = std::clamp(*summary.alpha_hat->value, 0.0, 1.0);
  request.error_variance = request.rate * (1 - request.rate) / evaluated;
  request.weight = *summary.rounds;
  return request;
}

void SequenceRates::add(const estimate::Observations& seen) {
  const estimate::Bracketed& mean = seen.mean_acceptance.empty() ? seen.acceptance : seen.mean_acceptance;
  if (mean.empty()) return;
  const std::size_t stride = seen.mean_acceptance.empty() ? static_cast<std::size_t>(seen.depths) : 1;
  for (std::size_t t = 0; t < seen.sequence.size(); ++t) {
    const double rate = (mean.lower[t * stride] + mean.highest()[t * stride]) / 2;
    if (std::isnan(rate)) continue;
    const auto sequence = static_cast<std::size_t>(seen.sequence[t]);
    if (sequence >= sums_.size()) sums_.resize(sequence + 1);
    Sums& sums = sums_[sequence];
    const double off = rate - sums.mean;
    sums.count += 1;
    sums.mean += off / sums.count;
    sums.squared_deviations += off * (rate - sums.mean);
  }
}

std::vector<RequestRate> SequenceRates::rates() const {
  std::vector<RequestRate> rates;
  for (const Sums& sums : sums_) {
    if (sums.count == 0) continue;
    RequestRate request;
    request.rate = std::clamp(sums.mean, 0.0, 1.0);
    // For a sequence of one position only the upper bound of its variance is known, that of a coin.
    const double variance = sums.count > 1 ? sums.squared_deviations / (sums.count - 1) : 0.25;
    request.error_variance = std::min(variance / sums.count, 1.0);
    request.weight = sums.count;
    rates.push_back(request);
  }
  return rates;
}

double variance_between(std::span<const RequestRate> rates) { return between_of(moments_of(rates)); }

std::vector<ConditionalRates> laws_by_request(std::span<const RequestRate> rates, std::span<const double> pooled) {
  const RateMoments m = moments_of(rates);
  if (pooled.empty()) throw std::invalid_argument("laws_by_request: pooled is empty, but must not be");
  const double kept = m.variance > 0 ? std::min(1.0, std::sqrt(between_of(m) / m.variance)) : 0;
  std::vector<double> odds, alive;
  for (const RequestRate& request : rates) {
    const double rate = std::clamp(m.mean + kept * (request.rate - m.mean), nearly_certain, 1 - nearly_certain);
    odds.push_back(rate / (1 - rate));
    alive.push_back(request.weight / m.weight);
  }
  std::vector<ConditionalRates> laws(rates.size());
  for (const double pooled_rate : pooled) {
    core::require_in("laws_by_request", "pooled", pooled_rate, 0.0, 1.0);
    double alive_now = 0;
    for (const double share : alive) alive_now += share;
    const bool certain = pooled_rate <= 0 || pooled_rate >= 1 || alive_now <= 0;
    const double k = certain ? 1 : factor_for(pooled_rate * alive_now, odds, alive);
    for (std::size_t i = 0; i < laws.size(); ++i) {
      const double rate = certain ? pooled_rate : k * odds[i] / (1 + k * odds[i]);
      laws[i].push_back(rate);
      alive[i] *= rate;
    }
  }
  return laws;
}

}  // namespace specdec::planning
