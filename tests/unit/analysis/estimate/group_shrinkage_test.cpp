#include "analysis/estimate/group_shrinkage.hpp"

#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

using namespace specdec;
using estimate::GroupShrinkage;
using estimate::GroupValue;
using estimate::NormalMixture;

namespace {

/// The law of a group by sums over a grid of the common mean and of the spread: nothing is integrated in closed form.
struct OnGrid {
  double mean = 0, second_moment = 0, spread = 0;
};

OnGrid on_grid(const std::vector<GroupValue>& groups, std::size_t index) {
  OnGrid sums;
  double total = 0;
  for (int i = 0; i < 400; ++i) {
    const double t = (i + 0.5) / 200;
    for (int k = -2000; k <= 2000; ++k) {
      const double m = k * 0.005;
      double density = 1;
      for (const GroupValue& one : groups) {
        const double variance = one.variance + t * t;
        density *= std::exp(-0.5 * (one.value - m) * (one.value - m) / variance) / std::sqrt(variance);
      }
      const double precision = 1 / (t * t) + 1 / groups[index].variance;
      const double mean = (m / (t * t) + groups[index].value / groups[index].variance) / precision;
      total += density;
      sums.mean += density * mean;
      sums.second_moment += density * (mean * mean + 1 / precision);
      sums.spread += density * t;
    }
  }
  return {sums.mean / total, sums.second_moment / total, sums.spread / total};
}

class Normals {
 public:
  explicit Normals(std::uint64_t seed) : bits_(seed) {}
  double uniform() { return (static_cast<double>(bits_() >> 11) + 0.5) * 0x1p-53; }
  double next() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * 3.14159265358979323846 * uniform()); }

 private:
  std::mt19937_64 bits_;
};

bool holds(const NormalMixture& law, double value) {
  const double below = law.below(value);
  return 0.025 <= below && below <= 0.975;
}

/// The share of groups that an interval holds, in standard errors from 95%, and mean squared errors, over worlds whose
/// spread is drawn from the law that is assumed of it.
struct Coverage {
  double z = 0, squares = 0, squares_unpooled = 0;
};

template <class IntervalOf>
Coverage coverage(std::uint64_t seed, IntervalOf interval_of) {
  constexpr int worlds = 1500;
  Normals normals(seed);
  Coverage result;
  double sum = 0, sum_of_squares = 0;
  for (int world = 0; world < worlds; ++world) {
    const double t = estimate::largest_group_spread * normals.uniform();
    std::vector<double> truth;
    std::vector<GroupValue> measured;
    for (const double variance : {0.01, 0.05, 0.1, 0.3, 1.0, 2.0}) {
      truth.push_back(0.7 + t * normals.next());
      measured.push_back({truth.back() + std::sqrt(variance) * normals.next(), variance});
    }
    const GroupShrinkage pooled(measured);
    double held = 0;
    for (std::size_t g = 0; g < truth.size(); ++g) {
      held += holds(interval_of(pooled, g), truth[g]) ? 1 : 0;
      result.squares += std::pow(pooled.group(g).mean() - truth[g], 2);
      result.squares_unpooled += std::pow(measured[g].value - truth[g], 2);
    }
    const double share = held / static_cast<double>(truth.size());
    sum += share;
    sum_of_squares += share * share;
  }
  const double mean = sum / worlds;
  result.z = (mean - 0.95) / std::sqrt((sum_of_squares / worlds - mean * mean) / worlds);
  return result;
}

}  // namespace

TEST_CASE("groups are pooled as sums over a grid of mean and spread say") {
  const std::vector<GroupValue> groups = {{0.2, 0.04}, {0.9, 0.01}, {1.4, 0.25}, {0.5, 1.0}};
  const GroupShrinkage pooled(groups);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    INFO(g);
    const OnGrid expected = on_grid(groups, g);
    CHECK(pooled.group(g).mean() == Approx(expected.mean).epsilon(2e-4));
    CHECK(pooled.spread() == Approx(expected.spread).epsilon(2e-4));
    const double deviation = std::sqrt(expected.second_moment - expected.mean * expected.mean);
    const estimate::Interval ends = pooled.group(g).central95();
    CHECK((ends.hi - ends.lo) / (2 * 1.96 * deviation) == Approx(1).epsilon(0.08));
  }
}

TEST_CASE("a group is drawn towards the others, the more the less it is known") {
  const GroupShrinkage pooled(std::vector<GroupValue>{{0, 0.01}, {0.1, 0.01}, {-0.1, 0.01}, {1, 0.02}, {1, 2.0}});
  const double known = pooled.group(3).mean(), unknown = pooled.group(4).mean();
  CHECK((0.5 < known && known < 1));
  CHECK((0 < unknown && unknown < 0.6));
  const estimate::Interval wide = pooled.group(4).central95(), any = pooled.new_group().central95();
  CHECK(wide.hi - wide.lo < 2 * 1.96 * std::sqrt(2.0));
  CHECK(any.hi - any.lo > wide.hi - wide.lo);
}

TEST_CASE("one group is drawn nowhere, and another may lie anywhere about it") {
  const GroupShrinkage pooled(std::vector<GroupValue>{{0.3, 0.09}});
  CHECK(pooled.group(0).mean() == Approx(0.3));
  CHECK(pooled.group(0).quantile(0.975) == Approx(0.3 + 1.959963984540054 * 0.3));
  CHECK(pooled.new_group().quantile(0.975) > 0.3 + 1.96);
}

TEST_CASE("two groups hardly tell how far groups differ") {
  const GroupShrinkage two(std::vector<GroupValue>{{0.3, 0.01}, {0.9, 0.01}});
  std::vector<GroupValue> many;
  for (int g = 0; g < 60; ++g) many.push_back({g % 2 == 0 ? 0.3 : 0.9, 0.01});
  const GroupShrinkage sixty(many);
  CHECK(sixty.spread() > 0.2);
  CHECK(sixty.spread() < 0.4);
  CHECK(two.spread() > 1.5 * sixty.spread());
}

TEST_CASE("intervals of groups hold 95% where spreads are drawn as is assumed of them", "[long]") {
  // Beyond 3.3 standard errors in one of a thousand tests; the intervals of complete pooling are to be found.
  const Coverage pooled = coverage(1, [](const GroupShrinkage& groups, std::size_t g) { return groups.group(g); });
  CHECK(std::abs(pooled.z) < 3.3);
  CHECK(pooled.squares < 0.8 * pooled.squares_unpooled);
  const Coverage complete = coverage(2, [](const GroupShrinkage& groups, std::size_t) {
    return NormalMixture({{1, groups.new_group().mean(), 1e-4}});
  });
  CHECK(complete.z < -3.3);
}

TEST_CASE("the variance between items is that of moments over strata") {
  // For equal variances V the estimate is the pooled sample variance less V: here (0.5 + 2) / 2 - 0.25.
  const std::vector<std::vector<GroupValue>> strata = {{{1, 0.25}, {2, 0.25}}, {{5, 0.25}, {7, 0.25}}, {{9, 0.25}}};
  CHECK(estimate::variance_between(strata) == Approx(1.0));
  CHECK(estimate::variance_between(std::vector<std::vector<GroupValue>>{{{1, 0.25}}, {{9, 0.25}}}) == 0);
  CHECK(estimate::variance_between(std::vector<std::vector<GroupValue>>{{{1, 4}, {2, 4}}}) == 0);
}

TEST_CASE("a mixture's quantiles and its law belong together") {
  const NormalMixture law({{0.25, -1, 0.5}, {0.75, 2, 0.01}});
  CHECK(law.mean() == Approx(1.25));
  for (const double p : {0.01, 0.25, 0.5, 0.99}) CHECK(law.below(law.quantile(p)) == Approx(p).epsilon(1e-7));
  CHECK(law.with_variance(4).quantile(0.975) > law.quantile(0.975));
}

TEST_CASE("groups that cannot be pooled are refused by name") {
  CHECK_THROWS_AS(GroupShrinkage(std::vector<GroupValue>{}), std::invalid_argument);
  CHECK_THROWS_WITH(GroupShrinkage(std::vector<GroupValue>{{0.5, 0}}), Catch::Contains("variance"));
  CHECK_THROWS_AS(NormalMixture({{1, 0, 1}}).quantile(0), std::domain_error);
}
