#include "planner/plan_request.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "planner/question_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"

using namespace specdec;
using nlohmann::ordered_json;
using planner::PlanRequest;

namespace {

ordered_json examples() {
  std::ifstream file(tests::source_dir() + "/tests/unit/planner/plan_requests.json");
  return ordered_json::parse(file);
}

PlanRequest request_of(const planner::Plan& plan) {
  const planner::Draft& draft = plan.drafts.front();
  return {draft.acceptance.words.value(), draft.cost.words.value(), plan.question};
}

}  // namespace

TEST_CASE("a plan's question comes back from its document as it was") {
  const ordered_json all = examples();
  const ordered_json& accepted = all["accepted"];
  CHECK(accepted.size() > 10);
  for (const ordered_json& document : accepted) {
    CAPTURE(document.dump());
    const ordered_json back = document.get<PlanRequest>();
    // The order of keys is that of the members, whatever it was.
    CHECK(nlohmann::json(back) == nlohmann::json(document));
    CHECK(ordered_json(back.get<PlanRequest>()) == back);
  }
}

TEST_CASE("each example of a plan's question has an answer, which knows what it was asked") {
  const ordered_json all = examples();
  for (const ordered_json& document : all["accepted"]) {
    CAPTURE(document.dump());
    const auto request = document.get<PlanRequest>();
    const planner::Plan plan = planner::plan(request);
    CHECK(!plan.recommendations().empty());
    CHECK(nlohmann::json(ordered_json(request_of(plan))) == nlohmann::json(document));
  }
}

TEST_CASE("what is wrong in a document of a plan's question is named, with what is there and what should be") {
  const ordered_json all = examples();
  for (const ordered_json& example : all["refused"]) {
    CAPTURE(example.dump());
    std::string message;
    try {
      example["request"].get<PlanRequest>();
    } catch (const planner::QuestionError& error) {
      message = error.what();
    }
    CHECK(message == example["message"].get<std::string>());
  }
}

TEST_CASE("a request that states no acceptance is that of its draft's prior") {
  const auto plan = [](const char* text) { return planner::plan(ordered_json::parse(text).get<PlanRequest>()); };
  const planner::Plan of_head = plan(R"({"acceptance": {}, "cost": {"c": 0.05, "draft_kind": "eagle",
                                                                    "model": "llama-3.1-8b"}})");
  CHECK(ordered_json(request_of(of_head))["acceptance"] ==
        ordered_json({{"published", "eagle3-llama-3.1-8b"}}));
  CHECK_THROWS_WITH(plan(R"({"acceptance": {"rounds": 10}, "cost": {"c": 0.05, "draft_kind": "eagle"}})"),
                    Catch::Contains("is needed"));
}

TEST_CASE("words that say two things of the acceptance, nothing, or what goes with another thing are refused") {
  const auto plan = [](const char* text) { return planner::plan(ordered_json::parse(text).get<PlanRequest>()); };
  CHECK_THROWS_WITH(plan(R"({"acceptance": {}, "cost": {"c": 0.1}})"),
                    "one of alpha, rejection, acceptance_length, acceptance_per_position, published and known is "
                    "needed");
  CHECK_THROWS_WITH(plan(R"({"acceptance": {"alpha": 0.5, "rejection": 0.5}, "cost": {"c": 0.1}})"),
                    "alpha and rejection are given, but must be one");
  CHECK_THROWS_WITH(plan(R"({"acceptance": {"alpha": 0.5, "rounds": 10}, "cost": {"c": 0.1}})"),
                    "rounds is given, but goes with acceptance_length or acceptance_per_position only");
  CHECK_THROWS_WITH(plan(R"({"acceptance": {"acceptance_length": [{"gamma": 2, "tokens_per_step": 3.5}]},
                             "cost": {"c": 0.1}})"),
                    "acceptance_length is 3.5, but must be in [1, 3] at gamma 2: tokens per step, the bonus token "
                    "included (accepted drafts alone are one less, in [0, 2])");
  CHECK_THROWS_WITH(plan(R"({"acceptance": {"alpha": 0.5}, "cost": {"c": 0.1, "tensor_parallel_size": 2}})"),
                    "tensor_parallel_size is given, but needs hardware beside it");
  CHECK_THROWS_WITH(plan(R"({"acceptance": {"alpha": 0.5}, "cost": {"c": 0.1, "hardware": "h100-sxm"}})"),
                    "c is given, but hardware prices rounds");
  CHECK_THROWS_WITH(plan(R"({"acceptance": {"alpha": 0.5}, "cost": {"hardware": "h100-sxm"}})"),
                    "model is missing: hardware prices it");
}

TEST_CASE("what a plan on files of the user's own was asked is answered again without the files") {
  const auto card = *cost::hardware_preset("h100-sxm");
  planner::PlanRequest request;
  request.acceptance.alpha = planner::RateRange{0.7, 0.8};
  request.cost.hardware = "card.json";
  request.cost.model = "llama-3.1-8b";
  request.cost.options.draft.kind = cost::DraftKind::ngram;
  request.cost.options.known.hardware["card.json"] = card;
  const planner::Plan first = planner::plan(request);
  const auto again = planner::plan(ordered_json(request_of(first)).get<PlanRequest>());
  CHECK(again.recommendations().front().speedup.value == first.recommendations().front().speedup.value);
}

TEST_CASE("drafts that are looked up make the tokens of their hits, and are refused where a model drafts") {
  const auto plan = [](const char* text) { return planner::plan(ordered_json::parse(text).get<PlanRequest>()); };
  const planner::Plan found = plan(R"({"acceptance": {"alpha": 0.8}, "question": {"batch": [1], "max_gamma": 4},
      "cost": {"verify_factor": 1.1, "draft_kind": "suffix", "hit_rate": 0.5, "mean_draft_length": 2}})");
  const auto& rows = found.points().front().rows;
  REQUIRE(rows.size() == 5);
  // P(L >= k) = (1/2)^(k - 1): 1 + 0.5 (0.8 + 0.64 / 2 + 0.512 / 4), and half of the steps are plain.
  CHECK(rows[3].tokens_per_step == Approx(1 + 0.5 * (0.8 + 0.32 + 0.128)));
  CHECK(rows[3].time.total() == Approx(1 + 0.5 * 0.1));
  CHECK_THROWS_WITH(plan(R"({"acceptance": {"alpha": 0.8}, "cost": {"c": 0.1, "hit_rate": 0.5}})"),
                    "hit_rate is given, but needs draft_kind ngram or suffix beside it: other drafts propose in every "
                    "round");
  CHECK_THROWS_WITH(plan(R"({"acceptance": {"alpha": 0.8}, "cost": {"draft_kind": "ngram", "mean_draft_length": 3}})"),
                    "mean_draft_length is given, but needs hit_rate beside it");
}
