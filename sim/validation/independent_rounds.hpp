#pragma once

#include "sim/validation/compare.hpp"

/// Methods whose rounds depend on no prefix, so that sim/synthetic_rounds.hpp runs them: Algorithm 1 with sampled or
/// greedy drafts and a fixed gamma, on fixed laws or on independent acceptances. Rounds are whole ones, without the end
/// of a text, and the closed form is that of a whole run.
namespace specdec::validation {

/// The largest gamma.
inline constexpr std::int64_t most_independent_drafts = 32;

/// Whether the method is run so on this source.
bool runs_in_rounds(const Method& method, const MethodContext& context);

/// Runs it, and puts its result and its failing to be precise into `compared`.
void run_in_rounds(const Method& method, const MethodContext& context, const ComparisonHooks& hooks,
                   ComparedMethods& compared);

}  // namespace specdec::validation
