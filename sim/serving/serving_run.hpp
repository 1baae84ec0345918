#pragma once

#include <optional>

#include "sim/serving/request_rounds.hpp"
#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// Draws and rounds that runs of the same requests share. May be used by one run at a time.
struct SharedByRuns {
  /// For requests that begin with those of the run, its seed, laws and, in rounds, gamma and block_size; non-null.
  RequestDraws* draws = nullptr;
  RequestRounds* rounds = nullptr;
};

/// Mode of a run: sequences that decode are taken one by one in every iteration, or, as long as all of them take
/// part in all iterations, as sums over them. The result is the same, bit for bit.
enum class Decoding { one_by_one, in_step };

struct RunOptions {
  Decoding decoding = Decoding::in_step;
  /// False: ServingResult::gaps stays empty.
  bool finds_gaps = true;
  std::optional<SharedByRuns> shared = {};
};

/// simulate_serving() without percentiles.
ServingResult serve_requests(const ServingQuestion& question, const RunOptions& options);

/// The run alone, for a question with valid values.
ServingResult run_serving(const ServingQuestion& question, const RunOptions& options);

}  // namespace specdec::sim
