#include "analysis/estimate/typed_acceptance.hpp"

#include <cmath>
#include <stdexcept>
#include <vector>

#include "analysis/theory/acceptance_inversion.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using estimate::TypedAcceptance;
using estimate::TypedLength;

namespace {

std::vector<TypedLength> by_gamma(const std::vector<double>& tokens, double half_unit = 0.005) {
  std::vector<TypedLength> lengths;
  for (const double length : tokens) {
    lengths.push_back({static_cast<std::int64_t>(lengths.size()) + 1, length, half_unit});
  }
  return lengths;
}

TypedAcceptance one(std::int64_t gamma, double tokens, double half_unit = 0.005) {
  return estimate::typed_lengths(std::vector<TypedLength>{{gamma, tokens, half_unit}});
}

/// The length that is taken for the one typed at a gamma.
double taken(const TypedAcceptance& typed, std::int64_t gamma) { return typed.evidence.measured.at(gamma).value; }

double half_width(const TypedAcceptance& typed, std::int64_t gamma) {
  const estimate::TokensPerStep& tokens = typed.evidence.measured.at(gamma);
  return (tokens.ci95.hi - tokens.ci95.lo) / 2;
}

}  // namespace

TEST_CASE("a typed length is met at its gamma, within its rounding") {
  const TypedAcceptance typed = one(3, 2.92);
  CHECK(typed.measured_at == 3);
  CHECK(typed.monotone);
  CHECK_FALSE(typed.is_sampled);
  CHECK(typed.rate.alpha() == Approx(theory::alpha_from_acceptance_length(2.92, 3).alpha()).epsilon(1e-12));
  CHECK(taken(typed, 3) == Approx(2.92).epsilon(1e-12));
  // An even error of half a unit has the deviation half / sqrt(3).
  CHECK(half_width(typed, 3) == Approx(1.959964 * 0.005 / std::sqrt(3.0)).epsilon(1e-4));
  CHECK(half_width(one(3, 2.92, 0), 3) == Approx(0).margin(1e-12));
}

TEST_CASE("rounds add the sampling error of a typed length, which halves as they grow fourfold") {
  const auto width = [](double rounds) {
    return half_width(estimate::typed_lengths(std::vector<TypedLength>{{3, 2.5, 0}}, rounds), 3);
  };
  CHECK(width(1e4) > 0);
  CHECK(width(1e4) == Approx(2 * width(4e4)).epsilon(0.02));
  CHECK(estimate::typed_lengths(std::vector<TypedLength>{{3, 2.5, 0}}, 100).is_sampled);
}

TEST_CASE("lengths that differ from a survival function by their rounding alone are a survival function") {
  CHECK(estimate::typed_lengths(by_gamma({1.84, 2.50, 2.95, 3.28, 3.55, 3.78, 3.91, 4.06})).monotone);
  CHECK_FALSE(estimate::typed_lengths(by_gamma({1.84, 2.51, 3.01, 3.36, 3.61, 3.77, 3.73, 3.47})).monotone);
}

TEST_CASE("lengths stand as they are typed, and those of no survival function are told by all chords and falls") {
  const TypedAcceptance typed =
      estimate::typed_lengths(std::vector<TypedLength>{{3, 2.9, 0.05}, {5, 2.95, 0.005}, {7, 4.1, 0.05}});
  CHECK_FALSE(typed.monotone);
  CHECK(taken(typed, 5) == 2.95);
  CHECK(typed.rate == theory::alpha_from_acceptance_length(4.1, 7));
  // The middle one may lie as low as the chord's (2.85 + 4.05) / 2.
  CHECK(estimate::typed_lengths(std::vector<TypedLength>{{3, 2.9, 0.05}, {5, 3.4451, 0.005}, {7, 4.1, 0.05}}).monotone);
  CHECK_FALSE(
      estimate::typed_lengths(std::vector<TypedLength>{{3, 2.9, 0.05}, {5, 3.4449, 0.005}, {7, 4.1, 0.05}}).monotone);
  CHECK(estimate::typed_lengths(by_gamma({1.8, 2.4, 2.3}, 0.05)).monotone);
  CHECK_FALSE(estimate::typed_lengths(by_gamma({1.8, 2.4, 2.3}, 0.049)).monotone);
  // No draft is accepted more often than always: the chord begins at 1.
  CHECK_FALSE(estimate::typed_lengths(by_gamma({1.5, 2.25}, 0.005)).monotone);
  CHECK(estimate::typed_lengths(by_gamma({1.7, 2.4, 3.1}, 0)).monotone);
  CHECK(estimate::typed_lengths(by_gamma({1.9, 2.8, 3.7}, 0)).monotone);
}

TEST_CASE("whatever survival function the lengths are of, rounding them to two digits leaves them one") {
  std::uint64_t state = 7;
  const auto uniform = [&] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state >> 11) / 9007199254740992.0;
  };
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<TypedLength> lengths;
    double survival = 1, length = 1;
    const int step = trial % 3 + 1;
    for (std::int64_t gamma = 1; gamma <= 12; ++gamma) {
      survival *= 1 - 0.4 * uniform();
      length += survival;
      if (gamma % step == 0) lengths.push_back({gamma, std::round(100 * length) / 100, 0.005 + 1e-9});
    }
    CHECK(estimate::typed_lengths(lengths).monotone);
  }
}

TEST_CASE("rates by position are counts of a population, and their rounding is no growth") {
  const std::vector<estimate::TypedRate> rates = {{0.71, 0.005}, {0.49, 0.005}, {0.32, 0.005}, {0.21, 0.005}};
  const TypedAcceptance typed = estimate::typed_positions(rates, false, 5000);
  CHECK(typed.monotone);
  CHECK(typed.measured_at == 4);
  CHECK(taken(typed, 4) == Approx(1 + 0.71 + 0.49 + 0.32 + 0.21));
  CHECK(typed.rate.alpha() == Approx(1.73 / (1 + 0.71 + 0.49 + 0.32)));
  CHECK(typed.is_sampled);
  REQUIRE(typed.evidence.counts.size() == 1);
  CHECK(typed.evidence.counts[0].survival == std::vector<double>{0.71, 0.49, 0.32, 0.21});
  const std::vector<estimate::TypedRate> conditional = {{0.71, 0.005}, {0.69, 0.005}, {0.65, 0.005}, {0.66, 0.005}};
  CHECK(estimate::typed_positions(conditional, true).evidence.counts[0].survival[1] == Approx(0.71 * 0.69));
  CHECK(estimate::typed_positions(std::vector<estimate::TypedRate>{{0.5, 0.05}, {0.55, 0.05}}, false).monotone);
  CHECK_FALSE(estimate::typed_positions(std::vector<estimate::TypedRate>{{0.5, 0.005}, {0.55, 0.005}}, false).monotone);
}

TEST_CASE("conditional rates are rounded together, and their tokens by more than by the sum of it") {
  const auto width = [](const std::vector<double>& rates, bool conditional) {
    std::vector<estimate::TypedRate> typed;
    for (const double rate : rates) typed.push_back({rate, 0.005});
    return half_width(estimate::typed_positions(typed, conditional), 3);
  };
  const double deviations = 1.959964 / std::sqrt(3.0);
  CHECK(width({0.9, 0.9, 0.9}, true) == Approx(deviations * 0.0263).epsilon(0.01));
  CHECK(width({0.9, 0.8, 0.7}, false) == Approx(deviations * 0.015).epsilon(0.01));
}

TEST_CASE("typed figures outside their ranges are refused") {
  CHECK_THROWS_AS(estimate::typed_lengths({}), std::invalid_argument);
  CHECK_THROWS_WITH(estimate::typed_lengths(std::vector<TypedLength>{{2, 2, 0}, {2, 2.5, 0}}),
                    "typed_lengths: gamma 2 follows 2, but gammas must increase");
  CHECK_THROWS_AS(estimate::typed_positions({}, false), std::invalid_argument);
  CHECK_THROWS_AS(one(3, 4.5), std::domain_error);
  CHECK_THROWS_AS(one(3, 2.5, -1), std::domain_error);
  CHECK_THROWS_AS(estimate::typed_lengths(by_gamma({1.5}), 0.5), std::domain_error);
  CHECK_THROWS_AS(estimate::typed_positions(std::vector<estimate::TypedRate>{{1.5, 0}}, false), std::domain_error);
}
