#include "analysis/estimate/typed_acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/core/bisection.hpp"
#include "analysis/core/checks.hpp"
#include "analysis/core/normal_interval.hpp"
#include "analysis/estimate/acceptance_counts.hpp"
#include "analysis/theory/acceptance_inversion.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::estimate {
namespace {

using core::AcceptanceProfile;
using core::AcceptanceRate;

/// A length that is held fixed is so within this.
constexpr double held_within = 1e-11;

double tokens_of(const std::vector<double>& rates) {
  double tokens = 1, alive = 1;
  for (const double rate : rates) tokens += alive *= rate;
  return tokens;
}

void require_rounds(const std::optional<double>& rounds) {
  if (rounds) core::require_in("typed acceptance", "rounds", *rounds, 1, std::numeric_limits<double>::max());
}

/// Accepted drafts per examined draft, the single rate equivalent to the measured positions.
AcceptanceRate pooled(const AcceptanceProfile& measured, std::int64_t gamma) {
  const double accepted = theory::expected_tokens(measured, gamma) - 1;
  return AcceptanceRate(std::min(1.0, accepted / theory::expected_tokens(measured, gamma - 1)));
}

std::vector<theory::AcceptanceLength> widened(std::vector<theory::AcceptanceLength> lengths, double by) {
  for (theory::AcceptanceLength& length : lengths) length.half_unit += by;
  return lengths;
}

bool have_law(const std::vector<theory::AcceptanceLength>& lengths) {
  return theory::profile_from_acceptance_lengths(lengths).monotone;
}

/// The amount by which the half units of lengths must be widened for a survival function to give them.
double least_misfit(const std::vector<theory::AcceptanceLength>& lengths) {
  const auto too_narrow = [&](double by) { return !have_law(widened(lengths, by)); };
  return core::bisected(0, static_cast<double>(lengths.back().gamma), too_narrow).second;
}

/// The lengths with one of them held as near to `wanted` as the others' half units allow.
/// @param legal  the range that they allow
std::vector<theory::AcceptanceLength> held(std::vector<theory::AcceptanceLength> lengths, std::size_t k, double wanted,
                                           double legal) {
  const std::int64_t gamma = lengths[k].gamma;
  const auto is_illegal = [&](double tokens) {
    lengths[k] = {gamma, tokens, held_within};
    return !have_law(lengths);
  };
  if (is_illegal(wanted)) lengths[k].tokens_per_step = core::bisected(wanted, legal, is_illegal).second;
  return lengths;
}

/// The law that minimises the largest miss of a length as a share of its half unit, then the next largest, and so on
/// for the others in turn.
/// @param lengths  given by some law within their half units
AcceptanceProfile nearest_law(std::vector<theory::AcceptanceLength> lengths) {
  const auto scaled = [&](double share) {
    std::vector<theory::AcceptanceLength> result = lengths;
    for (theory::AcceptanceLength& length : result) length.half_unit *= share;
    return result;
  };
  if (have_law(scaled(0))) return theory::profile_from_acceptance_lengths(lengths).profile;
  const double least = core::bisected(0, 1, [&](double share) { return !have_law(scaled(share)); }).second;
  const std::vector<theory::AcceptanceLength> typed = lengths;
  lengths = scaled(least);
  for (theory::AcceptanceLength& length : lengths) length.half_unit += held_within;
  for (std::size_t k = 0; k < lengths.size(); ++k) {
    const AcceptanceProfile law = theory::profile_from_acceptance_lengths(lengths).profile;
    lengths = held(lengths, k, typed[k].tokens_per_step, theory::expected_tokens(law, lengths[k].gamma));
  }
  return theory::profile_from_acceptance_lengths(lengths).profile;
}

/// The relative error of tokens per step by rounding, as if it were even, and by sampling if the rounds are known.
double relative_error(std::int64_t gamma, double tokens, double half_unit, const std::optional<double>& rounds) {
  double square = half_unit * half_unit / (3 * tokens * tokens);
  if (rounds) {
    const PopulationPrior prior = population_prior();
    const double each = (tokens - 1) / static_cast<double>(gamma);
    const CountEvidence counted = {gamma, std::vector<double>(static_cast<std::size_t>(gamma), each), *rounds,
                                   prior.requests_of(*rounds), usual_length_variation};
    square += std::pow(sampling_error(prior, counted), 2);
  }
  return std::sqrt(square);
}

void add_measured(std::int64_t gamma, double tokens, double full_accepts, double error, TypedAcceptance& typed) {
  const double factor = std::exp(core::normal_half_width_95 * error), most = static_cast<double>(gamma) + 1;
  const Interval ci95 = {std::max(1.0, tokens / factor), std::min(most, tokens * factor)};
  typed.evidence.measured[gamma] = {tokens, ci95, full_accepts, false};
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
  std::vector<theory::AcceptanceLength> given;
  for (const TypedLength& length : lengths) {
    core::require_in("typed_lengths", "half_unit", length.half_unit, 0, 1);
    given.push_back({length.gamma, length.tokens_per_step, length.half_unit});
  }
  TypedAcceptance typed;
  typed.monotone = have_law(given);
  typed.misfit = typed.monotone ? 0 : least_misfit(given);
  const AcceptanceProfile law = lengths.size() == 1
                                    ? AcceptanceProfile(theory::alpha_from_acceptance_length(
                                          lengths.front().tokens_per_step, lengths.front().gamma))
                                    : nearest_law(widened(given, typed.misfit));
  typed.measured_from = lengths.front().gamma;
  typed.measured_at = lengths.back().gamma;
  typed.rate = pooled(law, typed.measured_at);
  typed.is_sampled = rounds.has_value();
  typed.evidence.prior = population_prior();
  for (const TypedLength& length : lengths) {
    const double tokens = theory::expected_tokens(law, length.gamma);
    const double error = relative_error(length.gamma, tokens, length.half_unit + typed.misfit, rounds);
    typed.evidence.lengths.push_back({length.gamma, tokens, error});
    add_measured(length.gamma, tokens, law.survival(length.gamma), error, typed);
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
  const AcceptanceProfile law = conditional ? theory::profile_from_conditional_rates(values)
                                            : theory::profile_from_unconditional_rates(values).profile;
  TypedAcceptance typed;
  double ceiling = 1;
  for (const auto& [rate, half] : rates) {
    if (!conditional && rate - half > ceiling) typed.monotone = false;
    ceiling = std::min(ceiling, rate + half);
  }
  typed.measured_at = std::ssize(rates);
  typed.rate = pooled(law, typed.measured_at);
  typed.is_sampled = rounds.has_value();
  typed.evidence.prior = population_prior();
  // Rates of unknown rounds are exact but for their rounding.
  constexpr double many = 1e12;
  CountEvidence counted = {typed.measured_at, {}, rounds.value_or(many)};
  for (std::int64_t j = 1; j <= typed.measured_at; ++j) counted.survival.push_back(law.survival(j));
  counted.requests = typed.evidence.prior.requests_of(counted.rounds);
  counted.length_variation = usual_length_variation;
  const double tokens = theory::expected_tokens(law, typed.measured_at);
  counted.relative_error =
      relative_error(typed.measured_at, tokens, half_unit_of_tokens(rates, conditional), rounds);
  add_measured(typed.measured_at, tokens, counted.survival.back(), *counted.relative_error, typed);
  typed.evidence.counts.push_back(std::move(counted));
  return typed;
}

}  // namespace specdec::estimate
