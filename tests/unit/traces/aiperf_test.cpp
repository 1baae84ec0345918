#include "tests/support/source_dir.hpp"
#include "traces/serving/counts_formats.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/counts_reading.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using traces::ServingCounts;

namespace {

const std::filesystem::path folder = tests::source_dir() + "/traces/samples/aiperf";

tests::AllCounts counts_of_sample(const std::string& name) { return tests::AllCounts({folder / name}); }

}  // namespace

TEST_CASE("AIPerf's records sum to its summary of the same run") {
  const tests::AllCounts records = counts_of_sample("records.jsonl");
  REQUIRE(records.warnings.size() == 1);
  CHECK(records.warns("warmup_left_out"));
  REQUIRE(records.units.size() == 12);
  double rounds = 0, accepted = 0, drafted = 0;
  std::vector<double> histogram(4, 0);
  for (const ServingCounts& unit : records.units) {
    CHECK(unit.unit == traces::CountUnit::request);
    CHECK(unit.engine == "vllm");
    CHECK(unit.shape == traces::DraftShape::chain);
    CHECK(unit.gamma == 3);
    rounds += unit.rounds.value();
    accepted += unit.accepted.value();
    drafted += unit.drafted.value();
    for (std::size_t j = 0; j < unit.rounds_by_accepted.size(); ++j) histogram[j] += unit.rounds_by_accepted[j];
  }
  const tests::AllCounts summary = counts_of_sample("speculative.json");
  REQUIRE(summary.units.size() == 1);
  const ServingCounts& run = summary.units[0];
  CHECK(run.unit == traces::CountUnit::run);
  CHECK(run.rounds == rounds);
  CHECK(run.accepted == accepted);
  CHECK(run.drafted == drafted);
  CHECK(run.rounds_by_accepted == histogram);
  CHECK(run.gamma == 3);
  CHECK(run.label("model_name") == "stub-8b");
  CHECK(run.label("dataset_name") == "synthetic");
  REQUIRE(run.bench);
  CHECK(run.bench->max_concurrency == 2);
  CHECK(run.bench->completed == 12);
  CHECK(run.bench->total_output_tokens == 514);
  CHECK(run.bench->mean_tpot_ms == Approx(9.019630259583161).epsilon(1e-15));
}

TEST_CASE("a summary of AIPerf without speculation is a baseline") {
  const tests::AllCounts plain = counts_of_sample("plain.json");
  REQUIRE(plain.units.size() == 1);
  CHECK_FALSE(plain.units[0].rounds);
  CHECK(plain.units[0].engine == traces::aiperf_engine);
  CHECK(plain.units[0].bench->max_concurrency == 2);
}

TEST_CASE("broken records and summaries of AIPerf are refused by key") {
  const auto record = [](const std::string& acceptance) {
    return R"({"metadata":{"benchmark_phase":"profiling"},"metrics":{},"spec_decode_acceptance":)" + acceptance + "}";
  };
  CHECK_THAT(tests::counts_refusal({record("null")}), Contains("missing or without rounds in all of 1 documents"));
  CHECK_THAT(tests::counts_refusal({record(R"({"engine":"vllm"})")}),
             Contains("spec_decode_acceptance.num_spec_steps is missing"));
  const auto summary = [](const std::string& metrics) {
    return R"({"aiperf_version":"0.13.0","request_count":{"unit":"requests","avg":12.0})" + metrics + "}";
  };
  CHECK_THAT(tests::counts_refusal({summary(R"(,"inter_token_latency":{"unit":"sec","avg":0.002})")}),
             Contains("inter_token_latency.unit is sec, but must be ms"));
  CHECK_THAT(tests::counts_refusal({summary(R"(,"total_isl":{"unit":"tokens","avg":0.5})")}),
             Contains("total_isl.avg is 0.5, but must be a whole number"));
}
