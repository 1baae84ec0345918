#include "traces/serving/counts_formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/known_rounds.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using tests::CountsTaken;
using tests::recognises;
using tests::refusal_of_counts;
using tests::take_counts;
using traces::ServingCounts;
using List = std::vector<double>;

namespace {

const std::string run_keys =
    R"("num_prompts": 3, "request_rate": "inf", "max_concurrency": 2, "duration": 2.5, "completed": 3,)"
    R"( "total_input_tokens": 300, "total_output_tokens": 30, "output_throughput": 12.0, "mean_ttft_ms": 5.5,)"
    R"( "mean_tpot_ms": 7.25, "mean_itl_ms": 17.5)";

/// A run of vllm bench serve over the known rounds, with other texts for some of its values.
std::string vllm_result(const std::string& speculation) {
  return R"({"date": "20260101-000000", "backend": "vllm", "model_id": "m/big", )" + run_keys + speculation + "}";
}

std::string vllm_speculation(const tests::KnownTotals& totals) {
  std::vector<std::string> rates;
  for (const double count : totals.accepted_at) rates.push_back(fmt::format("{}", count / totals.rounds));
  return fmt::format(
      R"(, "spec_decode_acceptance_rate": {}, "spec_decode_acceptance_length": {}, "spec_decode_num_drafts": {},)"
      R"( "spec_decode_draft_tokens": {}, "spec_decode_accepted_tokens": {},)"
      R"( "spec_decode_per_position_acceptance_rates": [{}])",
      100 * totals.rate(), totals.mean_length(), totals.rounds, totals.drafted, totals.accepted,
      fmt::join(rates, ", "));
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("a vLLM bench result gives the run and the known rounds") {
  const auto totals = tests::totals_of(tests::known_requests());
  const CountsTaken taken = take_counts(traces::vllm_bench_format(), vllm_result(vllm_speculation(totals)));
  REQUIRE(taken.units.size() == 1);
  const ServingCounts& unit = taken.units[0];
  CHECK(unit.unit == traces::CountUnit::run);
  CHECK(unit.engine == "vllm");
  CHECK(unit.format == "vllm bench");
  CHECK(unit.line == 1);
  CHECK(unit.label("model_name") == "m/big");
  CHECK(unit.label("backend") == "vllm");
  CHECK(unit.rounds == totals.rounds);
  CHECK(unit.drafted == totals.drafted);
  CHECK(unit.accepted == totals.accepted);
  CHECK(unit.accepted_at == totals.accepted_at);
  CHECK(unit.from_rates);
  CHECK(unit.gamma == 3);
  CHECK(unit.shape == traces::DraftShape::chain);
  CHECK(!unit.rule);
  CHECK(!unit.emitted);
  REQUIRE(unit.bench);
  CHECK(unit.bench->max_concurrency == 2);
  CHECK(std::isinf(unit.bench->request_rate.value()));
  CHECK(unit.bench->num_prompts == 3);
  CHECK(unit.bench->completed == 3);
  CHECK(unit.bench->duration_s == 2.5);
  CHECK(unit.bench->total_input_tokens == 300);
  CHECK(unit.bench->total_output_tokens == 30);
  CHECK(unit.bench->output_throughput == 12);
  CHECK(unit.bench->mean_tpot_ms == 7.25);
  CHECK(unit.bench->mean_itl_ms == 17.5);
  CHECK(taken.warnings.empty());
}

TEST_CASE("SGLang's accept_length is counted back to the known rounds") {
  const auto totals = tests::totals_of(tests::known_requests());
  const std::string content = fmt::format(
      R"({{"backend": "sglang", "dataset_name": "random", "request_rate": Infinity, "max_concurrency": null,)"
      R"( "sharegpt_output_len": null, "duration": 2.5, "completed": 3, "total_output_tokens": {},)"
      R"( "output_throughput": 12.0, "mean_tpot_ms": 7.25, "accept_length": {}}})",
      totals.emitted() + 3, totals.mean_length());
  CHECK(recognises(traces::sglang_bench_format(), content));
  const std::string another = replaced(content, R"("duration": 2.5)", R"("duration": 2.75)");
  const CountsTaken taken = take_counts(traces::sglang_bench_format(), content + "\n" + another + "\n");
  REQUIRE(taken.units.size() == 2);
  CHECK(taken.units[1].line == 2);
  for (const ServingCounts& unit : taken.units) {
    CHECK(unit.engine == "sglang");
    CHECK(unit.rounds == totals.rounds);
    CHECK(unit.accepted == totals.accepted);
    CHECK(unit.emitted == totals.emitted());
    CHECK(!unit.drafted);
    CHECK(unit.from_rates);
    CHECK(unit.shape == traces::DraftShape::unknown);
    CHECK(std::isinf(unit.bench.value().request_rate.value()));
    CHECK(!unit.bench->max_concurrency);
  }
}

TEST_CASE("server arguments beside SGLang's result tell a chain from a tree") {
  const auto with = [](const std::string& arguments) {
    return take_counts(
               traces::sglang_bench_format(),
               R"({"completed": 1, "duration": 1, "total_output_tokens": 21, "accept_length": 2.0, )" + arguments + "}")
        .units.at(0);
  };
  const ServingCounts chain = with(
      R"("server_info": {"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4})");
  CHECK(chain.shape == traces::DraftShape::chain);
  CHECK(chain.gamma == 3);
  CHECK(!chain.verified_per_round);
  for (const char* arguments :
       {R"("speculative_num_steps": 3, "speculative_eagle_topk": 4, "speculative_num_draft_tokens": 8)",
        R"("server_args": {"speculative_num_steps": 3, "speculative_num_draft_tokens": 8})"}) {
    const ServingCounts tree = with(arguments);
    CHECK(tree.shape == traces::DraftShape::tree);
    CHECK(tree.gamma == 3);
    CHECK(tree.verified_per_round == 8);
  }
}

TEST_CASE("a result that names its draft has it as a label") {
  for (const std::string& named : std::vector<std::string>{
           R"("draft_model": "org/d")", R"("speculative_config": {"model": "org/d", "num_speculative_tokens": 3})",
           R"("server_info": {"speculative_draft_model_path": "org/d"})",
           R"("draft": "", "speculative_model": "org/d")"}) {
    const CountsTaken taken = take_counts(traces::vllm_bench_format(), "{" + run_keys + ", " + named + "}");
    CAPTURE(named);
    CHECK(taken.units.at(0).label("draft") == "org/d");
  }
  const CountsTaken taken =
      take_counts(traces::vllm_bench_format(), "{" + run_keys + R"(, "speculative_config": "x", "draft": 3})");
  CHECK(taken.units.at(0).label("draft").empty());
}

TEST_CASE("results without speculation are baselines, and unknown values are nothing") {
  const std::string plain = replaced(vllm_result(""), "17.5", "8.25");
  const CountsTaken vllm = take_counts(traces::vllm_bench_format(), plain);
  REQUIRE(vllm.units.size() == 1);
  CHECK(!vllm.units[0].rounds);
  CHECK(!vllm.units[0].accepted);
  CHECK(vllm.units[0].accepted_at.empty());
  CHECK(vllm.units[0].shape == traces::DraftShape::unknown);
  CHECK(vllm.units[0].bench.value().mean_tpot_ms == 7.25);
  const CountsTaken sglang = take_counts(
      traces::sglang_bench_format(),
      R"([{"completed": 3, "mean_tpot_ms": NaN, "accept_length": null}, {"completed": 4, "request_rate": 1.5}])");
  REQUIRE(sglang.units.size() == 2);
  CHECK(!sglang.units[0].rounds);
  CHECK(std::isnan(sglang.units[0].bench.value().mean_tpot_ms.value()));
  CHECK(!sglang.units[0].bench.value().request_rate);
  CHECK(sglang.units[1].bench.value().completed == 4);
  CHECK(sglang.units[1].bench.value().request_rate == 1.5);
  CHECK(sglang.warnings.empty());
}

TEST_CASE("a vLLM result without counts has the rounds that its chunks tell, from JSON and from what is printed") {
  // 27 tokens after the first of each request, in chunks of 17.5 / 7.25 tokens.
  const CountsTaken json = take_counts(traces::vllm_bench_format(), vllm_result(""));
  const CountsTaken printed = take_counts(traces::run_table_format(),
                                          "============ Serving Benchmark Result ============\n"
                                          "Successful requests: 3\nMaximum request concurrency: 2\n"
                                          "Total input tokens: 300\nTotal generated tokens: 30\n"
                                          "Output token throughput (tok/s): 12.0\n"
                                          "Mean TPOT (ms): 7.25\nMean ITL (ms): 17.5\n");
  for (const CountsTaken* taken : {&json, &printed}) {
    REQUIRE(taken->units.size() == 1);
    CHECK(taken->units[0].emitted == 27);
    CHECK(taken->units[0].rounds == 11);
    CHECK(taken->units[0].accepted == 16);
    CHECK_FALSE(taken->units[0].gamma);
    REQUIRE(taken->warnings.size() == 1);
    CHECK(taken->warnings.front().code == "counted_by_chunks");
  }
}

TEST_CASE("nothing of one run stays for the next") {
  const auto totals = tests::totals_of(tests::known_requests());
  const CountsTaken taken = take_counts(traces::vllm_bench_format(),
                                        vllm_result(vllm_speculation(totals)) + "\n" + R"({"completed": 1})" + "\n");
  REQUIRE(taken.units.size() == 2);
  CHECK(!taken.units[1].rounds);
  CHECK(!taken.units[1].gamma);
  CHECK(taken.units[1].accepted_at.empty());
  CHECK(taken.units[1].labels.empty());
  CHECK(!taken.units[1].from_rates);
  CHECK(!taken.units[1].bench.value().duration_s);
}

TEST_CASE("counts that a vLLM result leaves out are counted back from its rates where they say it") {
  const CountsTaken taken = take_counts(
      traces::vllm_bench_format(),
      vllm_result(
          R"(, "spec_decode_num_drafts": 12, "spec_decode_draft_tokens": 36, "spec_decode_acceptance_rate": 41.67)"));
  CHECK(taken.units.at(0).accepted == 15);
  CHECK(taken.units.at(0).gamma == 3);
  CHECK(taken.units.at(0).from_rates);
  CHECK(taken.warnings.empty());
  const CountsTaken by_length =
      take_counts(traces::vllm_bench_format(),
                  vllm_result(R"(, "spec_decode_num_drafts": 12, "spec_decode_acceptance_length": 2.25)"));
  CHECK(by_length.units.at(0).accepted == 15);
  CHECK(!by_length.units.at(0).gamma);
}

TEST_CASE("a rate that may be a percentage or a fraction is taken as a percentage with a warning") {
  const CountsTaken taken =
      take_counts(traces::vllm_bench_format(),
                  vllm_result(R"(, "spec_decode_draft_tokens": 3600, "spec_decode_acceptance_rate": 0.5)"));
  CHECK(taken.units.at(0).accepted == 18);
  REQUIRE(taken.warnings.size() == 1);
  CHECK(taken.warnings[0].code == "percent_taken_as_fraction");
  CHECK_THAT(taken.warnings[0].message,
             Contains("x.json:1: spec_decode_acceptance_rate is 0.5: taken as a percentage"));
}

TEST_CASE("a run that is there twice, equal in every figure, counts once, and one that differs in a digit does not") {
  const std::string run = replaced(vllm_result(""), "17.5", "8.25");
  const std::string again = replaced(run, R"("mean_tpot_ms": 7.25)", R"("mean_tpot_ms": 7.25000000000001)");
  const CountsTaken taken = take_counts(traces::vllm_bench_format(), run + "\n" + again + "\n" + run + "\n");
  CHECK(taken.units.size() == 2);
  REQUIRE(taken.warnings.size() == 1);
  CHECK(taken.warnings[0].code == "run_given_twice");
  CHECK_THAT(taken.warnings[0].message, Contains("result 3 of ") && Contains("x.json is result 1 of ") &&
                                            Contains("x.json again, equal in every figure: it counts once"));
}

TEST_CASE("vLLM results that contradict themselves are refused by key") {
  const auto totals = tests::totals_of(tests::known_requests());
  const std::string good = vllm_result(vllm_speculation(totals));
  const auto refusal = [&](const std::string& what, const std::string& by) {
    return refusal_of_counts(traces::vllm_bench_format(), replaced(good, what, by));
  };
  CHECK(refusal_of_counts(traces::vllm_bench_format(), good).empty());
  CHECK(refusal(R"("spec_decode_acceptance_rate": 41.6)", R"("spec_decode_acceptance_rate": 0.416)") ==
        "x.json:1: spec_decode_acceptance_rate is 0.416667, a fraction, but must be the percentage 41.6667 = 100 * "
        "spec_decode_accepted_tokens / spec_decode_draft_tokens");
  CHECK_THAT(refusal(R"("spec_decode_acceptance_rate": 41.6)", R"("spec_decode_acceptance_rate": 43.6)"),
             Contains("spec_decode_acceptance_rate is 43.6667, but must be the percentage 41.6667"));
  CHECK_THAT(refusal(R"("spec_decode_acceptance_rate": 41.6)", R"("spec_decode_acceptance_rate": 141.6)"),
             Contains("spec_decode_acceptance_rate is 141.667, but must be a percentage, in [0, 100]"));
  CHECK_THAT(refusal(R"("spec_decode_acceptance_length": 2.25)", R"("spec_decode_acceptance_length": 1.25)"),
             Contains("spec_decode_acceptance_length is 1.25, but must be 2.25 = 1 + 15 / 12"));
  CHECK_THAT(refusal(R"("spec_decode_acceptance_length": 2.25)", R"("spec_decode_acceptance_length": 0.25)"),
             Contains("spec_decode_acceptance_length is 0.25, but must be at least 1"));
  CHECK_THAT(refusal(R"("spec_decode_num_drafts": 12)", R"("spec_decode_num_drafts": -12)"),
             Contains("spec_decode_num_drafts is -12, but must be a count, an integer >= 0"));
  CHECK_THAT(refusal(R"("spec_decode_num_drafts": 12)", R"("spec_decode_num_drafts": 11)"),
             Contains("spec_decode_acceptance_length is 2.25, but must be 2.36364"));
  CHECK_THAT(refusal(R"("spec_decode_num_drafts": 12,)", ""),
             Contains("spec_decode_num_drafts is missing, but must be given beside spec_decode_acceptance_length"));
  CHECK_THAT(refusal("rates\": [0.58333", "rates\": [58.333"),
             Contains("spec_decode_per_position_acceptance_rates[0] is 58.333") &&
                 Contains("but must be a fraction of the drafts, in [0, 1], and no percentage"));
  CHECK_THAT(
      refusal("rates\": [0.58333", "rates\": [0.1, 0.58333"),
      Contains("spec_decode_per_position_acceptance_rates[1] is 0.58333") && Contains("but must be at most 0.1"));
  CHECK_THAT(refusal("rates\": [0.58333", "rates\": [0.98333"),
             Contains("spec_decode_per_position_acceptance_rates is 1.65 in sum, but must be 1.25"));
  CHECK_THAT(refusal("\"mean_tpot_ms\": 7.25", "\"mean_tpot_ms\": 0.00725"),
             Contains("mean_tpot_ms is 0.00725, but must be in milliseconds: with 12 output tokens a second only 8.7e-05 "
                      "requests would decode at a time"));
  CHECK_THAT(refusal("\"duration\": 2.5", "\"duration\": -2.5"),
             Contains("duration is -2.5, but must be a number >= 0"));
  CHECK_THAT(refusal("\"duration\": 2.5", "\"duration\": 0"),
             Contains("duration is 0, but must be above 0 where completed is 3"));
  CHECK_THAT(refusal("\"completed\": 3", "\"completed\": 3.5"),
             Contains("completed is 3.5, but must be a count, an integer >= 0"));
  CHECK_THAT(refusal_of_counts(traces::vllm_bench_format(), good.substr(0, good.size() - 20)), Contains("x.json:1: "));
  CHECK(refusal_of_counts(traces::vllm_bench_format(), " ") ==
        "x.json: file is empty, but must be the result of a benchmark run");
  CHECK_THAT(refusal_of_counts(traces::vllm_bench_format(), R"({"a": 1})"), Contains("the result of a benchmark run"));
  CHECK_THAT(refusal_of_counts(traces::sglang_bench_format(), R"({"completed": 1, "accept_length": 0.7})"),
             Contains("accept_length is 0.7, but must be at least 1"));
}

TEST_CASE("an accept_length over an unknown number of tokens gives no counts but a warning") {
  const CountsTaken taken = take_counts(traces::sglang_bench_format(), R"({"completed": 1, "accept_length": 2.5})");
  CHECK(!taken.units.at(0).rounds);
  CHECK(taken.warning_codes() == std::vector<std::string>{"accept_length_without_tokens"});
}

TEST_CASE("each benchmark's result is recognised as its own, and a response is neither's") {
  const auto totals = tests::totals_of(tests::known_requests());
  const std::string vllm = vllm_result(vllm_speculation(totals));
  const std::string sglang = "{" + run_keys + R"(, "accept_length": 2.5})";
  CHECK(recognises(traces::vllm_bench_format(), vllm));
  CHECK(!recognises(traces::sglang_bench_format(), vllm));
  CHECK(recognises(traces::sglang_bench_format(), sglang));
  CHECK(recognises(traces::vllm_bench_format(), vllm_result("")));
  CHECK(!recognises(traces::sglang_bench_format(), vllm_result("")));
  const std::string response = R"({"choices": [{"logprobs": {"token_logprobs": [-0.5]}}], "usage": {}})";
  CHECK(!recognises(traces::vllm_bench_format(), response));
  CHECK(!recognises(traces::sglang_bench_format(), response));
}

TEST_CASE("lists of every token's time before the counts are passed over, however long") {
  std::string times = "[[0.0112345678901234";
  for (int i = 0; i < 2000000; ++i) times += ", 0.0112345678901234";
  times += "]]";
  const auto totals = tests::totals_of(tests::known_requests());
  const CountsTaken taken =
      take_counts(traces::vllm_bench_format(), vllm_result(R"(, "itls": )" + times + vllm_speculation(totals)));
  CHECK(taken.units.at(0).accepted == totals.accepted);
}

TEST_CASE("a run's totals tell its steps, and by step a miss rejects a draft of gamma tokens") {
  const auto run = [](const char* output_tokens, double drafts) {
    return take_counts(
               traces::vllm_bench_format(),
               replaced(vllm_result(fmt::format(R"(, "spec_decode_num_drafts": {}, "spec_decode_draft_tokens": 20,)"
                                                R"( "spec_decode_accepted_tokens": 12,)"
                                                R"( "spec_decode_per_position_acceptance_rates": [0.8, 0.4, 0.0])",
                                                drafts)),
                        R"("total_output_tokens": 30)", fmt::format(R"("total_output_tokens": {})", output_tokens)))
        .units.at(0);
  };
  // 3 first tokens, 12 accepted ones, and one for each step.
  const ServingCounts counts = run("55", 10);
  CHECK(traces::steps_of(counts) == 40.0);
  const ServingCounts by_step = traces::counted_by_step(counts);
  CHECK(by_step.gamma == 3);
  CHECK(by_step.rounds == 40.0);
  CHECK(by_step.drafted == 120.0);
  CHECK(by_step.emitted == 52.0);
  CHECK(by_step.accepted == 12.0);
  CHECK(by_step.accepted_at == List{8, 4, 0});
  // The end of an answer may cut off accepted tokens, so that fewer steps seem to be there than rounds.
  CHECK(traces::steps_of(run("22", 10)) == 10.0);
  ServingCounts plain = counts;
  plain.rounds.reset();
  CHECK_FALSE(traces::steps_of(plain));
  CHECK(traces::counted_by_step(plain) == plain);
  ServingCounts untold = counts;
  untold.bench->completed.reset();
  CHECK_FALSE(traces::steps_of(untold));
  CHECK(traces::counted_by_step(untold).rounds == 10.0);
  ServingCounts tree = counts;
  tree.shape = traces::DraftShape::tree;
  CHECK(traces::counted_by_step(tree) == tree);

  ServingCounts histograms;
  histograms.rounds = 10;
  histograms.steps = 25;
  histograms.accepted = 9;
  histograms.rounds_by_accepted_and_drafted = {{1, {2, 3}}, {4, {1, 2, 2, 0, 0}}};
  const ServingCounts joined = traces::counted_by_step(histograms);
  CHECK(joined.gamma == 4);
  CHECK(joined.rounds_by_accepted == List{18, 5, 2, 0, 0});
  CHECK(joined.rounds_by_accepted_and_drafted.empty());
}
