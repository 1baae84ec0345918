#include "analysis/estimate/ratio_of_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

using specdec::estimate::batch_means;
using specdec::estimate::Estimate;
using specdec::estimate::ratio_of_sums;

TEST_CASE("a ratio of sums weights clusters by their size") {
  const std::vector<double> a{3, 1};
  const std::vector<double> b{4, 6};
  const Estimate ratio = ratio_of_sums(a, b);
  CHECK(ratio.value == 0.4);
  // By hand: deviations 1.4 and -1.4, of variance .4^2 52 + 16 (1 - .8) = .6^2 52 + 36 (1 - 1.2) = 11.52 both where the
  // sums' are 16 and 36, se = sqrt(52 / 11.52 * 1.96) / 10, t_{1, .975} = tan(.475 pi).
  const double half_width = std::sqrt(52 / 11.52 * 1.96) / 10 * std::tan(.475 * std::acos(-1.0));
  CHECK(ratio.ci95->hi - ratio.value == Approx(half_width).epsilon(1e-12));
  CHECK(ratio.value - ratio.ci95->lo == Approx(half_width).epsilon(1e-12));
}

TEST_CASE("one cluster gives an estimate without an interval") {
  const std::vector<double> a{3};
  const std::vector<double> b{4};
  CHECK(ratio_of_sums(a, b).value == 0.75);
  CHECK_FALSE(ratio_of_sums(a, b).ci95);
}

TEST_CASE("a ratio of sums refuses what it cannot divide") {
  const std::vector<double> one{1};
  const std::vector<double> two{1, 2};
  const std::vector<double> zero{0};
  const std::vector<double> negative{-1};
  const std::vector<double> nan{std::numeric_limits<double>::quiet_NaN()};
  const std::vector<double> none;
  CHECK_THROWS_AS(ratio_of_sums(one, two), std::invalid_argument);
  CHECK_THROWS_AS(ratio_of_sums(none, none), std::invalid_argument);
  CHECK_THROWS_AS(ratio_of_sums(one, zero), std::domain_error);
  CHECK_THROWS_AS(ratio_of_sums(one, negative), std::domain_error);
  CHECK_THROWS_AS(ratio_of_sums(nan, one), std::domain_error);
}

TEST_CASE("batch means of a short series agree with the values by hand, and every value counts") {
  std::vector<double> x;
  for (int t = 0; t < 41; ++t) x.push_back(t % 2);
  x.back() = 1;
  const Estimate mean = batch_means(x);
  CHECK(mean.value == 21.0 / 41);
  CHECK(mean.method == "means of 2 batches, Student's t");
  // floor(t 2 / 41) puts 21 values first: sums 10 and 11, counts 21 and 20; deviations 10 - 21 r = -31/41 and its
  // opposite, se = sqrt(2 * 2) (31/41) / 41, t_{1, .975} = tan(.475 pi).
  const double half_width = 2 * (31.0 / 41) / 41 * std::tan(.475 * std::acos(-1.0));
  CHECK(mean.ci95->hi - mean.value == Approx(half_width).epsilon(1e-12));
}

TEST_CASE("there are at most ten batches, and no interval where one would have fewer than twenty values") {
  CHECK(batch_means(std::vector<double>(1234, 1.0)).method == "means of 10 batches, Student's t");
  CHECK(batch_means(std::vector<double>(199, 1.0)).method == "means of 9 batches, Student's t");
  CHECK(batch_means(std::vector<double>(40, 1.0)).ci95);
  CHECK_FALSE(batch_means(std::vector<double>(39, 1.0)).ci95);
  CHECK(batch_means(std::vector<double>{1, 0, 0, 1}).value == 0.5);
  CHECK_THROWS_AS(batch_means({}), std::domain_error);
  CHECK_THROWS_AS(batch_means(std::vector<double>{1, std::numeric_limits<double>::infinity()}), std::domain_error);
}

namespace {

// A sequence of a sticky two-state chain (betas .9 and .3, stationary shares 2/3 and 1/3): its length and sum of betas.
struct Sequence {
  double length;
  double sum;
};

Sequence sticky_sequence(std::mt19937_64& generator) {
  std::uniform_real_distribution<> uniform;
  Sequence sequence{std::floor(50 + 300 * uniform(generator)), 0};
  bool good = uniform(generator) < 2.0 / 3.0;
  for (int t = 0; t < sequence.length; ++t) {
    sequence.sum += good ? 0.9 : 0.3;
    good = uniform(generator) < (good ? 0.9 : 0.2);
  }
  return sequence;
}

struct Coverage {
  double clustered;
  double token_by_token;
};

// Shares of `runs` data sets whose interval holds the true .7: over clusters, and as if tokens were independent.
Coverage coverage(int clusters, int runs) {
  std::mt19937_64 generator(5);
  Coverage covered{0, 0};
  for (int run = 0; run < runs; ++run) {
    std::vector<double> sums;
    std::vector<double> lengths;
    double tokens = 0;
    for (int k = 0; k < clusters; ++k) {
      const Sequence sequence = sticky_sequence(generator);
      sums.push_back(sequence.sum);
      lengths.push_back(sequence.length);
      tokens += sequence.length;
    }
    const Estimate ratio = ratio_of_sums(sums, lengths);
    covered.clustered += (ratio.ci95->lo <= 0.7 && 0.7 <= ratio.ci95->hi) / static_cast<double>(runs);
    // Var(beta) = .6^2 * 2/9 = .08 at one position.
    covered.token_by_token +=
        (std::abs(ratio.value - 0.7) <= 1.96 * std::sqrt(.08 / tokens)) / static_cast<double>(runs);
  }
  return covered;
}

}  // namespace

// 4000 runs: the standard error of a coverage of 95% is .0034; the bounds are the docstring's 93% and 98.5%, the seed
// is fixed, and the twin that takes tokens for independent must fall far below.
TEST_CASE("the interval over clusters covers the truth on sticky sequences, where an interval over tokens does not") {
  for (const int clusters : {4, 16}) {
    const Coverage covered = coverage(clusters, 4000);
    CHECK(covered.clustered >= 0.93);
    CHECK(covered.clustered <= 0.985);
    CHECK(covered.token_by_token < 0.75);
  }
}
