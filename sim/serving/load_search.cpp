#include "sim/serving/load_search.hpp"

#include <algorithm>
#include <cmath>

namespace specdec::sim {
namespace {

struct TriedLoad {
  double log_load = 0;
  double excess = 0;
};

}  // namespace

std::optional<LoadCrossing> find_crossing(const LoadSearch& search, const std::function<double(double load)>& excess) {
  const double lowest = std::log(search.lowest);
  const double highest = std::log(search.highest);
  constexpr double shallowest = 1e-3;
  constexpr double steepest = 1000;
  double slope = std::clamp(search.guess.slope, shallowest, steepest);
  double at = std::clamp(std::log(search.guess.load), lowest, highest);
  double stride = 0.25;
  std::optional<TriedLoad> below, above, before;
  int same_side = 0;
  for (;;) {
    const double load = at >= highest ? search.highest : at <= lowest ? search.lowest : std::exp(at);
    const TriedLoad here{at, excess(load)};
    const bool over = here.excess > 0;
    if (over && at <= lowest) return std::nullopt;
    if (!over && at >= highest) return LoadCrossing{search.highest, slope};
    const bool slope_seen = before.has_value();
    if (before && here.log_load != before->log_load) {
      slope = std::clamp((here.excess - before->excess) / (here.log_load - before->log_load), shallowest, steepest);
    }
    same_side = before && over == (before->excess > 0) ? same_side + 1 : 0;
    before = here;
    (over ? above : below) = here;
    const double newton = here.excess / slope;
    if (slope_seen && std::abs(newton) < 0.3 * search.tolerance) return LoadCrossing{std::exp(at - newton), slope};
    if (!below || !above) {
      at = std::clamp(at - std::clamp(newton, -stride, stride), lowest, highest);
      // A step that stops just short of the crossing would leave it without a bracket.
      at = std::clamp(at + (over ? -0.5 : 0.5) * search.tolerance, lowest, highest);
      stride *= 2;
      continue;
    }
    const double width = above->log_load - below->log_load;
    const double share = below->excess / (below->excess - above->excess);
    slope = std::clamp((above->excess - below->excess) / width, shallowest, steepest);
    if (std::abs(width) < search.tolerance) return LoadCrossing{std::exp(below->log_load + share * width), slope};
    at = below->log_load + width * (same_side >= 2 ? 0.5 : std::clamp(share, 0.1, 0.9));
  }
}

}  // namespace specdec::sim
