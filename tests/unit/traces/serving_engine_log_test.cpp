#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/counts_reading.hpp"
#include "tests/support/source_dir.hpp"
#include "traces/serving/counts_from_rates.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using tests::AllCounts;
using tests::counts_of;
using tests::counts_refusal;
using traces::AcceptanceRule;
using traces::CountUnit;
using traces::DraftShape;
using Counts = std::vector<double>;

namespace {

const std::string vllm_counts =
    "(APIServer pid=1) INFO 05-30 07:49:21 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 3.07, "
    "Accepted "
    "throughput: 1.05 tokens/s, Drafted throughput: 1.51 tokens/s, Accepted: 141 tokens, Drafted: 204 tokens, "
    "Per-position acceptance rate: 0.897, 0.676, 0.500, Avg Draft acceptance rate: 69.1%\n";
const std::string vllm_engine =
    "(APIServer pid=1) INFO 05-30 07:49:21 [loggers.py:123] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg "
    "generation throughput: 238.7 tokens/s, Running: 10 reqs, Waiting: 0 reqs, GPU KV cache usage: 4.1%, Prefix cache "
    "hit "
    "rate: 53.7%\n";
const std::string sglang =
    "[2026-09-08 00:21:09] Decode batch, #running-req: 1, #full token: 768320, full token usage: 0.83, accept len: "
    "2.85, "
    "accept rate: 0.62, cuda graph: True, gen throughput (token/s): 0.73, #queue-req: 0\n";
const std::string llamacpp_new =
    "slot print_timing: id  1 | task 0 | draft acceptance = 0.64479 (  167 accepted /   259 generated), mean "
    "acceptance "
    "length =  2.92, acceptance rate per position = (0.805, 0.632, 0.483)\n";
const std::string llamacpp_old = "draft acceptance rate = 0.57576 (  171 accepted /   297 generated)\n";
const std::string print =
    "n_draft   = 16\n"
    "n_predict = 200\n"
    "n_drafted = 347\n"
    "n_accept  = 65\n"
    "accept    = 18.732%\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

void check_vllm_sample(const traces::ServingCounts& unit) {
  CHECK(unit.engine == "vllm");
  CHECK(unit.format == "vLLM log");
  CHECK(unit.unit == CountUnit::window);
  CHECK(unit.accepted == 141);
  CHECK(unit.drafted == 204);
  CHECK(unit.rounds == 68);
  CHECK(unit.accepted_at == Counts{61, 46, 34});
  CHECK(unit.gamma == 3);
  CHECK(unit.from_rates);
}

}  // namespace

TEST_CASE("a line of vLLM's SpecDecoding metrics is counted back to whole rounds") {
  const AllCounts counts = counts_of({vllm_counts});
  REQUIRE(counts.units.size() == 1);
  check_vllm_sample(counts.units[0]);
  CHECK(counts.units[0].shape == DraftShape::chain);
  CHECK_FALSE(counts.units[0].window);
  CHECK_FALSE(counts.units[0].rule);
  CHECK(counts.units[0].labels.empty());
  CHECK(counts.warnings.empty());
}

TEST_CASE("the line of vLLM's engine in front gives the window its load, once") {
  const AllCounts counts = counts_of({"starting\n" + vllm_engine + "GET /metrics\n" + vllm_counts + vllm_counts +
                                      replaced(vllm_engine, "Engine 000", "Engine 012") + vllm_counts});
  REQUIRE(counts.units.size() == 3);
  REQUIRE(counts.units[0].window);
  CHECK(counts.units[0].window->running == 10);
  CHECK(counts.units[0].window->waiting == 0);
  CHECK(counts.units[0].window->prompt_tokens_per_second == 0);
  CHECK(counts.units[0].window->generation_tokens_per_second == 238.7);
  CHECK(counts.units[0].label("engine") == "0");
  CHECK(counts.units[0].line == 4);
  CHECK_FALSE(counts.units[1].window);
  CHECK(counts.units[2].label("engine") == "12");
}

TEST_CASE("log lines are found behind prefixes, in colours and among other lines") {
  std::string coloured = replaced(vllm_counts, "(APIServer pid=1)", "\x1b[1;36m(EngineCore_0 pid=1)\x1b[0;0m");
  coloured = replaced(coloured, "141 tokens", "\x1b[31m141\x1b[0m tokens");
  std::string windows = vllm_counts;
  windows.back() = '\r';
  windows += '\n';
  const std::string docker = fmt::format(R"({{"log":"{}\n","stream":"stdout","time":"2026-05-30T07:49:21Z"}})"
                                         "\n",
                                         vllm_counts.substr(0, vllm_counts.size() - 1));
  for (const std::string& line :
       {coloured, windows, "2026-05-30T07:49:21.123Z stdout F " + vllm_counts, "vllm-0  | " + vllm_counts, docker}) {
    CAPTURE(line);
    const AllCounts counts = counts_of({std::string(100'000, '\n') + "\xff\xfe junk\n" + line + "more\n"});
    REQUIRE(counts.units.size() == 1);
    check_vllm_sample(counts.units[0]);
    CHECK(counts.units[0].line == 100'002);
  }
}

TEST_CASE("the older order of vLLM's fields is read, idle intervals are left out") {
  const std::string older =
      "INFO 07-01 10:00:00 [metrics.py:86] SpecDecoding metrics: Draft acceptance rate: 69.1%, Mean acceptance length: "
      "3.07, Accepted: 141 tokens, Drafted: 204 tokens, Per-position acceptance rate: 0.897, 0.676, 0.500\n";
  const std::string idle =
      "SpecDecoding metrics: Mean acceptance length: nan, Accepted throughput: 0.00 tokens/s, Drafted throughput: 0.00 "
      "tokens/s, Accepted: 0 tokens, Drafted: 0 tokens, Per-position acceptance rate: , Avg Draft acceptance rate: "
      "nan%\n";
  const AllCounts counts = counts_of({idle + older});
  REQUIRE(counts.units.size() == 1);
  check_vllm_sample(counts.units[0]);
  CHECK_THAT(counts_refusal({idle}), StartsWith("1.txt: content is an engine's log in which nothing was drafted"));

  const std::string rates = "Per-position acceptance rate: ";
  const std::string no_rates = replaced(idle, rates, rates + "nan, nan, nan");
  const AllCounts beside = counts_of({older + no_rates + older + no_rates});
  REQUIRE(beside.units.size() == 2);
  check_vllm_sample(beside.units[1]);
  REQUIRE(beside.warnings.size() == 1);
  CHECK(beside.warnings[0].code == "idle_intervals_left_out");
  CHECK_THAT(beside.warnings[0].message,
             Catch::Matchers::EndsWith(".txt:2: 2 of vLLM's lines say that nothing was drafted and are left out"));
  CHECK_THAT(counts_refusal({replaced(older, "0.897", "nan")}),
             Contains("Per-position acceptance rate is nan at position 0, but must be a fraction in [0, 1]"));
}

TEST_CASE("an interval in which nothing was accepted has rounds where drafts are whole") {
  const std::string none =
      "SpecDecoding metrics: Mean acceptance length: 1.00, Accepted: 0 tokens, Drafted: 30 tokens, Per-position "
      "acceptance "
      "rate: 0.000, 0.000, 0.000, Avg Draft acceptance rate: 0.0%\n";
  const AllCounts counts = counts_of({none + replaced(none, "30", "31")});
  REQUIRE(counts.units.size() == 2);
  CHECK(counts.units[0].rounds == 10);
  CHECK(counts.units[0].accepted_at == Counts{0, 0, 0});
  CHECK_FALSE(counts.units[1].rounds);
}

TEST_CASE("SGLang's decode lines give means of unknown weight and the load") {
  const std::string older =
      "[2025-09-08 00:21:09 DP1 TP0] Decode batch. #running-req: 12, #token: 768, token usage: 0.83, accept len: 1.50, "
      "cuda "
      "graph: True, gen throughput (token/s): 73.5, #queue-req: 3\n";
  const std::string plain = "[x] Decode batch. #running-req: 12, #token: 768, gen throughput (token/s): 73.5\n";
  const AllCounts counts = counts_of({sglang + plain + older});
  REQUIRE(counts.units.size() == 2);
  const traces::ServingCounts& unit = counts.units[0];
  CHECK(unit.engine == "sglang");
  CHECK(unit.unit == CountUnit::window);
  CHECK(unit.tokens_per_round == 2.85);
  CHECK(unit.from_rates);
  CHECK_FALSE(unit.rounds);
  CHECK_FALSE(unit.accepted);
  CHECK(unit.shape == DraftShape::unknown);
  REQUIRE(unit.window);
  CHECK(unit.window->running == 1);
  CHECK(unit.window->waiting == 0);
  CHECK(unit.window->generation_tokens_per_second == 0.73);
  CHECK_FALSE(unit.window->prompt_tokens_per_second);
  CHECK(counts.units[1].label("dp_rank") == "1");
  CHECK(counts.units[1].window->waiting == 3);
  CHECK(counts.units[1].line == 3);
  CHECK(counts.warnings.size() == 1);
  CHECK(counts.warns("mean_without_counts"));
  CHECK_THAT(counts_refusal({plain}), StartsWith("1.txt: content is an engine's log without speculative decoding"));
  CHECK_THAT(counts_refusal({replaced(sglang, "2.85", "0.85")}),
             StartsWith("1.txt:1: accept len is 0.85, but must be"));
}

TEST_CASE("both generations of the lines of llama.cpp's server are requests") {
  const AllCounts counts = counts_of({llamacpp_new + llamacpp_old});
  REQUIRE(counts.units.size() == 2);
  for (const traces::ServingCounts& unit : counts.units) {
    CHECK(unit.engine == "llama.cpp");
    CHECK(unit.unit == CountUnit::request);
    CHECK(unit.rule == AcceptanceRule::greedy_draft);
    CHECK(unit.shape == DraftShape::chain);
  }
  CHECK(counts.units[0].accepted == 167);
  CHECK(counts.units[0].drafted == 259);
  CHECK(counts.units[0].rounds == 87);
  CHECK(counts.units[0].accepted_at == Counts{70, 55, 42});
  CHECK(counts.units[0].gamma == 3);
  CHECK(counts.units[0].from_rates);
  CHECK(counts.units[1].accepted == 171);
  CHECK(counts.units[1].drafted == 297);
  CHECK_FALSE(counts.units[1].rounds);
  CHECK_FALSE(counts.units[1].from_rates);
}

TEST_CASE("an answer without a length has the rounds of the statistics behind it, or else its passes") {
  const std::string passes = "eval time = 500.00 ms / 100 tokens (5.00 ms per token)\n";
  const std::string accepted = "draft acceptance rate = 0.06250 (   12 accepted /   192 generated)\n";
  const auto drafted = [](int drafts, int tokens) {
    return fmt::format("statistics ngram_mod: #calls = 9, #gen drafts = {}, #acc drafts = 1, #gen tokens = {}\n", drafts, tokens);
  };
  const AllCounts counts = counts_of({passes + accepted + drafted(3, 192) + passes + accepted + drafted(5, 384) + passes +
                                      accepted + passes + accepted + drafted(9, 500)});
  REQUIRE(counts.units.size() == 4);
  CHECK(counts.units[0].rounds == 3);
  CHECK(counts.units[0].steps == 87);
  CHECK(counts.units[1].rounds == 2);
  CHECK(counts.units[2].rounds == 87);
  CHECK(counts.units[3].rounds == 87);
}

TEST_CASE("a line of mtp-bench.py is an answer with its timings") {
  const AllCounts counts = counts_of({"  code_cpp           pred= 192 draft= 167 acc= 149 rate=0.892 tok/s=22.1\n"
                                      "  qa_factual         pred= 192 draft=   0 acc=   0 rate=n/a tok/s=6.6\n"});
  REQUIRE(counts.units.size() == 1);
  CHECK(counts.units[0].rounds == 42);
  CHECK(counts.units[0].drafted == 167);
  CHECK(counts.units[0].accepted == 149);
}

TEST_CASE("the log that llama-server 0.5.0 wrote has rounds within what its two decimals allow") {
  const std::filesystem::path folder = std::filesystem::path(tests::source_dir()) / "traces/samples/llamacpp";
  const AllCounts log({folder / "server.log"});
  const AllCounts answers({folder / "server-answers.jsonl"});
  REQUIRE(log.units.size() == 25);
  REQUIRE(answers.units.size() == 25);
  for (std::size_t i = 0; i < 25; ++i) {
    const traces::ServingCounts& unit = log.units[i];
    CAPTURE(unit.place());
    CHECK(unit.accepted == answers.units[i].accepted);
    CHECK(unit.drafted == answers.units[i].drafted);
    CHECK(unit.from_rates);
    REQUIRE(unit.rounds);
    const std::pair<double, double> between = unit.rounds_between.value_or(std::pair(*unit.rounds, *unit.rounds));
    CHECK((between.first <= *unit.rounds && *unit.rounds <= between.second));
    // The answers count passes, of which the last one may have drafted nothing.
    const double passes = answers.units[i].rounds.value();
    CHECK(between.second <= passes);
    CHECK(between.second >= passes - 1);
  }
  CHECK(log.warnings.empty());
}

TEST_CASE("llama-server's lines of one answer belong together, whatever other slots write between") {
  const std::string slot = "1.00.000 I slot print_timing: id  0 | task 7 | ";
  const std::string other = "1.00.001 I slot print_timing: id  1 | task 8 | ";
  const std::string eval = "       eval time =     783.55 ms /    13 tokens (   12.44 ms per token)\n";
  const std::string accepted = "draft acceptance = 0.50000 (    4 accepted /     8 generated), mean len =  1.50\n";
  // 4 accepted over 7.9 to 8.1 rounds, and 13 tokens in 1 + 8 passes.
  const AllCounts one = counts_of({slot + "prompt eval time = 9.00 ms / 9 tokens\n" + slot + eval + slot + accepted});
  CHECK(one.units.at(0).rounds == 8);
  CHECK(one.units.at(0).steps == 8);
  CHECK_FALSE(counts_of({other + eval + slot + accepted}).units.at(0).steps);
  CHECK_FALSE(one.units.at(0).rounds_between);
  // Without an accepted draft the passes are all that is known.
  const std::string none = "draft acceptance = 0.00000 (    0 accepted /    24 generated), mean len =  1.00\n";
  CHECK(counts_of({slot + eval + slot + none}).units.at(0).rounds == 12);
  CHECK_FALSE(counts_of({other + eval + slot + none}).units.at(0).rounds);
  CHECK_FALSE(counts_of({slot + none}).units.at(0).rounds);
  const AllCounts rates = counts_of(
      {slot + eval + slot + accepted + other + "stop processing\n" + slot + "     acc per pos = (0.375, 0.125)\n"});
  CHECK(rates.units.at(0).accepted_at == Counts{3, 1});
  CHECK(counts_of({slot + eval + slot + accepted + other + "acc per pos = (0.375, 0.125)\n"})
            .units.at(0)
            .accepted_at.empty());
  for (const char* wrong : {"(x, 0.5)", "(0.375, )", "(0.375, x)"}) {
    CHECK_THAT(counts_refusal({slot + accepted + slot + "acc per pos = " + wrong + "\n"}),
               Contains("acceptance rate per position is ") && Contains("but must be fractions in parentheses"));
  }
  CHECK_THAT(counts_refusal({slot + accepted + slot + "acc per pos = 0.375\n"}),
             Contains("acceptance rate per position is \"0.375\", but must be fractions in parentheses"));
  // An answer that a stop ended within accepted drafts has fewer tokens than its rounds put out.
  const std::string stopped = "       eval time =     783.55 ms /     9 tokens (   12.44 ms per token)\n";
  CHECK(counts_of({slot + stopped + slot + accepted}).units.at(0).rounds == 8);
}

TEST_CASE("answers that drafted nothing are runs of plain decoding for whoever wants times") {
  const std::string slot = "slot print_timing: id  0 | task 7 | ", other = "slot print_timing: id  1 | task 8 | ";
  const std::string eval = "eval time = 500.0 ms / 13 tokens (38.5 ms per token)\n";
  const std::string accepted = "draft acceptance = 0.50000 (4 accepted / 8 generated), mean len = 1.50\n";
  const std::string prompt = slot + "prompt eval time = 9.00 ms / 9 tokens\n";
  const AllCounts times = counts_of({prompt + slot + eval + slot + accepted + slot + eval + other + eval}, true);
  REQUIRE(times.units.size() == 3);
  CHECK(times.units[0].rounds == 8);
  CHECK(times.units[0].bench->duration_s == 0.5);
  CHECK(times.units[0].bench->total_output_tokens == 13);
  CHECK(times.units[0].bench->total_input_tokens == 9);
  CHECK_FALSE(times.units[1].bench->total_input_tokens);
  CHECK_FALSE(times.units[1].rounds);
  CHECK(times.units[1].emitted == 12);
  CHECK(times.units[1].label("slot") == "0");
  CHECK(times.units[2].label("slot") == "1");
  // A prompt that a cache had is told by all tokens at the end.
  const std::string cached = slot + "prompt eval time = 1.00 ms / 1 tokens\n" + slot + eval +
                             "slot release: id  0 | task 7 | stop processing: n_tokens = 112, truncated = 0\n";
  CHECK(counts_of({cached}, true).units.at(0).bench->total_input_tokens == 100);
  CHECK(counts_of({slot + eval + slot + accepted + slot + eval}).units.size() == 1);
  CHECK_THAT(counts_refusal({slot + eval}), Contains("an engine's log without speculative decoding"));
  // An answer of no time is none.
  CHECK_THAT(counts_refusal({slot + "eval time = 0.0 ms / 13 tokens\n"}, true),
             Contains("an engine's log without speculative decoding"));
}

TEST_CASE("a print of llama-speculative gives target passes, drafts and tokens") {
  const AllCounts counts = counts_of({"\n" + print});
  REQUIRE(counts.units.size() == 1);
  const traces::ServingCounts& unit = counts.units[0];
  CHECK(unit.unit == CountUnit::total);
  CHECK(unit.rule == AcceptanceRule::greedy_draft);
  CHECK(unit.gamma == 16);
  CHECK(unit.rounds == 135);
  CHECK(unit.drafted == 347);
  CHECK(unit.accepted == 65);
  CHECK(unit.emitted == 200);
  CHECK(unit.shape == DraftShape::unknown);
  CHECK(unit.accepted_at.empty());
  const AllCounts none =
      counts_of({"n_draft   = 16\nn_predict = 20\nn_drafted = 0\nn_accept  = 0\naccept    = nan%\n"});
  REQUIRE(none.units.size() == 1);
  CHECK(none.units[0].rounds == 20);
  CHECK(none.units[0].accepted == 0);
}

TEST_CASE("the log that llama-speculative-simple wrote is read") {
  const AllCounts counts(
      {std::filesystem::path(tests::source_dir()) / "traces/samples/llamacpp/speculative-simple.log"});
  REQUIRE(counts.units.size() == 1);
  const traces::ServingCounts& unit = counts.units[0];
  CHECK(unit.format == "llama-speculative");
  CHECK(unit.shape == DraftShape::chain);
  CHECK(unit.gamma == 4);
  CHECK(unit.drafted == 378);
  CHECK(unit.accepted == 25);
  REQUIRE(unit.rounds == 96);
  REQUIRE(unit.emitted == 121);
  CHECK(*unit.emitted / *unit.rounds == Approx(1.260417).epsilon(1e-6));
}

TEST_CASE("lines of several engines in one log are read in their order") {
  const AllCounts counts = counts_of({print + sglang + llamacpp_old + vllm_counts});
  REQUIRE(counts.units.size() == 4);
  CHECK(counts.units[0].format == "llama-speculative");
  CHECK(counts.units[1].format == "SGLang log");
  CHECK(counts.units[2].format == "llama.cpp server log");
  CHECK(counts.units[3].format == "vLLM log");
  CHECK(counts.units[3].line == 8);
}

TEST_CASE("log lines that contradict themselves are refused with both figures") {
  CHECK(counts_refusal({replaced(vllm_counts, "69.1%", "71.1%")}) ==
        "1.txt:1: Draft acceptance rate in percent is 71.1, but must be 69.1176, as the counts on the line say");
  CHECK(
      counts_refusal({replaced(vllm_counts, "3.07", "2.07")}) ==
      "1.txt:1: mean acceptance length is 2.07, but must be 1 + the rates by position, 3.073, with 141 accepted of 204 "
      "drafted");
  CHECK_THAT(counts_refusal({replaced(vllm_counts, "0.897", "89.7")}),
             Contains("Per-position acceptance rate is 89.7 at position 0, but must be a fraction in [0, 1]"));
  CHECK_THAT(counts_refusal({replaced(llamacpp_new, "0.64479", "64.479")}),
             Contains("draft acceptance is 64.479, a percentage, but must be the fraction 0.644788, as the counts on "
                      "the line say"));
  CHECK_THAT(counts_refusal({replaced(llamacpp_new, "0.64479", "0.74479")}),
             Contains("draft acceptance is 0.74479, but must be 0.644788, as the counts on the line say"));
  CHECK(counts_refusal({replaced(print, "18.732", "81.732")}) ==
        "1.txt:4: n_accept is 65, but must be 81.732% of n_drafted, 347");
  CHECK(counts_refusal({replaced(print, "= 200", "= 50")}) ==
        "1.txt:4: n_accept is 65, but must be at most n_predict, 50");
}

TEST_CASE("hostile log lines are refused by line and field") {
  CHECK_THAT(counts_refusal({replaced(vllm_counts, "141 tokens", "x tokens")}),
             Contains("1.txt:1: Accepted is \"x tokens\", but must be a number"));
  CHECK_THAT(counts_refusal({replaced(vllm_counts, "141 tokens", "1e999 tokens")}),
             Contains("1.txt:1: Accepted is inf, but must be a number of tokens, an integer in [0, 2^53]"));
  CHECK_THAT(counts_refusal({replaced(vllm_counts, "141 tokens", "-1 tokens")}),
             Contains("Accepted is -1, but must be"));
  CHECK_THAT(counts_refusal({replaced(vllm_counts, "141 tokens", "\xff\xff tokens")}), Contains("\\xff\\xff"));
  CHECK_THAT(counts_refusal({replaced(vllm_counts, "Mean acceptance length: 3.07", "x")}),
             Contains("Mean acceptance length is missing, but must be given on the line"));
  CHECK_THAT(counts_refusal({replaced(vllm_counts, "3.07", "nan")}),
             Contains("mean acceptance length is nan, but must be"));
  CHECK_THAT(counts_refusal({replaced(vllm_counts, "3.07", "1e308")}), Contains("mean acceptance length is 1e+308"));
  CHECK_THAT(counts_refusal({replaced(llamacpp_new, "(0.805", "0.805")}),
             Contains("acceptance rate per position is \"0.805, 0.632, 0.483)"));
  CHECK_THAT(counts_refusal({"draft acceptance = 0.5\n"}),
             Contains("draft acceptance is \" = 0.5\", but must be followed by (N accepted / M generated)"));
  CHECK(counts_refusal({replaced(print, "n_predict = 200\n", "")}) ==
        "1.txt:1: n_predict is missing behind n_draft, but must be printed before accept");
  CHECK(counts_refusal({replaced(print, "accept    = 18.732%\n", "")}) ==
        "1.txt:1: accept is missing behind n_draft, but must be printed in percent behind n_accept");
  CHECK_THAT(counts_refusal({replaced(print, "= 347", "= 3e99")}),
             Contains("1.txt:3: n_drafted is 3e+99, but must be"));
  CHECK_THAT(counts_refusal({print.substr(0, 15) + print}), Contains("n_draft is printed again"));
  CHECK_THAT(counts_refusal({"nothing of the kind\n"}), StartsWith("1.txt: content is in no known format"));
}

TEST_CASE("the last line of a log may be cut off anywhere") {
  for (const std::string& line : {vllm_counts, sglang, llamacpp_new, llamacpp_old}) {
    for (std::size_t length = 0; length < line.size(); length += 5) {
      const std::string text = vllm_counts + line.substr(0, length);
      CAPTURE(text);
      const AllCounts counts = counts_of({text});
      CHECK(counts.units.size() <= 2);
      CHECK(counts.warnings.size() <= 1);
    }
  }
  CHECK(counts_of({vllm_counts + vllm_counts.substr(0, 250)}).warns("truncated_line"));
}

TEST_CASE("rates are counted back to the integers that they were computed from") {
  // Every line that could have been printed of up to 60 rounds of gamma 2 must give counts that print the same again.
  const auto rounded = [](double value, double unit) { return std::round(value / unit) * unit; };
  for (int rounds = 1; rounds <= 60; rounds += 7) {
    for (int first = 0; first <= rounds; ++first) {
      for (int second = 0; second <= first; ++second) {
        const Counts rates = {rounded(1.0 * first / rounds, 0.001), rounded(1.0 * second / rounds, 0.001)};
        const double length = rounded(1 + 1.0 * (first + second) / rounds, 0.01);
        const auto back = traces::counts_from_rates({1.0 * first + second, 2.0 * rounds, length, rates, true});
        CAPTURE(rounds, first, second);
        REQUIRE(back.consistent);
        CHECK(back.rounds == rounds);
        CHECK(back.accepted_at == Counts{1.0 * first, 1.0 * second});
      }
    }
  }
}

TEST_CASE("whatever rounds an engine counts, its line is read as rounds that print that line") {
  std::mt19937_64 random(7);
  const auto below = [&](std::uint64_t end) { return static_cast<std::int64_t>(random() % end); };
  struct Counted {
    double rounds, drafted, accepted;
    bool full;
  };
  std::vector<Counted> expected;
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    const bool full = i % 2 == 0;
    const auto positions = static_cast<std::size_t>(below(7) + 1);
    const auto rounds = static_cast<double>(below(std::uint64_t{1} << (below(20) + 1)) + 1);
    const auto keeps = static_cast<double>(below(101)) / 100;
    // Rounds by the length of their drafts at least j + 1, then by accepted drafts at least j + 1.
    double drafted = 0, accepted = 0, at_length = rounds, at = rounds;
    std::string rates;
    for (std::size_t j = 0; j < positions; ++j) {
      if (!full && j > 0) at_length = std::floor(at_length * 0.8);
      at = std::min(at_length, std::floor(at * keeps + 0.5));
      drafted += at_length;
      accepted += at;
      rates += fmt::format("{}{:.3f}", j > 0 ? ", " : "", at / rounds);
    }
    expected.push_back({rounds, drafted, accepted, full});
    text += fmt::format(
        "SpecDecoding metrics: Mean acceptance length: {:.2f}, Accepted: {:.0f} tokens, Drafted: {:.0f} tokens, "
        "Per-position acceptance rate: {}, Avg Draft acceptance rate: {:.1f}%\n",
        1 + accepted / rounds, accepted, drafted, rates, 100 * accepted / drafted);
    text += fmt::format(
        "draft acceptance = {:.5f} ({:5.0f} accepted / {:5.0f} generated), mean acceptance length = {:5.2f}, "
        "acceptance "
        "rate per position = ({})\n",
        static_cast<float>(accepted) / static_cast<float>(drafted), accepted, drafted, 1 + accepted / rounds, rates);
  }
  const AllCounts counts = counts_of({text});
  REQUIRE(counts.units.size() == 2 * expected.size());
  for (std::size_t i = 0; i < counts.units.size(); ++i) {
    const traces::ServingCounts& unit = counts.units[i];
    const Counted& truth = expected[i / 2];
    CAPTURE(unit.line, truth.rounds);
    CHECK(unit.accepted == truth.accepted);
    CHECK(unit.drafted == truth.drafted);
    if (truth.accepted == 0) continue;
    REQUIRE(unit.rounds);
    CHECK(fmt::format("{:.2f}", 1 + truth.accepted / *unit.rounds) ==
          fmt::format("{:.2f}", 1 + truth.accepted / truth.rounds));
    CHECK(*unit.rounds <= truth.drafted);
    double sum = 0;
    for (const double value : unit.accepted_at) sum += value;
    CHECK(sum == truth.accepted);
    CHECK(std::is_sorted(unit.accepted_at.rbegin(), unit.accepted_at.rend()));
    if (truth.full && unit.engine == "vllm") CHECK(unit.rounds == truth.rounds);
  }
}

TEST_CASE("mutations of logs and scrapes are read or refused in one line") {
  const std::string scrape =
      "vllm:spec_decode_num_drafts_total{engine=\"0\"} 22.0 1756736798000\n"
      "vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",position=\"0\"} 18.0 1756736798000\n"
      "sglang:spec_verify_calls_total{tp_rank=\"0\"} 100\nsglang:generation_tokens_total 300\n"
      "trtllm_spec_decode_drafted_tokens_total{token_position=\"0\"} 20\n";
  const std::string answer =
      R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":)"
      R"("vllm:spec_decode_num_drafts_total","instance":"a"},"values":[[100,"10"],[130,"20"],[160.5,"5"]]}]}})";
  std::mt19937_64 random(1);
  for (const std::string& good :
       {vllm_engine + vllm_counts + sglang + llamacpp_new + llamacpp_old + print, scrape, answer}) {
    int refused = 0;
    for (int i = 0; i < 200; ++i) {
      std::string text = good;
      for (std::uint64_t changes = random() % 4 + 1; changes > 0; --changes) {
        text[random() % text.size()] =
            random() % 2 == 0 ? good[random() % good.size()] : static_cast<char>(random() % 256);
      }
      if (random() % 4 == 0) text.resize(random() % text.size());
      CAPTURE(text);
      const std::string message = counts_refusal({text});
      CHECK(message.find('\n') == std::string::npos);
      refused += message.empty() ? 0 : 1;
    }
    CHECK(refused > 20);
  }
}

TEST_CASE("whoever wants the times of windows gets those without speculation too") {
  const std::string plain = replaced(vllm_engine, "Running: 10", "Running: 8");
  const std::string idle =
      "SpecDecoding metrics: Mean acceptance length: nan, Accepted: 0 tokens, Drafted: 0 tokens, Per-position "
      "acceptance rate: , Avg Draft acceptance rate: nan%\n";
  const std::string sum = replaced(vllm_engine, "Engine 000:", "2 Engines Aggregated:");
  const AllCounts vllm = counts_of({plain + vllm_engine + vllm_counts + plain + idle + sum}, true);
  REQUIRE(vllm.units.size() == 4);
  CHECK(vllm.warnings.empty());
  CHECK_FALSE(vllm.units[0].drafted);
  CHECK(vllm.units[0].line == 1);
  CHECK(vllm.units[0].label("engine") == "0");
  CHECK(vllm.units[0].window->running == 8);
  check_vllm_sample(vllm.units[1]);
  CHECK_FALSE(vllm.units[2].drafted);
  CHECK(vllm.units[2].window->running == 8);
  CHECK(vllm.units[3].window->generation_tokens_per_second == 238.7);
  CHECK_FALSE(vllm.units[3].window->running);

  const std::string prompts = "[x DP1 TP0] Prefill batch, #new-seq: 1, #new-token: 1024\n";
  const std::string one = replaced(sglang, "2026-09-08 00:21:09", "x DP1 TP0");
  const std::string none = replaced(one, "accept len: 2.85, ", "");
  const AllCounts ranks = counts_of({one + none + prompts + one + sglang + one}, true);
  REQUIRE(ranks.units.size() == 5);
  CHECK_FALSE(ranks.units[1].tokens_per_round);
  const auto prompt_rate = [&](std::size_t i) { return ranks.units[i].window->prompt_tokens_per_second; };
  CHECK_FALSE(prompt_rate(0));
  CHECK(prompt_rate(1) == 0);
  CHECK_FALSE(prompt_rate(2));
  CHECK_FALSE(prompt_rate(3));
  CHECK(prompt_rate(4) == 0);
  CHECK(counts_of({plain}, true).units.size() == 1);
  CHECK_THAT(counts_refusal({plain}), StartsWith("1.txt: content is an engine's log without speculative decoding"));
}

TEST_CASE("logs are read in the order of their times, unless these do not tell it") {
  const std::string fewer = replaced(
      replaced(replaced(replaced(vllm_counts, "Accepted: 141", "Accepted: 121"), "3.07", "2.78"), "0.500", "0.206"),
      "69.1%", "59.3%");
  const auto first_rounds = [](const std::string& a, const std::string& b) {
    return counts_of({a, b}).units.front().accepted;
  };
  const std::string later = replaced(fewer, "05-30", "05-31");
  CHECK(first_rounds(later, vllm_counts) == 141.0);
  CHECK(first_rounds(vllm_counts, later) == 141.0);
  // Nothing says which year is the first, or when one of them began.
  CHECK(first_rounds(replaced(vllm_counts, "05-30", "12-31"), replaced(fewer, "05-30", "01-01")) == 141.0);
  CHECK(first_rounds(replaced(vllm_counts, "05-30", "2025-12-31"), replaced(fewer, "05-30", "2026-01-01")) == 141.0);
  CHECK(first_rounds(replaced(fewer, "05-30", "2026-01-01"), replaced(vllm_counts, "05-30", "2025-12-31")) == 141.0);
  CHECK(first_rounds(replaced(fewer, "05-30 07:49:21", ""), vllm_counts) == 121.0);
}

TEST_CASE("vLLM's log tells the steps of windows that read no prompt") {
  const std::string counts = replaced(vllm_counts, "Drafted throughput: 1.51", "Drafted throughput: 20.40");
  // 10 seconds put out 2,387 tokens, 141 of them accepted; the rounds drafted 3 tokens each.
  const auto told = counts_of({vllm_engine + counts}).units;
  REQUIRE(told.size() == 1);
  REQUIRE(told[0].steps);
  CHECK(*told[0].steps == Approx(2387 - 141).epsilon(1e-9));
  CHECK(told[0].rounds == 68.0);
  // First tokens of prompts are none of steps, and another window's tokens are not those of these counts.
  const std::string with_prompts = replaced(vllm_engine, "prompt throughput: 0.0", "prompt throughput: 512.0");
  CHECK_FALSE(counts_of({with_prompts + counts}).units[0].steps);
  CHECK_FALSE(counts_of({counts}).units[0].steps);
}
