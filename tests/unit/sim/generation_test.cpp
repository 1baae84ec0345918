#include "sim/generation.hpp"

#include "tests/support/catch.hpp"

using specdec::sim::Counters;

TEST_CASE("merged counters are sums, also where one run drafted further than the other") {
  Counters a{1, 3, 2, 2, {1, 1}, {1, 1}, 2, 1, 2, 3, 10};
  const Counters b{2, 2, 1, 0, {1}, {0}, 1, 2, 1, 3, 5};
  const Counters expected{3, 5, 3, 2, {2, 1}, {1, 1}, 3, 3, 3, 6, 15};
  a.merge(b);
  CHECK(a == expected);
  Counters empty;
  empty.merge(expected);
  CHECK(empty == expected);
}
