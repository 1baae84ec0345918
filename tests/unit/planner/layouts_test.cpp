#include "planner/load/layouts.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "planner/load/capacity.hpp"
#include "planner/question_error.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using planner::Acceptance;
using planner::Capacity;
using planner::CapacityQuestion;
using planner::Cost;
using planner::Layout;
using planner::LayoutPoint;
using planner::LayoutSearch;

namespace {

CapacityQuestion small_load() {
  CapacityQuestion question;
  question.workload.prompt_tokens.mean = 500;
  question.workload.output_tokens.mean = 100;
  question.workload.requests = 100;
  question.replications = 2;
  question.gamma = {{2}};
  return question;
}

Cost priced(const char* model, planner::HardwareOptions options = {}) {
  options.drafts = false;
  return Cost::of_hardware("h200-sxm", model, options);
}

bool beats(const LayoutPoint& a, const LayoutPoint& b) {
  return a.gpu_seconds_per_token < b.gpu_seconds_per_token && a.tpot_seconds < b.tpot_seconds;
}

}  // namespace

TEST_CASE("layouts are powers of two within the GPUs that divide heads and experts evenly") {
  const auto of = [](const char* model, std::int64_t gpus, const planner::HardwareOptions& stated = {}) {
    return planner::layouts_within(gpus, *priced(model).roofline, stated);
  };
  CHECK(of("llama-3.3-70b", 8) == std::vector<Layout>{{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {8, 1, 1}});
  // 28 heads: no eight accelerators.
  CHECK(of("qwen2.5-7b", 16) == std::vector<Layout>{{1, 1, 1}, {2, 1, 1}, {4, 1, 1}});
  const std::vector<Layout> routed = of("mixtral-8x7b", 4);
  CHECK(routed.size() == 14);
  CHECK(std::find(routed.begin(), routed.end(), Layout{1, 4, 4}) != routed.end());
  for (const Layout& layout : of("deepseek-v3", 64)) {
    CHECK(layout.accelerators() <= 64);
    CHECK(layout.accelerators() % layout.expert_parallel == 0);
    CHECK(layout.tensor_parallel <= 8);
  }
  CHECK(of("mixtral-8x7b", 8, {.tensor_parallel = 2, .data_parallel = 4, .expert_parallel = 8}) ==
        std::vector<Layout>{{2, 4, 8}});
}

TEST_CASE("a search says what each layout serves, or by how much memory it does not, and the frontier of all") {
  CapacityQuestion question = small_load();
  question.gamma = std::vector<std::int64_t>{};
  question.gpus = 8;
  question.price = 2;
  const LayoutSearch search = planner::search_layouts({}, priced("llama-3.3-70b"), question);
  REQUIRE(search.layouts.size() == 4);
  CHECK_THAT(search.layouts.front().refusal, Contains("141.1 GB of target weights per GPU") && Contains("are missing"));
  for (std::size_t i = 1; i < 4; ++i) {
    CHECK(search.layouts[i].refusal.empty());
    CHECK(search.layouts[i].cheapest->replicas == 8 >> i);
  }
  REQUIRE(search.frontier.size() > 3);
  for (const LayoutPoint& one : search.frontier) {
    CHECK(one.cost_per_million_tokens == Approx(2 / 3600.0 * 1e6 * one.gpu_seconds_per_token));
    for (const LayoutPoint& other : search.frontier) CHECK_FALSE(beats(one, other));
    for (const planner::TriedLayout& tried : search.layouts) {
      if (tried.cheapest) CHECK_FALSE(beats(*tried.cheapest, one));
      if (tried.fastest) CHECK_FALSE(beats(*tried.fastest, one));
    }
  }
  // More accelerators a replica are faster where few requests are there, fewer are cheaper.
  CHECK(search.frontier.back().layout == 3);
  CHECK(search.chosen == search.frontier.front().layout);
}

TEST_CASE("the layout that is chosen is the one that capacity answers for") {
  CapacityQuestion question = small_load();
  question.gpus = 8;
  question.arrival_rate = 3;
  question.tpot_ms = 25;
  const Cost cost = Cost::of_hardware("h200-sxm", "llama-3.3-70b", {.draft = {.model = "eagle3-llama-3.3-70b"}});
  const Capacity answer = planner::capacity(Acceptance::of_rate(0.7), cost, question);
  REQUIRE(answer.layouts);
  CHECK(answer.simulation.gpus_per_replica == answer.layouts->layouts[answer.layouts->chosen].layout.accelerators());
  REQUIRE(answer.answer().recommended);
  CHECK(*answer.scenarios()[*answer.answer().recommended].gpus <= 8);
  question.tpot_ms = 1;
  const LayoutSearch none = planner::search_layouts(Acceptance::of_rate(0.7), cost, question);
  CHECK(none.chosen == none.frontier.back().layout);
}

TEST_CASE("the layout found is the best of all that can be stated, and plain decoding is compared in its own best one",
          "[long]") {
  CapacityQuestion question = small_load();
  question.workload.prompt_tokens = {2000, 0.5};
  question.workload.output_tokens = {500, 0.5};
  question.workload.requests = 300;
  question.gamma = {{3, 5}};
  question.price = 3;
  const auto cost_with = [](std::optional<std::int64_t> tensor) {
    planner::HardwareOptions options{.draft = {.model = "eagle3-llama-3.3-70b"}};
    options.tensor_parallel = tensor;
    return Cost::of_hardware("h200-sxm", "llama-3.3-70b", options);
  };
  const auto acceptance = Acceptance::of_rate(0.65);
  struct Asked {
    std::optional<double> arrival_rate;
    double tpot_ms;
  };
  for (const Asked& asked : {Asked{{}, 30}, Asked{6.5, 20}}) {
    CAPTURE(asked.tpot_ms);
    question.arrival_rate = asked.arrival_rate;
    question.tpot_ms = asked.tpot_ms;
    question.gpus.reset();
    // What every layout by itself says.
    constexpr double none = 1e300;
    double least = none, least_plain = none;
    auto plain_gpus = static_cast<std::int64_t>(1) << 30U;
    for (const std::int64_t tensor : {2, 4, 8}) {
      const sim::CapacityQuestion stated = planner::asked_capacity(acceptance, cost_with(tensor), question).simulation;
      for (const sim::ScenarioCapacity& s : sim::plan_capacity(stated).scenarios) {
        if (s.meets_load && sim::is_plain(s.scenario)) plain_gpus = std::min(plain_gpus, *s.gpus);
        if (!s.meets_load || *s.gpus > 8) continue;
        least = std::min(least, s.gpu_seconds_per_token);
        if (sim::is_plain(s.scenario)) least_plain = std::min(least_plain, s.gpu_seconds_per_token);
      }
    }
    question.gpus = 8;
    const Capacity found = planner::capacity(acceptance, cost_with({}), question);
    CHECK(found.layouts->is_within_limits);
    CHECK_FALSE(found.exceeds_gpus);
    CHECK(found.scenarios()[*found.answer().recommended].gpu_seconds_per_token == Approx(least).epsilon(1e-9));
    CHECK(found.layouts->plain.has_value() == (least_plain < none));
    REQUIRE(found.plain_elsewhere);
    if (!found.layouts->plain) {
      // The load takes more accelerators without drafts than given: those of the layout that needs the fewest.
      CHECK(found.plain_scenario().gpus == plain_gpus);
      continue;
    }
    CHECK(found.plain_scenario().gpu_seconds_per_token == Approx(least_plain).epsilon(1e-9));
    const std::size_t plain = found.of_plain().plain();
    CHECK(found.of_plain().in_worlds.scenarios[plain].rates.size() == found.in_worlds.scenarios[0].rates.size());
    CHECK(*found.requests_per_second_together(0) == Approx(static_cast<double>(8 / found.simulation.gpus_per_replica) *
                                                           found.scenarios()[0].requests_per_second_per_replica.value));
  }
}

TEST_CASE("a load that is too large for the accelerators given is answered with the fewest that take it") {
  CapacityQuestion question = small_load();
  question.gamma = std::vector<std::int64_t>{};
  question.workload.prompt_tokens = {500, 0.5};
  question.workload.output_tokens = {100, 0.5};
  question.gpus = 1;
  for (const double tpot_ms : {30, 9}) {
    CAPTURE(tpot_ms);
    question.tpot_ms = tpot_ms;
    question.arrival_rate = 250;
    const Capacity found = planner::capacity({}, priced("llama-3.1-8b"), question);
    CHECK(found.exceeds_gpus);
    CHECK_FALSE(found.layouts->is_within_limits);
    REQUIRE(found.answer().recommended);
    // What every layout by itself says.
    std::int64_t least = 1 << 30;
    for (const std::int64_t tensor : {1, 2, 4, 8}) {
      const sim::CapacityQuestion stated =
          planner::asked_capacity({}, priced("llama-3.1-8b", {.tensor_parallel = tensor}), question).simulation;
      const sim::ScenarioCapacity alone = sim::plan_capacity(stated).scenarios.front();
      if (alone.meets_load) least = std::min(least, *alone.gpus);
    }
    CHECK(least > 1);
    CHECK(found.scenarios()[*found.answer().recommended].gpus == least);
    CHECK(found.layouts->gpus == least);
    for (const planner::TriedLayout& tried : found.layouts->layouts) CHECK(tried.layout.accelerators() <= least);
    CHECK(found.layouts->layouts[found.layouts->chosen].refusal.empty());
  }
  // Weights that the accelerators given do not hold are a matter of their number, too.
  question.arrival_rate = 1;
  question.tpot_ms = 50;
  const Capacity large = planner::capacity({}, priced("llama-3.3-70b"), question);
  CHECK(large.exceeds_gpus);
  CHECK(large.scenarios().front().gpus == 2);
  // No number of accelerators is fast enough, whether or not those given are too few by the formulas.
  question.tpot_ms = 0.1;
  for (const double rate : {1, 1000}) {
    CAPTURE(rate);
    question.arrival_rate = rate;
    const Capacity none = planner::capacity({}, priced("llama-3.1-8b"), question);
    CHECK_FALSE(none.answer().recommended);
    CHECK_FALSE(none.exceeds_gpus);
  }
  question.arrival_rate = 1e9;
  question.tpot_ms.reset();
  CHECK(*planner::capacity({}, priced("llama-3.1-8b"), question).scenarios().front().gpus > 1000000);
}

TEST_CASE("groups of accelerators have the cache, places and positions of all of them") {
  const CapacityQuestion question = small_load();
  CapacityQuestion plain = question;
  plain.gamma = std::vector<std::int64_t>{};
  const Capacity one = planner::asked_capacity({}, priced("mixtral-8x7b", {.tensor_parallel = 2}), plain);
  const Capacity four = planner::asked_capacity(
      {}, priced("mixtral-8x7b", {.tensor_parallel = 2, .data_parallel = 4, .expert_parallel = 8}), plain);
  const sim::ServingEngine &single = one.simulation.scenarios.front().engine,
                           &all = four.simulation.scenarios.front().engine;
  CHECK(all.max_num_seqs == 4 * single.max_num_seqs);
  CHECK(all.max_num_batched_tokens == 4 * single.max_num_batched_tokens);
  CHECK(four.simulation.gpus_per_replica == 8);
  // Experts are divided over eight, so that each group has more room than one of its own.
  CHECK(all.cache_blocks > 4 * single.cache_blocks);
  CHECK(four.memory.front().memory->target_weight_bytes < one.memory.front().memory->target_weight_bytes);
}

TEST_CASE("layouts that a model does not have are refused by name") {
  const auto refused = [](const char* model, const planner::HardwareOptions& options) {
    try {
      priced(model, options);
    } catch (const planner::QuestionError& error) {
      return error.with_options();
    }
    return std::string("nothing");
  };
  CHECK(
      refused("llama-3.1-8b", {.data_parallel = 2}) ==
      "--data-parallel-size is 2, but llama-3.1-8b has no experts to share: groups that share nothing are --replicas");
  CHECK_THAT(refused("llama-3.1-8b", {.expert_parallel = 2}),
             Contains("--expert-parallel-size is 2, but llama-3.1-8b"));
  CHECK(refused("mixtral-8x7b", {.tensor_parallel = 4, .expert_parallel = 3}) ==
        "--expert-parallel-size is 3, but must be a divisor of the 4 accelerators of the target");
  CHECK_THAT(refused("mixtral-8x7b", {.tensor_parallel = 16, .expert_parallel = 16, .kernel_times = "none"}),
             Contains("a divisor of the 8 experts of a layer"));
  CapacityQuestion question = small_load();
  question.gamma = std::vector<std::int64_t>{};
  question.gpus = 1;
  CHECK_THROWS_WITH(planner::search_layouts({}, priced("llama-3.3-70b"), question), Contains("no layout serves"));
  question.concurrency = 4;
  CHECK_THROWS_WITH(planner::search_layouts({}, priced("llama-3.3-70b"), question), Contains("concurrency"));
}
