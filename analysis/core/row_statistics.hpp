#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "traces/position_batch.hpp"

/// What one pair of recorded distributions says, in one pass over the rows as they were stored.
///
/// Probabilities are taken as stored; a row whose sum is further from 1 than sum_tolerance is a fault.
/// Logits and log-probabilities are normalised in double; a row of log-probabilities whose exponentials sum to
/// something further from 1 than the tolerance is a fault too. Of logarithms, -inf and everything up to -9999 in its
/// type's rounding (bfloat16 makes it -9984) means probability 0.
/// The two rows may differ in type and in space, need no alignment, and have the same number of tokens.
///
/// A fault is a result, not an exception: only the caller knows which file, tensor and row it is looking at.
/// Nothing here depends on the number of threads; the last bits may depend on the machine's vector length.
namespace specdec::core {

enum class RowRole { target, draft };

/// Why a row is no distribution.
struct RowFault {
  enum class Kind {
    not_a_number,  ///< NaN
    infinite,      ///< +inf, or -inf as a probability
    negative,      ///< a probability below 0
    no_mass,       ///< every token has probability 0
    sum,           ///< the sum is beyond the tolerance of the row's type
  };
  Kind kind = Kind::sum;
  RowRole role = RowRole::target;
  /// The first entry that is wrong, -1 where the row as a whole is.
  std::int64_t index = -1;
  /// The entry as stored, or the row's sum.
  double value = 0;
  /// How far from 1 the sum may be.
  double tolerance = 0;
};

/// For a message's "found" and "expected": "NaN at token 17", "a sum of 0.93"; "a sum of 1 within 1e-05". Without the
/// role.
std::string found(const RowFault& fault);
std::string expected(const RowFault& fault);

/// The sum's tolerance: the row's own where it has one, else row_sum_tolerance of the type in which it was stored.
double sum_tolerance(const traces::Row& row);

/// Of one position. p is the target's row, q the draft's; logarithms are natural.
struct RowStatistics {
  /// Sums of the rows as stored: of probabilities, or of the exponentials of log-probabilities; for logits the
  /// logarithm of the sum of their exponentials.
  double target_sum = 0;
  double draft_sum = 0;
  /// beta = sum min(p, q).
  double overlap = 0;
  /// sum max(0, p - q), what the residual is normalised by, and sum max(0, q - p) = 1 - beta where q sums to 1.
  double missing_mass = 0;
  double rejected_mass = 0;
  double target_entropy = 0;
  double draft_entropy = 0;
  /// sum p log(p / q), infinite where a token has q = 0 < p; and the other way round.
  double kl_target_draft = 0;
  double kl_draft_target = 0;
  /// sum p min(1, q / p)^2, so that this less overlap^2 is the variance of a = min(1, q(x) / p(x)) for x from p.
  double acceptance_second_moment = 0;
  /// sum p log(p)^2, so that this less target_entropy^2 is the variance of -log p(x) for x from p.
  double surprisal_second_moment = 0;
  /// The most probable token, the lowest of ties, its probability, and the other model's probability of it.
  std::int64_t target_argmax = 0;
  std::int64_t draft_argmax = 0;
  double target_max = 0;
  double draft_max = 0;
  double target_at_draft_argmax = 0;
  double draft_at_target_argmax = 0;
  /// log p and log q of the emitted token, -inf for probability 0; NaN where no token was given.
  double target_token_logprob = 0;
  double draft_token_logprob = 0;
};

/// Of one position and one lenience l; see theory/lenience.hpp.
struct LenienceStatistics {
  /// alpha_l = sum min(p / l, q).
  double alpha = 0;
  /// Total variation distance of the drafted token's law from p where the strict residual norm(max(0, p - q)) is kept,
  /// alpha_l - alpha_1 without its cancellation; and where norm(max(0, p - l q)) replaces it.
  double distance_strict = 0;
  double distance_lenient = 0;
};

/// What becomes of drafted tokens to which the draft gave about the same probability, at one position.
///
///   drafted = sum q(x),   confidence = sum q(x)^2,   accepted = sum min(p(x), q(x))
///
/// over the tokens x of one bin of q(x): the chance that a token of the bin is drafted, that times its mean q(x), and
/// the chance that it is drafted and accepted by rejection sampling.
struct DraftConfidence {
  double drafted = 0;
  double confidence = 0;
  double accepted = 0;
};

/// Working memory of one thread, reused from row to row; grows to the largest vocabulary seen.
class RowScratch {
 public:
  RowScratch();
  ~RowScratch();
  RowScratch(RowScratch&&) noexcept;
  RowScratch& operator=(RowScratch&&) noexcept;

  struct Buffers;
  Buffers& buffers() { return *buffers_; }

 private:
  std::unique_ptr<Buffers> buffers_;
};

/// All of RowStatistics.
/// @param token  the emitted token, or -1 for none
/// @return the first fault, the target's row before the draft's; `out` is then unspecified
/// @throws std::invalid_argument if the rows differ in vocabulary, have none, or have a type that is not F32, F16, BF16
/// @throws std::domain_error if token is not in [-1, vocab)
/// Accuracy: against exact sums over the stored values, for rows in F32, F16 or BF16 of up to 262144 tokens: masses and
///   entropies relative 1e-6; divergences to the larger of relative 1e-6 and 1e-7 nats; second moments relative 1e-5 or
///   absolute 1e-12; single probabilities and logarithms exact. Where a row holds logarithms their exponentials are
///   computed in single precision: the masses of close pairs are then good to absolute 1e-7, single probabilities and
///   logarithms to 2e-7
[[nodiscard]] std::optional<RowFault> row_statistics(const traces::TargetRow& target, const traces::DraftRow& draft,
                                                     std::int64_t token, RowScratch& scratch, RowStatistics& out);

/// What is left when only beta is wanted; reads half-precision rows at nearly twice the speed.
struct RowOverlap {
  double target_sum = 0;
  double draft_sum = 0;
  double overlap = 0;
};

/// The same values and faults as row_statistics gives.
/// @throws as row_statistics
[[nodiscard]] std::optional<RowFault> row_overlap(const traces::TargetRow& target, const traces::DraftRow& draft,
                                                  RowScratch& scratch, RowOverlap& out);

/// For several l at once. Shape: leniences, out (count)
/// @param leniences  each in (0, 1]
/// @return as row_statistics
/// @throws std::invalid_argument, besides those of row_statistics, if `out` has another length
/// @throws std::domain_error if a lenience is outside (0, 1]
/// Accuracy: relative error <= 1e-6 of alpha and of the strict distance, absolute 1e-7 of the lenient one
[[nodiscard]] std::optional<RowFault> lenience_statistics(const traces::TargetRow& target,
                                                          const traces::DraftRow& draft,
                                                          std::span<const double> leniences, RowScratch& scratch,
                                                          std::span<LenienceStatistics> out);

/// Sorts the tokens of one position into equal bins of q(x) in [0, 1]; 1 itself belongs to the last one.
/// Shape: bins (number of bins)
/// @param bins  overwritten; the sums over them are those of q, of q^2 and of min(p, q)
/// @return as row_statistics
/// @throws std::invalid_argument, besides those of row_statistics, if there are no bins
/// Accuracy: relative error <= 1e-6 of every sum; which bin a token belongs to is decided in double
[[nodiscard]] std::optional<RowFault> draft_confidence(const traces::TargetRow& target, const traces::DraftRow& draft,
                                                       RowScratch& scratch, std::span<DraftConfidence> bins);

/// The row as probabilities in double; logits and log-probabilities normalised, probabilities as stored.
/// Shape: out (vocab)
/// @return as row_statistics
/// @throws std::invalid_argument if `out` has another length or the type is none of F32, F16, BF16
[[nodiscard]] std::optional<RowFault> read_probabilities(const traces::Row& row, RowRole role, std::span<double> out);

/// A draft's row over a reduced vocabulary, spread over the target's: column i becomes token map[i], all other tokens
/// have probability 0. The result lies in `scratch` until its next use for a reduced row.
/// Shape: map (draft.vocab), distinct tokens in [0, vocab)
/// @throws std::invalid_argument if the map has another length than the row
/// @throws std::domain_error naming the column if an entry is outside [0, vocab)
traces::DraftRow spread_over_vocabulary(const traces::DraftRow& draft, std::span<const std::int32_t> map,
                                        std::int64_t vocab, RowScratch& scratch);

}  // namespace specdec::core
