#include "analysis/cost/observed_rounds.hpp"

#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using Catch::Matchers::EndsWith;
using traces::ServingCounts;

namespace {

/// 8 requests decode all the time: each round takes 25 ms and yields 2.5 tokens of every one.
ServingCounts speculative_run() {
  ServingCounts run;
  run.file = "spec.json";
  run.rounds = 1000;
  run.drafted = 3000;
  run.accepted = 1500;
  run.bench.emplace();
  run.bench->mean_tpot_ms = 10;
  run.bench->output_throughput = 800;
  run.bench->max_concurrency = 16;
  run.bench->completed = 50;
  run.bench->total_input_tokens = 50 * 1024;
  run.bench->total_output_tokens = 50 * 512;
  return run;
}

std::string refusal(const ServingCounts& run) {
  return tests::message_of<traces::FileError>([&] { cost::bench_rounds(run); });
}

ServingCounts window(double running, double prompt, double generation) {
  ServingCounts counts;
  counts.file = "server.log";
  counts.line = static_cast<std::int64_t>(generation);
  counts.rounds = 100;
  counts.drafted = 300;
  counts.accepted = 150;
  counts.window.emplace();
  counts.window->running = running;
  counts.window->waiting = 0;
  counts.window->prompt_tokens_per_second = prompt;
  counts.window->generation_tokens_per_second = generation;
  return counts;
}

}  // namespace

TEST_CASE("a benchmark run's rounds follow from its throughput, its time per token and its counts") {
  const cost::BenchRounds rounds = cost::bench_rounds(speculative_run());
  CHECK(rounds.round.name == "spec.json");
  CHECK(rounds.round.batch == Approx(8));
  CHECK(rounds.round.gamma == Approx(3));
  CHECK(rounds.tokens_per_step == Approx(2.5));
  CHECK(rounds.round.seconds == Approx(0.025));
  CHECK(*rounds.round.context == Approx(1024 + 256));
  CHECK(rounds.seconds_per_output_token == Approx(0.01));
  CHECK(rounds.output_tokens_per_second == 800);
}

TEST_CASE("a run without rounds is a plain one, and one without lengths has no context") {
  ServingCounts run = speculative_run();
  run.rounds.reset();
  run.drafted.reset();
  run.accepted.reset();
  run.bench->total_input_tokens.reset();
  const cost::BenchRounds rounds = cost::bench_rounds(run, 4.0);
  CHECK(rounds.round.gamma == 0);
  CHECK(rounds.tokens_per_step == 1);
  CHECK(rounds.round.seconds == Approx(0.01));
  CHECK_FALSE(rounds.round.context);
}

TEST_CASE("a run that does not count its drafts needs gamma") {
  ServingCounts run = speculative_run();
  run.drafted.reset();
  CHECK_THAT(refusal(run), EndsWith("spec.json: drafted tokens is missing, but must be given, or gamma be stated"));
  CHECK(cost::bench_rounds(run, 4.0).round.gamma == 4);
  run.gamma = 5;
  CHECK(cost::bench_rounds(run, 4.0).round.gamma == 5);
  run.accepted.reset();
  run.emitted = 2200;
  CHECK(cost::bench_rounds(run).tokens_per_step == Approx(2.2));
}

TEST_CASE("a benchmark run that lacks a key or contradicts itself is refused by name") {
  const auto with = [](auto change) {
    ServingCounts run = speculative_run();
    change(run);
    return refusal(run);
  };
  CHECK_THAT(with([](ServingCounts& run) { run.bench->mean_tpot_ms.reset(); }),
             EndsWith("spec.json: mean_tpot_ms is missing or null, but must be a number above 0"));
  CHECK_THAT(with([](ServingCounts& run) { run.bench->mean_tpot_ms = std::nan(""); }),
             EndsWith("spec.json: mean_tpot_ms is nan, but must be a number above 0"));
  CHECK_THAT(with([](ServingCounts& run) { run.bench->output_throughput = 0; }),
             EndsWith("output_throughput is 0, but must be a number above 0"));
  CHECK_THAT(with([](ServingCounts& run) { run.bench->completed = 0; }),
             EndsWith("completed is 0, but must be a number above 0"));
  CHECK_THAT(with([](ServingCounts& run) { run.accepted.reset(); }),
             EndsWith("accepted tokens is missing, but must be given, since there were rounds"));
  CHECK_THAT(with([](ServingCounts& run) { run.accepted = 3600; }),
             EndsWith("tokens per step is 4.6, but must be in [1, 4], with 3 drafted tokens a round"));
  CHECK_THAT(with([](ServingCounts& run) { run.bench->max_concurrency = 4; }),
             EndsWith("is 8 requests decoding at a time, but must be at most max_concurrency, 4"));
  CHECK_THAT(with([](ServingCounts& run) { run.bench.reset(); }),
             EndsWith("record is no benchmark run, but must be a benchmark run"));
}

TEST_CASE("throughput that falls while the load rises several times is that of one request") {
  const auto runs = [](std::initializer_list<std::pair<double, double>> loads) {
    std::vector<ServingCounts> made;
    for (const auto& [concurrency, throughput] : loads) {
      ServingCounts run;
      run.file = "runs.csv";
      run.line = static_cast<std::int64_t>(concurrency);
      run.bench.emplace();
      run.bench->max_concurrency = concurrency;
      run.bench->output_throughput = throughput;
      made.push_back(run);
    }
    return made;
  };
  const auto per_request = runs({{1, 50}, {8, 45.5}, {32, 33.3}});
  const auto falling = cost::falling_throughput(per_request);
  REQUIRE(falling);
  CHECK(falling->fewer == &per_request[0]);
  CHECK(falling->more == &per_request[2]);
  CHECK(cost::warning_of(*falling).message ==
        "runs.csv:1 put out 50 tokens/s at concurrency 1, and runs.csv:32 33.3 at 32: as if the throughput were of "
        "each request");
  CHECK_FALSE(cost::falling_throughput(runs({{1, 50}, {8, 364}, {32, 1066}})));
  // A full server keeps about what it put out, and two runs at about one load say nothing.
  CHECK_FALSE(cost::falling_throughput(runs({{64, 1000}, {256, 950}})));
  CHECK_FALSE(cost::falling_throughput(runs({{32, 1000}, {64, 700}})));
  std::vector<ServingCounts> of_two = runs({{1, 50}, {32, 33.3}});
  of_two[1].gamma = 3;
  CHECK_FALSE(cost::falling_throughput(of_two));
}

TEST_CASE("the answers of a server that decodes one at a time are a run at batch 1") {
  const auto answer = [](double tokens, double seconds, double drafted, double accepted) {
    traces::ServingCounts counts;
    counts.file = "answers.jsonl";
    counts.engine = "llama.cpp";
    counts.unit = traces::CountUnit::request;
    counts.labels = {{"slot", "0"}};
    counts.emitted = tokens - 1;
    traces::BenchRun& one = counts.bench.emplace();
    one.duration_s = seconds;
    one.total_output_tokens = tokens;
    one.total_input_tokens = 100;
    if (drafted == 0) return counts;
    counts.shape = traces::DraftShape::chain;
    counts.drafted = drafted;
    counts.accepted = accepted;
    counts.rounds = tokens - 1 - accepted;
    return counts;
  };
  // 27 tokens of 12 rounds, and 8 of as many without a draft, in 0.25 and 0.15 s.
  const std::vector<traces::ServingCounts> answers = {answer(28, 0.25, 36, 15), answer(9, 0.15, 0, 0)};
  const cost::BenchRounds speculative = cost::bench_rounds(cost::run_of_answers(answers));
  CHECK(speculative.round.batch == Approx(1).epsilon(1e-14));
  CHECK(speculative.tokens_per_step == Approx(35.0 / 20).epsilon(1e-14));
  CHECK(speculative.round.seconds == Approx(0.4 / 20).epsilon(1e-14));
  CHECK(speculative.round.gamma == Approx(36.0 / 20).epsilon(1e-14));
  CHECK(*speculative.round.context == Approx(100 + 37.0 / 4).epsilon(1e-14));
  const cost::BenchRounds plain = cost::bench_rounds(cost::run_of_answers(std::span(answers).last(1)));
  CHECK(plain.round.gamma == 0);
  CHECK(plain.round.seconds == Approx(0.15 / 8).epsilon(1e-14));
  std::vector<traces::ServingCounts> beside = answers;
  beside[1].labels = {{"slot", "3"}};
  beside[1].line = 2;
  CHECK_THROWS_WITH(cost::run_of_answers(beside),
                    Catch::Contains("answers.jsonl:2: id_slot is 3, but must be 0, as in"));
}

TEST_CASE("only steady windows that read no prompts tell a round") {
  const std::vector<ServingCounts> windows = {window(8, 0, 790),  window(8, 0, 800), window(8, 0, 810),
                                              window(8, 99, 400), window(8, 0, 805), window(7, 0, 600)};
  const auto rounds = cost::log_rounds(windows).rounds;
  REQUIRE(rounds.size() == 2);
  CHECK(rounds[0].name == "server.log:800");
  CHECK(rounds[0].batch == 8);
  CHECK(rounds[0].gamma == 3);
  CHECK(rounds[0].seconds == Approx(8 * 2.5 / 800));
  CHECK_FALSE(rounds[0].context);
  CHECK(rounds[1].name == "server.log:810");
  CHECK(cost::log_rounds(std::span(windows).first(2)).steady_windows == 0);
}

namespace {

/// `count` windows in a row of an engine that runs `running` requests; without counts for rounds of one token.
void add_windows(std::vector<ServingCounts>& windows, const std::string& file, double running, double seconds,
                 int count, bool speculative) {
  for (int i = 0; i < count; ++i) {
    ServingCounts& counts = windows.emplace_back(window(running, 0, running * (speculative ? 2.5 : 1) / seconds));
    counts.file = file;
    counts.line = static_cast<std::int64_t>(windows.size());
    if (speculative) continue;
    counts.rounds.reset();
    counts.drafted.reset();
    counts.accepted.reset();
  }
}

}  // namespace

TEST_CASE("logs of several engines give a few rounds of each at each batch, plain ones where nothing was drafted") {
  std::vector<ServingCounts> windows;
  add_windows(windows, "spec.log", 8, 0.025, 6, true);
  add_windows(windows, "spec.log", 2, 0.02, 3, true);
  add_windows(windows, "plain.log", 8, 0.01, 20, false);
  for (ServingCounts& counts : windows) counts.labels = {{"engine", "0"}};
  // Another engine of the speculative log that drafts nothing here is not known to be plain.
  std::vector<ServingCounts> other;
  add_windows(other, "spec.log", 8, 0.01, 3, false);
  for (ServingCounts& counts : other) windows.push_back(counts);

  const cost::LogRounds log = cost::log_rounds(windows);
  CHECK(log.windows == 32);
  CHECK(log.steady_windows == 4 + 1 + 18);
  // One round for each of 4 windows at batch 8; the one at batch 2; 18 plain windows in 4 stretches.
  REQUIRE(log.rounds.size() == 1 + 4 + 4);
  CHECK(log.rounds[0].batch == 2);
  CHECK(log.rounds[0].gamma == 3);
  CHECK(log.rounds[0].seconds == Approx(0.02));
  CHECK(log.rounds[1].seconds == Approx(0.025));
  CHECK(log.rounds[5].gamma == 0);
  CHECK(log.rounds[8].seconds == Approx(0.01));
  CHECK(log.rounds[8].batch == 8);
  CHECK(log.usual_batches() == std::vector<double>{2, 4, 8});
  CHECK(cost::LogRounds{}.usual_batches().empty());
}

TEST_CASE("stretches of a log have the mean of their rounds per second, and logs of SGLang need gamma") {
  std::vector<ServingCounts> windows;
  for (int i = 0; i < 10; ++i) {
    ServingCounts& counts = windows.emplace_back(window(4, 0, i % 2 == 0 ? 400 : 200));
    counts.rounds.reset();
    counts.drafted.reset();
    counts.accepted.reset();
    counts.tokens_per_round = 2;
  }
  CHECK_THAT(tests::message_of<traces::FileError>([&] { cost::log_rounds(windows); }),
             EndsWith("drafted tokens is missing, but must be given, or gamma be stated"));
  const cost::LogRounds log = cost::log_rounds(windows, 3.0);
  REQUIRE(log.rounds.size() == cost::rounds_of_one_load);
  for (const cost::ObservedRound& round : log.rounds) {
    CHECK(round.gamma == Approx(3));
    // 50 and 25 rounds a second.
    CHECK(round.seconds == Approx(1 / 37.5));
  }
}

TEST_CASE("a log that is never steady gives its rounds as they are, beside prompts too") {
  std::vector<ServingCounts> windows = {window(8, 0, 790), window(7, 0, 800), window(8, 0, 810)};
  const cost::LogRounds log = cost::log_rounds(windows);
  CHECK(log.steady_windows == 0);
  CHECK(log.windows == 3);
  CHECK(log.rounds.size() == 3);
  for (ServingCounts& counts : windows) counts.window->prompt_tokens_per_second = 100;
  CHECK(cost::log_rounds(windows).rounds.size() == 3);
  for (ServingCounts& counts : windows) counts.window->running.reset();
  CHECK_THAT(tests::message_of<traces::FileError>([&] { cost::log_rounds(windows); }),
             EndsWith("server.log: windows that decode is none, but must be at least one: requests running and tokens put "
                      "out"));
}

TEST_CASE("rounds at about one batch are joined at that of the plain ones") {
  std::vector<cost::ObservedRound> rounds = {{"plain", 0, 8, {}, 0.01}, {"k3", 3, 7.2, {}, 0.02}};
  CHECK(cost::join_batches(rounds) == 8.0);
  CHECK(rounds[1].batch == 8);
  rounds[1].batch = 6;
  CHECK_FALSE(cost::join_batches(rounds));
  CHECK(rounds[1].batch == 6);
  rounds[0].gamma = 5;
  rounds[1].batch = 7;
  CHECK(cost::join_batches(rounds) == 7.5);
  CHECK_FALSE(cost::join_batches({}));
}
