#pragma once

#include <string>

#include "analysis/core/run_hooks.hpp"
#include "sim/validation/compare.hpp"

/// Methods replayed over a recorded text of the target. Its token x, taken as a draft, is accepted with probability
///
///   algorithm1     min(1, q(x) / p(x))
///   greedy-draft   1 if x = argmax q, else 0
///   matching       q(x)
///   rejection      min over y of q(y) / p(y): needs whole rows
///
/// independently given the text, so that the rounds over it have the method's law. The policy confidence needs the
/// draft's largest probability: from a position at which that is below the threshold nothing is accepted. All other
/// methods need what no recording holds, other drafts or the text that other rules would have made.
///
/// Policies that decide for a batch (PolicyKind::batch_rule) decode `settings.batch` texts together, in the order of
/// the recording, and cost a round in plain steps of the same batch: c a drafted token, v(1 + verified drafts / texts)
/// for the target. They hold the whole recording in memory, have no closed form, and their intervals take
/// prompts as independent whose texts share rounds.
///
/// The independent units of intervals are prompts, or texts whose prompt was not recorded.
///
/// The closed form is theory's exact replay of the same recording (docs/theory.md#replay); none for the policy
/// heuristic either. Its deviation is that of the steps, and positive if there are fewer.
namespace specdec::validation {

/// The reason why the source's recording cannot replay the method; empty if it can. Reads the recording's beginning.
/// @throws traces::FileError if it cannot be read
std::string lacking_in_recording(const Method& method, const MethodContext& context);

/// True if a recording determines how much the method drafts behind a rejected token, and so what its steps cost.
bool recording_tells_drafts(const Method& method);

/// Runs it over the whole recording, each sequence once, and adds its results and notes to `compared`. The longest
/// sequence is held in memory.
/// @throws traces::FileError; std::invalid_argument if a later position lacks what the first ones had
void replay_method(const Method& method, const MethodContext& context, const core::RunHooks& hooks,
                   ComparedMethods& compared);

}  // namespace specdec::validation
