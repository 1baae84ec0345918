#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "sim/random.hpp"
#include "sim/table_models.hpp"

namespace specdec::test_support {

/// Likeness of a pair of random models.
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
  // Disjoint: the target has the even tokens, the draft the odd ones.
  const auto rows = [&](std::int64_t first_slot, std::int64_t parity) {
    const std::int64_t first = likeness == Likeness::disjoint ? parity : 0;
    const std::int64_t stride = likeness == Likeness::disjoint ? 2 : 1;
    std::vector<double> all;
    for (std::int64_t context = 0; context < contexts; ++context) {
      std::vector<double> row(static_cast<std::size_t>(vocab));
      for (std::int64_t x = first; x < vocab; x += stride)
        row[static_cast<std::size_t>(x)] = weight(context, first_slot + x);
      double sum = std::accumulate(row.begin(), row.end(), 0.0);
      if (sum == 0) row[static_cast<std::size_t>(first)] = sum = 1;
      for (const double w : row) all.push_back(w / sum);
    }
    return all;
  };
  const std::vector<double> target = rows(0, 0);
  const std::vector<double> draft = likeness == Likeness::equal ? target : rows(vocab, 1);
  return {sim::ContextTableModel(vocab, order, target), sim::ContextTableModel(vocab, order, draft)};
}

}  // namespace specdec::test_support
