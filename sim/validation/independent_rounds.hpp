#pragma once

#include <cstdint>
#include <vector>

#include "analysis/core/run_hooks.hpp"
#include "sim/validation/compare.hpp"
#include "traces/sharded_recording.hpp"

/// Methods whose rounds do not depend on the prefix, so that sim/synthetic_rounds.hpp runs them: Algorithm 1 with
/// sampled or greedy drafts and a fixed gamma, on fixed laws or with independent acceptances. Rounds are whole ones,
/// not cut by the end of a text, and the closed form is that of a whole run.
namespace specdec::validation {

/// The largest gamma.
inline constexpr std::int64_t most_independent_drafts = 32;

/// True if the method is run this way on this source.
bool runs_in_rounds(const Method& method, const MethodContext& context);

/// Rounds of a share of its sequences that accepted n drafts, for each n. Shape: (gamma + 1)
std::vector<std::int64_t> count_rounds(const Method& method, const MethodContext& context, const traces::Shard& shard,
                                       const core::RunHooks& hooks);
/// The result of such counts; nothing is stored if there are none.
void add_rounds(const Method& method, const MethodContext& context, const std::vector<std::int64_t>& accepted_counts,
                ComparedMethods& compared);

/// Runs it, and stores its result and any lack of precision in `compared`.
void run_in_rounds(const Method& method, const MethodContext& context, const core::RunHooks& hooks,
                   ComparedMethods& compared);

}  // namespace specdec::validation
