#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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

/// One model's tensors of a shard; null where absent.
struct ModelTensors {
  const Tensor* rows = nullptr;
  RowSpace space = RowSpace::logits;
  double sum_tolerance = 0;
  const Tensor* topk_ids = nullptr;
  const Tensor* topk_logprobs = nullptr;
  const Tensor* tail_logprob = nullptr;
  const Tensor* at_other_topk = nullptr;
  const Tensor* token_logprob = nullptr;
  const Tensor* token_rank = nullptr;

  bool has_topk() const { return topk_ids != nullptr && topk_logprobs != nullptr; }
};

/// The tensors of a shard; null where absent.
struct ShardTensors {
  ModelTensors target;
  ModelTensors draft;
  const Tensor* seq = nullptr;
  const Tensor* pos = nullptr;
  const Tensor* token = nullptr;
  const Tensor* task = nullptr;
  const Tensor* prompt = nullptr;
  const Tensor* step_drafted = nullptr;
  const Tensor* step_accepted = nullptr;
  const Tensor* step_time_ns = nullptr;
  const Tensor* vocab_map = nullptr;
  const Tensor* overlap = nullptr;
  const Tensor* accepted_length = nullptr;
};

/// One file of a trace, mapped, with its own header checked.
class TraceShard {
 public:
  /// @param sink  receives errors in tensors and metadata; if it returns, the tensor is left out
  /// @throws FileError if the container is unreadable
  TraceShard(const std::filesystem::path& path, const ErrorSink& sink);

  const SafetensorsFile& file() const noexcept { return file_; }
  const ShardTensors& tensors() const noexcept { return tensors_; }
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
  ShardTensors tensors_;
  TraceMetadata metadata_;
  bool good_ = true;
  std::optional<std::int64_t> positions_;
  Tier tier_ = Tier::scalar;
  std::vector<std::pair<std::string, std::string>> unread_;
};

}  // namespace specdec::traces
