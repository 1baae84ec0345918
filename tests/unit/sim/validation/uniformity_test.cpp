#include "sim/validation/uniformity.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"

using namespace specdec::validation;
using specdec::sim::Token;

TEST_CASE("the transform by q/p adds the mass of the tokens that the draft overrates less") {
  const std::vector<double> p{.5, .3, .2};
  const std::vector<double> q{.2, .3, .5};
  // Ratios .4, 1, 2.5: the order is 0, 1, 2.
  CHECK(transform_by_ratio(p, q, 0, 0.5) == Approx(.25));
  CHECK(transform_by_ratio(p, q, 1, 0.5) == Approx(.5 + .15));
  CHECK(transform_by_ratio(p, q, 2, 0.0) == Approx(.8));
  CHECK(transform_by_ratio(q, p, 2, 0.0) == 0);
}

TEST_CASE("the transform by p puts the most probable token first and ties in the order of their index") {
  const std::vector<double> p{.25, .5, .25};
  CHECK(transform_by_probability(p, 1, 0.0) == 0);
  CHECK(transform_by_probability(p, 0, 0.0) == Approx(.5));
  CHECK(transform_by_probability(p, 2, 0.0) == Approx(.75));
}

TEST_CASE("the transforms of all tokens tile the unit interval, whatever probabilities are 0") {
  const std::vector<double> p{0, .125, .25, 0, .125, .5};
  const std::vector<double> q{.25, .125, 0, 0, .125, .5};
  for (const bool by_ratio : {true, false}) {
    std::vector<std::pair<double, double>> pieces;
    for (const Token x : {1, 2, 4, 5}) {
      const double begin = by_ratio ? transform_by_ratio(p, q, x, 0.0) : transform_by_probability(p, x, 0.0);
      const double end = by_ratio ? transform_by_ratio(p, q, x, 1.0) : transform_by_probability(p, x, 1.0);
      CHECK(end - begin == p[static_cast<std::size_t>(x)]);
      pieces.emplace_back(begin, end);
    }
    std::sort(pieces.begin(), pieces.end());
    CHECK(pieces.front().first == 0);
    CHECK(pieces.back().second == 1);
    for (std::size_t i = 1; i < pieces.size(); ++i) CHECK(pieces[i].first == pieces[i - 1].second);
  }
}

TEST_CASE("Kolmogorov's distance is the largest gap on either side of the steps") {
  std::vector<double> values{.9, .1, .5};
  // By hand: 1/3 - .1 and .9 - 2/3.
  CHECK(kolmogorov_distance(values) == Approx(7.0 / 30.0));
  std::vector<double> one{0.0};
  CHECK(kolmogorov_distance(one) == 1);
}

namespace {

// P(D >= d) up to twice the probability that both one-sided distances reach d, which is far smaller in the tail:
// twice the exact one-sided law of Birnbaum and Tingey (1951), summed in extended precision.
double exact_tail(double d, int n) {
  long double sum = 0;
  for (int j = 0; j <= static_cast<int>(n * (1 - d)); ++j) {
    const long double share = static_cast<long double>(j) / n;
    if (1 - d - share <= 0) break;
    sum += std::exp(std::lgamma(n + 1.0L) - std::lgamma(j + 1.0L) - std::lgamma(n - j + 1.0L) +
                    (j - 1) * std::log(d + share) + (n - j) * std::log(1 - d - share));
  }
  return static_cast<double>(2 * d * sum);
}

}  // namespace

TEST_CASE("the Kolmogorov p-value is never below the exact one and is sharp in the tail of large n") {
  for (const int n : {10, 30, 100, 1000, 10000}) {
    for (const double p : {1e-2, 1e-3, 1e-6, 1e-8}) {
      const double distance = std::sqrt(std::log(2 / p) / (2 * n));
      if (distance >= 1) continue;
      const double exact = exact_tail(distance, n);
      const double bound = kolmogorov_p_value(distance, n);
      INFO("n = " << n << ", p = " << p << ", exact " << exact);
      CHECK(bound == Approx(p).epsilon(1e-10));
      CHECK(bound >= exact);
      if (distance <= 0.6) CHECK(bound <= exact * std::exp(distance + n * std::pow(distance, 4) / 2));
    }
  }
}

TEST_CASE("the Kolmogorov p-value is a probability and refuses what is no distance") {
  CHECK(kolmogorov_p_value(0.0, 100) == 1);
  CHECK(kolmogorov_p_value(1.0, 1) == Approx(2 * std::exp(-2.0)));
  CHECK_THROWS_AS(kolmogorov_p_value(1.5, 10), std::domain_error);
  CHECK_THROWS_AS(kolmogorov_p_value(std::numeric_limits<double>::quiet_NaN(), 10), std::domain_error);
  CHECK_THROWS_AS(kolmogorov_p_value(0.5, 0), std::domain_error);
}

TEST_CASE("the two-sided normal p-value agrees with many-digit values") {
  // mpmath: erfc(z / sqrt(2)).
  CHECK(two_sided_normal_p_value(0.0) == 1);
  CHECK(two_sided_normal_p_value(1.0) == Approx(0.31731050786291410283).epsilon(1e-14));
  CHECK(two_sided_normal_p_value(-5.0) == Approx(5.7330314375838782e-7).epsilon(1e-14));
}
