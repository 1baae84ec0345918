#pragma once

#include "sim/serving/request_rounds.hpp"
#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// Mode of a run: sequences that decode are taken one by one in every iteration, or, as long as all of them take
/// part in all iterations, as sums over them. The result is the same, bit for bit.
enum class Decoding { one_by_one, in_step };

struct RunOptions {
  Decoding decoding = Decoding::in_step;
  /// False: ServingResult::gaps stays empty.
  bool finds_gaps = true;
};

ServingResult simulate_serving(const ServingQuestion& question, const RunOptions& options);

/// The same with rounds that other runs have used; by one run at a time.
/// @param rounds  of requests that begin with those of the question, of its laws and engine, and of draws of its seed
ServingResult simulate_serving(const ServingQuestion& question, RequestRounds& rounds, const RunOptions& options = {});

/// The run alone, for a question with valid values.
ServingResult run_serving(const ServingQuestion& question, RequestRounds& rounds, const RunOptions& options);

}  // namespace specdec::sim
