#include "sim/serving/decoding_prices.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "tests/support/catch.hpp"

namespace specdec::sim {
namespace {

/// Bound by weights until the cache takes longer, and counts how often it is asked.
class CountingCost final : public cost::IterationCost {
 public:
  double price(std::size_t, const cost::Iteration& iteration) const override {
    ++asked;
    const double drafts = static_cast<double>(iteration.gamma) * (1 + 0.5 * iteration.full_accepts);
    return std::max(20.0, 0.001 * iteration.context_tokens) + 0.1 * iteration.sequences + drafts +
           0.01 * iteration.prompt_tokens;
  }
  mutable int asked = 0;
};

TEST_CASE("decoding is priced as the cost prices it, however rarely that is asked") {
  const auto cost = std::make_shared<CountingCost>();
  const DecodingPrices prices(cost);
  int iterations = 0;
  double largest_error = 0;
  for (double context = 0; context < 3000; context += 1.7) {
    for (const std::int64_t gamma : {0, 3}) {
      const cost::Iteration iteration{
          .sequences = 16, .gamma = gamma, .context_tokens = 16 * context, .full_accepts = gamma > 0 ? 0.3 : 0};
      largest_error =
          std::max(largest_error, std::abs(prices.seconds(iteration) / CountingCost().seconds(iteration) - 1));
      ++iterations;
    }
  }
  // In the stretch of contexts with the corner; elsewhere the lines are met.
  CHECK(largest_error < 0.03);
  CHECK(cost->asked < iterations / 10);
}

TEST_CASE("iterations with prompts, parts of rounds or drafts left out are asked of the cost itself") {
  const auto cost = std::make_shared<CountingCost>();
  const DecodingPrices prices(cost);
  for (const cost::Iteration& iteration :
       {cost::Iteration{.sequences = 4, .gamma = 2, .context_tokens = 4000, .prompt_tokens = 512, .prompts = 1},
        cost::Iteration{.sequences = 3.5, .gamma = 2, .context_tokens = 4000},
        cost::Iteration{.sequences = 4, .gamma = 2, .verified = 5, .context_tokens = 4000},
        cost::Iteration{.sequences = 0, .gamma = 0, .prompt_tokens = 512, .prompts = 1}}) {
    const int before = cost->asked;
    CHECK(prices.seconds(iteration) == CountingCost().seconds(iteration));
    CHECK(cost->asked == before + 1);
  }
}

}  // namespace
}  // namespace specdec::sim
