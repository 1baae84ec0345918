#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/cost/iteration_cost.hpp"

namespace specdec::test_support {

/// Prices iterations by a function; may be called from several threads.
class PricedByFormula final : public cost::IterationCost {
 public:
  using Price = std::function<double(const cost::Iteration&)>;
  explicit PricedByFormula(Price price) : price_(std::move(price)) {}

  double price(std::size_t, const cost::Iteration& iteration) const override { return price_(iteration); }

 private:
  Price price_;
};

/// Prices iterations by a function, and keeps them.
class PricedIterations final : public cost::IterationCost {
 public:
  using Price = std::function<double(const cost::Iteration&)>;
  explicit PricedIterations(Price price) : price_(std::move(price)) {}

  double price(std::size_t, const cost::Iteration& iteration) const override {
    seen.push_back(iteration);
    return price_(iteration);
  }

  mutable std::vector<cost::Iteration> seen;

 private:
  Price price_;
};

inline std::shared_ptr<PricedIterations> priced(PricedIterations::Price price) {
  return std::make_shared<PricedIterations>(std::move(price));
}

/// Every iteration takes so long.
inline std::shared_ptr<PricedIterations> priced(double seconds) {
  return priced([seconds](const cost::Iteration&) { return seconds; });
}

}  // namespace specdec::test_support
