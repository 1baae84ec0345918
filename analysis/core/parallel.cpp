#include "analysis/core/parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "analysis/core/checks.hpp"

namespace specdec::core {

TooManyThreads::TooManyThreads(std::string_view function, std::int64_t asked, std::int64_t started,
                               const std::error_code& why)
    : std::runtime_error(fmt::format("{}: threads is {}, but the system starts only {} ({})", function, asked, started,
                                     why.message())),
      started_(started),
      why_(why) {}

void for_each_index(std::int64_t count, std::int64_t threads,
                    const std::function<void(std::int64_t index, std::int64_t worker)>& function) {
  require_in("for_each_index", "count", count, std::int64_t{0}, std::numeric_limits<std::int64_t>::max() / 2);
  require_in("for_each_index", "threads", threads, std::int64_t{1}, std::int64_t{1024});
  std::atomic<std::int64_t> next = 0;
  std::mutex mutex;
  std::int64_t failed_index = count;
  std::exception_ptr failure;
  const auto run = [&](std::int64_t worker) {
    for (std::int64_t i = next++; i < count; i = next++) {
      try {
        function(i, worker);
      } catch (...) {
        // All indices below i have been taken, and the threads that took them finish them.
        next = count;
        const std::lock_guard lock(mutex);
        if (i >= failed_index) continue;
        failed_index = i;
        failure = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::int64_t worker = 1; worker < std::min(threads, count); ++worker) {
      try {
        others.emplace_back(run, worker);
      } catch (const std::system_error& error) {
        next = count;
        throw TooManyThreads("for_each_index", threads, worker, error.code());
      }
    }
    run(0);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace specdec::core
