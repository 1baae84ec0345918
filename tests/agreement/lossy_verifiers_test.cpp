// Lossy rules inside the production decoder, over all ways a run can go: a text has the law that the closed forms say.

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/theory/lenience.hpp"
#include "analysis/theory/typical_acceptance.hpp"
#include "sim/verifiers/lossy.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exact_uniforms.hpp"
#include "tests/support/random_models.hpp"

using namespace specdec;
using namespace specdec::test_support;
using Row = std::vector<double>;

namespace {

RuleFormulas lenient_formulas(double lenience, bool strict) {
  return {[lenience](const sim::DraftedBlock& b, std::size_t i) -> Row {
            return {ratio(b.p(i)[b.token(i)], lenience * b.q(i)[b.token(i)])};
          },
          [lenience, strict](const sim::DraftedBlock& b, std::size_t n) {
            return residual_of(b.p(n), b.q(n), 1, strict ? 1 : lenience);
          }};
}

CutRule lenient(double lenience, sim::LenientResidual residual) {
  return {"lenient", sim::lenient_verifier(lenience, residual),
          lenient_formulas(lenience, residual == sim::LenientResidual::strict)};
}

/// The law of the first token, which is a drafted one wherever two are wanted.
Row first_token(const ExactLaw& law, std::size_t vocab) {
  Row row(vocab);
  for (const auto& [text, probability] : law.texts) row[static_cast<std::size_t>(text.front())] += probability;
  return row;
}

double worst_difference(const Row& a, const Row& b) {
  double worst = 0;
  for (std::size_t x = 0; x < a.size(); ++x) worst = std::max(worst, std::abs(a[x] - b[x]));
  return worst;
}

/// The rows after the enumerated prompt.
struct Rows {
  std::span<const double> p;
  std::span<const double> q;
};

Rows rows_of(const sim::TablePair& pair) {
  return {pair.target.row(enumerated_prompt), pair.draft.row(enumerated_prompt)};
}

}  // namespace

TEST_CASE("lenient verification has the law that its closed form says, with either residual") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const sim::TablePair pair = random_pair(3, 2, Likeness::independent, seed);
    const Rows rows = rows_of(pair);
    const core::TargetDistribution p(rows.p);
    const core::DraftDistribution q(rows.q);
    for (const double lenience : {0.25, 0.5, 0.75, 1.0}) {
      for (const bool strict : {true, false}) {
        CAPTURE(seed, lenience, strict);
        const auto residual = strict ? sim::LenientResidual::strict : sim::LenientResidual::lenient;
        const auto formula = strict ? theory::LenientResidual::strict : theory::LenientResidual::lenient;
        const ExactLaw law = law_of(pair, lenient(lenience, residual), 1, 2);
        const Row found = first_token(law, 3);
        CHECK(worst_difference(found, theory::lenient_output(p, q, lenience, formula)) <= 1e-12);
        CHECK(law.accepted == Approx(theory::lenient_acceptance(p, q, lenience).alpha()).margin(1e-12));
        for (std::size_t x = 0; x < 3; ++x) CHECK(found[x] <= rows.p[x] / lenience + 1e-12);
      }
    }
  }
}

TEST_CASE("the two lenient residuals have the laws that were computed by hand, which tell them apart") {
  const sim::TablePair pair = sim::fixed_pair({0.5, 0.3, 0.2}, {0.2, 0.3, 0.5});
  const Row a = first_token(law_of(pair, lenient(0.75, sim::LenientResidual::strict), 1, 2), 3);
  const Row b = first_token(law_of(pair, lenient(0.75, sim::LenientResidual::lenient), 1, 2), 3);
  CHECK(worst_difference(a, {13.0 / 30, 0.3, 4.0 / 15}) <= 1e-12);
  CHECK(worst_difference(b, {20.0 / 51, 29.0 / 85, 4.0 / 15}) <= 1e-12);
}

TEST_CASE("the token after a lenient round of full accepts is the target's own, so that a text is no product") {
  const sim::TablePair pair = sim::fixed_pair({0.7, 0.3}, {0.2, 0.8});
  const ExactLaw law = law_of(pair, lenient(0.5, sim::LenientResidual::strict), 1, 3);
  double first_two[2][2] = {{0, 0}, {0, 0}};
  for (const auto& [text, probability] : law.texts) first_two[text[0]][text[1]] += probability;
  CHECK(first_two[0][0] / (first_two[0][0] + first_two[0][1]) == Approx(11.0 / 20).epsilon(1e-12));
  CHECK(first_two[1][0] / (first_two[1][0] + first_two[1][1]) == Approx(7.0 / 10).epsilon(1e-12));
}

TEST_CASE("typical acceptance has the law that its closed form says") {
  std::int64_t moved = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const sim::TablePair pair = random_pair(3, 2, Likeness::independent, seed);
    const Rows rows = rows_of(pair);
    for (const double epsilon : {0.09, 0.3}) {
      for (const double delta : {0.3, 0.9}) {
        const CutRule rule{
            "typical",
            sim::typical_verifier(epsilon, delta),
            {[](const sim::DraftedBlock&, std::size_t) -> Row { return {}; },
             [](const sim::DraftedBlock& b, std::size_t n) { return Row(b.p(n).begin(), b.p(n).end()); }}};
        const theory::TypicalRule formula{epsilon, delta};
        const core::TargetDistribution p(rows.p);
        const core::DraftDistribution q(rows.q);
        const ExactLaw law = law_of(pair, rule, 1, 2);
        CHECK(worst_difference(first_token(law, 3), theory::typical_output(p, q, formula)) <= 1e-12);
        CHECK(law.accepted == Approx(theory::typical_acceptance(p, q, formula).alpha()).margin(1e-12));
        moved += theory::typical_distance(p, q, formula) > 0.01;
      }
    }
  }
  CHECK(moved > 50);
}

TEST_CASE("lenient argmax keeps a draft iff its closed form does, and else says what greedy decoding says") {
  const sim::RandomStream stream(0, 0);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const sim::TablePair pair = random_pair(4, 1, Likeness::independent, seed);
    const Rows rows = rows_of(pair);
    Row p(rows.p.begin(), rows.p.end());
    p.insert(p.end(), rows.p.begin(), rows.p.end());
    const auto greedy = static_cast<sim::Token>(std::max_element(rows.p.begin(), rows.p.end()) - rows.p.begin());
    for (const double lenience : {0.1, 0.4, 1.0}) {
      for (const sim::Token x : {0, 1, 2, 3}) {
        const sim::Verdict verdict = sim::lenient_argmax_verifier(lenience)({p, rows.q, Tokens{x}}, stream, 0);
        const core::TargetDistribution row(rows.p);
        CHECK((verdict.accepted == 1) == theory::argmax_lenient_accepts(row, static_cast<std::size_t>(x), lenience));
        CHECK(verdict.extra == greedy);
      }
    }
  }
}
