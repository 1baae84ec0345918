#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/cost/published_timings.hpp"
#include "analysis/cost/roofline_cost.hpp"
#include "render/figures/chart.hpp"
#include "traces/formats/timing_table.hpp"

namespace specdec::render {

/// The cost of a target pass over the tokens that it verifies.
struct VerificationCostInputs {
  /// Without a draft; null if only measured passes are shown.
  const cost::RooflineCost* roofline = nullptr;
  /// Tokens in the cache per sequence, for the roofline.
  double context = 0;
  /// Positions up to which the roofline is drawn, >= 2.
  std::int64_t up_to = 1024;
  /// The user's own passes, of one model.
  std::vector<traces::TimedPass> measured = {};
  /// Published passes of the same deployment; those with drafts in the round are left out.
  std::vector<cost::PublishedTiming> published = {};
  std::string who = {};
};

/// Milliseconds of a pass over the positions that it computes, gamma + 1 of one sequence or one of each of several,
/// with the separate times of reading and multiplying and the knee where they meet.
Chart verification_cost_chart(const VerificationCostInputs& inputs);

}  // namespace specdec::render
