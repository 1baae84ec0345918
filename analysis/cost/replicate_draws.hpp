#pragma once

#include <cstddef>
#include <cstdint>

namespace specdec::cost {

// A header of the library's own sources; it is not installed.

/// The random numbers of one replicate, a function of their arguments alone:
///
///   Philox4x32-10, key = seed, counter = (index low, index high, replicate, stream)
class ReplicateDraws {
 public:
  ReplicateDraws(std::uint64_t seed, std::uint32_t stream, std::uint32_t replicate)
      : seed_(seed), stream_(stream), replicate_(replicate) {}

  /// (0, 1), a multiple of 2^-53 shifted by half of that.
  double uniform(std::uint64_t index) const { return pair(index).first; }
  /// By Box and Muller's transform of two uniforms.
  double standard_normal(std::uint64_t index) const;
  /// With mean 1.
  double exponential(std::uint64_t index) const;
  /// In [0, count).
  std::size_t below(std::uint64_t index, std::size_t count) const;

 private:
  struct Pair {
    double first, second;
  };
  Pair pair(std::uint64_t index) const;

  std::uint64_t seed_;
  std::uint32_t stream_, replicate_;
};

}  // namespace specdec::cost
