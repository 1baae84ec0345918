#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "analysis/cost/iteration_cost.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// A cost for one run. Iterations that decode alone, most of a run, are asked of it once for each batch at contexts
/// some 9% apart, and are linear between these, as rounds are in what they read of the cache. For one thread at a time.
class DecodingPrices final : public cost::IterationCost {
 public:
  explicit DecodingPrices(std::shared_ptr<const cost::IterationCost> cost) : cost_(std::move(cost)) {}

  double price(std::size_t version, const cost::Iteration& iteration) const override {
    const auto sequences = static_cast<std::int64_t>(iteration.sequences);
    const bool alone = iteration.prompt_tokens == 0 && !iteration.verified && sequences > 0 &&
                       static_cast<double>(sequences) == iteration.sequences;
    if (!alone || version > 0) return cost_->price(version, iteration);
    const double context = iteration.context_tokens / iteration.sequences;
    const auto node = static_cast<std::int64_t>(nodes_per_doubling * std::log2(1 + context / first_doubling));
    const auto [found, is_new] = cells_.try_emplace({iteration.gamma, sequences, node});
    if (is_new) found->second = cell_of(iteration, node);
    const Cell& cell = found->second;
    const auto at = [&](const std::array<double, 2>& ends) {
      return ends[0] + (context - cell.from) / (cell.to - cell.from) * (ends[1] - ends[0]);
    };
    const double seconds = at(cell.seconds);
    return iteration.full_accepts > 0 ? seconds + iteration.full_accepts * (at(cell.after_full_accepts) - seconds)
                                      : seconds;
  }

 private:
  static constexpr double nodes_per_doubling = 8, first_doubling = 256;

  struct Place {
    std::int64_t gamma = 0, sequences = 0, node = 0;
    bool operator==(const Place&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Place& place) const {
      const auto word = static_cast<std::uint64_t>((place.node * 1024 + place.gamma) * 65536 + place.sequences);
      return static_cast<std::size_t>((word * 0x9E3779B97F4A7C15U) >> 20U);
    }
  };
  /// Seconds at both ends of a stretch of contexts, after no full accept and after full accepts alone.
  struct Cell {
    double from = 0, to = 0;
    std::array<double, 2> seconds = {}, after_full_accepts = {};
  };

  Cell cell_of(cost::Iteration iteration, std::int64_t node) const {
    const auto context_at = [](std::int64_t place) {
      return first_doubling * std::expm1(static_cast<double>(place) / nodes_per_doubling * std::log(2.0));
    };
    Cell cell{.from = context_at(node), .to = context_at(node + 1)};
    for (const std::size_t end : {0, 1}) {
      iteration.context_tokens = iteration.sequences * (end == 0 ? cell.from : cell.to);
      iteration.full_accepts = 0;
      cell.seconds[end] = cell.after_full_accepts[end] = cost_->seconds(iteration);
      if (iteration.gamma == 0) continue;
      iteration.full_accepts = 1;
      cell.after_full_accepts[end] = cost_->seconds(iteration);
    }
    return cell;
  }

  std::shared_ptr<const cost::IterationCost> cost_;
  mutable std::unordered_map<Place, Cell, Hash> cells_;
};

}  // namespace specdec::sim
