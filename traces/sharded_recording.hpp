#pragma once

#include <cstdint>
#include <memory>
#include <string>

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

/// A share of another recording. Sequences and positions keep their numbers, so that whatever is a function of a sequence
/// and its number is the same whoever reads it. The other recording is read to its end, but the numbers of the positions
/// that are left out are not looked at: of a mapped file, their rows are not even read.
class ShardedRecording : public ForwardingSource {
 public:
  ShardedRecording(std::unique_ptr<PositionSource> source, Shard shard);

  bool read(PositionBatch& batch) override;

 private:
  bool holds_at(std::int64_t i) const { return shard_.holds(whole_.sequence[static_cast<std::size_t>(i)]); }

  Shard shard_;
  PositionBatch whole_;    // the batch that the other recording gave last
  std::int64_t next_ = 0;  // its first position that was not passed on or passed over
};

}  // namespace specdec::traces
