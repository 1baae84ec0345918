#include "planner/methods/comparison.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "planner/question_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"

using namespace specdec;
using planner::Comparison;
using planner::ComparisonQuestion;
using planner::QuestionError;
using planner::SimulationQuestion;

namespace {

const std::filesystem::path shipped = tests::source_dir() + "/sim/models";

template <class Question>
Question synthetic(std::int64_t threads = 1) {
  Question question;
  question.source = "synthetic";
  question.tokens = 1024;
  question.threads = threads;
  return question;
}

template <class Ask>
std::string parameter_of_refusal(const Ask& ask) {
  try {
    ask();
  } catch (const QuestionError& error) {
    return error.parameter();
  }
  return "answered";
}

}  // namespace

TEST_CASE("a method alone, in a comparison and on several threads has one result") {
  ComparisonQuestion several = synthetic<ComparisonQuestion>(2);
  several.methods = planner::methods_named("METHOD", {"algorithm1", "block"});
  several.cost.c = 0.1;
  SimulationQuestion one = synthetic<SimulationQuestion>();
  one.verifier = "block";
  one.cost.c = 0.1;
  const Comparison comparison = planner::compare(several, "nowhere");
  const planner::Simulation simulation = planner::simulate(one, "nowhere");
  REQUIRE(comparison.results.size() == 2);
  REQUIRE(simulation.results.size() == 1);
  CHECK(simulation.results[0].tokens_per_step.value == comparison.results[1].tokens_per_step.value);
  CHECK(simulation.results[0].speedup->value == comparison.results[1].speedup->value);
  CHECK(comparison.files.empty());
  CHECK_FALSE(comparison.partial);
}

TEST_CASE("a comparison of the shipped pair says which files it read, and that they are missing elsewhere") {
  SimulationQuestion question;
  question.tokens = 16;
  question.max_new_tokens = 8;
  const planner::Simulation simulation = planner::simulate(question, shipped);
  CHECK(std::ranges::all_of(simulation.files, [](const std::string& file) { return std::filesystem::exists(file); }));
  CHECK(std::ranges::count(simulation.files, (shipped / "prompts.jsonl").string()) == 1);
  CHECK_THROWS_WITH(planner::simulate(question, "nowhere"),
                    "the shipped models are missing (looked in nowhere), and what is asked for needs them or models of "
                    "yours");
}

TEST_CASE("an interrupted comparison gives what was finished, and refuses to answer with nothing") {
  ComparisonQuestion question = synthetic<ComparisonQuestion>();
  question.tokens = std::int64_t{1} << 30;
  int asked = 0;
  const Comparison partial =
      planner::compare(question, "nowhere", {.progress = {}, .interrupt = [&] { return ++asked > 10; }});
  CHECK(partial.partial);
  CHECK(partial.warnings.back().code != "imprecise");
  CHECK(std::ranges::count(partial.warnings, std::string("partial"), &Note::code) == 1);
  CHECK(partial.results.front().sequences > 0);
  CHECK_THROWS_WITH(planner::compare(question, "nowhere", {.progress = {}, .interrupt = [] { return true; }}),
                    "interrupted before a sequence was finished");
}

TEST_CASE("what a question about methods gets wrong is refused by name before anything runs") {
  const auto refusal = [](const auto& change) {
    SimulationQuestion question = synthetic<SimulationQuestion>();
    change(question);
    return parameter_of_refusal([&] { planner::simulate(question, "nowhere"); });
  };
  using Q = SimulationQuestion;
  CHECK(refusal([](Q&) {}) == "answered");
  CHECK(refusal([](Q& q) { q.gamma = 1025; }) == "gamma");
  CHECK(refusal([](Q& q) { q.temperature = -0.5; }) == "temperature");
  CHECK(refusal([](Q& q) { q.until_error = 0; }) == "until_error");
  CHECK(refusal([](Q& q) { q.threads = 0; }) == "threads");
  CHECK(refusal([](Q& q) { q.seed = -1; }) == "seed");
  CHECK(refusal([](Q& q) { q.source = "elsewhere"; }) == "source");
  CHECK(refusal([](Q& q) { q.verifier = "none"; }) == "verifier");
  CHECK(refusal([](Q& q) { q.tree = {65, 1}; }) == "tree");
  CHECK(refusal([](Q& q) { q.tree_acceptance.emplace(); }) == "tree_acceptance");
  CHECK(refusal([](Q& q) { q.schedule.emplace(); }) == "schedule");
  CHECK(refusal([](Q& q) { q.lenience = 0.5; }) == "lenience");
  CHECK(refusal([](Q& q) { q.prompts = "prompts.jsonl"; }) == "prompts");
  CHECK_THROWS_WITH(planner::methods_named("METHOD", {"block", "block"}), "METHOD is block, but must be given once");
  CHECK(planner::range_of_parameter("--gamma").hi == 1024);
  CHECK_THROWS_AS(planner::range_of_parameter("--nothing"), std::out_of_range);
}

TEST_CASE("timing changes no text, and says of each draft what was foretold and measured") {
  ComparisonQuestion question;
  question.methods = planner::methods_named("METHOD", {"algorithm1", "block", "copy+algorithm1", "eagle+algorithm1",
                                                       "recursive", "plain"});
  question.tasks = {"code"};
  question.tokens = 96;
  question.max_new_tokens = 24;
  question.gamma = 2;
  const Comparison untimed = planner::compare(question, shipped);
  question.timed = true;
  const Comparison timed = planner::compare(question, shipped);
  for (std::size_t m = 0; m < timed.results.size(); ++m) {
    const validation::MethodResult& result = timed.results[m];
    CAPTURE(name_of(result.method));
    CHECK(result.counters == untimed.results[m].counters);
    CHECK_FALSE(untimed.results[m].timing);
    REQUIRE(result.timing.has_value() == (name_of(result.method) != "recursive" && name_of(result.method) != "plain"));
    if (!result.timing) continue;
    CHECK(result.timing->plain_step_seconds > 0);
    CHECK(result.timing->measured > 0);
    CHECK(result.timing->expected > 0);
    CHECK(result.timing->c >= 0);
    // Lookups draft in too few rounds.
    if (name_of(result.method) == "copy+algorithm1") continue;
    REQUIRE_FALSE(result.timing->verification.empty());
    CHECK(result.timing->verification.back().tokens == 3);
  }
  CHECK(timed.results[0].timing->theorem.has_value());
  CHECK_FALSE(timed.results[1].timing->theorem.has_value());
  CHECK_FALSE(timed.results[2].timing->theorem.has_value());
}

TEST_CASE("a text ends with the end token") {
  SimulationQuestion question;
  question.tasks = {"prose"};
  question.tokens = 24 * 64;
  question.temperature = 0;
  const std::int64_t whole = planner::simulate(question, shipped).results.front().counters.tokens;
  // A line feed.
  question.end_token = 3;
  const planner::Simulation ended = planner::simulate(question, shipped);
  CHECK(whole == 24 * 64);
  CHECK(ended.results.front().counters.tokens < whole);
  ComparisonQuestion plain{question};
  plain.methods = planner::methods_named("METHOD", {"plain"});
  CHECK(planner::compare(plain, shipped).results.front().counters.tokens == ended.results.front().counters.tokens);
}
