#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "traces/position_batch.hpp"

/// Statistics of one pair of recorded distributions, in one pass over the rows as they were stored.
///
/// Probabilities are taken as stored; a row whose sum is further from 1 than sum_tolerance is a fault.
/// Logits and log-probabilities are normalised in double; a row of log-probabilities whose exponentials sum to
/// a value further from 1 than the tolerance is a fault too. Logarithms of -inf, and all up to -9999 as rounded
/// by their type (-9984 in bfloat16), mean probability 0.
/// The two rows may differ in type and in space, need no alignment, and have the same number of tokens.
///
/// A fault is a result, not an exception: only the caller knows which file, tensor and row it is reading.
/// Nothing here depends on the number of threads; the last bits may depend on the machine's vector length.
namespace specdec::core {

enum class RowRole { target, draft };

/// The reason why a row is not a distribution.
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
  /// The first invalid entry; -1 if the row as a whole is invalid.
  std::int64_t index = -1;
  /// The entry as stored, or the row's sum.
  double value = 0;
  /// The largest accepted distance of the sum from 1.
  double tolerance = 0;
};

/// The "found" and "expected" of a message: "NaN at token 17", "a sum of 0.93"; "a sum of 1 within 1e-05". Without the
/// role.
std::string found(const RowFault& fault);
std::string expected(const RowFault& fault);

/// The sum's tolerance: the row's own if it has one, else row_sum_tolerance of the type in which it was stored.
double sum_tolerance(const traces::Row& row);

/// Statistics of one position. p is the target's row, q the draft's; logarithms are natural.
struct RowStatistics {
  /// Sums of the rows as stored: of probabilities, or of the exponentials of log-probabilities; for logits the
  /// logarithm of the sum of their exponentials.
  double target_sum = 0;
  double draft_sum = 0;
  /// beta = sum min(p, q).
  double overlap = 0;
  /// sum max(0, p - q), the normaliser of the residual, and sum max(0, q - p), which is 1 - beta if q sums to 1.
  double missing_mass = 0;
  double rejected_mass = 0;
  double target_entropy = 0;
  /// sum p min(1, q / p)^2; minus overlap^2 it is the variance of a = min(1, q(x) / p(x)) for x drawn from p.
  double acceptance_second_moment = 0;
  /// sum p log(p)^2; minus target_entropy^2 it is the variance of -log p(x) for x drawn from p.
  double surprisal_second_moment = 0;
  /// The most probable token (the lowest in a tie), its probability, and the target's of the draft's.
  std::int64_t target_argmax = 0;
  std::int64_t draft_argmax = 0;
  double target_max = 0;
  double draft_max = 0;
  double target_at_draft_argmax = 0;
  /// log p and log q of the emitted token, -inf for probability 0; NaN if no token was given.
  double target_token_logprob = 0;
  double draft_token_logprob = 0;
};

/// Statistics of one position and one lenience l; see theory/lenience.hpp.
struct LenienceStatistics {
  /// alpha_l = sum min(p / l, q).
  double alpha = 0;
  /// Total variation distance of the drafted token's law from p: with the strict residual norm(max(0, p - q)),
  /// alpha_l - alpha_1 without its cancellation; and with norm(max(0, p - l q)) in its place.
  double distance_strict = 0;
  double distance_lenient = 0;
};

/// The fate of drafted tokens to which the draft gave about the same probability, at one position.
///
///   drafted = sum q(x),   confidence = sum q(x)^2,   accepted = sum min(p(x), q(x))
///
/// over the tokens x of one bin of q(x): the probability that a token of the bin is drafted, that times its mean q(x),
/// and the probability that it is drafted and accepted by rejection sampling.
struct DraftConfidence {
  double drafted = 0;
  double confidence = 0;
  double accepted = 0;
};

/// Working memory of one thread, reused from row to row; it grows to the largest vocabulary seen.
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

/// Computes all of RowStatistics.
/// @param token  the emitted token, or -1 if there is none
/// @return the first fault, the target's row checked before the draft's; `out` is then unspecified
/// @throws std::invalid_argument if the rows differ in vocabulary, are empty, or have a type that is not F32, F16, BF16
/// @throws std::domain_error if token is not in [-1, vocab)
/// Accuracy: against exact sums over the stored values, for rows in F32, F16 or BF16 of up to 262144 tokens: masses and
///   the entropy relative 1e-6; second moments relative 1e-5 or absolute 1e-12; single probabilities and logarithms
///   exact. For a row of logarithms the exponentials are computed in single precision: the masses of close pairs are
///   then good to absolute 1e-7, single probabilities and logarithms to 2e-7
[[nodiscard]] std::optional<RowFault> row_statistics(const traces::TargetRow& target, const traces::DraftRow& draft,
                                                     std::int64_t token, RowScratch& scratch, RowStatistics& out);

/// LenienceStatistics of several l at once. Shape: leniences, out (count)
/// @param leniences  each in (0, 1]
/// @return as row_statistics
/// @throws std::invalid_argument, besides those of row_statistics, if `out` has another length
/// @throws std::domain_error if a lenience is outside (0, 1]
/// Accuracy: relative error <= 1e-6 of alpha and of the strict distance, absolute 1e-7 of the lenient one
[[nodiscard]] std::optional<RowFault> lenience_statistics(const traces::TargetRow& target,
                                                          const traces::DraftRow& draft,
                                                          std::span<const double> leniences, RowScratch& scratch,
                                                          std::span<LenienceStatistics> out);

/// Sorts the tokens of one position into equal bins of q(x) in [0, 1]; 1 itself belongs to the last bin.
/// Shape: bins (number of bins)
/// @param bins  overwritten; the sums over them are those of q, of q^2 and of min(p, q)
/// @return as row_statistics
/// @throws std::invalid_argument, besides those of row_statistics, if there are no bins
/// Accuracy: relative error <= 1e-6 of every sum; the bin of a token is decided in double
[[nodiscard]] std::optional<RowFault> draft_confidence(const traces::TargetRow& target, const traces::DraftRow& draft,
                                                       RowScratch& scratch, std::span<DraftConfidence> bins);

/// The row as probabilities in double; logits and log-probabilities normalised, probabilities as stored.
/// Shape: out (vocab)
/// @return as row_statistics
/// @throws std::invalid_argument if `out` has another length or the type is not F32, F16 or BF16
[[nodiscard]] std::optional<RowFault> read_probabilities(const traces::Row& row, RowRole role, std::span<double> out);

/// A draft's row over a reduced vocabulary, spread over the target's: column i becomes token map[i]; all other tokens
/// have probability 0. The result lies in `scratch` until its next use for a reduced row.
/// Shape: map (draft.vocab), distinct tokens in [0, vocab)
/// @throws std::invalid_argument if the map's length differs from the row's
/// @throws std::domain_error naming the column if an entry is outside [0, vocab)
traces::DraftRow spread_over_vocabulary(const traces::DraftRow& draft, std::span<const std::int32_t> map,
                                        std::int64_t vocab, RowScratch& scratch);

}  // namespace specdec::core
