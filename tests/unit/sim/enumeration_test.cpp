// Algorithm 1 over all outcomes: for each way a run can go tests/support/algorithm_one.hpp knows the probability and,
// for each random number, the interval in which it must lie. The decoder is then driven with numbers from those
// intervals and must go that way, to the end or to an end token.

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "sim/decoding.hpp"
#include "sim/table_models.hpp"
#include "tests/support/algorithm_one.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_models.hpp"
#include "tests/support/scripted_uniforms.hpp"

using namespace specdec::sim;
using namespace specdec::test_support;

namespace {

/// The tokens up to and including the first end token.
Tokens ended(Tokens tokens, Token end_token) {
  const auto end = std::find(tokens.begin(), tokens.end(), end_token);
  if (end != tokens.end()) tokens.erase(end + 1, tokens.end());
  return tokens;
}

struct Case {
  std::int64_t vocab;
  std::int64_t tokens;
  std::int64_t gamma;
  Likeness likeness;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Likeness likeness : {Likeness::independent, Likeness::equal, Likeness::disjoint}) {
    for (std::int64_t gamma = 0; gamma <= 4; ++gamma) {
      all.push_back({2, 5, gamma, likeness});
      all.push_back({3, gamma <= 2 ? 4 : 3, gamma, likeness});
    }
  }
  return all;
}

}  // namespace

TEST_CASE("over all outcomes of Algorithm 1 the text has the target's law") {
  for (const Case& c : cases()) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(c.vocab, c.tokens, c.gamma, c.likeness, seed);
      const TablePair pair = random_pair(c.vocab, 3, c.likeness, seed);
      std::map<Tokens, double> law;
      double total = 0;
      for (const Path& path : Enumerator(pair, c.gamma, c.tokens).all()) {
        law[path.text] += path.probability;
        total += path.probability;
      }
      CHECK(total == Approx(1).epsilon(1e-12));
      double worst = 0;
      for (const auto& [text, probability] : law)
        worst = std::max(worst, std::abs(probability - target_probability(pair.target, text)));
      CHECK(worst <= 1e-13);
    }
  }
}

TEST_CASE("the decoder goes every way that Algorithm 1 can go, for the uniforms that lead there") {
  std::int64_t runs = 0;
  for (const Case& c : cases()) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const TablePair pair = random_pair(c.vocab, 3, c.likeness, seed);
      ContextTableModel target = pair.target;
      ContextTableModel draft = pair.draft;
      DecodingOptions options;
      options.gamma = c.gamma;
      options.max_new_tokens = c.tokens;
      std::int64_t strayed = 0;
      for (const Path& path : Enumerator(pair, c.gamma, c.tokens).all()) {
        // From near one end of the intervals to near the other.
        for (const double where : {1e-9, 0.5, 1 - 1e-9}) {
          std::map<ScriptedUniforms::Key, double> scripted;
          for (const auto& [key, interval] : path.uniforms)
            scripted.emplace(key, interval.lo + where * (interval.hi - interval.lo));
          const ScriptedUniforms uniforms(scripted, RandomStream(seed, static_cast<std::uint64_t>(runs)));
          options.end_token = std::nullopt;
          const Generation run = decode_speculatively(target, draft, enumerated_prompt, options, uniforms);
          std::vector<std::int64_t> accepted;
          for (const Step& step : run.steps) accepted.push_back(step.accepted);
          strayed += run.tokens != path.generated() || accepted != path.accepted;
          options.end_token = 1;
          const Generation stopped = decode_speculatively(target, draft, enumerated_prompt, options, uniforms);
          strayed += stopped.tokens != ended(path.generated(), 1);
          ++runs;
        }
      }
      CAPTURE(c.vocab, c.tokens, c.gamma, c.likeness, seed);
      CHECK(strayed == 0);
    }
  }
  // The cases above are not trivial: so many ways, three times each.
  CHECK(runs > 10000);
}
