#include "analysis/estimate/typed_acceptance.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/core/checks.hpp"
#include "analysis/core/normal_interval.hpp"
#include "analysis/theory/acceptance_inversion.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::estimate {
namespace {

using core::AcceptanceRate;

double tokens_of(const std::vector<double>& rates) {
  double tokens = 1, alive = 1;
  for (const double rate : rates) tokens += alive *= rate;
  return tokens;
}

void require_rounds(const std::optional<double>& rounds) {
  if (rounds) core::require_in("typed acceptance", "rounds", *rounds, 1, std::numeric_limits<double>::max());
}

/// Whether some survival function gives the lengths within their half units: one whose tokens per step, from 1 at
/// gamma 0 on, are concave in gamma and never fall. So no length is below an earlier one, nor below the chord of two
/// beside it.
bool have_law(std::span<const TypedLength> lengths) {
  constexpr double rounding = 1e-12;
  std::vector<TypedLength> points = {{0, 1, 0}};
  points.insert(points.end(), lengths.begin(), lengths.end());
  const auto lowest = [&](std::size_t i) { return points[i].tokens_per_step - points[i].half_unit; };
  for (std::size_t k = 1; k < points.size(); ++k) {
    const double highest = points[k].tokens_per_step + points[k].half_unit + rounding;
    for (std::size_t i = 0; i < k; ++i) {
      if (lowest(i) > highest) return false;
      for (std::size_t j = k + 1; j < points.size(); ++j) {
        const double share = static_cast<double>(points[k].gamma - points[i].gamma) /
                             static_cast<double>(points[j].gamma - points[i].gamma);
        if (std::lerp(lowest(i), lowest(j), share) > highest) return false;
      }
    }
  }
  return true;
}

/// The relative error of tokens per step by rounding, as if it were even, and by sampling if the rounds are known.
double relative_error(std::int64_t gamma, double tokens, double half_unit, const std::optional<double>& rounds) {
  double square = half_unit * half_unit / (3 * tokens * tokens);
  if (rounds) {
    const PopulationPrior prior = population_prior();
    const double each = (tokens - 1) / static_cast<double>(gamma);
    const CountEvidence counted = {gamma, std::vector<double>(static_cast<std::size_t>(gamma), each), *rounds,
                                   prior.requests_of(*rounds)};
    square += std::pow(sampling_error(prior, counted), 2);
  }
  return std::sqrt(square);
}

/// The possible error of the tokens per step from the rounding of all rates.
double half_unit_of_tokens(std::span<const TypedRate> rates, bool conditional) {
  double sum = 0;
  std::vector<double> typed, lowest, highest;
  for (const auto& [rate, half] : rates) {
    sum += half;
    typed.push_back(rate);
    lowest.push_back(std::max(0.0, rate - half));
    highest.push_back(std::min(1.0, rate + half));
  }
  if (!conditional) return sum;
  return std::max(tokens_of(highest) - tokens_of(typed), tokens_of(typed) - tokens_of(lowest));
}

}  // namespace

TypedAcceptance typed_lengths(std::span<const TypedLength> lengths, std::optional<double> rounds) {
  require_rounds(rounds);
  if (lengths.empty()) throw std::invalid_argument("typed_lengths: lengths is empty");
  TypedAcceptance typed;
  typed.monotone = have_law(lengths);
  typed.is_sampled = rounds.has_value();
  typed.evidence.prior = population_prior();
  TypedLength before = {0, 1, 0};
  for (const TypedLength& length : lengths) {
    const auto& [gamma, tokens, half_unit] = length;
    core::require_in("typed_lengths", "half_unit", half_unit, 0, 1);
    core::require_in("typed_lengths", "gamma", gamma, 1, longest_typed);
    if (gamma <= before.gamma)
      throw std::invalid_argument(
          fmt::format("typed_lengths: gamma {} follows {}, but gammas must increase", gamma, before.gamma));
    typed.rate = theory::alpha_from_acceptance_length(tokens, gamma);
    double full_accepts = typed.rate.power(gamma);
    if (gamma == before.gamma + 1) {
      typed.rate = AcceptanceRate(std::min(1.0, (tokens - 1) / before.tokens_per_step));
      full_accepts = std::clamp(tokens - before.tokens_per_step, 0.0, 1.0);
    }
    const double error = relative_error(gamma, tokens, half_unit, rounds);
    typed.evidence.lengths.push_back({gamma, tokens, error});
    typed.evidence.measured[gamma] = as_measured(gamma, tokens, error, full_accepts);
    typed.measured_at = gamma;
    before = length;
  }
  return typed;
}

TypedAcceptance typed_positions(std::span<const TypedRate> rates, bool conditional, std::optional<double> rounds) {
  require_rounds(rounds);
  std::vector<double> values;
  for (const TypedRate& typed : rates) {
    core::require_in("typed_positions", "half_unit", typed.half_unit, 0, 1);
    values.push_back(typed.rate);
  }
  const core::AcceptanceProfile law = conditional ? theory::profile_from_conditional_rates(values)
                                                  : theory::profile_from_unconditional_rates(values).profile;
  TypedAcceptance typed;
  double ceiling = 1;
  for (const auto& [rate, half] : rates) {
    if (!conditional && rate - half > ceiling) typed.monotone = false;
    ceiling = std::min(ceiling, rate + half);
  }
  typed.measured_at = std::ssize(rates);
  typed.is_sampled = rounds.has_value();
  typed.evidence.prior = population_prior();
  // Rates of unknown rounds are exact but for their rounding.
  constexpr double many = 1e12;
  CountEvidence counted = {typed.measured_at, {}, rounds.value_or(many)};
  for (std::int64_t j = 1; j <= typed.measured_at; ++j) counted.survival.push_back(law.survival(j));
  counted.requests = typed.evidence.prior.requests_of(counted.rounds);
  const double tokens = theory::expected_tokens(law, typed.measured_at);
  typed.rate = AcceptanceRate(std::min(1.0, (tokens - 1) / (tokens - counted.survival.back())));
  counted.relative_error =
      relative_error(typed.measured_at, tokens, half_unit_of_tokens(rates, conditional), rounds);
  typed.evidence.measured[typed.measured_at] =
      as_measured(typed.measured_at, tokens, *counted.relative_error, counted.survival.back());
  typed.evidence.counts.push_back(std::move(counted));
  return typed;
}

}  // namespace specdec::estimate
