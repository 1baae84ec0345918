#include "analysis/cost/price_table.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numbers>
#include <span>

namespace specdec::cost {
namespace {

constexpr double batch_step = std::numbers::ln2 / 4, context_step = 0.25, context_scale = 500;

/// A place between nodes: the first of four, and the weights of all four by Lagrange.
struct Between {
  std::int64_t first = 0;
  std::array<double, 4> weights = {};
};

/// @param x  in steps; from 0 on no node is below 0
Between between(double x) {
  Between found;
  found.first = static_cast<std::int64_t>(std::floor(x)) - 1;
  if (x >= 0) found.first = std::max<std::int64_t>(0, found.first);
  const double t = x - static_cast<double>(found.first);
  found.weights = {-(t - 1) * (t - 2) * (t - 3) / 6, t * (t - 2) * (t - 3) / 2, -t * (t - 1) * (t - 3) / 2,
                   t * (t - 1) * (t - 2) / 6};
  return found;
}

}  // namespace

double PriceTable::price(std::size_t version, const RoundPoint& point, Part part) const {
  require_legal(point);
  const Between batch = between(std::log(point.batch) / batch_step);
  const Between context = between(std::log1p(point.context / context_scale) / context_step);
  const auto interpolated = [&](bool full_accepts) {
    const Nodes& nodes = nodes_of({point.gamma, batch.first, context.first, full_accepts, part});
    double price = 0;
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 4; ++j) price += batch.weights[i] * context.weights[j] * (*nodes[4 * i + j])[version];
    return std::max(0.0, price);
  };
  const double share = point.full_accepts;
  return (share < 1 ? (1 - share) * interpolated(false) : 0) + (share > 0 ? share * interpolated(true) : 0);
}

const PriceTable::Nodes& PriceTable::nodes_of(const Square& square) const {
  {
    const std::shared_lock lock(mutex_);
    const auto known = nodes_.find(square);
    if (known != nodes_.end()) return known->second;
  }
  const std::unique_lock lock(mutex_);
  Nodes nodes;
  for (std::size_t place = 0; place < nodes.size(); ++place) {
    Square node = square;
    node.batch += static_cast<std::int64_t>(place / 4);
    node.context += static_cast<std::int64_t>(place % 4);
    auto known = prices_.find(node);
    if (known == prices_.end()) known = prices_.emplace(node, prices_at(node)).first;
    nodes[place] = &known->second;
  }
  return nodes_.emplace(square, nodes).first->second;
}

PriceTable::Prices PriceTable::prices_at(const Square& node) const {
  const RoundPoint point{.gamma = node.gamma,
                         .batch = std::exp(batch_step * static_cast<double>(node.batch)),
                         .context = context_scale * std::expm1(context_step * static_cast<double>(node.context)),
                         .full_accepts = node.full_accepts ? 1.0 : 0.0};
  Prices prices(1 + rounds_->replicates());
  if (node.part == Part::total) {
    prices.front() = rounds_->round(point).total();
    rounds_->totals_of_replicates(point, std::span(prices).subspan(1));
  } else {
    for (std::size_t version = 0; version < prices.size(); ++version)
      prices[version] = rounds_->price(version, point).target;
  }
  return prices;
}

}  // namespace specdec::cost
