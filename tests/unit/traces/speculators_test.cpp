#include "traces/serving/speculators.hpp"
#include "tests/support/source_dir.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/counts_reading.hpp"
#include "tests/support/known_rounds.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using traces::ServingCounts;

namespace {

const std::filesystem::path speculators_folder = tests::source_dir() + "/traces/samples/serving";

const std::string acceptance_header =
    "subset,num_drafts,num_draft_tokens,num_accepted_tokens,acceptance_length,acceptance_at_pos_0,acceptance_at_pos_"
    "1\n";
const std::string results_header =
    "subset,strategy,target_rate,rps_median,latency_median_s,itl_median_ms,ttft_median_ms,output_tps_median,"
    "total_output_tokens";

std::string acceptance_refusal(const std::string& row) {
  return tests::refusal_of_counts(traces::speculators_acceptance_format(), acceptance_header + row, "acceptance.csv");
}

std::string results_refusal(const std::string& rest) {
  return tests::refusal_of_counts(traces::speculators_results_format(), results_header + rest, "perf_results.csv");
}

}  // namespace

TEST_CASE("acceptance.csv of speculators has the counts that the scrapes behind it differ by") {
  const tests::AllCounts table({speculators_folder / "speculators_acceptance.csv"});
  REQUIRE(table.units.size() == 2);
  CHECK(table.warnings.empty());
  const std::vector<std::string> subsets = {"HumanEval", "writing"}, scrapes = {"vllm", "vllm_k4"};
  for (std::size_t i = 0; i < 2; ++i) {
    const ServingCounts& unit = table.units[i];
    const tests::AllCounts scraped(
        {speculators_folder / (scrapes[i] + "_before.prom"), speculators_folder / (scrapes[i] + "_after.prom")});
    REQUIRE(scraped.units.size() == 1);
    CHECK(unit.unit == traces::CountUnit::run);
    CHECK(unit.engine == "vllm");
    CHECK(unit.format == "speculators acceptance");
    CHECK(unit.label("category") == subsets[i]);
    CHECK(unit.shape == traces::DraftShape::chain);
    CHECK(unit.gamma == 4);
    CHECK(unit.rounds == scraped.units[0].rounds);
    CHECK(unit.drafted == scraped.units[0].drafted);
    CHECK(unit.accepted == scraped.units[0].accepted);
    CHECK(unit.accepted_at == scraped.units[0].accepted_at);
    CHECK_FALSE(unit.from_rates);
  }
}

TEST_CASE("perf_results.csv of speculators are runs, each with the tokens per round of its subset") {
  const tests::AllCounts drafted({speculators_folder / "speculators_results_speculative.csv"});
  const tests::AllCounts report(
      {std::filesystem::path(tests::source_dir()) / "traces/samples/guidellm/speculative.json"});
  REQUIRE(drafted.units.size() == 2);
  CHECK(drafted.warns("medians_for_means"));
  double rounds = 0, accepted = 0;
  for (const ServingCounts& run : report.units) {
    rounds += *run.rounds;
    accepted += *run.accepted;
  }
  for (const ServingCounts& unit : drafted.units) {
    CHECK(unit.format == "speculators results");
    CHECK(unit.gamma == 3);
    CHECK_FALSE(unit.rounds);
    CHECK(unit.tokens_per_round.value() == Approx(1 + accepted / rounds).epsilon(1e-14));
    REQUIRE(unit.bench);
  }
  // Medians of the report, as Python's json reads them from it.
  CHECK(drafted.units[0].bench->mean_tpot_ms == 8.48698616027832);
  CHECK(drafted.units[1].bench->output_throughput == 333.7247499785783);
  const tests::AllCounts plain({speculators_folder / "speculators_results_plain.csv"});
  REQUIRE(plain.units.size() == 2);
  CHECK_FALSE(plain.units[0].tokens_per_round);
  CHECK_FALSE(plain.units[0].gamma);
}

TEST_CASE("a load of speculators' sweep is known where it was synchronous or a rate") {
  const auto read = [](const std::string& row) {
    const auto taken = tests::take_counts(traces::speculators_results_format(), results_header + "\n" + row + "\n");
    return *taken.units.at(0).bench;
  };
  const traces::BenchRun one = read("qa,synchronous,,0.5,2,10,20,100,");
  CHECK(one.max_concurrency == 1);
  CHECK_FALSE(one.batch);
  const traces::BenchRun rate = read("qa,constant,2.5,2.4,2,10,20,400,");
  CHECK(rate.request_rate == 2.5);
  CHECK_FALSE(rate.batch);
  const traces::BenchRun unknown = read("qa,concurrent,,2.4,2,10,20,400,");
  CHECK(unknown.batch.value() == Approx(4));
  // Answers in one piece, and a metric that the report did not have.
  CHECK_FALSE(read("qa,synchronous,,0.5,2,0.0,20,100,").mean_tpot_ms);
  CHECK_FALSE(read("qa,synchronous,,0.5,2,,20,100,").mean_tpot_ms);
}

TEST_CASE("broken tables of speculators are refused by line and column") {
  CHECK(acceptance_refusal("qa,40.0,80.0,60.0,2.5,0.875,0.625\n").empty());
  CHECK_THAT(acceptance_refusal("qa,40.0,80.0,60.0,2.6,0.875,0.625\n"),
             StartsWith("acceptance.csv:2: acceptance_length is 2.6, but must be 2.5, 1 + num_accepted_tokens"));
  CHECK_THAT(acceptance_refusal("qa,40.0,50.0,60.0,2.5,0.875,0.625\n"),
             StartsWith("acceptance.csv:2: num_accepted_tokens is 60, but must be at most 50"));
  CHECK_THAT(acceptance_refusal("qa,40.0,90.0,60.0,2.5,0.875,0.625\n"),
             StartsWith("acceptance.csv:2: num_draft_tokens is 90, but must be at most 2 for each of 40 drafts"));
  CHECK_THAT(acceptance_refusal("qa,40.0,80.0,60.0,2.5,0.875,0.88\n"),
             StartsWith("acceptance.csv:2: acceptance_at_pos_1 is 0.88, but must be a whole number of 40 drafts"));
  CHECK_THAT(acceptance_refusal("qa,40.0,80.0,60.0,2.5,0.625,0.875\n"),
             StartsWith("acceptance.csv:2: acceptance_at_pos_1 is 0.875, but must be at most the rate before it"));
  CHECK_THAT(acceptance_refusal("qa,40.0,80.0,60.0,2.5,0.875,0.5\n"),
             StartsWith("acceptance.csv:2: acceptance_at_pos_* is 55 drafts in sum, but must be 60 in sum"));
  CHECK_THAT(acceptance_refusal("qa,40.0,80.0,60.0,2.5,87.5,0.625\n"),
             StartsWith("acceptance.csv:2: acceptance_at_pos_0 is 87.5, but must be a number in [0, 1]"));
  CHECK_THAT(acceptance_refusal("qa,,80.0,60.0,2.5,0.875,0.625\n"),
             StartsWith("acceptance.csv:2: num_drafts is missing, but must be given in every row"));
  CHECK_THAT(acceptance_refusal("qa,40.0,80.0\n"),
             StartsWith("acceptance.csv:2: row is 3 fields long, but must be 7 fields long"));
  CHECK_THAT(acceptance_refusal(""), Contains("the number of rows is 0, but must be 1 or more"));
  CHECK_THAT(results_refusal("\nqa,constant,fast,2.4,2,10,20,400,\n"),
             StartsWith("perf_results.csv:2: target_rate is fast, but must be a number >= 0"));
  CHECK_THAT(results_refusal(",subset\nqa,constant,2,2.4,2,10,20,400,,qa\n"),
             StartsWith("perf_results.csv:1: column subset is there twice, but must be there once"));
}
