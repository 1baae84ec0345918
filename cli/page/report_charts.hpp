#pragma once

#include <string>
#include <vector>

#include "analysis/planning/trace_analysis.hpp"
#include "cli/figures/chart.hpp"
#include "cli/figures/trace_charts.hpp"
#include "cli/plan.hpp"

/// Which figures stand on the page of a plan; those of `specdec plot` where it has them.
namespace specdec::cli {

/// What a plan says: speedup against gamma; over acceptance rate and c, and regret over the rate's interval, where
/// these are the acceptance and the cost; over several batches speedup, throughput and, where the cost knows seconds,
/// time per token; over several drafts their speedups. As many as the plan holds data for.
/// @throws UsageError
std::vector<Chart> plan_charts(const PlanOptions& o, const PlanReport& plan);

struct RecordingCharts {
  std::vector<Chart> charts;
  /// What this recording cannot give: "lenience (the recording has no whole rows, ...)".
  std::vector<std::string> left_out;
};

/// What a recording says: acceptance by prefix and by position, tokens per step, autocorrelation, lenience,
/// calibration and the tokens of one run.
/// @param source  the recording behind the analysis, opened anew
/// @param strip   its `recording` names the recording in every caption
/// @throws traces::FileError
RecordingCharts recording_charts(const planning::TraceAnalysis& analysis, traces::PositionSource& source,
                                 const TokenStripInputs& strip);

}  // namespace specdec::cli
