#pragma once

#include <algorithm>
#include <cstdint>

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// The blocks of an engine's cache, of which some are free.
class CacheBlocks {
 public:
  CacheBlocks(std::int64_t all, std::int64_t tokens_per_block)
      : all_(all), tokens_per_block_(tokens_per_block), free_(all) {}

  std::int64_t free() const { return free_; }
  /// The most that were in use at once.
  std::int64_t peak() const { return peak_; }
  std::int64_t tokens_per_block() const { return tokens_per_block_; }
  /// Blocks that so many tokens of one request take.
  std::int64_t blocks_for(std::int64_t tokens) const { return (tokens + tokens_per_block_ - 1) / tokens_per_block_; }

  void take(std::int64_t blocks) {
    free_ -= blocks;
    peak_ = std::max(peak_, all_ - free_);
  }
  void give_back(std::int64_t blocks) { free_ += blocks; }

 private:
  std::int64_t all_, tokens_per_block_;
  std::int64_t free_;
  std::int64_t peak_ = 0;
};

}  // namespace specdec::sim
