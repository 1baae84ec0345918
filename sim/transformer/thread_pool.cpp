#include "sim/transformer/thread_pool.hpp"

#include <iterator>
#include <system_error>

#include "analysis/core/parallel.hpp"

namespace specdec::sim {
namespace {

/// A pause takes 20 to 60 ns, so this is some tens of microseconds.
constexpr int spins = 1000;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  try {
    for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
  } catch (const std::system_error& error) {
    end();
    throw core::TooManyThreads("ThreadPool", threads, std::ssize(workers_) + 1, error.code());
  } catch (...) {
    end();
    throw;
  }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::end() {
  ending_.store(true, std::memory_order_relaxed);
  signal_.fetch_add(1, std::memory_order_release);
  signal_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(std::int64_t chunks, Call call, const void* argument) {
  call_ = call;
  argument_ = argument;
  unfinished_.store(chunks, std::memory_order_relaxed);
  untaken_.store(chunks, std::memory_order_release);
  if (chunks > 1) {
    signal_.fetch_add(1, std::memory_order_release);
    signal_.notify_all();
  }
  take_chunks(0);
  for (int i = 0; unfinished_.load(std::memory_order_acquire) > 0; ++i) {
    if (i < spins) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::take_chunks(int thread) {
  for (;;) {
    const std::int64_t untaken = untaken_.fetch_sub(1, std::memory_order_acq_rel);
    if (untaken <= 0) return;
    call_(argument_, untaken - 1, thread);
    unfinished_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::work(int thread) {
  for (;;) {
    const std::uint32_t seen = signal_.load(std::memory_order_acquire);
    if (ending_.load(std::memory_order_relaxed)) return;
    for (int i = 0; i < spins && untaken_.load(std::memory_order_relaxed) <= 0; ++i) pause();
    if (untaken_.load(std::memory_order_relaxed) > 0) {
      take_chunks(thread);
    } else {
      signal_.wait(seen, std::memory_order_acquire);
    }
  }
}

}  // namespace specdec::sim
