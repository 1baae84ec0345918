#include "sim/validation/timing.hpp"

#include <vector>

#include "sim/table_models.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using sim::Token;
using validation::Timing;

TEST_CASE("a timed model answers as the model behind it and notes every call") {
  sim::ContextTableModel model = sim::unigram_model({.5, .25, .25});
  validation::TimedModel timed(model);
  const std::vector<Token> block{0, 1, 2};
  std::vector<double> rows(6);
  timed.score(block, rows);
  timed.roll_back(1);
  CHECK(rows == std::vector<double>{.5, .25, .25, .5, .25, .25});
  CHECK(model.length() == 1);
  REQUIRE(timed.calls().size() == 1);
  CHECK(timed.calls()[0].tokens == 3);
  CHECK(timed.calls()[0].rows == 2);
  CHECK(timed.calls()[0].seconds >= 0);
}

TEST_CASE("timing measures every part of a step and forms the ratios by the plain step") {
  const auto pair = sim::synthetic_bigram_pair(50, 1.0, 3);
  const sim::ModelPair models{sim::factory_of(pair.target), sim::factory_of(pair.draft)};
  const std::vector<Token> prompt{1, 2, 3};
  const std::vector<std::span<const Token>> prompts{prompt, prompt};
  sim::DecodingOptions decoding;
  decoding.gamma = 3;
  const Timing timing = validation::measure_timing(models, 1, prompts, decoding, 1, 0);
  CHECK(timing.target_step_seconds > 0);
  CHECK(timing.draft_step_seconds > 0);
  CHECK(timing.verify_seconds > 0);
  // The assumed cost of sampling is subtracted, which on tables can be more than there is.
  CHECK(timing.overhead_seconds >= 0);
  CHECK(timing.speedup > 0);
  CHECK(timing.c() == timing.draft_step_seconds / timing.target_step_seconds);
}
