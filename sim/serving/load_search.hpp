#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// Share of the saturated rate below which a load counts as zero.
inline constexpr double least_load = 1.0 / 1024;

/// A scale of loads on which what is searched for is nearly straight: straight lines over ln(load) between points that
/// rise, and beyond the outer ones; ln(load) itself with fewer than two.
class LoadScale {
 public:
  /// In order of their loads; points that do not rise above the last one are left out.
  void add(double load, double value);
  double value_at(double log_load) const { return between(log_loads_, values_, log_load); }
  double log_load_at(double value) const { return between(values_, log_loads_, value); }

 private:
  static double between(const std::vector<double>& from, const std::vector<double>& to, double at);
  std::vector<double> log_loads_, values_;
};

/// The load at which a quantity that grows with it crosses its limit.
struct LoadCrossing {
  double load = 0;
  /// d excess / d value on the scale, there.
  double slope = 1;
};

struct LoadSearch {
  /// 0 < lowest < highest
  double lowest = 0, highest = 1;
  LoadScale scale = {};
  /// Starting point within these, and the slope expected there, > 0.
  LoadCrossing guess = {};
  /// True if the slope is that of an excess much like this one, not a number to begin with.
  bool slope_is_known = false;
  /// Relative tolerance of the load, > 0.
  double tolerance = 0.01;
};

/// Finds the zero of `excess`, ln(value / limit), by secants on the scale, kept inside a bracket once there is one. It
/// ends where the crossing is within half of the tolerance by a slope that was seen or known, or the bracket is as
/// narrow as the tolerance. Empty if the excess is above 0 at the lowest load; the highest load if it is not above 0
/// there.
std::optional<LoadCrossing> find_crossing(const LoadSearch& search, const std::function<double(double load)>& excess);

/// The least number of [1, most] that holds, where all above it hold too; most + 1 if none does. By strides from a
/// guess until there is a bracket, then by halves.
/// @param guess  in [1, most]
std::int64_t least_that(std::int64_t most, std::int64_t guess, const std::function<bool(std::int64_t number)>& holds);

}  // namespace specdec::sim
