#pragma once

#include <optional>

#include "sim/serving/request_rounds.hpp"
#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// Frequency of checks of a run's invariants: never, in its first 64 iterations and in every 64th, or in each. Anything
/// lost once stays lost, so that few iterations find it, too.
enum class InvariantChecks { no, sampled, yes };

/// Draws and rounds that runs of the same requests share. May be used by one run at a time.
struct SharedByRuns {
  /// For requests that begin with those of the run, its seed, laws and, in rounds, gamma and block_size; non-null.
  RequestDraws* draws = nullptr;
  RequestRounds* rounds = nullptr;
};

/// Mode of a run: sequences that decode are taken one by one in every iteration, or, as long as all of them take
/// part in all iterations, as sums over them. The result is the same, bit for bit.
enum class Decoding { one_by_one, in_step };

#ifdef NDEBUG
constexpr InvariantChecks usual_checks = InvariantChecks::no;
#else
constexpr InvariantChecks usual_checks = InvariantChecks::sampled;
#endif

struct RunOptions {
  InvariantChecks checks = usual_checks;
  Decoding decoding = Decoding::in_step;
  /// False: ServingResult::gaps stays empty.
  bool finds_gaps = true;
  std::optional<SharedByRuns> shared = {};
};

/// simulate_serving(), with or without checks of the invariants of its iterations; simulate_serving() samples them in
/// debug builds.
///
///   blocks       those of running requests and the free ones add up to all; none holds fewer than its tokens need
///   positions    never more than max_num_batched_tokens; running requests never more than max_num_seqs
///   requests     each is pending, waiting, running or served, and only one of these; in order of arrival
///   tokens       a request's cache holds its prompt and its output except the last token; at the end all requested
///   tokens
///                were emitted, all blocks are free, and Little's law holds for the whole run
///   time         never decreases
///
/// @throws std::logic_error if one does not hold, and anything that simulate_serving() throws
ServingResult simulate_serving(const ServingQuestion& question, InvariantChecks checks);

/// The same without percentiles.
ServingResult serve_requests(const ServingQuestion& question, const RunOptions& options);

/// The run alone, for a question with valid values.
ServingResult run_serving(const ServingQuestion& question, const RunOptions& options);

}  // namespace specdec::sim
