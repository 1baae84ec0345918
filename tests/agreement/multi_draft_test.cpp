// Several drafts for one position, over all candidates and all ways a rule can go: the token has the target's law, and
// a candidate is accepted as often as the closed forms say.

#include "sim/multi_draft.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "analysis/theory/multi_draft.hpp"
#include "sim/sampling.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exact_uniforms.hpp"
#include "tests/support/multi_draft_law.hpp"
#include "tests/support/random_models.hpp"

using namespace specdec;
using namespace specdec::test_support;
using Row = std::vector<double>;

namespace {

struct CandidateLaw {
  Row tokens;
  double accepted = 0;
};

using CandidateRule = std::function<sim::CandidateVerdict(const sim::DraftedCandidates&, const sim::UniformSource&)>;
/// Where candidate i's acceptance changes, for i = 0..k - 1, and the weights of the token after k rejections.
using CandidateCuts = std::function<void(const sim::DraftedCandidates&, Row& acceptance, Row& rest)>;

Row normalised(Row row) {
  double total = 0;
  for (const double x : row) total += x;
  for (double& x : row) x /= total;
  return row;
}

void recursive_cuts(const sim::DraftedCandidates& c, bool with_replacement, Row& acceptance, Row& rest) {
  rest.assign(c.target_row.begin(), c.target_row.end());
  Row q(c.draft_row.begin(), c.draft_row.end());
  for (const sim::Token drafted : c.drafted) {
    const auto x = static_cast<std::size_t>(drafted);
    acceptance.push_back(ratio(rest[x], q[x]));
    if (acceptance.back() >= 1) return;
    rest = normalised(residual_of(rest, q));
    if (with_replacement) continue;
    q[x] = 0;
    if (*std::max_element(q.begin(), q.end()) == 0) return;
    q = normalised(q);
  }
}

/// Over all sequences of candidates with their probabilities, drawn with or without replacement.
CandidateLaw law_of_rule(const sim::TablePair& pair, std::size_t k, bool with_replacement, const CandidateRule& rule,
                         const CandidateCuts& cuts) {
  const std::span<const double> p = pair.target.row(enumerated_prompt);
  const std::span<const double> q = pair.draft.row(enumerated_prompt);
  CandidateLaw law{Row(p.size()), 0};
  const std::function<void(Tokens, Row, double)> draw = [&](const Tokens& drawn, const Row& left, double probability) {
    const bool exhausted = *std::max_element(left.begin(), left.end()) == 0;
    if (drawn.size() < k && !exhausted) {
      const Row next = normalised(left);
      for (std::size_t x = 0; x < next.size(); ++x) {
        if (next[x] == 0) continue;
        Tokens longer = drawn;
        longer.push_back(static_cast<sim::Token>(x));
        Row rest = left;
        if (!with_replacement) rest[x] = 0;
        draw(longer, rest, probability * next[x]);
      }
      return;
    }
    const sim::DraftedCandidates candidates{p, q, drawn};
    ExactUniforms uniforms;
    sim::CandidateVerdict verdict;
    const auto run = [&] {
      Row acceptance;
      Row rest;
      cuts(candidates, acceptance, rest);
      for (std::size_t i = 0; i < acceptance.size(); ++i)
        uniforms.cut(static_cast<std::int64_t>(i), sim::Purpose::acceptance, {acceptance[i]});
      uniforms.cut(0, sim::Purpose::residual, cumulative(rest));
      verdict = rule(candidates, uniforms);
    };
    uniforms.for_all(run, [&](double of_run) {
      law.tokens[static_cast<std::size_t>(verdict.token)] += probability * of_run;
      law.accepted += verdict.accepted ? probability * of_run : 0;
    });
  };
  draw({}, Row(q.begin(), q.end()), 1);
  return law;
}

double distance(const Row& a, std::span<const double> b) {
  double worst = 0;
  for (std::size_t x = 0; x < a.size(); ++x) worst = std::max(worst, std::abs(a[x] - b[x]));
  return worst;
}

const CandidateRule with = [](const sim::DraftedCandidates& c, const sim::UniformSource& u) {
  return sim::verify_recursively(c, u, 0);
};
const CandidateRule without = [](const sim::DraftedCandidates& c, const sim::UniformSource& u) {
  return sim::verify_recursively_without_replacement(c, u, 0);
};
const CandidateRule in_sequence = [](const sim::DraftedCandidates& c, const sim::UniformSource& u) {
  return sim::verify_k_sequentially(c, u, 0);
};
const CandidateCuts with_cuts = [](const sim::DraftedCandidates& c, Row& acceptance, Row& rest) {
  recursive_cuts(c, true, acceptance, rest);
};
const CandidateCuts without_cuts = [](const sim::DraftedCandidates& c, Row& acceptance, Row& rest) {
  recursive_cuts(c, false, acceptance, rest);
};

CandidateCuts sequence_cuts(double rho) {
  return [rho](const sim::DraftedCandidates& c, Row& acceptance, Row& rest) {
    double b = 0;
    for (std::size_t x = 0; x < c.target_row.size(); ++x) b += std::min(c.target_row[x] / rho, c.draft_row[x]);
    const double taken = b > 0 ? (1 - std::pow(1 - b, static_cast<double>(c.drafted.size()))) / b : 0;
    for (const sim::Token x : c.drafted)
      acceptance.push_back(
          ratio(c.target_row[static_cast<std::size_t>(x)], rho * c.draft_row[static_cast<std::size_t>(x)]));
    double total = 0;
    for (std::size_t x = 0; x < c.target_row.size(); ++x) {
      rest.push_back(std::max(0.0, c.target_row[x] - std::min(c.target_row[x] / rho, c.draft_row[x]) * taken));
      total += rest.back();
    }
    if (total < 1e-14) rest.assign(c.target_row.begin(), c.target_row.end());
  };
}

}  // namespace

TEST_CASE("each rule for several drafts keeps the law, accepts as its closed form says, and no more than transport") {
  for (const Likeness likeness : {Likeness::independent, Likeness::equal, Likeness::disjoint}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      for (const std::int64_t vocab : {3, 4}) {
        const sim::TablePair pair = random_pair(vocab, 2, likeness, seed);
        const core::TargetDistribution p(pair.target.row(enumerated_prompt));
        const core::DraftDistribution q(pair.draft.row(enumerated_prompt));
        for (const std::int64_t k : {1, 2, 3}) {
          CAPTURE(likeness, seed, vocab, k);
          const auto count = static_cast<std::size_t>(k);
          const double rho = theory::k_seq_least_rho(p, q, k);
          CHECK(sim::k_sequential_divisor(p.probabilities(), q.probabilities(), k) == Approx(rho).epsilon(1e-12));
          const CandidateLaw a = law_of_rule(pair, count, true, with, with_cuts);
          const CandidateLaw b = law_of_rule(pair, count, false, without, without_cuts);
          const CandidateLaw c = law_of_rule(pair, count, true, in_sequence, sequence_cuts(rho));
          for (const CandidateLaw& law : {a, b, c}) CHECK(distance(law.tokens, p.probabilities()) <= 1e-12);
          const auto recursive = [&](theory::Replacement how) {
            return theory::recursive_rejection(p, q, k, how).acceptance().alpha();
          };
          CHECK(a.accepted == Approx(recursive(theory::Replacement::with)).margin(1e-12));
          CHECK(b.accepted == Approx(recursive(theory::Replacement::without)).margin(1e-12));
          CHECK(c.accepted == Approx(theory::k_seq_acceptance(p, q, k, rho).alpha()).margin(1e-12));
          const double bound = theory::transport_acceptance(p, q, k, theory::Replacement::with).alpha();
          CHECK(a.accepted <= bound + 1e-12);
          CHECK(c.accepted <= bound + 1e-12);
          CHECK(b.accepted <= theory::transport_acceptance(p, q, k, theory::Replacement::without).alpha() + 1e-12);
        }
      }
    }
  }
}

TEST_CASE("wrong twins of the rules for several drafts do not keep the law") {
  const sim::TablePair pair = sim::fixed_pair({0.4, 0.35, 0.15, 0.1}, {0.15, 0.2, 0.3, 0.35});
  const std::span<const double> p = pair.target.row(enumerated_prompt);
  // Candidates drawn without replacement, judged as if they were independent.
  CHECK(distance(law_of_rule(pair, 2, false, with, with_cuts).tokens, p) > 1e-3);
  CHECK(distance(law_of_rule(pair, 2, true, without, without_cuts).tokens, p) > 1e-3);
  // k-SEQ with a divisor below the least one: some corrected probability is negative, and cut off at 0.
  const CandidateRule divisor_of_one = [](const sim::DraftedCandidates& c, const sim::UniformSource& u) {
    Row acceptance;
    Row rest;
    sequence_cuts(1)(c, acceptance, rest);
    for (std::size_t i = 0; i < acceptance.size(); ++i)
      if (u.uniform(0, static_cast<std::int64_t>(i), sim::Purpose::acceptance) < acceptance[i])
        return sim::CandidateVerdict{i, c.drafted[i]};
    return sim::CandidateVerdict{std::nullopt, sim::sample(rest, u.uniform(0, 0, sim::Purpose::residual))};
  };
  CHECK(distance(law_of_rule(pair, 2, true, divisor_of_one, sequence_cuts(1)).tokens, p) > 1e-3);
}

TEST_CASE("tokens drawn without replacement follow the renormalised row, and end with its support") {
  const Row q = {0.2, 0, 0.3, 0.5};
  ExactUniforms uniforms;
  std::map<Tokens, double> found;
  Tokens drawn;
  const auto run = [&] {
    uniforms.cut(0, sim::Purpose::draft, {0.2, 0.5});
    // Whatever is left: {2, 3}, {0, 3} or {0, 2}.
    uniforms.cut(1, sim::Purpose::draft, {0.3 / 0.8, 0.2 / 0.7, 0.2 / 0.5});
    drawn = sim::sample_without_replacement(q, 2, uniforms, 0);
  };
  uniforms.for_all(run, [&](double probability) { found[drawn] += probability; });
  CHECK(found.size() == 6);
  for (const auto& [tokens, probability] : found) {
    const double first = q[static_cast<std::size_t>(tokens[0])];
    CHECK(probability == Approx(first * q[static_cast<std::size_t>(tokens[1])] / (1 - first)).epsilon(1e-12));
  }
  const sim::RandomStream stream(3, 3);
  Tokens all = sim::sample_without_replacement(q, 9, stream, 0);
  std::sort(all.begin(), all.end());
  CHECK(all == Tokens{0, 2, 3});
  CHECK(sim::sample_without_replacement(q, 0, stream, 0).empty());
}

TEST_CASE("rules for several drafts take none, equal ones and impossible ones, and refuse what does not fit") {
  const Row p = {0, 1};
  const Row q = {1, 0};
  const sim::RandomStream stream(0, 0);
  for (const CandidateRule& rule : {with, without, in_sequence}) {
    CHECK(rule({p, q, {}}, stream) == sim::CandidateVerdict{std::nullopt, 1});
    CHECK(rule({p, q, Tokens{0, 0, 0}}, stream) == sim::CandidateVerdict{std::nullopt, 1});
    CHECK(rule({p, q, Tokens{1}}, stream) == sim::CandidateVerdict{0, 1});
    CHECK_THROWS_AS(rule({p, Row{1}, Tokens{0}}, stream), std::invalid_argument);
    CHECK_THROWS_AS(rule({p, q, Tokens{2}}, stream), std::domain_error);
  }
  CHECK_THROWS_AS(sim::k_sequential_divisor(p, q, 0), std::domain_error);
  // Flat on one side of the root. At 64 it is that of p / rho = q, which what 64 rejections leave does not move.
  struct HardRows {
    std::int64_t k;
    double p, q;
  };
  for (const auto& [k, first_p, first_q] : {HardRows{8, 0.355, 0.365}, {16, 0.57, 0.635}, {64, 0.05, 0.2}}) {
    const Row hard_p = {first_p, 1 - first_p};
    const Row hard_q = {first_q, 1 - first_q};
    const double rho = sim::k_sequential_divisor(hard_p, hard_q, k);
    const double exact = theory::k_seq_least_rho(core::TargetDistribution(hard_p), core::DraftDistribution(hard_q), k);
    CHECK(rho == Approx(exact).epsilon(1e-13));
    if (k == 64) CHECK(rho == Approx(0.95 / 0.8).epsilon(1e-14));
  }
  CHECK_THROWS_AS(sim::sample_without_replacement(q, -1, stream, 0), std::domain_error);
}
