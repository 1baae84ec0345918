#include "sim/transformer/thread_pool.hpp"

#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"

using specdec::sim::ThreadPool;

TEST_CASE("every chunk runs exactly once, by threads with distinct numbers, for runs in quick succession") {
  for (int threads = 1; threads <= 4; ++threads) {
    ThreadPool pool(threads);
    REQUIRE(pool.threads() == threads);
    for (std::int64_t chunks = 0; chunks < 200; ++chunks) {
      std::vector<int> runs(static_cast<std::size_t>(chunks));
      bool known = true;
      pool.run(chunks, [&](std::int64_t chunk, int thread) {
        if (thread < 0 || thread >= threads) known = false;
        ++runs[static_cast<std::size_t>(chunk)];
      });
      CHECK(known);
      CHECK(runs == std::vector<int>(static_cast<std::size_t>(chunks), 1));
    }
  }
}

TEST_CASE("a run after the threads have gone to sleep still does everything") {
  ThreadPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::atomic<int> sum{0};
    pool.run(100, [&](std::int64_t chunk, int) { sum += static_cast<int>(chunk); });
    CHECK(sum == 4950);
  }
}
