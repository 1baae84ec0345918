#pragma once

#include <span>
#include <string>

#include "analysis/planning/deployment_plan.hpp"
#include "render/figures/chart.hpp"

namespace specdec::render {

/// Speedups of drafts over the contexts of a plan.
struct SpeedupOverContextInputs {
  /// At least one; all with the same points, in order of context, then batch.
  std::span<const planning::DraftPlan> drafts;
  /// The subject: "llama-3.3-70b on 4 h100-sxm".
  std::string who;
};

/// Two panels over the context, a line for each draft and batch: speedup over plain decoding of the gamma that the plan
/// recommends there, with its interval, and the tokens per step of that gamma. The caption says from which contexts on
/// which draft is the fastest at the first batch. Points without a price are left out.
Chart speedup_over_context_chart(const SpeedupOverContextInputs& inputs);

}  // namespace specdec::render
