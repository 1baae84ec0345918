#include "planner/sources/server_files.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>

#include "analysis/cost/observed_rounds.hpp"
#include "planner/question_error.hpp"
#include "traces/serving/read_serving_counts.hpp"

namespace specdec::planner {
namespace {

/// The answers of each file as a run; other counts unchanged.
std::vector<traces::ServingCounts> with_runs_of_answers(const std::vector<traces::ServingCounts>& counts) {
  std::vector<traces::ServingCounts> joined;
  for (auto first = counts.begin(); first != counts.end();) {
    const bool answer = first->unit == traces::CountUnit::request && first->bench;
    auto end = first + 1;
    if (answer) end = std::find_if(end, counts.end(), [&](const auto& other) { return other.file != first->file; });
    joined.push_back(answer ? cost::run_of_answers({first, end}) : *first);
    first = end;
  }
  return joined;
}

}  // namespace

std::vector<traces::ServingCounts> counts_in(const std::vector<std::string>& files, std::vector<Note>& warnings) {
  std::vector<traces::ServingCounts> counts;
  traces::CountsSink sink;
  sink.take = [&](const traces::ServingCounts& unit) { counts.push_back(unit); };
  sink.warn = [&](const Note& warning) { warnings.push_back(warning); };
  sink.plain_windows = true;
  traces::read_serving_counts(std::vector<std::filesystem::path>(files.begin(), files.end()), sink);
  return with_runs_of_answers(counts);
}

void require_drafts_told(const std::vector<traces::ServingCounts>& counts, std::optional<std::int64_t> gamma) {
  if (gamma) return;
  for (const traces::ServingCounts& one : counts) {
    const bool drafted = one.tokens_per_round || (one.rounds && !one.drafted);
    if (!drafted || one.gamma) continue;
    throw QuestionError(fmt::format("--at is missing: {} does not say how many tokens a round drafted; --at G says it",
                                    one.file.string()));
  }
}

}  // namespace specdec::planner
