#include "analysis/core/parallel.hpp"

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace specdec::core {

TEST_CASE("every index is visited once, by a worker within the threads") {
  for (const std::int64_t threads : {1, 2, 7}) {
    std::vector<std::atomic<int>> visits(1000);
    std::atomic<bool> within = true;
    for_each_index(1000, threads, [&](std::int64_t index, std::int64_t worker) {
      ++visits[static_cast<std::size_t>(index)];
      if (worker < 0 || worker >= threads) within = false;
    });
    CHECK(within);
    for (const auto& visit : visits) REQUIRE(visit == 1);
  }
}

TEST_CASE("a single index runs on the calling thread, no index calls nothing") {
  std::vector<std::int64_t> workers;
  for_each_index(1, 8, [&](std::int64_t, std::int64_t worker) { workers.push_back(worker); });
  for_each_index(0, 8, [&](std::int64_t, std::int64_t worker) { workers.push_back(worker); });
  CHECK(workers == std::vector<std::int64_t>{0});
}

TEST_CASE("the failure at the lowest index is rethrown after every lower index has run") {
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<std::atomic<int>> done(500);
    const auto run = [&] {
      for_each_index(500, 4, [&](std::int64_t index, std::int64_t) {
        if (index == 100 || index == 101 || index == 300) throw std::runtime_error(std::to_string(index));
        ++done[static_cast<std::size_t>(index)];
      });
    };
    CHECK_THROWS_WITH(run(), "100");
    for (std::size_t i = 0; i < 100; ++i) REQUIRE(done[i] == 1);
  }
}

TEST_CASE("a negative count and a number of threads outside 1 to 1024 are refused") {
  const auto nothing = [](std::int64_t, std::int64_t) {};
  CHECK_THROWS_AS(for_each_index(-1, 1, nothing), std::domain_error);
  CHECK_THROWS_AS(for_each_index(1, 0, nothing), std::domain_error);
  CHECK_THROWS_AS(for_each_index(1, 1025, nothing), std::domain_error);
}

}  // namespace specdec::core
