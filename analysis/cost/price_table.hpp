#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "analysis/cost/round_cost.hpp"

namespace specdec::cost {

// A header of the library's own sources; it is not installed.

/// A cost and all its replicates, asked once at each node of a grid and interpolated between nodes: cubic in ln batch
/// and ln(context + 500), linear in full_accepts. Nodes are four to a doubling of the batch, powers of two among them,
/// and nine to a tenfold of the context. So a simulation may ask for millions of prices, although each price of a fit
/// is a median over a thousand replicates. May be called from several threads.
class PriceTable {
 public:
  enum class Part { total, target };

  explicit PriceTable(std::shared_ptr<const RoundCost> rounds) : rounds_(std::move(rounds)) {}

  /// @param version  as in RoundCost::price
  /// @throws as RoundCost::round
  double price(std::size_t version, const RoundPoint& point, Part part) const;

 private:
  /// The first of four nodes in each direction, and what is priced at them.
  struct Square {
    std::int64_t gamma = 0, batch = 0, context = 0;
    bool full_accepts = false;
    Part part = Part::total;

    auto operator<=>(const Square&) const = default;
  };
  /// Prices of all versions at a node.
  using Prices = std::vector<double>;
  using Nodes = std::array<const Prices*, 16>;

  const Nodes& nodes_of(const Square& square) const;
  Prices prices_at(const Square& node) const;

  std::shared_ptr<const RoundCost> rounds_;
  mutable std::shared_mutex mutex_;
  mutable std::map<Square, Prices> prices_;
  mutable std::map<Square, Nodes> nodes_;
};

}  // namespace specdec::cost
