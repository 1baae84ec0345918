#include "analysis/planning/mixed_curve.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "analysis/estimate/population_curve.hpp"
#include "analysis/planning/profile_curve.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using planning::MixedCurve;
using planning::ProfileCurve;
using planning::TrafficPart;

namespace {

std::shared_ptr<const estimate::AcceptanceCurve> rate(double alpha) {
  return std::make_shared<ProfileCurve>(core::AcceptanceProfile(core::AcceptanceRate(alpha)));
}

std::shared_ptr<const estimate::AcceptanceCurve> rate_between(double low, double alpha, double high) {
  return std::make_shared<ProfileCurve>(core::AcceptanceProfile(core::AcceptanceRate(alpha)),
                                        core::AcceptanceProfile(core::AcceptanceRate(low)),
                                        core::AcceptanceProfile(core::AcceptanceRate(high)));
}

/// Steps of one token, decoded token by token: each is accepted with alpha until the step's drafts are used up.
double steps_per_token(double alpha, std::int64_t gamma) {
  double tokens = 1, alive = 1;
  for (std::int64_t j = 0; j < gamma; ++j) tokens += alive *= alpha;
  return 1 / tokens;
}

}  // namespace

TEST_CASE("a mix takes the steps that its groups' tokens take, and not the mean of their lengths") {
  const MixedCurve mix({{rate(0.9), 3}, {rate(0.3), 1}});
  for (const std::int64_t gamma : {1, 4, 9}) {
    // 3 of 4 tokens are those of the first group.
    const double steps = 3 * steps_per_token(0.9, gamma) + steps_per_token(0.3, gamma);
    CHECK(mix.tokens_per_step(gamma).value == Approx(4 / steps).epsilon(1e-12));
    const double mean = 0.75 / steps_per_token(0.9, gamma) + 0.25 / steps_per_token(0.3, gamma);
    CHECK(mix.tokens_per_step(gamma).value < mean);
  }
  CHECK(mix.tokens_per_step(0).value == 1);
  // Rounds, not tokens, are accepted in full.
  const double rounds_of_first = 0.75 * steps_per_token(0.9, 2), rounds_of_second = 0.25 * steps_per_token(0.3, 2);
  CHECK(mix.tokens_per_step(2).full_accepts ==
        Approx((rounds_of_first * 0.81 + rounds_of_second * 0.09) / (rounds_of_first + rounds_of_second)));
}

TEST_CASE("a mix of one group, or of equal ones, is that group") {
  const auto group = rate_between(0.6, 0.7, 0.8);
  const estimate::TokensPerStep alone = group->tokens_per_step(5);
  const estimate::TokensPerStep mixed = MixedCurve({{group, 0.2}}).tokens_per_step(5);
  CHECK(mixed.value == Approx(alone.value));
  CHECK(mixed.ci95.lo == Approx(alone.ci95.lo));
  CHECK(mixed.ci95.hi == Approx(alone.ci95.hi));
  CHECK(MixedCurve({{group, 1}, {group, 5}}).tokens_per_step(5).value == Approx(alone.value));
}

TEST_CASE("a mix's interval is that of independent errors of its groups") {
  const std::int64_t gamma = 4;
  const std::vector<TrafficPart> parts = {{rate_between(0.55, 0.6, 0.65), 0.5}, {rate_between(0.72, 0.8, 0.88), 0.5}};
  const estimate::TokensPerStep mixed = MixedCurve(parts).tokens_per_step(gamma);
  // Steps per token of each group, drawn from normal laws with the widths of their intervals on either side; quantiles
  // of 40,000 draws are within 2% of the half-width in all but one of ten thousand tests, and those of two such laws
  // within 4% of what squares add up to: the two together are refused by chance once in ten thousand seeds.
  std::mt19937_64 bits(7);
  const auto uniform = [&] { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; };
  std::vector<double> lengths;
  for (int draw = 0; draw < 40'000; ++draw) {
    double steps = 0;
    for (const TrafficPart& part : parts) {
      const estimate::TokensPerStep tokens = part.acceptance->tokens_per_step(gamma);
      const double z = std::sqrt(-2 * std::log(uniform())) * std::cos(2 * 3.14159265358979323846 * uniform());
      const double x = 1 / tokens.value;
      const double width = z > 0 ? 1 / tokens.ci95.lo - x : x - 1 / tokens.ci95.hi;
      steps += part.share * (x + z / 1.96 * width);
    }
    lengths.push_back(1 / steps);
  }
  std::sort(lengths.begin(), lengths.end());
  const double lo = lengths[1000], hi = lengths[39'000];
  CHECK(mixed.value - mixed.ci95.lo == Approx(mixed.value - lo).epsilon(0.06));
  CHECK(mixed.ci95.hi - mixed.value == Approx(hi - mixed.value).epsilon(0.06));
  // If the errors of groups went the same way the interval would be wider.
  double together = 0;
  for (const TrafficPart& part : parts) together += part.share / part.acceptance->tokens_per_step(gamma).ci95.lo;
  CHECK(1 / together < mixed.ci95.lo);
  CHECK(MixedCurve(parts, MixedCurve::Errors::shared).tokens_per_step(gamma).ci95.lo == Approx(1 / together));
}

TEST_CASE("a rate is one world, an interval its two ends, and a mix takes the ends of all groups at once") {
  const estimate::TokenWorlds one = rate(0.8)->draw(4, {100, 1});
  REQUIRE(one.worlds() == 1);
  CHECK(one.tokens[4][0] == Approx(1 / steps_per_token(0.8, 4)).epsilon(1e-14));
  const estimate::TokenWorlds mixed = MixedCurve({{rate_between(0.6, 0.7, 0.8), 3}, {rate(0.5), 1}}).draw(4, {100, 1});
  REQUIRE(mixed.worlds() == 2);
  CHECK(mixed.alternative == std::vector<int>{0, 1});
  CHECK(mixed.tokens[4][1] == Approx(4 / (3 * steps_per_token(0.8, 4) + steps_per_token(0.5, 4))).epsilon(1e-12));
}

TEST_CASE("groups that were measured apart have random numbers of their own, and those of one text have the same") {
  estimate::PopulationCurve::Evidence evidence;
  evidence.prior = estimate::population_prior();
  evidence.lengths = {{3, 2.5, 0.05}};
  const auto group = std::make_shared<estimate::PopulationCurve>(evidence);
  const std::vector<TrafficPart> parts = {{group, 1}, {group, 1}};
  const auto width = [](const MixedCurve& mix) {
    const estimate::Interval ci95 = tokens_of(mix.draw(3, {1000, 1}), 3).ci95;
    return ci95.hi - ci95.lo;
  };
  const double together = width(MixedCurve(parts, MixedCurve::Errors::shared));
  // Of 1,000 worlds a half-width is known to 5%.
  CHECK(width(MixedCurve(parts)) == Approx(together / std::sqrt(2)).epsilon(0.15));
}

TEST_CASE("a mix without groups, or with a share of nothing, is refused") {
  CHECK_THROWS_AS(MixedCurve({}), std::invalid_argument);
  CHECK_THROWS_AS(MixedCurve({{rate(0.5), 0}}), std::domain_error);
}
