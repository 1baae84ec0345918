// Is replay the law of Algorithm 1? Every way that Algorithm 1 can go is enumerated on small models whose distributions
// depend on the whole prefix. Of all ways that end in one text, the mean number of steps must be the one that replay
// computes from that text alone; so must the drafts and their acceptance by position.

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "analysis/theory/streaming_replay.hpp"
#include "tests/support/algorithm_one.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_models.hpp"

using namespace specdec::sim;
using namespace specdec::test_support;
namespace theory = specdec::theory;

namespace {

/// Expected counts, probability times what the ways to one text count.
struct Counts {
  double probability = 0;
  double steps = 0;
  double drafted = 0;
  std::vector<double> accepted;  // by position
  std::vector<double> examined;

  explicit Counts(std::int64_t gamma)
      : accepted(static_cast<std::size_t>(gamma)), examined(static_cast<std::size_t>(gamma)) {}
};

Counts& add(Counts& counts, const Path& path, std::int64_t gamma) {
  auto left = static_cast<std::int64_t>(path.generated().size());
  counts.probability += path.probability;
  counts.steps += path.probability * static_cast<double>(path.accepted.size());
  for (std::size_t step = 0; step < path.accepted.size(); ++step) {
    counts.drafted += path.probability * static_cast<double>(std::min(gamma, left - 1));
    for (std::int64_t j = 0; j < path.accepted[step]; ++j)
      counts.accepted[static_cast<std::size_t>(j)] += path.probability;
    for (std::int64_t j = 0; j < path.looked_at[step]; ++j)
      counts.examined[static_cast<std::size_t>(j)] += path.probability;
    left -= path.accepted[step] + 1;
  }
  return counts;
}

enum class Of { token, prefix };

std::vector<double> acceptance_of(const TablePair& pair, const Tokens& text, Of what) {
  std::vector<double> acceptance;
  for (std::size_t t = enumerated_prompt.size(); t < text.size(); ++t) {
    const auto p = pair.target.row(std::span(text).first(t));
    const auto q = pair.draft.row(std::span(text).first(t));
    const auto x = static_cast<std::size_t>(text[t]);
    double overlap = 0;
    for (std::size_t y = 0; y < p.size(); ++y) overlap += std::min(p[y], q[y]);
    acceptance.push_back(std::min(1.0, what == Of::token ? q[x] / p[x] : overlap));
  }
  return acceptance;
}

/// The largest deviation of replay from the enumeration, over all texts.
double worst_deviation(const TablePair& pair, std::int64_t gamma, std::int64_t tokens, Of what) {
  std::map<Tokens, Counts> by_text;
  for (const Path& path : Enumerator(pair, gamma, tokens).all())
    add(by_text.try_emplace(path.text, gamma).first->second, path, gamma);
  double worst = 0;
  for (const auto& [text, counts] : by_text) {
    theory::StreamingReplay replay({.max_gamma = gamma, .by_position = true});
    replay.add(acceptance_of(pair, text, what));
    const theory::ReplayedRounds& rounds = replay.finish_sequence();
    const auto note = [&, p = counts.probability](double counted, double replayed) {
      worst = std::max(worst, std::abs(counted - p * replayed));
    };
    note(counts.steps, rounds.steps(gamma));
    note(counts.drafted, rounds.drafted(gamma));
    for (std::int64_t j = 1; j <= gamma; ++j) {
      note(counts.accepted[static_cast<std::size_t>(j - 1)], rounds.accepted(gamma, j));
      note(counts.examined[static_cast<std::size_t>(j - 1)], rounds.examined(gamma, j));
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("over every way of Algorithm 1 to a text, steps and drafts are those that replay computes from the text") {
  for (const Likeness likeness : {Likeness::independent, Likeness::equal, Likeness::disjoint}) {
    for (std::int64_t gamma = 0; gamma <= 4; ++gamma) {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        CAPTURE(likeness, gamma, seed);
        CHECK(worst_deviation(random_pair(2, 3, likeness, seed), gamma, 5, Of::token) <= 1e-12);
        CHECK(worst_deviation(random_pair(3, 3, likeness, seed), gamma, gamma <= 2 ? 4 : 3, Of::token) <= 1e-12);
      }
    }
  }
}

TEST_CASE("replay from the mean acceptance at each prefix is not the law of Algorithm 1") {
  std::int64_t off = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    off += worst_deviation(random_pair(3, 3, Likeness::independent, seed), 2, 4, Of::prefix) > 1e-3;
  CHECK(off == 20);
}
