// Every rule inside the production decoder, over all ways a run can go (tests/support/exact_uniforms.hpp): the text's
// law is the target's. The cuts come of the rules' formulas as this file writes them down; a cut at the wrong place
// cannot give the right law.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "sim/sampling.hpp"
#include "sim/verifiers/baselines.hpp"
#include "sim/verifiers/block_verification.hpp"
#include "sim/verifiers/lossy.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exact_uniforms.hpp"
#include "tests/support/random_models.hpp"

using namespace specdec::sim;
using namespace specdec::test_support;
using Row = std::vector<double>;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double least_ratio(const DraftedBlock& block, std::size_t i) {
  double least = infinity;
  for (std::size_t x = 0; x < block.vocab(); ++x)
    if (block.p(i)[x] > 0) least = std::min(least, block.q(i)[x] / block.p(i)[x]);
  return least;
}

const RuleFormulas matching{[](const DraftedBlock& b, std::size_t i) {
                              return cumulative({b.p(i).begin(), b.p(i).end()});
                            },
                            [](const DraftedBlock& b, std::size_t n) { return Row(b.p(n).begin(), b.p(n).end()); }};
const RuleFormulas rejection_sampling{
    [](const DraftedBlock& b, std::size_t i) -> Row {
      return {least_ratio(b, i) * b.p(i)[b.token(i)] / b.q(i)[b.token(i)]};
    },
    [](const DraftedBlock& b, std::size_t n) { return Row(b.p(n).begin(), b.p(n).end()); }};

}  // namespace

TEST_CASE("every lossless verifier keeps the target's law, over all ways a run can go", "[long]") {
  const std::vector<CutRule> rules = {{"token", verify_tokens, algorithm_one},
                                      {"block", verify_block, block_rule},
                                      {"matching", verify_by_matching, matching},
                                      {"rejection sampling", verify_by_rejection_sampling, rejection_sampling},
                                      {"lenient, l = 1", lenient_verifier(1, LenientResidual::lenient), algorithm_one}};
  for (const Likeness likeness : {Likeness::independent, Likeness::equal, Likeness::disjoint}) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      for (const std::int64_t vocab : {2, 3}) {
        const TablePair pair = random_pair(vocab, 3, likeness, seed);
        std::map<std::string, double> accepted;
        for (const CutRule& rule : rules) {
          CAPTURE(rule.name, likeness, seed, vocab);
          const ExactLaw law = law_of(pair, rule, vocab == 2 ? 3 : 2, vocab == 2 ? 5 : 4);
          CHECK(law.distance_from(pair.target) <= 1e-12);
          accepted[rule.name] = law.accepted;
        }
        // From one prefix, in expectation.
        CHECK(accepted["block"] >= accepted["token"] - 1e-12);
        CHECK(accepted["matching"] <= accepted["token"] + 1e-12);
        CHECK(accepted["rejection sampling"] <= accepted["token"] + 1e-12);
      }
    }
  }
}

// Each mistake leaves a rule that runs and looks right.
TEST_CASE("a wrong twin of each verifier does not keep the law", "[long]") {
  const auto token_of = [](const Row& weights, double u) { return sample(weights, u); };
  const CutRule stops_at_first_failure{
      "block, stopping at the first failed test",
      [&](const DraftedBlock& b, const UniformSource& uniforms, std::int64_t round) -> Verdict {
        std::size_t n = 0;
        const auto slot = [&] { return static_cast<std::int64_t>(n); };
        while (n < b.gamma() && uniforms.uniform(round, slot(), Purpose::acceptance) < threshold_after(b, n + 1)) ++n;
        if (n == b.gamma()) return accept_all(b, uniforms, round);
        const double u = uniforms.uniform(round, slot(), Purpose::residual);
        return {slot(), token_of(block_rule.residual(b, n), u)};
      },
      block_rule};
  const CutRule unscaled_residual{
      "block, the residual not scaled",
      [&](const DraftedBlock& b, const UniformSource& uniforms, std::int64_t round) -> Verdict {
        const Verdict right = verify_block(b, uniforms, round);
        const auto n = static_cast<std::size_t>(right.accepted);
        if (n == b.gamma()) return right;
        return {right.accepted,
                token_of(algorithm_one.residual(b, n), uniforms.uniform(round, right.accepted, Purpose::residual))};
      },
      {block_rule.acceptance, [](const DraftedBlock& b, std::size_t n) {
         Row both = cumulative(block_rule.residual(b, n));
         const Row wrong = cumulative(algorithm_one.residual(b, n));
         both.insert(both.end(), wrong.begin(), wrong.end());
         std::sort(both.begin(), both.end());
         // cutting() takes weights, of which these are the sums.
         for (std::size_t i = both.size() - 1; i > 0; --i) both[i] -= both[i - 1];
         return both;
       }}};
  const CutRule fresh_after_mismatch{
      "matching, with another token after a mismatch",
      [&](const DraftedBlock& b, const UniformSource& uniforms, std::int64_t round) -> Verdict {
        const Verdict right = verify_by_matching(b, uniforms, round);
        if (right.accepted == static_cast<std::int64_t>(b.gamma())) return right;
        return {right.accepted, sample(b.p(static_cast<std::size_t>(right.accepted)),
                                       uniforms.uniform(round, right.accepted, Purpose::residual))};
      },
      matching};
  const CutRule corrected_rejection{
      "rejection sampling, with Algorithm 1's residual",
      [&](const DraftedBlock& b, const UniformSource& uniforms, std::int64_t round) -> Verdict {
        const Verdict right = verify_by_rejection_sampling(b, uniforms, round);
        const auto n = static_cast<std::size_t>(right.accepted);
        if (n == b.gamma()) return right;
        return {right.accepted,
                token_of(algorithm_one.residual(b, n), uniforms.uniform(round, right.accepted, Purpose::residual))};
      },
      {rejection_sampling.acceptance, unscaled_residual.formulas.residual}};
  for (const CutRule& rule : {stops_at_first_failure, unscaled_residual, fresh_after_mismatch, corrected_rejection}) {
    CAPTURE(rule.name);
    double worst = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const TablePair pair = random_pair(3, 3, Likeness::independent, seed);
      const ExactLaw law = law_of(pair, rule, 2, 3);
      CHECK(law.total == Approx(1).epsilon(1e-12));
      worst = std::max(worst, law.distance_from(pair.target));
    }
    CHECK(worst > 1e-4);
  }
}

TEST_CASE("uniforms keyed by the position in the text bias block verification and leave token verification exact") {
  const auto by_position = [](Verifier rule, std::vector<std::int64_t>& starts) -> Verifier {
    return [rule, &starts](const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round) {
      const Verdict verdict = rule(block, uniforms, round);
      const auto r = static_cast<std::size_t>(round);
      starts.resize(r + 2);
      starts[r + 1] = starts[r] + verdict.accepted + 1;
      return verdict;
    };
  };
  std::vector<std::int64_t> starts{0};
  const auto rename = [&starts](const ScriptedUniforms::Key& key) {
    const auto& [round, slot, purpose] = key;
    return ScriptedUniforms::Key{0, starts[static_cast<std::size_t>(round)] + slot, purpose};
  };
  const TablePair pair = fixed_pair({2.0 / 3, 1.0 / 3}, {1.0 / 3, 2.0 / 3});
  const ExactLaw block = law_of(pair, {"", by_position(verify_block, starts), block_rule}, 2, 4, rename);
  CHECK(block.total == Approx(1).epsilon(1e-12));
  CHECK(block.distance_from(pair.target) > 1e-2);
  const ExactLaw token = law_of(pair, {"", by_position(verify_tokens, starts), algorithm_one}, 2, 4, rename);
  CHECK(token.distance_from(pair.target) <= 1e-12);
}

// math.md's figures: exact by rational enumeration.
TEST_CASE("block verification accepts as many tokens as enumerated by hand", "[long]") {
  const TablePair pair = fixed_pair({2.0 / 3, 1.0 / 3}, {1.0 / 3, 2.0 / 3});
  CHECK(law_of(pair, {"", verify_tokens, algorithm_one}, 2, 3).accepted == Approx(10.0 / 9));
  CHECK(law_of(pair, {"", verify_block, block_rule}, 2, 3).accepted == Approx(11.0 / 9));
  const TablePair p1 = fixed_pair({0.5, 0.3, 0.2}, {0.2, 0.3, 0.5});
  CHECK(law_of(p1, {"", verify_block, block_rule}, 2, 3).accepted == Approx(1.25));
  CHECK(law_of(p1, {"", verify_block, block_rule}, 3, 4).accepted == Approx(1.695));
  const TablePair p2 = fixed_pair({0.6, 0.25, 0.1, 0.05}, {0.3, 0.3, 0.25, 0.15});
  CHECK(law_of(p2, {"", verify_block, block_rule}, 3, 4).accepted == Approx(1.6995));
}

TEST_CASE("the golden drafts of block verification stay or fall as computed by hand") {
  Row p, q;
  for (int i = 0; i < 3; ++i) p.insert(p.end(), {0.5, 0.3, 0.2});
  for (int i = 0; i < 2; ++i) q.insert(q.end(), {0.2, 0.3, 0.5});
  const auto verdict = [&](const Tokens& drafted, double first, double second) {
    return verify_block({p, q, drafted},
                        ScriptedUniforms({{{0, 0, Purpose::acceptance}, first},
                                          {{0, 1, Purpose::acceptance}, second},
                                          {{0, 2, Purpose::bonus}, 0.9},
                                          {{0, 0, Purpose::residual}, 0.9}}),
                        0);
  };
  // h = (0, 1): the second draft makes up for the first.
  CHECK(verdict({2, 0}, 0.999, 0.999) == Verdict{2, 2});
  // h = (0, 0.16), the residual is all on token 0.
  CHECK(verdict({2, 2}, 0.0, 0.159) == Verdict{2, 2});
  CHECK(verdict({2, 2}, 0.0, 0.161) == Verdict{0, 0});
  // h = (1, 0.4)
  CHECK(verdict({0, 2}, 0.999, 0.399).accepted == 2);
  CHECK(verdict({0, 2}, 0.999, 0.401).accepted == 1);
}

TEST_CASE("drafts of draft or target probability 0 are judged without dividing by it") {
  const Row p = {0, 1, 0, 0, 1, 0}, q = {0, 0, 1};
  for (const Verifier& rule : {Verifier(verify_block), lenient_verifier(0.5, LenientResidual::strict)}) {
    CHECK(rule({p, q, Tokens{1}}, RandomStream(0, 0), 0) == Verdict{1, 1});
    CHECK(rule({p, q, Tokens{0}}, RandomStream(0, 0), 0) == Verdict{0, 1});
  }
  CHECK(verify_by_matching({p, q, Tokens{0}}, RandomStream(0, 0), 0) == Verdict{0, 1});
  CHECK(verify_by_rejection_sampling({p, q, Tokens{0}}, RandomStream(0, 0), 0) == Verdict{0, 1});
  // Nothing is drafted.
  for (const Verifier& rule : {Verifier(verify_block), Verifier(verify_by_matching), typical_verifier(0.1, 0.1)})
    CHECK(rule({{p.data(), 3}, {}, {}}, RandomStream(0, 0), 0) == Verdict{0, 1});
}

TEST_CASE("verifiers refuse parameters out of range and rows that do not fit") {
  CHECK_THROWS_WITH(lenient_verifier(0, LenientResidual::strict), Catch::Contains("lenience is 0"));
  CHECK_THROWS_AS(lenient_argmax_verifier(1.5), std::domain_error);
  CHECK_THROWS_AS(typical_verifier(-1, 0.5), std::domain_error);
  const Row p = {1, 0, 1, 0}, short_row = {1};
  for (const Verifier& rule :
       {Verifier(verify_block), Verifier(verify_by_matching), Verifier(verify_by_rejection_sampling),
        lenient_verifier(1, LenientResidual::strict), lenient_argmax_verifier(1), typical_verifier(0.1, 0.1)}) {
    CHECK_THROWS_AS(rule({p, short_row, Tokens{0}}, RandomStream(0, 0), 0), std::invalid_argument);
    CHECK_THROWS_AS(rule({p, {p.data(), 2}, Tokens{2}}, RandomStream(0, 0), 0), std::domain_error);
  }
}
