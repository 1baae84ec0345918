#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "traces/formats/safetensors.hpp"

namespace specdec::traces {

/// The part of the two distributions that was recorded.
enum class Tier {
  full,             ///< every token's probability
  top_k,            ///< the most probable tokens and possibly the tail's mass
  scalar,           ///< two numbers per token
  accepted_length,  ///< only how many tokens a round from here would emit
};
constexpr Tier last_enumerator(Tier) { return Tier::accepted_length; }

/// "full", "topk", "scalar" or "accepted_length".
std::string_view name_of(Tier tier);

/// The kind of the numbers of a row.
enum class RowSpace { probabilities, log_probabilities, logits };

/// Largest distance from 1 of the sum of a stored distribution, by the type of its numbers: rounding, not an error.
double row_sum_tolerance(ElementType type);

/// Formats whose rows must be decoded into memory reject larger vocabularies, so that a row stays within bounds.
inline constexpr std::int64_t largest_decoded_vocab = std::int64_t{1} << 24U;

/// One whole next-token distribution as it was stored: `vocab` numbers of `type` (F32, F16 or BF16) that need not be
/// aligned. The two roles are types of their own, so that swapping them does not compile.
struct Row {
  RowSpace space = RowSpace::probabilities;
  ElementType type = ElementType::f32;
  std::int64_t vocab = 0;
  const std::byte* data = nullptr;
  double sum_tolerance = 0;
};
struct TargetRow : Row {};
struct DraftRow : Row {};

/// Consecutive rows. Shape: (positions, vocab), row-major.
struct Rows {
  RowSpace space = RowSpace::probabilities;
  ElementType type = ElementType::f32;
  std::int64_t vocab = 0;
  std::span<const std::byte> bytes;
  /// Largest distance from 1 of the sum of a row of (log-)probabilities if the format loses more than the element type
  /// does, as quantised formats do; 0 for the type's own loss.
  double sum_tolerance = 0;

  bool empty() const { return bytes.empty(); }

 protected:
  Row row(std::int64_t i) const {
    return {space, type, vocab, bytes.data() + i * vocab * size_of(type), sum_tolerance};
  }
};
struct TargetRows : Rows {
  TargetRow operator[](std::int64_t i) const { return {row(i)}; }
};
struct DraftRows : Rows {
  DraftRow operator[](std::int64_t i) const { return {row(i)}; }
};

/// The k most probable tokens of each position, natural logarithms. Shape: ids, logprobs (positions, k). The ids are
/// the target's even for a draft of a reduced vocabulary, no id occurs twice in a row, and a row with fewer tokens ends
/// with ids of -1 and a logprob of -infinity. At or below -9999 a logprob means probability 0.
template <template <class> class Column>
struct TopKOf {
  std::int64_t k = 0;
  Column<std::int32_t> ids;
  Column<float> logprobs;
  /// (positions); the log of all other tokens' mass, NaN if unknown; empty if never recorded.
  Column<float> tail_logprob;
  /// This model's log-probabilities at the OTHER model's top tokens, (positions, k of the other); may be empty.
  Column<float> at_other;

  bool empty() const { return k == 0; }
};

/// Consecutive positions of a trace without whole rows, as columns. A column that was not recorded is empty.
template <template <class> class Column>
struct PositionsOf {
  /// Number of the first position, counted over the whole trace.
  std::int64_t first = 0;
  std::int64_t size = 0;
  Tier tier = Tier::scalar;

  /// Sequences are numbered 0, 1, 2, ... in reading order; never empty. A sequence may continue in the next batch.
  Column<std::int64_t> sequence;
  /// Place within the sequence; never empty, and rises by one within a sequence.
  Column<std::int64_t> place;
  /// The emitted token, -1 if unknown.
  Column<std::int32_t> token;
  /// Index into TraceMetadata::task_names, -1 for none.
  Column<std::int32_t> task;
  /// The prompt that the sequence continues, no_prompt if unknown; one for all of a sequence. Texts of one prompt
  /// are not independent observations.
  Column<std::int64_t> prompt;

  /// Top-k tier.
  TopKOf<Column> target_top_k, draft_top_k;

  /// Scalar tier; these may accompany the richer tiers too.
  Column<float> target_token_logprob;
  /// (positions, depths): column j is the draft's log-probability at depth j + 1 of its round; NaN if the sequence
  /// has fewer than j positions before it.
  Column<float> draft_token_logprob;
  std::int64_t depths = 1;
  /// sum min(p, q) as recorded, NaN if unknown.
  Column<float> overlap;
  /// Rank of the emitted token, 1 = argmax, 0 if unknown.
  Column<std::int32_t> target_token_rank, draft_token_rank;

  /// Recorded rounds: drafted and accepted tokens of the round that begins here, -1 inside a round.
  Column<std::int32_t> step_drafted, step_accepted;
  Column<std::int64_t> step_time_ns;

  /// Accepted-length tier: tokens that a round from here would emit, its own correction included, >= 1.
  Column<std::int32_t> accepted_length;
};

template <class Value>
using ColumnView = std::span<const Value>;
using TopK = TopKOf<ColumnView>;

/// Everything is a view that the source owns, valid until the next read.
struct PositionBatch : PositionsOf<ColumnView> {
  /// Full tier. draft_rows may be over a reduced vocabulary: column i is then the token draft_vocab_map[i].
  TargetRows target_rows;
  DraftRows draft_rows;
  std::span<const std::int32_t> draft_vocab_map;
};

}  // namespace specdec::traces
