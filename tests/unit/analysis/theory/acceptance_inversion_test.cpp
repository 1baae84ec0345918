#include "analysis/theory/acceptance_inversion.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "analysis/theory/tokens.hpp"
#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

using core::AcceptanceRate;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("an acceptance length is inverted to the many-digit root") {
  CHECK(alpha_from_acceptance_length(2.5, 3).alpha() == Approx(0.691413979781737).epsilon(1e-14));
  CHECK(alpha_from_acceptance_length(3.6, 5).alpha() == Approx(0.789480563891604).epsilon(1e-14));
  CHECK(alpha_from_acceptance_length(3.68928, 5).alpha() == Approx(0.8).epsilon(1e-14));
}

TEST_CASE("gamma 1 and 2 are inverted as by hand") {
  CHECK(alpha_from_acceptance_length(1.25, 1).alpha() == 0.25);
  CHECK(alpha_from_acceptance_length(1.75, 2).alpha() == Approx(0.5).epsilon(1e-15));
}

TEST_CASE("the ends of the range are the ends of alpha") {
  CHECK(alpha_from_acceptance_length(1, 5).alpha() == 0);
  CHECK(alpha_from_acceptance_length(6, 5).rejection() == 0);
  CHECK(alpha_from_acceptance_length(1e15 + 1, 1000000000000000).rejection() == 0);
}

TEST_CASE("a length out of range is refused with both conventions named") {
  const std::string conventions =
      "but must be in [1, 4] with the bonus token counted; a length without the bonus token is in [0, 3]: add 1 to it";
  CHECK_THROWS_AS(alpha_from_acceptance_length(4.5, 3), std::domain_error);
  CHECK_THROWS_WITH(alpha_from_acceptance_length(4.5, 3),
                    "alpha_from_acceptance_length: acceptance length is 4.5 at gamma 3, " + conventions);
  CHECK_THROWS_WITH(alpha_from_acceptance_length(0.7, 3),
                    "alpha_from_acceptance_length: acceptance length is 0.7 at gamma 3, " + conventions);
  CHECK_THROWS_AS(alpha_from_acceptance_length(nan, 3), std::domain_error);
  CHECK_THROWS_WITH(alpha_from_acceptance_length(1, 0),
                    "alpha_from_acceptance_length: gamma is 0, but must be in [1, 2^63)");
}

TEST_CASE("one length per gamma gives the survival by differences") {
  const std::vector<AcceptanceLength> lengths = {{1, 1.84}, {2, 2.51}, {3, 3.01}};
  const InvertedProfile inverted = profile_from_acceptance_lengths(lengths);
  CHECK(inverted.monotone);
  CHECK(inverted.profile.survival(1) == Approx(0.84).epsilon(1e-14));
  CHECK(inverted.profile.survival(2) == Approx(0.67).epsilon(1e-14));
  CHECK(inverted.profile.survival(3) == Approx(0.5).epsilon(1e-14));
  CHECK(inverted.profile.survival(4) == Approx(0.5 * 0.5 / 0.67).epsilon(1e-13));
  CHECK_FALSE(inverted.profile.extrapolates(3));
  CHECK(inverted.profile.extrapolates(4));
  for (const auto& [drafts, length, half_unit] : lengths) {
    CHECK(expected_tokens(inverted.profile, drafts) == Approx(length).epsilon(1e-14));
  }
}

TEST_CASE("a gap between the gammas is filled with one rate that meets the lengths") {
  const std::vector<AcceptanceLength> lengths = {{1, 1.8}, {4, 3.2}, {8, 4.1}};
  const InvertedProfile inverted = profile_from_acceptance_lengths(lengths);
  CHECK(inverted.monotone);
  for (const AcceptanceLength& length : lengths) {
    CHECK(expected_tokens(inverted.profile, length.gamma) == Approx(length.tokens_per_step).epsilon(1e-13));
  }
  CHECK(inverted.profile.survival(3) / inverted.profile.survival(2) ==
        Approx(inverted.profile.survival(4) / inverted.profile.survival(3)).epsilon(1e-13));
}

TEST_CASE("a single length gives one rate for all positions") {
  const InvertedProfile inverted = profile_from_acceptance_lengths(std::vector<AcceptanceLength>{{3, 2.5}});
  CHECK(inverted.profile.measured_positions() == 0);
  CHECK(inverted.profile.tail() == alpha_from_acceptance_length(2.5, 3));
}

TEST_CASE("lengths that no survival function has are flagged and brought to the nearest legal one") {
  const InvertedProfile growing = profile_from_acceptance_lengths(std::vector<AcceptanceLength>{{1, 1.5}, {2, 2.25}});
  CHECK_FALSE(growing.monotone);
  CHECK(growing.profile.survival(2) == 0.5);
  const InvertedProfile falling = profile_from_acceptance_lengths(std::vector<AcceptanceLength>{{1, 1.5}, {2, 1.25}});
  CHECK_FALSE(falling.monotone);
  CHECK(falling.profile.survival(2) == 0);
}

TEST_CASE("lengths that rounding alone keeps from a survival function are met within their half units") {
  // A curve with falling gains, rounded to two digits so that the seventh gain looks smaller than the eighth.
  std::vector<AcceptanceLength> lengths;
  for (const double length : {1.84, 2.50, 2.95, 3.28, 3.55, 3.78, 3.91, 4.06}) {
    lengths.push_back({static_cast<std::int64_t>(lengths.size()) + 1, length, 0.005 + 1e-12});
  }
  const InvertedProfile inverted = profile_from_acceptance_lengths(lengths);
  CHECK(inverted.monotone);
  for (const AcceptanceLength& length : lengths) {
    INFO(length.gamma);
    CHECK(std::abs(expected_tokens(inverted.profile, length.gamma) - length.tokens_per_step) <= length.half_unit + 1e-12);
  }
  for (AcceptanceLength& length : lengths) length.half_unit = 0.004;
  CHECK_FALSE(profile_from_acceptance_lengths(lengths).monotone);
  // Half units of their own: the coarse one gives way.
  CHECK(profile_from_acceptance_lengths(std::vector<AcceptanceLength>{{1, 1.5, 0.001}, {2, 2.1, 0.2}}).monotone);
  CHECK_FALSE(profile_from_acceptance_lengths(std::vector<AcceptanceLength>{{1, 1.5, 0.001}, {2, 2.1, 0.05}}).monotone);
  CHECK_THROWS_AS(profile_from_acceptance_lengths(std::vector<AcceptanceLength>{{1, 1.5, -1}}), std::domain_error);
}

TEST_CASE("whatever survival function the lengths are of, rounding them to two digits leaves them one") {
  // Any concave lengths lie within half a unit of their rounding.
  std::uint64_t state = 7;
  const auto uniform = [&] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state >> 11) / 9007199254740992.0;
  };
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<AcceptanceLength> lengths;
    double survival = 1, length = 1;
    const int step = trial % 3 + 1;
    for (std::int64_t gamma = 1; gamma <= 12; ++gamma) {
      survival *= 1 - 0.4 * uniform();
      length += survival;
      if (gamma % step == 0) lengths.push_back({gamma, std::round(100 * length) / 100, 0.005 + 1e-9});
    }
    const InvertedProfile inverted = profile_from_acceptance_lengths(lengths);
    CHECK(inverted.monotone);
    for (const AcceptanceLength& given : lengths) {
      const double met = expected_tokens(inverted.profile, given.gamma);
      INFO(trial << ", gamma " << given.gamma << ": " << met << " for " << given.tokens_per_step);
      if (lengths.size() > 1) CHECK(std::abs(met - given.tokens_per_step) <= given.half_unit + 1e-12);
    }
  }
}

TEST_CASE("a gap whose one rate would end below the survival after it has one survival instead") {
  const InvertedProfile inverted = profile_from_acceptance_lengths(std::vector<AcceptanceLength>{{3, 2.35}, {5, 3.2}});
  CHECK(inverted.monotone);
  CHECK(inverted.profile.survival(1) == Approx(0.45));
  CHECK(inverted.profile.survival(3) == Approx(0.45));
  CHECK(expected_tokens(inverted.profile, 5) == Approx(3.2));
}

TEST_CASE("equal differences that the rounding of the lengths makes unequal are not flagged") {
  CHECK(profile_from_acceptance_lengths(std::vector<AcceptanceLength>{{1, 1.7}, {2, 2.4}, {3, 3.1}}).monotone);
  CHECK(profile_from_acceptance_lengths(std::vector<AcceptanceLength>{{1, 1.9}, {2, 2.8}, {3, 3.7}}).monotone);
}

TEST_CASE("acceptance lengths that are missing, unordered or out of range are refused") {
  CHECK_THROWS_AS(profile_from_acceptance_lengths({}), std::invalid_argument);
  CHECK_THROWS_WITH(profile_from_acceptance_lengths({}), "profile_from_acceptance_lengths: lengths is empty");
  CHECK_THROWS_WITH(profile_from_acceptance_lengths(std::vector<AcceptanceLength>{{2, 2.0}, {2, 2.5}}),
                    "profile_from_acceptance_lengths: gamma 2 follows 2, but gammas must increase");
  CHECK_THROWS_AS(profile_from_acceptance_lengths(std::vector<AcceptanceLength>{{1, 2.5}, {2, 2.5}}),
                  std::domain_error);
  CHECK_THROWS_WITH(profile_from_acceptance_lengths(std::vector<AcceptanceLength>{{1, 1.5}, {2000000, 2.5}}),
                    "profile_from_acceptance_lengths: gamma is 2000000, but must be in [1, 1000000]");
}

TEST_CASE("unconditional and conditional rates of the same positions give the same profile") {
  const auto unconditional = profile_from_unconditional_rates(std::vector{0.8, 0.6, 0.3});
  const auto conditional = profile_from_conditional_rates(std::vector{0.8, 0.75, 0.5});
  CHECK(unconditional.monotone);
  for (std::int64_t j = 0; j <= 6; ++j) {
    CHECK(unconditional.profile.survival(j) == Approx(conditional.survival(j)).epsilon(1e-14));
  }
}

TEST_CASE("unconditional rates that grow are flagged") {
  const auto inverted = profile_from_unconditional_rates(std::vector{0.8, 0.9, 0.3});
  CHECK_FALSE(inverted.monotone);
  CHECK(inverted.profile.survival(2) == 0.8);
}

TEST_CASE("rates outside 0 to 1 are refused with their position") {
  CHECK_THROWS_AS(profile_from_unconditional_rates({}), std::invalid_argument);
  CHECK_THROWS_AS(profile_from_conditional_rates({}), std::invalid_argument);
  CHECK_THROWS_AS(profile_from_unconditional_rates(std::vector{0.5, nan}), std::domain_error);
  CHECK_THROWS_WITH(profile_from_unconditional_rates(std::vector{0.5, 1.5}),
                    "profile_from_unconditional_rates: rate at position 2 is 1.5, but must be in [0, 1]");
  CHECK_THROWS_WITH(profile_from_conditional_rates(std::vector{-0.5}),
                    "profile_from_conditional_rates: rate at position 1 is -0.5, but must be in [0, 1]");
}

}  // namespace specdec::theory
