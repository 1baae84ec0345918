#include "analysis/theory/verification_budget.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

using namespace specdec::theory;

namespace {

/// P(draft k is accepted | those before it were), the survivals' source.
using Conditionals = std::vector<std::vector<double>>;

Survivals survivals_of(const Conditionals& conditionals) {
  Survivals survivals;
  for (const auto& rates : conditionals) {
    double product = 1;
    std::vector<double>& row = survivals.emplace_back();
    for (const double rate : rates) row.push_back(product *= rate);
  }
  return survivals;
}

/// The expected tokens of a round by enumeration: every outcome of every draft, with its probability, and the tokens
/// that the rule of acceptance makes of it.
double enumerated_tokens(const Conditionals& conditionals, const std::vector<std::int64_t>& admitted) {
  double tokens = 0;
  for (std::size_t r = 0; r < conditionals.size(); ++r) {
    const auto drafts = static_cast<std::size_t>(admitted[r]);
    for (unsigned outcome = 0; outcome < (1u << drafts); ++outcome) {
      double probability = 1;
      std::size_t accepted = 0;
      for (std::size_t k = 0; k < drafts; ++k) {
        const bool stays = (outcome >> k & 1u) != 0;
        probability *= stays ? conditionals[r][k] : 1 - conditionals[r][k];
        if (stays && accepted == k) ++accepted;
      }
      tokens += probability * static_cast<double>(accepted + 1);
    }
  }
  return tokens;
}

/// Calls take(admitted) for every way to verify some prefix of each request's drafts.
template <class Take>
void for_each_allocation(const Conditionals& conditionals, const Take& take) {
  std::vector<std::int64_t> admitted(conditionals.size(), 0);
  while (true) {
    take(admitted);
    std::size_t r = 0;
    while (r < admitted.size() && admitted[r] == std::ssize(conditionals[r])) admitted[r++] = 0;
    if (r == admitted.size()) return;
    ++admitted[r];
  }
}

std::int64_t sum_of(const std::vector<std::int64_t>& numbers) {
  std::int64_t sum = 0;
  for (const std::int64_t number : numbers) sum += number;
  return sum;
}

double best_enumerated(const Conditionals& conditionals, std::int64_t budget) {
  double best = 0;
  for_each_allocation(conditionals, [&](const std::vector<std::int64_t>& admitted) {
    if (sum_of(admitted) == budget) best = std::max(best, enumerated_tokens(conditionals, admitted));
  });
  return best;
}

/// The broken twin: greedy on the acceptance of the next draft alone, forgetting that those before it must stay.
std::vector<std::int64_t> admitted_by_conditionals(const Conditionals& conditionals, std::int64_t budget) {
  std::vector<std::int64_t> admitted(conditionals.size(), 0);
  for (std::int64_t b = 0; b < budget; ++b) {
    std::size_t best = 0;
    double rate = -1;
    for (std::size_t r = 0; r < conditionals.size(); ++r) {
      const auto next = static_cast<std::size_t>(admitted[r]);
      if (next < conditionals[r].size() && conditionals[r][next] > rate) {
        rate = conditionals[r][next];
        best = r;
      }
    }
    ++admitted[best];
  }
  return admitted;
}

const std::vector<Conditionals> batches = {
    {{0.9, 0.9, 0.9}, {0.5, 0.95, 0.99}, {0.6, 0.3, 0.2}},
    {{0.3, 1, 1, 1}, {0.8, 0.4}},
    {{1, 1, 1}, {1, 1, 1}},
    {{0, 0.5}, {0.7, 0.7, 0.1}, {}},
    {{0.5, 0.6}, {0.49}},
};

}  // namespace

TEST_CASE("no way to spend a budget makes more tokens than the largest survivals, by enumeration", "[budget]") {
  for (const Conditionals& conditionals : batches) {
    std::int64_t all = 0;
    for (const auto& rates : conditionals) all += std::ssize(rates);
    for (std::int64_t budget = 0; budget <= all; ++budget) {
      const std::vector<std::int64_t> admitted = admitted_drafts(survivals_of(conditionals), budget);
      CHECK(sum_of(admitted) == budget);
      CHECK(enumerated_tokens(conditionals, admitted) == Approx(best_enumerated(conditionals, budget)).epsilon(1e-13));
    }
  }
}

TEST_CASE("spending by the next draft's own acceptance is found out by the same enumeration", "[budget]") {
  const Conditionals& conditionals = batches.back();
  const std::vector<std::int64_t> broken = admitted_by_conditionals(conditionals, 2);
  CHECK(enumerated_tokens(conditionals, broken) < best_enumerated(conditionals, 2) - 0.01);
}

TEST_CASE("the best budget has the most tokens per cost of all ways to verify, by enumeration", "[budget]") {
  const auto cost = [](std::int64_t drafts) { return 1 + 0.06 * static_cast<double>(drafts * drafts); };
  for (const Conditionals& conditionals : batches) {
    double best = 0;
    for_each_allocation(conditionals, [&](const std::vector<std::int64_t>& admitted) {
      best = std::max(best, enumerated_tokens(conditionals, admitted) / cost(sum_of(admitted)));
    });
    const VerificationBudget found = best_budget(survivals_of(conditionals), cost);
    CHECK(found.tokens / found.cost == Approx(best).epsilon(1e-13));
    CHECK(found.cost == cost(found.drafts));
    CHECK(found.tokens == Approx(best_enumerated(conditionals, found.drafts)).epsilon(1e-13));
  }
}

TEST_CASE("a budget is all drafts where they cost nothing, and none where they are never accepted", "[budget]") {
  const Survivals survivals = survivals_of(batches[0]);
  CHECK(best_budget(survivals, [](std::int64_t) { return 1.0; }).drafts == 9);
  CHECK(best_budget({{0, 0}, {0}}, [](std::int64_t) { return 1.0; }).drafts == 0);
  const VerificationBudget none = best_budget({}, [](std::int64_t) { return 2.0; });
  CHECK(none.tokens == 0);
  CHECK(none.cost == 2);
}

TEST_CASE("alike requests share a budget evenly", "[budget]") {
  const Survivals survivals(4, {1, 0.5, 0.5});
  CHECK(admitted_drafts(survivals, 4) == std::vector<std::int64_t>{1, 1, 1, 1});
  CHECK(admitted_drafts(survivals, 6) == std::vector<std::int64_t>{2, 2, 1, 1});
}

TEST_CASE("budgets refuse survivals that rise or are no probabilities, and what is no budget", "[budget]") {
  CHECK_THROWS_WITH(admitted_drafts({{0.5, 0.6}}, 0),
                    "admitted_drafts: survival of draft 2 of request 0 is 0.6, but must be in [0, 0.5]");
  CHECK_THROWS_AS(admitted_drafts({{std::numeric_limits<double>::quiet_NaN()}}, 0), std::domain_error);
  CHECK_THROWS_WITH(admitted_drafts({{0.5}}, 2), "admitted_drafts: budget is 2, but must be in [0, 1]");
  CHECK_THROWS_AS(best_budget({{0.5}}, [](std::int64_t) { return 0.0; }), std::domain_error);
}
