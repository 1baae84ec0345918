#include "analysis/core/token_acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

namespace specdec::core {

TEST_CASE("acceptance of emitted tokens equals the exponential of the difference at any length") {
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-30, 0);
  for (const std::size_t length : {0U, 1U, 3U, 8U, 17U, 1000U}) {
    std::vector<float> target(length);
    std::vector<float> draft(length);
    for (float& x : target) x = uniform(generator);
    for (float& x : draft) x = uniform(generator);
    std::vector<double> acceptance(length);
    token_acceptance(target, draft, acceptance);
    for (std::size_t t = 0; t < length; ++t) {
      const long double exact = std::exp(std::min(0.0L, static_cast<long double>(draft[t]) - target[t]));
      CHECK(std::abs(acceptance[t] - exact) <= 1e-15L * exact);
    }
  }
}

TEST_CASE("a token that the draft cannot say is never accepted, equal logarithms always") {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> target = {-1, -1, -2, -3.5F, -1, -infinity, nan};
  const std::vector<float> draft = {-infinity, -1, 0, -3.5F, -3.4e38F, -infinity, -1};
  std::vector<double> acceptance(target.size());
  token_acceptance(target, draft, acceptance);
  CHECK(std::vector(acceptance.begin(), acceptance.begin() + 5) == std::vector<double>{0, 1, 1, 1, 0});
  CHECK(std::isnan(acceptance[5]));
  CHECK(std::isnan(acceptance[6]));
}

TEST_CASE("arrays of different lengths have no acceptance") {
  std::vector<double> acceptance(2);
  CHECK_THROWS_AS(token_acceptance(std::vector<float>(2), std::vector<float>(3), acceptance), std::invalid_argument);
  CHECK_THROWS_AS(token_acceptance(std::vector<float>(3), std::vector<float>(3), acceptance), std::invalid_argument);
}

}  // namespace specdec::core
