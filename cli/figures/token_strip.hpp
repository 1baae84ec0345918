#pragma once

#include <cstdint>
#include <string>

#include "cli/acceptance_options.hpp"
#include "render/figures/chart.hpp"
#include "traces/position_source.hpp"

namespace specdec::cli {

struct TokenStripInputs {
  AcceptanceOptions acceptance;
  std::int64_t threads = 1;
  /// Drafted tokens per step, [0, theory::largest_replayed_gamma].
  std::int64_t gamma = 4;
  /// The first ones of the recording, as many of each task.
  std::int64_t sequences = 6;
  /// First tokens of each.
  std::int64_t tokens = 64;
  std::uint64_t seed = 1;
  /// For the caption: "the shipped pair's recording".
  std::string recording;
};
/// The strip of a source, read to its end.
/// @throws UsageError, traces::FileError
render::Chart recorded_token_strip(traces::PositionSource& source, const TokenStripInputs& inputs);

}  // namespace specdec::cli
