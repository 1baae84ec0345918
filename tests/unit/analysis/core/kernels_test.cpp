#include "analysis/core/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "analysis/core/compensated_sum.hpp"
#include "tests/support/catch.hpp"

namespace specdec::core {
namespace {

std::vector<double> softmax(std::vector<double> logits, double temperature) {
  double sum = 0;
  for (double& logit : logits) sum += logit = std::exp(logit / temperature);
  for (double& logit : logits) logit /= sum;
  return logits;
}

const std::vector<double> p1 = {0.5, 0.3, 0.2};
const std::vector<double> q1 = {0.2, 0.3, 0.5};

}  // namespace

TEST_CASE("the acceptance of softmax rows equals values by 30-digit arithmetic at three temperatures") {
  for (const auto& [temperature, expected] :
       {std::pair{1.0, 0.790693640118}, std::pair{0.5, 0.66138905647}, std::pair{2.0, 0.886836775322}}) {
    const auto p = softmax({2, 1, 0, -1}, temperature);
    const auto q = softmax({1.5, 1.4, 0.2, -2}, temperature);
    CHECK(overlap(TargetDistribution(p), DraftDistribution(q)) == Approx(expected).epsilon(1e-11));
  }
}

TEST_CASE("equal rows are rejected with probability exactly 0") {
  const AcceptanceRate rate = acceptance_rate(TargetDistribution(p1), DraftDistribution(p1));
  CHECK(rate.rejection() == 0);
  CHECK(rate.alpha() == 1);
}

TEST_CASE("rows with disjoint supports are accepted with probability exactly 0") {
  const std::vector<double> p = {0.25, 0.75, 0, 0};
  const std::vector<double> q = {0, 0, 0.5, 0.5};
  CHECK(acceptance_rate(TargetDistribution(p), DraftDistribution(q)).alpha() == 0);
}

TEST_CASE("a rejected mass far below the rounding of 1 survives") {
  const double tiny = std::ldexp(1.0, -50);
  const std::vector<double> p = {0.5, 0.5};
  const std::vector<double> q = {0.5 - tiny, 0.5 + tiny};
  CHECK(acceptance_rate(TargetDistribution(p), DraftDistribution(q)).rejection() == tiny);
}

TEST_CASE("rows stored in f16 are taken as they are: the overlap is not renormalised") {
  const std::vector<double> p = {0.5, 0.5};
  const std::vector<double> q = {0.5, 0.501};
  const double tolerance = 2e-3;
  CHECK(overlap(TargetDistribution(p, tolerance), DraftDistribution(q, tolerance)) == 1);
  CHECK(acceptance_rate(TargetDistribution(p, tolerance), DraftDistribution(q, tolerance)).alpha() ==
        Approx(0.999).epsilon(1e-12));
}

TEST_CASE("sums over many tokens have the promised accuracy, whatever the number of terms") {
  for (const std::size_t terms : {1U, 31U, 32U, 33U, 95U, 100001U}) {
    // From 1e-9 to 1, in no order.
    const auto term = [](std::size_t i) { return std::pow(10.0, -static_cast<double>(i * 7919 % 9001) / 1000); };
    long double exact = 0;
    for (std::size_t i = 0; i < terms; ++i) exact += static_cast<long double>(term(i));
    CHECK(static_cast<double>(std::abs(sum_of_terms(terms, term) - exact) / exact) <= 1e-15);
  }
}

}  // namespace specdec::core
