#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "traces/formats/safetensors.hpp"
#include "traces/position_batch.hpp"
#include "traces/position_source.hpp"
#include "traces/prompt_id.hpp"
#include "traces/trace_metadata.hpp"

namespace specdec::traces {

/// Consecutive positions in memory: whole rows of both models, or one number of each for the emitted token.
struct MemoryPositions {
  std::int64_t size = 0;
  /// 0 for one number per position, which must not be a logit.
  std::int64_t vocab = 0;
  RowSpace space = RowSpace::probabilities;
  /// f64, f32, f16 or bf16, for both models.
  ElementType type = ElementType::f32;
  /// (size, vocab) or (size), row-major; they need not be aligned. Rows of f32, f16 and bf16 are not copied and must
  /// outlive the recording.
  const std::byte* target = nullptr;
  const std::byte* draft = nullptr;
  /// (size), -1 if unknown; empty if all are unknown.
  std::vector<std::int64_t> tokens = {};
  /// (size); a sequence is a run of one label, and continues the preceding positions if they end in that label.
  /// Empty: they are one sequence of their own.
  std::vector<std::int64_t> sequences = {};
  /// (size), one for all of a sequence; empty if unknown.
  std::vector<std::int64_t> prompt = {};
  /// The task of all of them; empty for none.
  std::string task = {};
};

/// A recording in memory, filled piece by piece and read any number of times.
class MemoryRecording {
 public:
  explicit MemoryRecording(TraceMetadata metadata = {});
  ~MemoryRecording();
  MemoryRecording(const MemoryRecording&) = delete;
  MemoryRecording& operator=(const MemoryRecording&) = delete;

  /// @throws std::invalid_argument naming the member if it does not match the others, or the positions before:
  ///   all have one vocabulary, space and element type
  void append(MemoryPositions positions);

  std::int64_t positions() const;
  std::int64_t sequences() const;
  /// A reader of everything appended so far, from front to end; valid as long as this object. It has no files, and its
  /// errors are those of a file without a name.
  std::unique_ptr<PositionSource> open() const;

 private:
  struct Piece;
  struct State;
  class Reader;
  std::unique_ptr<State> state_;
};

}  // namespace specdec::traces
