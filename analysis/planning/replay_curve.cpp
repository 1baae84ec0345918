#include "analysis/planning/replay_curve.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/core/checks.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::planning {
namespace {

/// Bounds where the replay determines no interval: Eq. 1 at the ends of these rates.
estimate::Interval interval_of(const estimate::GammaReplay& replay, const estimate::Interval& rates) {
  const auto tokens = [&](double rate) {
    return theory::expected_tokens(core::AcceptanceRate(std::clamp(rate, 0.0, 1.0)), replay.gamma);
  };
  return replay.tokens_per_step.ci95.value_or(estimate::Interval{tokens(rates.lo), tokens(rates.hi)});
}

}  // namespace

ReplayCurve::ReplayCurve(const estimate::ReplayReport& report, const std::optional<estimate::ReplayReport>& upper,
                         const std::optional<estimate::Interval>& rates, std::int64_t depths, std::string refused)
    : refused_(std::move(refused)) {
  const estimate::Interval any = {0, 1};
  const estimate::Interval allowed = report.looks_at_drafts() ? any : rates.value_or(any);
  if (refused_.empty() && !report.looks_at_drafts()) {
    refused_ = "every text of the recording holds one token, so that no draft was looked at";
  }
  const estimate::ReplayReport& highest = upper ? *upper : report;
  if (report.gammas.empty()) throw std::invalid_argument("ReplayCurve: the report has no gammas");
  core::require_same_size("ReplayCurve", "report", report.gammas.size(), "upper", highest.gammas.size());
  for (std::size_t gamma = 0; gamma < report.gammas.size(); ++gamma) {
    const estimate::GammaReplay& low = report.gammas[gamma];
    const estimate::GammaReplay& high = highest.gammas[gamma];
    estimate::TokensPerStep tokens;
    tokens.value = (low.tokens_per_step.value + high.tokens_per_step.value) / 2;
    tokens.ci95 = {std::min(tokens.value, interval_of(low, allowed).lo),
                   std::max(tokens.value, interval_of(high, allowed).hi)};
    if (upper) tokens.bracket = {low.tokens_per_step.value, high.tokens_per_step.value};
    const double one_less = by_gamma_.empty() ? 0 : by_gamma_.back().value;
    tokens.full_accepts = std::clamp(tokens.value - one_less, 0.0, 1.0);
    by_gamma_.push_back(tokens);
  }
  if (depths > 1) extrapolate_beyond(static_cast<std::size_t>(depths));
}

void ReplayCurve::extrapolate_beyond(std::size_t depths) {
  if (by_gamma_.size() <= depths) return;
  const auto gain = [&](std::size_t gamma) { return by_gamma_[gamma].value - by_gamma_[gamma - 1].value; };
  double tokens = by_gamma_[depths].value;
  double alive = std::max(0.0, gain(depths));
  // The ratio of a conditional acceptance rate to that of the draft before it, of two next-token modules: the lowest that
  // published lengths have. Source:   docs/theory.md#typed-acceptance
  constexpr double steepest = 0.7;
  double rate = gain(depths - 1) > 0 ? std::min(1.0, alive / gain(depths - 1)) : 0;
  for (std::size_t gamma = depths + 1; gamma < by_gamma_.size(); ++gamma) {
    estimate::TokensPerStep& row = by_gamma_[gamma];
    tokens += alive *= rate *= steepest;
    row.ci95.lo = std::min(row.ci95.lo, tokens);
    row.extrapolated = true;
  }
}

estimate::TokensPerStep ReplayCurve::tokens_per_step(std::int64_t gamma) const {
  core::require_in("ReplayCurve::tokens_per_step", "gamma", gamma, 0, core::largest_integer);
  const std::int64_t last = std::ssize(by_gamma_) - 1;
  if (gamma > last) throw std::domain_error(fmt::format("the recording is replayed up to gamma {}", last));
  return by_gamma_[static_cast<std::size_t>(gamma)];
}

}  // namespace specdec::planning
