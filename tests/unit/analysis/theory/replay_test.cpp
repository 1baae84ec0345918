#include "analysis/theory/replay.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

// A pair of bigram models over two tokens; row = the token before.
constexpr double target_rows[2][2] = {{0.9, 0.1}, {0.3, 0.7}};
constexpr double draft_rows[2][2] = {{0.8, 0.2}, {0.9, 0.1}};

// Expected steps of Algorithm 1 itself until `left` more tokens stand, by enumeration of its drafts, coins and
// corrections.
double steps_of_algorithm(int context, int left, int drafts);

double continue_after(int context, int left, int drafts) {
  return left <= 0 ? 0 : steps_of_algorithm(context, left, drafts);
}

double within_step(int context, int left, int drafts_left, int drafts) {
  if (left == 0) return 0;
  const double* p = target_rows[context];
  const double* q = draft_rows[context];
  double expected = 0;
  for (int token = 0; token < 2; ++token) {
    if (drafts_left == 0) {
      expected += p[token] * continue_after(token, left - 1, drafts);
      continue;
    }
    expected += std::min(p[token], q[token]) * within_step(token, left - 1, drafts_left - 1, drafts);
    expected += std::max(0.0, p[token] - q[token]) * continue_after(token, left - 1, drafts);
  }
  return expected;
}

double steps_of_algorithm(int context, int left, int drafts) { return 1 + within_step(context, left, drafts, drafts); }

// The mean of the replayed steps over all texts that the target may write, started after token 0.
template <class Acceptance>
double mean_of_replay(std::size_t length, int drafts, Acceptance acceptance) {
  double mean = 0;
  for (std::size_t text = 0; text < (std::size_t{1} << length); ++text) {
    double probability = 1;
    std::size_t context = 0;
    std::vector<double> accept;
    for (std::size_t t = 0; t < length; ++t) {
      const std::size_t token = (text >> t) & 1;
      probability *= target_rows[context][token];
      accept.push_back(acceptance(context, token));
      context = token;
    }
    mean += probability * replay_steps(accept, drafts).expected;
  }
  return mean;
}

/// Every way the steps from a token can go, each with its probability; `drafted` of this step are accepted.
double enumerated_steps(const std::vector<double>& acceptance, const std::vector<std::int64_t>& limits,
                        std::size_t start, std::size_t drafted = 0) {
  const std::size_t at = start + drafted;
  if (at >= acceptance.size()) return drafted > 0 ? 1 : 0;
  const double otherwise = 1 + enumerated_steps(acceptance, limits, at + 1);
  if (drafted == static_cast<std::size_t>(limits[start])) return otherwise;
  return (1 - acceptance[at]) * otherwise + acceptance[at] * enumerated_steps(acceptance, limits, start, drafted + 1);
}

const std::vector<double> example = {0.9, 0.3, 0.5, 0.8, 0.2, 0.7};

}  // namespace

TEST_CASE("limits that differ from place to place give the law of the policy that sets them") {
  const std::vector<double> acceptance = {0.9, 0.2, 0.7, 0.5, 1, 0.4, 0.8, 0.6};
  const std::vector<std::int64_t> equal(acceptance.size(), 3);
  const theory::ReplayedSteps within = theory::replay_steps_within(acceptance, 1, equal);
  CHECK(within.expected == Approx(theory::replay_steps(acceptance, 3).expected).epsilon(1e-12));
  CHECK(within.variance == Approx(theory::replay_steps(acceptance, 3).variance).epsilon(1e-12));
  const std::vector<std::int64_t> limits = {2, 0, 3, 1, 5, 1, 0, 2};
  CHECK(theory::replay_steps_within(acceptance, 1, limits).expected ==
        Approx(enumerated_steps(acceptance, limits, 0)).epsilon(1e-12));
  // Two tokens, of which only the first may be drafted, and only with its own column: 2 steps, or 1 with 0.25.
  const std::vector<double> by_depth = {0.25, 0.75, 0.5, 0.5};
  const theory::ReplayedSteps two = theory::replay_steps_within(by_depth, 2, std::vector<std::int64_t>{5, 5});
  CHECK(two.expected == Approx(1.75));
  CHECK(two.variance == Approx(0.25 * 0.75));
  CHECK(theory::replay_steps_within(by_depth, 2, std::vector<std::int64_t>{0, 5}).expected == 2);
  CHECK_THROWS_AS(theory::replay_steps_within(by_depth, 1, std::vector<std::int64_t>{1}), std::invalid_argument);
}

TEST_CASE("the replayed steps of a text equal exact rational values") {
  for (const auto& [drafts, expected] :
       {std::pair<std::int64_t, double>{0, 6}, {1, 4.0554}, {2, 3.503}, {3, 3.4104}, {6, 3.3}, {1000, 3.3}}) {
    CHECK(replay_steps(example, drafts).expected == Approx(expected).epsilon(1e-15));
  }
}

TEST_CASE("replay averaged over the target's texts is Algorithm 1 itself") {
  // 2.3309 and 2.42761 by exact rational enumeration of both
  const auto token_acceptance = [](std::size_t context, std::size_t token) {
    return std::min(1.0, draft_rows[context][token] / target_rows[context][token]);
  };
  CHECK(steps_of_algorithm(0, 5, 2) == Approx(mean_of_replay(5, 2, token_acceptance)).epsilon(1e-14));
  CHECK(steps_of_algorithm(0, 6, 3) == Approx(mean_of_replay(6, 3, token_acceptance)).epsilon(1e-14));
}

TEST_CASE("replay with the mean acceptance of each prefix is biased, and this test would see it") {
  const auto prefix_acceptance = [](std::size_t context, std::size_t) {
    return std::min(target_rows[context][0], draft_rows[context][0]) +
           std::min(target_rows[context][1], draft_rows[context][1]);
  };
  CHECK(std::abs(steps_of_algorithm(0, 5, 2) - mean_of_replay(5, 2, prefix_acceptance)) > 1e-3);
}

TEST_CASE("a text of no tokens takes no steps, one of certain tokens the fewest") {
  CHECK(replay_steps(std::vector<double>{}, 3).expected == 0);
  const std::vector<double> certain(10, 1.0);
  CHECK(replay_steps(certain, 3).expected == 3);
  CHECK(replay_steps(certain, 3).variance == 0);
}

TEST_CASE("an acceptance outside 0 to 1 is refused with its position") {
  const std::vector<double> bad = {0.5, std::numeric_limits<double>::quiet_NaN()};
  CHECK_THROWS_AS(replay_steps(bad, 1), std::domain_error);
  CHECK_THROWS_WITH(replay_steps(bad, 1), "replay_steps: acceptance at position 1 is nan, but must be in [0, 1]");
  CHECK_THROWS_WITH(replay_steps(example, -1), "replay_steps: gamma is -1, but must be in [0, 2^63)");
}

}  // namespace specdec::theory
