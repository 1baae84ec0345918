#pragma once

#include <string>
#include <vector>

#include "analysis/planning/trace_analysis.hpp"
#include "planner/load/capacity.hpp"
#include "planner/plan.hpp"
#include "planner/question_error.hpp"
#include "render/figures/chart.hpp"
#include "render/figures/planning_charts.hpp"

/// Which figures stand on the page of a plan; those of `specdec plot` where it has them.
namespace specdec::render {

/// The subject of a plan: "llama-3.3-70b with eagle3-llama-3.3-70b on 4 h100-sxm" as far as it names them, else its
/// acceptance: "alpha 0.7 to 0.8".
std::string subject_of(const planner::Plan& plan);

/// Cells of a map along each axis, >= 2.
struct MapCells {
  int rates = SpeedupMapInputs{}.rates;
  int costs = SpeedupMapInputs{}.costs;
};
/// Fewer, where each cell is a row of the data that stand on the page.
inline constexpr MapCells page_map = {46, 31};

/// Charts of a plan: speedup against gamma; over acceptance rate and c, where
/// these are the acceptance and the cost; over several batches speedup, throughput and, where the cost knows seconds,
/// time per token; over several drafts their speedups. As many as the plan holds data for.
/// @param map  cells of the map over acceptance rate and c
std::vector<Chart> plan_charts(const planner::Plan& plan, const MapCells& map = {});

struct RecordingCharts {
  std::vector<Chart> charts;
  /// Charts that this recording cannot give: "lenience (the recording has no whole rows, ...)".
  std::vector<std::string> left_out;
};

/// Charts of a recording: acceptance by position, tokens per step, lenience and calibration.
/// @param recording  its name, for captions
RecordingCharts recording_charts(const planning::TraceAnalysis& analysis, const std::string& recording);

/// Charts of a capacity over loads: GPUs that a load needs, the requests' times, and with a price these over the cost
/// of a million tokens. Simulates; those that it cannot give, as without a load that is served, are left out, and all
/// where the question is about a number of replicas or a concurrency.
/// @param who  the deployment, for captions: "llama-3.3-70b with eagle3-llama-3.3-70b on 4 h100-sxm"
std::vector<Chart> capacity_charts(const planner::Capacity& capacity, const std::string& who);

}  // namespace specdec::render
