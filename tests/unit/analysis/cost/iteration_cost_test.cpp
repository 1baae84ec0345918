#include "analysis/cost/iteration_cost.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "analysis/cost/constant_cost.hpp"
#include "analysis/cost/fitted_cost.hpp"
#include "analysis/cost/measured_cost.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using cost::Iteration;

namespace {

/// Passes of 1 ms + 0.1 ms per position + 0.2 us per token of the cache; a draft pass takes a tenth.
std::shared_ptr<const cost::MeasuredCost> linear_passes() {
  std::vector<traces::TimedPass> passes;
  for (const double batch : {1.0, 400.0}) {
    for (const double context : {0.0, 2000.0}) {
      traces::TimedPass pass;
      pass.batch = batch;
      pass.context = context;
      pass.seconds = 1e-3 + 1e-4 * batch + 2e-7 * batch * context;
      passes.push_back(pass);
    }
  }
  cost::MeasuredOptions options;
  options.c = 0.1;
  options.overhead_seconds = 5e-4;
  options.curve.replicates = 0;
  return std::make_shared<const cost::MeasuredCost>(passes, std::vector<traces::TimedPass>{}, options);
}

}  // namespace

TEST_CASE("an iteration without prompts takes what its round takes") {
  const auto rounds = linear_passes();
  const auto iterations = cost::iterations_of(rounds, {});
  const cost::RoundPoint point{.gamma = 3, .batch = 8, .context = 700, .full_accepts = 0.4};
  CHECK(iterations->seconds({.sequences = 8, .gamma = 3, .context_tokens = 5600, .full_accepts = 0.4}) ==
        rounds->round(point).total());
  CHECK(iterations->seconds({}) == 0);
}

TEST_CASE("positions of prompts cost what they add to the pass beside the decoding ones") {
  const auto iterations = cost::iterations_of(linear_passes(), {});
  const double round = iterations->seconds({.sequences = 8, .gamma = 3, .context_tokens = 5600});
  const Iteration mixed{
      .sequences = 8, .gamma = 3, .context_tokens = 5600, .prompt_tokens = 100, .prompts = 1, .prompt_pairs = 5050};
  CHECK(iterations->seconds(mixed) == Approx(round + 100 * 1e-4).epsilon(1e-12));
  CHECK(iterations->seconds({.prompt_tokens = 100, .prompts = 2}) == Approx(1e-3 + 100 * 1e-4).epsilon(1e-12));
}

TEST_CASE("a rate of prompt tokens replaces the passes") {
  const auto iterations = cost::iterations_of(linear_passes(), 1e4);
  const double round = iterations->seconds({.sequences = 8, .context_tokens = 5600});
  CHECK(iterations->seconds({.sequences = 8, .context_tokens = 5600, .prompt_tokens = 5000, .prompts = 1}) ==
        Approx(round + 0.5).epsilon(1e-14));
  CHECK(iterations->seconds({.prompt_tokens = 5000, .prompts = 1}) == Approx(0.5).epsilon(1e-14));
}

TEST_CASE("drafts that are not all verified take their passes, and the target's over those that are") {
  const auto iterations = cost::iterations_of(linear_passes(), {});
  const auto seconds = [&](std::optional<double> verified) {
    return iterations->seconds({.sequences = 8, .gamma = 3, .verified = verified, .context_tokens = 5600});
  };
  CHECK(seconds(24) == Approx(seconds({})).epsilon(1e-14));
  // The passes are linear in positions, 0.1 ms each, and in the cache, which is the same.
  for (const double verified : {0.0, 5.0, 8.0, 19.5})
    CHECK(seconds(verified) == Approx(seconds({}) - (24 - verified) * 1e-4).epsilon(1e-12));
  CHECK_THROWS_AS(seconds(24.1), std::domain_error);
  CHECK_THROWS_AS(seconds(-1), std::domain_error);
  const Iteration mixed{
      .sequences = 8, .gamma = 3, .verified = 5, .context_tokens = 5600, .prompt_tokens = 100, .prompts = 1};
  CHECK(iterations->seconds(mixed) == Approx(seconds(5) + 100 * 1e-4).epsilon(1e-12));
}

// Medians over 300 replicates are not smooth between nodes; those of the nearest node alone are up to 8% off.
TEST_CASE("iterations carry the replicates of their rounds, interpolated") {
  std::vector<cost::ObservedRound> runs;
  for (const double gamma : {0.0, 3.0}) {
    for (const double batch : {1.0, 4.0, 16.0, 64.0, 96.0, 128.0}) {
      const double noise = batch == 4 || batch == 96 ? 1.03 : 0.98;
      const double seconds = noise * (0.01 + (1e-4 + 1e-8 * 10 * batch) * batch + (gamma > 0 ? 2e-3 : 0));
      runs.push_back({.gamma = gamma, .batch = batch, .context = 10 * batch, .seconds = seconds});
    }
  }
  const auto rounds = std::make_shared<const cost::FittedCost>(runs, cost::FitOptions{.replicates = 300});
  const auto iterations = cost::iterations_of(rounds, {});
  REQUIRE(iterations->replicates() == 300);
  for (const double batch : {1.0, 1.7, 3.0, 10.0, 37.0, 150.0, 700.0}) {
    for (const double context : {0.0, 90.0, 1500.0, 40000.0}) {
      CAPTURE(batch, context);
      const cost::RoundPoint point{.gamma = 3, .batch = batch, .context = context};
      const Iteration drafts{.sequences = batch, .gamma = 3, .context_tokens = batch * context};
      Iteration none_verified = drafts;
      none_verified.verified = 0;
      CHECK(iterations->seconds(drafts) == Approx(rounds->round(point).total()).epsilon(0.01));
      for (std::size_t i = 0; i < 300; i += 70) {
        const cost::RoundTime round = rounds->price(1 + i, point);
        const double plain = rounds->price(1 + i, {.batch = batch, .context = context}).target;
        CHECK(iterations->price(1 + i, drafts) == Approx(round.total()).epsilon(0.01));
        CHECK(iterations->price(1 + i, none_verified) == Approx(plain + round.draft + round.overhead).epsilon(0.01));
      }
    }
  }
}

TEST_CASE("iterations need seconds and refuse what is outside its range") {
  CHECK_THROWS_AS(cost::iterations_of(nullptr, {}), std::invalid_argument);
  CHECK_THROWS_WITH(
      cost::iterations_of(std::make_shared<const cost::ConstantCost>(cost::ConstantOptions{.step = {.c = 0.1}}), {}),
      Contains("must know seconds"));
  CHECK_THROWS_AS(cost::iterations_of(linear_passes(), 0.0), std::domain_error);
  const auto iterations = cost::iterations_of(linear_passes(), {});
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(iterations->seconds({.sequences = -1}), Contains("sequences is -1"));
  CHECK_THROWS_AS(iterations->seconds({.sequences = 1, .gamma = -1}), std::domain_error);
  CHECK_THROWS_AS(iterations->seconds({.sequences = 1, .context_tokens = nan}), std::domain_error);
  CHECK_THROWS_AS(iterations->seconds({.prompt_tokens = -1}), std::domain_error);
  CHECK_THROWS_AS(iterations->seconds({.prompt_tokens = 1, .prompts = nan}), std::domain_error);
  CHECK_THROWS_AS(iterations->seconds({.prompt_tokens = 1, .prompt_pairs = -1}), std::domain_error);
  CHECK_THROWS_AS(iterations->seconds({.sequences = 1, .full_accepts = 2}), std::domain_error);
}
