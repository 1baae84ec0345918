#pragma once

#include <optional>
#include <string>

#include "cli/options.hpp"
#include "cli/plan_options.hpp"
#include "planner/load/capacity.hpp"

namespace specdec::cli {

/// Everything that `specdec capacity` can be asked.
struct CapacityOptions {
  planner::CapacityQuestion question;
  /// File of recorded requests, or the lengths of others.
  std::optional<std::string> requests;
  std::optional<sim::LengthLaw> prompt_tokens;
  std::optional<sim::LengthLaw> output_tokens;
  /// Acceptance, costs and models have the names and meanings that `specdec plan` gives them.
  PlanOptions shared;

  /// Some acceptance is given, so that there is something to draft.
  bool knows_acceptance() const;
};

void declare(Options& options, CapacityOptions& o);

/// @throws UsageError where options contradict each other or something is missing
void require_consistent(const CapacityOptions& o);

}  // namespace specdec::cli
