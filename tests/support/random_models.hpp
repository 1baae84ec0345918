#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/random.hpp"
#include "sim/table_models.hpp"

namespace specdec::test_support {

/// What a pair of random models shall have in common.
enum class Likeness { independent, equal, disjoint };

/// Two models whose distributions differ from prefix to prefix (by the last `order` tokens): 0 to 8 over
/// their sum, a fifth of them 0. Disjoint: no token has both p > 0 and q > 0.
inline sim::TablePair random_pair(std::int64_t vocab, std::int64_t order, Likeness likeness, std::uint64_t seed) {
  const sim::RandomStream stream(seed, 0);
  const std::int64_t contexts = sim::ContextTableModel::context_count(vocab, order);
  const auto weight = [&](std::int64_t context, std::int64_t slot) {
    const double u = stream.uniform(context, slot, sim::Purpose::test);
    return u < 0.2 ? 0.0 : std::floor(u * 10) - 1;
  };
  const auto rows = [&](std::int64_t first_slot, std::int64_t parity) {
    std::vector<double> all;
    for (std::int64_t context = 0; context < contexts; ++context) {
      double sum = 0;
      for (std::int64_t x = 0; x < vocab; ++x) {
        const bool possible = likeness != Likeness::disjoint || x % 2 == parity;
        all.push_back(possible ? weight(context, first_slot + x) : 0.0);
        sum += all.back();
      }
      const std::size_t row = all.size() - static_cast<std::size_t>(vocab);
      if (sum == 0) all[row + static_cast<std::size_t>(likeness == Likeness::disjoint ? parity : 0)] = sum = 1;
      for (std::size_t x = row; x < all.size(); ++x) all[x] /= sum;
    }
    return all;
  };
  const std::vector<double> target = rows(0, 0);
  const std::vector<double> draft = likeness == Likeness::equal ? target : rows(vocab, 1);
  return {sim::ContextTableModel(vocab, order, target), sim::ContextTableModel(vocab, order, draft)};
}

}  // namespace specdec::test_support
