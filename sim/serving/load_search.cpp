#include "sim/serving/load_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace specdec::sim {
namespace {

struct TriedLoad {
  double log_load = 0;
  /// On the scale.
  double value = 0;
  double excess = 0;
};

constexpr double shallowest = 1e-3;
constexpr double steepest = 1000;

double slope_between(const TriedLoad& a, const TriedLoad& b) {
  return std::clamp((a.excess - b.excess) / (a.value - b.value), shallowest, steepest);
}

}  // namespace

void LoadScale::add(double load, double value) {
  const double log_load = std::log(load);
  if (!log_loads_.empty() && !(log_loads_.back() < log_load && values_.back() < value)) return;
  log_loads_.push_back(log_load);
  values_.push_back(value);
}

double LoadScale::between(const std::vector<double>& from, const std::vector<double>& to, double at) {
  if (from.size() < 2) return at;
  const auto above = static_cast<std::size_t>(std::upper_bound(from.begin(), from.end(), at) - from.begin());
  const std::size_t i = std::clamp<std::size_t>(above, 1, from.size() - 1);
  return to[i - 1] + (at - from[i - 1]) * (to[i] - to[i - 1]) / (from[i] - from[i - 1]);
}

std::optional<LoadCrossing> find_crossing(const LoadSearch& search, const std::function<double(double load)>& excess) {
  const double lowest = std::log(search.lowest);
  const double highest = std::log(search.highest);
  double slope = std::clamp(search.guess.slope, shallowest, steepest);
  double at = std::clamp(std::log(search.guess.load), lowest, highest);
  double stride = 0.25;
  std::optional<TriedLoad> below, above, before;
  int same_side = 0;
  for (;;) {
    const double load = at >= highest ? search.highest : at <= lowest ? search.lowest : std::exp(at);
    const TriedLoad here{at, search.scale.value_at(at), excess(load)};
    const bool over = here.excess > 0;
    if (over && at <= lowest) return std::nullopt;
    if (!over && at >= highest) return LoadCrossing{search.highest, slope};
    // Between loads nearer than that an excess of so many requests has slopes of its own.
    const double least_span = search.slope_is_known ? search.tolerance : 0;
    if (before && std::abs(at - before->log_load) > least_span) slope = slope_between(here, *before);
    const bool slope_is_known = before || search.slope_is_known;
    same_side = before && over == (before->excess > 0) ? same_side + 1 : 0;
    before = here;
    (over ? above : below) = here;
    const double newton = search.scale.log_load_at(here.value - here.excess / slope) - at;
    if (slope_is_known && std::abs(newton) < 0.5 * search.tolerance)
      return LoadCrossing{std::min(search.highest, std::exp(at + newton)), slope};
    if (!below || !above) {
      at = std::clamp(at + std::clamp(newton, -stride, stride), lowest, highest);
      // A step that stops just short of the crossing would leave it without a bracket.
      at = std::clamp(at + (over ? -0.5 : 0.5) * search.tolerance, lowest, highest);
      stride *= 2;
      continue;
    }
    slope = slope_between(*above, *below);
    const double width = above->log_load - below->log_load;
    const double part = below->excess / (below->excess - above->excess);
    const double secant = search.scale.log_load_at(below->value + part * (above->value - below->value));
    if (std::abs(width) < search.tolerance) return LoadCrossing{std::exp(secant), slope};
    const double share = std::clamp((secant - below->log_load) / width, 0.1, 0.9);
    at = below->log_load + width * (same_side >= 2 ? 0.5 : share);
  }
}

std::int64_t least_that(std::int64_t most, std::int64_t guess, const std::function<bool(std::int64_t number)>& holds) {
  std::int64_t below = 0, least = most + 1, at = guess;
  for (std::int64_t step = std::max<std::int64_t>(1, at / 16); least - below > 1; step *= 2) {
    (holds(at) ? least : below) = at;
    at = least > most ? std::min(most, below + step)
         : below == 0 ? std::max<std::int64_t>(1, least - step)
                      : below + (least - below) / 2;
  }
  return least;
}

}  // namespace specdec::sim
