#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/serving/serving_counts.hpp"

/// One unit's counts, checked and normalised. Internal to analysis/estimate.
namespace specdec::estimate {

/// The information that a unit gives about the examined drafts.
enum class Evaluation {
  nothing,  ///< no alpha: a tree, an unknown shape, or no counts
  moments,  ///< accepted drafts, rounds and a gamma that every round drafts
  bounds,   ///< between two numbers of rejections
  exact,    ///< accepted and examined, by position
};

struct UnitCounts {
  traces::DraftShape shape = traces::DraftShape::unknown;
  std::optional<double> rounds, drafted, accepted, emitted;
  /// The fewest and the most rounds, if they are inferred from a printed mean.
  std::optional<std::pair<double, double>> rounds_between;
  /// Mean of the tokens emitted per round, over an unknown number of rounds; if accepted drafts are not counted.
  std::optional<double> mean_tokens;
  /// Counts by accepted drafts; valid if has_positions.
  bool has_positions = false;
  std::vector<double> rounds_by_accepted;
  /// [j - 1] = rounds whose draft j was accepted.
  std::vector<double> accepted_at;
  /// [j - 1] = rounds in which draft j was examined; valid if evaluation is exact, or by depth for a tree of one
  /// depth.
  bool has_evaluated = false;
  std::vector<double> evaluated_at;
  /// [length] = rounds that drafted this many; empty if unknown.
  std::vector<double> rounds_by_drafted;
  /// The unit's own histogram by length; null if it has none.
  const std::map<std::int64_t, std::vector<double>>* by_length = nullptr;
  /// The gamma of every round.
  std::optional<std::int64_t> fixed_gamma;
  std::optional<std::int64_t> longest_draft;

  Evaluation evaluation = Evaluation::nothing;
  /// Rounds that ended with the rejection of a draft.
  double least_rejections = 0, most_rejections = 0;
};

struct UnitCountsOptions {
  std::optional<std::int64_t> gamma;
  bool tree = false;
};

/// Takes a code, and a message without file and line.
using WarnOfUnit = std::function<void(std::string_view code, std::string message)>;

/// The drafts by which llama.cpp may fall short of gamma over all `rounds`, since it shortens the last drafts of an
/// answer: gamma (gamma + 1) / 2 per answer, of which a request with a BenchRun has those `completed`, or program run;
/// a twentieth of all drafts if answers are not counted.
double drafts_short_of(const traces::ServingCounts& counts, std::int64_t gamma, double rounds);

/// Fills `unit` from one unit of counts.
/// @throws traces::FileError if the counts contradict each other
void normalise(const traces::ServingCounts& counts, const UnitCountsOptions& options, const WarnOfUnit& warn,
               UnitCounts& unit);

}  // namespace specdec::estimate
