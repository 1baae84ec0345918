#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/core/standardisation.hpp"
#include "sim/model_factory.hpp"
#include "traces/position_batch.hpp"
#include "traces/trace_metadata.hpp"

namespace specdec::sim {

struct RecordingOptions {
  /// The sampling settings of both models.
  core::Standardisation standardisation;
  /// full, top_k or scalar.
  traces::Tier tier = traces::Tier::full;
  /// Tokens kept of each distribution in the top-k tier, >= 1.
  std::int64_t k = 64;
  /// Sequence s continues prompt s mod (number of prompts).
  std::int64_t sequences = 1;
  /// Tokens of each sequence at most, >= 1.
  std::int64_t max_new_tokens = 128;
  /// Ends a sequence that writes it; it is recorded, too.
  std::optional<Token> end_token = {};
  std::uint64_t seed = 1;
  /// Number of sequences processed together; the recording does not depend on it.
  std::int64_t threads = 1;
};

/// The tasks of the prompts in order of first occurrence: the task ids of the recording.
std::vector<std::string> tasks_of(std::span<const Prompt> prompts);

/// The metadata of the recording. Full rows are those of the models, raw; the reader reshapes them by temperature,
/// top_k, top_p and min_p. The other tiers hold the reshaped distributions, processed, since the normaliser of a
/// reshaped distribution cannot be computed from a part of it.
traces::TraceMetadata recording_metadata(std::span<const Prompt> prompts, std::int64_t vocab,
                                         const RecordingOptions& options);

/// Generates texts from the target alone and records both models' distributions before every token: probabilities in
/// f32. The text is sampled from the row as it is stored, so that a recording's text has exactly the law that the
/// recording states.
///
/// @param first     the first sequence; earlier ones are not generated
/// @param consume   receives each sequence from `first` on, in order. The batch's sequence, place, token, task, prompt
///                  and the columns of its tier are filled in.
/// @throws std::domain_error if an option is out of range or a prompt does not fit into a model; anything models throw
void record_texts(const ModelPair& models, std::span<const Prompt> prompts, const RecordingOptions& options,
                  std::int64_t first, const std::function<void(const traces::PositionBatch& batch)>& consume);

}  // namespace specdec::sim
