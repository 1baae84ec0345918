#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options.hpp"
#include "planner/cost.hpp"
#include "planner/sweeps/shared_costs.hpp"

namespace specdec::cli {

/// --hardware and what goes with it: a cost from what models read and compute and what hardware can do, for every
/// command that prices rounds so. The models' names are the command's own options.
struct RooflineArguments {
  std::optional<std::string> hardware;
  std::optional<std::int64_t> tensor_parallel;
  std::optional<std::int64_t> data_parallel;
  std::optional<std::int64_t> expert_parallel;
  std::optional<std::int64_t> draft_tensor_parallel;
  std::optional<std::string> weight_dtype;
  std::optional<std::string> draft_weight_dtype;
  std::optional<std::string> kv_cache_dtype;
  std::optional<std::string> kernel_times;
  std::optional<std::string> bandwidth_efficiency;
  std::optional<std::string> compute_efficiency;
  std::optional<std::string> link_efficiency;
  std::optional<std::string> all_reduce_latency_us;
  std::optional<std::string> launch_seconds;
  std::optional<std::string> draft_launch_seconds;
  std::optional<std::string> layer_seconds;
  std::optional<std::string> scheduling_seconds;
  std::vector<std::string> calibrate;
  /// Costs shared by many questions that are asked at once; null if there is only one.
  std::shared_ptr<planner::SharedCosts> shared_costs;
};

/// Declares them under headings of their own.
void declare(Options& options, RooflineArguments& a);

/// Which of them are given beside --hardware, by name, for commands that refuse them without it.
std::vector<std::pair<std::string_view, bool>> given_beside_hardware(const RooflineArguments& a);

/// The hardware options that they state.
/// @throws UsageError for a wrong value
planner::HardwareOptions hardware_options(const RooflineArguments& a);

}  // namespace specdec::cli
