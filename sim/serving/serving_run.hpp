#pragma once

#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

enum class InvariantChecks { no, yes };

/// simulate_serving(), with or without checks of the invariants of every iteration; simulate_serving() checks them in
/// debug builds.
///
///   blocks       those of running requests and the free ones add up to all; none holds fewer than its tokens need
///   positions    never more than max_num_batched_tokens; running requests never more than max_num_seqs
///   requests     each is pending, waiting, running or served, and only one of these; in order of arrival
///   tokens       a request's cache holds its prompt and its output except the last token; at the end all requested
///   tokens
///                were emitted, all blocks are free, and Little's law holds for the whole run
///   time         never decreases
///
/// @throws std::logic_error if one does not hold, and anything that simulate_serving() throws
ServingResult simulate_serving(const ServingQuestion& question, InvariantChecks checks);

/// The run alone, for a question with valid values: no percentiles.
ServingResult run_serving(const ServingQuestion& question, InvariantChecks checks);

}  // namespace specdec::sim
