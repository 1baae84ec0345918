#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

/// Clocks and statistics of times that every benchmark uses.
namespace specdec::bench {

/// The middle value, or the mean of the two in the middle; of at least one value.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Processor time of all threads of this process, which other processes disturb less than the clock on the wall.
inline double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Seconds of a run by both clocks.
struct Seconds {
  double wall = 0;
  double processor = 0;
};

inline Seconds seconds_of(const std::function<void()>& work) {
  const double processor = processor_seconds();
  const auto begin = std::chrono::steady_clock::now();
  work();
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {wall, processor_seconds() - processor};
}

/// Medians over some rounds.
inline Seconds median_seconds(std::int64_t rounds, const std::function<void()>& work) {
  std::vector<double> wall, processor;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const Seconds once = seconds_of(work);
    wall.push_back(once.wall);
    processor.push_back(once.processor);
  }
  return {median(wall), median(processor)};
}

/// Numbers that are spread but the same in every run (Weyl's sequence of the golden ratio).
class Spread {
 public:
  /// In [0, 1).
  double next() {
    constexpr double step = 0.61803398874989484;
    value_ += step;
    if (value_ >= 1) value_ -= 1;
    return value_;
  }
  /// In [0, n).
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(next() * static_cast<double>(n)); }

 private:
  double value_ = 0.5;
};

}  // namespace specdec::bench
