#include "sim/table_models.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/ngram_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_models.hpp"

using namespace specdec::sim;
using specdec::test_support::Likeness;
using specdec::test_support::random_pair;
using Row = std::vector<double>;
using Tokens = std::vector<Token>;

namespace {

template <class Model>
Row row_after(Model model, const Tokens& prefix) {
  model.roll_back(0);
  Row row(static_cast<std::size_t>(model.vocab_size()));
  model.score(prefix, row);
  return row;
}

double overlap(const Row& p, const Row& q) {
  double sum = 0;
  for (std::size_t x = 0; x < p.size(); ++x) sum += std::min(p[x], q[x]);
  return sum;
}

}  // namespace

TEST_CASE("contexts are numbered by length, then in lexical order, without gaps") {
  CHECK(ContextTableModel::context_count(3, 0) == 1);
  CHECK(ContextTableModel::context_count(3, 2) == 3 + 9);
  CHECK(ContextTableModel::context_index(3, Tokens{}) == 0);
  std::int64_t expected = 0;
  for (Token a = 0; a < 3; ++a) CHECK(ContextTableModel::context_index(3, Tokens{a}) == expected++);
  for (Token a = 0; a < 3; ++a)
    for (Token b = 0; b < 3; ++b) CHECK(ContextTableModel::context_index(3, Tokens{a, b}) == expected++);
  CHECK_THROWS_AS(ContextTableModel::context_count(2048, 3), std::domain_error);
}

TEST_CASE("a context table looks at the last tokens, or at all where fewer stand") {
  const ContextTableModel model(2, 2, {1, 0, 0.75, 0.25, 0.5, 0.5, 0.25, 0.75, 0, 1, 0.125, 0.875});
  CHECK(row_after(model, {0}) == Row{1, 0});
  CHECK(row_after(model, {1}) == Row{0.75, 0.25});
  CHECK(row_after(model, {0, 0}) == Row{0.5, 0.5});
  CHECK(row_after(model, {1, 1, 0, 1}) == Row{0.25, 0.75});
  CHECK(row_after(model, {0, 1, 1}) == Row{0.125, 0.875});
}

TEST_CASE("uniform and unigram models give the same row after every prefix") {
  CHECK(row_after(uniform_model(4), {3, 1}) == Row{0.25, 0.25, 0.25, 0.25});
  CHECK(row_after(unigram_model({0.5, 0.25, 0.25}), {2}) == Row{0.5, 0.25, 0.25});
}

// Worked by hand: context 0 has counts 3 of token 1 and 1 of token 2, so P(x|0) = (n - 1/2 + 2/2 * U(x)) / 4.
TEST_CASE("a bigram model discounts its counts and gives the rest to the unigram") {
  const NgramModel model({{0.5, 0.25, 0.25}, {{0, 2, 2, 3}, {1, 2, 0}, {3, 1, 2}}, 0.5});
  CHECK(row_after(model, {0}) == Row{0.125, 0.6875, 0.1875});
  CHECK(row_after(model, {2, 1}) == Row{0.5, 0.25, 0.25});
  CHECK(row_after(model, {2}) == Row{0.75 + 0.125, 0.0625, 0.0625});
}

TEST_CASE("rows do not depend on the blocks in which the prefix was scored, nor on what was rolled back") {
  ContextTableModel model = random_pair(3, 3, Likeness::independent, 1).target;
  const Tokens text = {0, 2, 1, 1, 0, 2};
  Row whole(6 * 3);
  model.score(text, whole);
  CHECK(model.length() == 6);

  model.roll_back(2);
  CHECK(model.length() == 2);
  model.score(Tokens{2, 2, 2}, {});
  model.roll_back(2);
  Row rest(3 * 3);
  model.score(std::span(text).subspan(2), rest);
  CHECK(std::equal(rest.begin(), rest.end(), whole.begin() + 3 * 3));

  Row one(3);
  for (std::size_t t = 0; t < text.size(); ++t) {
    model.roll_back(static_cast<std::int64_t>(t));
    model.score(std::span(text).subspan(t, 1), one);
    CHECK(std::equal(one.begin(), one.end(), whole.begin() + static_cast<std::ptrdiff_t>(3 * t)));
  }
}

TEST_CASE("copies of a model have prefixes of their own") {
  ContextTableModel a = uniform_model(2);
  a.score(Tokens{0, 1}, {});
  ContextTableModel b = a;
  b.roll_back(1);
  CHECK(a.length() == 2);
  CHECK(b.length() == 1);
}

TEST_CASE("models refuse tokens, rows and lengths that do not fit, and stay as they were") {
  ContextTableModel model(2, 0, {0.5, 0.5}, 3);
  Row rows(4);
  CHECK_THROWS_AS(model.score(Tokens{2}, {}), std::domain_error);
  CHECK_THROWS_AS(model.score(Tokens{-1}, {}), std::domain_error);
  CHECK_THROWS_AS(model.score(Tokens{0, 0, 0, 0}, {}), std::domain_error);
  CHECK_THROWS_AS(model.score(Tokens{0}, rows), std::invalid_argument);
  CHECK_THROWS_AS(model.score(Tokens{0, 0}, std::span(rows).first(3)), std::invalid_argument);
  CHECK_THROWS_AS(model.roll_back(1), std::domain_error);
  CHECK_THROWS_AS(model.roll_back(-1), std::domain_error);
  CHECK(model.length() == 0);
}

TEST_CASE("rows that are no distributions are refused") {
  CHECK_THROWS_AS(ContextTableModel(2, 0, {0.5, 0.6}), std::domain_error);
  CHECK_THROWS_AS(ContextTableModel(2, 0, {1.5, -0.5}), std::domain_error);
  CHECK_THROWS_AS(ContextTableModel(2, 1, {0.5, 0.5}), std::invalid_argument);
  CHECK_THROWS_AS(unigram_model({}), std::domain_error);
  CHECK_THROWS_AS(uniform_model(0), std::domain_error);
  CHECK_THROWS_AS(fixed_pair({1}, {0.5, 0.5}), std::invalid_argument);
}

TEST_CASE("a synthetic pair is the closer the smaller its noise, and equal without") {
  std::vector<double> closeness;
  for (const double noise : {0.0, 0.3, 1.0, 3.0}) {
    const TablePair pair = synthetic_bigram_pair(50, noise, 9);
    double sum = 0;
    for (Token c = 0; c < 50; ++c) sum += overlap(row_after(pair.target, {c}), row_after(pair.draft, {c}));
    closeness.push_back(sum / 50);
  }
  CHECK(closeness.front() == Approx(1).epsilon(1e-12));
  CHECK(std::is_sorted(closeness.rbegin(), closeness.rend()));
  CHECK(closeness.back() < 0.6);
  CHECK_THROWS_AS(synthetic_bigram_pair(0, 1, 0), std::domain_error);
  CHECK_THROWS_AS(synthetic_bigram_pair(10, -1, 0), std::domain_error);
}

TEST_CASE("a synthetic pair is a function of its seed") {
  CHECK(row_after(synthetic_bigram_pair(20, 1, 4).draft, {7}) == row_after(synthetic_bigram_pair(20, 1, 4).draft, {7}));
  CHECK(row_after(synthetic_bigram_pair(20, 1, 4).draft, {7}) != row_after(synthetic_bigram_pair(20, 1, 5).draft, {7}));
}
