#include "analysis/estimate/measured_acceptance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/estimate/acceptance_counts.hpp"
#include "analysis/estimate/acceptance_estimates.hpp"
#include "analysis/estimate/serving_clusters.hpp"
#include "analysis/estimate/two_rate_fit.hpp"
#include "analysis/estimate/typed_acceptance.hpp"
#include "analysis/theory/acceptance_inversion.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::estimate {
namespace {

/// When the two rates are fitted, rounds that survive beyond this many drafts are truncated there.
constexpr std::size_t fitted_positions = 24;

Interval including(const Interval& interval, double value) { return hull(interval, exactly(value)); }

double tokens_at(double alpha, std::int64_t gamma) {
  return theory::expected_tokens(core::AcceptanceRate(std::clamp(alpha, 0.0, 1.0)), gamma);
}

double full_accepts_at(double alpha, std::int64_t gamma) {
  return core::AcceptanceRate(std::clamp(alpha, 0.0, 1.0)).power(gamma);
}

/// Tokens per step of drafts with mean length `drafted`, with lengths as equal as integers allow.
double tokens_at_mean_length(double alpha, double drafted) {
  const double shorter = std::floor(drafted), share_of_longer = drafted - shorter;
  const auto length = static_cast<std::int64_t>(shorter);
  return (1 - share_of_longer) * tokens_at(alpha, length) + share_of_longer * tokens_at(alpha, length + 1);
}

/// The rate in [bounds.lo, bounds.hi] that gives the counted tokens per step.
double alpha_of_mean_length(double tokens, double drafted, const Interval& bounds) {
  double low = bounds.lo, high = bounds.hi;
  constexpr int halvings = 60;
  for (int i = 0; i < halvings; ++i) {
    const double middle = low + (high - low) / 2;
    (tokens_at_mean_length(middle, drafted) < tokens ? low : high) = middle;
  }
  return low;
}

/// Tokens per step if each rate behind the longest observed draft is the one before it times the steepest ratio of
/// published drafts.
double tokens_of_steepest(const core::AcceptanceProfile& observed, std::int64_t longest, std::int64_t drafts) {
  double tokens = theory::expected_tokens(observed, std::min(longest, drafts));
  double alive = observed.survival(longest);
  const double before = observed.survival(longest - 1);
  double rate = before > 0 ? alive / before : 0;
  constexpr double least_alive = 1e-18;
  for (std::int64_t j = longest; j < drafts && alive > least_alive; ++j)
    tokens += alive *= rate *= published_depth_ratios.steepest;
  return tokens;
}

[[noreturn]] void refuse(std::string_view found, std::string_view needed) {
  throw std::domain_error(fmt::format("MeasuredAcceptance: {}, but {}", found, needed));
}

}  // namespace

MeasuredAcceptance::MeasuredAcceptance(const ServingSummary& summary, Options options) : options_(options) {
  core::require_in("MeasuredAcceptance", "design_effect", options.design_effect, 1,
                   std::numeric_limits<double>::infinity());
  if (summary.shape == traces::DraftShape::tree) {
    refuse("drafts are trees",
           "tokens per step at another gamma need a chain: acceptance by depth of a tree is not that "
           "of a chain");
  }
  if (!summary.tokens_per_step) refuse("no rounds were counted", "tokens per step need rounds and accepted drafts");
  if (summary.shape != traces::DraftShape::chain) {
    refuse("the shape of the drafts is unknown", "tokens per step at another gamma need a chain");
  }
  basis_ = summary.basis;
  one_request_ = summary.unit == traces::CountUnit::request && summary.clusters == 1;
  measured_tokens_ = summary.tokens_per_step->value;
  measured_ci95_ = summary.tokens_per_step->ci95;
  measured_gamma_ = summary.gamma;
  if (summary.alpha_hat) {
    const CountedRate& rate = *summary.alpha_hat;
    alpha_ = rate.bounds;
    constant_alpha_ = rate.value.value_or(rate.bounds.lo);
    alpha_ci95_ = rate.ci95.value_or(rate.bounds);
    if (basis_ == IntervalBasis::iid_rounds && options.design_effect > 1 && rate.ci95_iid_rounds) {
      // The interval for a third of the rounds is the known one; any other width scales with the root.
      const double factor = std::sqrt(options.design_effect);
      alpha_ci95_ = {std::max(0.0, alpha_.lo - factor * (alpha_.lo - rate.ci95_iid_rounds->lo)),
                     std::min(1.0, alpha_.hi + factor * (rate.ci95_iid_rounds->hi - alpha_.hi))};
    }
  }
  if (summary.moments.positions() > 0 && summary.moments.evaluated(1) > 0) {
    take_positions(summary);
  } else if (summary.alpha_hat) {
    take_rate_alone(summary);
  } else {
    refuse("neither drafted tokens nor the length of drafts is known", "acceptance needs one of them");
  }
}

void MeasuredAcceptance::take_rate_alone(const ServingSummary& summary) {
  longest_observed_ = summary.gamma.value_or(summary.longest_draft.value_or(0));
  if (summary.gamma && 1 < *summary.gamma && *summary.gamma <= theory::longest_profile) {
    const double tokens = std::clamp(measured_tokens_, 1.0, static_cast<double>(*summary.gamma) + 1);
    shorter_drafts_ = typed_lengths({{{*summary.gamma, tokens}}}).readings;
  }
  if (summary.alpha_hat->value) return;
  if (longest_observed_ == 0 || !summary.drafted || !summary.rounds) {
    refuse(
        fmt::format("drafts have several lengths, and alpha lies anywhere in {:.3g} to {:.3g}", alpha_.lo, alpha_.hi),
        "acceptance at another gamma needs their length (--at), or counts by position");
  }
  constant_alpha_ = alpha_of_mean_length(measured_tokens_, *summary.drafted / *summary.rounds, alpha_);
}

void MeasuredAcceptance::take_positions(const ServingSummary& summary) {
  moments_ = summary.moments;
  if (moments_.clusters() < 2) basis_ = IntervalBasis::iid_rounds;
  std::vector<double> rates;
  double alive = moments_.evaluated(1);
  for (std::int64_t j = 1; j <= moments_.positions() && moments_.evaluated(j) > 0; ++j) {
    rates.push_back(std::clamp(moments_.rate(j), 0.0, 1.0));
    going_on_.push_back(std::min(1.0, moments_.evaluated(j) / alive));
    alive = moments_.accepted(j);
    if (!(alive > 0)) break;
  }
  longest_observed_ = static_cast<std::int64_t>(rates.size());
  if (summary.rounds_by_drafted.empty()) {
    double drafting = 1;
    for (const double share : going_on_) {
      share_by_drafted_.push_back(drafting * (1 - share));
      drafting *= share;
    }
    share_by_drafted_.push_back(drafting);
  } else {
    double rounds = 0;
    for (const double count : summary.rounds_by_drafted) rounds += count;
    for (const double count : summary.rounds_by_drafted) share_by_drafted_.push_back(count / rounds);
  }
  centre_ = fit_of(rates);
  for (std::size_t j = 0; j < rates.size(); ++j) {
    std::vector<double> alone(static_cast<std::size_t>(moments_.positions()));
    alone[j] = 1;
    const double error =
        moments_.standard_error(alone).value_or(moments_.standard_error_of_independent_rounds(alone)).value;
    // Rounded: the error's last digits follow the order of the clusters, and a fit that is hardly determined them.
    const double width = static_cast<float>(std::min({error, rates[j] / 2, (1 - rates[j]) / 2}));
    Shift& shift = shifts_.emplace_back();
    shift.width = width;
    if (!centre_.two_rates || j >= fitted_positions) {
      shift.below = shift.above = centre_;
      continue;
    }
    std::vector<double> shifted = rates;
    shifted[j] = rates[j] - width;
    shift.below = fit_of(shifted);
    shifted[j] = rates[j] + width;
    shift.above = fit_of(shifted);
  }
}

MeasuredAcceptance::Fit MeasuredAcceptance::fit_of(const std::vector<double>& rates) const {
  Fit fit;
  RoundEnds ends;
  double alive = moments_.evaluated(1);
  double accepted = 0;
  double looked_at = 0;
  std::vector<core::AcceptanceRate> conditional;
  for (std::size_t j = 0; j < rates.size(); ++j) {
    conditional.emplace_back(rates[j]);
    const double going = alive * going_on_[j];
    looked_at += going;
    accepted += going * rates[j];
    if (j <= fitted_positions) ends.completed.push_back(j < fitted_positions ? alive - going : alive);
    if (j < fitted_positions) ends.rejected.push_back(going * (1 - rates[j]));
    alive = going * rates[j];
  }
  if (rates.size() <= fitted_positions) ends.completed.push_back(alive);
  fit.alpha = accepted / looked_at;
  if (options_.beyond == BeyondObserved::geometric) conditional.emplace_back(fit.alpha);
  fit.hazards = core::AcceptanceProfile::from_conditional(conditional);
  if (const auto mixture = estimate::two_rates(ends)) fit.two_rates = rates_of_tokens(*mixture, share_by_drafted_);
  return fit;
}

std::int64_t MeasuredAcceptance::effective(std::int64_t gamma) const {
  return options_.beyond == BeyondObserved::zero ? std::min(gamma, longest_observed_) : gamma;
}

bool MeasuredAcceptance::falls_behind(std::int64_t drafts) const {
  return options_.falls_beyond && options_.beyond == BeyondObserved::hold && 0 < longest_observed_ &&
         longest_observed_ < drafts;
}

AcceptanceReadings MeasuredAcceptance::readings(std::int64_t gamma) const {
  core::require_in("MeasuredAcceptance::readings", "gamma", gamma, std::int64_t{0},
                   std::numeric_limits<std::int64_t>::max());
  const std::int64_t drafts = effective(gamma);
  AcceptanceReadings readings;
  if (longest_observed_ == 0 || moments_.positions() == 0) {
    readings.constant_rate = readings.hazards = tokens_at(constant_alpha_, drafts);
    return readings;
  }
  readings.constant_rate = tokens_at(centre_.alpha, drafts);
  readings.hazards = theory::expected_tokens(centre_.hazards, drafts);
  if (centre_.two_rates) readings.two_state = theory::expected_tokens(*centre_.two_rates, drafts);
  return readings;
}

std::vector<double> MeasuredAcceptance::survival(std::int64_t gamma) const {
  if (gamma != measured_gamma_ || moments_.positions() == 0) return AcceptanceCurve::survival(gamma);
  std::vector<double> survival;
  const std::int64_t drafts = effective(gamma);
  for (std::int64_t j = 1; j <= gamma; ++j) survival.push_back(j <= drafts ? centre_.hazards.survival(j) : 0);
  return survival;
}

TokensPerStep MeasuredAcceptance::tokens_per_step(std::int64_t gamma) const {
  core::require_in("MeasuredAcceptance::tokens_per_step", "gamma", gamma, std::int64_t{0},
                   std::numeric_limits<std::int64_t>::max());
  if (gamma == 0) return {1, {1, 1}, {1, 1}, 1, false};
  TokensPerStep tokens = moments_.positions() > 0 ? of_positions(gamma) : of_rate_alone(gamma);
  if (one_request_) tokens.ci95 = {1, static_cast<double>(gamma) + 1};
  // Totals scraped separately may slightly exceed what gamma allows.
  const double most = static_cast<double>(gamma) + 1;
  tokens.value = std::clamp(tokens.value, 1.0, most);
  for (Interval* interval : {&tokens.readings, &tokens.ci95}) {
    *interval = {std::clamp(interval->lo, 1.0, most), std::clamp(interval->hi, 1.0, most)};
  }
  return tokens;
}

TokensPerStep MeasuredAcceptance::of_positions(std::int64_t gamma) const {
  const std::int64_t drafts = effective(gamma);
  const bool cut_off = drafts < gamma;
  const AcceptanceReadings all = readings(gamma);
  TokensPerStep result;
  result.extrapolated = gamma > std::max(longest_observed_, measured_gamma_.value_or(0));
  if (gamma == measured_gamma_) {
    result.value = measured_tokens_;
    result.readings = exactly(measured_tokens_);
    result.full_accepts = cut_off ? 0 : centre_.hazards.survival(drafts);
    result.ci95 =
        including(measured_ci95_ && options_.design_effect == 1 ? *measured_ci95_ : interval(result.value, gamma, true),
                  result.value);
    return result;
  }
  result.value = all.two_state.value_or(all.hazards);
  result.readings = hull(exactly(all.constant_rate), exactly(all.hazards));
  result.readings = including(result.readings, result.value);
  if (falls_behind(drafts))
    result.readings = including(result.readings, tokens_of_steepest(centre_.hazards, longest_observed_, drafts));
  if (const auto tokens = tokens_of_counted_lengths(drafts)) result.readings = including(result.readings, *tokens);
  result.full_accepts = cut_off             ? 0
                        : centre_.two_rates ? std::clamp(theory::survival(*centre_.two_rates, gamma, gamma), 0.0, 1.0)
                                            : centre_.hazards.survival(drafts);
  result.ci95 = including(interval(result.value, gamma, false), result.value);
  return result;
}

std::optional<double> MeasuredAcceptance::tokens_of_counted_lengths(std::int64_t drafts) const {
  constexpr double always = 1 - 1e-6;
  if (std::all_of(going_on_.begin(), going_on_.end(), [](double share) { return share >= always; }))
    return std::nullopt;
  double tokens = 1, alive = 1;
  for (std::size_t j = 0; j < going_on_.size() && static_cast<std::int64_t>(j) < drafts; ++j) {
    alive *= going_on_[j] * std::clamp(moments_.rate(static_cast<std::int64_t>(j) + 1), 0.0, 1.0);
    tokens += alive;
  }
  return tokens;
}

Interval MeasuredAcceptance::interval(double value, std::int64_t gamma, bool measured) const {
  const std::int64_t drafts = effective(gamma);
  const bool through_chain = !measured && centre_.two_rates;
  std::vector<double> gradient(static_cast<std::size_t>(moments_.positions()));
  for (std::size_t j = 0; j < shifts_.size(); ++j) {
    const Shift& shift = shifts_[j];
    if (!(shift.width > 0)) continue;
    const auto tokens = [&](const Fit& fit) {
      return fit.two_rates ? theory::expected_tokens(*fit.two_rates, drafts) : tokens_at(fit.alpha, drafts);
    };
    if (through_chain) {
      gradient[j] = (tokens(shift.above) - tokens(shift.below)) / (2 * shift.width);
    } else {
      // d E / d h_j = sum_{i >= j} survival(i) / h_j.
      const double rate = moments_.rate(static_cast<std::int64_t>(j) + 1);
      const auto before = static_cast<std::int64_t>(j);
      if (drafts <= before || !(rate > 0)) continue;
      const bool last = j + 1 == shifts_.size() && options_.beyond == BeyondObserved::hold;
      const std::int64_t given = std::min(drafts, centre_.hazards.measured_positions());
      double slope = 0;
      for (std::int64_t i = before + 1; i <= given; ++i) slope += centre_.hazards.survival(i);
      if (drafts > given) {
        // sum_k r^k over the k drafts beyond the given positions, or sum_k (k + 1) r^k for the rate held there.
        const core::AcceptanceRate& held = centre_.hazards.tail();
        const std::int64_t behind = drafts - given;
        const double once = theory::expected_tokens(held, behind) - 1;
        const double often = last ? held.alpha() * theory::expected_tokens_derivative(held, behind) : 0;
        slope += centre_.hazards.survival(given) * (once + often);
      }
      slope /= rate;
      gradient[j] = slope;
    }
  }
  const double most = static_cast<double>(gamma) + 1;
  const Interval by_rate = {tokens_at(alpha_ci95_.lo, drafts), tokens_at(alpha_ci95_.hi, drafts)};
  const StandardError iid = moments_.standard_error_of_independent_rounds(
      gradient, basis_ == IntervalBasis::iid_rounds ? options_.design_effect : 1);
  const auto bounded = [&](const StandardError& error) {
    // All drafts accepted, or none: the counts do not vary, and only the rate's interval is available.
    if (!(error.value > 0) || !(1 < value && value < most)) return by_rate;
    return bounded_t_interval(value, error, 1, most);
  };
  const auto clusters = moments_.standard_error(gradient);
  if (!clusters) return bounded(iid);
  const Interval by_clusters = bounded(*clusters), by_rounds = bounded(iid);
  const bool hold_both = moments_.clusters() < few_sequences || too_alike(by_clusters, by_rounds);
  return hold_both ? hull(by_clusters, by_rounds) : by_clusters;
}

TokensPerStep MeasuredAcceptance::of_rate_alone(std::int64_t gamma) const {
  const std::int64_t drafts = effective(gamma);
  TokensPerStep result;
  result.extrapolated = gamma > longest_observed_ || (gamma < longest_observed_ && !shorter_drafts_.empty());
  result.full_accepts = drafts < gamma ? 0 : full_accepts_at(constant_alpha_, drafts);
  if (gamma == measured_gamma_) {
    result.value = measured_tokens_;
    result.readings = exactly(measured_tokens_);
    if (measured_ci95_ && options_.design_effect == 1) {
      result.ci95 = including(*measured_ci95_, result.value);
      return result;
    }
  } else {
    result.value = tokens_at(constant_alpha_, drafts);
    result.readings = {tokens_at(alpha_.lo, drafts), tokens_at(alpha_.hi, drafts)};
    if (gamma < longest_observed_) {
      for (const core::AcceptanceProfile& reading : shorter_drafts_) {
        result.readings = including(result.readings, theory::expected_tokens(reading, gamma));
      }
    }
    if (options_.may_miss && measured_gamma_) {
      const double hits = (measured_tokens_ - 1) / static_cast<double>(*measured_gamma_);
      result.readings = including(result.readings, 1 + hits * static_cast<double>(drafts));
    }
    if (falls_behind(drafts)) {
      const core::AcceptanceProfile least = core::AcceptanceRate(std::clamp(alpha_.lo, 0.0, 1.0));
      result.readings = including(result.readings, tokens_of_steepest(least, longest_observed_, drafts));
    }
  }
  result.ci95 = including({tokens_at(alpha_ci95_.lo, drafts), tokens_at(alpha_ci95_.hi, drafts)}, result.value);
  return result;
}

}  // namespace specdec::estimate
