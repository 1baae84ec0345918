#pragma once

#include <functional>
#include <optional>

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// The load at which a quantity that grows with it crosses its limit.
struct LoadCrossing {
  double load = 0;
  /// d excess / d ln(load) there.
  double slope = 1;
};

struct LoadSearch {
  /// 0 < lowest < highest
  double lowest = 0, highest = 1;
  /// Starting point within these, and the slope expected there, > 0.
  LoadCrossing guess = {};
  /// Relative, > 0.
  double tolerance = 0.01;
};

/// Finds the zero of `excess`, ln(value / limit), by secants in ln(load), kept inside a bracket once there is one.
/// Empty if it is above 0 at the lowest load; the highest load if it is not above 0 there.
std::optional<LoadCrossing> find_crossing(const LoadSearch& search, const std::function<double(double load)>& excess);

}  // namespace specdec::sim
