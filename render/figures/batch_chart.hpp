#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/planning/bench_plan.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "render/figures/chart.hpp"

namespace specdec::render {

/// Speedup and throughput over the batches of a plan.
struct SpeedupOverBatchInputs {
  std::span<const planning::PointPlan> points;
  /// Of the points that are shown; nothing: all of them.
  std::optional<double> context;
  /// Shown beside the best one of each batch, each >= 1.
  std::vector<std::int64_t> gammas;
  /// Times are seconds; else nothing is known of throughput.
  bool in_seconds = true;
  /// As in DeploymentQuestion.
  double min_gain = 0.05;
  /// The batch from which on no gamma gains that, by the plan's schedule; between points where it is not known.
  std::optional<double> crossover = {};
  /// Runs that were measured; null where there are none.
  const planning::BenchPlan* measured = nullptr;
  /// Who is shown: "llama-3.3-70b on 4 h100-sxm".
  std::string who;
  /// What the speedups' intervals are, see render::interval_heading.
  std::string interval = "95% interval";
};

/// Two panels: speedup over plain decoding with the batch where it falls below 1 + min_gain, and output tokens per
/// second of all sequences beside those of plain decoding; one where times are no seconds.
Chart speedup_over_batch_chart(const SpeedupOverBatchInputs& inputs);

}  // namespace specdec::render
