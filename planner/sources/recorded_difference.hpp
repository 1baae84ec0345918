#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/estimate/run_difference.hpp"
#include "analysis/planning/trace_analysis.hpp"
#include "traces/note.hpp"

/// What recordings say against a difference of their replays.
namespace specdec::planner {

/// The recordings among the two sides; null for counts.
struct ComparedRecordings {
  const planning::TraceAnalysis* a = nullptr;
  const planning::TraceAnalysis* b = nullptr;
};

/// The notes of both analyses, each with its side: "A: ...", "A and B: ..." where both have it.
std::vector<Note> notes_of(const ComparedRecordings& recordings);

/// Why the difference decides nothing: a text does not look like the target's own, or the ends of the texts may be all
/// of the difference. Empty if nothing speaks against it. Adds a warning ("text_ends_matter") where ends matter.
/// @param gamma   drafts of a step, which both analyses replay
/// @param tokens  the difference of tokens per step
std::string undecided_by(const ComparedRecordings& recordings, std::int64_t gamma, const estimate::Difference& tokens,
                         std::vector<Note>& warnings);

}  // namespace specdec::planner
