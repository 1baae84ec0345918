#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "analysis/estimate/tier_conversion.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
#include "cli/usage_error.hpp"
#include "traces/position_source.hpp"
#include "traces/trace_writer.hpp"

namespace specdec::cli {

/// --output TRACE: where a trace is written, and in what pieces.
struct TraceOutput {
  std::optional<std::string> path;
  std::optional<std::int64_t> shard_bytes;
  std::optional<std::int64_t> shard_positions;

  void declare(Options& options);
  /// @throws UsageError if there is none, or if one file is to end in pieces
  void require_path() const;
  /// `how` says the rest.
  /// @throws UsageError if it is one file, and there already
  /// @throws traces::FileError as TraceWriter
  traces::TraceWriter open(const traces::TraceMetadata& metadata, traces::WriterOptions how = {}) const;
  /// Size of the files that were written.
  std::int64_t size_bytes() const;
};

/// --tier and --k: a tier that holds less than the recording does; nothing leaves every position in its own.
struct TierChoice {
  std::string tier = "same";
  std::int64_t k = 64;
  std::int64_t threads = 1;

  std::optional<estimate::ConversionOptions> conversion() const;
};

/// Refuses --k beside another tier than the one that keeps so many tokens. @throws UsageError
void require_k_of_tier(const Options& options, std::string_view tier);

/// The tier of this name: full, topk or scalar.
traces::Tier tier_named(std::string_view name);

struct WrittenTrace {
  std::int64_t positions = 0;
  std::int64_t sequences = 0;
  std::set<std::string> tiers;
};

/// The source has nothing.
class NothingToWrite : public UsageError {
 public:
  using UsageError::UsageError;
};

/// Writes all that the source has, and completes the trace. `progress` is told the shares of a source that knows its
/// positions.
/// @throws NothingToWrite  @throws UsageError if raw rows of reshaped text are to be cut down
/// @throws traces::FileError at the first row or list that is no distribution
WrittenTrace copy_trace(traces::PositionSource& source, traces::TraceWriter& writer,
                        const std::optional<estimate::ConversionOptions>& conversion, const Progress& progress);

/// {"positions", "sequences", "tiers", "size_bytes"} and a line that says the same.
Report report_of(const WrittenTrace& written, const TraceOutput& output);

}  // namespace specdec::cli
