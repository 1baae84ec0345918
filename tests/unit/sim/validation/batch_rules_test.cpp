#include "sim/validation/batch_rules.hpp"

#include <cmath>
#include <memory>
#include <vector>

#include "sim/policies.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using namespace specdec::validation;

namespace {

/// A batch of texts whose drafts each have one rate.
struct Requests {
  std::vector<double> rates;
  std::vector<sim::BatchedText> texts;

  Requests(std::vector<double> of_each, std::int64_t tokens) : rates(std::move(of_each)) {
    for (std::size_t r = 0; r < rates.size(); ++r)
      texts.push_back({.sequence = static_cast<std::int64_t>(r),
                       .tokens = tokens,
                       .acceptance = std::span(rates).subspan(r, 1),
                       .group = static_cast<std::int64_t>(r)});
  }
};

/// A step of the target, with each token of it at a price beside that.
sim::BatchCost linear_cost(double per_token, double per_draft = 0) {
  return [=](std::int64_t sequences, std::int64_t drafted, std::int64_t verified) {
    return 1 + per_token * static_cast<double>(sequences + verified) + per_draft * static_cast<double>(drafted);
  };
}

struct Totals {
  double steps = 0, tokens = 0, verified = 0, cost = 0;
  double tokens_per_step() const { return tokens / steps; }
  double throughput() const { return tokens / cost; }
};

Totals totals_of(const std::vector<sim::BatchedRun>& runs) {
  Totals all;
  for (const sim::BatchedRun& run : runs) {
    all.steps += static_cast<double>(run.steps);
    all.tokens += static_cast<double>(run.tokens);
    all.verified += static_cast<double>(run.verified);
    all.cost += run.cost;
  }
  return all;
}

Totals run(const Requests& requests, sim::BatchRule& rule, const sim::BatchCost& cost) {
  return totals_of(decode_in_batches(requests.texts, std::ssize(requests.texts), rule, cost, 3));
}

theory::Survivals survivals_of(const Requests& requests, std::int64_t gamma) {
  theory::Survivals survivals;
  for (const double rate : requests.rates) {
    std::vector<double>& row = survivals.emplace_back();
    for (std::int64_t k = 1; k <= gamma; ++k) row.push_back(std::pow(rate, k));
  }
  return survivals;
}

/// Expected tokens of a round of some drafts each, over its cost.
double fixed_throughput(const Requests& requests, std::int64_t gamma, const sim::BatchCost& cost) {
  double tokens = 0;
  for (const double rate : requests.rates) {
    tokens += 1;
    for (std::int64_t k = 1; k <= gamma; ++k) tokens += std::pow(rate, k);
  }
  const std::int64_t n = std::ssize(requests.rates);
  return tokens / cost(n, gamma, n * gamma);
}

}  // namespace

TEST_CASE("a known budget makes the tokens per cost of theory while the batch is full", "[batch_rules]") {
  // Every text is longer than what is decoded until the interruption.
  const Requests requests({0.95, 0.9, 0.7, 0.5, 0.3, 0.1}, 1 << 20);
  const sim::BatchCost cost = linear_cost(0.05, 0.01);
  KnownBudgetRule rule(6, cost);
  constexpr int rounds = 20'000;
  int left = rounds;
  const Totals found = totals_of(decode_in_batches(requests.texts, 6, rule, cost, 3, [&] { return left-- == 0; }));
  const theory::VerificationBudget best =
      theory::best_budget(survivals_of(requests, 6), [&](std::int64_t drafts) { return cost(6, 6, drafts); });
  CHECK(found.verified == static_cast<double>(best.drafts) * rounds);
  CHECK(found.cost == Approx(best.cost * rounds));
  // Six texts of at most 7 tokens a round: a standard deviation below 6, so 0.04 of the mean's; 5 of them are exceeded
  // by chance once in 10^6.
  CHECK(found.tokens / rounds == Approx(best.tokens).margin(5 * 6 / std::sqrt(static_cast<double>(rounds))));
}

TEST_CASE("no fixed gamma keeps up with a known budget where requests differ and tokens cost", "[batch_rules]") {
  const Requests requests({0.97, 0.9, 0.6, 0.4, 0.2, 0.1}, 100);
  const sim::BatchCost cost = linear_cost(0.05);
  const theory::VerificationBudget best =
      theory::best_budget(survivals_of(requests, 7), [&](std::int64_t drafts) { return cost(6, 7, drafts); });
  for (std::int64_t gamma = 0; gamma <= 7; ++gamma)
    CHECK(fixed_throughput(requests, gamma, cost) < best.tokens / best.cost);
}

TEST_CASE("counted groups come close to what is known, and one group for all does not", "[batch_rules]") {
  Requests requests({0.97, 0.95, 0.9, 0.5, 0.3, 0.2, 0.1, 0.05}, 4000);
  const sim::BatchCost cost = linear_cost(0.08);
  KnownBudgetRule known(7, cost);
  CountingBudgetRule counting(7, cost);
  const double bound = run(requests, known, cost).throughput();
  CHECK(run(requests, counting, cost).throughput() > 0.97 * bound);
  for (sim::BatchedText& text : requests.texts) text.group = 0;
  CountingBudgetRule blind(7, cost);
  CHECK(run(requests, blind, cost).throughput() < 0.97 * bound);
}

TEST_CASE("a moving average drafts less where little is accepted and the most where all is", "[batch_rules]") {
  const sim::BatchCost cost = linear_cost(0.01);
  MovingAverageRule low(7), high(7), middle(7);
  const Requests bad({0.1, 0.1}, 20'000), good({1, 1}, 20'000), fair({0.75, 0.75}, 20'000);
  const Totals few = run(bad, low, cost);
  // Down to 1 draft: m is 0.1 on average, at most 1 - 0.5. It seldom exceeds the 0.25 from which 3 are tried.
  CHECK(few.verified / few.steps < 1.15);
  CHECK(run(good, high, cost).tokens_per_step() == Approx(8).margin(0.02));
  // 3 drafts accept 1.73 and 7 accept 2.60; up from 3 above 2.25, down from 7 at 2.5 or below: both, from time to time.
  const Totals some = run(fair, middle, cost);
  CHECK(some.verified / some.steps > 3);
  CHECK(some.verified / some.steps < 7);
}

namespace {

/// Rounds of texts with sure outcomes. Shape of both: (rounds)
struct SureRounds {
  std::vector<std::int64_t> verified, accepted;
};

/// Passes on what a rule decides and sees.
class Recorder final : public sim::BatchRule {
 public:
  explicit Recorder(sim::BatchRule& rule) : rule_(rule) {}
  sim::BatchDecision decide(std::span<const sim::BatchedPlace> batch) override { return rule_.decide(batch); }
  void observe(std::span<const sim::BatchedPlace> batch, const sim::BatchDecision& decision,
               std::span<const std::int64_t> accepted) override {
    rounds.verified.push_back(decision.verified.front());
    rounds.accepted.push_back(accepted.front());
    rule_.observe(batch, decision, accepted);
  }

  SureRounds rounds;

 private:
  sim::BatchRule& rule_;
};

SureRounds rounds_of(PolicyRule rule, const std::vector<double>& acceptance) {
  Recorder recorder(rule);
  const sim::BatchedText text{.tokens = std::ssize(acceptance), .acceptance = acceptance};
  decode_in_batches({&text, 1}, 1, recorder, linear_cost(0), 1);
  return recorder.rounds;
}

using Numbers = std::vector<std::int64_t>;

}  // namespace

// Accepted: yes yes no yes yes yes no yes. The third token is the bonus after two drafts; the last is never drafted.
TEST_CASE("a fixed gamma is drafted up to the end of a text", "[batch_rules]") {
  const SureRounds rounds = rounds_of(PolicyRule(2), {1, 1, 0, 1, 1, 1, 0, 1});
  CHECK(rounds.verified == Numbers{2, 2, 1, 0});
  CHECK(rounds.accepted == Numbers{2, 2, 0, 0});
}

TEST_CASE("feedback drafts two more after a full accept and one less after another round", "[batch_rules]") {
  const SureRounds rounds = rounds_of(PolicyRule(2, sim::feedback_policy().next_gamma), {0, 0, 1, 0, 1, 1, 1, 0, 1, 1});
  CHECK(rounds.verified == Numbers{2, 1, 1, 3, 1});
  CHECK(rounds.accepted == Numbers{0, 0, 1, 3, 1});
}

TEST_CASE("a policy drafts the token that stops it, and none that it leaves out", "[batch_rules]") {
  const std::vector<double> probability = {0.9, 0.8, 0.1, 0.7, 0.9};
  const std::vector<bool> all(5), but_the_fourth = {false, false, false, true, false};
  CHECK(drafts_from(2, {}, {}, all) == Numbers{2, 2, 2, 2, 1});
  CHECK(drafts_from(4, {}, {}, but_the_fourth) == Numbers{3, 2, 1, 0, 1});
  CHECK(drafts_from(4, sim::threshold_policy(0.5), probability, all) == Numbers{3, 2, 1, 2, 1});
  CHECK(drafts_from(4, sim::threshold_policy(0, 0.75), probability, all) == Numbers{2, 2, 1, 1, 1});
  const Numbers most = {2, 2, 1, 1, 1};
  CHECK(rounds_of(PolicyRule(4, {}, most), {1, 1, 1, 1, 1}).verified == Numbers{2, 1});
}
