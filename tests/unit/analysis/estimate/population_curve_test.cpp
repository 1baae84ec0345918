#include "analysis/estimate/population_curve.hpp"

#include <vector>

#include "analysis/estimate/lookup_curve.hpp"
#include "tests/support/catch.hpp"

namespace specdec::estimate {
namespace {

PopulationCurve told() {
  PopulationCurve::Evidence evidence;
  evidence.prior = population_prior();
  evidence.lengths = {{3, 2.9, 0.002}};
  evidence.measured[3] = {2.9, {2.88, 2.92}, 0.4, false};
  return PopulationCurve(evidence);
}

}  // namespace

TEST_CASE("a measured gamma is as it was measured, and others are medians of the worlds with their central 95%") {
  const PopulationCurve curve = told();
  CHECK(curve.tokens_per_step(0).value == 1);
  CHECK(curve.tokens_per_step(3).value == 2.9);
  CHECK(curve.tokens_per_step(3).ci95.hi == 2.92);
  const TokenWorlds worlds = curve.draw(40, {});
  for (const std::int64_t gamma : {1, 5, 40}) {
    const TokensPerStep tokens = curve.tokens_per_step(gamma), by_worlds = tokens_of(worlds, gamma);
    CHECK(tokens.value == by_worlds.value);
    CHECK(tokens.ci95.lo == by_worlds.ci95.lo);
    CHECK((tokens.ci95.lo < tokens.value && tokens.value < tokens.ci95.hi));
    CHECK(tokens.extrapolated);
  }
  CHECK_THROWS_AS(curve.tokens_per_step(-1), std::domain_error);
  CHECK(curve.tokens_per_step(1'000'000'000'000).value == curve.tokens_per_step(4096).value);
}

TEST_CASE("intervals of alternatives are their hull about the value of the first") {
  TokenWorlds worlds;
  worlds.tokens = {{1, 1, 1}, {1.4, 1.5, 1.6}};
  worlds.alternative = {0, 0, 0};
  TokenWorlds other;
  other.tokens = {{1}, {1.1}};
  other.alternative = {0};
  const TokenWorlds both = joined(worlds, other);
  CHECK(both.alternative == std::vector<int>{0, 0, 0, 1});
  const TokensPerStep tokens = tokens_of(both, 1);
  CHECK(tokens.value == 1.5);
  CHECK(tokens.ci95.lo == 1.1);
  CHECK(tokens.ci95.hi == Approx(1.595).epsilon(1e-12));
}

TEST_CASE("shares of what is proposed thin the gain of each draft") {
  TokenWorlds worlds;
  worlds.tokens = {{1}, {1.8}, {2.4}};
  worlds.alternative = {0};
  const TokenWorlds thinner = thinned(worlds, std::vector<double>{0.5, 0.25});
  CHECK(thinner.tokens[1][0] == Approx(1.4).epsilon(1e-12));
  CHECK(thinner.tokens[2][0] == Approx(1.55).epsilon(1e-12));
}

TEST_CASE("lookups thin the worlds of what is proposed, and unknown ones may find nothing") {
  const auto proposed = std::make_shared<PopulationCurve>(told());
  const TokenWorlds whole = proposed->draw(4, {50, 1});
  const TokenWorlds half = LookupCurve(proposed, {0.5, {}}).draw(4, {50, 1});
  for (std::size_t world = 0; world < 50; ++world)
    CHECK(half.tokens[4][world] == Approx(1 + (whole.tokens[4][world] - 1) / 2).epsilon(1e-12));
  const TokenWorlds unknown = UnknownLookups(proposed).draw(4, {50, 1});
  CHECK(unknown.worlds() == 51);
  CHECK(unknown.tokens[4].back() == 1);
  CHECK(unknown.alternative.back() == 1);
}

}  // namespace specdec::estimate
