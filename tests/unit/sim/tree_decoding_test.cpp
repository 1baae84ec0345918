// Trees of drafts inside their decoder, over all ways a run can go (tests/support/exact_uniforms.hpp): the text's law
// is the target's, and as many drafts of a step stay as computed by hand.

#include "sim/tree_decoding.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/decoding.hpp"
#include "sim/sampling.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exact_uniforms.hpp"
#include "tests/support/random_models.hpp"

using namespace specdec::sim;
using namespace specdec::test_support;
using Row = std::vector<double>;
using Parents = std::vector<std::int64_t>;

namespace {

constexpr std::int64_t most_slots = 8;

/// A target that cuts the uniforms of the rules for several drafts wherever one of them may look, at any slot: at the
/// sums of p for a sample of it, and for p_1 = p, p_(i+1) = norm(max(0, p_i - q)) at p_i / q and the sums of p_i.
class CuttingTarget final : public LanguageModel {
 public:
  CuttingTarget(const TablePair& pair, std::int64_t siblings, bool samples, bool sequential, ExactUniforms& uniforms)
      : pair_(pair),
        target_(pair.target),
        siblings_(siblings),
        samples_(samples),
        sequential_(sequential),
        uniforms_(&uniforms) {}

  std::int64_t vocab_size() const override { return target_.vocab_size(); }
  std::int64_t max_length() const override { return target_.max_length(); }
  std::int64_t length() const override { return target_.length(); }
  double operations_per_token() const override { return 0; }
  void roll_back(std::int64_t length) override {
    target_.roll_back(length);
    prefix_.resize(static_cast<std::size_t>(length));
  }
  void score(std::span<const Token> block, std::span<double> rows) override {
    target_.score(block, rows);
    prefix_.insert(prefix_.end(), block.begin(), block.end());
    if (!rows.empty()) cut({rows.begin(), rows.end()});
  }

 private:
  void cut(Row p) {
    const std::span<const double> q = pair_.draft.row(prefix_);
    const Row bonus = cumulative(p);
    Row acceptance = samples_ ? bonus : Row{};
    Row residual;
    for (std::int64_t k = 1; sequential_ && k <= siblings_; ++k) cut_sequential(p, q, k, acceptance, residual);
    for (std::int64_t i = 0; i <= siblings_; ++i) {
      const Row sums = cumulative(p);
      residual.insert(residual.end(), sums.begin(), sums.end());
      for (std::size_t x = 0; x < p.size(); ++x) acceptance.push_back(ratio(p[x], q[x]));
      p = residual_of(p, q);
      double total = 0;
      for (const double w : p) total += w;
      for (double& w : p) w /= total;
    }
    for (std::int64_t slot = 0; slot < most_slots; ++slot) {
      uniforms_->cut(slot, Purpose::acceptance, acceptance);
      uniforms_->cut(slot, Purpose::residual, residual);
      uniforms_->cut(slot, Purpose::bonus, bonus);
    }
  }

  /// At p / (rho q), and at the sums of p - min(p / rho, q) (1 - (1 - b)^k) / b.
  static void cut_sequential(const Row& p, std::span<const double> q, std::int64_t k, Row& acceptance, Row& residual) {
    const double rho = k_sequential_divisor(p, q, k);
    double b = 0;
    for (std::size_t x = 0; x < p.size(); ++x) b += std::min(p[x] / rho, q[x]);
    const double taken = b > 0 ? (1 - std::pow(1 - b, static_cast<double>(k))) / b : 0;
    Row rest(p.size());
    double total = 0;
    for (std::size_t x = 0; x < p.size(); ++x) {
      acceptance.push_back(ratio(p[x], rho * q[x]));
      rest[x] = std::max(0.0, p[x] - std::min(p[x] / rho, q[x]) * taken);
      total += rest[x];
    }
    for (double& w : rest) w /= total > 1e-12 ? total : 1;
    const Row sums = cumulative(total > 1e-12 ? rest : p);
    residual.insert(residual.end(), sums.begin(), sums.end());
  }

  const TablePair& pair_;
  ContextTableModel target_;
  std::int64_t siblings_;
  bool samples_;
  bool sequential_;
  ExactUniforms* uniforms_;
  Tokens prefix_;
};

struct TreeCase {
  Parents parents;
  std::int64_t siblings;
  SiblingDrafts how;
  CandidateVerifier verifier = {};
};

ExactLaw law_of_tree(const TablePair& pair, const TreeCase& tree, std::int64_t tokens, std::int64_t rounds = 99) {
  ExactUniforms uniforms;
  uniforms.rounds = rounds;
  CuttingTarget target(pair, tree.siblings, tree.how == SiblingDrafts::most_probable, static_cast<bool>(tree.verifier),
                       uniforms);
  ContextTableModel model = pair.draft;
  CuttingModel draft(model, uniforms);
  TreeDecodingOptions options;
  options.parents = tree.parents;
  options.siblings = tree.how;
  options.verifier = tree.verifier                              ? tree.verifier
                     : tree.how == SiblingDrafts::independent   ? verify_recursively
                     : tree.how == SiblingDrafts::most_probable ? verify_by_membership
                                                                : verify_recursively_without_replacement;
  options.max_new_tokens = tokens;
  return exact_law(uniforms, [&] { return decode_with_tree(target, draft, enumerated_prompt, options, uniforms); });
}

}  // namespace

TEST_CASE("a text decoded with a tree of drafts has the target's law, however siblings are proposed", "[long]") {
  const Parents lopsided = {-1, 0, 0, 1, 3};
  std::vector<TreeCase> trees;
  for (const SiblingDrafts how :
       {SiblingDrafts::independent, SiblingDrafts::without_replacement, SiblingDrafts::most_probable}) {
    trees.push_back({full_tree(2, 2), 2, how});
    trees.push_back({chains_tree(2, 2), 2, how});
    trees.push_back({lopsided, 2, how});
  }
  trees.push_back({chains_tree(2, 2), 2, SiblingDrafts::independent, verify_k_sequentially});
  for (const Likeness likeness : {Likeness::independent, Likeness::equal, Likeness::disjoint}) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const TablePair pair = random_pair(2, 3, likeness, seed);
      for (const TreeCase& tree : trees) {
        CAPTURE(likeness, seed, tree.parents, static_cast<int>(tree.how));
        CHECK(law_of_tree(pair, tree, 4).distance_from(pair.target) <= 1e-12);
      }
    }
  }
}

// Each runs and looks right; two are rules of one kind of candidates for another.
TEST_CASE("a wrong twin of the rules inside the tree decoder does not keep the law", "[long]") {
  const CandidateVerifier from_p = [](const DraftedCandidates& candidates, const UniformSource& uniforms,
                                      std::int64_t round, std::int64_t slot) {
    CandidateVerdict verdict = verify_recursively(candidates, uniforms, round, slot);
    if (!verdict.accepted)
      verdict.token = sample(candidates.target_row, uniforms.uniform(round, slot, Purpose::residual));
    return verdict;
  };
  const CandidateVerifier one_uniform = [](const DraftedCandidates& candidates, const UniformSource& uniforms,
                                           std::int64_t round, std::int64_t slot) -> CandidateVerdict {
    const double u = uniforms.uniform(round, slot, Purpose::acceptance);
    for (std::size_t i = 0; i < candidates.drafted.size(); ++i) {
      const auto x = static_cast<std::size_t>(candidates.drafted[i]);
      if (u * candidates.draft_row[x] < candidates.target_row[x]) return {i, candidates.drafted[i]};
    }
    return verify_recursively(candidates, uniforms, round, slot);
  };
  const std::vector<TreeCase> twins = {
      {full_tree(2, 1), 2, SiblingDrafts::independent, from_p},
      {full_tree(2, 1), 2, SiblingDrafts::independent, one_uniform},
      {full_tree(2, 1), 2, SiblingDrafts::without_replacement, verify_recursively},
      {full_tree(2, 1), 2, SiblingDrafts::independent, verify_recursively_without_replacement}};
  for (std::size_t twin = 0; twin < twins.size(); ++twin) {
    double worst = 0;
    for (const TablePair& pair :
         {fixed_pair({0.5, 0.3, 0.2}, {0.2, 0.3, 0.5}), fixed_pair({0.4, 0.35, 0.15, 0.1}, {0.1, 0.2, 0.3, 0.4})}) {
      const ExactLaw law = law_of_tree(pair, twins[twin], 2);
      CHECK(law.total == Approx(1).epsilon(1e-12));
      worst = std::max(worst, law.distance_from(pair.target));
    }
    CAPTURE(twin);
    CHECK(worst > 1e-3);
  }
}

TEST_CASE("a step of chains, of a full tree and of most probable siblings accepts as computed by hand") {
  const TablePair p1 = fixed_pair({0.5, 0.3, 0.2}, {0.2, 0.3, 0.5});
  const auto accepted = [&](const Parents& parents, std::int64_t siblings, SiblingDrafts how, std::int64_t gamma) {
    return law_of_tree(p1, {parents, siblings, how}, gamma + 1, 1).accepted;
  };
  CHECK(accepted(chains_tree(2, 1), 2, SiblingDrafts::independent, 1) == Approx(0.76));
  CHECK(accepted(chains_tree(2, 2), 2, SiblingDrafts::independent, 2) == Approx(1.3058));
  CHECK(accepted(chains_tree(3, 1), 3, SiblingDrafts::independent, 1) == Approx(0.808));
  // k-SEQ at its least divisor, by theory.
  CHECK(law_of_tree(p1, {chains_tree(2, 1), 2, SiblingDrafts::independent, verify_k_sequentially}, 2, 1).accepted ==
        Approx(0.791355287257));
  // The two most probable tokens of q have p = 0.5 together.
  CHECK(accepted(full_tree(2, 1), 2, SiblingDrafts::most_probable, 1) == Approx(0.5));
  CHECK(accepted(full_tree(2, 2), 2, SiblingDrafts::most_probable, 2) == Approx(0.5 + 0.25));
}

TEST_CASE("a tree of one chain is speculative decoding, number for number") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    TablePair pair = synthetic_bigram_pair(10, 1, seed);
    DecodingOptions plain;
    plain.gamma = static_cast<std::int64_t>(seed % 4);
    plain.max_new_tokens = 60;
    TreeDecodingOptions options;
    options.parents = chains_tree(1, plain.gamma);
    options.siblings = SiblingDrafts::independent;
    options.verifier = verify_recursively;
    options.max_new_tokens = 60;
    if (seed == 3) plain.end_token = options.end_token = 4;
    const RandomStream stream(seed, 1);
    const Generation a = decode_speculatively(pair.target, pair.draft, Tokens{1, 2}, plain, stream);
    const Generation b = decode_with_tree(pair.target, pair.draft, Tokens{1, 2}, options, stream);
    CHECK(a.tokens == b.tokens);
    CHECK(a.ended == b.ended);
    CHECK(a.counters == b.counters);
  }
}

TEST_CASE("trees have the shapes asked for, and wrong ones are refused") {
  CHECK(chains_tree(2, 2) == Parents{-1, 0, 0, 1, 2});
  CHECK(full_tree(2, 2) == Parents{-1, 0, 0, 1, 1, 2, 2});
  CHECK(chains_tree(3, 0) == Parents{-1});
  CHECK_THROWS_AS(chains_tree(0, 2), std::domain_error);
  CHECK_THROWS_AS(full_tree(10, 8), std::domain_error);
  TablePair pair = fixed_pair({0.5, 0.5}, {0.5, 0.5});
  const auto decode = [&](const Parents& parents) {
    TreeDecodingOptions options;
    options.parents = parents;
    options.max_new_tokens = 3;
    return decode_with_tree(pair.target, pair.draft, Tokens{0}, options, RandomStream(0, 0));
  };
  CHECK_THROWS_AS(decode({}), std::domain_error);
  CHECK_THROWS_AS(decode({0}), std::domain_error);
  CHECK_THROWS_WITH(decode({-1, 1}), "decode_with_tree: parent is 1, but must be in [0, 0]");
  // Three children of two tokens: the third has nothing to be.
  CHECK(decode({-1, 0, 0, 0}).steps.front().drafted == 2);
  ContextTableModel wider = uniform_model(3);
  CHECK_THROWS_AS(decode_with_tree(pair.target, wider, Tokens{0}, {}, RandomStream(0, 0)), std::invalid_argument);
}
