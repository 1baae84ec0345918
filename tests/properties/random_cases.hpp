#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace specdec::test_support {

/// Random inputs that are the same everywhere: the generator's output is standardised, distributions are not.
class RandomCases {
 public:
  explicit RandomCases(std::uint64_t seed) : engine_(seed) {}

  /// In [0, 1), a multiple of 2^-53.
  double uniform() { return std::ldexp(static_cast<double>(engine_() >> 11), -53); }
  /// In [0, count).
  std::int64_t below(std::int64_t count) { return static_cast<std::int64_t>(uniform() * static_cast<double>(count)); }
  /// A distribution over `vocab` tokens, about a quarter of them impossible.
  std::vector<double> row(std::size_t vocab) {
    std::vector<double> row(vocab);
    double sum = 0;
    for (double& value : row) sum += value = uniform() < 0.25 ? 0 : uniform();
    if (sum == 0) sum = row[0] = 1;
    for (double& value : row) value /= sum;
    return row;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace specdec::test_support
