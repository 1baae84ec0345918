#include "tests/support/source_dir.hpp"
#include "traces/serving/counts_formats.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/counts_reading.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using nlohmann::json;
using traces::ServingCounts;

namespace {

const std::filesystem::path speed_bench_sample = tests::source_dir() + "/traces/samples/serving/speed_bench.json";

/// Two answers, which `change` may break.
template <class Change>
std::string small_speed_bench(Change change) {
  json run = json::parse(R"({"completed_samples":2,"failed_samples":0,"selected_samples":2,
    "config":{"bench":"qualitative","concurrency":4,"extra_inputs":{"temperature":0.5},"model":"m"},
    "results":[
      {"id":"a","category":"coding","ok":true,"turns":1,"completion_tokens":40,"prompt_tokens":100,"draft_n":72,
       "draft_n_accepted":15,"predicted_ms":480.0},
      {"id":"b","category":"qa","ok":true,"turns":2,"completion_tokens":40,"prompt_tokens":300,"draft_n":60,
       "draft_n_accepted":18,"predicted_ms":400.0}],
    "summary":[{"category":"coding","draft_n":72,"accepted":15},
               {"category":"overall","draft_n":132,"accepted":33}]})");
  change(run);
  return run.dump();
}

auto speed_bench_as_it_is = [](json&) {};

}  // namespace

TEST_CASE("each result of speed_bench is a request with the rounds of its turns") {
  std::ifstream file(speed_bench_sample);
  const json run = json::parse(file);
  const tests::AllCounts read({speed_bench_sample});
  CHECK(read.warnings.empty());
  REQUIRE(read.units.size() == run["results"].size());
  for (std::size_t i = 0; i < read.units.size(); ++i) {
    const ServingCounts& unit = read.units[i];
    const json& result = run["results"][i];
    const double accepted = result["draft_n_accepted"].get<double>();
    CHECK(unit.unit == traces::CountUnit::request);
    CHECK(unit.engine == "llama.cpp");
    CHECK(unit.format == "llama.cpp speed_bench");
    CHECK(unit.rule == traces::AcceptanceRule::greedy_draft);
    CHECK(unit.shape == traces::DraftShape::chain);
    CHECK(unit.id == result["id"].get<std::string>());
    CHECK(unit.label("category") == result["category"].get<std::string>());
    CHECK(unit.label("temperature") == "1");
    CHECK(unit.accepted == accepted);
    CHECK(unit.drafted == result["draft_n"].get<double>());
    CHECK(unit.rounds == result["completion_tokens"].get<double>() - result["turns"].get<double>() - accepted);
    CHECK(unit.bench.value().completed == result["turns"].get<double>());
  }
}

TEST_CASE("results of speed_bench have the concurrency and the time of their run") {
  const tests::AllCounts read = tests::counts_of({small_speed_bench(speed_bench_as_it_is)}, true);
  REQUIRE(read.units.size() == 2);
  CHECK(read.units[0].rounds == 24);
  CHECK(read.units[1].rounds == 20);
  const traces::BenchRun& bench = read.units[1].bench.value();
  CHECK(bench.max_concurrency == 4);
  CHECK(bench.completed == 2);
  CHECK(bench.duration_s == Approx(0.4));
  CHECK(bench.total_output_tokens == 40);
  CHECK(bench.total_input_tokens == 300);
  CHECK(read.units[1].label("model_name") == "m");
  const auto plain = [](json& run) {
    for (json& result : run["results"]) result["draft_n"] = result["draft_n_accepted"] = 0;
    run.erase("summary");
  };
  const tests::AllCounts baseline = tests::counts_of({small_speed_bench(plain)}, true);
  REQUIRE(baseline.units.size() == 2);
  CHECK_FALSE(baseline.units[0].rounds);
  CHECK_THAT(tests::counts_refusal({small_speed_bench(plain)}),
             Contains("results[].draft_n is missing or 0 in all of 2 results"));
}

TEST_CASE("results of speed_bench that failed, or ended within a draft, are left out and said so") {
  const tests::AllCounts failed = tests::counts_of({small_speed_bench([](json& run) {
    run["results"][0]["ok"] = false;
    run.erase("summary");
  })});
  CHECK(failed.warns("failed_left_out"));
  CHECK(failed.units.size() == 1);
  const tests::AllCounts stopped =
      tests::counts_of({small_speed_bench([](json& run) { run["results"][1]["completion_tokens"] = 20; })});
  CHECK(stopped.warns("stopped_in_a_draft"));
  CHECK(stopped.units.size() == 1);
}

TEST_CASE("broken files of speed_bench are refused by result and key") {
  const auto refusal = [](auto change) { return tests::counts_refusal({small_speed_bench(change)}, true); };
  CHECK(refusal(speed_bench_as_it_is).empty());
  CHECK_THAT(refusal([](json& run) { run["results"][0].erase("turns"); }),
             Contains("results[0].turns is missing, but must be given in every result"));
  CHECK_THAT(refusal([](json& run) { run["results"][0]["turns"] = 0; }), Contains("results[0].turns is 0"));
  CHECK_THAT(refusal([](json& run) { run["results"][0]["ok"] = "yes"; }),
             Contains("results[0].ok is \"yes\", but must be true or false"));
  CHECK_THAT(refusal([](json& run) { run["results"][0]["predicted_ms"] = nullptr; }),
             Contains("results[0].predicted_ms is missing or null"));
  CHECK_THAT(refusal([](json& run) { run["summary"][1]["accepted"] = 34; }),
             Contains("summary[1].accepted is 34, but must be 33, the sum over results"));
  CHECK_THAT(refusal([](json& run) { run["config"]["concurrency"] = 0; }), Contains("config.concurrency is 0"));
  CHECK_THAT(refusal([](json& run) { run.erase("results"); }), Contains("the sum over results"));
}
