#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "analysis/cost/iteration_cost.hpp"

namespace specdec::test_support {

/// The price of an iteration as a function that a test writes down.
class PricedIterations final : public cost::IterationCost {
 public:
  using Seconds = std::function<double(const cost::Iteration&)>;
  explicit PricedIterations(Seconds seconds) : seconds_(std::move(seconds)) {}

  double seconds(const cost::Iteration& iteration) const override { return seconds_(iteration); }
  double seconds_of_replicate(std::size_t, const cost::Iteration& iteration) const override {
    return seconds_(iteration);
  }

 private:
  Seconds seconds_;
};

}  // namespace specdec::test_support
