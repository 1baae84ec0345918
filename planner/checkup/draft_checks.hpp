#pragma once

#include <string>
#include <vector>

#include "planner/checkup/finding.hpp"
#include "planner/cost.hpp"

/// Faults seen in a draft's own times.
namespace specdec::planner {

/// A draft whose passes take longer than their roofline by a larger factor is not slow for what it reads and computes.
inline constexpr double far_above_roofline = 3;

/// The files and settings against which a draft's times are checked.
struct DraftTimes {
  /// Tables of timed passes, what llama-bench wrote, or logs of llama.cpp with the statistics of its drafts.
  std::vector<std::string> files = {};
  /// As of Cost::of_hardware: the hardware, the target's name and how both models run there.
  std::string hardware = {}, model = {};
  HardwareOptions options = {};
};

/// - "draft_far_above_roofline": the median, over the passes of a file's model, of measured / roofline seconds exceeds
///   far_above_roofline. No test: a comparison with a fixed bound, wider than what rooflines are off by.
/// - "draft_below_peaks": the same median beside the seconds at the hardware's peaks is below 0.9.
///
/// @throws QuestionError, traces::FileError as Cost::of_hardware, for files without times, and for drafts that run no
///   model
void check_draft_times(const DraftTimes& times, Suspicions& suspicions);

}  // namespace specdec::planner
