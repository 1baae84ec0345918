#include "analysis/estimate/measured_acceptance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "analysis/core/bisection.hpp"
#include "analysis/core/normal_interval.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::estimate {
namespace {

/// Standard deviation of the logarithm of a benchmark's mean length of which nobody says how many rounds it is of: that of
/// published lengths about the law of their curves.
constexpr double error_of_means = 0.012;

double tokens_at(double alpha, std::int64_t gamma) {
  return theory::expected_tokens(core::AcceptanceRate(std::clamp(alpha, 0.0, 1.0)), gamma);
}

/// Tokens per step of drafts with mean length `drafted`, with lengths as equal as integers allow.
double tokens_at_mean_length(double alpha, double drafted) {
  const double shorter = std::floor(drafted), share_of_longer = drafted - shorter;
  const auto length = static_cast<std::int64_t>(shorter);
  return (1 - share_of_longer) * tokens_at(alpha, length) + share_of_longer * tokens_at(alpha, length + 1);
}

/// The rate in [bounds.lo, bounds.hi] that gives the counted tokens per step.
double alpha_of_mean_length(double tokens, double drafted, const Interval& bounds) {
  const auto too_low = [&](double alpha) { return tokens_at_mean_length(alpha, drafted) < tokens; };
  return core::bisected(bounds.lo, bounds.hi, too_low).first;
}

/// The survival of one rate.
std::vector<double> powers_of(double alpha, std::int64_t gamma) {
  std::vector<double> powers;
  double power = 1;
  for (std::int64_t j = 0; j < gamma; ++j) powers.push_back(power *= std::clamp(alpha, 0.0, 1.0));
  return powers;
}

[[noreturn]] void refuse(std::string_view found, std::string_view needed) {
  throw std::domain_error(fmt::format("MeasuredAcceptance: {}, but {}", found, needed));
}

/// Positions that say something of how all rounds would go on: rounds that end early leave few for deep ones.
std::int64_t last_told(const RoundMoments& moments, bool fixed_length) {
  constexpr double fewest = 20, least_share = 0.01;
  const double least = fixed_length ? 0 : std::max(fewest, least_share * moments.evaluated(1));
  std::int64_t last = 1;
  while (last < moments.positions() && moments.evaluated(last + 1) > least) ++last;
  return last;
}

}  // namespace

MeasuredAcceptance::MeasuredAcceptance(const ServingSummary& summary, const Options& options) : options_(options) {
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
  measured_gamma_ = summary.gamma;
  evidence_.prior = population_prior(options.kind);
  if (summary.moments.positions() > 0 && summary.moments.evaluated(1) > 0) {
    take_positions(summary);
  } else if (summary.alpha_hat) {
    take_rate_alone(summary);
  } else {
    refuse("neither drafted tokens nor the length of drafts is known", "acceptance needs one of them");
  }
  evidence_.observed = {evidence_.counts.empty() ? longest_observed_ : 1,
                        std::max(longest_observed_, measured_gamma_.value_or(0))};
}

double MeasuredAcceptance::requests_of(const ServingSummary& summary, double rounds) const {
  if (summary.unit == traces::CountUnit::request && summary.clusters > 0)
    return evidence_.prior.requests_of(rounds, static_cast<double>(summary.clusters));
  return evidence_.prior.requests_of(rounds, options_.requests);
}

double MeasuredAcceptance::error_of(const ServingSummary& summary, const CountEvidence& counted) const {
  const auto& ci95 = summary.tokens_per_step->ci95;
  if (summary.unweighted_means && summary.unit == traces::CountUnit::run) return error_of_means;
  const bool by_clusters = basis_ == IntervalBasis::clusters || basis_ == IntervalBasis::batch_means;
  if ((by_clusters || summary.unweighted_means) && ci95 && ci95->lo > 0 && ci95->lo < ci95->hi)
    return std::log(ci95->hi / ci95->lo) / (2 * core::normal_half_width_95);
  return summary.rounds ? sampling_error(evidence_.prior, counted) : error_of_means;
}

void MeasuredAcceptance::take_positions(const ServingSummary& summary) {
  const RoundMoments& moments = summary.moments;
  CountEvidence counted;
  double alive = 1, expected = moments.evaluated(1), made = 1;
  bool all_made = true;
  for (std::int64_t j = 1; j <= moments.positions() && moments.evaluated(j) > 0; ++j) {
    constexpr double always = 1 - 1e-6;
    const double going_on = std::min(1.0, moments.evaluated(j) / expected);
    all_made = all_made && going_on >= always;
    made_.push_back(made *= going_on);
    counted.survival.push_back(alive *= std::clamp(moments.rate(j), 0.0, 1.0));
    expected = moments.accepted(j);
    if (!(expected > 0)) break;
  }
  longest_observed_ = std::ssize(counted.survival);
  counted.gamma = std::min(longest_observed_, last_told(moments, all_made));
  const double before = counted.gamma > 1 ? counted.survival[static_cast<std::size_t>(counted.gamma - 2)] : 1;
  const double reached = moments.evaluated(counted.gamma) / std::max(before, 1e-12);
  counted.rounds = std::max(1.0, std::min(moments.evaluated(1), reached));
  counted.survival.resize(static_cast<std::size_t>(counted.gamma));
  // Shorter than the drafts were where none came that far.
  if (measured_gamma_ && all_made) {
    counted.gamma = *measured_gamma_;
    counted.survival.resize(static_cast<std::size_t>(counted.gamma), 0.0);
  }
  counted.requests = requests_of(summary, counted.rounds);
  counted.relative_error = error_of(summary, counted);
  if (basis_ == IntervalBasis::batch_means) {
    const double explained = sampling_error(evidence_.prior, counted);
    counted.drift = std::sqrt(std::max(0.0, std::pow(*counted.relative_error, 2) - explained * explained));
  }
  if (all_made) made_.clear();
  counted_survival_ = counted.survival;
  if (measured_gamma_)
    evidence_.measured[*measured_gamma_] =
        as_measured(*measured_gamma_, summary.tokens_per_step->value, *counted.relative_error, counted.survival.back());
  // Shorter drafts copy the same text in more rounds, so that positions are those of one gamma.
  if (measured_gamma_ && evidence_.prior.rounds_of_stretch)
    evidence_.lengths = {{*measured_gamma_, evidence_.measured.at(*measured_gamma_).value, *counted.relative_error}};
  else
    evidence_.counts.push_back(std::move(counted));
}

void MeasuredAcceptance::take_rate_alone(const ServingSummary& summary) {
  longest_observed_ = summary.gamma.value_or(summary.longest_draft.value_or(0));
  const CountedRate& rate = *summary.alpha_hat;
  const bool has_lengths = longest_observed_ > 0 && summary.drafted && summary.rounds;
  if (!rate.value && !has_lengths) {
    refuse(fmt::format("drafts have several lengths, and alpha lies anywhere in {:.3g} to {:.3g}", rate.bounds.lo,
                       rate.bounds.hi),
           "acceptance at another gamma needs their length (--at), or counts by position");
  }
  const double alpha = rate.value ? *rate.value
                                  : alpha_of_mean_length(summary.tokens_per_step->value,
                                                         *summary.drafted / *summary.rounds, rate.bounds);
  const std::int64_t gamma = std::max<std::int64_t>(1, longest_observed_);
  CountEvidence counted{gamma, powers_of(alpha, gamma), std::max(1.0, summary.rounds.value_or(1))};
  counted.requests = requests_of(summary, counted.rounds);
  const double error = error_of(summary, counted);
  if (measured_gamma_) {
    const TokensPerStep measured = as_measured(gamma, summary.tokens_per_step->value, error, counted.survival.back());
    evidence_.measured[gamma] = measured;
    evidence_.lengths = {{gamma, measured.value, error}};
    return;
  }
  evidence_.lengths = {{gamma, tokens_at(alpha, gamma), error}};
  if (rate.value) return;
  for (const double end : {summary.tokens_per_step->value, tokens_at(rate.bounds.hi, gamma)})
    alternatives_.push_back({evidence_.prior, {{gamma, end, error}}});
}

std::vector<double> MeasuredAcceptance::survival(std::int64_t gamma) const {
  if (gamma == measured_gamma_ && !counted_survival_.empty()) return counted_survival_;
  return AcceptanceCurve::survival(gamma);
}

TokenWorlds MeasuredAcceptance::draw(std::int64_t max_gamma, const DrawOptions& options) const {
  const TokenWorlds of_population = PopulationCurve::draw(max_gamma, options);
  TokenWorlds worlds = of_population;
  for (const Evidence& other : alternatives_)
    worlds = joined(std::move(worlds), PopulationCurve(other).draw(max_gamma, options));
  if (!made_.empty()) {
    std::vector<double> shares = made_;
    shares.resize(static_cast<std::size_t>(max_gamma), 0.0);
    worlds = joined(std::move(worlds), thinned(of_population, shares));
  }
  return worlds;
}

}  // namespace specdec::estimate
