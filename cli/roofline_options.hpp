#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/cost/roofline_cost.hpp"
#include "cli/named_specs.hpp"
#include "cli/options.hpp"
#include "cli/report.hpp"

namespace specdec::cli {

/// --hardware and what goes with it: a cost from what models read and compute and what hardware can do, for every
/// command that prices rounds so. The models' names are the command's own options.
struct RooflineArguments {
  std::optional<std::string> hardware;
  std::optional<std::int64_t> tensor_parallel;
  std::optional<std::int64_t> draft_tensor_parallel;
  std::optional<std::string> weight_dtype;
  std::optional<std::string> draft_weight_dtype;
  std::optional<std::string> kv_cache_dtype;
  std::optional<std::string> bandwidth_efficiency;
  std::optional<std::string> compute_efficiency;
  std::optional<std::string> link_efficiency;
  std::optional<std::string> all_reduce_latency_us;
  std::optional<std::string> launch_seconds;
  std::optional<std::string> draft_launch_seconds;
  std::optional<std::string> layer_seconds;
  std::optional<std::string> scheduling_seconds;
  std::vector<std::string> calibrate;
  /// Files that were read before, and are not read again.
  NamedSpecs known;
};

/// Declares them under headings of their own.
void declare(Options& options, RooflineArguments& a);

/// Which of them are given beside --hardware, by name, for commands that refuse them without it.
std::vector<std::pair<std::string_view, bool>> given_beside_hardware(const RooflineArguments& a);

/// The models that --hardware is to run.
struct RooflineModels {
  /// --model: a preset's name, else a configuration's file or folder.
  std::optional<std::string> target;
  /// False: nothing drafts, and the three below are not used.
  bool drafts = true;
  cost::DraftKind kind = cost::DraftKind::model;
  /// The same of --draft-model; not needed for n-grams, and for mtp the target's own module where it is nothing.
  std::optional<std::string> draft;
  /// Instead of --draft-tensor-parallel-size.
  std::optional<std::int64_t> draft_tensor_parallel;
  /// How messages name the options: "--model", "--draft-model", "--draft NAME: model".
  std::string target_option = "--model", draft_option = "--draft-model";
};

/// A cost with everything that it was made from.
struct PricedRoofline {
  std::shared_ptr<const cost::RooflineCost> cost;
  std::vector<std::string> files;
  /// What the files among them describe.
  NamedSpecs specs;
  /// {"kind", "name", "sources"}: stand in "inputs" as "presets".
  std::vector<nlohmann::ordered_json> presets;
  /// Losses and number types, with where each comes from.
  std::vector<Assumption> assumptions;
  /// What the cost found; without what its memory does not hold.
  std::vector<Warning> warnings;
};

/// @throws UsageError for a wrong value or a name that is neither a preset's nor a file's; traces::FileError
PricedRoofline roofline_from(const RooflineArguments& a, const RooflineModels& models);

}  // namespace specdec::cli
