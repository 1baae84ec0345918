#include "traces/sharded_recording.hpp"

#include <fmt/format.h>
#include <utility>

#include "traces/batch_slice.hpp"

namespace specdec::traces {

std::string Shard::name() const { return fmt::format("{}/{}", index + 1, of); }

std::string Shard::file_name() const {
  const std::string all = fmt::format("{}", of);
  return fmt::format("{:0{}}-of-{}", index + 1, all.size(), all);
}

ShardedRecording::ShardedRecording(std::unique_ptr<PositionSource> source, Shard shard)
    : ForwardingSource(std::move(source)), shard_(shard) {}

bool ShardedRecording::read(PositionBatch& batch) {
  while (true) {
    while (next_ < whole_.size && !holds_at(next_)) ++next_;
    if (next_ < whole_.size) {
      const std::int64_t begin = next_;
      while (next_ < whole_.size && holds_at(next_)) ++next_;
      batch = slice_of(whole_, begin, next_ - begin);
      return true;
    }
    next_ = 0;
    if (!source().read(whole_)) {
      whole_ = {};
      return false;
    }
  }
}

}  // namespace specdec::traces
