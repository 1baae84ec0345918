#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/core/run_hooks.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "sim/serving/capacity.hpp"

/// The effect of errors of the cost and of the acceptance on a capacity answer.
namespace specdec::sim {

/// Fewest and most accelerators over the cases.
struct GpuRange {
  std::int64_t lo = 0, hi = 0;
  /// True if in some case no number of them meets the load.
  bool some_never = false;
};

/// The question with another cost, another acceptance, or both.
struct CapacityVersion {
  /// Replicates of the cost, of whose seconds the mean prices each iteration; empty: the cost itself.
  std::vector<std::size_t> replicates;
  /// Empty: that of the question.
  std::vector<RequestAcceptance> acceptance;
  /// The first version with the same cost, by which plain decoding is the same; 0 is the answer's own.
  std::size_t plain_as = 0;
};

/// An answer whose intervals include, besides the simulation's own error, those of the cost and of the acceptance.
struct CapacityRange {
  /// lo and hi of every figure cover its values in all versions; hi of times and of the mean batch is infinite if a
  /// version's queue grows at the load that the figures are for.
  CapacityAnswer answer;
  /// The answer's own, those with each of the ends of the cost, those with each of the acceptances, those with both.
  std::vector<CapacityVersion> versions;
  std::size_t cost_ends = 0, acceptances = 0;
  /// [scenario]: the number of versions whose queue grows at that load.
  std::vector<std::size_t> overloaded;
  /// [scenario]; empty if no load is requested, or no version sustains any.
  std::vector<std::optional<GpuRange>> gpus;
  /// [scenario][case]: the same in each version, and then, for a load in requests/s, at the low and at the high end of
  /// the interval that the simulation itself leaves of the answer's own rate.
  std::vector<std::vector<std::optional<std::int64_t>>> gpus_by_case;
  /// [scenario][version]: requests/s that a replica sustains.
  std::vector<std::vector<double>> rates_by_version;
  /// [scenario][version]: median seconds per output token where the figures are for; infinite if the queue grows, empty
  /// without one.
  std::vector<std::vector<std::optional<double>>> median_tpot_by_version;
  /// True if versions are missing, since the run was interrupted: no interval of any figure is then known, so that it
  /// is [0, infinity), and `gpus` is empty.
  bool interrupted = false;
};

/// Plans again with both ends of the cost's error and with each of the other acceptances, alone and together. An end of
/// the cost is the mean of the replicates about a quantile of the seconds of one iteration, placed by Harrell and
/// Davis's law of that quantile, so that it does not depend on which single replicate happens to stand there: those at
/// 2.5% and 97.5% of the first scenario and of the drafting one with the largest rate, each of its
/// largest_iteration.
///
/// Together: the ends of a stated range of acceptance are as possible as its middle whatever the cost, and each goes
/// with each end of the drafting scenario's cost. The ends of an interval go with the end of the cost that changes its
/// rate the same way, both drawn towards the estimate to where the two errors, independent, have 95% between them:
/// with e and c the changes of ln(rate) by each alone,
///
///   1.96 -> 1.96 |e| / sqrt(e^2 + c^2) standard deviations of the acceptance, 1.96 |c| / sqrt(e^2 + c^2) of the cost
///
/// The versions, and the ranges of rates, depend on no load asked for and no number of replicas. Replicates that price
/// an iteration at nothing are left out. Where the answer takes the requested load, figures of a version are those of
/// as many replicas at that load, within the limits or not; else those at the largest load that it takes. Requests and
/// random numbers stay the same.
/// Source:   Harrell and Davis 1982; docs/theory.md#what-intervals-hold
/// @param answer       to the question
/// @param acceptances  the ends of the acceptance's interval; empty if it is taken as exact
/// @param hooks        an interrupted run leaves out versions, and says so
/// @throws std::invalid_argument unless the answer has as many scenarios as the question
CapacityRange over_versions(const CapacityQuestion& question, CapacityAnswer answer,
                            std::span<const std::vector<RequestAcceptance>> acceptances,
                            const core::RunHooks& hooks = {});

/// The same over the versions of another range, by which both have the same cases: for plain decoding under a cost
/// whose replicates are drawn like those of the other's.
/// @throws std::invalid_argument unless the answer has as many scenarios as the question
CapacityRange over_versions_of(const CapacityRange& other, const CapacityQuestion& question, CapacityAnswer answer,
                               const core::RunHooks& hooks = {});

/// The largest number of versions that over_versions plans, excluding the answer's own.
std::size_t most_versions(const CapacityQuestion& question,
                          std::span<const std::vector<RequestAcceptance>> acceptances);

/// The numbers of cases in which one scenario needs fewer accelerators than another, and more; a case that no number of
/// them can serve counts as more than any number. An end of the simulation's interval is that of both scenarios, which
/// share their requests and random numbers.
struct GpuComparison {
  std::size_t fewer = 0, more = 0, cases = 0;
};

/// @param ours, theirs  of gpus_by_case, equally many
/// @throws std::invalid_argument if they are not
GpuComparison compare_gpus(std::span<const std::optional<std::int64_t>> ours,
                           std::span<const std::optional<std::int64_t>> theirs);
/// @param scenario, other  indices into range.gpus_by_case
/// @throws std::out_of_range, std::invalid_argument as above
GpuComparison compare_gpus(const CapacityRange& range, std::size_t scenario, std::size_t other);

/// The reason why an answer under load is uncertain.
enum class UncertaintySource {
  acceptance,     ///< too few rounds or requests were counted
  cost,           ///< the cost of a round is not known precisely enough
  extrapolation,  ///< acceptance or cost was carried to a gamma or a point that was not measured
};
/// "acceptance", "cost", "extrapolation".
std::string_view name_of(UncertaintySource source);

/// The main source of uncertainty of a scenario's capacity, and the run that would reduce it.
struct CapacityDoubt {
  UncertaintySource source = UncertaintySource::cost;
  planning::NextMeasurement next;
};

/// True if the median time per output token of `ours` is below that of `theirs` in every version.
/// @param ours, theirs  of median_tpot_by_version, equally many
bool is_faster_in_all(std::span<const std::optional<double>> ours, std::span<const std::optional<double>> theirs);
/// @param scenario, other  indices into range.median_tpot_by_version
/// @throws std::out_of_range
bool is_faster_in_all(const CapacityRange& range, std::size_t scenario, std::size_t other);

/// Compares the ranges of ln(requests/s per replica) over the versions of the cost and over those of the acceptance,
/// the answer's own among both; an extrapolated scenario has extrapolation as its source. The run is one of the
/// scenario's largest gamma at its mean batch, together with plain decoding if the cost is in question.
/// @param scenario  index into range.answer.scenarios
/// @param known     the source, if something that no version holds makes it this one
/// @return empty if no version differs and no source is known, or if versions are missing
/// @throws std::out_of_range if there is no such scenario
std::optional<CapacityDoubt> capacity_doubt(const CapacityQuestion& question, const CapacityRange& range,
                                            std::size_t scenario,
                                            std::optional<UncertaintySource> known = {});

/// replica_at_loads(), its intervals widened to the same figures in each of the versions. If a version cannot take a
/// load, its queue grows and its times are those of this run.
/// @param versions  those of a CapacityRange
/// @throws as replica_at_loads
std::vector<ReplicaAtLoad> replica_over_versions(const CapacityQuestion& question, std::size_t scenario,
                                                 std::span<const double> loads,
                                                 std::span<const CapacityVersion> versions);

}  // namespace specdec::sim
