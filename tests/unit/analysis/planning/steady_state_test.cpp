#include "analysis/planning/steady_state.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/planning/replica_iterations.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/priced_iterations.hpp"

using namespace specdec;
using planning::CapacityLimit;
using test_support::PricedByFormula;

namespace {

/// 100 rounds of plain decoding, whose prompts cost nothing unless a test says so.
planning::OfferedLoad hundred_rounds(double requests_per_second = 1) {
  planning::OfferedLoad load;
  load.requests_per_second = requests_per_second;
  load.prompt_tokens = 50;
  load.output_tokens = 101;
  load.mean_context = 100;
  load.decode_only = true;
  return load;
}

const planning::ReplicaLimits roomy = {1000, 1 << 20, 1e9};
/// As many of hundred_rounds() as this fit into the cache.
planning::ReplicaLimits room_for(double sequences, std::int64_t gamma = 0) {
  return {1000, 1 << 20, sequences * static_cast<double>(100 + 1 + 2 * gamma)};
}
const std::vector<planning::RoundsFrom> plain = {{}};

/// A prompt that meets nothing that decodes costs next to nothing, so that the laws are those of textbooks.
PricedByFormula linear(double base, double per_sequence, double per_position) {
  return PricedByFormula([=](const cost::Iteration& iteration) {
    if (iteration.sequences == 0) return 1e-14;
    return base + per_sequence * iteration.sequences + per_position * iteration.prompt_tokens;
  });
}

double sustainable(const cost::IterationCost& cost, const planning::OfferedLoad& load,
                   const planning::ReplicaLimits& limits = roomy,
                   const std::vector<planning::RoundsFrom>& rounds = plain) {
  return planning::sustainable_load(cost, {load, limits, rounds})->requests_per_second;
}

/// The whole law of the batch, with nothing left out and nothing rescaled: its mean.
double mean_of_law(const std::vector<double>& growths, double last_growth) {
  double weight = 1;
  double sum = 1;
  double mean = 0;
  for (std::size_t k = 1; k <= growths.size(); ++k) {
    weight *= growths[k - 1];
    const double here = k == growths.size() ? weight / (1 - last_growth) : weight;
    sum += here;
    mean += static_cast<double>(k) * here;
  }
  return mean / sum;
}

}  // namespace

TEST_CASE("iterations of one length make the batch Poisson, as servers without end do") {
  for (const double requests : {1e-6, 0.3, 2.0, 300.0}) {
    const auto state = planning::steady_state(linear(0.01, 0, 0), {hundred_rounds(requests), roomy, plain});
    REQUIRE(state);
    const double offered = requests * 100 * 0.01;
    CHECK(state->mean_batch == Approx(offered).epsilon(1e-12));
    CHECK(state->tpot_seconds == Approx(0.01).epsilon(1e-12));
    CHECK(state->iteration_seconds == Approx(0.01).epsilon(1e-12));
    CHECK(state->output_tokens_per_second == Approx(requests * 101));
  }
}

TEST_CASE("iterations that grow with the batch make the batch geometric, as one shared processor does") {
  for (const double utilisation : {0.01, 0.5, 0.9}) {
    const double requests = utilisation / (100 * 0.002);
    const auto state = planning::steady_state(linear(0, 0.002, 0), {hundred_rounds(requests), roomy, plain});
    REQUIRE(state);
    CHECK(state->mean_batch == Approx(utilisation / (1 - utilisation)).epsilon(1e-9));
  }
}

TEST_CASE("a batch with a bound decodes as many as come, and no load beyond it is stable") {
  // Erlang's delay system with 3 servers: all of them hold the offered load.
  const planning::ReplicaLimits three = room_for(3);
  const auto state = planning::steady_state(linear(0.01, 0, 0), {hundred_rounds(2), three, plain});
  REQUIRE(state);
  CHECK(state->mean_batch == Approx(2).epsilon(1e-12));
  CHECK(state->largest_batch == 3);
  CHECK_FALSE(planning::steady_state(linear(0.01, 0, 0), {hundred_rounds(3), three, plain}));
}

TEST_CASE("prompts take their share of every second from those that decode") {
  // 50 positions of 0.1 ms for each request: at 20 requests a second a tenth of the time, and a little more since some
  // prompts stand right behind the one that a sequence came with.
  planning::OfferedLoad load = hundred_rounds(20);
  load.decode_only = false;
  const auto state = planning::steady_state(linear(0.01, 0, 1e-4), {load, roomy, plain});
  REQUIRE(state);
  CHECK(state->tpot_seconds == Approx(0.01 / 0.9).epsilon(1e-3));
  CHECK(state->mean_batch == Approx(20 / 0.9).epsilon(1e-3));
  // Half of the positions found in the cache: a twentieth.
  load.prefix_cache_hit_rate = 0.5;
  CHECK(planning::steady_state(linear(0.01, 0, 1e-4), {load, roomy, plain})->tpot_seconds ==
        Approx(0.01 / 0.95).epsilon(1e-3));
  // 1 / (rounds * seconds / batch + prompt's seconds)
  load.prefix_cache_hit_rate = 0;
  CHECK(sustainable(linear(0.01, 0, 1e-4), load, room_for(8)) == Approx(1 / (1.0 / 8 + 0.005)).epsilon(1e-9));
}

TEST_CASE("sequences share the cache of a prefix that they have in common") {
  // 101 tokens each, 40 of them of one of the prefixes.
  planning::OfferedLoad load = hundred_rounds(1);
  load.prefix_cache_hit_rate = 0.8;
  const auto largest = [&](std::optional<std::int64_t> prefixes) {
    load.shared_prefixes = prefixes;
    return planning::steady_state(linear(0.01, 0, 0), {load, room_for(10), plain})->largest_batch;
  };
  CHECK(largest({}) == 10);
  CHECK(largest(10) == 10);
  CHECK(largest(3) == Approx((1010 - 3 * 40) / 61.0));
  CHECK(largest(1) == Approx((1010 - 40) / 61.0));
}

TEST_CASE("a rare prompt costs a whole pass, not its share of every pass") {
  // Free up to 200 positions: thinly spread over all iterations prompts would cost nothing.
  const PricedByFormula kneed([](const cost::Iteration& iteration) {
    return 0.01 * std::max(1.0, (iteration.sequences + iteration.prompt_tokens) / 200);
  });
  planning::OfferedLoad load = hundred_rounds(1);
  load.decode_only = false;
  load.prompt_tokens = 2000;
  const auto state = planning::steady_state(kneed, {load, roomy, plain});
  REQUIRE(state);
  // About one sequence: a prompt's pass takes 0.1 s instead of 0.01 s.
  CHECK(state->tpot_seconds == Approx(0.01 / (1 - 0.09)).epsilon(0.02));
  // In pieces of 500 positions four passes of 0.025 s, 0.06 s more than without it.
  CHECK(planning::steady_state(kneed, {load, {1000, 501, 1e9}, plain})->tpot_seconds ==
        Approx(0.01 / (1 - 0.06)).epsilon(0.02));
}

TEST_CASE("prompts that nothing decodes beside take their time from idleness alone") {
  const PricedByFormula cost([](const cost::Iteration& iteration) { return 0.01 + 1e-3 * iteration.prompt_tokens; });
  planning::OfferedLoad load = hundred_rounds(1e-4);
  load.decode_only = false;
  // 0.06 s for the prompt, 1 s for the rounds.
  const auto state = planning::steady_state(cost, {load, roomy, plain});
  CHECK(state->tpot_seconds == Approx(0.01).epsilon(1e-4));
}

TEST_CASE("with one place a request waits for another, and never for another's prompt") {
  const PricedByFormula cost([](const cost::Iteration& iteration) {
    return 0.01 + 0.002 * iteration.sequences + 1e-3 * iteration.prompt_tokens;
  });
  planning::OfferedLoad load = hundred_rounds(0.5);
  load.decode_only = false;
  // 0.06 s for the prompt and 1.2 s for the rounds.
  const planning::ReplicaLimits one = {1, 1 << 20, 1e9};
  const auto state = planning::steady_state(cost, {load, one, plain});
  REQUIRE(state);
  CHECK(state->tpot_seconds == Approx(0.012));
  CHECK(state->iteration_seconds == Approx(0.012));
  CHECK(state->mean_batch == Approx(0.6));
  CHECK(sustainable(cost, load, one) == Approx(1 / 1.26));
  load.requests_per_second = 1 / 1.25;
  CHECK_FALSE(planning::steady_state(cost, {load, one, plain}));
}

namespace {

/// Clients with requests of n rounds of T_k, k the requests in the engine: each leaves at rate 1 / (n T_k), and comes
/// back after Z. The law of k is of product form, and asks for the means of lengths alone.
struct ProductForm {
  double requests_per_second = 0, mean_batch = 0;
};
ProductForm product_form(std::int64_t clients, double outside, const std::function<double(double)>& seconds) {
  double weight = 1, sum = 0, batch = 0, out = 0;
  for (std::int64_t k = 0; k <= clients; ++k) {
    const auto here = static_cast<double>(k);
    const double others = static_cast<double>(clients - k);
    if (k > 0) weight *= seconds(here) * (others + 1) / outside / here;
    sum += weight;
    batch += here * weight;
    out += others * weight;
  }
  return {out / sum / outside, batch / sum};
}

}  // namespace

TEST_CASE("one client's requests take their prompt, their rounds and their way, one after the other") {
  const PricedByFormula cost([](const cost::Iteration& iteration) {
    return 0.01 + 0.002 * iteration.sequences + 1e-3 * iteration.prompt_tokens;
  });
  planning::OfferedLoad load = hundred_rounds();
  load.decode_only = false;
  for (const std::int64_t places : {1, 1000}) {
    const auto state = planning::closed_steady_state(cost, {load, {places, 1 << 20, 1e9}, plain}, 1, 0.24);
    REQUIRE(state);
    CHECK(state->output_tokens_per_second == Approx(101 / (0.06 + 1.2 + 0.24)));
    CHECK(state->tpot_seconds == Approx(0.012));
  }
}

TEST_CASE("clients of one server wait as machines do for their repairman") {
  // Prompt and rounds take 0.1 s: M/M/1//N, whose law is N! / (N - k)! (s / Z)^k.
  const PricedByFormula cost([](const cost::Iteration& iteration) { return iteration.sequences > 0 ? 9e-4 : 0.01; });
  for (const std::int64_t clients : {1, 2, 5, 20, 300}) {
    const double outside = 0.7;
    const auto state =
        planning::closed_steady_state(cost, {hundred_rounds(), {1, 1 << 20, 1e9}, plain}, clients, outside);
    REQUIRE(state);
    double weight = 1, sum = 0;
    for (std::int64_t k = 0; k <= clients; ++k) {
      sum += weight;
      weight *= static_cast<double>(clients - k) * 0.1 / outside;
    }
    CHECK(state->output_tokens_per_second == Approx(101 * (1 - 1 / sum) / 0.1).epsilon(1e-9));
  }
}

TEST_CASE("clients share iterations as the product form says, and fill the largest batch where they are many") {
  // The prompt is one round more; 2% for what it differs by from one.
  for (const double outside : {0.5, 5.0}) {
    for (const std::int64_t clients : {1, 3, 10, 60}) {
      const auto state =
          planning::closed_steady_state(linear(0.01, 0.001, 0), {hundred_rounds(), roomy, plain}, clients, outside);
      const ProductForm exact = product_form(clients, outside, [](double k) { return 101 * (0.01 + 0.001 * k); });
      REQUIRE(state);
      CHECK(state->output_tokens_per_second == Approx(101 * exact.requests_per_second).epsilon(0.02));
      CHECK(state->mean_batch == Approx(exact.mean_batch * 100 / 101).epsilon(0.02));
    }
  }
  const planning::ReplicaLimits eight = room_for(8);
  const auto full = planning::closed_steady_state(linear(0.01, 0.001, 0), {hundred_rounds(), eight, plain}, 500, 0);
  const auto saturated = planning::sustainable_load(linear(0.01, 0.001, 0), {hundred_rounds(), eight, plain});
  REQUIRE(full);
  CHECK(full->output_tokens_per_second == saturated->state.output_tokens_per_second);
  CHECK(full->tpot_seconds == saturated->state.tpot_seconds);
  CHECK_FALSE(planning::closed_steady_state(linear(0.01, 0, 0), {hundred_rounds(), room_for(0.5), plain}, 2, 0));
}

TEST_CASE("more clients never mean fewer requests served, nor prompts that cost more more of them") {
  planning::OfferedLoad load = hundred_rounds();
  load.decode_only = false;
  for (const double per_position : {0.0, 1e-5, 1e-3, 0.1}) {
    const PricedByFormula cost([=](const cost::Iteration& iteration) {
      return 0.01 + 0.001 * iteration.sequences + per_position * iteration.prompt_tokens;
    });
    const PricedByFormula dearer([=](const cost::Iteration& iteration) {
      return 0.01 + 0.001 * iteration.sequences + (per_position + 1e-4) * iteration.prompt_tokens;
    });
    double served = 0;
    for (const std::int64_t clients : {1, 2, 3, 5, 8, 13, 50, 200, 2000}) {
      const auto state = planning::closed_steady_state(cost, {load, {64, 2048, 1e9}, plain}, clients, 0.1);
      const auto slower = planning::closed_steady_state(dearer, {load, {64, 2048, 1e9}, plain}, clients, 0.1);
      REQUIRE(state);
      REQUIRE(slower);
      CHECK(state->output_tokens_per_second >= served * (1 - 1e-9));
      CHECK(slower->output_tokens_per_second <= state->output_tokens_per_second * (1 + 1e-9));
      served = state->output_tokens_per_second;
    }
  }
}

TEST_CASE("prompts that come while one is computed decode together") {
  // Iterations of one sequence at a time or none, whose prompts take long: requests per busy period of an M/D/1 queue.
  const PricedByFormula cost([](const cost::Iteration& iteration) {
    return (iteration.sequences > 0 ? 1e-6 * iteration.sequences : 1e-14) + 0.01 * iteration.prompt_tokens;
  });
  planning::OfferedLoad load = hundred_rounds(1);
  load.decode_only = false;
  load.output_tokens = 2;
  // A round takes no time beside 0.5 s of a prompt, so that what is left is the wait for the prompts behind one's own:
  // 0.5 s E[X (X - 1)] / (2 E[X]) with Borel's law of 1/2, E[X] = 2, Var X = 4. A batch of one wide law waits longer.
  const planning::ReplicaLimits pieces = {1000, 60, 1e9};
  const auto state = planning::steady_state(cost, {load, pieces, plain});
  REQUIRE(state);
  CHECK(state->tpot_seconds == Approx(0.5 * (4 + 4 - 2) / (2 * 2)).epsilon(1e-3));
  load.prompt_variation = 1;
  CHECK(planning::steady_state(cost, {load, pieces, plain})->tpot_seconds > 1.2 * state->tpot_seconds);
}

TEST_CASE("at the balanced load as many prompts come in an iteration as requests leave in it, or as the budget takes") {
  constexpr double step = 0.01, pass = 0.02, position = 1e-4, sequences = 8, prompt = 300;
  const PricedByFormula cost([](const cost::Iteration& iteration) {
    const double prompts = iteration.prompt_tokens > 0 ? pass + position * iteration.prompt_tokens : 0;
    return (iteration.sequences > 0 ? step : 0) + prompts;
  });
  planning::OfferedLoad load = hundred_rounds();
  load.decode_only = false;
  load.prompt_tokens = prompt;
  for (const bool prefill_first : {false, true}) {
    for (const double rounds : {2.0, 20.0, 400.0}) {
      load.output_tokens = rounds + 1;
      planning::ReplicaLimits limits = roomy;
      limits.prefill_first = prefill_first;
      const double leave = sequences / rounds, share = 1 - std::exp(-leave);
      // A share of the iterations has the prompts of all.
      const double seconds = step + share * pass + position * prompt * leave;
      const auto balanced = [&] {
        return planning::ReplicaIterations(cost, {load, limits, plain}).balanced_load(sequences);
      };
      CHECK(balanced() == Approx(leave / seconds).epsilon(1e-12));
      limits.max_num_batched_tokens = 310;
      const double room = prefill_first ? 310 : 310 - sequences, most = room / prompt;
      if (leave > most) CHECK(balanced() == Approx(most / (step + pass + position * room)).epsilon(1e-12));
      limits.max_num_batched_tokens = 8;
      if (!prefill_first) CHECK(balanced() == 0);
    }
  }
}

TEST_CASE("a schedule decodes each batch with its own rounds") {
  const std::vector<planning::RoundsFrom> schedule = {{1, 3, 2.5, 0.2}, {3, 1, 1.5, 0.5}, {5, 0, 1, 0}};
  const PricedByFormula cost([](const cost::Iteration& iteration) {
    if (iteration.sequences == 0) return 1e-14;
    return 0.01 + 0.001 * iteration.sequences * static_cast<double>(iteration.gamma + 1);
  });
  const auto state = planning::steady_state(cost, {hundred_rounds(3), {1000, 1 << 20, 6 * 104.0}, schedule});
  REQUIRE(state);
  std::vector<double> growths;
  const double tokens[] = {2.5, 2.5, 1.5, 1.5, 1, 1};
  const int positions[] = {4, 4, 2, 2, 1, 1};
  for (int k = 1; k <= 6; ++k) growths.push_back(3 * 100 / tokens[k - 1] * (0.01 / k + 0.001 * positions[k - 1]));
  CHECK(state->mean_batch == Approx(mean_of_law(growths, growths.back())).epsilon(1e-12));
}

TEST_CASE("each limit is named where it is the one that binds") {
  const auto limited_by = [](const cost::IterationCost& cost, const planning::OfferedLoad& load,
                             const planning::ReplicaLimits& limits) {
    return planning::sustainable_load(cost, {load, limits, plain})->limited_by;
  };
  const PricedByFormula flat = linear(0.01, 0, 0);
  const planning::OfferedLoad load = hundred_rounds();
  CHECK(limited_by(flat, load, {10, 1 << 20, 1e9}) == CapacityLimit::max_num_seqs);
  CHECK(limited_by(flat, load, {1000, 1 << 20, 20 * 101}) == CapacityLimit::cache);
  CHECK(limited_by(flat, load, {1000, 64, 1e9}) == CapacityLimit::batched_tokens);
  CHECK(limited_by(linear(0.001, 0.01, 0), load, {10, 1 << 20, 1e9}) == CapacityLimit::compute);
  CHECK(planning::name_of(CapacityLimit::batched_tokens) == "batched_tokens");

  // A place is taken for the prompt's pass too.
  CHECK(sustainable(flat, load, {10, 1 << 20, 1e9}) == Approx(10 / 1.01).epsilon(1e-9));
  CHECK(sustainable(flat, load, room_for(20)) == Approx(20).epsilon(1e-9));
  // A round takes a position, and half a position of the 50 of the prompt per 100 rounds.
  planning::OfferedLoad with_prompts = load;
  with_prompts.decode_only = false;
  CHECK(sustainable(flat, with_prompts, {1000, 96, 1e9}) == Approx(64).epsilon(1e-9));
}

TEST_CASE("no load meets the limits where no sequence fits") {
  CHECK_FALSE(planning::sustainable_load(linear(0.01, 0.001, 0), {hundred_rounds(), {1000, 1 << 20, 99}, plain}));
}

TEST_CASE("more load never means a smaller batch, and cheaper iterations never serve less") {
  planning::OfferedLoad load = hundred_rounds();
  load.decode_only = false;
  const planning::ReplicaLimits limits = {100, 2048, 1e9};
  double before = 0;
  for (double requests = 0.05; requests < 20; requests *= 1.4) {
    load.requests_per_second = requests;
    const auto state = planning::steady_state(linear(0.01, 0.0004, 1e-5), {load, limits, plain});
    REQUIRE(state);
    CHECK(state->mean_batch > before);
    before = state->mean_batch;
  }
  double most = 0;
  for (const double factor : {2.0, 1.5, 1.0, 0.5}) {
    const auto found =
        planning::sustainable_load(linear(0.01 * factor, 0.0004 * factor, 1e-5 * factor), {load, limits, plain});
    REQUIRE(found);
    CHECK(found->requests_per_second > most);
    most = found->requests_per_second;
  }
}

TEST_CASE("the cache of an H200 holds, and a full batch gains, what the reference figures say") {
  // fp8 weights, bf16 cache, context 2048, ideal roofline; parameters of Llama 3.1 70B and 8B, 3.2 1B.
  struct Parameters {
    double weights, matmul, cached_bytes, attention_flops;
  };
  const Parameters large{70553706496, 69501714432, 327680, 2621440};
  const Parameters eight{8030261248, 7504658432, 131072, 524288};
  const Parameters one{1235814400, 1235746816, 32768, 131072};
  const auto pass = [](const Parameters& model, double batch, double tokens, double context) {
    const double bandwidth = 4.8e12;
    const double flops = 1978.9e12;
    const double attended = tokens * context + tokens * (tokens + 1) / 2;
    return std::max(model.matmul / bandwidth, 2 * model.matmul * batch * tokens / flops) +
           std::max(batch * (context + tokens) * model.cached_bytes / bandwidth,
                    batch * attended * model.attention_flops / flops);
  };
  const auto held = [&](const Parameters& draft) {
    return (141e9 - large.weights - draft.weights) / (large.cached_bytes + draft.cached_bytes);
  };
  planning::OfferedLoad load = hundred_rounds();
  load.mean_context = 2048;
  const PricedByFormula rounds([&](const cost::Iteration& iteration) {
    const double context = iteration.context_tokens / iteration.sequences;
    return pass(large, iteration.sequences, static_cast<double>(iteration.gamma + 1), context) +
           static_cast<double>(iteration.gamma) * pass(eight, iteration.sequences, 1, context);
  });
  const auto at = [&](double cache_tokens, std::int64_t gamma, double tokens) {
    const std::vector<planning::RoundsFrom> drafted = {{1, gamma, tokens, 0}};
    return *planning::sustainable_load(rounds, {load, {1000, 1 << 20, cache_tokens}, drafted});
  };
  CHECK(std::floor(at(held(eight), 0, 1).state.largest_batch) == 66);
  CHECK(std::floor(at(held(one), 0, 1).state.largest_batch) == 93);
  CHECK(at(held(eight), 0, 1).limited_by == CapacityLimit::cache);
  const double tokens = (1 - std::pow(0.8, 5)) / 0.2;
  const auto plain_64 = at(64 * 2049.0, 0, 1);
  CHECK(plain_64.state.iteration_seconds == Approx(23.431741e-3).epsilon(1e-7));
  CHECK(at(64 * (2049.0 + 8), 4, tokens).requests_per_second / plain_64.requests_per_second ==
        Approx(1.514050).epsilon(1e-6));
}

TEST_CASE("an equilibrium of what is no load is refused") {
  const PricedByFormula cost = linear(0.01, 0, 0);
  const auto refuses = [&](auto spoil) {
    planning::OfferedLoad load = hundred_rounds();
    planning::ReplicaLimits limits = roomy;
    std::vector<planning::RoundsFrom> rounds = plain;
    spoil(load, limits, rounds);
    CHECK_THROWS_AS(planning::steady_state(cost, {load, limits, rounds}), std::domain_error);
  };
  using planning::OfferedLoad;
  using planning::ReplicaLimits;
  using Rounds = std::vector<planning::RoundsFrom>;
  refuses([](OfferedLoad& load, ReplicaLimits&, Rounds&) { load.requests_per_second = 0; });
  refuses([](OfferedLoad& load, ReplicaLimits&, Rounds&) { load.output_tokens = 1; });
  refuses([](OfferedLoad& load, ReplicaLimits&, Rounds&) { load.prompt_tokens = std::nan(""); });
  refuses([](OfferedLoad& load, ReplicaLimits&, Rounds&) { load.prefix_cache_hit_rate = 1; });
  refuses([](OfferedLoad& load, ReplicaLimits&, Rounds&) { load.shared_prefixes = 0; });
  refuses([](OfferedLoad&, ReplicaLimits& limits, Rounds&) { limits.cache_tokens = 0; });
  refuses([](OfferedLoad&, ReplicaLimits& limits, Rounds&) { limits.max_num_seqs = 0; });
  refuses([](OfferedLoad&, ReplicaLimits&, Rounds& rounds) { rounds[0].tokens_per_step = 2; });
  refuses([](OfferedLoad&, ReplicaLimits&, Rounds& rounds) { rounds[0].batch_low = 2; });
  refuses([](OfferedLoad&, ReplicaLimits&, Rounds& rounds) { rounds.push_back({1, 0, 1, 0}); });
  CHECK_THROWS_AS(planning::steady_state(cost, {hundred_rounds(), roomy, {}}), std::invalid_argument);
}
