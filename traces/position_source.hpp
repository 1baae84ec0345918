#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/note.hpp"
#include "traces/position_batch.hpp"
#include "traces/trace_metadata.hpp"

namespace specdec::traces {

/// The model that a row belongs to.
enum class Role { target, draft };

/// PositionSource::depths() of accepted lengths.
inline constexpr std::int64_t every_depth = std::numeric_limits<std::int64_t>::max();

/// What files of arrays, of token pairs or of position traces leave open.
struct ArrayNames {
  /// The kind of the numbers, if the names do not state it; arrays named `p` and `q` alone hold probabilities.
  std::optional<RowSpace> space;
  /// Names of the two arrays or columns, if they differ from the usual ones or there are several. For position traces,
  /// draft_array is the draft's `acc_...` object, with or without its "acc_"; required if a file has several.
  std::string target_array;
  std::string draft_array;
};

/// A recording, read once from front to end in bounded memory, whatever its file format.
class PositionSource {
 public:
  virtual ~PositionSource() = default;

  /// Known as soon as the source is open; only task_names may grow while reading, so that text formats need not be
  /// read twice. The names of all task ids in a batch are known when read() returns it.
  virtual const TraceMetadata& metadata() const = 0;
  /// The files it reads, in order.
  virtual std::vector<std::filesystem::path> files() const = 0;
  /// The name of the format, for instance "specdec-trace" or "llama.cpp logits".
  virtual std::string format() const = 0;
  /// Complete once read() has returned false.
  virtual std::vector<Note> notes() const { return {}; }
  /// The total number of positions, if known before the end.
  virtual std::optional<std::int64_t> positions() const { return std::nullopt; }
  /// The most depths of its scalar batches, or every_depth if some batches are of accepted lengths, which tell of all;
  /// known as soon as the source is open.
  virtual std::int64_t depths() const { return 1; }

  /// Reads the next positions, at least one; false at the end. The previous contents of `batch` become invalid.
  /// @throws FileError
  virtual bool read(PositionBatch& batch) = 0;

  /// The error for unusable numbers of a model at a position, for code that reads the rows and finds that they
  /// do not sum to 1 or hold NaN: `throw source.refusal(batch.first + i, Role::draft, "summing to 0.8", "summing to
  /// 1")`. Names the file and, if the format has them, the tensor and row or the line. `position` must lie in the
  /// batch that was read last.
  virtual FileError refusal(std::int64_t position, Role role, std::string found, std::string expected) const;
};

}  // namespace specdec::traces
