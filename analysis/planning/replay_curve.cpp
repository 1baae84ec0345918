#include "analysis/planning/replay_curve.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"

namespace specdec::planning {
namespace {

/// The bounds if the recording determines no interval: those of any acceptance.
estimate::Interval interval_of(const estimate::GammaReplay& replay) {
  return replay.tokens_per_step.ci95.value_or(estimate::Interval{1, static_cast<double>(replay.gamma) + 1});
}

}  // namespace

ReplayCurve::ReplayCurve(const estimate::ReplayReport& report, const estimate::ReplayReport* upper, std::string refused)
    : refused_(std::move(refused)) {
  const estimate::ReplayReport& highest = upper == nullptr ? report : *upper;
  if (report.gammas.empty()) throw std::invalid_argument("ReplayCurve: the report has no gammas");
  core::require_same_size("ReplayCurve", "report", report.gammas.size(), "upper", highest.gammas.size());
  for (std::size_t gamma = 0; gamma < report.gammas.size(); ++gamma) {
    const estimate::GammaReplay& low = report.gammas[gamma];
    const estimate::GammaReplay& high = highest.gammas[gamma];
    estimate::TokensPerStep tokens;
    tokens.value = (low.tokens_per_step.value + high.tokens_per_step.value) / 2;
    tokens.readings = {tokens.value, tokens.value};
    tokens.ci95 = {std::min(tokens.value, interval_of(low).lo), std::max(tokens.value, interval_of(high).hi)};
    const double one_less = by_gamma_.empty() ? 0 : by_gamma_.back().value;
    tokens.full_accepts = std::clamp(tokens.value - one_less, 0.0, 1.0);
    by_gamma_.push_back(tokens);
  }
}

estimate::TokensPerStep ReplayCurve::tokens_per_step(std::int64_t gamma) const {
  core::require_in("ReplayCurve::tokens_per_step", "gamma", gamma, 0, core::largest_integer);
  const std::int64_t last = std::ssize(by_gamma_) - 1;
  if (gamma > last) throw std::domain_error(fmt::format("the recording is replayed up to gamma {}", last));
  return by_gamma_[static_cast<std::size_t>(gamma)];
}

}  // namespace specdec::planning
