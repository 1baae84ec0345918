#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace specdec::sim {

/// A few threads that share short pieces of work, microseconds long. Idle threads spin for some tens of
/// microseconds and then sleep; the caller never waits for one that is still asleep but does the work itself.
class ThreadPool {
 public:
  /// Starts threads - 1 threads; the caller is the other one.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls f(chunk, thread) once for each chunk in [0, chunks), in any order, with thread in [0, threads()).
  /// f must not throw.
  template <class F>
  void run(std::int64_t chunks, const F& f) {
    run(
        chunks, [](const void* g, std::int64_t chunk, int thread) { (*static_cast<const F*>(g))(chunk, thread); }, &f);
  }

 private:
  using Call = void (*)(const void*, std::int64_t chunk, int thread);

  void run(std::int64_t chunks, Call call, const void* argument);
  void take_chunks(int thread);
  void end();
  void work(int thread);

  /// Chunks that have not been taken yet; a thread that lowers it from a positive value owns a chunk, and call_ and
  /// argument_ stay valid until that chunk is finished. Threads that wait for work read only this cache line.
  alignas(64) std::atomic<std::int64_t> untaken_{0};
  Call call_ = nullptr;
  const void* argument_ = nullptr;
  alignas(64) std::atomic<std::int64_t> unfinished_{0};
  /// Increases with every run and at the end; sleeping threads wait for it to change.
  alignas(64) std::atomic<std::uint32_t> signal_{0};
  std::atomic<bool> ending_{false};
  std::vector<std::thread> workers_;
};

}  // namespace specdec::sim
