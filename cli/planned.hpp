#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/plan_options.hpp"
#include "planner/plan.hpp"

/// From the options of `specdec plan`, and of what shares them, to what the planner is asked.
namespace specdec::cli {

/// Settings for reading a recording or counters.
struct AcceptanceReading {
  std::int64_t max_gamma = planner::usual_max_gamma;
  /// Also the rates of single requests or sequences.
  bool by_request = false;
  /// --model picks one of several models that were counted.
  bool picks_model = true;
};
/// The acceptance that one of the options states or reads.
/// @throws UsageError, traces::FileError
planner::Acceptance acceptance_of(const PlanOptions& o, const AcceptanceReading& reading = {});

/// The cost of the only draft by --c, --cost, --draft-cost or --hardware.
/// @throws UsageError, traces::FileError
planner::Cost cost_of(const PlanOptions& o, const planner::DraftWords& draft);

/// The cost by --hardware, which is given.
/// @param drafts  false: nothing drafts
/// @throws UsageError, traces::FileError
planner::Cost hardware_cost(const RooflineArguments& a, const std::optional<std::string>& model,
                            const planner::DraftWords& draft, bool drafts = true);

/// The options as if --scrape were these files: --counters, and --cost where no other cost is stated or other logs and
/// scrapes are.
/// @throws UsageError where an acceptance is given beside it
PlanOptions with_scrapes(PlanOptions o, const std::vector<std::string>& scrapes);

/// The plan that the options ask for.
/// @throws UsageError, traces::FileError, std::domain_error
planner::Plan planned(const PlanOptions& o);

/// Files of --bench and what the options say of them.
/// @throws UsageError, traces::FileError
planner::BenchFiles bench_files(const PlanOptions& o);
/// The plan of runs.
/// @throws as planned()
planner::Plan planned_of_runs(const PlanOptions& o, const planner::BenchFiles& files);

}  // namespace specdec::cli
