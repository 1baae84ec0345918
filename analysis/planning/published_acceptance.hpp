#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "analysis/planning/best_gamma.hpp"

/// Published acceptance rates, and those of the pair that comes with the program, by name.
namespace specdec::planning {

/// The speeds that the paper's Tables 2 and 4 list for a rate.
struct PublishedSpeed {
  std::int64_t gamma = 0;
  double c = 0;         ///< Table 4
  double speed = 0;     ///< Table 2, and Table 4's EMP
  double expected = 0;  ///< Table 4's EXP
};

struct PublishedAcceptance {
  /// "ende-t5-small-t0": task, draft, temperature; followed by "-l0.5" for a lenience other than 1.
  std::string name = {};
  std::string task = {};
  /// Names of model presets, "unigram" or "bigram"; for the pair that comes with the program "pair-target",
  /// "pair-draft".
  std::string target_model = {}, draft_model = {};
  int temperature = 0;
  double lenience = 1;
  double alpha = 0;
  /// Interval of the rate if tokens are independent: half a unit of the last printed digit and, on either side of it,
  ///
  ///   1.96 sqrt(alpha (1 - alpha) / tokens),
  ///
  /// the standard error at temperature 0, where a token is accepted or not, and an upper bound at others; for the pair
  /// that comes with the program the interval from its recording.
  RateInterval interval = {core::AcceptanceRate(0), core::AcceptanceRate(1)};
  /// The number of tokens over which the rate was taken.
  std::int64_t tokens = 0;
  /// "https://...", or for the pair that comes with the program the command that records it.
  std::string source = {};
  /// The place in the source: "Table 3".
  std::string where = {};
  std::optional<PublishedSpeed> measured = {};
};

/// In the order of the files of analysis/planning/presets.
std::span<const PublishedAcceptance> published_acceptances();
/// By name; upper and lower case, spaces, dashes and underscores are equivalent; null if there is none.
const PublishedAcceptance* published_acceptance(std::string_view name);

}  // namespace specdec::planning
