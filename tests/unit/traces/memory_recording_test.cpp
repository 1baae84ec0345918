#include "traces/memory_recording.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/check_trace.hpp"
#include "traces/file_error.hpp"
#include "traces/open_trace.hpp"
#include "traces/trace_writer.hpp"

using namespace specdec::traces;

namespace {

template <class Value>
const std::byte* bytes_of(const std::vector<Value>& values) {
  return std::as_bytes(std::span(values)).data();
}

/// Rows of three tokens, (positions, 3).
MemoryPositions rows(const std::vector<float>& p, const std::vector<float>& q) {
  MemoryPositions positions;
  positions.size = static_cast<std::int64_t>(p.size()) / 3;
  positions.vocab = 3;
  positions.target = bytes_of(p);
  positions.draft = bytes_of(q);
  return positions;
}

const std::vector<float> two_p = {0.5F, 0.25F, 0.25F, 0.125F, 0.125F, 0.75F};
const std::vector<float> two_q = {0.25F, 0.5F, 0.25F, 0.5F, 0.25F, 0.25F};

}  // namespace

TEST_CASE("rows in memory are read where they lie, and each piece without labels is a sequence") {
  MemoryRecording recording;
  recording.append(rows(two_p, two_q));
  MemoryPositions labelled = rows(two_p, two_q);
  labelled.sequences = {7, 9};
  recording.append(labelled);
  CHECK(recording.positions() == 4);
  CHECK(recording.sequences() == 3);
  for (int reading = 0; reading < 2; ++reading) {
    const auto source = recording.open();
    PositionBatch batch;
    REQUIRE(source->read(batch));
    CHECK(batch.tier == Tier::full);
    CHECK(batch.target_rows.bytes.data() == bytes_of(two_p));
    CHECK(batch.draft_rows.bytes.data() == bytes_of(two_q));
    CHECK(batch.place[1] == 1);
    REQUIRE(source->read(batch));
    CHECK(batch.first == 2);
    CHECK(batch.sequence[0] == 1);
    CHECK(batch.sequence[1] == 2);
    CHECK(batch.task.empty());
    CHECK_FALSE(source->read(batch));
    CHECK(source->metadata().vocab_size == 3);
  }
}

TEST_CASE("a sequence goes on in the next piece where its label does, and none comes back") {
  MemoryRecording recording;
  MemoryPositions piece = rows(two_p, two_q);
  piece.sequences = {1, 2};
  recording.append(piece);
  piece.sequences = {2, 3};
  recording.append(piece);
  CHECK(recording.sequences() == 3);
  piece.sequences = {4, 1};
  CHECK_THROWS_WITH(recording.append(piece),
                    "append: sequences is 1 again, but must be one run of positions for each sequence");
  // Refused rows leave nothing behind.
  CHECK(recording.positions() == 4);
  piece.sequences = {4, 5};
  recording.append(piece);
  CHECK(recording.sequences() == 5);
}

TEST_CASE("float64 is narrowed, logits without losing those near the largest") {
  const std::vector<double> p = {1000.25, 1000, -50, 1, 2, 3}, q = {0, 0, 0, 3, 2, 1};
  MemoryPositions positions;
  positions.size = 2;
  positions.vocab = 3;
  positions.space = RowSpace::logits;
  positions.type = ElementType::f64;
  positions.target = bytes_of(p);
  positions.draft = bytes_of(q);
  MemoryRecording recording;
  recording.append(positions);
  const auto source = recording.open();
  PositionBatch batch;
  REQUIRE(source->read(batch));
  CHECK(batch.target_rows.type == ElementType::f32);
  float largest[3];
  std::memcpy(largest, batch.target_rows.bytes.data(), sizeof largest);
  CHECK(largest[0] == 0);
  CHECK(largest[1] == -0.25F);
}

TEST_CASE("one number of each model a position becomes its log-probability") {
  const std::vector<float> p = {0.5F, 1}, q = {0.25F, 0};
  MemoryPositions positions;
  positions.size = 2;
  positions.target = bytes_of(p);
  positions.draft = bytes_of(q);
  MemoryRecording recording;
  recording.append(positions);
  const auto source = recording.open();
  PositionBatch batch;
  REQUIRE(source->read(batch));
  CHECK(batch.tier == Tier::scalar);
  CHECK(batch.target_token_logprob[0] == Approx(std::log(0.5)));
  CHECK(std::isinf(batch.draft_token_logprob[1]));
  positions.space = RowSpace::logits;
  CHECK_THROWS_AS(recording.append(positions), std::invalid_argument);
}

TEST_CASE("what does not go together is refused with what it must be") {
  MemoryRecording recording;
  MemoryPositions piece = rows(two_p, two_q);
  piece.tokens = {0};
  CHECK_THROWS_WITH(recording.append(piece), "append: tokens is 1 long, but must be 2 long, one for each position");
  piece.tokens = {0, 3};
  CHECK_THROWS_WITH(recording.append(piece), "append: tokens is 3, but must be in [0, 2], or -1 where unknown");
  piece.tokens = {0, -1};
  recording.append(piece);
  piece.tokens.clear();
  CHECK_THROWS_WITH(recording.append(piece), "append: tokens is missing, but must be given, as before");
  piece.tokens = {1, 1};
  piece.type = ElementType::f16;
  CHECK_THROWS_WITH(recording.append(piece), "append: type is F16, but must be F32, as before");
  piece.type = ElementType::i32;
  CHECK_THROWS_WITH(recording.append(piece), "append: type is I32, but must be F64, F32, F16 or BF16");
  piece.type = ElementType::f32;
  piece.prompt = {1, 2};
  CHECK_THROWS_WITH(recording.append(piece), "append: prompt is given, but must be missing, as before");
  piece.size = 0;
  CHECK_THROWS_WITH(recording.append(piece), "append: size is 0, but must be at least 1");
}

TEST_CASE("a recording in memory reads as its file does, and names a row that is no distribution") {
  MemoryRecording recording;
  MemoryPositions piece = rows(two_p, two_q);
  piece.tokens = {2, 0};
  piece.prompt = {5, 5};
  piece.task = "code";
  recording.append(piece);
  const specdec::tests::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "trace.safetensors";
  PositionBatch batch;
  const auto source = recording.open();
  TraceWriter writer(path, source->metadata());
  while (source->read(batch)) writer.write(batch);
  writer.finish();
  const std::vector<std::filesystem::path> paths = {path};
  const auto file = open_trace(paths, {});
  REQUIRE(file->read(batch));
  CHECK(batch.size == 2);
  CHECK(batch.token[1] == 0);
  CHECK(batch.prompt[0] == 5);
  CHECK(file->metadata().task_names == std::vector<std::string>{"code"});

  const std::vector<float> wrong = {0.5F, 0.25F, 0.5F}, right = {0.5F, 0.25F, 0.25F};
  MemoryRecording bad;
  bad.append(rows(wrong, right));
  const auto refused = bad.open();
  REQUIRE(refused->read(batch));
  try {
    require_sound_rows(*refused, batch);
    FAIL("a row that sums to 1.25 passed");
  } catch (const FileError& error) {
    CHECK(error.path().empty());
    CHECK(error.field() == "the target's row at position 0");
    CHECK(error.found() == "summing to 1.25");
  }
}
