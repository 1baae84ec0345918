#pragma once

#include <span>

namespace specdec::core {

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

/// Sorts the tokens of one position into equal bins of q(x) in [0, 1]; 1 itself belongs to the last one.
///
/// Shape: target, draft (vocab), bins (number of bins)
/// @param target, draft  p and q, each entry in [0, 1] but for rounding
/// @param bins           overwritten; the sums over them are those of q, of q^2 and of min(p, q)
/// @throws std::invalid_argument if the rows differ in length or there are no bins
void draft_confidence(std::span<const double> target, std::span<const double> draft, std::span<DraftConfidence> bins);

}  // namespace specdec::core
