#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/safetensors.hpp"
#include "traces/position_batch.hpp"
#include "traces/trace_columns.hpp"
#include "traces/trace_metadata.hpp"

namespace specdec::traces {

/// Handles an inconsistency: throws it, or stores it so that reading goes on.
using ErrorSink = std::function<void(const FileError&)>;

/// The whole rows of one model in a shard; the tensor is null where there are none.
struct ShardRows {
  const Tensor* tensor = nullptr;
  RowSpace space = RowSpace::logits;
  double sum_tolerance = 0;
};

/// One file of a trace, mapped, with its own header checked.
class TraceShard {
 public:
  /// @param sink  receives errors in tensors and metadata; if it returns, the tensor is left out
  /// @throws FileError if the container is unreadable
  TraceShard(const std::filesystem::path& path, const ErrorSink& sink);

  const SafetensorsFile& file() const noexcept { return file_; }
  const ShardRows& target_rows() const noexcept { return target_rows_; }
  const ShardRows& draft_rows() const noexcept { return draft_rows_; }
  /// A tensor other than whole rows, null if it is absent or not read.
  const Tensor* find(const char* name) const;
  const TraceMetadata& metadata() const noexcept { return metadata_; }
  /// False if the sink received anything: then nothing else may be used.
  bool good() const noexcept { return good_; }

  std::int64_t positions() const noexcept { return positions_.value_or(0); }
  Tier tier() const noexcept { return tier_; }
  /// The columns of the target's rows; none in the other tiers.
  std::optional<std::int64_t> vocab() const;
  /// Tensors that are not read, each with the reason.
  const std::vector<std::pair<std::string, std::string>>& unread() const noexcept { return unread_; }

 private:
  class Binder;

  SafetensorsFile file_;
  ShardRows target_rows_, draft_rows_;
  std::map<std::string_view, const Tensor*> read_;
  TraceMetadata metadata_;
  bool good_ = true;
  std::optional<std::int64_t> positions_;
  Tier tier_ = Tier::scalar;
  std::vector<std::pair<std::string, std::string>> unread_;
};

}  // namespace specdec::traces
