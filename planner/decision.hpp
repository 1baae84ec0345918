#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan.hpp"

namespace specdec::planner {

/// The speedup of what is decided over plain decoding.
struct DecidedSpeedup {
  /// Empty for several gammas; then `bounds` has the least and the largest.
  std::optional<double> value;
  std::optional<estimate::Interval> ci95, bounds;
  /// The least share of worlds in which drafts gain what is asked for; empty if no worlds were counted.
  std::optional<double> share;
};

/// The gamma in use beside what is decided, at the batch where a change gains most surely.
struct DecidedOver {
  std::int64_t gamma = 0;
  /// The share of worlds in which what is decided is faster than it by min_gain.
  double share = 0;
  double batch = 1;
};

/// What to do, how sure it is, and what to do next: the one object from which text, page, captions and configurations
/// are made.
struct Decision {
  /// Empty of answers that choose no gamma.
  std::optional<worlds::Certainty> verdict;
  /// The number of draft tokens to set, 0 for plain decoding; empty where batches differ.
  std::optional<std::int64_t> gamma;
  /// Neighbours of one gamma joined; of a plan without a schedule its points.
  std::vector<planning::PlannedStretch> schedule;
  DecidedSpeedup speedup;
  std::optional<DecidedOver> over;
  /// Two lines: what to do; how sure, and what would change it.
  std::string action, certainty;
  /// A command to run next; empty if none is worth it.
  std::string next;
  /// How the server runs for it: "with num_speculative_tokens 3"; empty where none is run.
  std::string server;
  /// What stands before it in a text: what it is for, or what it needs; may be empty.
  std::string purpose;
};

Decision decision_of(const Plan& plan);

/// What to draft if verifying costs more than it was assumed to: of constant costs that state no verify factor.
struct AssumedVerification {
  double verify_factor = 1;
  std::int64_t gamma = 0;
  double speedup = 1;
};

/// At 1.2 and 1.4 plain steps; empty for other costs.
std::vector<AssumedVerification> assumed_verification(const Plan& plan);

}  // namespace specdec::planner
