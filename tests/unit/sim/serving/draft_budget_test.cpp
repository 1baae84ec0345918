#include "sim/serving/draft_budget.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "analysis/theory/verification_budget.hpp"
#include "sim/random.hpp"
#include "sim/serving/serving_simulation.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/priced_iterations.hpp"
#include "tests/support/sound_run.hpp"

using namespace specdec;
using namespace specdec::sim;
using cost::Iteration;
using test_support::check_sound;
using test_support::priced;
using test_support::PricedIterations;

namespace {

constexpr std::int64_t longest = 4;

/// Counts of one sequence at every position.
struct Seen {
  std::vector<std::int64_t> accepted = std::vector<std::int64_t>(longest, 0);
  std::vector<std::int64_t> reached = std::vector<std::int64_t>(longest, 0);

  void add(std::int64_t verified, std::int64_t its_accepted) {
    for (std::int64_t k = 0; k < verified && k <= its_accepted; ++k) {
      ++reached[static_cast<std::size_t>(k)];
      if (k < its_accepted) ++accepted[static_cast<std::size_t>(k)];
    }
  }
};

theory::Survivals expected_survivals(const std::vector<Seen>& sequences, const Seen& of_all, std::int64_t gamma) {
  theory::Survivals survivals;
  for (const Seen& counts : sequences) {
    double product = 1;
    std::vector<double>& survival = survivals.emplace_back();
    for (std::size_t k = 0; k < static_cast<std::size_t>(gamma); ++k) {
      const double expected =
          (static_cast<double>(of_all.accepted[k]) + 1) / (static_cast<double>(of_all.reached[k]) + 1);
      product *=
          (static_cast<double>(counts.accepted[k]) + 2 * expected) / (static_cast<double>(counts.reached[k]) + 2);
      survival.push_back(product);
    }
  }
  return survivals;
}

/// Requests that all come at once, on an engine with room for them.
ServingQuestion drafting_question(std::size_t requests, std::int64_t output, PricedIterations::Price price) {
  ServingQuestion question;
  question.requests.assign(requests, {0, 1, output});
  question.engine.cache_blocks = 1 << 20;
  question.engine.schedule = {{1, longest}};
  question.cost = priced(std::move(price));
  question.acceptance = {{{0.9}}, {{0.2}}};
  question.warm_up_share = 0;
  return question;
}

ServingResult served(ServingQuestion question, bool budget) {
  question.engine.verification_budget = budget;
  const ServingResult result = simulate_serving(question);
  check_sound(question, result, dynamic_cast<const PricedIterations&>(*question.cost).seen);
  return result;
}

}  // namespace

TEST_CASE("what a budget admits is what the closed form says of the same estimates") {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int question = 0; question < 200; ++question) {
    const auto sequences = static_cast<std::size_t>(1 + random() % 6);
    const auto gamma = static_cast<std::int64_t>(1 + random() % longest);
    DraftBudget budget(longest, sequences + 1);
    std::vector<Seen> seen(sequences);
    Seen of_all;
    for (std::size_t s = 0; s < sequences; ++s) {
      for (std::uint64_t round = random() % 30; round > 0; --round) {
        const auto verified = static_cast<std::int64_t>(random() % (longest + 1));
        const auto accepted = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(verified + 1));
        budget.count(s + 1, verified, accepted);
        seen[s].add(verified, accepted);
        of_all.add(verified, accepted);
      }
    }
    const theory::Survivals survivals = expected_survivals(seen, of_all, gamma);
    std::vector<double> seconds = {1};
    for (std::int64_t k = 0; k < gamma; ++k) seconds.push_back(seconds.back() + uniform(random));
    const auto price = [&](std::int64_t drafts) {
      const double each = static_cast<double>(drafts) / static_cast<double>(sequences);
      const double low = std::floor(each);
      const auto whole = static_cast<std::size_t>(low);
      return each == low ? seconds[whole] : seconds[whole] + (each - low) * (seconds[whole + 1] - seconds[whole]);
    };
    std::vector<std::size_t> places(sequences);
    std::iota(places.begin(), places.end(), std::size_t{1});
    const std::vector<std::int64_t> verified = budget.verified(places, gamma, seconds);
    CHECK(verified == theory::admitted_drafts(survivals, theory::best_budget(survivals, price).drafts));
  }
}

TEST_CASE("places of sequences are moved and forgotten with what was counted there") {
  DraftBudget budget(2, 3);
  for (int round = 0; round < 20; ++round) {
    budget.count(1, 2, 2);
    budget.count(2, 2, 0);
  }
  const std::vector<double> seconds = {1, 1.4, 1.8};
  const std::vector<std::size_t> good = {0}, bad = {2};
  budget.move(1, 0);
  CHECK(budget.verified(good, 2, seconds) == std::vector<std::int64_t>{2});
  CHECK(budget.verified(bad, 2, seconds) == std::vector<std::int64_t>{0});
  // A new sequence is one of those, half of whose first drafts were accepted.
  budget.forget(2);
  const std::vector<double> cheap = {1, 1.4}, dear = {1, 1.6};
  CHECK(budget.verified(bad, 1, cheap) == std::vector<std::int64_t>{1});
  CHECK(budget.verified(bad, 1, dear) == std::vector<std::int64_t>{0});
}

TEST_CASE("where verification is free a budget verifies every draft, and serves as a fixed gamma does") {
  const auto question = [] { return drafting_question(12, 60, [](const Iteration&) { return 1.0; }); };
  const ServingResult fixed = served(question(), false), budgeted = served(question(), true);
  CHECK(budgeted.iterations == fixed.iterations);
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(budgeted.requests[i].last_token_seconds == fixed.requests[i].last_token_seconds);
}

TEST_CASE("where verification is dear a budget verifies nothing, and every round puts out one token") {
  const auto dear = [](const Iteration& i) { return 1 + i.decoded_positions() * i.decoded_positions(); };
  CHECK(served(drafting_question(12, 60, dear), true).iterations == 60);
}

TEST_CASE("a budget serves requests that differ faster than any gamma for all") {
  const auto price = [](const Iteration& i) { return 1 + 0.03 * (i.decoded_positions() + i.prompt_tokens); };
  const auto rate_of = [&](std::int64_t gamma, bool budget) {
    ServingQuestion question = drafting_question(256, 200, price);
    question.engine.max_num_seqs = 32;
    question.engine.schedule = {{1, gamma}};
    return 1 / served(question, budget).seconds;
  };
  const double budgeted = rate_of(longest, true);
  for (std::int64_t gamma = 0; gamma <= longest; ++gamma) CHECK(budgeted > rate_of(gamma, false));
}

TEST_CASE("a served budget is that of the closed form, round by round, for the luck of each request") {
  constexpr std::size_t requests = 16, rounds = 400;
  const auto seconds_of = [](double positions) { return 1 + 0.04 * positions; };
  ServingQuestion question = drafting_question(requests, 4000, {});
  question.engine.verification_budget = true;
  std::vector<double> served_drafts;
  question.cost = priced([&](const Iteration& i) {
    if (i.sequences == requests && i.verified) served_drafts.push_back(*i.verified);
    return seconds_of(i.decoded_positions() + i.prompt_tokens);
  });
  simulate_serving(question);

  std::vector<double> rates;
  for (std::size_t r = 0; r < requests; ++r)
    rates.push_back(RandomStream(question.seed, r).uniform(0, 1, Purpose::serving) < 0.5 ? 0.9 : 0.2);
  std::vector<Seen> seen(requests);
  std::vector<std::int64_t> put_out(requests, 1);
  for (std::size_t round = 0; round < rounds; ++round) {
    Seen of_all;
    for (const Seen& one : seen) {
      for (std::size_t k = 0; k < longest; ++k) {
        of_all.accepted[k] += one.accepted[k];
        of_all.reached[k] += one.reached[k];
      }
    }
    const theory::Survivals survivals = expected_survivals(seen, of_all, longest);
    const auto cost = [&](std::int64_t drafts) { return seconds_of(requests + static_cast<double>(drafts)); };
    const theory::VerificationBudget best = theory::best_budget(survivals, cost);
    // Before each iteration the engine asks for the price of 0 to gamma drafts of each.
    REQUIRE(served_drafts.at(round * (longest + 2) + longest + 1) == static_cast<double>(best.drafts));
    const std::vector<std::int64_t> verified = theory::admitted_drafts(survivals, best.drafts);
    for (std::size_t r = 0; r < requests; ++r) {
      const double u = RandomStream(question.seed, r).uniform(put_out[r], 0, Purpose::serving);
      std::int64_t accepted = 0;
      while (accepted < verified[r] && u < std::pow(rates[r], accepted + 1)) ++accepted;
      seen[r].add(verified[r], accepted);
      put_out[r] += accepted + 1;
    }
  }
}
