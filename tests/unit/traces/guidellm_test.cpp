#include "tests/support/source_dir.hpp"
#include "traces/serving/counts_formats.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/counts_reading.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using nlohmann::json;
using traces::ServingCounts;

namespace {

const std::filesystem::path guidellm_folder = tests::source_dir() + "/traces/samples/guidellm";

json report_of(const std::string& name) {
  std::ifstream file(guidellm_folder / name);
  return json::parse(file);
}

/// A report of one benchmark with two requests, which `change` may break.
template <class Change>
std::string small_report(Change change) {
  json report = json::parse(R"({"metadata":{"version":2,"guidellm_version":"0.8.1"},"benchmarks":[
    {"config":{"strategy":{"type_":"synchronous"}},"duration":2.0,
     "metrics":{"request_totals":{"successful":2,"total":2},
                "output_token_count":{"successful":{"total_sum":30.0}}},
     "requests":{"successful":[
       {"response_metrics":{"speculative_decoding":{"num_spec_steps":4,"num_accepted_draft_tokens":6,
         "num_draft_tokens":12,"num_spec_tokens":3}}},
       {"response_metrics":{"speculative_decoding":{"num_spec_steps":2,"num_accepted_draft_tokens":1,
         "num_draft_tokens":6,"num_spec_tokens":3}}}]}}]})");
  change(report["benchmarks"][0]);
  return report.dump();
}

auto unchanged = [](json&) {};

}  // namespace

TEST_CASE("each benchmark of a guidellm report is a run with the sums of its requests") {
  const tests::AllCounts read({guidellm_folder / "speculative.json"});
  CHECK(read.warnings.empty());
  const json report = report_of("speculative.json");
  REQUIRE(read.units.size() == report["benchmarks"].size());
  for (std::size_t i = 0; i < read.units.size(); ++i) {
    const ServingCounts& unit = read.units[i];
    const json& benchmark = report["benchmarks"][i];
    double rounds = 0, accepted = 0, drafted = 0, tokens = 0, between = 0;
    std::vector<double> histogram(4, 0);
    for (const json& request : benchmark["requests"]["successful"]) {
      const json& counted = request["response_metrics"]["speculative_decoding"];
      rounds += counted["num_spec_steps"].get<double>();
      accepted += counted["num_accepted_draft_tokens"].get<double>();
      drafted += counted["num_draft_tokens"].get<double>();
      for (std::size_t j = 0; j < histogram.size(); ++j)
        histogram[j] += counted["acceptance_histogram"][j].get<double>();
      const double behind_first = request["output_tokens"].get<double>() - 1;
      const json& times = request["info"]["timings"];
      tokens += behind_first;
      between += 1000 * (times["last_token_iteration"].get<double>() - times["first_token_iteration"].get<double>());
    }
    CHECK(unit.unit == traces::CountUnit::run);
    CHECK(unit.engine == "vllm");
    CHECK(unit.shape == traces::DraftShape::chain);
    CHECK(unit.gamma == 3);
    CHECK(unit.rounds == rounds);
    CHECK(unit.accepted == accepted);
    CHECK(unit.drafted == drafted);
    CHECK(unit.rounds_by_accepted == histogram);
    CHECK(unit.label("model_name") == "stub-8b");
    CHECK(unit.label("dataset_name") == "synthetic_text");
    REQUIRE(unit.bench);
    CHECK(unit.bench->max_concurrency == (i == 0 ? 1 : 4));
    CHECK(unit.bench->completed == 12);
    // From the times of first and last tokens themselves; clocks are written to the microsecond or better.
    CHECK(unit.bench->mean_tpot_ms.value() == Approx(between / tokens).epsilon(1e-4));
    CHECK(unit.bench->total_output_tokens == tokens + 12);
    CHECK(unit.bench->output_throughput.value() ==
          Approx((tokens + 12) / benchmark["duration"].get<double>()).epsilon(1e-14));
  }
}

TEST_CASE("a guidellm report of a server that says nothing of speculation is a baseline") {
  const tests::AllCounts plain({guidellm_folder / "plain.json"});
  REQUIRE(plain.units.size() == 2);
  for (const ServingCounts& unit : plain.units) {
    CHECK_FALSE(unit.rounds);
    CHECK(unit.engine == traces::guidellm_engine);
    CHECK(unit.bench->mean_tpot_ms.value() == Approx(20).epsilon(0.05));
  }
}

TEST_CASE("a guidellm report that keeps a sample of the requests says so, and one whose server was silent too") {
  CHECK(tests::counts_of({small_report(unchanged)}).warnings.empty());
  const tests::AllCounts sample = tests::counts_of(
      {small_report([](json& benchmark) { benchmark["metrics"]["request_totals"]["successful"] = 5; })});
  CHECK(sample.warns("sample_of_requests"));
  CHECK(sample.units[0].rounds == 6);
  const tests::AllCounts silent = tests::counts_of(
      {small_report([](json& benchmark) { benchmark["requests"]["successful"][1]["response_metrics"] = nullptr; })});
  CHECK(silent.warns("requests_without_speculation"));
  CHECK(silent.units[0].rounds == 4);
}

TEST_CASE("what one request of a guidellm benchmark does not say, the benchmark does not") {
  const tests::AllCounts read = tests::counts_of({small_report([](json& benchmark) {
    json& counted = benchmark["requests"]["successful"][1]["response_metrics"]["speculative_decoding"];
    counted.erase("num_draft_tokens");
    counted["num_spec_tokens"] = 5;
  })});
  CHECK(read.units[0].rounds == 6);
  CHECK(read.units[0].accepted == 7);
  CHECK_FALSE(read.units[0].drafted);
  CHECK_FALSE(read.units[0].gamma);
}

TEST_CASE("answers in one piece have no time between tokens") {
  const tests::AllCounts read = tests::counts_of({small_report(
      [](json& benchmark) { benchmark["metrics"]["inter_token_latency_ms"]["successful"]["mean"] = 0.0; })});
  CHECK_FALSE(read.units[0].bench->mean_tpot_ms);
}

TEST_CASE("broken guidellm reports are refused by benchmark, request and key") {
  const auto refusal = [](auto change) { return tests::counts_refusal({small_report(change)}); };
  CHECK_THAT(refusal([](json& benchmark) { benchmark.erase("metrics"); }),
             Contains("benchmarks[0].metrics is missing, but must be given in every benchmark"));
  CHECK_THAT(refusal([](json& benchmark) { benchmark["metrics"]["request_totals"].erase("successful"); }),
             Contains("benchmarks[0].metrics.request_totals.successful is missing"));
  CHECK_THAT(refusal([](json& benchmark) { benchmark["duration"] = 0.0; }),
             Contains("benchmarks[0].duration is 0, but must be above 0 where 2 requests were answered"));
  CHECK_THAT(refusal([](json& benchmark) { benchmark["config"]["strategy"] = "fast"; }),
             Contains("benchmarks[0].config.strategy is \"fast\", but must be an object"));
  CHECK_THAT(tests::counts_refusal({R"({"metadata":{"guidellm_version":"0.8.1"},"benchmarks":[]})"}),
             Contains("benchmarks is missing or empty"));
}
