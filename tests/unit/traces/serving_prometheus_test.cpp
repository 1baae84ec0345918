#include <fmt/format.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/counts_reading.hpp"
#include "tests/support/source_dir.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using tests::AllCounts;
using tests::counts_of;
using tests::counts_refusal;
using traces::CountUnit;
using traces::DraftShape;
using Counts = std::vector<double>;

namespace {

/// One engine's series, `end` behind each value (a time).
std::string vllm(int rounds, int drafted, int accepted, const std::vector<int>& at = {}, const std::string& end = "",
                 const std::string& engine = "0", const std::string& prefix = "vllm:") {
  const std::string labels = fmt::format("engine=\"{}\",model_name=\"m\"", engine);
  const auto line = [&](const char* name, const std::string& more, int value) {
    return fmt::format("{}spec_decode_num_{}_total{{{}{}}} {}.0{}\n", prefix, name, labels, more, value, end);
  };
  std::string text =
      line("drafts", "", rounds) + line("draft_tokens", "", drafted) + line("accepted_tokens", "", accepted);
  for (std::size_t j = 0; j < at.size(); ++j) {
    text += line("accepted_tokens_per_pos", fmt::format(",position=\"{}\"", j), at[j]);
  }
  return text;
}

}  // namespace

TEST_CASE("the sample of a vLLM scrape is read") {
  const AllCounts counts = counts_of({R"(# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 22.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 18.0
vllm:spec_decode_num_drafts_created{engine="0",model_name="m"} 1.756736798733569e+09
)"});
  REQUIRE(counts.units.size() == 1);
  const traces::ServingCounts& unit = counts.units[0];
  CHECK(unit.engine == "vllm");
  CHECK(unit.format == "Prometheus text");
  CHECK(unit.unit == CountUnit::total);
  CHECK(unit.line == 2);
  CHECK(unit.label("engine") == "0");
  CHECK(unit.label("model_name") == "m");
  CHECK(unit.labels.size() == 2);
  CHECK(unit.rounds == 22);
  CHECK(unit.accepted_at == Counts{18});
  CHECK_FALSE(unit.drafted);
  CHECK_FALSE(unit.accepted);
  CHECK_FALSE(unit.rule);
  CHECK_FALSE(unit.end_s);
  CHECK(counts.warnings.empty());
}

TEST_CASE("one scrape gives the totals of each set of labels, idle ones left out") {
  const AllCounts counts = counts_of(
      {vllm(22, 66, 30, {18, 9, 3}) + vllm(5, 15, 2, {1, 1, 0}, "", "1") + vllm(0, 0, 0, {0, 0, 0}, "", "2")});
  REQUIRE(counts.units.size() == 2);
  CHECK(counts.units[0].drafted == 66);
  CHECK(counts.units[0].accepted == 30);
  CHECK(counts.units[0].accepted_at == Counts{18, 9, 3});
  CHECK(counts.units[0].gamma == 3);
  CHECK(counts.units[0].shape == DraftShape::chain);
  CHECK(counts.units[1].label("engine") == "1");
  CHECK(counts.units[1].rounds == 5);
}

TEST_CASE("several scrapes give the windows between them, those without a round left out") {
  const AllCounts counts = counts_of({vllm(22, 66, 30, {18, 9, 3}), vllm(32, 96, 45, {26, 13, 6}),
                                      vllm(32, 96, 45, {26, 13, 6}), vllm(33, 99, 45, {26, 13, 6})});
  REQUIRE(counts.units.size() == 2);
  CHECK(counts.units[0].unit == CountUnit::window);
  CHECK(counts.units[0].file.filename() == "2.txt");
  CHECK(counts.units[0].rounds == 10);
  CHECK(counts.units[0].drafted == 30);
  CHECK(counts.units[0].accepted == 15);
  CHECK(counts.units[0].accepted_at == Counts{8, 4, 3});
  CHECK(counts.units[1].rounds == 1);
  CHECK(counts.units[1].accepted == 0);
  CHECK(counts.units[1].accepted_at == Counts{0, 0, 0});
}

TEST_CASE("a counter that went down is a restart of its set of labels alone") {
  const auto other = [](int rounds, int drafted, int accepted) { return vllm(rounds, drafted, accepted, {}, "", "1"); };
  const AllCounts counts = counts_of({vllm(22, 66, 30) + other(22, 66, 30), vllm(23, 4, 2) + other(25, 75, 33),
                                      vllm(33, 34, 12) + other(35, 105, 43)});
  REQUIRE(counts.units.size() == 3);
  CHECK(counts.units[0].rounds == 10);
  CHECK(counts.units[0].drafted == 30);
  CHECK(counts.units[1].rounds == 3);
  CHECK(counts.units[2].rounds == 10);
  REQUIRE(counts.warnings.size() == 1);
  CHECK(counts.warnings[0].code == "counter_reset");
  CHECK_THAT(counts.warnings[0].message, Contains("went down from 66 to 4: a restart; the window is left out"));
  // Where no window is left.
  CHECK_THAT(counts_refusal({vllm(22, 66, 30), vllm(23, 4, 2)}),
             Contains("is 4, but must be at least 66, as by") && Contains("the server was restarted"));
}

TEST_CASE("scrapes in one file are told apart by their times") {
  const AllCounts counts = counts_of({vllm(32, 96, 45, {}, " 1756736808000") + vllm(22, 66, 30, {}, " 1756736798500")});
  REQUIRE(counts.units.size() == 1);
  CHECK(counts.units[0].unit == CountUnit::window);
  CHECK(counts.units[0].rounds == 10);
  CHECK(counts.units[0].begin_s == 1756736798.5);
  CHECK(counts.units[0].end_s == 1756736808.0);
  CHECK_THAT(counts_refusal({vllm(22, 66, 30, {}, " 1000") + vllm(22, 66, 30, {}, " 1000")}),
             Contains("given twice with the same labels"));
  // OpenMetrics counts seconds.
  CHECK(counts_of({vllm(22, 66, 30, {}, " 1756736808") + "# EOF\n"}).units[0].end_s == 1756736808.0);
}

TEST_CASE("a scrape of more sets of labels than are compared is refused while it is read") {
  std::string text;
  for (int i = 0; i <= 20000; ++i) text += fmt::format("vllm:spec_decode_num_drafts_total{{model_name=\"m{}\"}} 1\n", i);
  CHECK_THAT(counts_refusal({text}), Contains(":20001: vllm:spec_decode_num_drafts_total is under more than 20000 sets"));
}

TEST_CASE("labels may hold escaped characters, values exponents, and other lines anything") {
  const AllCounts counts = counts_of({R"(# HELP x y
other{le="+Inf"} NaN
vllm:spec_decode_num_drafts_total{ model_name = "a\\b\"c\nd" , engine="é,}" , } 1.234567e+06 # {trace="1"} 2
sglang:spec_accept_length{x="1"} NaN
)"});
  REQUIRE(counts.units.size() == 1);
  CHECK(counts.units[0].rounds == 1234567);
  CHECK(counts.units[0].label("model_name") == "a\\b\"c\nd");
  CHECK(counts.units[0].label("engine") == "é,}");
}

TEST_CASE("llama.cpp exports the same series, without labels") {
  const AllCounts counts = counts_of({R"(llamacpp:spec_decode_num_draft_tokens_total 1000
llamacpp:spec_decode_num_accepted_tokens_total 300
llamacpp:spec_decode_num_drafts_total 200
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 180
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="1"} 120
)"});
  REQUIRE(counts.units.size() == 1);
  CHECK(counts.units[0].engine == "llama.cpp");
  CHECK(counts.units[0].rule == traces::AcceptanceRule::greedy_draft);
  CHECK(counts.units[0].labels.empty());
  CHECK(counts.units[0].rounds == 200);
  CHECK(counts.units[0].drafted == 1000);
  CHECK(counts.units[0].accepted_at == Counts{180, 120});
  CHECK_FALSE(counts.units[0].gamma);  // 5 drafted tokens a round, of which the first two were accepted at times
}

TEST_CASE("LMDeploy exports the same series, by rank") {
  const AllCounts counts =
      AllCounts({std::filesystem::path(tests::source_dir()) / "traces/samples/serving/lmdeploy.prom"});
  REQUIRE(counts.units.size() == 2);
  CHECK(counts.units[0].engine == "lmdeploy");
  CHECK(counts.units[0].label("model_name") == "internlm3");
  CHECK(counts.units[1].label("engine") == "1");
  CHECK(counts.units[0].rounds == 800);
  CHECK(counts.units[0].drafted == 2400);
  CHECK(counts.units[0].accepted == 1320);
  CHECK(counts.units[0].accepted_at == Counts{640, 440, 240});
  CHECK(counts.units[0].gamma == 3);
  CHECK(counts.units[0].shape == DraftShape::chain);
  CHECK_THAT(counts_refusal({"lmdeploy:spec_decode_num_accepted_tokens_per_pos_total{position=\"1\"} 1\n"}),
             Contains("is missing at position 0"));
}

TEST_CASE("Rapid-MLX counts by depth from 1, and only depths that it reached") {
  const AllCounts counts =
      AllCounts({std::filesystem::path(tests::source_dir()) / "traces/samples/serving/rapid_mlx.prom"});
  REQUIRE(counts.units.size() == 1);
  CHECK(counts.units[0].engine == "rapid-mlx");
  CHECK(counts.units[0].label("family") == "qwen3.8-27b-4bit");
  CHECK(counts.units[0].rounds == 500);
  CHECK(counts.units[0].drafted == 1304);
  CHECK(counts.units[0].accepted == 1111);
  CHECK(counts.units[0].drafted_at == Counts{500, 450, 354});
  CHECK(counts.units[0].accepted_at == Counts{440, 371, 300});
  CHECK(counts.units[0].gamma == 3);
  CHECK(counts.units[0].shape == DraftShape::chain);
  const std::string rounds = "rapid_mlx_spec_decode_verify_calls_total 9\n";
  CHECK(counts_of({rounds + "rapid_mlx_spec_decode_accepted_by_depth_total{depth=\"2\"} 4\n"}).units[0].accepted_at ==
        Counts{0, 4});
  CHECK(
      counts_refusal({rounds + "rapid_mlx_spec_decode_accepted_by_depth_total{depth=\"0\"} 4\n"}) ==
      "1.txt:2: rapid_mlx_spec_decode_accepted_by_depth_total is of depth \"0\", but must be of a position, an integer "
      "in [1, 1024]");
}

TEST_CASE("SGLang's rounds are joined with the tokens that another process counts") {
  const std::string common = "model_name=\"m\"";
  const auto scrape = [&](int calls, int tokens, double length) {
    return fmt::format(
        "sglang:spec_verify_calls_total{{engine_type=\"unified\",{0},tp_rank=\"0\"}} {1}\n"
        "sglang:spec_verify_calls_total{{engine_type=\"unified\",{0},tp_rank=\"1\"}} {1}\n"
        "sglang:spec_verify_calls_total{{engine_type=\"draft\",{0},tp_rank=\"0\"}} 77777\n"
        "sglang:spec_accept_length{{engine_type=\"unified\",{0},tp_rank=\"0\"}} {3}\n"
        "sglang:spec_accept_rate{{engine_type=\"unified\",{0},tp_rank=\"0\"}} 0.9\n"
        "sglang:generation_tokens_total{{{0}}} {2}\n",
        common, calls, tokens, length);
  };
  const AllCounts counts = counts_of({scrape(100, 300, 2.85), scrape(150, 420, 2.5)});
  REQUIRE(counts.units.size() == 1);
  const traces::ServingCounts& unit = counts.units[0];
  CHECK(unit.engine == "sglang");
  CHECK(unit.label("tp_rank") == "0");
  CHECK(unit.rounds == 50);
  CHECK(unit.emitted == 120);
  CHECK_FALSE(unit.accepted);
  CHECK_FALSE(unit.tokens_per_round);
  CHECK(unit.shape == DraftShape::unknown);
  CHECK(counts.warns("rank_repeats_ignored"));
  CHECK(counts.warns("first_tokens_included"));
}

TEST_CASE(
    "SGLang's gauges say how deep the drafts of its rounds go, and tokens that were streamed or not are all its own") {
  const auto scrape = [](int calls, int streamed, int whole, int steps, int verified, double length = 2.5) {
    return fmt::format(
        "sglang:spec_num_steps{{model_name=\"m\",tp_rank=\"0\"}} {3}\n"
        "sglang:spec_num_draft_tokens{{model_name=\"m\",tp_rank=\"0\"}} {4}\n"
        "sglang:spec_accept_length{{model_name=\"m\",tp_rank=\"0\"}} {5}\n"
        "sglang:spec_verify_calls_total{{model_name=\"m\"}} {0}\n"
        "sglang:generation_tokens_total{{is_streaming=\"true\",model_name=\"m\"}} {1}\n"
        "sglang:generation_tokens_total{{is_streaming=\"false\",model_name=\"m\"}} {2}\n",
        calls, streamed, whole, steps, verified, length);
  };
  const auto window = [](const std::vector<traces::ServingCounts>& units) {
    REQUIRE(units.size() == 1);
    return units[0];
  };
  const AllCounts chain = counts_of({scrape(100, 200, 60, 3, 4), scrape(150, 300, 80, 3, 4)});
  CHECK(window(chain.units).rounds == 50);
  CHECK(window(chain.units).emitted == 120);
  CHECK(window(chain.units).gamma == 3);
  CHECK(window(chain.units).shape == DraftShape::chain);
  CHECK_FALSE(chain.warns("mean_without_counts"));
  CHECK_FALSE(chain.warns("draft_length_varies"));

  const AllCounts tree = counts_of({scrape(100, 200, 60, 3, 8)});
  CHECK(window(tree.units).shape == DraftShape::tree);
  CHECK(window(tree.units).gamma == 3);
  CHECK(window(tree.units).verified_per_round == 8);

  // An adaptive server, whose length of now is not that of the window.
  const AllCounts adaptive = counts_of({scrape(100, 200, 60, 3, 4), scrape(150, 300, 80, 1, 2)});
  CHECK_FALSE(window(adaptive.units).gamma);
  CHECK(adaptive.warns("draft_length_varies"));

  // Blocks that are drafted at once, or trees of depth 1.
  const AllCounts block = counts_of({scrape(100, 200, 60, 1, 8)});
  CHECK_FALSE(window(block.units).gamma);
  CHECK(window(block.units).shape == DraftShape::unknown);

  CHECK(counts_refusal({scrape(100, 200, 60, 3, 4) + "sglang:spec_num_steps{model_name=\"m\"} 2.5\n"}) ==
        "1.txt:7: sglang:spec_num_steps is 2.5, but must be a number of tokens, an integer in [0, 1024]");
}

TEST_CASE("the times between vLLM's tokens are read where they are wanted, as the difference of two scrapes") {
  const auto scrape = [](int within, int all, double seconds, int iterations, int requests) {
    return fmt::format(
        "vllm:inter_token_latency_seconds_bucket{{engine=\"0\",le=\"0.01\"}} {}\n"
        "vllm:inter_token_latency_seconds_bucket{{engine=\"0\",le=\"+Inf\"}} {}\n"
        "vllm:inter_token_latency_seconds_count{{engine=\"0\"}} {}\n"
        "vllm:inter_token_latency_seconds_sum{{engine=\"0\"}} {}\n"
        "vllm:iteration_tokens_total_count{{engine=\"0\"}} {}\n"
        "vllm:time_to_first_token_seconds_count{{engine=\"0\"}} {}\n",
        within, all, all, seconds, iterations, requests);
  };
  const std::string drafts = "vllm:spec_decode_num_drafts_total{engine=\"0\"} 5\n";
  const AllCounts read = counts_of({scrape(10, 12, 0.5, 6, 1), scrape(40, 52, 2.25, 16, 4)}, true);
  REQUIRE(read.units.size() == 1);
  REQUIRE(read.units[0].round_times);
  const traces::RoundTimes& times = *read.units[0].round_times;
  CHECK(times.count == 40);
  CHECK(times.seconds == 1.75);
  CHECK(times.iterations == 10);
  CHECK(times.first_tokens == 3);
  CHECK(times.up_to == std::map<double, double>{{0.01, 30}, {std::numeric_limits<double>::infinity(), 40}});
  // Without need of times they are no counts of speculation, and a server that ceases to draft is another one.
  CHECK_THAT(counts_refusal({scrape(10, 12, 0.5, 6, 1)}), Contains("metrics without speculative decoding"));
  CHECK_FALSE(counts_of({scrape(10, 12, 0.5, 6, 1) + drafts}).units[0].round_times);
  // Their number is that of all steps, 12, of which 5 drafted.
  CHECK(counts_of({scrape(10, 12, 0.5, 6, 1) + drafts}).units[0].steps == 12);
  CHECK_FALSE(read.units[0].steps);
  CHECK(counts_of({scrape(10, 12, 0.5, 6, 1) + drafts, scrape(40, 52, 2.25, 16, 4), scrape(50, 62, 2.3, 19, 4)}, true)
            .units.size() == 1);
  // 30 times of at most 10 ms and 10 longer ones do not take 1.75 s in milliseconds, nor less than 10 times 10 ms.
  const auto message = [&](double sum) {
    return counts_refusal({scrape(30, 30, 0.2, 6, 1) + drafts, scrape(60, 60, sum, 16, 4) + drafts}, true);
  };
  CHECK(message(200.2) ==
        "2.txt:4: vllm:inter_token_latency_seconds_sum since the scrape before is 200, but must be between 0 and 0.3, "
        "which the buckets of 30 times allow");
  CHECK_THAT(counts_refusal({scrape(10, 12, 0.01, 6, 1) + drafts}, true),
             Contains("sum is 0.01, but must be between 0.02 and inf"));
  CHECK_THAT(
      counts_refusal({drafts + "vllm:inter_token_latency_seconds_bucket{le=\"soon\"} 3\n"}),
      Contains("1.txt:2: vllm:inter_token_latency_seconds_bucket is of le \"soon\", but must be of an edge above 0"));
  CHECK_THAT(counts_refusal({drafts + "vllm:inter_token_latency_seconds_sum -1\n"}),
             Contains("1.txt:2: vllm:inter_token_latency_seconds_sum is -1, but must be a sum of seconds"));
}

TEST_CASE("two scrapes that SGLang's collectors wrote give its rounds, all its tokens and its gamma") {
  const std::filesystem::path folder = tests::source_dir() + "/traces/samples/serving";
  const AllCounts counts({folder / "sglang_before.prom", folder / "sglang_after.prom"});
  REQUIRE(counts.units.size() == 1);
  CHECK(counts.units[0].gamma == 3);
  CHECK(counts.units[0].shape == DraftShape::chain);
  // Differences of the two files' series, those of tokens in their sum.
  CHECK(counts.units[0].rounds == 11798);
  CHECK(counts.units[0].emitted == 29103);
  CHECK_FALSE(counts.warns("rank_repeats_ignored"));
}

TEST_CASE("schedulers of SGLang that draft differently have no length in common") {
  const auto steps = [](int rank, int length) {
    return fmt::format("sglang:spec_num_steps{{dp_rank=\"{}\",model_name=\"m\"}} {}\n", rank, length);
  };
  const std::string counters =
      "sglang:spec_verify_calls_total{model_name=\"m\"} 100\nsglang:generation_tokens_total{model_name=\"m\"} 250\n";
  const AllCounts equal = counts_of({counters + steps(0, 3) + steps(1, 3)});
  REQUIRE(equal.units.size() == 1);
  CHECK(equal.units[0].gamma == 3);
  const AllCounts different = counts_of({counters + steps(0, 3) + steps(1, 5)});
  REQUIRE(different.units.size() == 1);
  CHECK_FALSE(different.units[0].gamma);
  CHECK(different.warns("draft_length_varies"));
}

TEST_CASE("SGLang's tokens of several groups of ranks are joined with none") {
  const AllCounts counts = counts_of({R"(sglang:spec_verify_calls_total{dp_rank="0",model_name="m"} 10
sglang:spec_verify_calls_total{dp_rank="1",model_name="m"} 20
sglang:generation_tokens_total{model_name="m"} 80
)"});
  REQUIRE(counts.units.size() == 2);
  CHECK_FALSE(counts.units[0].emitted);
  CHECK(counts.warns("tokens_of_several_series"));
}

TEST_CASE("a gauge alone is a mean without counts") {
  const AllCounts counts = counts_of({"sglang:spec_accept_length{tp_rank=\"0\"} 2.85\nsglang:spec_accept_rate 0.6\n"});
  REQUIRE(counts.units.size() == 1);
  CHECK(counts.units[0].tokens_per_round == 2.85);
  CHECK(counts.units[0].from_rates);
  CHECK_FALSE(counts.units[0].rounds);
  CHECK(counts.warns("mean_without_counts"));
  CHECK(counts_refusal({"sglang:spec_accept_length 0.62\n"}) ==
        "1.txt:1: sglang:spec_accept_length is 0.62, but must be a mean of tokens per round, in [1, 1024]");
}

TEST_CASE(
    "TensorRT-LLM's counters under different labels are joined, or left out where it is not known whose they are") {
  const auto positions = [](const std::string& labels) {
    return fmt::format(
        "trtllm_spec_decode_drafted_tokens_total{{{0}token_position=\"0\"}} 20\n"
        "trtllm_spec_decode_drafted_tokens_total{{{0}token_position=\"1\"}} 18\n"
        "trtllm_spec_decode_accepted_tokens_total{{{0}token_position=\"0\"}} 12\n",
        labels);
  };
  const std::string totals =
      "trtllm_spec_decode_num_draft_tokens_total{model_name=\"m\"} 38\n"
      "trtllm_spec_decode_num_accepted_tokens_total{engine_type=\"trt\"} 12\n";
  const AllCounts joined = counts_of({positions("rank=\"0\",") + totals});
  REQUIRE(joined.units.size() == 1);
  CHECK(joined.warnings.empty());
  CHECK(joined.units[0].rounds == 20);
  CHECK(joined.units[0].drafted == 38);
  CHECK(joined.units[0].accepted == 12);
  CHECK(joined.units[0].shape == DraftShape::chain);
  CHECK(joined.units[0].label("model_name") == "m");
  CHECK(joined.units[0].label("rank") == "0");

  const AllCounts two = counts_of({positions("rank=\"0\",") + positions("rank=\"1\",") + totals});
  REQUIRE(two.units.size() == 2);
  CHECK(two.units[1].rounds == 20);
  CHECK_FALSE(two.units[1].drafted);
  CHECK(two.warns("series_of_unknown_labels"));
  CHECK_THAT(
      two.warnings.at(0).message,
      EndsWith("1.txt:7: what {model_name=\"m\"} counts may be the rounds of {rank=\"0\"} or others; it is left out"));

  // Totals of two servers, and positions that may be of either.
  const std::string other = "trtllm_spec_decode_num_draft_tokens_total{model_name=\"n\"} 38\n";
  const AllCounts either = counts_of({positions("") + totals + other});
  CHECK(either.units.size() == 1);
  CHECK_FALSE(either.units[0].drafted);
  CHECK(either.units[0].label("engine_type") == "trt");
  // Labels that contradict each other are of different servers.
  CHECK(counts_of({positions("model_name=\"m\",") + other}).units.size() == 2);
  const AllCounts plain = counts_of({totals});
  REQUIRE(plain.units.size() == 1);
  CHECK(plain.units[0].accepted == 12);
}

TEST_CASE("TensorRT-LLM says what was drafted at each position") {
  const std::string positions = R"(trtllm_spec_decode_drafted_tokens_total{token_position="0"} 20
trtllm_spec_decode_drafted_tokens_total{token_position="1"} 18
trtllm_spec_decode_drafted_tokens_total{token_position="2"} 10
trtllm_spec_decode_accepted_tokens_total{token_position="0"} 12
trtllm_spec_decode_accepted_tokens_total{token_position="1"} 5
)";
  const AllCounts counts = counts_of({positions + "trtllm_spec_decode_num_draft_tokens_total 48\n"
                                                  "trtllm_spec_decode_num_accepted_tokens_total 17\n"});
  REQUIRE(counts.units.size() == 1);
  const traces::ServingCounts& unit = counts.units[0];
  CHECK(unit.engine == "tensorrt-llm");
  CHECK(unit.rounds == 20);
  CHECK(unit.drafted == 48);
  CHECK(unit.accepted == 17);
  CHECK(unit.drafted_at == Counts{20, 18, 10});
  CHECK(unit.accepted_at == Counts{12, 5, 0});
  CHECK(unit.gamma == 3);
  CHECK(unit.shape == DraftShape::chain);
  const AllCounts tree = counts_of({positions + "trtllm_spec_decode_num_draft_tokens_total 480\n"});
  CHECK(tree.units[0].shape == DraftShape::tree);
  CHECK(counts_of({positions}).units[0].shape == DraftShape::unknown);
}

TEST_CASE("a position without a series before others is refused") {
  CHECK_THAT(counts_refusal({"vllm:spec_decode_num_drafts_total 3\n"
                             "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"1\"} 1\n"}),
             Contains("is missing at position 0, but must be given for all positions up to 1"));
}

TEST_CASE("a scrape from which nothing follows is refused") {
  CHECK_THAT(counts_refusal({"# TYPE up gauge\nup 1\n"}),
             StartsWith("1.txt: content is metrics without speculative decoding (1 other samples), but must be metrics "
                        "with series such as vllm:spec_decode_num_drafts_total"));
  CHECK(counts_refusal({vllm(0, 0, 0, {0, 0})}) ==
        "1.txt: every counter of speculative decoding is 0, but must be above 0: nothing was drafted yet");
  CHECK(
      counts_refusal({vllm(3, 9, 1), vllm(3, 9, 1)}) ==
      "1.txt: every counter of speculative decoding is the same in all scrapes, but must be higher in a later scrape: "
      "nothing was drafted in between");
}

TEST_CASE("a scrape that is cut off is refused, within a number and before the first one") {
  const std::string whole = vllm(30, 90, 41), cut = vllm(3000, 9000, 4100);
  // "4100.0" without its last digits would be a smaller number.
  CHECK(counts_refusal({whole, cut.substr(0, cut.size() - 5)}) ==
        "2.txt:3: vllm:spec_decode_num_accepted_tokens_total is on a last line that no newline ends, but must be on a "
        "whole line: the file is cut off");
  CHECK(counts_refusal({whole, "# HELP x y\n"}) == "2.txt: number of samples is 0, but must be 1 or more");
  CHECK(counts_of({whole + "# EOF"}).units[0].rounds == 30);
}

TEST_CASE("values that no counter can have are refused") {
  for (const char* value : {"-1", "1.5", "NaN", "+Inf", "-Inf", "1e300", "1e999", "9007199254740994"}) {
    CAPTURE(value);
    const std::string message = counts_refusal({fmt::format("vllm:spec_decode_num_drafts_total {}\n", value)});
    CHECK_THAT(message, StartsWith("1.txt:1: vllm:spec_decode_num_drafts_total is "));
    CHECK_THAT(message,
               Contains(", but must be the value of a counter, an integer in [0, 2^53] (and no rate() of it)"));
  }
}

TEST_CASE("hostile lines of a scrape are refused by line and name") {
  const std::string good = "vllm:spec_decode_num_drafts_total 3\n";
  const std::string name = "vllm:spec_decode_num_draft_tokens_total";
  const auto refusal = [&](const std::string& rest) { return counts_refusal({good + name + rest}); };
  CHECK(refusal("{engine=\"0\"") ==
        "1.txt:2: " + name + " is cut off in its labels, but must be followed by labels NAME=\"VALUE\", ...");
  CHECK(refusal("{engine=\"0") == "1.txt:2: " + name + " is cut off in a label, but must be complete");
  CHECK(refusal("{engine=\"0\"}") ==
        "1.txt:2: " + name + " is cut off before its value, but must be of a number as value");
  CHECK(refusal("{engine=\"0\"} x") == "1.txt:2: " + name + " is of value x, but must be of a number as value");
  CHECK(refusal(" 1 x") == "1.txt:2: " + name + " is of time x, but must be of a time in milliseconds");
  CHECK(refusal(" 1 2 3") == "1.txt:2: " + name + " is followed by 3, but must be followed by a value and a time");
  CHECK(refusal("{engine=\"\xff\"} 1") ==
        "1.txt:2: " + name + " is of a label \"\\xff\", but must be of labels in UTF-8");
  CHECK(refusal("{a=\"0\",a=\"1\"} 1") ==
        "1.txt:2: " + name + " is of two labels a, but must be of one label of each name");
  CHECK(refusal("{=} 1") ==
        "1.txt:2: " + name + " is going on with =} 1, but must be followed by labels NAME=\"VALUE\", ...");
  CHECK(refusal(" 1\n\xff\xfe\n") ==
        "1.txt:3: line is \\xff\\xfe, but must be a sample `NAME{LABELS} VALUE` or a comment");
  CHECK(counts_refusal({"vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"99999999999\"} 1\n"}) ==
        "1.txt:1: vllm:spec_decode_num_accepted_tokens_per_pos_total is of position \"99999999999\", but must be of a "
        "position, an integer in [0, 1023]");
  CHECK_THAT(counts_refusal({"vllm:spec_decode_num_accepted_tokens_per_pos_total 1\n"}),
             Contains("is without the label position, but must be of a position in the draft"));
}

TEST_CASE("a log that begins with a name and a number is no scrape") {
  const std::string log =
      "build: 4567 (abcdef) with cc 12\n"
      "draft acceptance rate = 0.57576 (  171 accepted /   297 generated)\n";
  CHECK(counts_of({log}).units.at(0).format == "llama.cpp server log");
  CHECK(counts_of({"# scraped by hand\n\n" + vllm(22, 66, 30)}).units.at(0).format == "Prometheus text");
}

TEST_CASE("series of one scrape among several are totals, with a warning") {
  const AllCounts counts = counts_of({vllm(22, 66, 30), vllm(32, 96, 45) + vllm(7, 21, 9, {}, "", "1")});
  REQUIRE(counts.units.size() == 2);
  CHECK(counts.units[1].unit == CountUnit::total);
  CHECK(counts.units[1].rounds == 7);
  CHECK(counts.warns("series_in_one_scrape"));
}

TEST_CASE("a scrape that lacks what the one before it had is cut off") {
  CHECK_THAT(counts_refusal({vllm(22, 66, 30) + vllm(7, 21, 9, {}, "", "1"), vllm(32, 96, 45)}),
             Contains("missing, but must be given") && Contains("the file may be cut off"));
  const std::string whole = vllm(32, 96, 45);
  CHECK_THAT(counts_refusal({vllm(22, 66, 30), whole.substr(0, whole.find('\n') + 1)}), Contains("is missing, but must be given"));
}

TEST_CASE("a gauge beside counters is another figure of what they say") {
  const AllCounts counts = counts_of({"sglang:spec_verify_calls_total 100\nsglang:generation_tokens_total 300\n"
                                      "sglang:spec_accept_length 2\n"});
  REQUIRE(counts.units.size() == 1);
  REQUIRE(counts.units[0].stated.size() == 1);
  CHECK(counts.units[0].stated[0].quantity == "tokens per step");
  CHECK(counts.units[0].stated[0].low < 2);
  CHECK(counts.units[0].stated[0].high == 3);
}
