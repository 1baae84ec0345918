#pragma once

#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// A header of the library's own sources; it is not installed.

enum class InvariantChecks { no, yes };

/// simulate_serving(), with the invariants of every iteration checked or not; simulate_serving() checks them in debug
/// builds.
///
///   blocks       those of running requests and the free ones are all there are; none holds fewer than its tokens need
///   positions    never more than max_num_batched_tokens, requests that run never more than max_num_seqs
///   requests     each is yet to come, waits, runs or is served, and only one of these; in order of arrival
///   tokens       a request's cache holds its prompt and what it put out, but for the last token; at the end all it
///   asked
///                for was put out, all blocks are free, and Little's law holds for the whole run
///   time         never goes back
///
/// @throws std::logic_error if one does not hold, and what simulate_serving() throws
ServingResult simulate_serving(const ServingQuestion& question, InvariantChecks checks);

/// The run alone, for a question whose values are legal: no percentiles.
ServingResult run_serving(const ServingQuestion& question, InvariantChecks checks);

}  // namespace specdec::sim
