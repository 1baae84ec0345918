#include "analysis/planning/mixed_curve.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/estimate/alternatives.hpp"

namespace specdec::planning {
namespace {

/// Half-widths of intervals: of independent errors the root of their squares' sum, of shared ones their sum.
class WidthSum {
 public:
  explicit WidthSum(bool shared) : shared_(shared) {}
  void add(double width) { sum_ += shared_ ? width : width * width; }
  double value() const { return shared_ ? sum_ : std::sqrt(sum_); }

 private:
  bool shared_;
  double sum_ = 0;
};

}  // namespace

MixedCurve::MixedCurve(std::vector<TrafficPart> parts, Errors errors) : parts_(std::move(parts)), errors_(errors) {
  if (parts_.empty()) throw std::invalid_argument("MixedCurve: parts is empty, but must hold at least one");
  double sum = 0;
  for (const TrafficPart& part : parts_) {
    core::require_in("MixedCurve", "share", part.share, core::least_positive, core::largest_double);
    sum += part.share;
  }
  for (TrafficPart& part : parts_) part.share /= sum;
}

estimate::TokensPerStep MixedCurve::tokens_per_step(std::int64_t gamma) const {
  double steps = 0, full = 0;
  WidthSum below(errors_ == Errors::shared), above(errors_ == Errors::shared);
  estimate::Interval steps_of_bracket = {0, 0};
  bool bracketed = false;
  estimate::TokensPerStep mixed;
  for (const TrafficPart& part : parts_) {
    const estimate::TokensPerStep tokens = part.acceptance->tokens_per_step(gamma);
    const double rounds = part.share / tokens.value;
    steps += rounds;
    full += rounds * tokens.full_accepts;
    const estimate::Interval ends = tokens.bracket.value_or(estimate::Interval{tokens.value, tokens.value});
    steps_of_bracket.lo += part.share / ends.hi;
    steps_of_bracket.hi += part.share / ends.lo;
    bracketed = bracketed || tokens.bracket;
    below.add(rounds - part.share / tokens.ci95.hi);
    above.add(part.share / tokens.ci95.lo - rounds);
    mixed.extrapolated = mixed.extrapolated || tokens.extrapolated;
  }
  const double most = static_cast<double>(gamma) + 1;
  mixed.value = std::clamp(1 / steps, 1.0, most);
  if (bracketed) mixed.bracket = {std::max(1.0, 1 / steps_of_bracket.hi), std::min(most, 1 / steps_of_bracket.lo)};
  const double fewest = steps - below.value();
  mixed.ci95 = {std::max(1.0, 1 / (steps + above.value())), fewest > 0 ? std::min(most, 1 / fewest) : most};
  mixed.full_accepts = std::clamp(full / steps, 0.0, 1.0);
  return mixed;
}

estimate::TokenWorlds MixedCurve::draw(std::int64_t max_gamma, const estimate::DrawOptions& options) const {
  std::vector<estimate::WorldsByAlternative> of_parts;
  std::size_t gammas = static_cast<std::size_t>(max_gamma) + 1, alternatives = 1, each = 1;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    estimate::DrawOptions own = options;
    constexpr std::uint64_t apart = 0x9e3779b97f4a7c15;
    if (errors_ == Errors::independent) own.seed += apart * i;
    of_parts.emplace_back(parts_[i].acceptance->draw(max_gamma, own));
    gammas = std::min(gammas, of_parts.back().tokens.size());
    alternatives = std::max(alternatives, of_parts.back().worlds.size());
    each = std::max(each, of_parts.back().most());
  }
  estimate::TokenWorlds mixed;
  for (std::size_t gamma = 0; gamma < gammas; ++gamma) {
    std::vector<double>& tokens = mixed.tokens.emplace_back();
    for (std::size_t alternative = 0; alternative < alternatives; ++alternative) {
      for (std::size_t world = 0; world < each; ++world) {
        double steps = 0;
        for (std::size_t i = 0; i < parts_.size(); ++i)
          steps += parts_[i].share / of_parts[i].at(gamma, alternative, world);
        tokens.push_back(std::max(1.0, 1 / steps));
        if (gamma == 0) mixed.alternative.push_back(static_cast<int>(alternative));
      }
    }
  }
  return mixed;
}

std::vector<double> MixedCurve::survival(std::int64_t gamma) const {
  const double tokens = tokens_per_step(gamma).value;
  std::vector<double> mixed(static_cast<std::size_t>(std::max<std::int64_t>(gamma, 0)), 0.0);
  for (const TrafficPart& part : parts_) {
    const double share_of_rounds = part.share / part.acceptance->tokens_per_step(gamma).value * tokens;
    const std::vector<double> own = part.acceptance->survival(gamma);
    for (std::size_t j = 0; j < mixed.size(); ++j) mixed[j] += share_of_rounds * own[j];
  }
  double before = 1;
  for (double& one : mixed) before = one = std::clamp(one, 0.0, before);
  return mixed;
}

std::string MixedCurve::refused() const {
  for (const TrafficPart& part : parts_) {
    if (std::string why = part.acceptance->refused(); !why.empty()) return why;
  }
  return {};
}

}  // namespace specdec::planning
