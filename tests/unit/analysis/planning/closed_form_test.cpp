#include "analysis/planning/closed_form.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

using namespace specdec;
using core::AcceptanceRate;
using planning::ClosedForm;
using planning::ClosedFormQuestion;

namespace {

ClosedFormQuestion question(double alpha, double c) {
  ClosedFormQuestion q{AcceptanceRate(alpha)};
  q.cost.c = c;
  q.c_hat = c;
  q.last_gamma = 10;
  return q;
}

}  // namespace

// Expected values: exact rational arithmetic of Eq. (1), Theorems 3.8 and 3.11, at 50 digits.
TEST_CASE("the closed forms of a rate are those of the paper") {
  const ClosedForm form = planning::closed_form(question(0.8, 0.05));
  CHECK(form.best.gamma == 8);
  CHECK(form.best.speedup == Approx(3.09207954286).epsilon(1e-11));
  CHECK(form.gamma_real.value() == Approx(7.85665445887069).epsilon(1e-13));
  CHECK(form.oracle_speedup.value() == Approx(25.0 / 6).epsilon(1e-13));
  CHECK(form.break_even.value().alpha() == Approx(0.05).epsilon(1e-12));
  const planning::ClosedFormRow& five = form.rows.at(5);
  CHECK(five.gamma == 5);
  CHECK(five.operations_factor == Approx(1.69409749328).epsilon(1e-11));
  CHECK(five.memory_access_factor == Approx(1 / 3.68928).epsilon(1e-13));
}

TEST_CASE("a free draft has no best gamma, and drafts that are always accepted a limit of 1 / c") {
  CHECK_FALSE(planning::closed_form(question(0.8, 0.0)).best.attained());
  const ClosedForm always = planning::closed_form(question(1.0, 0.1));
  CHECK_FALSE(always.best.attained());
  CHECK(always.best.speedup == Approx(10).epsilon(1e-12));
}

TEST_CASE("a generation of a stated length has its own best gamma") {
  ClosedFormQuestion q = question(0.8, 0.05);
  q.tokens = 4;
  const ClosedForm form = planning::closed_form(q);
  REQUIRE(form.finite);
  CHECK(form.finite->complete);
  CHECK(form.finite->gamma < form.best.gamma);
  for (const planning::ClosedFormRow& row : form.rows) CHECK(*row.finite_speedup <= form.finite->speedup);
  q.tokens = 100'000'000;
  CHECK_FALSE(planning::closed_form(q).finite);
}

TEST_CASE("a closed form outside its ranges is refused") {
  ClosedFormQuestion q = question(0.8, 0.05);
  q.tokens = 0;
  CHECK_THROWS_AS(planning::closed_form(q), std::domain_error);
  q = question(0.8, 0.05);
  q.last_gamma = -1;
  CHECK_THROWS_AS(planning::closed_form(q), std::domain_error);
}
