#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/forwarding_source.hpp"

namespace specdec::traces {

/// Shards are counted in the names of files and read all at a merge.
inline constexpr std::int64_t most_shards = 1'000'000;

/// One of several equal shares of a recording: the sequences whose number leaves `index` when divided by `of`.
struct Shard {
  std::int64_t index = 0;  ///< [0, of)
  std::int64_t of = 1;     ///< [1, most_shards]

  bool holds(std::int64_t sequence) const { return sequence % of == index; }
  /// Counted from 1: "3/7".
  std::string name() const;
  /// "03-of-64": in the order of names, files are in that of the shards.
  std::string file_name() const;

  friend bool operator==(const Shard&, const Shard&) = default;
};

/// Some of the sequences of another recording. Sequences and positions keep their numbers, so that whatever is a
/// function of a sequence and its number is the same whoever reads it. The other recording is read to its end, but the
/// numbers of the positions that are left out are not looked at: of a mapped file, their rows are not even read.
class DividedRecording : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;

  /// A batch is of one group.
  bool read(PositionBatch& batch) override;

 protected:
  /// The group of a sequence, or nothing if it is left out; asked once of each, in order.
  /// @param position  the number of its first one
  virtual std::optional<std::int64_t> group_of(std::int64_t sequence, std::int64_t position) = 0;
  /// That of the batch that was read last.
  std::int64_t group() const { return group_; }

 private:
  std::optional<std::int64_t> group_at(std::int64_t i);

  PositionBatch whole_;    // the batch that the other recording gave last
  std::int64_t next_ = 0;  // its first position that was not passed on or passed over
  std::int64_t sequence_ = -1, group_ = 0;
  std::optional<std::int64_t> group_of_sequence_;
};

/// A share of another recording.
class ShardedRecording : public DividedRecording {
 public:
  ShardedRecording(std::unique_ptr<PositionSource> source, Shard shard);

 protected:
  std::optional<std::int64_t> group_of(std::int64_t sequence, std::int64_t position) override;

 private:
  Shard shard_;
};

/// The units of another recording that one of several processes is given while they all read it: unit u is the
/// sequences that begin in the positions [u n, (u + 1) n).
class DealtRecording : public DividedRecording {
 public:
  /// @param unit_positions  n >= 1
  /// @param next_unit       asked for a unit once those that it gave before are passed; each is larger than the last
  DealtRecording(std::unique_ptr<PositionSource> source, std::int64_t unit_positions,
                 std::function<std::int64_t()> next_unit);

  /// The unit of the batch that was read last.
  std::int64_t unit() const { return group(); }

 protected:
  std::optional<std::int64_t> group_of(std::int64_t sequence, std::int64_t position) override;

 private:
  std::int64_t unit_positions_;
  std::function<std::int64_t()> next_unit_;
  std::int64_t given_ = -1;
};

}  // namespace specdec::traces
