#include "planner/cost.hpp"

#include <string>

#include "planner/question_error.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using planner::Cost;
using planner::QuestionError;

namespace {

std::string parameter_refused(const std::string& hardware, const std::string& model,
                              const planner::HardwareOptions& options = {}) {
  try {
    Cost::of_hardware(hardware, model, options);
  } catch (const QuestionError& error) {
    return error.parameter();
  }
  return "none";
}

}  // namespace

TEST_CASE("constants price a round as Theorem 3.8 does") {
  const Cost cost = Cost::of_constants(0.1);
  CHECK(cost.rounds->round({4, 1, 0, 0}).total() == Approx(1 + 4 * 0.1));
  CHECK(cost.rounds->round({0, 1, 0, 0}).total() == Approx(1));
  CHECK(cost.assumptions.size() == 2);
}

TEST_CASE("drafts that make a step need c, and those that make none have no other than 0") {
  CHECK_THROWS_AS(Cost::of_constants(planner::StepTimes{}), QuestionError);
  CHECK_NOTHROW(Cost::of_constants(planner::StepTimes{}, {.kind = cost::DraftKind::ngram}));
  planner::StepTimes times;
  times.c = 0.1;
  CHECK_THROWS_AS(Cost::of_constants(times, {.kind = cost::DraftKind::ngram}), QuestionError);
}

TEST_CASE("hardware and models are found by name, and a wrong one is named") {
  const Cost cost = Cost::of_hardware("h100", "llama-3.1-70b", {.draft = {.model = "llama-3.2-1b"}});
  REQUIRE(cost.roofline);
  CHECK(cost.roofline->options().hardware.name == "h100-sxm");
  CHECK(cost.presets.size() > 3);
  CHECK(parameter_refused("h1000", "llama-3.1-70b") == "hardware");
  CHECK(parameter_refused("h100", "llama-9") == "model");
  CHECK(parameter_refused("h100", "llama-3.1-70b") == "draft_model");
  CHECK(parameter_refused("h100", "llama-3.1-70b", {.draft = {.model = "llama-9"}}) == "draft_model");
  CHECK(parameter_refused("h100", "llama-3.1-70b", {.drafts = false}) == "none");
}

TEST_CASE("a head drafts as one without being told, and not otherwise") {
  const Cost cost = Cost::of_hardware("h100", "llama-3.3-70b", {.draft = {.model = "eagle3-llama-3.3-70b"}});
  CHECK(cost.kind == cost::DraftKind::eagle);
  CHECK(parameter_refused("h100", "llama-3.3-70b",
                          {.draft = {.model = "eagle3-llama-3.3-70b", .kind = cost::DraftKind::model}}) ==
        "draft_kind");
}
