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

/// The interval that contains one value only.
inline Interval exactly(double value) { return {value, value}; }
/// The smallest interval that contains both.
inline Interval hull(const Interval& a, const Interval& b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

/// An estimate is never a bare number: it states its uncertainty and how it was made.
struct Estimate {
  double value = 0;
  /// 95% confidence interval; empty if the data do not determine one (for instance with a single cluster).
  std::optional<Interval> ci95;
  /// The method by which value and interval were computed, in words.
  std::string method;
};

}  // namespace specdec::estimate
