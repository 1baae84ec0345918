#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

/// Counts of drafts that are looked up, by step (traces::counted_by_step), as rounds are timed.
/// @param gamma  of those that do not state it
/// @throws traces::FileError for a run that does not tell its steps; of windows without them the rounds become unknown
void count_by_step(std::vector<traces::ServingCounts>& counts, std::optional<std::int64_t> gamma);

}  // namespace specdec::planner
