// Is a policy that stops drafting by its own confidence lossless, and are its steps those computed from a text? Over
// every way that Algorithm 1 can go on small models whose distributions depend on the whole prefix.

#include "analysis/estimate/adaptive_drafting.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "tests/support/algorithm_one.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_models.hpp"

using namespace specdec::sim;
using namespace specdec::test_support;
namespace estimate = specdec::estimate;
namespace theory = specdec::theory;

namespace {

EnumeratedPolicy policy_of(double threshold, bool drops) {
  return {[=](double token, double) { return token < threshold; }, drops};
}

/// The estimator's result for one text.
estimate::JudgedThreshold judged_on(const TablePair& pair, const Tokens& text, double threshold,
                                    std::int64_t max_gamma) {
  std::vector<double> acceptance, probability;
  std::vector<std::vector<double>> below(1);
  for (std::size_t t = enumerated_prompt.size(); t < text.size(); ++t) {
    const auto x = static_cast<std::size_t>(text[t]);
    const auto p = pair.target.row(std::span(text).first(t));
    const auto q = pair.draft.row(std::span(text).first(t));
    acceptance.push_back(std::min(1.0, q[x] / p[x]));
    probability.push_back(q[x]);
    double rejected = 0, rejected_below = 0;
    for (std::size_t y = 0; y < q.size(); ++y) {
      const double left = std::max(0.0, q[y] - p[y]);
      rejected += left;
      if (q[y] < threshold) rejected_below += left;
    }
    below[0].push_back(rejected > 0 ? rejected_below / rejected : 0);
  }
  estimate::AdaptiveOptions options;
  options.max_gamma = max_gamma;
  options.thresholds = {threshold};
  options.limits = {max_gamma};
  estimate::AdaptiveDrafting adaptive(options);
  // The text stands on both sides of the split.
  std::int64_t sequence = 0;
  for (const std::size_t half : {0U, 1U}) {
    while (estimate::half_of(specdec::traces::scrambled(static_cast<std::uint64_t>(sequence))) != half) ++sequence;
    adaptive.add({acceptance, probability, below, {std::vector<std::int64_t>(acceptance.size(), sequence)}});
  }
  adaptive.finish();
  const std::array<theory::ReplayedRounds, 2> halves{theory::ReplayedRounds(max_gamma),
                                                     theory::ReplayedRounds(max_gamma)};
  return *adaptive.report(halves).threshold;
}

struct Counts {
  double probability = 0;
  double steps = 0;
  double at_least = 0;
  double at_most = 0;
};

std::map<Tokens, Counts> count_by_text(const TablePair& pair, std::int64_t gamma, std::int64_t tokens,
                                       const EnumeratedPolicy& policy) {
  std::map<Tokens, Counts> by_text;
  for (const Path& path : Enumerator(pair, gamma, tokens, policy).all()) {
    Counts& counts = by_text[path.text];
    counts.probability += path.probability;
    counts.steps += path.probability * static_cast<double>(path.accepted.size());
    for (const std::int64_t d : path.drafted_at_least) counts.at_least += path.probability * static_cast<double>(d);
    for (const std::int64_t d : path.drafted_at_most) counts.at_most += path.probability * static_cast<double>(d);
  }
  return by_text;
}

/// The largest distance of a text's probability from the target's.
double worst_law(const TablePair& pair, const std::map<Tokens, Counts>& by_text) {
  double worst = 0;
  for (const auto& [text, counts] : by_text)
    worst = std::max(worst, std::abs(counts.probability - target_probability(pair.target, text)));
  return worst;
}

}  // namespace

TEST_CASE("stopping after the token that trips the threshold is lossless, and its steps are those of the estimator") {
  for (const std::int64_t max_gamma : {2, 3}) {
    for (const double threshold : {0.2, 0.35, 0.6}) {
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const TablePair pair = random_pair(3, 3, Likeness::independent, seed);
        const auto by_text = count_by_text(pair, max_gamma, 4, policy_of(threshold, false));
        CAPTURE(max_gamma, threshold, seed);
        CHECK(worst_law(pair, by_text) <= 1e-12);
        double worst = 0;
        for (const auto& [text, counts] : by_text) {
          const estimate::JudgedThreshold judged = judged_on(pair, text, threshold, max_gamma);
          const double steps = counts.probability * 4 / judged.tokens_per_step;
          worst = std::max(worst, std::abs(counts.steps - steps));
          // Whether a step stops at its first rejected draft is known from the rows alone, whatever was emitted there.
          worst = std::max(worst, std::abs(counts.at_least - steps * judged.drafted_per_step.lo));
          worst = std::max(worst, std::abs(counts.at_most - steps * judged.drafted_per_step.hi));
          if (max_gamma == 2) worst = std::max(worst, judged.drafted_per_step.hi - judged.drafted_per_step.lo);
        }
        CHECK(worst <= 1e-12);
      }
    }
  }
}

TEST_CASE("leaving out the token that trips the threshold changes the law of the text, and this test would see it") {
  // One drafted position of p = (1/2, 3/10, 1/5) and q = (1/5, 3/10, 1/2) with h = 1/4 becomes (2/5, 9/25, 6/25).
  const TablePair pair = {ContextTableModel(3, 0, {0.5, 0.3, 0.2}), ContextTableModel(3, 0, {0.2, 0.3, 0.5})};
  const auto law_of_first = [&](bool drops) {
    std::vector<double> law(3);
    for (const Path& path : Enumerator(pair, 1, 2, policy_of(0.25, drops)).all())
      law[static_cast<std::size_t>(path.generated()[0])] += path.probability;
    return law;
  };
  const std::vector<double> dropped = law_of_first(true);
  CHECK(dropped[0] == Approx(0.4).epsilon(1e-12));
  CHECK(dropped[1] == Approx(0.36).epsilon(1e-12));
  CHECK(dropped[2] == Approx(0.24).epsilon(1e-12));
  CHECK(law_of_first(false)[0] == Approx(0.5).epsilon(1e-12));
  std::int64_t wrong = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const TablePair random = random_pair(3, 3, Likeness::independent, seed);
    const auto by_text = count_by_text(random, 3, 4, policy_of(0.35, true));
    wrong += worst_law(random, by_text) > 1e-3;
  }
  CHECK(wrong >= 8);
}
