#pragma once

#include <functional>
#include <optional>

namespace specdec::sim {

// A header of the library's own sources; it is not installed.

/// Where something that grows with the load passes its limit.
struct LoadCrossing {
  double load = 0;
  /// d excess / d ln(load) there.
  double slope = 1;
};

struct LoadSearch {
  /// 0 < lowest < highest
  double lowest = 0, highest = 1;
  /// Where to begin, within these, and the slope expected there, > 0.
  LoadCrossing guess = {};
  /// Relative, > 0.
  double tolerance = 0.01;
};

/// Finds where `excess`, ln(value / limit), passes 0, by secants in ln(load) held by a bracket once there is one.
/// Nothing where it is above 0 at the lowest load; the highest load where it is not above 0 there.
std::optional<LoadCrossing> find_crossing(const LoadSearch& search, const std::function<double(double load)>& excess);

}  // namespace specdec::sim
