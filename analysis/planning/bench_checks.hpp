#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/planning/bench_runs.hpp"
#include "traces/note.hpp"

namespace specdec::planning::bench {

// A header of the library's own sources; it is not installed.

/// What is odd in the runs, or missing: acceptance that they do not count, repeats that differ, times in another unit,
/// trees that are left out.
std::vector<Note> notes_of_runs(const Runs& runs, const BenchQuestion& question, const std::string& model);

/// How a given acceptance differs from that of the runs, at the gamma at which they are furthest apart; empty where
/// they agree.
std::optional<Note> contradicted_acceptance(const Runs& runs, const BenchQuestion& question,
                                            const estimate::AcceptanceCurve& of_runs);

/// Plain steps that may take longer where requests do not end and begin together.
struct OutOfStep {
  /// By how much, at a batch.
  std::function<double(double batch)> factor;
  Note note;
};
/// Empty where no run says so.
std::optional<OutOfStep> plain_out_of_step(const Runs& runs);

}  // namespace specdec::planning::bench
