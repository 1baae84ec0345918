#pragma once

#include "planner/load/capacity.hpp"

namespace specdec::planner {

// A header of the library's own sources; it is not installed.

/// Refuses members outside of the ranges of their options; what is not given is legal.
void require_ranges(const CapacityQuestion& q);

/// What is asked of an acceptance and of a cost that has its drafts, before anything is simulated.
Capacity asked_of_found(const std::optional<Acceptance>& acceptance, const Cost& cost,
                        const CapacityQuestion& question);

/// Adds the sources of the acceptance or of the cost.
void take_sources(const Provenance& from, Capacity& c);
/// Requests accept as the acceptance says, in the estimate and in the worlds.
void take_laws(const Acceptance& acceptance, std::int64_t max_gamma, const std::vector<std::string>& model_names,
               Capacity& c);
/// World i of an alternative has replicate i modulo their number.
void take_replicates(Capacity& c);

}  // namespace specdec::planner
