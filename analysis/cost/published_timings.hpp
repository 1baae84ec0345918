#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "analysis/cost/round_cost.hpp"

namespace specdec::cost {

/// A time of decoding that others measured and published.
struct PublishedTiming {
  /// Names of presets.
  std::string hardware = {}, model = {};
  /// Type of the weights: "bf16", ...; empty where the model's own type was used.
  std::string weights = {};
  std::int64_t tensor_parallel = 1;
  std::string engine = {};
  /// "https://...", and the figure as the page prints it.
  std::string source = {}, quoted = {};
  /// A model drafted in the round; else its gamma + 1 positions are those of one pass of the target alone.
  bool drafted = false;
  RoundPoint point = {};
  /// Seconds of the round: batch tokens of a round / (tokens per second of all sequences).
  double seconds = 0;
};

/// Those that come with the program, in the order of presets/published_timings.json.
std::span<const PublishedTiming> published_timings();

}  // namespace specdec::cost
