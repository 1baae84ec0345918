#include "analysis/estimate/round_moments.hpp"

#include <array>

#include "tests/support/catch.hpp"

namespace specdec::estimate {

TEST_CASE("rates by position have the standard errors of ratios of sums, over the clusters that lack them, too") {
  RoundMoments moments;
  moments.add(std::array{7.0}, std::array{10.0});
  moments.add(std::array{5.0, 2.0}, std::array{9.0, 5.0});
  moments.add(std::array{3.0, 1.0, 0.0}, std::array{8.0, 3.0, 1.0});
  REQUIRE(moments.positions() == 3);
  CHECK(moments.clusters() == 3);
  CHECK(moments.rate(1) == 15.0 / 27);
  CHECK(moments.rate(2) == 3.0 / 8);
  ClusterMoments second;
  second.add(0, 0);
  second.add(2, 5);
  second.add(1, 3);
  CHECK(moments.standard_error(2)->value == standard_error(second)->value);
  CHECK(moments.standard_error(2)->degrees_of_freedom == 2);
}

}  // namespace specdec::estimate
