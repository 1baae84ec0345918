#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/report.hpp"
#include "cli/sampling_options.hpp"
#include "planner/methods/checkpoint_pair.hpp"
#include "render/step_figure.hpp"
#include "sim/decoding.hpp"

namespace specdec::cli {

/// The text to decode for Figure 1, and the settings for it.
struct ShownTextOptions {
  planner::CheckpointPair::Paths paths;
  std::optional<std::string> tasks;
  std::optional<std::string> prompt;  ///< the first one of the tasks where missing
  double temperature = 1;
  std::int64_t gamma = 4;
  SamplingCuts cuts;
  std::int64_t tokens = 48;
  const char* tokens_option = "--tokens";  ///< the command's name for them
  std::int64_t seed = 1;
  std::int64_t threads = 1;
};

/// One text as Algorithm 1 decoded it.
struct ShownText {
  std::string prompt;
  sim::Generation text;
  std::vector<render::FigureStep> steps;  ///< as text, one for each of the text's
  std::vector<nlohmann::ordered_json> files;
  std::vector<Assumption> assumptions;
};

/// @throws UsageError, traces::FileError
ShownText decode_shown_text(const ShownTextOptions& options);

/// {"drafted", "accepted", "accepted_text", "rejected_text", "target_text"} of each step.
nlohmann::ordered_json steps_json(const ShownText& shown);

}  // namespace specdec::cli
