#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/planning/synthetic_acceptance.hpp"
#include "planner/acceptance.hpp"

/// Benchmarks that accept drafts as real traffic does, whatever their prompts.
namespace specdec::planner {

inline constexpr std::int64_t largest_synthetic_gamma = 256;

/// Members correspond to the options of `specdec synthetic` of the same name.
struct SyntheticQuestion {
  /// Drafted tokens per step of the benchmark, [1, largest_synthetic_gamma].
  std::int64_t gamma = 1;
  /// The engine to write for; empty: all of them.
  std::optional<planning::Engine> emit = {};
};

/// The law to accept by, and the settings of engines that do.
struct Synthetic : Provenance {
  SyntheticQuestion question;
  /// Where the acceptance is from, for human readers.
  std::string acceptance;
  /// The origin of the interval: as Acceptance::method.
  std::string method;
  estimate::TokensPerStep tokens_per_step;
  /// The interval of tokens per step is that of what was stated, without a sampling error.
  bool is_range = false;
  /// P(the first j drafts of a round are all accepted), j = 1 .. gamma.
  std::vector<double> survival;
  /// One for each engine asked for.
  std::vector<planning::SyntheticSettings> settings;
};

/// @throws QuestionError for a gamma outside its range or that the acceptance does not cover, for an acceptance that
///   decides nothing, and for a release that cannot accept at random, or is not known to
Synthetic synthetic(const Acceptance& acceptance, const SyntheticQuestion& question);

}  // namespace specdec::planner
