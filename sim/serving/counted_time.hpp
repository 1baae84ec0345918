#pragma once

#include <algorithm>

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// The time span that a run counts.
class CountedTime {
 public:
  CountedTime(double begin, double end) : begin_(begin), end_(end) {}

  double begin() const { return begin_; }
  double end() const { return end_; }
  void begin_at(double time) { begin_ = time; }
  void end_at(double time) { end_ = time; }
  /// The counted seconds of a stretch of time.
  double seconds_of(double from, double to) const { return std::max(0.0, std::min(to, end_) - std::max(from, begin_)); }
  bool counts(double time) const { return begin_ < time && time <= end_; }

 private:
  double begin_;
  double end_;
};

}  // namespace specdec::sim
