#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "sim/table_models.hpp"
#include "tests/support/scripted_uniforms.hpp"

/// Algorithm 1 over all outcomes, following the paper's text on its own: neither the decoder nor any formula.
namespace specdec::test_support {

using Tokens = std::vector<sim::Token>;

inline const Tokens enumerated_prompt = {1, 0};

struct Interval {
  double lo;
  double hi;
};

/// One way a run can go.
struct Path {
  double probability = 1;
  std::map<ScriptedUniforms::Key, Interval> uniforms;
  Tokens text;
  std::vector<std::int64_t> accepted;   // of each step
  std::vector<std::int64_t> looked_at;  // drafts up to the rejected one
  /// Drafts of each step: what it does behind a rejected draft depends on what it drafts there.
  std::vector<std::int64_t> drafted_at_least, drafted_at_most;

  Tokens generated() const {
    return Tokens(text.begin() + static_cast<std::ptrdiff_t>(enumerated_prompt.size()), text.end());
  }
};

/// When a step stops drafting before gamma.
struct EnumeratedPolicy {
  /// Takes the last draft's own probability and the product of those of all drafts of the step.
  std::function<bool(double token_probability, double running_product)> stops_after = [](double, double) {
    return false;
  };
  /// Leave the draft out that tripped the rule instead of submitting it: not lossless.
  bool drops_tripping_draft = false;
};

class Enumerator {
 public:
  Enumerator(const sim::TablePair& pair, std::int64_t gamma, std::int64_t tokens, EnumeratedPolicy policy = {})
      : pair_(pair),
        gamma_(gamma),
        wanted_(enumerated_prompt.size() + static_cast<std::size_t>(tokens)),
        policy_(std::move(policy)) {}

  std::vector<Path> all() {
    Path start;
    start.text = enumerated_prompt;
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
    slot(path, round, 0, std::min(gamma_, left - 1), 1);
  }

  /// Drafts that stand behind a rejection are never looked at; their uniforms stay free.
  void slot(const Path& path, std::int64_t round, std::int64_t i, std::int64_t gamma, double product) {
    const auto p = pair_.target.row(path.text);
    if (i == gamma) {
      choose(path, {round, i, sim::Purpose::bonus}, {p.begin(), p.end()}, [&](Path next, sim::Token x) {
        next.text.push_back(x);
        next.accepted.push_back(i);
        next.looked_at.push_back(i);
        next.drafted_at_least.push_back(i);
        next.drafted_at_most.push_back(i);
        step(next, round + 1);
      });
      return;
    }
    const auto q = pair_.draft.row(path.text);
    choose(path, {round, i, sim::Purpose::draft}, {q.begin(), q.end()}, [&](const Path& drafted, sim::Token x) {
      const double drafted_probability = q[static_cast<std::size_t>(x)];
      const double running = product * drafted_probability;
      const bool stops = policy_.stops_after(drafted_probability, running);
      if (stops && policy_.drops_tripping_draft) {
        slot(drafted, round, i, i, running);
        return;
      }
      const double keep = std::min(1.0, p[static_cast<std::size_t>(x)] / drafted_probability);
      narrow(drafted, {round, i, sim::Purpose::acceptance}, {0, keep}, [&](Path next) {
        next.text.push_back(x);
        slot(next, round, i + 1, stops ? i + 1 : gamma, running);
      });
      narrow(drafted, {round, i, sim::Purpose::acceptance}, {keep, 1}, [&](const Path& rejected) {
        std::vector<double> residual;
        for (std::size_t y = 0; y < p.size(); ++y) residual.push_back(std::max(0.0, p[y] - q[y]));
        choose(rejected, {round, i, sim::Purpose::residual}, residual, [&](Path next, sim::Token y) {
          next.text.push_back(y);
          next.accepted.push_back(i);
          next.looked_at.push_back(i + 1);
          next.drafted_at_least.push_back(stops ? i + 1 : std::min(i + 2, gamma));
          next.drafted_at_most.push_back(stops ? i + 1 : gamma);
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
                     const std::function<void(Path, sim::Token)>& then) {
    double total = 0;
    for (const double w : weights) total += w;
    double lo = 0;
    for (std::size_t x = 0; x < weights.size(); ++x) {
      const double hi = lo + weights[x] / total;
      narrow(path, key, {lo, hi}, [&](const Path& next) { then(next, static_cast<sim::Token>(x)); });
      lo = hi;
    }
  }

  const sim::TablePair& pair_;
  std::int64_t gamma_;
  std::size_t wanted_;
  EnumeratedPolicy policy_;
  std::vector<Path> paths_;
};

inline double target_probability(const sim::ContextTableModel& target, const Tokens& text) {
  double probability = 1;
  for (std::size_t t = enumerated_prompt.size(); t < text.size(); ++t)
    probability *= target.row(std::span(text).first(t))[static_cast<std::size_t>(text[t])];
  return probability;
}

}  // namespace specdec::test_support
