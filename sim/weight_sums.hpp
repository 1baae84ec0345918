#pragma once

#include <array>
#include <cstddef>

/// Sums of weights that are computed by token, always in one order, so that cumulative sums end at the total.
namespace specdec::sim {

/// Weights that are added in eight lanes, which processors add in parallel.
inline constexpr std::size_t block_of_weights = 64;

/// weight(first) + ... + weight(first + block_of_weights - 1).
template <class Weight>
double sum_of_block(std::size_t first, const Weight& weight) {
  std::array<double, 8> lanes;
  for (std::size_t l = 0; l < lanes.size(); ++l) lanes[l] = weight(first + l);
  for (std::size_t x = first + lanes.size(); x < first + block_of_weights; x += lanes.size())
    for (std::size_t l = 0; l < lanes.size(); ++l) lanes[l] += weight(x + l);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/// weight(0) + ... + weight(size - 1): whole blocks one after another, then the remaining weights.
template <class Weight>
double sum_of_weights(std::size_t size, const Weight& weight) {
  double total = 0;
  std::size_t x = 0;
  for (; x + block_of_weights <= size; x += block_of_weights) total += sum_of_block(x, weight);
  for (; x < size; ++x) total += weight(x);
  return total;
}

}  // namespace specdec::sim
