#include "analysis/estimate/length_dependence.hpp"

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "tests/support/catch.hpp"

namespace specdec::estimate {
namespace {

using Law = std::function<RatioTerm(std::mt19937_64&)>;

/// Share of 2000 recordings of so many texts in which the test is significant.
double found(const Law& law, int texts) {
  std::mt19937_64 generator(23);
  constexpr int runs = 2000;
  int significant = 0;
  for (int run = 0; run < runs; ++run) {
    std::vector<RatioTerm> clusters;
    for (int k = 0; k < texts; ++k) clusters.push_back(law(generator));
    significant += length_dependence(clusters)->significant() ? 1 : 0;
  }
  return significant / static_cast<double>(runs);
}

double length(std::mt19937_64& generator) {
  std::normal_distribution<> normal;
  return std::round(8 + std::exp(4.6 + normal(generator)));
}

}  // namespace

TEST_CASE("the slope over doublings of the length has least squares' value and HC3's error") {
  const std::vector<double> lengths = {10, 20, 40, 80, 160, 20, 30, 50, 70};
  const std::vector<double> rates = {0.9, 0.8, 0.7, 0.75, 0.6, 0.85, 0.7, 0.8, 0.65};
  std::vector<RatioTerm> clusters;
  for (std::size_t k = 0; k < lengths.size(); ++k) clusters.push_back({rates[k] * lengths[k], lengths[k]});
  const LengthDependence dependence = *length_dependence(clusters);
  // By numpy and scipy, from the docstring's formulas.
  CHECK(dependence.per_doubling.value == Approx(-0.0666088594162398).epsilon(1e-12));
  CHECK(dependence.per_doubling.ci95->hi ==
        Approx(-0.0666088594162398 + 2.364624251010299 * 0.012243116927445091).epsilon(1e-9));
  CHECK(dependence.p_value == Approx(0.0009657153796792076).epsilon(1e-9));
  CHECK(dependence.significant());
}

TEST_CASE("few texts, texts of one length and a single one of another length are not tested") {
  std::vector<RatioTerm> clusters(7, {5, 10});
  clusters[0] = {3, 4};
  CHECK_FALSE(length_dependence(clusters));
  clusters.assign(20, {5, 10});
  clusters[3].numerator = 7;
  CHECK_FALSE(length_dependence(clusters));
  clusters[0] = {3, 4};
  CHECK_FALSE(length_dependence(clusters));
  clusters[1] = {9, 14};
  CHECK(length_dependence(clusters));
  clusters.assign(20, {5, 10});
  for (std::size_t k = 0; k < 10; ++k) clusters[k] = {10, 20};
  CHECK(length_dependence(clusters)->p_value == 1);
}

// Without dependence between 0.24% and 2.96%, tighter than the docstring's range with two standard errors (.28%) at
// either end; short texts scatter more than long ones, and one law is skew.
TEST_CASE("the test of dependence on length keeps its level where rates do not depend on it, and finds where they do",
          "[long]") {
  const Law scattering = [](std::mt19937_64& generator) {
    std::normal_distribution<> normal;
    const double n = length(generator);
    return RatioTerm{n * (0.7 + 0.1 * normal(generator) + 0.5 / std::sqrt(n) * normal(generator)), n};
  };
  const Law skew = [](std::mt19937_64& generator) {
    std::uniform_real_distribution<> uniform;
    const double n = length(generator);
    return RatioTerm{n * (uniform(generator) < 0.7 ? 0.9 : 0.25), n};
  };
  for (const int texts : {12, 60, 240}) {
    CAPTURE(texts);
    for (const Law& law : {scattering, skew}) {
      CHECK(found(law, texts) > 0.0024);
      CHECK(found(law, texts) < 0.0296);
    }
  }
  const Law falling = [](std::mt19937_64& generator) {
    std::normal_distribution<> normal;
    const double n = length(generator);
    return RatioTerm{n * (0.9 - 0.04 * std::log2(n) + 0.1 * normal(generator)), n};
  };
  CHECK(found(falling, 60) > 0.8);
}

}  // namespace specdec::estimate
