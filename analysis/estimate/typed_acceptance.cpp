#include "analysis/estimate/typed_acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/normal_interval.hpp"
#include "analysis/estimate/acceptance_counts.hpp"
#include "analysis/theory/acceptance_inversion.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::estimate {
namespace {

using core::AcceptanceProfile;
using core::AcceptanceRate;

/// Number of explicit positions beyond the longest draft; after them the last rate is held.
constexpr std::int64_t positions_beyond = 64;
/// Rejections below this one are the rounding of numbers.
constexpr double least_rejection = 1e-12;
/// Rates nearer to 0 or 1 than this are moved like rates at this distance.
constexpr double least_odds = 1e-7;
/// With fewer trials nothing follows.
constexpr double least_trials = 1e-6;
/// A length that is held fixed is so within this.
constexpr double held_within = 1e-11;
/// An end that is missed by less than this counts as met.
constexpr double end_within = 1e-6;
/// Number of halvings after which a bisection has every digit.
constexpr int halvings = 100;

/// rate_j = min(1, exp(log_first + (j - 1) ln ratio))
std::vector<double> geometric_rates(double log_first, double ratio, std::int64_t count) {
  std::vector<double> rates;
  for (std::int64_t j = 0; j < count; ++j) {
    rates.push_back(std::exp(std::min(0.0, log_first + static_cast<double>(j) * std::log(ratio))));
  }
  return rates;
}

double tokens_of(const std::vector<double>& rates) {
  double tokens = 1, alive = 1;
  for (const double rate : rates) tokens += alive *= rate;
  return tokens;
}

/// The first of rates that change by the ratio and give the stated tokens per step.
double log_first_rate(double tokens, std::int64_t gamma, double ratio) {
  double lo = -750, hi = std::max(0.0, -static_cast<double>(gamma) * std::log(ratio));
  for (int i = 0; i < halvings; ++i) {
    const double middle = lo + (hi - lo) / 2;
    (tokens_of(geometric_rates(middle, ratio, gamma)) < tokens ? lo : hi) = middle;
  }
  return hi;
}

AcceptanceProfile profile_of(const std::vector<double>& rates) {
  std::vector<AcceptanceRate> conditional(rates.begin(), rates.end());
  return AcceptanceProfile::from_conditional(conditional);
}

/// Conditional rates of a profile at the first positions; 0 if nothing comes that far.
std::vector<double> rates_of(const AcceptanceProfile& profile, std::int64_t count) {
  std::vector<double> rates;
  for (std::int64_t j = 1; j <= count; ++j) {
    const double before = profile.survival(j - 1);
    rates.push_back(before > 0 ? std::min(1.0, profile.survival(j) / before) : 0.0);
  }
  return rates;
}

/// Continues the rates, each `ratio` times the one before it.
AcceptanceProfile continued(std::vector<double> rates, double next, double ratio) {
  for (std::int64_t j = 0; j < positions_beyond; ++j, next *= ratio) rates.push_back(std::min(1.0, next));
  return profile_of(rates);
}

/// A line of declining rates that ends at the same tokens per step and lies nearest to the rates' own earlier tokens.
struct Trend {
  double ratio = 1;
  /// The rate at the first position beyond.
  double next = 0;
  /// True if fitted to the rates, false for the usual one.
  bool fitted = false;
};

/// @param figures  number of typed figures; fewer than three determine no ratio
Trend trend_of(const std::vector<double>& rates, std::size_t figures) {
  if (figures < 3) {
    const double usual = published_depth_ratios.usual;
    return {usual, rates.back() > 1 - least_rejection ? 1 : rates.back() * usual, false};
  }
  const auto gamma = static_cast<std::int64_t>(rates.size());
  const double tokens = tokens_of(rates);
  Trend best;
  double least = std::numeric_limits<double>::infinity();
  constexpr int steps = 50;
  for (int step = 0; step <= steps; ++step) {
    const double ratio = 1 - 0.5 * step / steps;
    const double first = log_first_rate(tokens, gamma, ratio);
    const std::vector<double> line = geometric_rates(first, ratio, gamma);
    double squares = 0, alive = 1, alive_on_line = 1, difference = 0;
    for (std::size_t j = 0; j < rates.size(); ++j) {
      difference += (alive *= rates[j]) - (alive_on_line *= line[j]);
      squares += difference * difference;
    }
    if (squares >= least) continue;
    least = squares;
    best = {ratio, geometric_rates(first, ratio, gamma + 1).back(), true};
  }
  return best;
}

/// Rates moved away from the ends, so that they can move to either side.
std::vector<double> off_the_ends(std::vector<double> rates) {
  for (double& rate : rates) rate = std::clamp(rate, least_odds, 1 - least_odds);
  return rates;
}

/// All odds times exp(tilt).
std::vector<double> tilted(std::vector<double> rates, double tilt) {
  const double factor = std::exp(tilt);
  for (double& rate : rates) rate = rate * factor / (1 - rate + rate * factor);
  return rates;
}

/// The tilt with which the rates give the stated tokens per step.
double tilt_to(const std::vector<double>& rates, double tokens) {
  double lo = -40, hi = 40;
  for (int i = 0; i < halvings; ++i) {
    const double middle = lo + (hi - lo) / 2;
    (tokens_of(tilted(rates, middle)) < tokens ? lo : hi) = middle;
  }
  return hi;
}

/// The profile with its odds tilted so that `gamma` drafts give the stated tokens per step.
AcceptanceProfile moved_to(const AcceptanceProfile& profile, std::int64_t gamma, double tokens) {
  const std::vector<double> all = off_the_ends(rates_of(profile, std::max(profile.measured_positions(), gamma)));
  const std::vector<double> measured(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(gamma));
  return profile_of(tilted(all, tilt_to(measured, tokens)));
}

/// The measured rates, and those of the other profile beyond them.
AcceptanceProfile with_rates_beyond(const AcceptanceProfile& measured, std::int64_t gamma,
                                    const AcceptanceProfile& other) {
  std::vector<double> rates = rates_of(other, std::max(other.measured_positions(), gamma));
  const std::vector<double> first = rates_of(measured, gamma);
  std::copy(first.begin(), first.end(), rates.begin());
  return profile_of(rates);
}

/// The profile with the odds from each of the gammas to the next tilted so that each gives its tokens per step, as far
/// as rates can.
AcceptanceProfile moved_to_each(const AcceptanceProfile& profile, const std::vector<std::int64_t>& gammas,
                                const std::vector<double>& tokens) {
  const std::vector<double> all = off_the_ends(rates_of(profile, gammas.back()));
  std::vector<double> rates;
  double here = 1, alive = 1;
  for (std::size_t k = 0; k < gammas.size(); ++k) {
    const auto begin = static_cast<std::ptrdiff_t>(rates.size());
    const std::vector<double> gap(all.begin() + begin, all.begin() + static_cast<std::ptrdiff_t>(gammas[k]));
    for (const double rate : tilted(gap, tilt_to(gap, 1 + (tokens[k] - here) / alive))) {
      rates.push_back(rate);
      here += alive *= rate;
    }
  }
  return profile_of(rates);
}

/// The interval for a share of successes in the stated number of independent trials.
Interval share_interval(double share, double trials) {
  return trials > least_trials ? wilson_interval_of_share(share, trials) : Interval{0, 1};
}

/// The interval for the true tokens per step from the mean of a number of rounds: Wilson's interval for the share of
/// drafts that is accepted, x = (tokens - 1) / gamma, with as many trials as give its standard error,
///
///   n = x (1 - x) gamma^2 rounds / (design effect Var),  Var = sum (2j - 1) s_j - (sum s_j)^2
Interval sampling_interval(double tokens, const AcceptanceProfile& profile, std::int64_t gamma,
                           const std::optional<double>& rounds) {
  if (!rounds) return {tokens, tokens};
  double mean = 0, squares = 0, alive = 1, weight = 1;
  for (const double rate : off_the_ends(rates_of(profile, gamma))) {
    alive *= rate;
    mean += alive;
    squares += weight * alive;
    weight += 2;
  }
  const auto most = static_cast<double>(gamma);
  const double variance = (squares - mean * mean) * typed_design_effect / *rounds;
  const Interval share = share_interval(std::clamp((tokens - 1) / most, 0.0, 1.0), mean * (most - mean) / variance);
  return {1 + most * share.lo, 1 + most * share.hi};
}

void require_rounds(const std::optional<double>& rounds) {
  if (rounds) core::require_in("typed acceptance", "rounds", *rounds, 1, std::numeric_limits<double>::max());
}

/// The range of a figure from its rounding and sampling.
struct Band {
  std::int64_t gamma;
  double value, lo, hi;
};

/// The bands of rates whose largest lower end exceeds their smallest upper end.
std::optional<DifferentRates> different_rates(const std::vector<Band>& bands) {
  const auto ends_before = [](const Band& a, const Band& b) { return a.hi < b.hi; };
  const auto begins_before = [](const Band& a, const Band& b) { return a.lo < b.lo; };
  const auto low = std::min_element(bands.begin(), bands.end(), ends_before);
  const auto high = std::max_element(bands.begin(), bands.end(), begins_before);
  if (high->lo <= low->hi) return std::nullopt;
  const auto [first, second] = std::minmax(*low, *high, [](const Band& a, const Band& b) { return a.gamma < b.gamma; });
  return DifferentRates{first.gamma, second.gamma, first.value, second.value};
}

double rate_for(double tokens, std::int64_t gamma) {
  return theory::alpha_from_acceptance_length(std::clamp(tokens, 1.0, static_cast<double>(gamma) + 1), gamma).alpha();
}

/// Accepted drafts per examined draft, the single rate equivalent to the measured positions.
AcceptanceRate pooled(const AcceptanceProfile& measured, std::int64_t gamma) {
  const double accepted = theory::expected_tokens(measured, gamma) - 1;
  return AcceptanceRate(std::min(1.0, accepted / theory::expected_tokens(measured, gamma - 1)));
}

/// Rates that change by one ratio from draft to draft between figures and give the profile's tokens at each of these.
/// @param gammas   the gammas of the figures
/// @param falling  no rate exceeds the one before it, including from one figure to the next
/// @return empty if no rates do
std::optional<std::vector<double>> rates_between(const AcceptanceProfile& measured,
                                                 const std::vector<std::int64_t>& gammas, double ratio, bool falling) {
  constexpr double slack = 1e-9;
  std::vector<double> rates;
  double alive = 1, tokens = 1;
  for (const std::int64_t gamma : gammas) {
    const auto count = gamma - static_cast<std::int64_t>(rates.size());
    const double here = theory::expected_tokens(measured, gamma);
    const double accepted = alive > 0 ? (here - tokens) / alive : 0;
    if (accepted > static_cast<double>(count) * (1 + slack)) return std::nullopt;
    const double first = log_first_rate(1 + accepted, count, ratio);
    if (falling && !rates.empty() && std::exp(first) > rates.back() * (1 + slack)) return std::nullopt;
    for (const double rate : geometric_rates(first, ratio, count)) {
      rates.push_back(rate);
      alive *= rate;
    }
    tokens = here;
  }
  return rates;
}

/// The rates between figures by the steepest of the published ratios with which rates fall through all figures, or
/// with which they rise from one to the next if no falling ones pass through them.
/// @return empty if there are none
std::optional<std::vector<double>> steepest_between(const AcceptanceProfile& measured,
                                                    const std::vector<std::int64_t>& gammas) {
  const bool falling = rates_between(measured, gammas, 1, true).has_value();
  double lo = published_depth_ratios.steepest, hi = 1;
  std::optional<std::vector<double>> found = rates_between(measured, gammas, lo, falling);
  if (found) return found;
  for (int i = 0; i < halvings; ++i) {
    const double middle = lo + (hi - lo) / 2;
    auto rates = rates_between(measured, gammas, middle, falling);
    (rates ? hi : lo) = middle;
    if (rates) found = std::move(rates);
  }
  return found;
}

/// Readings beyond the measured drafts, with the rates in between unchanged and, if some lie between figures, as steep
/// as they may be and rising from draft to draft. A rate of 1 cannot be continued: readings are then of the rounding
/// alone, which ends at gamma + 1.
/// @param gammas  the gammas of the figures
void add_readings(const AcceptanceProfile& measured, const std::vector<std::int64_t>& gammas, double half_unit,
                  TypedAcceptance& typed) {
  const std::int64_t gamma = gammas.back();
  const double most = static_cast<double>(gamma) + 1;
  std::vector<std::vector<double>> between = {rates_of(measured, gamma)};
  const Trend trend = trend_of(between[0], gammas.size());
  if (trend.next > 1 - least_rejection) {
    for (const double moved : {-half_unit, half_unit}) {
      const double tokens = std::clamp(tokens_of(between[0]) + moved, 1.0, most);
      if (moved != 0) typed.readings.push_back(moved_to(measured, gamma, tokens));
    }
    return;
  }
  typed.profile = continued(between[0], trend.next, trend.ratio);
  typed.ratio_beyond = trend.ratio;
  typed.ratio_fitted = trend.fitted;
  const double steepest = std::min(published_depth_ratios.steepest, trend.ratio);
  if (gamma > static_cast<std::int64_t>(gammas.size())) {
    if (auto steep = steepest_between(measured, gammas)) between.push_back(*std::move(steep));
    if (auto rising = rates_between(measured, gammas, published_depth_ratios.rising, false)) {
      between.push_back(*std::move(rising));
    }
  }
  for (const std::vector<double>& rates : between) {
    const Trend on = trend_of(rates, gammas.size());
    for (const auto& [moved, ratio] :
         {std::pair(-half_unit, steepest), std::pair(half_unit, published_depth_ratios.rising)}) {
      const AcceptanceProfile read = continued(rates, on.next / on.ratio * ratio, ratio);
      typed.readings.push_back(moved == 0 ? read
                                          : moved_to(read, gamma, std::clamp(tokens_of(rates) + moved, 1.0, most)));
    }
  }
}

/// The ends through the longest figure, and those that meet the ends of all figures at once; a figure whose end is not
/// met by these has its own.
/// @param ci95  intervals of the tokens per step at each gamma
void add_ends(std::span<const Interval> ci95, const std::vector<std::int64_t>& gammas, TypedAcceptance& typed) {
  std::vector<double> low, high;
  for (const Interval& tokens : ci95) {
    low.push_back(tokens.lo);
    high.push_back(tokens.hi);
  }
  for (const std::vector<double>& ends : {low, high}) {
    const AcceptanceProfile last = moved_to(typed.profile, gammas.back(), ends.back());
    typed.ci95.push_back(last);
    if (gammas.size() == 1) continue;
    const AcceptanceProfile each = moved_to_each(typed.profile, gammas, ends);
    typed.ci95.push_back(with_rates_beyond(each, gammas.back(), last));
    for (std::size_t k = 0; k + 1 < gammas.size(); ++k) {
      if (std::abs(theory::expected_tokens(each, gammas[k]) - ends[k]) <= end_within) continue;
      typed.ci95.push_back(moved_to(typed.profile, gammas[k], ends[k]));
    }
  }
}

/// The interval by the size of the sample.
void add_interval(const std::optional<double>& rounds, const std::vector<std::int64_t>& gammas,
                  TypedAcceptance& typed) {
  if (!rounds) return;
  std::vector<Interval> ci95;
  for (const std::int64_t gamma : gammas) {
    ci95.push_back(sampling_interval(theory::expected_tokens(typed.profile, gamma), typed.profile, gamma, rounds));
  }
  add_ends(ci95, gammas, typed);
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
  double lo = 0, hi = static_cast<double>(lengths.back().gamma);
  for (int i = 0; i < halvings; ++i) {
    const double middle = lo + (hi - lo) / 2;
    (have_law(widened(lengths, middle)) ? hi : lo) = middle;
  }
  return hi;
}

/// The lengths with one of them held as near to `wanted` as the others' half units allow.
/// @param legal  the range that they allow
std::vector<theory::AcceptanceLength> held(std::vector<theory::AcceptanceLength> lengths, std::size_t k, double wanted,
                                           double legal) {
  const std::int64_t gamma = lengths[k].gamma;
  lengths[k] = {gamma, wanted, held_within};
  if (have_law(lengths)) return lengths;
  for (int i = 0; i < halvings; ++i) {
    const double middle = wanted + (legal - wanted) / 2;
    lengths[k] = {gamma, middle, held_within};
    (have_law(lengths) ? legal : wanted) = middle;
  }
  lengths[k] = {gamma, legal, held_within};
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
  double lo = 0, hi = 1;
  for (int i = 0; i < halvings; ++i) {
    const double middle = lo + (hi - lo) / 2;
    (have_law(scaled(middle)) ? hi : lo) = middle;
  }
  const std::vector<theory::AcceptanceLength> typed = lengths;
  lengths = scaled(hi);
  for (theory::AcceptanceLength& length : lengths) length.half_unit += held_within;
  for (std::size_t k = 0; k < lengths.size(); ++k) {
    const AcceptanceProfile law = theory::profile_from_acceptance_lengths(lengths).profile;
    lengths = held(lengths, k, typed[k].tokens_per_step, theory::expected_tokens(law, lengths[k].gamma));
  }
  return theory::profile_from_acceptance_lengths(lengths).profile;
}

/// Readings that meet the ends of each length's rounding, as far as the others' rounding allows.
void add_ends_of_lengths(const std::vector<theory::AcceptanceLength>& lengths, TypedAcceptance& typed) {
  for (std::size_t k = 0; k < lengths.size(); ++k) {
    const auto& [gamma, tokens, half_unit] = lengths[k];
    if (half_unit == 0) continue;
    for (const double moved : {-half_unit, half_unit}) {
      const double end = std::clamp(tokens + moved, 1.0, static_cast<double>(gamma) + 1);
      const auto ends = held(lengths, k, end, theory::expected_tokens(typed.profile, gamma));
      typed.readings.push_back(
          with_rates_beyond(theory::profile_from_acceptance_lengths(ends).profile, typed.measured_at, typed.profile));
    }
  }
}

/// Readings with all rates at the low and at the high ends of their rounding, with decreasing survival.
void add_ends_of_rates(std::span<const TypedRate> rates, bool conditional, TypedAcceptance& typed) {
  std::vector<double> low, high;
  bool rounded = false;
  for (const auto& [rate, half] : rates) {
    low.push_back(std::max(0.0, rate - half));
    high.push_back(std::min(1.0, rate + half));
    rounded = rounded || half > 0;
  }
  if (!rounded || rates.size() == 1) return;
  if (!conditional) {
    for (std::size_t j = low.size() - 1; j > 0; --j) low[j - 1] = std::max(low[j - 1], low[j]);
  }
  for (const std::vector<double>& ends : {low, high}) {
    const AcceptanceProfile end = conditional ? theory::profile_from_conditional_rates(ends)
                                              : theory::profile_from_unconditional_rates(ends).profile;
    typed.readings.push_back(with_rates_beyond(end, typed.measured_at, typed.profile));
  }
}

/// Readings that meet the ends of each length's rounding, regardless of the others.
void add_lengths_as_typed(std::span<const TypedLength> lengths, TypedAcceptance& typed) {
  for (const TypedLength& length : lengths) {
    for (const double moved : {-length.half_unit, length.half_unit}) {
      const double tokens = std::clamp(length.tokens_per_step + moved, 1.0, static_cast<double>(length.gamma) + 1);
      typed.readings.push_back(moved_to(typed.profile, length.gamma, tokens));
    }
  }
}

TypedAcceptance one_length(const TypedLength& length, const std::optional<double>& rounds) {
  const double most = static_cast<double>(length.gamma) + 1;
  const auto at = [&](double tokens, double ratio) {
    const double first = log_first_rate(std::clamp(tokens, 1.0, most), length.gamma, ratio);
    return profile_of(geometric_rates(first, ratio, length.gamma + positions_beyond));
  };
  const AcceptanceRate rate = theory::alpha_from_acceptance_length(length.tokens_per_step, length.gamma);
  TypedAcceptance typed{.profile = rate, .measured_at = length.gamma, .measured_from = length.gamma, .rate = rate};
  if (rate.rejection() >= least_rejection) {
    typed.profile = at(length.tokens_per_step, published_depth_ratios.usual);
    typed.ratio_beyond = published_depth_ratios.usual;
  }
  for (const double ratio : {published_depth_ratios.steepest, published_depth_ratios.rising}) {
    for (const double moved : {-length.half_unit, length.half_unit}) {
      typed.readings.push_back(at(length.tokens_per_step + moved, ratio));
    }
  }
  add_interval(rounds, {length.gamma}, typed);
  return typed;
}

/// The relative error of tokens per step by rounding, as if it were even, and by sampling if the rounds are known.
double relative_error(std::int64_t gamma, double tokens, double half_unit, const std::optional<double>& rounds) {
  double square = half_unit * half_unit / (3 * tokens * tokens);
  if (rounds) {
    const double each = (tokens - 1) / static_cast<double>(gamma);
    const CountEvidence counted = {gamma, std::vector<double>(static_cast<std::size_t>(gamma), each), *rounds,
                                   requests_of_rounds(*rounds), usual_length_variation};
    square += std::pow(sampling_error(population_prior(), counted), 2);
  }
  return std::sqrt(square);
}

void add_measured(std::int64_t gamma, double tokens, double error, TypedAcceptance& typed) {
  const double factor = std::exp(core::normal_half_width_95 * error), most = static_cast<double>(gamma) + 1;
  const Interval ci95 = {std::max(1.0, tokens / factor), std::min(most, tokens * factor)};
  typed.evidence.measured[gamma] = {tokens, exactly(tokens), ci95, typed.profile.survival(gamma), false};
}

/// Lengths, as the nearest law gives them where they contradict each other.
void add_evidence(std::span<const TypedLength> lengths, const std::optional<double>& rounds, TypedAcceptance& typed) {
  typed.evidence.prior = population_prior();
  for (const TypedLength& length : lengths) {
    const double tokens = theory::expected_tokens(typed.profile, length.gamma);
    const double error = relative_error(length.gamma, tokens, length.half_unit + typed.misfit, rounds);
    typed.evidence.lengths.push_back({length.gamma, tokens, error});
    add_measured(length.gamma, tokens, error, typed);
  }
}

/// Rates by position, of so many rounds that they are exact where nothing says it.
void add_evidence(double half_unit, const std::optional<double>& rounds, TypedAcceptance& typed) {
  typed.evidence.prior = population_prior();
  constexpr double many = 1e12;
  CountEvidence counted = {typed.measured_at, {}, rounds.value_or(many)};
  for (std::int64_t j = 1; j <= typed.measured_at; ++j) counted.survival.push_back(typed.profile.survival(j));
  counted.requests = requests_of_rounds(counted.rounds);
  counted.length_variation = usual_length_variation;
  const double tokens = theory::expected_tokens(typed.profile, typed.measured_at);
  counted.relative_error = relative_error(typed.measured_at, tokens, half_unit, rounds);
  add_measured(typed.measured_at, tokens, *counted.relative_error, typed);
  typed.evidence.counts.push_back(std::move(counted));
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
  const bool monotone = have_law(given);
  if (lengths.size() == 1) {
    TypedAcceptance typed = one_length(lengths.front(), rounds);
    add_evidence(lengths, rounds, typed);
    return typed;
  }

  const double misfit = monotone ? 0 : least_misfit(given);
  const AcceptanceProfile law = nearest_law(widened(given, misfit));
  const TypedLength& longest = lengths.back();
  TypedAcceptance typed{.profile = law,
                        .measured_at = longest.gamma,
                        .measured_from = lengths.front().gamma,
                        .rate = pooled(law, longest.gamma),
                        .monotone = monotone,
                        .misfit = misfit};
  std::vector<std::int64_t> gammas;
  for (const TypedLength& length : lengths) gammas.push_back(length.gamma);
  add_readings(law, gammas, longest.half_unit, typed);
  if (monotone) {
    add_ends_of_lengths(given, typed);
  } else {
    add_lengths_as_typed(lengths, typed);
  }
  std::vector<Band> bands;
  for (const TypedLength& length : lengths) {
    const Interval sampled = sampling_interval(length.tokens_per_step, typed.profile, length.gamma, rounds);
    bands.push_back({length.gamma, rate_for(length.tokens_per_step, length.gamma),
                     rate_for(sampled.lo - length.half_unit, length.gamma),
                     rate_for(sampled.hi + length.half_unit, length.gamma)});
  }
  typed.falsified = different_rates(bands);
  add_interval(rounds, gammas, typed);
  add_evidence(lengths, rounds, typed);
  return typed;
}

TypedAcceptance typed_lengths_within(std::span<const TypedLength> lengths, std::span<const Interval> ci95) {
  core::require_same_size("typed_lengths_within", "lengths", lengths.size(), "ci95", ci95.size());
  TypedAcceptance typed = typed_lengths(lengths);
  std::vector<std::int64_t> gammas;
  for (std::size_t k = 0; k < lengths.size(); ++k) {
    const auto& [gamma, tokens, half_unit] = lengths[k];
    core::require_in("typed_lengths_within", "the lower end of an interval", ci95[k].lo, 1, tokens);
    core::require_in("typed_lengths_within", "the upper end of an interval", ci95[k].hi, tokens,
                     static_cast<double>(gamma) + 1);
    gammas.push_back(gamma);
  }
  add_ends(ci95, gammas, typed);
  return typed;
}

TypedAcceptance typed_positions(std::span<const TypedRate> rates, bool conditional, std::optional<double> rounds) {
  require_rounds(rounds);
  std::vector<double> values;
  for (const TypedRate& typed : rates) {
    core::require_in("typed_positions", "half_unit", typed.half_unit, 0, 1);
    values.push_back(typed.rate);
  }
  const auto gamma = static_cast<std::int64_t>(rates.size());
  const AcceptanceProfile measured = conditional ? theory::profile_from_conditional_rates(values)
                                                 : theory::profile_from_unconditional_rates(values).profile;
  TypedAcceptance typed{.profile = measured, .measured_at = gamma, .rate = pooled(measured, gamma)};
  double before_lo = 1, before_hi = 1, ceiling = 1;
  std::vector<Band> bands;
  for (std::size_t j = 0; j < rates.size(); ++j) {
    const auto& [rate, half] = rates[j];
    const auto position = static_cast<std::int64_t>(j) + 1;
    // Given that all before are accepted, over the rounds that came this far.
    const double counted = rounds.value_or(0) * (conditional ? measured.survival(position - 1) : 1.0);
    const Interval sampled = rounds ? share_interval(rate, counted / typed_design_effect) : Interval{rate, rate};
    const double lo = std::max(0.0, sampled.lo - half), hi = std::min(1.0, sampled.hi + half);
    if (conditional) {
      bands.push_back({position, rate, lo, hi});
      continue;
    }
    if (lo > ceiling) typed.monotone = false;
    ceiling = std::min(ceiling, hi);
    if (before_lo > 0) {
      const double value = j == 0 ? rate : std::min(1.0, rate / rates[j - 1].rate);
      bands.push_back({position, value, lo / before_hi, std::min(1.0, hi / before_lo)});
    }
    before_lo = lo;
    before_hi = std::max(hi, std::numeric_limits<double>::min());
  }
  if (!bands.empty()) typed.falsified = different_rates(bands);
  std::vector<std::int64_t> positions(rates.size());
  std::iota(positions.begin(), positions.end(), 1);
  add_readings(measured, positions, half_unit_of_tokens(rates, conditional), typed);
  add_ends_of_rates(rates, conditional, typed);
  add_interval(rounds, positions, typed);
  add_evidence(half_unit_of_tokens(rates, conditional), rounds, typed);
  return typed;
}

}  // namespace specdec::estimate
