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

bool DividedRecording::read(PositionBatch& batch) {
  while (true) {
    while (next_ < whole_.size && !group_at(next_)) ++next_;
    if (next_ < whole_.size) {
      const std::int64_t begin = next_;
      group_ = *group_of_sequence_;
      while (next_ < whole_.size && group_at(next_) == group_) ++next_;
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

std::optional<std::int64_t> DividedRecording::group_at(std::int64_t i) {
  const std::int64_t sequence = whole_.sequence[static_cast<std::size_t>(i)];
  if (sequence != sequence_) {
    sequence_ = sequence;
    group_of_sequence_ = group_of(sequence, whole_.first + i);
  }
  return group_of_sequence_;
}

ShardedRecording::ShardedRecording(std::unique_ptr<PositionSource> source, Shard shard)
    : DividedRecording(std::move(source)), shard_(shard) {}

std::optional<std::int64_t> ShardedRecording::group_of(std::int64_t sequence, std::int64_t) {
  return shard_.holds(sequence) ? std::optional(shard_.index) : std::nullopt;
}

DealtRecording::DealtRecording(std::unique_ptr<PositionSource> source, std::int64_t unit_positions,
                               std::function<std::int64_t()> next_unit)
    : DividedRecording(std::move(source)), unit_positions_(unit_positions), next_unit_(std::move(next_unit)) {}

std::optional<std::int64_t> DealtRecording::group_of(std::int64_t, std::int64_t position) {
  const std::int64_t unit = position / unit_positions_;
  while (given_ < unit) given_ = next_unit_();
  return given_ == unit ? std::optional(unit) : std::nullopt;
}

}  // namespace specdec::traces
