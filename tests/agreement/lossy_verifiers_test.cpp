// Lossy rules inside the production decoder, over all ways a run can go: a text has the law that the closed forms say.

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/theory/lenience.hpp"
#include "analysis/theory/typical_acceptance.hpp"
#include "sim/sampling.hpp"
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

// Each of them runs and looks right: what was meant for one side stands on the other, or an inequality the wrong way.
TEST_CASE("a wrong twin of each lossy rule has another law than the closed form says") {
  const double l = 0.5;
  const theory::TypicalRule typical{0.3, 0.9};
  const auto own_row = [](const sim::DraftedBlock& b, std::size_t n) { return Row(b.p(n).begin(), b.p(n).end()); };
  const auto nowhere = [](const sim::DraftedBlock&, std::size_t) -> Row { return {}; };
  /// A typical rule that passes what the test says.
  const auto typical_twin = [&](const std::function<bool(double probability, double by_entropy)>& passes) {
    return CutRule{
        "typical",
        [=](const sim::DraftedBlock& b, const sim::UniformSource& uniforms, std::int64_t round) -> sim::Verdict {
          for (std::size_t i = 0; i < b.gamma(); ++i) {
            double entropy = 0;
            for (const double x : b.p(i)) entropy -= x > 0 ? x * std::log(x) : 0;
            if (passes(b.p(i)[b.token(i)], typical.delta * std::exp(-entropy))) continue;
            const auto slot = static_cast<std::int64_t>(i);
            return {slot, sim::sample(b.p(i), uniforms.uniform(round, slot, sim::Purpose::residual))};
          }
          return accept_all(b, uniforms, round);
        },
        {nowhere, own_row}};
  };
  const CutRule scaled_target{
      "lenient, p multiplied instead of q",
      [&](const sim::DraftedBlock& b, const sim::UniformSource& uniforms, std::int64_t round) -> sim::Verdict {
        if (b.gamma() == 0) return accept_all(b, uniforms, round);
        const std::size_t x = b.token(0);
        if (sim::accepts(l * b.p(0)[x], b.q(0)[x], uniforms.uniform(round, 0, sim::Purpose::acceptance)))
          return accept_all(b, uniforms, round);
        const core::TargetDistribution p(b.p(0));
        const core::DraftDistribution q(b.q(0));
        return {0, sim::sample_residual(p, q, uniforms.uniform(round, 0, sim::Purpose::residual))};
      },
      {[&](const sim::DraftedBlock& b, std::size_t i) -> Row {
         return {l * ratio(b.p(i)[b.token(i)], b.q(i)[b.token(i)])};
       },
       [](const sim::DraftedBlock& b, std::size_t n) { return residual_of(b.p(n), b.q(n)); }}};
  struct Twin {
    CutRule rule;
    std::function<Row(const core::TargetDistribution&, const core::DraftDistribution&)> formula;
  };
  const auto lenient_output = [&](theory::LenientResidual residual) {
    return [=](const core::TargetDistribution& p, const core::DraftDistribution& q) {
      return theory::lenient_output(p, q, l, residual);
    };
  };
  const auto typical_output = [&](const core::TargetDistribution& p, const core::DraftDistribution& q) {
    return theory::typical_output(p, q, typical);
  };
  const std::vector<Twin> twins = {
      {lenient(l, sim::LenientResidual::lenient), lenient_output(theory::LenientResidual::strict)},
      {lenient(l, sim::LenientResidual::strict), lenient_output(theory::LenientResidual::lenient)},
      {scaled_target, lenient_output(theory::LenientResidual::strict)},
      {typical_twin([&](double p, double by_entropy) { return p <= std::min(typical.epsilon, by_entropy); }),
       typical_output},
      {typical_twin([&](double p, double by_entropy) { return p > std::max(typical.epsilon, by_entropy); }),
       typical_output}};
  for (std::size_t twin = 0; twin < twins.size(); ++twin) {
    double worst = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const sim::TablePair pair = random_pair(3, 2, Likeness::independent, seed);
      const Rows rows = rows_of(pair);
      const ExactLaw law = law_of(pair, twins[twin].rule, 1, 2);
      CHECK(law.total == Approx(1).epsilon(1e-12));
      const Row formula = twins[twin].formula(core::TargetDistribution(rows.p), core::DraftDistribution(rows.q));
      worst = std::max(worst, worst_difference(first_token(law, 3), formula));
    }
    CAPTURE(twin);
    CHECK(worst > 1e-2);
  }
  // The paper prints the inequality of argmax lenience the other way round: then no most probable token would stay.
  const Row p = {0.6, 0.3, 0.1};
  const core::TargetDistribution row(p);
  for (const std::size_t x : {0, 1, 2}) CHECK((p[x] <= l * 0.6) == (x > 0));
  CHECK(theory::argmax_lenient_accepts(row, 0, l));
  CHECK_FALSE(theory::argmax_lenient_accepts(row, 2, l));
}
