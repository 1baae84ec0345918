#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "analysis/cost/round_cost.hpp"

namespace specdec::cost {

/// The contents of one iteration of a serving engine: rounds of the sequences that decode, and pieces of prompts.
struct Iteration {
  /// Sequences that decode, >= 0, and the tokens they draft each. Where prompts are computed and the draft is to
  /// compute them too, gamma > 0, even if no sequence decodes.
  double sequences = 0;
  std::int64_t gamma = 0;
  /// Drafts that the target verifies, summed over the sequences, [0, sequences gamma]; all of them if empty.
  std::optional<double> verified = {};
  /// Tokens in their caches, summed over them, >= 0.
  double context_tokens = 0;
  /// Positions of prompts computed beside them, >= 0.
  double prompt_tokens = 0;
  /// Sequences that these belong to, >= 0; above 0 where there are any.
  double prompts = 0;
  /// (position of a prompt, position that it attends to) pairs, summed, >= 0.
  double prompt_pairs = 0;
  /// As in RoundPoint.
  double full_accepts = 0;

  /// Positions of the target's pass over them.
  double decoded_positions() const {
    return verified ? sequences + *verified : sequences * (static_cast<double>(gamma) + 1);
  }
};

/// Anything that prices whole iterations, prompts included. Immutable; may be called from several threads.
class IterationCost {
 public:
  virtual ~IterationCost() = default;
  /// Seconds; finite and > 0 for an iteration that holds anything.
  /// @throws std::domain_error if a value is outside its range
  double seconds(const Iteration& iteration) const { return price(0, iteration); }
  /// The error of the cost, as in RoundCost.
  virtual std::size_t replicates() const { return 0; }
  /// The same by the number of a version, as in RoundCost.
  virtual double price(std::size_t version, const Iteration& iteration) const = 0;
};

/// Throws std::domain_error unless gamma and all counts are >= 0 and finite, no more is verified than drafted,
/// positions of prompts belong to some and full_accepts is in [0, 1].
void require_legal(const Iteration& iteration);

/// Iterations by a provider of rounds that knows seconds; a plain iteration is a round of gamma = 0. If drafts are not
/// all verified, the target's part is that of so many drafts of each sequence, linear between whole numbers, which
/// takes a provider that knows a round's parts. Prices of a provider with replicates are interpolated between nodes,
/// four to a doubling of the batch, to 1%.
/// Source:   docs/theory.md#cost-of-an-iteration
/// @param prompt_tokens_per_second  positions of prompts, > 0; without it a prompt's positions are priced as further
///   positions of the same pass,
///
///     target(sequences (gamma + 1) + prompt_tokens positions) - target(sequences (gamma + 1) positions) >= 0,
///
///   the target's pass over n positions being a plain round of n sequences that share the same cache. What the draft
///   does with a prompt is not known and not priced.
/// @throws std::invalid_argument if rounds is null or its times are no seconds
/// @throws std::domain_error if prompt_tokens_per_second is outside its range
std::unique_ptr<IterationCost> iterations_of(std::shared_ptr<const RoundCost> rounds,
                                             std::optional<double> prompt_tokens_per_second = {});

}  // namespace specdec::cost
