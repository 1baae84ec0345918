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
  /// The context of the points to show; if empty, all of them.
  std::optional<double> context;
  /// Shown beside the best one of each batch, each >= 1.
  std::vector<std::int64_t> gammas;
  /// True if times are in seconds; otherwise throughput is unknown.
  bool in_seconds = true;
  /// As in DeploymentQuestion.
  double min_gain = 0.05;
  /// The batch from which on no gamma gains that, by the plan's schedule; interpolated between points if unknown.
  std::optional<double> crossover = {};
  /// Measured runs; null if there are none.
  const planning::BenchPlan* measured = nullptr;
  /// The subject: "llama-3.3-70b on 4 h100-sxm".
  std::string who;
};

/// Two panels: speedup over plain decoding with the batch at which it falls below 1 + min_gain, and output tokens per
/// second of all sequences beside those of plain decoding; one panel if times are not seconds.
Chart speedup_over_batch_chart(const SpeedupOverBatchInputs& inputs);

}  // namespace specdec::render
