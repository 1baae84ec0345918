#include "traces/sharded_recording.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/recorded_pair.hpp"
#include "traces/batch_slice.hpp"

using specdec::tests::MemorySource;
using specdec::traces::PositionBatch;
using specdec::traces::Shard;
using specdec::traces::ShardedRecording;

namespace {

/// Tokens 0, 1, 2, ... of sequences of these lengths, in batches of three positions.
struct Numbered {
  std::vector<std::int64_t> sequence, place;
  std::vector<std::int32_t> token;

  explicit Numbered(const std::vector<std::int64_t>& lengths) {
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      for (std::int64_t t = 0; t < lengths[s]; ++t) {
        sequence.push_back(static_cast<std::int64_t>(s));
        place.push_back(t);
        token.push_back(static_cast<std::int32_t>(token.size()));
      }
    }
  }
  std::unique_ptr<MemorySource> source() const {
    PositionBatch whole;
    whole.size = std::ssize(sequence);
    whole.sequence = sequence;
    whole.place = place;
    whole.token = token;
    std::vector<PositionBatch> batches;
    for (std::int64_t begin = 0; begin < whole.size; begin += 3)
      batches.push_back(specdec::traces::slice_of(whole, begin, std::min<std::int64_t>(3, whole.size - begin)));
    return std::make_unique<MemorySource>(specdec::traces::TraceMetadata{}, batches);
  }
};

}  // namespace

TEST_CASE("shares hold every position once, under the numbers of the whole recording") {
  const Numbered recording({4, 1, 7, 2, 5});
  for (const std::int64_t of : {1, 2, 3, 8}) {
    std::map<std::int64_t, std::int32_t> token_of;
    for (std::int64_t index = 0; index < of; ++index) {
      ShardedRecording share(recording.source(), {index, of});
      PositionBatch batch;
      while (share.read(batch)) {
        REQUIRE(batch.size > 0);
        for (std::int64_t i = 0; i < batch.size; ++i) {
          const auto at = static_cast<std::size_t>(i);
          CHECK(batch.sequence[at] % of == index);
          CHECK(batch.sequence[at] == recording.sequence[static_cast<std::size_t>(batch.first + i)]);
          CHECK(batch.place[at] == recording.place[static_cast<std::size_t>(batch.first + i)]);
          CHECK(token_of.emplace(batch.first + i, batch.token[at]).second);
        }
      }
      CHECK_FALSE(share.read(batch));
    }
    CHECK(token_of.size() == recording.token.size());
    for (const auto& [position, token] : token_of) CHECK(position == token);
  }
}

TEST_CASE("a share is named by its number from 1, and its file so that names have the order of numbers") {
  CHECK(Shard{2, 7}.name() == "3/7");
  CHECK(Shard{2, 64}.file_name() == "03-of-64");
}
