#pragma once

#include "sim/drafting.hpp"

/// Rules of engines for the length of drafts. Each keeps the text's law. For fixed gamma use a default
/// DraftingPolicy; gamma by batch is a table of fixed ones (sim/serving/serving_simulation.hpp).
namespace specdec::sim {

/// Ends a round after the first draft whose probability under the draft, or the product of those of the round, is
/// below a threshold; 0 never does.
///
/// Source:   docs/reference/methods.md#thresholds
/// @param token_threshold, product_threshold  [0, 1]
/// @throws std::domain_error if a threshold is out of range
DraftingPolicy threshold_policy(double token_threshold, double product_threshold = 0);

/// Ends a round if the draft's most probable token has less probability than `least`, without proposing it.
///
/// Source:   docs/reference/methods.md#thresholds
/// @param least  [0, 1]
/// @throws std::domain_error if it is out of range
DraftingPolicy confidence_policy(double least);

/// Two tokens more after a round in which every draft was accepted, one less, but at least 1, after any other.
///
///   gamma <- gamma + 2 if accepted = drafted, else max(1, gamma - 1)
///
/// Source:   docs/reference/methods.md#feedback (the "heuristic" schedule of Transformers)
DraftingPolicy feedback_policy();

}  // namespace specdec::sim
