#pragma once

#include <string>
#include <vector>

#include "analysis/planning/trace_analysis.hpp"
#include "render/figures/chart.hpp"

/// Figures of a recording, for any caller that has analysed one: `specdec plot` from its options, `specdec report` from
/// the user's answer. The assumptions, files and notes of a chart are filled in by its caller.
///
/// Every function throws planner::QuestionError, with one line on what the recording lacks, if it cannot draw at
/// all; what is undefined at some place is a gap with a warning.
namespace specdec::render {

struct TraceChartInputs {
  const planning::TraceAnalysis& analysis;
  /// For captions: "4608 positions of the shipped pair".
  std::string recording;
};

/// A recording's name in captions: that of its one file or folder, "2 files", or "a recording in memory".
/// @param files  as they were named
std::string name_of_recording(const std::vector<std::string>& files);

/// Acceptance of draft 1, 2, ... given that those before it are accepted: as replayed at the largest gamma, and by one
/// rate.
Chart position_acceptance_chart(const TraceChartInputs& inputs);
/// Tokens per step against gamma: replayed, and by Eq. 1 at alpha_hat.
Chart tokens_over_gamma_chart(const TraceChartInputs& inputs);
/// Alpha and total variation from the target against lenience; needs ObserveOptions::lenience and whole rows.
Chart lenience_chart(const TraceChartInputs& inputs);
/// Acceptance of drafted tokens by the probability that the draft gave them, and the number of them; needs
/// ObserveOptions::confidence_bins and whole rows.
Chart calibration_chart(const TraceChartInputs& inputs);

}  // namespace specdec::render
