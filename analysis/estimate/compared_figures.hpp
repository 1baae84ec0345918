#pragma once

#include <cstdint>
#include <optional>

#include "analysis/estimate/unit_counts.hpp"
#include "traces/serving/serving_counts.hpp"

/// All figures that a source has of one quantity, held against each other. Internal to analysis/estimate.
namespace specdec::estimate {

/// Holds what the counts say of tokens per step and of output tokens/s against every other figure of the same unit:
/// ServingCounts::stated, a benchmark's totals, and what drafts of `gamma` tokens allow. Ranges that do not meet are the
/// warning figures_contradict, with both figures.
/// @throws traces::FileError with both figures where one is impossible: more tokens per step than the drafts and one,
///         or fewer tokens than rounds
void compare_figures(const traces::ServingCounts& counts, const UnitCounts& unit, std::optional<std::int64_t> gamma,
                     const WarnOfUnit& warn);

}  // namespace specdec::estimate
