#include "sim/validation/method_timing.hpp"

#include <vector>

#include "sim/table_models.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using sim::Token;

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
