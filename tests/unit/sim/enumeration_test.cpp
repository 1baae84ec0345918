// Algorithm 1 over all outcomes. The enumerator below follows the paper's text on its own: for each way a run can go
// it knows the probability and, for each random number, the interval in which it must lie. The decoder is then
// driven with numbers from those intervals and must go that way, to the end or to an end token.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "sim/decoding.hpp"
#include "sim/table_models.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_models.hpp"
#include "tests/support/scripted_uniforms.hpp"

using namespace specdec::sim;
using namespace specdec::test_support;
using Tokens = std::vector<Token>;

namespace {

const Tokens prompt = {1, 0};

struct Interval {
  double lo;
  double hi;
};

/// One way a run can go.
struct Path {
  double probability = 1;
  std::map<ScriptedUniforms::Key, Interval> uniforms;
  Tokens text;
  std::vector<std::int64_t> accepted;

  Tokens generated() const { return Tokens(text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), text.end()); }
};

/// The tokens up to and including the first end token.
Tokens ended(Tokens tokens, Token end_token) {
  const auto end = std::find(tokens.begin(), tokens.end(), end_token);
  if (end != tokens.end()) tokens.erase(end + 1, tokens.end());
  return tokens;
}

class Enumerator {
 public:
  Enumerator(const TablePair& pair, std::int64_t gamma, std::int64_t tokens)
      : pair_(pair), gamma_(gamma), wanted_(prompt.size() + static_cast<std::size_t>(tokens)) {}

  std::vector<Path> all() {
    Path start;
    start.text = prompt;
    step(start, 0);
    return paths_;
  }

 private:
  void step(const Path& path, std::int64_t round) {
    if (path.text.size() == wanted_) {
      paths_.push_back(path);
      return;
    }
    const auto left = static_cast<std::int64_t>(wanted_ - path.text.size());
    slot(path, round, 0, std::min(gamma_, left - 1));
  }

  /// Drafts that stand behind a rejection are never looked at; their uniforms stay free.
  void slot(const Path& path, std::int64_t round, std::int64_t i, std::int64_t gamma) {
    const auto p = pair_.target.row(path.text);
    if (i == gamma) {
      choose(path, {round, i, Purpose::bonus}, {p.begin(), p.end()}, [&](Path next, Token x) {
        next.text.push_back(x);
        next.accepted.push_back(i);
        step(next, round + 1);
      });
      return;
    }
    const auto q = pair_.draft.row(path.text);
    choose(path, {round, i, Purpose::draft}, {q.begin(), q.end()}, [&](const Path& drafted, Token x) {
      const double keep = std::min(1.0, p[static_cast<std::size_t>(x)] / q[static_cast<std::size_t>(x)]);
      narrow(drafted, {round, i, Purpose::acceptance}, {0, keep}, [&](Path next) {
        next.text.push_back(x);
        slot(next, round, i + 1, gamma);
      });
      narrow(drafted, {round, i, Purpose::acceptance}, {keep, 1}, [&](const Path& rejected) {
        std::vector<double> residual;
        for (std::size_t y = 0; y < p.size(); ++y) residual.push_back(std::max(0.0, p[y] - q[y]));
        choose(rejected, {round, i, Purpose::residual}, residual, [&](Path next, Token y) {
          next.text.push_back(y);
          next.accepted.push_back(i);
          step(next, round + 1);
        });
      });
    });
  }

  static void narrow(const Path& path, const ScriptedUniforms::Key& key, Interval interval,
                     const std::function<void(const Path&)>& then) {
    if (interval.hi - interval.lo < 1e-12) return;
    Path next = path;
    next.probability *= interval.hi - interval.lo;
    next.uniforms.emplace(key, interval);
    then(next);
  }

  static void choose(const Path& path, const ScriptedUniforms::Key& key, const std::vector<double>& weights,
                     const std::function<void(Path, Token)>& then) {
    double total = 0;
    for (const double w : weights) total += w;
    double lo = 0;
    for (std::size_t x = 0; x < weights.size(); ++x) {
      const double hi = lo + weights[x] / total;
      narrow(path, key, {lo, hi}, [&](const Path& next) { then(next, static_cast<Token>(x)); });
      lo = hi;
    }
  }

  const TablePair& pair_;
  std::int64_t gamma_;
  std::size_t wanted_;
  std::vector<Path> paths_;
};

double target_probability(const ContextTableModel& target, const Tokens& text) {
  double probability = 1;
  for (std::size_t t = prompt.size(); t < text.size(); ++t)
    probability *= target.row(std::span(text).first(t))[static_cast<std::size_t>(text[t])];
  return probability;
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
          const Generation run = decode_speculatively(target, draft, prompt, options, uniforms);
          std::vector<std::int64_t> accepted;
          for (const Step& step : run.steps) accepted.push_back(step.accepted);
          strayed += run.tokens != path.generated() || accepted != path.accepted;
          options.end_token = 1;
          const Generation stopped = decode_speculatively(target, draft, prompt, options, uniforms);
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
