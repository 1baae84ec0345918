#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/decoding.hpp"
#include "tests/support/algorithm_one.hpp"

/// The exact law of what production code does with uniforms: it is run once for each way it can go, every uniform in
/// the middle of one of the cells within which the test says that nothing depends on it, the run weighted by their
/// widths. A missing cut gives a wrong law; a cut too many costs time only.
namespace specdec::test_support {

class ExactUniforms final : public sim::UniformSource {
 public:
  using Slot = std::pair<std::int64_t, sim::Purpose>;

  /// Where the coming uniforms of this slot and purpose may matter; without cuts they may not matter at all.
  void cut(std::int64_t slot, sim::Purpose purpose, std::vector<double> at) {
    std::sort(at.begin(), at.end());
    cuts_[{slot, purpose}] = std::move(at);
  }

  /// Uniforms of later rounds do not branch: what comes of them is no law.
  std::int64_t rounds = std::numeric_limits<std::int64_t>::max();

  /// Uniforms of two keys are the same one where this gives them the same name.
  std::function<ScriptedUniforms::Key(const ScriptedUniforms::Key&)> rename;

  double uniform(std::int64_t round, std::int64_t slot, sim::Purpose purpose) const override {
    const ScriptedUniforms::Key key{round, slot, purpose};
    Interval& cell = cells_.try_emplace(rename ? rename(key) : key, Interval{0, 1}).first->second;
    const auto found = cuts_.find({slot, purpose});
    if (found != cuts_.end() && round < rounds) narrow(cell, found->second);
    return cell.lo + (cell.hi - cell.lo) / 2;
  }

  /// Calls `run` for every way it can go and hands over how probable it is.
  void for_all(const std::function<void()>& run, const std::function<void(double probability)>& went) {
    choices_.clear();
    do {
      cells_.clear();
      cuts_.clear();
      asked_ = 0;
      run();
      double probability = 1;
      for (const auto& [key, cell] : cells_) probability *= cell.hi - cell.lo;
      went(probability);
      while (!choices_.empty() && choices_.back().chosen + 1 == choices_.back().of) choices_.pop_back();
      if (!choices_.empty()) ++choices_.back().chosen;
    } while (!choices_.empty());
  }

 private:
  struct Choice {
    std::size_t chosen;
    std::size_t of;
  };

  /// @param cuts  ascending
  void narrow(Interval& cell, const std::vector<double>& cuts) const {
    constexpr double nothing = 1e-14;
    edges_.assign(1, cell.lo);
    for (const double at : cuts)
      if (at > edges_.back() + nothing && at < cell.hi - nothing) edges_.push_back(at);
    edges_.push_back(cell.hi);
    if (edges_.size() == 2) return;
    if (asked_ == choices_.size()) choices_.push_back({0, edges_.size() - 1});
    const std::size_t i = choices_[asked_++].chosen;
    cell = {edges_[i], edges_[i + 1]};
  }

  std::map<Slot, std::vector<double>> cuts_;
  mutable std::map<ScriptedUniforms::Key, Interval> cells_;
  mutable std::vector<Choice> choices_;
  mutable std::size_t asked_ = 0;
  mutable std::vector<double> edges_;
};

/// The cuts of sampling from weights.
inline std::vector<double> cumulative(const std::vector<double>& weights) {
  double total = 0;
  for (const double w : weights) total += w;
  std::vector<double> sums;
  double sum = 0;
  for (const double w : weights) sums.push_back((sum += w) / total);
  return sums;
}

/// A draft model that cuts the next drafts' uniforms, which are those of `slots`, where its row changes the token.
class CuttingModel final : public sim::LanguageModel {
 public:
  CuttingModel(sim::LanguageModel& model, ExactUniforms& uniforms, std::vector<ExactUniforms::Slot> slots = {})
      : model_(model), uniforms_(&uniforms), slots_(std::move(slots)) {
    for (std::int64_t slot = 0; slots_.size() < 8; ++slot) slots_.emplace_back(slot, sim::Purpose::draft);
  }

  std::int64_t vocab_size() const override { return model_.vocab_size(); }
  std::int64_t max_length() const override { return model_.max_length(); }
  std::int64_t length() const override { return model_.length(); }
  double operations_per_token() const override { return model_.operations_per_token(); }
  void roll_back(std::int64_t length) override { model_.roll_back(length); }
  void score(std::span<const sim::Token> block, std::span<double> rows) override {
    model_.score(block, rows);
    if (rows.empty()) return;
    const std::vector<double> sums = cumulative({rows.begin(), rows.end()});
    for (const auto& [slot, purpose] : slots_) uniforms_->cut(slot, purpose, sums);
  }

 private:
  sim::LanguageModel& model_;
  ExactUniforms* uniforms_;
  std::vector<ExactUniforms::Slot> slots_;
};

inline double ratio(double a, double b) { return b > 0 ? a / b : std::numeric_limits<double>::infinity(); }

/// max(0, a p - b q), or p where that is nothing.
inline std::vector<double> residual_of(std::span<const double> p, std::span<const double> q, double a = 1,
                                       double b = 1) {
  std::vector<double> weights;
  double total = 0;
  for (std::size_t x = 0; x < p.size(); ++x) {
    weights.push_back(std::max(0.0, a * p[x] - b * q[x]));
    total += weights.back();
  }
  return total > 1e-15 ? weights : std::vector<double>(p.begin(), p.end());
}

/// Formulas of the test for a rule: where draft i's acceptance may change, and the weights from which the token is
/// drawn that follows n accepted drafts.
struct RuleFormulas {
  std::function<std::vector<double>(const sim::DraftedBlock&, std::size_t i)> acceptance;
  std::function<std::vector<double>(const sim::DraftedBlock&, std::size_t n)> residual;
};

/// Where a rule's source takes a uniform from.
using PlaceOfUniform = std::function<ExactUniforms::Slot(std::int64_t round, std::int64_t slot, sim::Purpose)>;

inline sim::Verifier cutting(sim::Verifier rule, const RuleFormulas& formulas, ExactUniforms& uniforms,
                             const PlaceOfUniform& place = {}) {
  return [rule = std::move(rule), formulas, &uniforms, place](const sim::DraftedBlock& block,
                                                              const sim::UniformSource& source, std::int64_t round) {
    const auto cut = [&](std::size_t i, sim::Purpose purpose, std::vector<double> at) {
      const ExactUniforms::Slot own{static_cast<std::int64_t>(i), purpose};
      const auto [slot, name] = place ? place(round, own.first, own.second) : own;
      uniforms.cut(slot, name, std::move(at));
    };
    for (std::size_t i = 0; i < block.gamma(); ++i) {
      cut(i, sim::Purpose::acceptance, formulas.acceptance(block, i));
      cut(i, sim::Purpose::residual, cumulative(formulas.residual(block, i)));
    }
    const std::span<const double> p = block.p(block.gamma());
    cut(block.gamma(), sim::Purpose::bonus, cumulative({p.begin(), p.end()}));
    return rule(block, source, round);
  };
}

/// The law of a text, and how many drafts stay in expectation in the first step.
struct ExactLaw {
  std::map<Tokens, double> texts;
  double total = 0;
  double accepted = 0;

  void add(const sim::Generation& run, double probability) {
    texts[run.tokens] += probability;
    total += probability;
    accepted += probability * static_cast<double>(run.steps.front().accepted);
  }

  /// The largest error of a text's probability; 1 where the probabilities do not add up.
  double distance_from(const sim::ContextTableModel& target) const {
    if (!(total > 1 - 1e-12 && total < 1 + 1e-12)) return 1;
    double worst = 0;
    double covered = 0;
    for (const auto& [text, probability] : texts) {
      Tokens whole = enumerated_prompt;
      whole.insert(whole.end(), text.begin(), text.end());
      const double right = target_probability(target, whole);
      covered += right;
      worst = std::max(worst, std::abs(probability - right));
    }
    return std::max(worst, std::abs(1 - covered));
  }
};

inline ExactLaw exact_law(ExactUniforms& uniforms, const std::function<sim::Generation()>& run) {
  ExactLaw law;
  sim::Generation last;
  uniforms.for_all([&] { last = run(); }, [&](double probability) { law.add(last, probability); });
  return law;
}

/// Algorithm 1 as its paper writes it down, and block verification as docs/reference/methods.md does.
/// P_i of block verification, after i drafts.
inline double kept_after(const sim::DraftedBlock& block, std::size_t i) {
  double kept = 1;
  for (std::size_t j = 0; j < i; ++j)
    kept = std::min(1.0, kept * ratio(block.p(j)[block.token(j)], block.q(j)[block.token(j)]));
  return kept;
}

inline double threshold_after(const sim::DraftedBlock& block, std::size_t i) {
  const double kept = kept_after(block, i);
  if (i == block.gamma()) return kept;
  double r = 0;
  for (std::size_t x = 0; x < block.vocab(); ++x) r += std::max(0.0, kept * block.p(i)[x] - block.q(i)[x]);
  return r + 1 - kept > 0 ? r / (r + 1 - kept) : 1;
}

inline const RuleFormulas algorithm_one{
    [](const sim::DraftedBlock& b, std::size_t i) -> std::vector<double> {
      return {ratio(b.p(i)[b.token(i)], b.q(i)[b.token(i)])};
    },
    [](const sim::DraftedBlock& b, std::size_t n) { return residual_of(b.p(n), b.q(n)); }};
inline const RuleFormulas block_rule{
    [](const sim::DraftedBlock& b, std::size_t i) -> std::vector<double> { return {threshold_after(b, i + 1)}; },
    [](const sim::DraftedBlock& b, std::size_t n) { return residual_of(b.p(n), b.q(n), kept_after(b, n)); }};
/// A rule to be enumerated.
struct CutRule {
  const char* name;
  sim::Verifier verifier;
  RuleFormulas formulas;
};

/// The law of a run of the production decoder.
inline ExactLaw law_of(const sim::TablePair& pair, const CutRule& rule, std::int64_t gamma, std::int64_t tokens,
                       decltype(ExactUniforms::rename) rename = {}) {
  sim::ContextTableModel target = pair.target;
  sim::ContextTableModel draft = pair.draft;
  ExactUniforms uniforms;
  uniforms.rename = std::move(rename);
  CuttingModel cutting_draft(draft, uniforms);
  sim::DecodingOptions options;
  options.gamma = gamma;
  options.max_new_tokens = tokens;
  options.verifier = cutting(rule.verifier, rule.formulas, uniforms);
  return exact_law(uniforms,
                   [&] { return decode_speculatively(target, cutting_draft, enumerated_prompt, options, uniforms); });
}

}  // namespace specdec::test_support
