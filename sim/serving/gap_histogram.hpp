#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// Number of gaps of each length; lengths that agree in their first 15 bits are one.
class GapHistogram {
 public:
  void add(double seconds, std::int64_t count) {
    counts_[std::bit_cast<std::uint64_t>(seconds) >> dropped_bits] += count;
  }

  std::vector<GapCount> sorted() const {
    std::vector<GapCount> gaps;
    for (const auto& [key, count] : counts_) {
      const std::uint64_t middle = key << dropped_bits | std::uint64_t{1} << (dropped_bits - 1);
      gaps.push_back({std::bit_cast<double>(middle), count});
    }
    std::sort(gaps.begin(), gaps.end(), [](const GapCount& a, const GapCount& b) { return a.seconds < b.seconds; });
    return gaps;
  }

 private:
  static constexpr unsigned dropped_bits = 38;
  std::unordered_map<std::uint64_t, std::int64_t> counts_;
};

}  // namespace specdec::sim
