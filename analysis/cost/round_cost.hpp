#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// What a round of speculative decoding costs: seconds from measurements, or multiples of a plain target step.
namespace specdec::cost {

/// How the drafts of a round are made, which decides what they cost.
enum class DraftKind {
  model,     ///< gamma passes of a draft model
  eagle,     ///< gamma passes of one decoder layer of the target's width, with its own keys and values
  mtp,       ///< gamma passes of the next-token module and the target's head
  parallel,  ///< one pass whatever gamma (PARD, DFlash, Medusa)
  ngram,     ///< no model: overhead only
};

/// Where the cost of a round is asked for.
struct RoundPoint {
  /// Drafted tokens per sequence, >= 0; 0 is plain decoding: one target position, no draft.
  std::int64_t gamma = 0;
  /// Sequences decoded together, > 0; the mean of a server need not be whole.
  double batch = 1;
  /// Tokens already in the cache per sequence, >= 0.
  double context = 0;
  /// Share of the rounds that follow a fully accepted one and so begin with one more draft token, [0, 1].
  double full_accepts = 0;
};

/// Parts of a round, each >= 0; in seconds, or in target steps where the provider knows no seconds.
struct RoundTime {
  double target = 0;
  double draft = 0;
  double overhead = 0;

  double total() const { return target + draft + overhead; }
};

/// Anything that prices rounds:
///
///   round(gamma, batch, context) = target(gamma + 1 positions per sequence) + draft(gamma) + overhead
///
/// A provider is immutable; all functions may be called from several threads.
class RoundCost {
 public:
  virtual ~RoundCost() = default;

  /// "constant", "measured", "fitted", ...
  virtual std::string_view name() const = 0;
  /// False where times are multiples of a plain target step at the same batch and context.
  virtual bool in_seconds() const = 0;

  /// @throws std::domain_error if a value of the point is outside its range, or where the provider refuses to
  ///   extrapolate (the message says the measured range)
  virtual RoundTime round(const RoundPoint& point) const = 0;
  /// True where the point lies outside what was measured.
  virtual bool extrapolates(const RoundPoint& point) const = 0;

  /// The error of the cost as equally likely versions of it (resampled measurements, splits that fit equally well);
  /// 0 where it is taken as exact.
  virtual std::size_t replicates() const { return 0; }
  /// The same as round() in one of them; index < replicates().
  virtual RoundTime round_of_replicate(std::size_t index, const RoundPoint& point) const = 0;
};

}  // namespace specdec::cost
