#include "traces/serving/specforge.hpp"
#include "tests/support/source_dir.hpp"

#include <cmath>
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

const std::filesystem::path specforge_sample = tests::source_dir() + "/traces/samples/serving/specforge.jsonl";

/// One configuration: 1000 tokens of 20 answers in 400 rounds at batch 4, which `change` may break.
template <class Change>
std::string small_specforge(Change change) {
  json results = json::parse(R"({"model":"org/draft","gsm8k":[{"batch_size":4,"steps":3,"topk":1,"num_draft_tokens":4,
    "metrics":[{"latency":5.0,"output_throughput":200.0,"accept_length":2.5,"accuracy":null,"num_questions":20,
                "num_valid_predictions":0,"categorical_performance":null}],"num_samples":20}]})");
  change(results["gsm8k"][0]);
  return results.dump();
}

auto specforge_as_it_is = [](json&) {};

}  // namespace

TEST_CASE("each metrics of SpecForge's benchmark is a run with the rounds that its length is the mean of") {
  std::ifstream file(specforge_sample);
  const json results = json::parse(file);
  const tests::AllCounts read({specforge_sample});
  CHECK(read.warnings.empty());
  REQUIRE(read.units.size() == results["gsm8k"].size());
  for (std::size_t i = 0; i < read.units.size(); ++i) {
    const ServingCounts& unit = read.units[i];
    const json& configuration = results["gsm8k"][i];
    const json& metrics = configuration["metrics"][0];
    const double tokens = metrics["output_throughput"].get<double>() * metrics["latency"].get<double>();
    const auto steps = configuration["steps"].get<std::int64_t>();
    CHECK(unit.unit == traces::CountUnit::run);
    CHECK(unit.engine == "sglang");
    CHECK(unit.format == "specforge bench");
    CHECK(unit.label("category") == "gsm8k");
    CHECK(unit.label("draft") == "org/draft-eagle3");
    CHECK(unit.bench.value().max_concurrency == configuration["batch_size"].get<double>());
    CHECK(unit.bench->total_output_tokens == Approx(tokens));
    if (steps == 0) {
      CHECK_FALSE(unit.rounds);
      CHECK_FALSE(unit.gamma);
      continue;
    }
    CHECK(unit.gamma == steps);
    CHECK(unit.shape == traces::DraftShape::chain);
    // The script's own quotient of whole numbers.
    CHECK(std::round(tokens) / *unit.rounds == Approx(metrics["accept_length"].get<double>()).epsilon(1e-12));
    CHECK(*unit.accepted == std::round(tokens) - 40 - *unit.rounds);
    CHECK_FALSE(unit.from_rates);
  }
}

TEST_CASE("SpecForge's rounds, time per token and shape follow from what it writes") {
  const auto one = [](auto change) { return tests::counts_of({small_specforge(change)}).units.at(0); };
  const ServingCounts run = one(specforge_as_it_is);
  CHECK(run.rounds == 400);
  CHECK(run.accepted == 580);
  CHECK(run.bench->mean_tpot_ms == Approx(20));
  CHECK(one([](json& c) { c["metrics"][0]["accept_length"] = 2.53; }).from_rates);
  const ServingCounts tree = one([](json& c) {
    c["topk"] = 4;
    c["num_draft_tokens"] = 16;
  });
  CHECK(tree.shape == traces::DraftShape::tree);
  CHECK(tree.verified_per_round == 16);
  const ServingCounts not_started = one([](json& c) { c["steps"] = c["topk"] = c["num_draft_tokens"] = nullptr; });
  CHECK_FALSE(not_started.gamma);
  CHECK(not_started.rounds == 400);
  CHECK(not_started.shape == traces::DraftShape::unknown);
}

TEST_CASE("broken files of SpecForge's benchmark are refused by configuration, metrics and key") {
  const auto refusal = [](auto change) { return tests::counts_refusal({small_specforge(change)}); };
  CHECK(refusal(specforge_as_it_is).empty());
  CHECK_THAT(refusal([](json& c) { c["metrics"][0]["accept_length"] = 4.2; }),
             Contains("1.txt:1: gsm8k[0].metrics[0].accept_length is 4.2, but must be at most 4"));
  CHECK_THAT(refusal([](json& c) { c["metrics"][0]["accept_length"] = 0.5; }),
             Contains("gsm8k[0].metrics[0].accept_length is 0.5, but must be at least 1"));
  CHECK_THAT(refusal([](json& c) { c["steps"] = 0; }),
             Contains("gsm8k[0].metrics[0].accept_length is 2.5, but must be 1 where steps are 0"));
  CHECK_THAT(refusal([](json& c) { c["metrics"][0].erase("accept_length"); }), Contains("accept_length is missing"));
  CHECK_THAT(refusal([](json& c) { c["metrics"][0]["latency"] = 0; }),
             Contains("gsm8k[0].metrics[0].latency is 0, but must be a number above 0"));
  CHECK_THAT(refusal([](json& c) { c["metrics"][0]["output_throughput"] = 1e300; }),
             Contains("gsm8k[0].metrics[0].output_throughput is 1e+300, but must be at most 2^53 tokens in 5 s"));
  CHECK_THAT(refusal([](json& c) { c["batch_size"] = nullptr; }), Contains("gsm8k[0].batch_size is missing"));
  CHECK_THAT(refusal([](json& c) { c["steps"] = -1; }), Contains("gsm8k[0].steps is -1"));
  CHECK_THAT(refusal([](json& c) { c["metrics"] = json::array(); }), Contains("metrics is missing or empty"));
}
