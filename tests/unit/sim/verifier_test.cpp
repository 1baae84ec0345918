#include "sim/verifier.hpp"

#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/scripted_uniforms.hpp"

using namespace specdec::sim;
using specdec::test_support::ScriptedUniforms;
using Row = std::vector<double>;
using Tokens = std::vector<Token>;

namespace {

const Row p1 = {0.5, 0.3, 0.2};
const Row q1 = {0.2, 0.3, 0.5};

Row repeated(const Row& row, int times) {
  Row rows;
  for (int i = 0; i < times; ++i) rows.insert(rows.end(), row.begin(), row.end());
  return rows;
}

constexpr double largest_uniform = 1 - 0x1p-53;

}  // namespace

// By hand: ratios 2.5, 0.4, 0.4, so the third draft falls to r = 0.41.
TEST_CASE("the golden trace accepts two drafts and corrects the third") {
  const Row p = repeated(p1, 4);
  const Row q = repeated(q1, 3);
  const Tokens drafted = {0, 2, 2};
  const ScriptedUniforms uniforms(
      {{{7, 0, Purpose::acceptance}, 0.99}, {{7, 1, Purpose::acceptance}, 0.39}, {{7, 2, Purpose::acceptance}, 0.41}});
  CHECK(verify_tokens({p, q, drafted}, uniforms, 7) == Verdict{2, 0});
}

TEST_CASE("when every draft is accepted the extra token comes from the last target row") {
  Row p = repeated(p1, 2);
  p.insert(p.end(), {0, 0, 1});
  const Row q = repeated(p1, 2);
  const Tokens drafted = {1, 2};
  CHECK(verify_tokens({p, q, drafted}, RandomStream(1, 1), 0) == Verdict{2, 2});
}

TEST_CASE("without drafts the extra token is the target's") {
  const ScriptedUniforms uniforms({{{3, 0, Purpose::bonus}, 0.6}});
  CHECK(verify_tokens({p1, {}, {}}, uniforms, 3) == Verdict{0, 1});
}

TEST_CASE("equal rows accept every draft whatever the uniforms") {
  const Row p = repeated(p1, 2);
  for (const Token token : {0, 1, 2}) {
    const Tokens drafted = {token};
    for (const double u : {0.0, 0.5, largest_uniform}) {
      const ScriptedUniforms uniforms({{{0, 0, Purpose::acceptance}, u}});
      CHECK(verify_tokens({p, p1, drafted}, uniforms, 0).accepted == 1);
    }
  }
}

TEST_CASE("disjoint rows reject every draft and correct it from the target") {
  const Row p = repeated({0, 1}, 2);
  const Row q = {1, 0};
  const Tokens drafted = {0};
  for (const double u : {0.0, 0.5, largest_uniform}) {
    const ScriptedUniforms uniforms({{{0, 0, Purpose::acceptance}, u}, {{0, 0, Purpose::residual}, u}});
    CHECK(verify_tokens({p, q, drafted}, uniforms, 0) == Verdict{0, 1});
  }
}

TEST_CASE("a draft of draft probability 0 is judged by the target alone") {
  // Quantised or mismatched drafts reach this; p/q is infinite or undefined there.
  const Row p = {0, 1, 0, 1};
  const Row q = {1, 0};
  CHECK(verify_tokens({p, q, Tokens{1}}, RandomStream(0, 0), 0) == Verdict{1, 1});
  const Row neither = {0, 0, 1, 0, 0, 1};
  CHECK(verify_tokens({neither, Row{0, 1, 0}, Tokens{0}}, RandomStream(0, 0), 0) == Verdict{0, 2});
}

TEST_CASE("rows that do not fit the drafts are refused") {
  const Tokens drafted = {0};
  CHECK_THROWS_AS(verify_tokens({repeated(p1, 2), repeated(q1, 2), drafted}, RandomStream(0, 0), 0),
                  std::invalid_argument);
  CHECK_THROWS_AS(verify_tokens({Row{1, 0, 1}, Row{1}, drafted}, RandomStream(0, 0), 0), std::invalid_argument);
  CHECK_THROWS_AS(verify_tokens({repeated(p1, 2), q1, Tokens{3}}, RandomStream(0, 0), 0), std::domain_error);
}
