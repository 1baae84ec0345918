#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/planning/trace_analysis.hpp"
#include "render/figures/chart.hpp"
#include "sim/replay_simulation.hpp"

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

/// Histogram of beta, the mean acceptance at each prefix, one panel per task.
Chart beta_histogram_chart(const TraceChartInputs& inputs);
/// Acceptance of draft 1, 2, ... given that those before it are accepted: as replayed at the largest gamma, by one
/// rate, and by a two-state Markov chain fitted to it.
Chart position_acceptance_chart(const TraceChartInputs& inputs);
/// Autocorrelation of beta along the text, with the bound for independent positions.
Chart autocorrelation_chart(const TraceChartInputs& inputs);
/// Tokens per step against gamma: replayed, and by Eq. 1 at alpha_hat.
Chart tokens_over_gamma_chart(const TraceChartInputs& inputs);
/// Alpha and total variation from the target against lenience; needs ObserveOptions::lenience and whole rows.
Chart lenience_chart(const TraceChartInputs& inputs);
/// Acceptance of drafted tokens by the probability that the draft gave them, and the number of them; needs
/// ObserveOptions::confidence_bins and whole rows.
Chart calibration_chart(const TraceChartInputs& inputs);

/// A sequence of the strip, in the order of its places.
struct StripSequence {
  /// "prose, sequence 0".
  std::string name;
  std::vector<sim::ReplayedRound> rounds;
};
/// One simulated run over some sequences: which tokens were accepted drafts, which replaced a rejected one, and which
/// were bonus tokens.
/// @param recording  as in TraceChartInputs
Chart token_strip_chart(std::span<const StripSequence> sequences, std::int64_t gamma, std::uint64_t seed,
                        const std::string& recording);

}  // namespace specdec::render
