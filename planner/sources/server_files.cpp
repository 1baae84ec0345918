#include "planner/sources/server_files.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>

#include "analysis/cost/observed_rounds.hpp"
#include "planner/question_error.hpp"
#include "traces/serving/read_serving_counts.hpp"
#include "traces/serving/run_table.hpp"

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

void count_by_step(std::vector<traces::ServingCounts>& counts, std::optional<std::int64_t> gamma) {
  for (traces::ServingCounts& one : counts) {
    // SGLang's means, and a table's, are over all steps.
    const bool is_of_steps = one.engine == "sglang" || one.engine == traces::run_table_engine;
    if (one.rounds.value_or(0) > 0 && !is_of_steps && !traces::steps_of(one)) {
      if (one.bench)
        throw one.refusal("total_output_tokens and completed", "missing",
                          "given: they tell in how many steps a lookup found nothing");
      one.rounds.reset();
      one.tokens_per_round.reset();
      continue;
    }
    one = traces::counted_by_step(std::move(one), gamma);
  }
}

}  // namespace specdec::planner
