#include "analysis/theory/policy_replay.hpp"

#include <cmath>
#include <functional>
#include <vector>

#include "analysis/theory/replay.hpp"
#include "tests/support/catch.hpp"

using specdec::theory::DraftingLimit;
using specdec::theory::PolicyReplay;

namespace {

using Values = std::vector<double>;

double expected_steps(const DraftingLimit& limit, const Values& acceptance, const Values& own, std::size_t piece = 99) {
  PolicyReplay replay(limit);
  const std::vector<std::int64_t> sequence(acceptance.size(), 3);
  for (std::size_t i = 0; i < acceptance.size(); i += piece) {
    const std::size_t count = std::min(piece, acceptance.size() - i);
    replay.add(std::span(sequence).subspan(i, count), std::span(acceptance).subspan(i, count), 1,
               std::span(own).subspan(i, count));
  }
  return replay.expected_steps();
}

/// Every way the steps can go, each with its probability: the definition, without any recursion over weights.
double enumerated_steps(const DraftingLimit& limit, const Values& acceptance, const Values& own) {
  const std::size_t length = acceptance.size();
  const std::function<double(std::size_t)> steps_from = [&](std::size_t start) -> double {
    if (start >= length) return 0;
    const std::function<double(std::size_t, double)> draft = [&](std::size_t drafted, double product) -> double {
      const std::size_t at = start + drafted;
      const bool stops = drafted == static_cast<std::size_t>(limit.gamma) || at + 1 >= length ||
                         (drafted > 0 && (own[at - 1] < limit.token_threshold || product < limit.product_threshold));
      if (stops) return steps_from(at + 1);
      return (1 - acceptance[at]) * steps_from(at + 1) + acceptance[at] * draft(drafted + 1, product * own[at]);
    };
    return 1 + draft(0, 1);
  };
  return steps_from(0);
}

const Values acceptance = {0.9, 0.3, 0.5, 0.8, 0.2, 0.7, 1, 0.4, 0.6, 0};
const Values own = {0.8, 0.2, 0.9, 0.6, 0.7, 0.1, 0.5, 0.95, 0.3, 0.9};

}  // namespace

TEST_CASE("without thresholds the steps are those of the fixed gamma") {
  for (const std::int64_t gamma : {0, 1, 2, 5, 20}) {
    const double fixed = specdec::theory::replay_steps(acceptance, gamma).expected;
    CHECK(expected_steps({.gamma = gamma}, acceptance, own) == Approx(fixed).epsilon(1e-13));
  }
}

TEST_CASE("steps of a policy with a threshold are those of all ways it can go") {
  for (const double threshold : {0.1, 0.25, 0.55, 0.85, 1.0}) {
    for (const std::int64_t gamma : {1, 3, 10}) {
      for (const DraftingLimit& limit : {DraftingLimit{gamma, threshold, 0}, DraftingLimit{gamma, 0, threshold},
                                         DraftingLimit{gamma, threshold, threshold / 2}}) {
        const double exact = enumerated_steps(limit, acceptance, own);
        CHECK(expected_steps(limit, acceptance, own) == Approx(exact).epsilon(1e-13));
        CHECK(expected_steps(limit, acceptance, own, 1) == Approx(exact).epsilon(1e-13));
      }
    }
  }
}

TEST_CASE("texts are added up, and columns by depth are held beyond the last") {
  PolicyReplay replay({.gamma = 4});
  const std::vector<std::int64_t> sequence = {0, 0, 0, 1, 1};
  const Values columns = {1, 0, 1, 0.5, 1, 0.25, 1, 0, 1, 1};
  replay.add(sequence, columns, 2, {});
  // First text: step 1 takes token 0, then token 1 with 1/2, and token 2 is its end; else a step begins there.
  // Second: token 0 accepted, token 1 the end.
  CHECK(replay.expected_steps() == Approx(1.5 + 1).epsilon(1e-14));
}

TEST_CASE("a policy replay refuses what is no probability") {
  CHECK_THROWS_AS(PolicyReplay({.gamma = -1}), std::domain_error);
  CHECK_THROWS_AS(PolicyReplay({.gamma = 1, .token_threshold = 2}), std::domain_error);
  CHECK_THROWS_AS(expected_steps({.gamma = 1}, {1.5}, {1}), std::domain_error);
  CHECK_THROWS_AS(expected_steps({.gamma = 1, .token_threshold = 0.5}, {0.5}, {std::nan("")}), std::domain_error);
  PolicyReplay replay({.gamma = 1});
  CHECK_THROWS_AS(replay.add(std::vector<std::int64_t>{0, 0}, Values{0.5}, 1, {}), std::invalid_argument);
}
