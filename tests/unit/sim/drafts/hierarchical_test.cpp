// A draft with a draft of its own, over all ways a run can go (tests/support/exact_uniforms.hpp).

#include "sim/drafts/hierarchical.hpp"

#include <functional>
#include <set>
#include <tuple>
#include <vector>

#include "sim/decoding.hpp"
#include "sim/policies.hpp"
#include "sim/table_models.hpp"
#include "sim/verifiers/block_verification.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exact_uniforms.hpp"
#include "tests/support/random_models.hpp"

using namespace specdec::sim;
using namespace specdec::test_support;

namespace {

/// A target, a draft, and that draft's draft.
struct Triple {
  TablePair pair;
  ContextTableModel inner;
};

Triple random_triple(std::int64_t vocab, std::int64_t order, std::uint64_t seed) {
  return {random_pair(vocab, order, Likeness::independent, seed),
          random_pair(vocab, order, Likeness::independent, seed + 1000).draft};
}

const CutRule by_tokens{"token", verify_tokens, algorithm_one};
const CutRule by_blocks{"block", verify_block, block_rule};

struct Setting {
  const char* name;
  std::int64_t gamma = 2;
  std::int64_t inner_gamma = 1;
  CutRule outer = by_tokens;
  CutRule inner = by_tokens;
  DraftingPolicy policy = {};
  Proposing proposing = Proposing::sampled;
};

/// The differences of a wrong twin.
struct Twin {
  decltype(ExactUniforms::rename) rename;
  bool returns_inner_rows = false;
};

/// Tells the verifier the inner model's law in the place of the middle one's.
class InnerRows final : public Draft {
 public:
  InnerRows(Draft& draft, const ContextTableModel& inner) : draft_(draft), inner_(inner) {}
  std::int64_t vocab_size() const override { return draft_.vocab_size(); }
  std::int64_t max_length() const override { return draft_.max_length(); }
  void begin(std::span<const Token> prompt) override { draft_.begin(prompt); }
  void propose(const DraftRequest& request, Proposal& proposal) override {
    draft_.propose(request, proposal);
    Tokens text(request.text.begin(), request.text.end());
    proposal.rows.clear();
    for (const Token token : proposal.tokens) {
      const std::span<const double> row = inner_.row(text);
      proposal.rows.insert(proposal.rows.end(), row.begin(), row.end());
      text.push_back(token);
    }
  }
  void keep(std::int64_t length) override { draft_.keep(length); }
  DraftWork work() const override { return draft_.work(); }

 private:
  Draft& draft_;
  const ContextTableModel& inner_;
};

ExactLaw law_with(const Triple& triple, const Setting& setting, std::int64_t tokens, const Twin& twin = {}) {
  ContextTableModel target = triple.pair.target;
  ContextTableModel middle = triple.pair.draft;
  ContextTableModel inner = triple.inner;
  ExactUniforms uniforms;
  uniforms.rename = twin.rename;
  const PlaceOfUniform place = [](std::int64_t round, std::int64_t slot, Purpose purpose) {
    return ExactUniforms::Slot{InnerUniforms::outer_slot(round, slot), InnerUniforms::outer_purpose(purpose)};
  };
  std::vector<ExactUniforms::Slot> drafted;
  for (std::int64_t round = 0; round < 4; ++round)
    for (std::int64_t slot = 0; slot < 4; ++slot) drafted.push_back(place(round, slot, Purpose::draft));
  CuttingModel cutting_inner(inner, uniforms, drafted);
  ModelDraft inner_draft(cutting_inner, {}, setting.proposing);
  HierarchicalDraft hierarchical(middle, inner_draft, setting.inner_gamma, {},
                                 cutting(setting.inner.verifier, setting.inner.formulas, uniforms, place));
  InnerRows wrong_rows(hierarchical, triple.inner);
  Draft& draft = twin.returns_inner_rows ? static_cast<Draft&>(wrong_rows) : hierarchical;
  DecodingOptions options;
  options.gamma = setting.gamma;
  options.max_new_tokens = tokens;
  options.policy = setting.policy;
  options.verifier = cutting(setting.outer.verifier, setting.outer.formulas, uniforms);
  return exact_law(uniforms, [&] { return decode_with_draft(target, draft, enumerated_prompt, options, uniforms); });
}

/// Remembers which numbers were asked for.
class CountedUniforms final : public UniformSource {
 public:
  double uniform(std::int64_t round, std::int64_t slot, Purpose purpose) const override {
    again += !asked.insert({round, slot, purpose}).second;
    return stream.uniform(round, slot, purpose);
  }

  RandomStream stream{5, 0};
  mutable std::set<std::tuple<std::int64_t, std::int64_t, Purpose>> asked;
  mutable int again = 0;
};

}  // namespace

TEST_CASE("with a draft that has a draft of its own the text keeps the target's law") {
  const std::vector<Setting> settings{{"one inner draft"},
                                      {"two inner drafts", 3, 2},
                                      {"no inner drafts", 2, 0},
                                      {"by blocks outside", 2, 1, by_blocks},
                                      {"by blocks inside", 3, 2, by_tokens, by_blocks},
                                      {"by blocks", 3, 2, by_blocks, by_blocks},
                                      {"greedy inside", 3, 2, by_tokens, by_tokens, {}, Proposing::greedy},
                                      {"threshold", 3, 2, by_tokens, by_tokens, threshold_policy(0.5, 0.3)},
                                      {"confidence", 3, 2, by_blocks, by_tokens, confidence_policy(0.6)}};
  for (const Setting& setting : settings) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      CAPTURE(setting.name, seed);
      const Triple two = random_triple(2, 3, seed);
      CHECK(law_with(two, setting, 4).distance_from(two.pair.target) <= 1e-12);
      const Triple three = random_triple(3, 2, seed);
      CHECK(law_with(three, setting, setting.gamma).distance_from(three.pair.target) <= 1e-12);
    }
  }
}

TEST_CASE("wrong twins of a hierarchical draft do not keep the law", "[long]") {
  const Triple triple = {fixed_pair({0.5, 0.3, 0.2}, {0.2, 0.3, 0.5}), unigram_model({0.4, 0.2, 0.4})};
  const Setting setting{"two inner drafts", 3, 2};
  REQUIRE(law_with(triple, setting, 4).distance_from(triple.pair.target) <= 1e-12);
  SECTION("inner rounds that use the outer round's numbers") {
    const auto shared = [](const ScriptedUniforms::Key& key) -> ScriptedUniforms::Key {
      const auto [round, slot, purpose] = key;
      if (purpose < Purpose::inner_draft) return key;
      return {round, slot % InnerUniforms::most,
              static_cast<Purpose>(static_cast<int>(purpose) - static_cast<int>(Purpose::inner_draft))};
    };
    CHECK(law_with(triple, setting, 4, {shared}).distance_from(triple.pair.target) > 1e-3);
  }
  SECTION("every inner round with the same numbers") {
    const auto repeated = [](const ScriptedUniforms::Key& key) -> ScriptedUniforms::Key {
      const auto [round, slot, purpose] = key;
      return {round, slot % InnerUniforms::most, purpose};
    };
    CHECK(law_with(triple, setting, 4, {repeated}).distance_from(triple.pair.target) > 1e-3);
  }
  SECTION("the inner model's rows handed to the verifier") {
    CHECK(law_with(triple, setting, 4, {{}, true}).distance_from(triple.pair.target) > 1e-3);
  }
}

TEST_CASE("no random number is asked for twice, and both models' calls and positions are counted") {
  TablePair pair = synthetic_bigram_pair(6, 0.8, 2);
  ContextTableModel inner = synthetic_bigram_pair(6, 1.5, 2).draft;
  ModelDraft inner_draft(inner, {});
  HierarchicalDraft draft(pair.draft, inner_draft, 2, {});
  DecodingOptions options;
  options.gamma = 5;
  options.max_new_tokens = 300;
  const CountedUniforms uniforms;
  const Generation run = decode_with_draft(pair.target, draft, Tokens{1, 2}, options, uniforms);
  CHECK(run.tokens.size() == 300);
  CHECK(uniforms.asked.size() > 1000);
  CHECK(uniforms.again == 0);
  const DraftWork middle = draft.middle_work();
  const DraftWork inside = draft.inner_work();
  CHECK(run.counters.draft_calls == middle.calls + inside.calls);
  CHECK(run.counters.draft_positions == middle.positions + inside.positions);
  // An inner round makes between one and three tokens.
  CHECK(middle.calls < run.counters.drafted);
  CHECK(3 * middle.calls >= run.counters.drafted);

  // With an inner draft that is the middle model every draft stays: five tokens are three and two.
  ContextTableModel same = pair.draft;
  ModelDraft same_draft(same, {});
  HierarchicalDraft sure(pair.draft, same_draft, 2, {});
  options.max_new_tokens = 6;
  sure.begin(Tokens{1});
  Proposal proposal;
  sure.propose({Tokens{1}, 5, 0, options.policy, uniforms.stream}, proposal);
  CHECK(proposal.tokens.size() == 5);
  CHECK(proposal.rows.size() == 30);
  CHECK(sure.middle_work().calls == 2);
  CHECK(sure.inner_work().calls == 3);
  CHECK(sure.middle_work().positions == 5);
}

TEST_CASE("a hierarchical draft refuses what does not fit, and rounds inside an inner round") {
  ContextTableModel three = uniform_model(3);
  ContextTableModel four = uniform_model(4);
  ModelDraft inner(three, {});
  CHECK_THROWS_AS(HierarchicalDraft(four, inner, 2, {}), std::invalid_argument);
  CHECK_THROWS_AS(HierarchicalDraft(three, inner, -1, {}), std::domain_error);
  ContextTableModel middle = uniform_model(3);
  HierarchicalDraft draft(middle, inner, 2, {});
  ContextTableModel outer = uniform_model(3);
  HierarchicalDraft nested(outer, draft, 2, {});
  nested.begin(Tokens{1});
  Proposal proposal;
  const DraftingPolicy policy;
  const RandomStream stream(1, 0);
  CHECK_THROWS_AS(nested.propose({Tokens{1}, 3, 0, policy, stream}, proposal), std::domain_error);
  const InnerUniforms uniforms(stream, 7);
  CHECK(uniforms.uniform(2, 3, Purpose::residual) == stream.uniform(7, 2 * 16384 + 3, Purpose::inner_residual));
  CHECK_THROWS_AS(uniforms.uniform(0, 16384, Purpose::draft), std::domain_error);
  CHECK_THROWS_AS(uniforms.uniform(16384, 0, Purpose::draft), std::domain_error);
}
