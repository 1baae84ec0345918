#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/random.hpp"
#include "sim/serving/request_percentiles.hpp"
#include "sim/serving/serving_run.hpp"
#include "sim/serving/simulated_workload.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/priced_iterations.hpp"
#include "tests/support/sound_run.hpp"

using namespace specdec::sim;
using Catch::Matchers::Contains;
using specdec::cost::Iteration;
using specdec::test_support::check_sound;
using specdec::test_support::priced;
using specdec::test_support::PricedIterations;

namespace {

/// Iterations of one second, a cache that never fills, and all requests count.
ServingQuestion question_of(std::vector<SimulatedRequest> requests) {
  ServingQuestion question;
  question.requests = std::move(requests);
  question.engine.cache_blocks = 1 << 20;
  question.cost = priced(1);
  question.warm_up_share = 0;
  return question;
}

std::vector<SimulatedRequest> equal_requests(std::size_t count, double gap, std::int64_t prompt, std::int64_t output) {
  std::vector<SimulatedRequest> requests;
  for (std::size_t i = 0; i < count; ++i) requests.push_back({gap * static_cast<double>(i), prompt, output});
  return requests;
}

const std::vector<Iteration>& seen_by(const ServingQuestion& question) {
  return dynamic_cast<const PricedIterations&>(*question.cost).seen;
}

ServingResult serve(const ServingQuestion& question) {
  const ServingResult result = simulate_serving(question);
  check_sound(question, result, seen_by(question));
  return result;
}

void draft(ServingQuestion& question, std::int64_t gamma, double rate) {
  question.engine.schedule = {{1, gamma}};
  question.acceptance = {{{rate}}};
}

bool same(const ServingResult& a, const ServingResult& b) {
  const auto equal = [](const ServedRequest& x, const ServedRequest& y) {
    return x.first_token_seconds == y.first_token_seconds && x.last_token_seconds == y.last_token_seconds &&
           x.output_tokens == y.output_tokens && x.preemptions == y.preemptions;
  };
  return std::equal(a.requests.begin(), a.requests.end(), b.requests.begin(), b.requests.end(), equal) &&
         a.mean_batch == b.mean_batch && a.iterations == b.iterations && a.seconds == b.seconds;
}

double sum_of(const std::vector<Iteration>& iterations, double Iteration::*part) {
  return std::accumulate(iterations.begin(), iterations.end(), 0.0,
                         [part](double sum, const Iteration& iteration) { return sum + iteration.*part; });
}

}  // namespace

TEST_CASE("requests at equal distances on an engine that serves one at a time wait as D/D/1 says, exactly") {
  ServingQuestion question = question_of(equal_requests(64, 2, 1, 1));
  question.engine.max_num_seqs = 1;
  const ServingResult idle = serve(question);
  for (const ServedRequest& request : idle.requests) CHECK(request.last_token_seconds == 1);
  CHECK(idle.seconds == 127);

  question.requests = equal_requests(64, 0.5, 1, 1);
  const ServingResult busy = serve(question);
  for (std::size_t i = 0; i < 64; ++i) CHECK(busy.requests[i].last_token_seconds == 1 + 0.5 * static_cast<double>(i));
  CHECK(busy.output_tokens_per_second == 31 / 31.5);
}

TEST_CASE("requests that come at once are served in full batches, one after the other") {
  ServingQuestion question = question_of(equal_requests(8, 0, 1, 3));
  question.engine.max_num_seqs = 4;
  const ServingResult result = serve(question);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(result.requests[i].first_token_seconds == (i < 4 ? 1 : 4));
    CHECK(result.requests[i].last_token_seconds == (i < 4 ? 3 : 6));
  }
  CHECK(result.output_tokens_per_second == 4);
  CHECK(result.mean_batch == 4 * 4 / 6.0);
  std::vector<double> ttft = first_token_seconds(result), tpot = seconds_per_token(result);
  CHECK(percentiles_of(tpot, 99)->p99 == 1);
  const auto first = percentiles_of(ttft, 99);
  CHECK(first->p50 == 1);
  CHECK(first->p90 == 4);
  CHECK(first->mean == 2.5);
}

TEST_CASE("a round puts out its accepted drafts and one token, and the last one is cut to what was asked for") {
  ServingQuestion question = question_of({{0, 5, 8}});
  draft(question, 2, 1);
  const ServingResult result = serve(question);
  CHECK(result.requests[0].last_token_seconds == 4);
  const std::vector<Iteration>& seen = seen_by(question);
  REQUIRE(seen.size() == 4);
  CHECK(seen[0].sequences == 0);
  CHECK(seen[0].prompt_tokens == 5);
  CHECK(seen[0].prompt_pairs == 15);
  for (std::size_t i = 1; i < 4; ++i) {
    CHECK(seen[i].sequences == 1);
    CHECK(seen[i].gamma == 2);
    CHECK(seen[i].context_tokens == 5 + 3 * static_cast<double>(i - 1));
    CHECK(seen[i].full_accepts == (i == 1 ? 0 : 1));
  }
  draft(question, 2, 0);
  CHECK(serve(question).requests[0].last_token_seconds == 8);
  question.acceptance = {{{1, 0}}};
  CHECK(serve(question).requests[0].last_token_seconds == 5);
}

TEST_CASE("prompts are computed in pieces beside the sequences that decode, within the budget of positions") {
  ServingQuestion question = question_of({{0, 2, 6}, {0.5, 25, 1}, {0.5, 3, 2}});
  question.engine.max_num_batched_tokens = 10;
  const ServingResult result = serve(question);
  const std::vector<Iteration>& seen = seen_by(question);
  const std::vector<double> pieces = {2, 9, 9, 9, 1};
  REQUIRE(seen.size() >= pieces.size());
  double pairs = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    CHECK(seen[i].prompt_tokens == pieces[i]);
    CHECK(seen[i].sequences == (i == 0 ? 0 : 1));
    pairs += seen[i].prompt_pairs;
  }
  CHECK(seen[3].prompts == 2);
  CHECK(pairs == 2 * 3 / 2 + 25 * 26 / 2 + 3 * 4 / 2);
  CHECK(result.requests[1].first_token_seconds == 3.5);
  CHECK(result.requests[2].first_token_seconds == 4.5);
}

TEST_CASE("prompts that come first have iterations of their own, and rounds wait for all that find room") {
  // The first request's prompt, a round, two prompts of which one is cut, its rest, and then rounds of all.
  ServingQuestion question = question_of({{0, 4, 6}, {1.5, 6, 3}, {1.5, 6, 3}});
  question.engine.max_num_batched_tokens = 8;
  question.engine.prefill_first = true;
  const ServingResult result = serve(question);
  const std::vector<Iteration>& seen = seen_by(question);
  REQUIRE(seen.size() == 8);
  const std::vector<double> prompts = {4, 0, 8, 4, 0, 0, 0, 0};
  const std::vector<double> rounds = {0, 1, 0, 0, 3, 3, 1, 1};
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(seen[i].prompt_tokens == prompts[i]);
    CHECK(seen[i].sequences == rounds[i]);
  }
  CHECK(result.requests[0].last_token_seconds == 8);
  CHECK(result.requests[1].first_token_seconds == 3 - 1.5);
  CHECK(result.requests[2].first_token_seconds == 4 - 1.5);
  CHECK(result.gaps.back().seconds == Approx(3).epsilon(1e-4));

  // A prompt that finds no place does not hold up the rounds.
  question.engine.max_num_seqs = 1;
  CHECK(serve(question).requests[0].last_token_seconds == 6);
}

TEST_CASE("a round for which the budget has not enough positions left verifies fewer drafts") {
  ServingQuestion question = question_of(equal_requests(2, 0, 1, 7));
  draft(question, 2, 1);
  question.engine.max_num_batched_tokens = 4;
  const ServingResult result = serve(question);
  // Three positions for the first and one for the second, until the first has ended.
  CHECK(result.requests[0].last_token_seconds == 3);
  CHECK(result.requests[1].last_token_seconds == 3 + 2);
  CHECK(seen_by(question)[1].sequences == 1 + 1 / 3.0);
  CHECK(seen_by(question)[2].full_accepts == 0.5);
}

TEST_CASE("what is found in the cache is not computed, and prompts computed elsewhere cost one position") {
  ServingQuestion question = question_of(equal_requests(10, 1, 100, 2));
  serve(question);
  CHECK(sum_of(seen_by(question), &Iteration::prompt_tokens) == 1000);
  question.cost = priced(1);
  question.engine.prefix_cache_hit_rate = 0.5;
  const ServingResult half = serve(question);
  CHECK(sum_of(seen_by(question), &Iteration::prompt_tokens) == 500);
  CHECK(sum_of(seen_by(question), &Iteration::prompt_pairs) == 10 * (100 * 101 / 2 - 50 * 51 / 2));
  question.cost = priced(1);
  question.engine.decode_only = true;
  const ServingResult elsewhere = serve(question);
  CHECK(sum_of(seen_by(question), &Iteration::prompt_tokens) == 10);
  CHECK(elsewhere.requests[0].first_token_seconds == 1);
  CHECK(elsewhere.peak_blocks == half.peak_blocks);
}

TEST_CASE("running requests with one prefix hold its whole blocks once, and the last of them frees it") {
  // Ten blocks each, of which eight are those of one of three prefixes.
  ServingQuestion question = question_of(equal_requests(12, 0, 100, 1));
  question.engine.block_size = 10;
  question.engine.prefix_cache_hit_rate = 0.85;
  CHECK(serve(question).peak_blocks == 12 * 10);
  question.engine.shared_prefixes = 12;
  CHECK(serve(question).peak_blocks == 12 * 10);
  question.engine.shared_prefixes = 3;
  CHECK(serve(question).peak_blocks == 3 * 8 + 12 * 2);
  // A block less has room for eleven, again and again.
  question.requests = equal_requests(1100, 0, 100, 1);
  question.engine.cache_blocks = 3 * 8 + 12 * 2 - 1;
  question.cost = priced(1);
  const ServingResult full = serve(question);
  CHECK(full.iterations == 100);
  CHECK(full.peak_blocks == 3 * 8 + 11 * 2);
  // As far as the longest of them found it: 5, 20 and 10 blocks of one prefix, and 1, 4 and 2 of their own.
  question.requests = {{0, 60, 1}, {0, 240, 1}, {0, 120, 1}};
  question.engine.prefix_cache_hit_rate = 1 / 1.2 + 1e-9;
  question.engine.shared_prefixes = 1;
  question.engine.cache_blocks = 100;
  CHECK(serve(question).peak_blocks == 20 + 1 + 4 + 2);
}

TEST_CASE("gamma follows the schedule at the requests of the iteration before") {
  ServingQuestion question = question_of(equal_requests(3, 0, 1, 4));
  question.requests.push_back({2.5, 1, 4});
  question.requests.back().output_tokens = 30;
  question.engine.schedule = {{1, 4}, {2, 2}, {3, 1}};
  question.acceptance = {{{0}}};
  serve(question);
  std::vector<std::int64_t> gammas;
  for (const Iteration& iteration : seen_by(question)) gammas.push_back(iteration.gamma);
  // Three prompts; three rounds of three, the last beside a prompt; then one sequence is left.
  REQUIRE(gammas.size() > 6);
  CHECK(std::vector<std::int64_t>(gammas.begin() + 1, gammas.begin() + 6) == std::vector<std::int64_t>{1, 1, 1, 1, 4});
}

TEST_CASE("where the blocks run out the latest request starts again with what it put out, and nothing is lost") {
  ServingQuestion question = question_of(equal_requests(2, 0, 4, 12));
  question.engine.block_size = 4;
  question.engine.cache_blocks = 6;
  const ServingResult result = serve(question);
  CHECK(result.preemptions == 1);
  CHECK(result.requests[0].preemptions == 0);
  CHECK(result.requests[1].preemptions == 1);
  CHECK(result.requests[0].last_token_seconds == 12);
  CHECK(result.peak_blocks == 6);
  // Each held 12 tokens when the first asked for a fourth block; the second had put out 9 tokens by then.
  const std::vector<Iteration>& seen = seen_by(question);
  CHECK(seen[8].sequences == 2);
  CHECK(seen[9].sequences == 1);
  CHECK(seen[12].prompt_tokens == 4 + 9);
  CHECK(result.requests[1].last_token_seconds == 12 + 3);
  for (const ServedRequest& request : result.requests) CHECK(request.output_tokens == 12);
}

TEST_CASE("nothing is admitted in an iteration that took a request's blocks") {
  ServingQuestion question = question_of({{0, 4, 12}, {0, 4, 12}, {8.5, 1, 1}});
  question.engine.block_size = 4;
  question.engine.cache_blocks = 6;
  serve(question);
  // The third could have been computed at 9, when the second gave up three blocks; it stands behind it from then on.
  CHECK(seen_by(question)[9].prompts == 0);
  CHECK(seen_by(question)[12].prompts == 2);
}

TEST_CASE("look-ahead slots of the drafts take blocks of their own") {
  ServingQuestion question = question_of({{0, 16, 2}});
  CHECK(serve(question).peak_blocks == 2);
  draft(question, 16, 1);
  CHECK(serve(question).peak_blocks == 4);
}

TEST_CASE("a request draws its law and its luck whatever is served beside it") {
  ServingQuestion question = question_of(equal_requests(200, 0, 3, 120));
  question.engine.schedule = {{1, 4}};
  question.acceptance = {{{0.9, 0.8, 0.7}}, {{0.3}}, {{}}};
  question.engine.max_num_seqs = 1;
  const ServingResult alone = serve(question);
  question.engine.max_num_seqs = 64;
  const ServingResult together = serve(question);
  for (std::size_t i = 0; i < 200; ++i) {
    const auto rounds = [i](const ServingResult& result) {
      return result.requests[i].last_token_seconds - result.requests[i].first_token_seconds;
    };
    CHECK(rounds(alone) == rounds(together));
  }
  CHECK(same(together, serve(question)));
  CHECK(same(together, simulate_serving(question)));
  question.seed = 1;
  CHECK_FALSE(same(together, serve(question)));
}

TEST_CASE("a request's rates follow the tokens in its cache, whichever law it has, and where its prompt begins") {
  // All drafts are accepted up to a context of 30, none from there to 50, and all again.
  RequestAcceptance law;
  law.conditional = {1};
  law.from_contexts = {{30, {0}}, {50, {}}};
  law.from_contexts.back().conditional = {1};
  const auto rounds_of = [&](std::int64_t prompt, std::int64_t output) {
    ServingQuestion question = question_of({{0, prompt, output}});
    question.engine.schedule = {{1, 2}};
    question.acceptance = {law, law};
    const ServingResult result = serve(question);
    return result.requests[0].last_token_seconds - result.requests[0].first_token_seconds;
  };
  CHECK(rounds_of(10, 31) == 16);  // 10 to 28 in seven rounds of 3, which end at 31, and 9 of 1
  CHECK(rounds_of(10, 21) == 7);   // never beyond 30
  CHECK(rounds_of(30, 11) == 10);  // at the bound itself
  CHECK(rounds_of(49, 8) == 3);    // 49 alone, then 50 to 55
  CHECK(rounds_of(60, 31) == 10);
}

TEST_CASE("rounds of requests whose rates follow their contexts are those of a recursion over the context", "[long]") {
  RequestAcceptance law;
  law.conditional = {0.9, 0.8};
  law.from_contexts = {{200, {0.5, 0.4}}, {350, {0.1}}};
  constexpr std::int64_t gamma = 3;
  std::vector<SimulatedRequest> requests;
  for (std::int64_t i = 0; i < 4000; ++i) requests.push_back({0, 60 + 37 * (i % 11), 1 + 29 * (i % 13)});
  const auto rates_at = [&](std::int64_t context) -> const std::vector<double>& {
    return context < 200 ? law.conditional : law.from_contexts[context < 350 ? 0 : 1].conditional;
  };
  // N(context, left) = 1 + sum_k P(k tokens) N(context + k, left - k), without the library.
  const auto expected_rounds = [&](const SimulatedRequest& request) {
    const std::int64_t tokens = request.output_tokens - 1;
    std::vector<double> rounds(static_cast<std::size_t>(tokens) + 1, 0);
    for (std::int64_t left = 1; left <= tokens; ++left) {
      const std::vector<double>& rates = rates_at(request.prompt_tokens + tokens - left);
      double reached = 1, sum = 1;
      for (std::int64_t k = 1; k <= gamma + 1 && k < left; ++k) {
        const double rate =
            k > gamma ? 0 : rates[std::min<std::size_t>(static_cast<std::size_t>(k - 1), rates.size() - 1)];
        sum += reached * (1 - rate) * rounds[static_cast<std::size_t>(left - k)];
        reached *= rate;
      }
      rounds[static_cast<std::size_t>(left)] = sum;
    }
    return rounds.back();
  };
  double rounds = 0, tokens = 0;
  for (const SimulatedRequest& request : requests) {
    rounds += expected_rounds(request);
    tokens += static_cast<double>(request.output_tokens - 1);
  }
  // The tokens that a round puts out beyond a bound are taken at the rate before it.
  CHECK(RoundsToCover(requests, contexts_of(law)).rounds({law}, 1, gamma).tokens_per_step ==
        Approx(tokens / rounds).epsilon(0.005));
  // Forgetting the contexts is no such error.
  CHECK(RoundsToCover(requests).rounds({{law.conditional}}, 1, gamma).tokens_per_step > 1.3 * tokens / rounds);

  ServingQuestion question = question_of(requests);
  question.engine.schedule = {{1, gamma}};
  question.acceptance = {law};
  const auto tokens_per_round = [&] {
    question.cost = priced(1);
    serve(question);
    return tokens / sum_of(seen_by(question), &Iteration::sequences);
  };
  // A round puts out 1 to 4 tokens, a standard deviation of at most 1.5: three of the mean's fail one seed in 370.
  const double tolerance = 3 * 1.5 / std::sqrt(rounds);
  CHECK(tokens_per_round() == Approx(tokens / rounds).margin(tolerance));
  question.acceptance = {{law.conditional}};
  CHECK(tokens_per_round() > tokens / rounds + tolerance);
}

TEST_CASE("a client sends its next request when the last token of its previous one has come") {
  ServingQuestion question = question_of(equal_requests(4, 100, 1, 3));
  question.clients = 1;
  const ServingResult result = serve(question);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(result.requests[i].arrival_seconds == 3 * static_cast<double>(i));
    CHECK(result.requests[i].first_token_seconds == 1);
    CHECK(result.requests[i].last_token_seconds == 3);
  }
  CHECK(result.seconds == 12);
  CHECK(result.output_tokens_per_second == 1);
}

TEST_CASE("what a request takes beside the engine is in its times, and delays the next one") {
  ServingQuestion question = question_of(equal_requests(4, 100, 1, 3));
  question.clients = 1;
  question.outside_seconds = 0.5;
  const ServingResult result = serve(question);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(result.requests[i].arrival_seconds == 3.5 * static_cast<double>(i));
    CHECK(result.requests[i].first_token_seconds == 1.5);
    CHECK(result.requests[i].last_token_seconds == 3.5);
  }
  CHECK(seconds_per_token(result) == std::vector<double>(4, 1.0));

  question.clients.reset();
  const ServingResult open = serve(question);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(open.requests[i].arrival_seconds == 100 * static_cast<double>(i));
    CHECK(open.requests[i].first_token_seconds == 1.5);
  }
}

TEST_CASE("clients of equal requests go on in the order in which they began") {
  // Two places for four clients: the first generation of the later two waits for three seconds, all others, too.
  ServingQuestion question = question_of(equal_requests(12, 0, 1, 3));
  question.clients = 4;
  question.engine.max_num_seqs = 2;
  const ServingResult two = serve(question);
  for (std::size_t i = 0; i < 12; ++i) {
    CHECK(two.requests[i].arrival_seconds == (i < 4 ? 0 : 3 * static_cast<double>(i / 2 - 1)));
    CHECK(two.requests[i].last_token_seconds == (i < 2 ? 3 : 6));
  }
  CHECK(two.output_tokens_per_second == 2);

  // Three prompts fit into an iteration, but not beside the fourth request once that decodes.
  question.engine.max_num_seqs = 4;
  question.requests = equal_requests(8, 0, 4, 5);
  question.engine.max_num_batched_tokens = 12;
  const ServingResult pieces = serve(question);
  const std::vector<double> arrival = {0, 0, 0, 0, 5, 5, 5, 6};
  const std::vector<double> first = {1, 1, 1, 2, 1, 1, 2, 1};
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(pieces.requests[i].arrival_seconds == arrival[i]);
    CHECK(pieces.requests[i].first_token_seconds == first[i]);
  }
}

TEST_CASE("the pauses between outputs are as long as the iterations between them, and add up to the requests' times") {
  ServingQuestion question = question_of({{0, 5, 8}, {1.5, 6, 2}});
  draft(question, 2, 1);
  question.cost = priced([](const Iteration& iteration) { return iteration.prompt_tokens > 0 ? 4.0 : 1.0; });
  // The first request puts out one token at 4, three each at 8, beside the other one's prompt, and at 9, one at 10.
  const ServingResult result = serve(question);
  CHECK(result.requests[0].last_token_seconds == 10);
  CHECK(result.requests[1].last_token_seconds == 9 - 1.5);
  REQUIRE(result.gaps.size() == 2);
  CHECK(result.gaps[0].seconds == Approx(1).epsilon(1e-4));
  CHECK(result.gaps[0].count == 3);
  CHECK(result.gaps[1].seconds == Approx(4).epsilon(1e-4));
  CHECK(result.gaps[1].count == 1);
  std::vector<GapCount> pauses = result.gaps, none;
  const auto gaps = percentiles_of(pauses, 99);
  REQUIRE(gaps);
  CHECK(gaps->mean == Approx(7.0 / 4).epsilon(1e-4));
  CHECK(gaps->p50 == result.gaps[0].seconds);
  CHECK(gaps->p90 == result.gaps[1].seconds);
  CHECK_FALSE(percentiles_of(none, 99));
}

namespace {

/// An engine and a load of any kind, drawn by the number of the run.
ServingQuestion any_question(std::uint64_t run) {
  const RandomStream stream(7, run);
  std::int64_t slot = 0;
  const auto whole = [&](std::int64_t lo, std::int64_t hi) {
    return lo + static_cast<std::int64_t>(stream.uniform(0, slot++, Purpose::test) * static_cast<double>(hi - lo + 1));
  };
  ServingQuestion question = question_of({});
  double time = 0;
  const double gap = static_cast<double>(whole(0, 8)) / 2;
  for (std::int64_t i = 0; i < 40; ++i) {
    time += gap * stream.uniform(1, i, Purpose::test);
    question.requests.push_back({time, whole(1, 40), whole(1, 30)});
  }
  ServingEngine& engine = question.engine;
  engine.schedule = {{1, whole(0, 4)}, {whole(2, 6), whole(0, 4)}};
  question.acceptance = {{{0.9}}, {{0.5, 0.2}}};
  engine.max_num_seqs = whole(1, 12);
  engine.max_num_batched_tokens = whole(1, 50);
  engine.block_size = whole(1, 16);
  engine.cache_blocks = (40 + 30 + 8 + engine.block_size - 1) / engine.block_size + whole(0, 20);
  engine.prefix_cache_hit_rate = static_cast<double>(whole(0, 3)) / 4;
  engine.decode_only = whole(0, 3) == 0;
  engine.prefill_first = whole(0, 3) == 0;
  question.cost = priced([](const Iteration& iteration) {
    if (!(0 <= iteration.full_accepts && iteration.full_accepts <= 1)) throw std::logic_error("full_accepts");
    return 0.1 + 0.01 * (iteration.sequences * static_cast<double>(iteration.gamma + 1) + iteration.prompt_tokens);
  });
  question.seed = run;
  question.warm_up_share = static_cast<double>(whole(0, 4)) / 10;
  if (whole(0, 1) == 0) question.clients = whole(1, 40);
  question.outside_seconds = static_cast<double>(whole(0, 2)) / 4;
  if (whole(0, 1) == 0) engine.shared_prefixes = whole(1, 6);
  return question;
}

bool same_iterations(const std::vector<Iteration>& a, const std::vector<Iteration>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Iteration& x, const Iteration& y) {
    return x.sequences == y.sequences && x.gamma == y.gamma && x.context_tokens == y.context_tokens &&
           x.prompt_tokens == y.prompt_tokens && x.prompts == y.prompts && x.prompt_pairs == y.prompt_pairs &&
           x.full_accepts == y.full_accepts;
  });
}

}  // namespace

TEST_CASE("invariants hold for engines and loads of any kind, and pauses add up to the times of requests") {
  std::int64_t preemptions = 0;
  for (std::uint64_t run = 0; run < 300; ++run) {
    const ServingQuestion question = any_question(run);
    const ServingResult result = serve(question);
    preemptions += result.preemptions;
    double decoding = 0;
    double gaps = 0;
    for (std::size_t i = result.first_counted; i < result.first_counted + result.counted_requests; ++i)
      decoding += result.requests[i].last_token_seconds - result.requests[i].first_token_seconds;
    for (const GapCount& pause : result.gaps) gaps += pause.seconds * static_cast<double>(pause.count);
    CHECK(gaps == Approx(decoding).epsilon(1e-4));
    CHECK(result.counted_requests == 40 - 2 * result.first_counted);
  }
  CHECK(preemptions > 1000);
}

TEST_CASE("sums over sequences in step are, bit for bit, what the sequences do one by one") {
  std::int64_t preemptions = 0, cut = 0;
  for (std::uint64_t run = 0; run < 600; ++run) {
    ServingQuestion question = any_question(run);
    ServingEngine& engine = question.engine;
    engine.schedule.resize(1);
    engine.prefill_first = false;
    // Some leave step for lack of blocks, some for lack of positions, some never.
    if (run % 3 > 0) engine.cache_blocks += 200;
    if (run % 3 > 1) engine.max_num_batched_tokens += 60;
    for (std::size_t i = 0; i < question.acceptance.size() && run % 2 == 0; ++i)
      question.acceptance[i].from_contexts = {{20, {0.1 + 0.5 * static_cast<double>(i)}}, {33, {0.7}}};
    const auto served = [&](Decoding decoding) {
      question.cost = priced([](const Iteration& iteration) {
        return 0.1 + 0.01 * (iteration.sequences * static_cast<double>(iteration.gamma + 1) + iteration.prompt_tokens) +
               1e-4 * iteration.context_tokens + 0.02 * iteration.full_accepts;
      });
      const ServingResult result = simulate_serving(question, RunOptions{.decoding = decoding});
      check_sound(question, result, seen_by(question));
      return std::pair(result, seen_by(question));
    };
    const auto [one_by_one, seen_one_by_one] = served(Decoding::one_by_one);
    const auto [in_step, seen_in_step] = served(Decoding::in_step);
    CHECK(same(one_by_one, in_step));
    CHECK(same_iterations(seen_one_by_one, seen_in_step));
    CHECK(one_by_one.peak_blocks == in_step.peak_blocks);
    CHECK(one_by_one.output_tokens_per_second == in_step.output_tokens_per_second);
    CHECK(
        std::equal(one_by_one.gaps.begin(), one_by_one.gaps.end(), in_step.gaps.begin(), in_step.gaps.end(),
                   [](const GapCount& a, const GapCount& b) { return a.seconds == b.seconds && a.count == b.count; }));
    preemptions += in_step.preemptions;
    for (const Iteration& iteration : seen_in_step) cut += iteration.sequences != std::floor(iteration.sequences);
  }
  CHECK(preemptions > 300);
  CHECK(cut > 300);
}

TEST_CASE("runs that share what requests draw are those that draw by themselves, however much is kept") {
  for (const std::size_t most_kept : {std::size_t{0}, std::size_t{100}, std::size_t{1} << 20}) {
    for (std::uint64_t run = 0; run < 30; ++run) {
      ServingQuestion question = any_question(run);
      question.engine.schedule.resize(1);
      const ServingResult alone = serve(question);
      RequestDraws draws(question.requests, question.seed, most_kept);
      RequestRounds rounds(question.requests, question.acceptance, question.engine, draws, most_kept);
      for (int again = 0; again < 2; ++again) CHECK(same(simulate_serving(question, rounds), alone));
    }
  }
}

TEST_CASE("a question that cannot be served is refused with what is wrong") {
  const auto message = [](const ServingQuestion& question) -> std::string {
    try {
      serve(question);
    } catch (const std::domain_error& error) {
      return error.what();
    } catch (const std::invalid_argument& error) {
      return std::string("argument: ") + error.what();
    }
    return "";
  };
  const ServingQuestion sound = question_of({{0, 100, 20}, {1, 1, 1}});
  CHECK(message(sound).empty());
  ServingQuestion question = sound;
  draft(question, 3, 0.5);
  question.engine.cache_blocks = 7;
  CHECK_THAT(message(question), Contains("request 0 (100 tokens of prompt, 20 of output, 6 slots for drafts) needs 8 "
                                         "blocks of 16 tokens, but the cache has 7"));
  question.engine.cache_blocks = 8;
  CHECK(message(question).empty());
  question.acceptance.clear();
  CHECK_THAT(message(question), Contains("argument: simulate_serving: acceptance is empty, but the schedule drafts 3"));
  question = sound;
  question.requests[1].arrival_seconds = -1;
  CHECK_THAT(message(question), Contains("arrival_seconds of request 1 is -1, but must be"));
  question.requests[1] = {std::nan(""), 1, 1};
  CHECK_THAT(message(question), Contains("arrival_seconds of request 1 is nan"));
  question.requests[1] = {1, 0, 1};
  CHECK_THAT(message(question), Contains("prompt_tokens of request 1 is 0"));
  question.requests[1] = {1, 1, -4};
  CHECK_THAT(message(question), Contains("output_tokens of request 1 is -4"));
  question.requests.clear();
  CHECK_THAT(message(question), Contains("requests is empty"));
  question = sound;
  question.cost = nullptr;
  CHECK_THAT(message(question), Contains("cost is null"));
  for (const double seconds : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    question.cost = priced(seconds);
    CHECK_THAT(message(question), Contains("the cost of an iteration is"));
  }
  question = sound;
  question.requests[1].arrival_seconds = 1e9;
  CHECK(message(question).empty());
  question.requests[1].arrival_seconds = 1e16;
  CHECK_THAT(message(question), Contains("too far apart to time them: 1e+16 seconds after 0"));
  question = sound;
  draft(question, 3, 0.5);
  question.acceptance.front().from_contexts = {{20, {0.4}}, {20, {0.3}}};
  CHECK_THAT(message(question), Contains("context from which rates hold is 20, but must be in [21,"));
  question.acceptance.front().from_contexts = {{20, {1.4}}};
  CHECK_THAT(message(question), Contains("conditional acceptance is 1.4"));
  question.acceptance.front().from_contexts = {{20, {0.4}}};
  question.acceptance.push_back({{0.4}});
  CHECK_THAT(message(question), Contains("acceptance changes at different contexts"));
  question = sound;
  question.engine.schedule = {{1, 2}, {1, 3}};
  CHECK_THAT(message(question), Contains("batch_low of a stretch of the schedule is 1"));
  question.engine.schedule = {{2, 2}};
  CHECK_THAT(message(question), Contains("first stretch is 2"));
  question.engine.schedule.clear();
  CHECK_THAT(message(question), Contains("schedule is empty"));
  question = sound;
  question.engine.prefix_cache_hit_rate = 1;
  CHECK_THAT(message(question), Contains("prefix_cache_hit_rate is 1"));
  question.engine.prefix_cache_hit_rate = 0;
  question.engine.shared_prefixes = 0;
  CHECK_THAT(message(question), Contains("shared_prefixes is 0"));
  question = sound;
  question.engine.max_num_seqs = 0;
  CHECK_THAT(message(question), Contains("max_num_seqs is 0"));
}
