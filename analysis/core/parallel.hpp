#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace specdec::core {

/// The system starts no more threads: a limit on them, or on memory.
class TooManyThreads : public std::runtime_error {
 public:
  TooManyThreads(std::string_view function, std::int64_t asked, std::int64_t started, const std::error_code& why);
};

/// Calls function(index, worker) once for every index in [0, count), spread over at most `threads` threads.
///
/// A thread that is free takes the next index that nobody has taken, so which worker meets which index is not
/// determined: a result must depend on its index alone, and `worker`, in [0, threads), may choose working memory only.
/// The calling thread is worker 0. No more threads are started than there are indices.
///
/// @param threads  >= 1
/// @throws std::domain_error if count < 0 or threads is outside [1, 1024]
/// @throws what function threw at the lowest index at which it threw; every lower index was run to its end, higher ones
///         may have been left out
/// @throws TooManyThreads if fewer can be started; indices may have been met by then
void for_each_index(std::int64_t count, std::int64_t threads,
                    const std::function<void(std::int64_t index, std::int64_t worker)>& function);

}  // namespace specdec::core
