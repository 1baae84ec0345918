#include "planner/acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/core/lookup_law.hpp"
#include "analysis/planning/published_lengths.hpp"
#include "planner/cost.hpp"
#include "planner/lookup_drafts.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace specdec;
using planner::Acceptance;

namespace {

double tokens(const Acceptance& acceptance, std::int64_t gamma) {
  return acceptance.curve->tokens_per_step(gamma).value;
}

}  // namespace

TEST_CASE("a rate is the same as alpha, as its rejection and as an interval of no length") {
  const double expected = (1 - 0.8 * 0.8 * 0.8 * 0.8) / (1 - 0.8);  // Eq. 1 at gamma 3
  CHECK(tokens(Acceptance::of_rate(0.8), 3) == Approx(expected).epsilon(1e-14));
  CHECK(tokens(Acceptance::of_interval(0.8, 0.8), 3) == Approx(expected).epsilon(1e-14));
  CHECK(tokens(Acceptance::of_rejection(0.2, 0.2), 3) == Approx(expected).epsilon(1e-14));
  CHECK(Acceptance::of_rate(0.8).method == "exact");
  CHECK(Acceptance::of_interval(0.7, 0.8).method == "stated");
}

TEST_CASE("a length and positions go through what was typed") {
  CHECK(tokens(Acceptance::of_lengths({{{5, 3.2, 0.05}}}), 5) == Approx(3.2));
  CHECK(tokens(Acceptance::of_positions({{{0.8, 0.005}, {0.6, 0.005}}}), 2) == Approx(1 + 0.8 + 0.6));
  CHECK(tokens(Acceptance::of_positions({{{0.8, 0.005}, {0.75, 0.005}}}, true), 2) == Approx(1 + 0.8 + 0.6));
}

TEST_CASE("rates of all rounds that rise are refused, and rates given those before are not") {
  const std::vector<estimate::TypedRate> rising = {{0.6, 0.005}, {0.7, 0.005}}, rounded = {{0.6, 0.05}, {0.7, 0.06}};
  CHECK_THROWS_AS(Acceptance::of_positions(rising), planner::QuestionError);
  CHECK(tokens(Acceptance::of_positions(rising, true), 2) == Approx(1 + 0.6 + 0.6 * 0.7));
  CHECK(tokens(Acceptance::of_positions(rounded), 2) == Approx(2.2).epsilon(0.03));
}

TEST_CASE("typed figures lack sampling error until somebody says their rounds") {
  CHECK(Acceptance::of_lengths({{{5, 3.2, 0.05}}}).stated->lacks_sampling_error());
  CHECK_FALSE(Acceptance::of_lengths({{{5, 3.2, 0.05}}}, 1000).stated->lacks_sampling_error());
  CHECK_FALSE(Acceptance::of_rate(0.8).stated->lacks_sampling_error());
}

TEST_CASE("a prior goes through its lengths, holds their interval and says where it is from") {
  const planning::PublishedPrior& prior = *planning::published_prior("eagle3-llama-3.3-70b");
  const Acceptance acceptance = Acceptance::published("EAGLE3 llama-3.3-70b");
  for (const planning::PriorLength& length : prior.lengths) {
    const estimate::TokensPerStep expected = acceptance.curve->tokens_per_step(length.gamma);
    CHECK(expected.value == Approx(length.tokens_per_step));
    CHECK(expected.ci95.lo == Approx(length.ci95.lo));
    CHECK(expected.ci95.hi == Approx(length.ci95.hi));
    CHECK_FALSE(expected.extrapolated);
  }
  CHECK(acceptance.curve->tokens_per_step(9).extrapolated);
  CHECK(acceptance.words->published == prior.name);
  CHECK(acceptance.presets == std::vector<planner::UsedPreset>{{"acceptance", prior.name, prior.sources}});
  REQUIRE(acceptance.warnings.size() == 1);
  CHECK(acceptance.warnings[0].code == "acceptance_from_prior");
  CHECK_THAT(acceptance.warnings[0].message, Catch::Contains("20 figures of EAGLE-3 heads of llama-3.3-70b"));
}

TEST_CASE("a draft has the prior of its kind and target, and a draft model of its own has none") {
  const auto prior_of = [](const char* draft, const char* target) {
    planner::HardwareOptions options;
    options.draft.model = draft;
    return *Acceptance::prior_for(planner::Cost::of_hardware("h100", target, options)).words->published;
  };
  CHECK(prior_of("eagle3-llama-3.1-8b", "llama-3.1-8b") == "eagle3-llama-3.1-8b");
  CHECK(prior_of("eagle3-qwen3-32b", "qwen3-32b") == "eagle3");
  CHECK(prior_of("deepseek-v3", "deepseek-v3") == "mtp-deepseek-v3");
  CHECK_THROWS_WITH(prior_of("llama-3.2-1b", "llama-3.1-8b"),
                    Catch::Contains("draft_kind is model, but must be eagle, mtp or parallel"));
}

TEST_CASE("what is no acceptance is refused") {
  CHECK_THROWS_AS(Acceptance::of_rate(1.2), std::domain_error);
  CHECK_THROWS_AS(Acceptance::of_interval(0.8, 0.7), std::domain_error);
  CHECK_THROWS_AS(Acceptance::published("t5-nobody"), planner::QuestionError);
  CHECK_THROWS_AS(Acceptance::from_counters({tests::source_dir() + "/tests/fixtures/none.prom"}), traces::FileError);
}

namespace {

/// vLLM's counts of a server that looks drafts up, in so many steps.
std::string scrape_of_lookups(double steps, double drafts, double drafted, const std::vector<double>& accepted_at) {
  double accepted = 0;
  std::string text;
  const auto series = [&](const std::string& name, const std::string& more, double value) {
    text += "vllm:" + name + "{model_name=\"m\"" + more + "} " + planner::brief(value, 15) + '\n';
  };
  for (std::size_t j = 0; j < accepted_at.size(); ++j) {
    accepted += accepted_at[j];
    series("spec_decode_num_accepted_tokens_per_pos_total", ",position=\"" + std::to_string(j) + '"', accepted_at[j]);
  }
  series("spec_decode_num_drafts_total", "", drafts);
  series("spec_decode_num_draft_tokens_total", "", drafted);
  series("spec_decode_num_accepted_tokens_total", "", accepted);
  if (steps > 0) series("inter_token_latency_seconds_count", "", steps);
  return text;
}

double tokens_of_plan(const Acceptance& acceptance, std::int64_t gamma, std::optional<double> hit_rate = {},
                      std::optional<double> mean_length = {}) {
  Acceptance looked_up = acceptance;
  planner::Cost cost = planner::Cost::of_constants({.overhead = 0.01}, {.kind = cost::DraftKind::ngram});
  cost.draft.hit_rate = hit_rate;
  cost.draft.mean_draft_length = mean_length;
  planner::take_draft(&looked_up, cost);
  return tokens(looked_up, gamma);
}

}  // namespace

TEST_CASE("counters of a server that looks drafts up tell how often it found something, and how much") {
  const tests::TemporaryFolder folder;
  // 30,000 of 100,000 steps drafted 4 tokens, all of which are looked at until one is rejected.
  const std::string full = folder.write("full.prom", scrape_of_lookups(1e5, 3e4, 12e4, {24e3, 19200, 15360, 12288}));
  const Acceptance counted = Acceptance::from_counters({full});
  REQUIRE(counted.lookups);
  CHECK(counted.lookups->hit_rate.value() == Approx(0.3));
  CHECK_FALSE(counted.lookups->mean_length);
  // The server's own tokens per step, those without a draft included.
  CHECK(tokens_of_plan(counted, 4) == Approx(1 + (24e3 + 19200 + 15360 + 12288) / 1e5).epsilon(1e-12));

  // The same with matches that end: 30,000 drafts of 1 to 4 tokens, geometric with mean 3, accepted at 0.8 each.
  const core::LookupLaw law{0.3, 3.0};
  std::vector<double> accepted_at;
  for (int k = 1; k <= 4; ++k) accepted_at.push_back(std::round(3e4 * law.reaches(k) * std::pow(0.8, k)));
  double accepted = 0;
  for (const double at : accepted_at) accepted += at;
  const double drafted = std::round(1e5 * law.mean_drafted(4));
  const std::string cut = folder.write("cut.prom", scrape_of_lookups(1e5, 3e4, drafted, accepted_at));
  const Acceptance of_lengths = Acceptance::from_counters({cut});
  REQUIRE(of_lengths.lookups);
  REQUIRE(of_lengths.lookups->mean_length);
  CHECK(*of_lengths.lookups->mean_length == Approx(3).epsilon(1e-3));
  CHECK(tokens_of_plan(of_lengths, 4) == Approx(1 + accepted / 1e5).epsilon(1e-12));
  // Half the hits make half the accepted drafts; another length changes those that are reached.
  CHECK(tokens_of_plan(of_lengths, 4, 0.15) == Approx(1 + accepted / 2e5).epsilon(1e-3));
  CHECK(tokens_of_plan(of_lengths, 1, 0.3, 1.0) == Approx(tokens_of_plan(of_lengths, 1)).epsilon(1e-12));
  CHECK(tokens_of_plan(of_lengths, 4, {}, 1.0) == Approx(tokens_of_plan(of_lengths, 1)).epsilon(1e-12));
  CHECK(tokens_of_plan(of_lengths, 4, {}, 1e6) > tokens_of_plan(of_lengths, 4));

  const std::string without =
      folder.write("without.prom", scrape_of_lookups(0, 3e4, 12e4, {24e3, 19200, 15360, 12288}));
  REQUIRE(Acceptance::from_counters({without}).lookups);
  CHECK_FALSE(Acceptance::from_counters({without}).lookups->hit_rate);
  // What is stated of the misses is that of the hits that were counted.
  CHECK(tokens_of_plan(Acceptance::from_counters({without}), 4, 0.3) ==
        Approx(tokens_of_plan(counted, 4)).epsilon(1e-12));
  // A window's ends may hold a few rounds more than steps; more than 2% of them are no share of the steps.
  const std::string more = folder.write("more.prom", scrape_of_lookups(2.9e4, 3e4, 12e4, {24e3, 19200, 15360, 12288}));
  CHECK_FALSE(Acceptance::from_counters({more}).lookups->hit_rate);
  const std::string ends = folder.write("ends.prom", scrape_of_lookups(2.95e4, 3e4, 12e4, {24e3, 19200, 15360, 12288}));
  CHECK(Acceptance::from_counters({ends}).lookups->hit_rate == 1.0);
}

TEST_CASE("a log of llama.cpp tells how many of its passes had a draft") {
  const Acceptance counted =
      Acceptance::from_counters({tests::source_dir() + "/traces/samples/llamacpp/server.log"}, {.at = 3});
  REQUIRE(counted.lookups);
  // A model that drafts in every pass but the last ones of answers: 1,265 passes (traces/samples/llamacpp/README.md).
  REQUIRE(counted.lookups->hit_rate);
  CHECK(*counted.lookups->hit_rate > 0.97);
  CHECK(*counted.lookups->hit_rate < 1);
}

TEST_CASE("a mix of counters has the shares that are asked for, whatever was counted") {
  const std::vector<std::string> requests = {tests::source_dir() + "/traces/samples/serving/vllm_requests.jsonl"};
  const auto mixed = [&](const char* mix, bool by_requests = false) {
    return Acceptance::from_counters(requests, {.mix = planner::traffic_mix({}, mix, by_requests)});
  };
  const double code = tokens(mixed("code=1"), 3), chat = tokens(mixed("chat=1"), 3);
  CHECK(code > chat);
  CHECK(tokens(mixed("code=0.6,chat=0.4"), 3) == Approx(1 / (0.6 / code + 0.4 / chat)));
  CHECK(tokens(mixed("code=0.6,chat=0.4", true), 3) != tokens(mixed("code=0.6,chat=0.4"), 3));
  const Acceptance both = mixed("code=0.6,chat=0.4");
  CHECK_THAT(both.text, Catch::Contains("in a mix of code 0.6, chat 0.4 of the output tokens"));
  CHECK_FALSE(both.alpha);
  CHECK_THROWS_WITH(mixed("code=0.6,sports=0.4"), Catch::Contains("mix names sports, but must name groups of"));
  CHECK_THROWS_WITH(mixed("code=0.6,chat=0.3"), Catch::Contains("shares that sum to 1, not to 0.9"));
  CHECK_THROWS_WITH(mixed("code=0.5,code=0.5"), Catch::Contains("names code twice"));
  CHECK_THROWS_WITH(mixed("code"), Catch::Contains("GROUP=SHARE"));
}

TEST_CASE("a recording that is read as a value knows its files and its interval") {
  const Acceptance recorded = Acceptance::from_recording({tests::source_dir() + "/sim/models/recording.safetensors"});
  REQUIRE(recorded.alpha);
  REQUIRE(recorded.alpha_ci95);
  CHECK(recorded.alpha_ci95->lo < *recorded.alpha);
  CHECK(*recorded.alpha < recorded.alpha_ci95->hi);
  CHECK(recorded.files.size() == 1);
  CHECK(recorded.method == "sequences");
  CHECK_THROWS_AS(
      Acceptance::from_recording({tests::source_dir() + "/sim/models/recording.safetensors"}, {.draft_array = "q"}),
      planner::QuestionError);
}

TEST_CASE(
    "what a mix leaves out does not decide its rule, engine and clusters, and files are groups of requests, too") {
  const tests::TemporaryFolder scratch;
  const auto requests = [&](const std::string& name, const std::string& category, int count) {
    std::ofstream file(scratch.path() / name);
    for (int i = 0; i < count; ++i) {
      file << R"({"id": ")" << name << i << R"(", "model": "m", "category": ")" << category
           << R"(", "metrics": {"speculative_decoding": {"acceptance_histogram": [)" << 20 + i << R"(, 30, )" << 50 - i
           << R"(], "num_spec_steps": 100, "num_accepted_draft_tokens": )" << 130 - 2 * i
           << R"(, "num_draft_tokens": 200, "num_spec_tokens": 2}}})" << '\n';
    }
    return (scratch.path() / name).string();
  };
  const std::string chat = requests("chat.jsonl", "chat", 20), code = requests("code.jsonl", "code", 4);
  const auto counted = [&](const std::string& mix) {
    planner::CountersOptions options;
    options.by_request = true;
    options.mix =
        planner::traffic_mix(mix.starts_with("/") ? std::optional<std::string>("file") : std::nullopt, mix, false);
    return Acceptance::from_counters({chat, code}, options);
  };
  CHECK(counted("code=1").clusters == 4);
  CHECK(counted("code=0.5,chat=0.5").clusters == 24);
  const Acceptance by_file = counted(code + "=0.5," + chat + "=0.5");
  CHECK(by_file.request_rates.size() == 24);
}

TEST_CASE("a replay tells how far it is, and ends by what it is answered") {
  const std::vector<std::string> files = {tests::source_dir() + "/sim/models/recording.safetensors"};
  std::vector<double> told;
  planner::RecordingOptions options;
  options.progress = [&](double share) { told.push_back(share); };
  Acceptance::from_recording(files, options);
  REQUIRE(!told.empty());
  CHECK(std::is_sorted(told.begin(), told.end()));
  CHECK(told.back() == 1);
  options.progress = [](double) { throw std::runtime_error("enough"); };
  CHECK_THROWS_WITH(Acceptance::from_recording(files, options), "enough");
}

TEST_CASE("a typed number was rounded by half a unit of its last digit, a whole one of its tenth") {
  CHECK(planner::half_unit_of("2.92") == Approx(0.005));
  CHECK(planner::half_unit_of("2.920") == Approx(0.0005));
  CHECK(planner::half_unit_of("3") == Approx(0.05));
  CHECK(planner::half_unit_of("2.5e-3") == Approx(5e-5));
  CHECK(planner::half_unit_of("1e+2") == Approx(5));
}
