#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace specdec::core {

/// Thrown if the system refuses to start more threads: a limit on threads or on memory.
class TooManyThreads : public std::runtime_error {
 public:
  /// @param asked  threads that the work at hand had use for
  TooManyThreads(std::string_view function, std::int64_t asked, std::int64_t started, const std::error_code& why);

  std::int64_t started() const { return started_; }
  const std::error_code& why() const { return why_; }

 private:
  std::int64_t started_;
  std::error_code why_;
};

/// Calls function(index, worker) once for every index in [0, count), on at most `threads` threads.
///
/// A free thread takes the next index that has not been taken, so which worker gets which index is not
/// determined: a result must depend on its index alone, and `worker`, in [0, threads), may select working memory only.
/// The calling thread is worker 0. Never more threads are started than there are indices.
///
/// @param threads  >= 1
/// @throws std::domain_error if count < 0 or threads is outside [1, 1024]
/// @throws the exception thrown at the lowest index that threw; every lower index was completed, higher ones
///         may have been skipped
/// @throws TooManyThreads if fewer can be started; some indices may have been processed by then
void for_each_index(std::int64_t count, std::int64_t threads,
                    const std::function<void(std::int64_t index, std::int64_t worker)>& function);

}  // namespace specdec::core
