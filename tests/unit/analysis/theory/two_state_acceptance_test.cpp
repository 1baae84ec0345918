#include "analysis/theory/two_state_acceptance.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/theory/tokens.hpp"
#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

const TwoStateChain sticky{0.9, 0.3, 0.1, 0.2};
const TwoStateChain alternating{0.9, 0.3, 0.5, 1};

double beta(const TwoStateChain& chain, int state) { return state == 0 ? chain.beta_first : chain.beta_second; }
double leave(const TwoStateChain& chain, int state) { return state == 0 ? chain.leave_first : chain.leave_second; }

// Tokens per step without matrices or fixed points: R(n, s), the expected number of steps that n tokens take from
// state s on, grows by 1 / E[K] per token in the end. gammas[i] is drafted with probability shares[i].
double tokens_per_step_by_length(const TwoStateChain& chain, const std::vector<int>& gammas,
                                 const std::vector<double>& shares) {
  constexpr int longest = 4000;
  std::vector<std::array<double, 2>> steps(longest + 1, {0, 0});
  for (int n = 1; n <= longest; ++n) {
    for (int state = 0; state < 2; ++state) {
      double expected = 1;
      for (std::size_t i = 0; i < gammas.size(); ++i) {
        std::array<double, 2> alive{state == 0 ? 1.0 : 0.0, state == 1 ? 1.0 : 0.0};
        for (int k = 0; k <= gammas[i] && k < n - 1; ++k) {
          // The token after k accepted drafts: a rejection ends the step here; so does the bonus token.
          std::array<double, 2> next{0, 0};
          for (int s = 0; s < 2; ++s) {
            const double ends = k == gammas[i] ? 1 : 1 - beta(chain, s);
            const auto& rest = steps[static_cast<std::size_t>(n - k - 1)];
            const auto self = static_cast<std::size_t>(s);
            expected += shares[i] * alive[self] * ends *
                        ((1 - leave(chain, s)) * rest[self] + leave(chain, s) * rest[1 - self]);
            const double goes_on = alive[self] * (1 - ends);
            next[self] += goes_on * (1 - leave(chain, s));
            next[1 - self] += goes_on * leave(chain, s);
          }
          alive = next;
        }
      }
      steps[static_cast<std::size_t>(n)][static_cast<std::size_t>(state)] = expected;
    }
  }
  return longest / 2 / (steps[longest][0] - steps[longest / 2][0]);
}

struct Simulated {
  double mean, standard_error;
};

// Steps of gamma over one long text. `restart` draws each step's first state from the stationary law instead.
Simulated simulated_tokens_per_step(const TwoStateChain& chain, int gamma, int steps, bool restart) {
  std::mt19937_64 generator(20260711);
  std::uniform_real_distribution<> uniform;
  const double first = chain.leave_second / (chain.leave_first + chain.leave_second);
  int state = 0;
  const int batches = 50;
  std::vector<double> means;
  for (int batch = 0; batch < batches; ++batch) {
    double tokens = 0;
    for (int step = 0; step < steps / batches; ++step) {
      if (restart) state = uniform(generator) < first ? 0 : 1;
      for (int drafted = 0;; ++drafted) {
        tokens += 1;
        const bool accepted = drafted < gamma && uniform(generator) < beta(chain, state);
        if (uniform(generator) < leave(chain, state)) state = 1 - state;
        if (!accepted) break;
      }
    }
    means.push_back(tokens / (steps / batches));
  }
  const double mean = std::accumulate(means.begin(), means.end(), 0.0) / batches;
  double squares = 0;
  for (const double m : means) squares += (m - mean) * (m - mean);
  return {mean, std::sqrt(squares / (batches - 1) / batches)};
}

TwoStateChain random_chain(std::mt19937_64& generator, bool persistent) {
  std::uniform_real_distribution<> uniform;
  TwoStateChain chain{uniform(generator), uniform(generator), uniform(generator), uniform(generator)};
  if (persistent && chain.leave_first + chain.leave_second > 1) {
    chain.leave_first = 1 - chain.leave_first;
    chain.leave_second = 1 - chain.leave_second;
  }
  return chain;
}

}  // namespace

TEST_CASE("tokens per step of a persistent and of an alternating chain are the exact ones") {
  const TwoStateAcceptance persistent(sticky);
  CHECK(persistent.alpha() == Approx(0.7).epsilon(1e-15));
  CHECK(persistent.expected_tokens(1) == Approx(2239.0 / 1350).epsilon(1e-14));
  CHECK(persistent.expected_tokens(2) == Approx(2.09203205757).epsilon(1e-11));
  CHECK(persistent.expected_tokens(4) == Approx(2.60133469724).epsilon(1e-11));
  CHECK(persistent.expected_tokens(8) == Approx(3.04181932652).epsilon(1e-11));
  const TwoStateAcceptance other(alternating);
  CHECK(other.alpha() == Approx(0.7).epsilon(1e-15));
  CHECK(other.expected_tokens(1) == Approx(263.0 / 150).epsilon(1e-14));
  CHECK(other.expected_tokens(2) == Approx(2.25886731392).epsilon(1e-11));
  CHECK(other.expected_tokens(4) == Approx(2.85726948358).epsilon(1e-11));
  CHECK(other.expected_tokens(8) == Approx(3.24350524572).epsilon(1e-11));
}

TEST_CASE("tokens per step agree with a recursion over lengths of text") {
  std::mt19937_64 generator(3);
  for (int trial = 0; trial < 6; ++trial) {
    const TwoStateChain chain = random_chain(generator, false);
    const TwoStateAcceptance acceptance(chain);
    for (const int gamma : {0, 1, 3, 7}) {
      CHECK(acceptance.expected_tokens(gamma) == Approx(tokens_per_step_by_length(chain, {gamma}, {1})).epsilon(1e-9));
    }
  }
}

TEST_CASE("steps whose gamma varies start by the law that a recursion over lengths of text gives") {
  const TwoStateAcceptance acceptance(sticky);
  const std::vector<double> shares{0.25, 0, 0.5, 0, 0, 0.25};
  const StateLaw start = acceptance.round_starts(shares);
  const std::vector<double> survival = acceptance.survival(start, 5);
  const double tokens = 1 + 0.75 * (survival[0] + survival[1]) + 0.25 * (survival[2] + survival[3] + survival[4]);
  CHECK(tokens == Approx(tokens_per_step_by_length(sticky, {0, 2, 5}, {0.25, 0.5, 0.25})).epsilon(1e-9));
}

// 5 standard errors of 50 batch means: a false alarm in 7,000,000 runs as far as the normal law holds, in 100,000 by
// Student's t.
TEST_CASE("tokens per step agree with a simulation, and one that starts steps anywhere in the text is caught") {
  const double expected = TwoStateAcceptance(sticky).expected_tokens(4);
  const Simulated right = simulated_tokens_per_step(sticky, 4, 200'000, false);
  CHECK(std::abs(right.mean - expected) < 5 * right.standard_error);
  const Simulated wrong = simulated_tokens_per_step(sticky, 4, 200'000, true);
  CHECK(std::abs(wrong.mean - expected) > 5 * wrong.standard_error);
  CHECK(wrong.mean == Approx(3.046856).margin(5 * wrong.standard_error));
}

TEST_CASE("hazards and the constant rate measured at gamma 4 mispredict other gammas by the known amounts") {
  const TwoStateAcceptance acceptance(sticky);
  std::vector<core::AcceptanceRate> hazards;
  for (const double hazard : acceptance.hazards(4)) hazards.emplace_back(hazard);
  const auto held = core::AcceptanceProfile::from_conditional(hazards);
  CHECK(expected_tokens(held, 1) == Approx(1.580).margin(0.0005));
  CHECK(expected_tokens(held, 4) == Approx(acceptance.expected_tokens(4)).epsilon(1e-14));
  CHECK(expected_tokens(held, 12) == Approx(3.537).margin(0.0005));
  const double accepted = acceptance.expected_tokens(4) - 1;
  const core::AcceptanceRate alpha_hat(accepted / (accepted + 1 - acceptance.full_accepts(4)));
  CHECK(alpha_hat.alpha() == Approx(0.6865).margin(0.00005));
  CHECK(expected_tokens(alpha_hat, 1) == Approx(1.687).margin(0.0005));
  CHECK(expected_tokens(alpha_hat, 12) == Approx(3.166).margin(0.0005));
  CHECK(acceptance.expected_tokens(1) == Approx(1.659).margin(0.0005));
  CHECK(acceptance.expected_tokens(12) == Approx(3.2085).margin(0.0001));
}

TEST_CASE("long drafts yield 1 / (1 - alpha) tokens whatever the correlation") {
  for (const TwoStateChain& chain : {sticky, alternating}) {
    const TwoStateAcceptance acceptance(chain);
    CHECK(acceptance.expected_tokens_limit() == Approx(10.0 / 3).epsilon(1e-14));
    CHECK(acceptance.expected_tokens(500) == Approx(10.0 / 3).epsilon(1e-12));
    CHECK(acceptance.full_accepts(500) < 1e-20);
  }
}

TEST_CASE("states of one rate, and a state that is left for good, are the constant rate") {
  for (const TwoStateChain& chain : {TwoStateChain{0.8, 0.8, 0.3, 0.1}, TwoStateChain{0.2, 0.8, 0.5, 0}}) {
    const TwoStateAcceptance acceptance(chain);
    CHECK(acceptance.expected_tokens(5) == Approx(3.68928).epsilon(1e-14));
    CHECK(acceptance.full_accepts(5) == Approx(0.32768).epsilon(1e-14));
    CHECK(acceptance.alpha() == Approx(0.8).epsilon(1e-15));
  }
}

TEST_CASE("survival and hazards are those of the law of step starts, and end at the full accepts") {
  const TwoStateAcceptance acceptance(sticky);
  const std::vector<double> survival = acceptance.survival(acceptance.round_starts(6), 6);
  CHECK(1 + std::accumulate(survival.begin(), survival.end(), 0.0) ==
        Approx(acceptance.expected_tokens(6)).epsilon(1e-14));
  CHECK(survival.back() == Approx(acceptance.full_accepts(6)).epsilon(1e-14));
  double product = 1;
  for (const double hazard : acceptance.hazards(6)) product *= hazard;
  CHECK(product == Approx(survival.back()).epsilon(1e-14));
  CHECK(acceptance.round_starts(0) == acceptance.stationary());
  CHECK(acceptance.survival(acceptance.stationary(), 0).empty());
  const std::vector<double> dead = TwoStateAcceptance({0, 0, 0.5, 0.5}).hazards(3);
  CHECK(dead == std::vector<double>{0, 0, 0});
}

TEST_CASE("every draft accepted in states that alternate gives gamma + 1 tokens") {
  CHECK(TwoStateAcceptance({1, 1, 1, 1}).expected_tokens(3) == 4);
  CHECK(TwoStateAcceptance({1, 1, 0.5, 0.2}).expected_tokens(1'000'000) == Approx(1'000'001.0).epsilon(1e-9));
  CHECK(std::isinf(TwoStateAcceptance({1, 1, 1, 1}).expected_tokens_limit()));
  for (const std::int64_t gamma : {0, 1, 2, 7}) {
    CHECK(expected_tokens(two_rates({1, 1, 1, 1}).value(), gamma) == Approx(static_cast<double>(gamma) + 1));
  }
}

TEST_CASE("drafts of any length yield between 1 and gamma + 1 tokens") {
  for (const TwoStateChain& chain : {TwoStateChain{1, 1, 0.1, 0.2}, TwoStateChain{1 - 1e-12, 1, 0.1, 1e-12},
                                     TwoStateChain{0, 0, 1e-300, 0.2}, TwoStateChain{0.9, 0.3, 1e-300, 0}}) {
    const TwoStateAcceptance acceptance(chain);
    for (const std::int64_t gamma : {std::int64_t{1'000'000'000}, std::numeric_limits<std::int64_t>::max()}) {
      const double most = static_cast<double>(gamma) + 1;
      CHECK(1 <= acceptance.expected_tokens(gamma));
      CHECK(acceptance.expected_tokens(gamma) <= most);
      CHECK(acceptance.full_accepts(gamma) <= 1);
    }
  }
  const TwoStateAcceptance sure({1, 1, 0.1, 0.2});
  CHECK(sure.expected_tokens(1'000'000) == Approx(1'000'001.0).epsilon(1e-9));
}

TEST_CASE("two rates mixed over tokens say of steps what the chain says, at any gamma") {
  std::mt19937_64 generator(11);
  for (int trial = 0; trial < 200; ++trial) {
    const TwoStateChain chain = random_chain(generator, trial % 2 == 0);
    const TwoStateAcceptance acceptance(chain);
    const TwoRates rates = *two_rates(chain);
    CHECK(rates.high * rates.share_high + rates.low * (1 - rates.share_high) ==
          Approx(acceptance.alpha()).epsilon(1e-12));
    if (chain.leave_first + chain.leave_second <= 1) {
      CHECK((0 <= rates.low && rates.high <= 1 && -1e-12 <= rates.share_high && rates.share_high <= 1 + 1e-12));
    }
    for (const std::int64_t gamma : {0, 1, 2, 5, 30}) {
      CHECK(expected_tokens(rates, gamma) == Approx(acceptance.expected_tokens(gamma)).epsilon(1e-10));
      const std::vector<double> of_chain = acceptance.survival(acceptance.round_starts(gamma), 3);
      for (std::int64_t j = 1; j <= 3; ++j) {
        CHECK(survival(rates, gamma, j) ==
              Approx(of_chain[static_cast<std::size_t>(j - 1)]).epsilon(1e-9).margin(1e-12));
      }
    }
  }
}

TEST_CASE("requests of two rates give the harmonic mean of their tokens per step over tokens") {
  CHECK(expected_tokens(TwoRates{0.9, 0.5, 0.5}, 1) == Approx(1.67647058824).epsilon(1e-11));
  CHECK(expected_tokens(TwoRates{0.9, 0.5, 0.5}, 4) == Approx(2.63045991778).epsilon(1e-11));
  CHECK(expected_tokens(TwoRates{0.9, 0.5, 0.5}, 8) == Approx(3.01103882203).epsilon(1e-11));
  CHECK(share_of_rounds(TwoRates{0.9, 0.5, 0.5}, 1) == Approx(1.5 / 3.4).epsilon(1e-14));
}

TEST_CASE("a chain that cannot be split into two rates says so") {
  CHECK_FALSE(two_rates({0.8, 0, 1, 0.5}));
  // The product of the two rates is the determinant beta_first beta_second (1 - leave_first - leave_second).
  const TwoRates apart = *two_rates({0.9, 1e-9, 0.1, 0.2});
  CHECK(apart.high * apart.low == Approx(0.9 * 1e-9 * 0.7).epsilon(1e-13));
  CHECK(two_rates({0.8, 0.8, 0.3, 0.1})->share_high == Approx(1.0).epsilon(1e-14));
}

TEST_CASE("two states refuse what is no probability, and states that are never left") {
  CHECK_THROWS_WITH(TwoStateAcceptance({1.1, 0, 0.5, 0.5}),
                    "TwoStateAcceptance: beta_first is 1.1, but must be in [0, 1]");
  CHECK_THROWS_AS(TwoStateAcceptance({0.5, 0.5, std::numeric_limits<double>::quiet_NaN(), 0.5}), std::domain_error);
  CHECK_THROWS_WITH(TwoStateAcceptance({0.5, 0.4, 0, 0}),
                    "TwoStateAcceptance: leave_first and leave_second are 0, but one must be positive: the long run "
                    "would depend on the start");
  const TwoStateAcceptance acceptance(sticky);
  CHECK_THROWS_AS(acceptance.expected_tokens(-1), std::domain_error);
  CHECK_THROWS_AS(acceptance.round_starts(std::vector<double>{0.5, 0.4}), std::domain_error);
  CHECK_THROWS_AS(acceptance.round_starts(std::vector<double>{1.5, -0.5}), std::domain_error);
  CHECK_THROWS_AS(expected_tokens(TwoRates{0.9, 0.5, 0.5}, -1), std::domain_error);
}

}  // namespace specdec::theory
