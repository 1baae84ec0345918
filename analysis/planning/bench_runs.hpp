#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/cost/observed_rounds.hpp"
#include "analysis/planning/bench_acceptance.hpp"
#include "analysis/planning/bench_plan.hpp"

/// The runs of a benchmark as a plan reads them.
namespace specdec::planning::bench {

// A header of the library's own sources; it is not installed.

/// Lengths of two runs that differ by less than this factor are the same workload; output lengths vary between runs.
constexpr double same_lengths = 1.1;
/// Standard deviation of the lengths of answers over their mean, where they end by themselves. Assumed.
constexpr double usual_spread_of_answers = 0.6;
/// Worlds of acceptance from which those are chosen in which runs without lengths took what they took.
constexpr std::size_t worlds_without_lengths = 4000;

struct Run {
  const traces::ServingCounts* counts = nullptr;
  BenchFigures figures;
  cost::ObservedRound round;
  /// Index of its workload.
  std::size_t workload = 0;
  /// A tree's counts by depth, as those of a chain as long: what they say of this depth is the same. Null for chains.
  std::shared_ptr<const traces::ServingCounts> by_depth = {};

  bool speculative() const { return figures.gamma > 0; }
  /// True if it states how much of its drafts was accepted.
  bool says_acceptance() const { return speculative() && !cost::drafts_uncounted(*counts); }
  bool is_chain() const { return speculative() && !figures.tree; }
  CountedRun counted() const { return {by_depth ? by_depth.get() : counts, figures.gamma}; }
};

using Runs = std::vector<Run>;

/// The run of a benchmark's counts.
/// @param acceptance  of chains that do not state their own; null if there is none
Run make_run(const traces::ServingCounts& counts, std::optional<std::int64_t> stated_gamma,
             const estimate::AcceptanceCurve* acceptance);
/// Mean tokens per request, 0 where the run does not say them.
void take_lengths(const traces::BenchRun& bench, BenchFigures& figures);
/// The model to plan for.
std::string model_of(const BenchQuestion& question);
/// An acceptance that is given is one of chains, and what a tree accepts does not follow from it.
bool is_left_out(const traces::ServingCounts& run, const BenchQuestion& question);
/// The largest gamma that is planned or ran.
std::int64_t longest_of(const BenchQuestion& question);
/// What is known of the acceptance of drafts before anything is measured, up to this gamma.
std::shared_ptr<const estimate::AcceptanceCurve> usual_acceptance(const BenchQuestion& question, std::int64_t longest);
/// Runs that state their acceptance before those that do not, which take the acceptance of the question, of the others,
/// or of their kind; sorted by lengths, concurrency (batch if that has no limit) and gamma. Lengths that are
/// approximately equal to those of one of its runs share a workload.
Runs runs_of(const BenchQuestion& question, const std::string& model);

bool has_plain_runs(const Runs& runs);
/// True if chains are to be planned: some ran, or nothing but plain decoding did.
bool has_chains(const Runs& runs);
/// True for a plain run that a speculative one compares with.
bool is_plain_of(const Run& plain, const Run& run);
/// True if they ran the same configuration, so that they differ only by chance.
bool are_repeats(const Run& a, const Run& b);
bool same_length(double a, double b, double factor = same_lengths);
bool same_workload(const BenchFigures& a, const BenchFigures& b);
bool same_load(const traces::ServingCounts& a, const traces::ServingCounts& b);
bool same_load(const Run& a, const Run& b);
/// Those of chains, or of one tree.
std::vector<CountedRun> counted_runs(const Runs& runs, const std::optional<cost::DraftTree>& tree = std::nullopt,
                                     const Run* without = nullptr);

std::string load_text(const Run& run);
std::string lengths_text(const BenchFigures& figures);
/// " [1.2 to 1.3]"; empty for one value.
std::string interval_text(const estimate::Interval& interval);

/// The plain runs of one workload and load are one point; if none is plain, all runs are used.
std::vector<PlanPoint> points_of(const Runs& runs, bool has_plain);
/// In increasing order; of values that differ by less than a workload's lengths only the first.
std::vector<double> apart(std::vector<double> values);
/// Leaves out points at larger batches than the server is to decode, unless all are.
void leave_out_beyond(std::optional<std::int64_t> largest, std::vector<PlanPoint>& points);

}  // namespace specdec::planning::bench
