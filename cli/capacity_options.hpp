#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "cli/plan_options.hpp"
#include "cli/roofline_options.hpp"
#include "planner/load/capacity.hpp"

namespace specdec::cli {

/// Everything that `specdec capacity` can be asked.
struct CapacityOptions {
  // Workload.
  std::optional<double> arrival_rate;
  std::optional<std::int64_t> concurrency;
  double outside_ms = 0;
  std::optional<std::string> prompt_tokens;
  std::optional<std::string> output_tokens;
  std::optional<std::string> requests;
  double prefix_cache_hit_rate = 0;
  bool decode_only = false;
  /// Acceptance, costs and models have the names and meanings that `specdec plan` gives them.
  PlanOptions shared;
  std::optional<double> alpha_spread;
  // Deployment.
  RooflineArguments roofline;
  std::optional<double> prefill_tokens_per_second;
  std::optional<std::int64_t> gpus;
  std::optional<std::int64_t> replicas;
  std::optional<double> price;
  // Engine.
  double gpu_memory_utilization = 0.9;
  std::optional<double> activation_reserve_gb;
  std::optional<std::int64_t> kv_cache_tokens;
  std::string max_num_seqs = "256";
  std::int64_t max_num_batched_tokens = 8192;
  bool prefill_first = false;
  bool verification_budget = false;
  // Scenarios to compare.
  std::optional<std::string> gamma;
  std::optional<std::string> schedule;
  // Limits.
  std::optional<double> ttft_ms;
  std::optional<double> tpot_ms;
  double percentile = 99;
  // Simulation.
  std::int64_t replications = 4;
  std::optional<std::int64_t> num_requests;
  std::int64_t seed = 0;
  std::int64_t threads = 1;

  /// Some acceptance is given, so that there is something to draft.
  bool knows_acceptance() const;
};

void declare(Options& options, CapacityOptions& o);

/// @throws UsageError where options contradict each other or something is missing
void require_consistent(const CapacityOptions& o);

}  // namespace specdec::cli
