#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "traces/note.hpp"
#include "traces/serving/serving_counts.hpp"

namespace specdec::planner {

/// Runs of benchmarks and windows of logs, with and without speculation. The answers of each file are one run.
/// @throws traces::FileError
std::vector<traces::ServingCounts> counts_in(const std::vector<std::string>& files, std::vector<Note>& warnings);

/// @param counts  windows of logs, or benchmark runs
/// @param gamma   the gamma of those that do not state it
/// @throws QuestionError if the number of drafted tokens per round is not stated anywhere
void require_drafts_told(const std::vector<traces::ServingCounts>& counts, std::optional<std::int64_t> gamma);

/// Counts rounds as they were timed, by step (traces::counted_by_step): drafts that are looked up, and others where a
/// unit tells that it drafted in less than 90% of its steps ("steps_without_drafts"), or a run that its drafts mostly
/// ended early
/// ("drafts_end_early"). Units of the former kind are left out where others of their gamma always drafted: they are
/// neither plain nor speculative ("partly_drafting_left_out").
/// @param gamma  of those that do not state it
/// @return true if rounds are steps as they ran, with the misses and lengths that the counts hold
/// @throws traces::FileError for a run with lookups that does not tell its steps; windows without them are left out
bool count_as_timed(std::vector<traces::ServingCounts>& counts, cost::DraftKind kind, std::optional<std::int64_t> gamma,
                    std::vector<Note>& warnings);

}  // namespace specdec::planner
