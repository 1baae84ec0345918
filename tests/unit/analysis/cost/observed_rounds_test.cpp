#include "analysis/cost/observed_rounds.hpp"

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
             EndsWith("spec.json: mean_tpot_ms is missing, but must be a number above 0"));
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

TEST_CASE("only steady windows that read no prompts tell a round") {
  const std::vector<ServingCounts> windows = {window(8, 0, 790),  window(8, 0, 800), window(8, 0, 810),
                                              window(8, 99, 400), window(8, 0, 805), window(7, 0, 600)};
  const auto rounds = cost::window_rounds(windows);
  REQUIRE(rounds.size() == 2);
  CHECK(rounds[0].name == "server.log:800");
  CHECK(rounds[0].batch == 8);
  CHECK(rounds[0].gamma == 3);
  CHECK(rounds[0].seconds == Approx(8 * 2.5 / 800));
  CHECK_FALSE(rounds[0].context);
  CHECK(rounds[1].name == "server.log:810");
  CHECK(cost::window_rounds(std::span(windows).first(2)).empty());
}
