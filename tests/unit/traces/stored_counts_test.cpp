#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/counts_reading.hpp"
#include "tests/support/known_rounds.hpp"
#include "traces/serving/counts_formats.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using tests::CountsTaken;
using tests::KnownRound;
using tests::KnownTotals;
using tests::recognises;
using tests::refusal_of_counts;
using tests::take_counts;
using traces::ServingCounts;
using List = std::vector<double>;
using Labels = std::vector<traces::CountLabel>;

namespace {

/// The literal samples of the formats' documentation.
const std::string iteration_sample =
    R"("specDecodingStats":{"numDraftTokens":24,"numAcceptedTokens":12,"numRequestsWithDraftTokens":8,"acceptanceLength":2.5,"iterLatencyMS":3.1,"draftOverhead":0.155})";
const std::string position_sample =
    R"({"prompt_token_ids":[1,15],"generated_token_ids":[7,9,3],"acc_eagle":{"acc_len":[3,2,1]}})";

std::string list(const List& numbers) { return fmt::format("[{}]", fmt::join(numbers, ",")); }

std::string iteration(const std::string& stats, const std::string& more = "") {
  return fmt::format(R"({{"iter":1,"iterLatencyMS":20.0,"numActiveRequests":8,"numQueuedRequests":2,{})"
                     R"("inflightBatchingStats":{{"numCtxTokens":0,"numGenRequests":8}},"specDecodingStats":{}}})"
                     "\n",
                     more, stats);
}

/// The requests' i-th rounds, as one iteration decodes them.
std::vector<std::vector<KnownRound>> known_iterations() {
  std::vector<std::vector<KnownRound>> iterations;
  for (const auto& rounds : tests::known_requests()) {
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      if (iterations.size() <= i) iterations.emplace_back();
      iterations[i].push_back(rounds[i]);
    }
  }
  return iterations;
}

std::string spec_bench_question(const std::string& lengths, const std::string& steps, const std::string& category) {
  return fmt::format(
      R"({{"question_id":81,"category":"{}","model_id":"m","choices":[{{"index":0,"turns":["a"],"decoding_steps":{},)"
      R"("new_tokens":[180],"wall_time":[2.1],"accept_lengths":{}}}],"tstamp":1.7e9}})"
      "\n",
      category, steps, lengths);
}

std::string eagle_question(const std::string& more) {
  return R"({"question_id":81,"model_id":"m","choices":[{"index":0,"turns":["a"],)" + more +
         R"(,"wall_time":[2.1]}],"tstamp":1.7e9})"
         "\n";
}

List lengths_of(const std::vector<KnownRound>& rounds) {
  List lengths;
  for (const KnownRound& round : rounds) lengths.push_back(round.accepted + 1);
  return lengths;
}

/// Lists by depth as an EAGLE file has them: drafts accepted, and attempted since those before were accepted.
std::string alphas_of(const KnownTotals& totals) {
  List attempted = {totals.rounds};
  for (std::size_t j = 0; j + 1 < totals.accepted_at.size(); ++j) attempted.push_back(totals.accepted_at[j]);
  return fmt::format(R"("alpha":{},"alpha_num":{})", list(totals.accepted_at), list(attempted));
}

/// acc_len where rounds begin, and 1 between them.
List accepted_lengths_of(const std::vector<KnownRound>& rounds) {
  List lengths;
  for (const KnownRound& round : rounds) {
    lengths.push_back(round.accepted + 1);
    lengths.resize(lengths.size() + static_cast<std::size_t>(round.accepted), 1);
  }
  return lengths;
}

}  // namespace

TEST_CASE("iteration statistics give the known rounds, an iteration a window") {
  std::string content;
  for (const auto& rounds : known_iterations()) {
    const KnownTotals totals = tests::totals_of(rounds);
    content += iteration(fmt::format(R"({{"numDraftTokens":{},"numAcceptedTokens":{},"numRequestsWithDraftTokens":{},)"
                                     R"("acceptanceLength":{}}})",
                                     totals.drafted, totals.accepted, totals.rounds, totals.mean_length()));
    content += iteration("null");
  }
  const CountsTaken taken = take_counts(traces::tensorrt_llm_iterations_format(), content);
  const KnownTotals totals = tests::totals_of(tests::known_requests());
  CHECK(taken.units.size() == known_iterations().size());
  CHECK(taken.sum(&ServingCounts::rounds) == totals.rounds);
  CHECK(taken.sum(&ServingCounts::drafted) == totals.drafted);
  CHECK(taken.sum(&ServingCounts::accepted) == totals.accepted);
  for (const ServingCounts& unit : taken.units) {
    CHECK(unit.unit == traces::CountUnit::window);
    CHECK(unit.engine == "tensorrt-llm");
    CHECK(unit.shape == traces::DraftShape::unknown);
  }
  CHECK(taken.units.at(1).line == 3);
}

TEST_CASE("the sample of iteration statistics is read, with the speed of its iteration") {
  const CountsTaken taken = take_counts(traces::tensorrt_llm_iterations_format(), "[{" + iteration_sample + "}]");
  REQUIRE(taken.units.size() == 1);
  CHECK(taken.units[0].rounds == 8);
  CHECK(taken.units[0].drafted == 24);
  CHECK(taken.units[0].accepted == 12);
  const ServingCounts timed =
      take_counts(traces::tensorrt_llm_iterations_format(), iteration(iteration_sample.substr(20))).units.at(0);
  REQUIRE(timed.window);
  CHECK(timed.window->running == 8);
  CHECK(timed.window->waiting == 2);
  CHECK(timed.window->prompt_tokens_per_second == 0);
  CHECK(timed.window->generation_tokens_per_second == Approx((8 + 12) / 0.020));
}

TEST_CASE("other ranks' iterations repeat the first's and are passed over, and limits tell a tree") {
  const std::string stats = iteration_sample.substr(20);
  const CountsTaken taken =
      take_counts(traces::tensorrt_llm_iterations_format(),
                  iteration(stats, R"("attentionDpRank":0,)") + iteration(stats, R"("attentionDpRank":1,)") +
                      iteration(stats, R"("max_draft_len":3,"max_total_draft_tokens":10,)") +
                      iteration(stats, R"("maxDraftLen":3,"maxTotalDraftTokens":3,)"));
  REQUIRE(taken.units.size() == 3);
  CHECK(taken.units[0].shape == traces::DraftShape::unknown);
  CHECK(taken.units[1].shape == traces::DraftShape::tree);
  CHECK(taken.units[1].verified_per_round == 11);
  CHECK(taken.units[1].gamma == 3);
  CHECK(taken.units[2].shape == traces::DraftShape::chain);
  CHECK(!taken.units[2].verified_per_round);
}

TEST_CASE("iteration statistics that contradict themselves or never drafted are refused") {
  const auto refusal = [](const std::string& stats) {
    return refusal_of_counts(traces::tensorrt_llm_iterations_format(), iteration(stats));
  };
  CHECK(refusal("null") ==
        "x.json: specDecodingStats is null or without drafts in all of 1 iterations, but must be given where an "
        "iteration drafted");
  CHECK_THAT(refusal(R"({"numDraftTokens":3,"numAcceptedTokens":1,"numRequestsWithDraftTokens":0})"),
             Contains("numRequestsWithDraftTokens is 0, but must be at least 1, as tokens were drafted"));
  CHECK_THAT(
      refusal(R"({"numDraftTokens":3,"numAcceptedTokens":1,"numRequestsWithDraftTokens":1,"acceptanceLength":1})"),
      Contains("acceptanceLength is 1, but must be 2 = 1 + 1 / 1"));
  CHECK_THAT(refusal(R"({"numDraftTokens":-3})"), Contains("numDraftTokens is -3, but must be a count"));
  CHECK_THAT(refusal("3"), Contains("specDecodingStats is 3, but must be an object"));
}

TEST_CASE("Spec-Bench files give the known rounds, a unit a question") {
  std::string content;
  for (const auto& rounds : tests::known_requests()) {
    const auto first = static_cast<std::size_t>(1);
    content += spec_bench_question(list(lengths_of(rounds)), fmt::format("[{},{}]", first, rounds.size() - first), "c");
  }
  const CountsTaken taken = take_counts(traces::spec_bench_format(), content);
  const KnownTotals totals = tests::totals_of(tests::known_requests());
  REQUIRE(taken.units.size() == 3);
  CHECK(taken.warnings.empty());
  CHECK(taken.sum(&ServingCounts::rounds) == totals.rounds);
  CHECK(taken.sum(&ServingCounts::accepted) == totals.accepted);
  CHECK(taken.sum(&ServingCounts::emitted) == totals.emitted());
  CHECK(taken.sum(&ServingCounts::rounds_by_accepted) == totals.by_accepted);
  CHECK(taken.units[0].labels == Labels{{"model_name", "m"}, {"category", "c"}});
  CHECK(taken.units[2].line == 3);
  CHECK(!taken.units[0].drafted);
  CHECK(!taken.units[0].gamma);
  CHECK(taken.units[0].shape == traces::DraftShape::unknown);
}

TEST_CASE("a turn's last round may be trimmed to nothing, and another's not") {
  const CountsTaken taken = take_counts(traces::spec_bench_format(), spec_bench_question("[3,0,4,1]", "[2,2]", "c"));
  CHECK(taken.units.at(0).rounds == 3);
  CHECK(taken.units.at(0).accepted == 5);
  CHECK(refusal_of_counts(traces::spec_bench_format(), spec_bench_question("[0,3,4,1]", "[2,2]", "c")) ==
        "x.json:1: choices[0].accept_lengths[0] is 0, but must be in [1, 4096], the bonus token included");
  CHECK(refusal_of_counts(traces::spec_bench_format(), spec_bench_question("[3,4,1]", "[57,49]", "c")) ==
        "x.json:1: choices[0].accept_lengths is 3 long, but must be 106 long, the sum of decoding_steps");
  CHECK_THAT(refusal_of_counts(traces::spec_bench_format(), R"({"choices":[{"index":0}]})"),
             Contains("choices[0].accept_lengths is missing"));
  CHECK_THAT(refusal_of_counts(traces::spec_bench_format(), R"({"choices":[{"accept_lengths":[1.5]}]})"),
             Contains("choices[0].accept_lengths[0] is 1.5, but must be a count"));
}

TEST_CASE("files in which every round put out one token are read with a warning that they may be baselines") {
  const CountsTaken spec_bench = take_counts(traces::spec_bench_format(), spec_bench_question("[1,1,1]", "[3]", "c"));
  CHECK(spec_bench.units.at(0).accepted == 0);
  CHECK(spec_bench.warning_codes() == std::vector<std::string>{"no_accepted_drafts"});
  const CountsTaken eagle = take_counts(traces::eagle_format(), eagle_question(R"("idxs":[4],"new_tokens":[5])"));
  CHECK(eagle.units.at(0).rounds == 5);
  CHECK(eagle.units.at(0).accepted == 0);
  CHECK(eagle.warning_codes() == std::vector<std::string>{"no_accepted_drafts"});
}

TEST_CASE("EAGLE files give the known rounds, with and without counts by depth") {
  std::string content;
  std::string with_depths;
  for (const auto& rounds : tests::known_requests()) {
    const KnownTotals totals = tests::totals_of(rounds);
    const std::string turns = fmt::format(R"("idxs":[{}],"new_tokens":[{}])", totals.rounds - 1, totals.emitted());
    content += eagle_question(turns);
    with_depths += eagle_question(turns + "," + alphas_of(totals));
  }
  const KnownTotals totals = tests::totals_of(tests::known_requests());
  for (const std::string& file : {content, with_depths}) {
    const CountsTaken taken = take_counts(traces::eagle_format(), file);
    CHECK(taken.units.size() == 3);
    CHECK(taken.sum(&ServingCounts::rounds) == totals.rounds);
    CHECK(taken.sum(&ServingCounts::accepted) == totals.accepted);
    CHECK(taken.sum(&ServingCounts::emitted) == totals.emitted());
  }
  const CountsTaken depths = take_counts(traces::eagle_format(), with_depths);
  CHECK(depths.sum(&ServingCounts::accepted_at) == totals.accepted_at);
  CHECK(depths.sum(&ServingCounts::rounds_by_accepted) == totals.by_accepted);
}

TEST_CASE("EAGLE counts that contradict themselves are refused") {
  const auto refusal = [](const std::string& more) {
    return refusal_of_counts(traces::eagle_format(), eagle_question(more));
  };
  CHECK(refusal(R"("idxs":[4],"new_tokens":[4])") ==
        "x.json:1: choices[0].new_tokens[0] is 4, but must be at least 5, one of each round");
  CHECK_THAT(refusal(R"("idxs":[4,2],"new_tokens":[9])"), Contains("choices[0].idxs is 2 long, but must be 1 long"));
  CHECK_THAT(refusal(R"("new_tokens":[9])"), Contains("choices[0].idxs is missing"));
  CHECK_THAT(refusal(R"("idxs":[4],"new_tokens":[9],"alpha":[3])"), Contains("choices[0].alpha is 1 long"));
  CHECK_THAT(refusal(R"("idxs":[4],"new_tokens":[9],"alpha":[6],"alpha_num":[5])"),
             Contains("choices[0].alpha[0] is 6, but must be at most 5"));
  CHECK_THAT(refusal(R"("idxs":[4],"new_tokens":[9],"alpha":[3,1],"alpha_num":[5,4])"),
             Contains("choices[0].alpha_num[1] is 4, but must be at most 3"));
  CHECK_THAT(refusal(R"("idxs":[4],"new_tokens":[9],"alpha":[3],"alpha_num":[6])"),
             Contains("alpha_num[0] is 6 in sum over choices, but must be at most 5, the rounds of idxs"));
}

TEST_CASE("rounds are walked through position traces, a unit a sequence and draft") {
  const CountsTaken sample = take_counts(traces::position_trace_counts_format(), position_sample);
  REQUIRE(sample.units.size() == 1);
  CHECK(sample.units[0].rounds == 1);
  CHECK(sample.units[0].emitted == 3);
  CHECK(sample.units[0].labels == Labels{{"model_name", "eagle"}});
  std::string content;
  for (const auto& rounds : tests::known_requests()) {
    content += fmt::format(R"({{"acc_eagle":{{"acc_len":{}}},"acc_mtp":{{"acc_len":[1,1,2]}},"category":"c{}"}})"
                           "\n",
                           list(accepted_lengths_of(rounds)), rounds.size());
  }
  CountsTaken taken = take_counts(traces::position_trace_counts_format(), content);
  REQUIRE(taken.units.size() == 6);
  for (std::size_t i = 3; i < 6; ++i) {
    CHECK(taken.units[i].label("model_name") == "mtp");
    CHECK(taken.units[i].rounds_by_accepted == List{2, 1});
    CHECK(taken.units[i].emitted == 4);
  }
  taken.units.resize(3);
  const KnownTotals totals = tests::totals_of(tests::known_requests());
  CHECK(taken.sum(&ServingCounts::rounds) == totals.rounds);
  CHECK(taken.sum(&ServingCounts::accepted) == totals.accepted);
  CHECK(taken.sum(&ServingCounts::emitted) == totals.emitted());
  CHECK(taken.sum(&ServingCounts::rounds_by_accepted) == totals.by_accepted);
  CHECK(taken.units[1].labels == Labels{{"model_name", "eagle"}, {"category", "c3"}});
}

TEST_CASE("position traces that cannot be walked are refused by line and key") {
  const auto refusal = [](const std::string& content) {
    return refusal_of_counts(traces::position_trace_counts_format(), content);
  };
  CHECK(refusal("") == "x.json: file is empty, but must be an object for each sequence");
  CHECK_THAT(refusal(R"({"acc_x":{"acc_len":[0]}})"), Contains("x.json:1: acc_x.acc_len[0] is 0"));
  CHECK_THAT(refusal(R"({"acc_x":{"acc_len":[9999]}})"), Contains("acc_len 9999"));
  CHECK_THAT(refusal(R"({"acc_x":{}})"), Contains("acc_NAME is missing"));
}

TEST_CASE("the dispatcher finds stored acceptance by its content") {
  const auto format_of = [](const std::string& content) { return tests::counts_of({content}).units.at(0).format; };
  CHECK(format_of(spec_bench_question("[3,4,1]", "[2,1]", "writing")) == "spec-bench");
  CHECK(format_of(eagle_question(R"("idxs":[4],"new_tokens":[9])")) == "eagle");
  CHECK(format_of(position_sample) == "position traces");
  CHECK(format_of(iteration(iteration_sample.substr(20))) == "tensorrt-llm iterations");
  const std::string logprobs = R"({"choices":[{"logprobs":{"tokens":["a"],"token_logprobs":[-0.5]}}]})";
  for (const auto& format : {traces::tensorrt_llm_iterations_format(), traces::spec_bench_format(),
                             traces::eagle_format(), traces::position_trace_counts_format()}) {
    CHECK(!recognises(format, logprobs));
  }
}
