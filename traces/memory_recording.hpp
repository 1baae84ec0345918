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

/// Consecutive positions that lie in memory: whole rows of both models, or one number of each, of the emitted token.
struct MemoryPositions {
  std::int64_t size = 0;
  /// 0 for one number a position, which is no logit.
  std::int64_t vocab = 0;
  RowSpace space = RowSpace::probabilities;
  /// f64, f32, f16 or bf16, of both models.
  ElementType type = ElementType::f32;
  /// (size, vocab) or (size), row-major; they need not be aligned. Rows of f32, f16 and bf16 are not copied and must
  /// outlive the recording.
  const std::byte* target = nullptr;
  const std::byte* draft = nullptr;
  /// (size), -1 where unknown; empty: all unknown.
  std::vector<std::int64_t> tokens = {};
  /// (size); a sequence is a run of one label, and goes on from the positions before where they end in that label.
  /// Empty: they are one sequence of their own.
  std::vector<std::int64_t> sequences = {};
  /// (size), one for all of a sequence; empty: unknown.
  std::vector<std::int64_t> prompt = {};
  /// Of all of them; empty for none.
  std::string task = {};
};

/// A recording that lies in memory, filled piece by piece and read as often as is liked.
class MemoryRecording {
 public:
  explicit MemoryRecording(TraceMetadata metadata = {});
  ~MemoryRecording();
  MemoryRecording(const MemoryRecording&) = delete;
  MemoryRecording& operator=(const MemoryRecording&) = delete;

  /// @throws std::invalid_argument naming the member if it does not go with the others, or with the positions before:
  ///   all have one vocabulary, space and element type
  void append(MemoryPositions positions);

  std::int64_t positions() const;
  std::int64_t sequences() const;
  /// A reader of what was appended so far, from front to end; valid as long as this object. It has no files, and what
  /// it refuses is an error of a file without a name.
  std::unique_ptr<PositionSource> open() const;

 private:
  struct Piece;
  struct State;
  class Reader;
  std::unique_ptr<State> state_;
};

}  // namespace specdec::traces
