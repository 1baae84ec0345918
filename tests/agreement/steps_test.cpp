// Are the steps of Algorithm 1, simulated, as many as the closed forms say? A deviation is told in standard errors,
// z = (measured - expected) / sqrt(expected variance); a sound sampler stays within 5 but for a probability of 6e-7 per
// comparison (1e-6 per chi-square test) over random seeds. The seeds are fixed.

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/core/kernels.hpp"
#include "analysis/theory/finite_generation.hpp"
#include "analysis/theory/replay.hpp"
#include "analysis/theory/tokens.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/chi_square.hpp"
#include "tests/support/exact_laws.hpp"
#include "tests/support/independent_sequences.hpp"
#include "tests/support/wrong_samplers.hpp"

using namespace specdec::sim;
using namespace specdec::test_support;
namespace core = specdec::core;
namespace theory = specdec::theory;
using Tokens = std::vector<Token>;
using Row = std::vector<double>;

namespace {

constexpr double most_standard_errors = 5;
constexpr double false_alarm_rate = 1e-6;
const Tokens prompt = {0};

DecodingOptions options_for(std::int64_t gamma, std::int64_t tokens) {
  DecodingOptions options;
  options.gamma = gamma;
  options.max_new_tokens = tokens;
  return options;
}

std::vector<Generation> simulate_with(Defect defect, const TablePair& pair, const DecodingOptions& options,
                                      std::int64_t sequences) {
  return independent_sequences(pair, sequences, 31, [&](auto& target, auto& draft, const RandomStream& stream) {
    return decode_with_defect(defect, target, draft, prompt, options, stream);
  });
}

struct FixedCase {
  Row p;
  Row q;
};

/// Two pairs whose overlap sum min(p, q) is 7/10, and one whose overlap is 0.92.
const std::vector<FixedCase> fixed_cases = {{{0.5, 0.3, 0.2}, {0.2, 0.3, 0.5}},
                                            {{0.6, 0.25, 0.1, 0.05}, {0.3, 0.3, 0.25, 0.15}},
                                            {{0.5, 0.3, 0.2}, {0.45, 0.27, 0.28}}};

core::AcceptanceRate rate_of(const FixedCase& c) {
  return core::acceptance_rate(core::TargetDistribution(c.p), core::DraftDistribution(c.q));
}

/// a_t = min(1, q/p) or beta_t = sum min(p, q) along a text.
std::vector<double> acceptance_along(const TablePair& pair, const Tokens& generated, bool of_the_token) {
  Tokens text = prompt;
  std::vector<double> acceptance;
  for (const Token x : generated) {
    const auto p = pair.target.row(text);
    const auto q = pair.draft.row(text);
    const auto i = static_cast<std::size_t>(x);
    double overlap = 0;
    for (std::size_t y = 0; y < p.size(); ++y) overlap += std::min(p[y], q[y]);
    acceptance.push_back(std::min(1.0, of_the_token ? q[i] / p[i] : overlap));
    text.push_back(x);
  }
  return acceptance;
}

/// z of the steps against the replay law over the runs' own texts.
double replay_z(Defect defect, const TablePair& pair, std::int64_t gamma, std::int64_t sequences,
                bool of_the_token = true) {
  double deviation = 0;
  double variance = 0;
  for (const Generation& run : simulate_with(defect, pair, options_for(gamma, 40), sequences)) {
    const theory::ReplayedSteps replayed =
        theory::replay_steps(acceptance_along(pair, run.tokens, of_the_token), gamma);
    deviation += static_cast<double>(run.counters.steps) - replayed.expected;
    variance += replayed.variance;
  }
  return deviation / std::sqrt(variance);
}

/// The tokens of all steps that could draft gamma tokens, against their mean by Eq. 1.
double tokens_per_step_z(Defect defect, const FixedCase& c, std::int64_t gamma) {
  double tokens = 0;
  double steps = 0;
  for (const Generation& run : simulate_with(defect, fixed_pair(c.p, c.q), options_for(gamma, 100), 2000)) {
    for (const Step& step : run.steps) {
      if (step.drafted < gamma) continue;
      tokens += static_cast<double>(step.accepted + 1);
      steps += 1;
    }
  }
  const core::AcceptanceRate rate = rate_of(c);
  return (tokens - steps * theory::expected_tokens(rate, gamma)) /
         std::sqrt(steps * theory::tokens_variance(rate, gamma));
}

}  // namespace

TEST_CASE("tokens per step follow Eq. 1") {
  for (const FixedCase& c : fixed_cases)
    for (const std::int64_t gamma : {1, 2, 4, 8}) {
      CAPTURE(rate_of(c).alpha(), gamma);
      CHECK(std::abs(tokens_per_step_z(Defect::none, c, gamma)) < most_standard_errors);
    }
}

TEST_CASE("a decoder that accepts without the ratio does not follow Eq. 1") {
  CHECK(std::abs(tokens_per_step_z(Defect::acceptance_without_ratio, fixed_cases[0], 4)) > most_standard_errors);
}

TEST_CASE("tokens per step have the capped geometric distribution") {
  for (const FixedCase& c : fixed_cases) {
    for (const std::int64_t gamma : {1, 3, 6}) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(gamma) + 1);
      for (const Generation& run : simulate_with(Defect::none, fixed_pair(c.p, c.q), options_for(gamma, 100), 2000)) {
        for (const Step& step : run.steps) counts[static_cast<std::size_t>(step.accepted)] += step.drafted == gamma;
      }
      CAPTURE(rate_of(c).alpha(), gamma);
      CHECK(chi_square_p_value(counts, tokens_law(rate_of(c), gamma)) > false_alarm_rate);
      // The same distribution for a rate 0.01 off does not fit.
      const core::AcceptanceRate other(rate_of(c).alpha() - 0.01);
      CHECK(chi_square_p_value(counts, tokens_law(other, gamma)) < false_alarm_rate);
    }
  }
}

TEST_CASE("the steps that a text of given length takes follow the finite-length recursion") {
  constexpr std::int64_t sequences = 50000;
  for (const FixedCase& c : fixed_cases) {
    for (const std::int64_t tokens : {1, 4, 12}) {
      constexpr std::int64_t gamma = 5;
      std::vector<std::int64_t> counts(static_cast<std::size_t>(tokens) + 1);
      double steps = 0;
      const TablePair pair = fixed_pair(c.p, c.q);
      for (const Generation& run : simulate_with(Defect::none, pair, options_for(gamma, tokens), sequences)) {
        counts[run.steps.size()] += 1;
        steps += static_cast<double>(run.steps.size());
      }
      const theory::FiniteGeneration finite = theory::finite_generation(rate_of(c), gamma, tokens);
      const double n = static_cast<double>(sequences);
      CAPTURE(rate_of(c).alpha(), tokens);
      CHECK(std::abs(steps - n * finite.expected_steps) <=
            most_standard_errors * std::sqrt(n * finite.steps_variance) + 1e-9 * n);
      // Over all texts the acceptances of a fixed pair are i.i.d.: replay of a constant rate gives the whole law.
      const Row constant(static_cast<std::size_t>(tokens), rate_of(c).alpha());
      CHECK(chi_square_p_value(counts, steps_law(constant, gamma)) > false_alarm_rate);
    }
  }
}

TEST_CASE("the steps over a run's own text follow the replay law") {
  for (const double noise : {0.3, 1.0, 2.5}) {
    const TablePair pair = synthetic_bigram_pair(30, noise, 12);
    for (const std::int64_t gamma : {1, 3, 7}) {
      CAPTURE(noise, gamma);
      CHECK(std::abs(replay_z(Defect::none, pair, gamma, 2000)) < most_standard_errors);
    }
  }
}

TEST_CASE("a decoder that accepts without the ratio does not follow the replay law") {
  CHECK(std::abs(replay_z(Defect::acceptance_without_ratio, synthetic_bigram_pair(30, 1, 12), 3, 2000)) >
        most_standard_errors);
}

// Acceptance correlates with the context that follows, so that averaging it first is wrong.
TEST_CASE("replay with the mean acceptance at each prefix instead of the emitted token's is biased") {
  const TablePair pair = {ContextTableModel(2, 1, {0.9, 0.1, 0.3, 0.7}), ContextTableModel(2, 1, {0.8, 0.2, 0.9, 0.1})};
  CHECK(std::abs(replay_z(Defect::none, pair, 2, 20000)) < most_standard_errors);
  CHECK(std::abs(replay_z(Defect::none, pair, 2, 20000, false)) > most_standard_errors);
}
