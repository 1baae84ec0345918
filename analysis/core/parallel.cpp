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
namespace {

/// The remaining indices, and the failure at the lowest index.
class Indices {
 public:
  Indices(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& function)
      : count_(count), function_(function) {}

  void run(std::int64_t worker) {
    for (std::int64_t i = next_++; i < count_; i = next_++) {
      try {
        function_(i, worker);
      } catch (...) {
        // All indices below i have been taken, and the threads that took them finish them.
        next_ = count_;
        const std::lock_guard lock(mutex_);
        if (i < failed_index_) {
          failed_index_ = i;
          failure_ = std::current_exception();
        }
      }
    }
  }

  void leave_the_rest() { next_ = count_; }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::int64_t count_;
  const std::function<void(std::int64_t, std::int64_t)>& function_;
  std::atomic<std::int64_t> next_ = 0;
  std::mutex mutex_;
  std::int64_t failed_index_ = std::numeric_limits<std::int64_t>::max();
  std::exception_ptr failure_;
};

}  // namespace

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
  Indices indices(count, function);
  {
    std::vector<std::jthread> others;
    for (std::int64_t worker = 1; worker < std::min(threads, count); ++worker) {
      try {
        others.emplace_back([&indices, worker] { indices.run(worker); });
      } catch (const std::system_error& error) {
        indices.leave_the_rest();
        throw TooManyThreads("for_each_index", threads, worker, error.code());
      }
    }
    indices.run(0);
  }
  indices.rethrow();
}

}  // namespace specdec::core
