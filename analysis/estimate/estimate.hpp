#pragma once

#include <algorithm>
#include <optional>
#include <string>

namespace specdec::estimate {

/// A closed interval, lo <= hi.
struct Interval {
  double lo = 0;
  double hi = 0;
};

/// The interval of one value.
inline Interval exactly(double value) { return {value, value}; }
/// The smallest interval that holds both.
inline Interval hull(const Interval& a, const Interval& b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

/// An estimate is never a bare number: it says how sure it is and how it was made.
struct Estimate {
  double value = 0;
  /// 95% confidence interval; nothing where the data do not determine one (a single cluster, for instance).
  std::optional<Interval> ci95;
  /// How value and interval were computed, in words.
  std::string method;
};

}  // namespace specdec::estimate
