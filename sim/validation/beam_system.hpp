#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/validation/method_decoder.hpp"

/// The entry of system_kinds() for beam search with a draft (sim/beam_search.hpp), compared with plain search.
namespace specdec::validation {

/// Decodes both ways: the run's cost is in steps of plain search, and its text is the best beam.
MethodDecoderFactory drafted_beams(const MethodContext& context);

/// Rounds of searches of one prompt.
struct BeamRounds {
  std::int64_t rounds = 0;
  /// Steps of the search, >= rounds.
  std::int64_t steps = 0;
  /// Drafted steps whose beams were compared with the target's, all earlier ones of the round having been kept, and the
  /// number of them that were kept.
  double judged = 0;
  double kept = 0;
  /// [j]: rounds that drafted j + 1 steps or more.
  std::vector<std::int64_t> drafted_at;

  void add(const MethodRun& run);
};

/// The rounds to be expected under independence.
struct IndependentBeams {
  double steps_per_round;
  /// Deviation of the measured rounds from it; empty if the prompts do not determine it.
  std::optional<double> deviation_standard_errors;
};

/// Steps per round if every judged step were kept with the same probability a, independently: the mean of E(a, gamma)
/// over the rounds, with a the share that was kept. The measured figure's deviation from it has the standard error over
/// prompts, to first order in each prompt's sums (a is measured, too).
///
/// Source:   Eq. (1) on beams, docs/reference/methods.md#beam-search
/// @param prompts  at least one, with a judged step among them
IndependentBeams independent_beams(std::span<const BeamRounds> prompts);

}  // namespace specdec::validation
