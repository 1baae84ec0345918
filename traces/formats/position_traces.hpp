#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "traces/position_source.hpp"

namespace specdec::traces {

// Position traces, one sequence a line: for every place of the text how many tokens a round that starts there would
// emit, the target's own included:
//
//   {"prompt_token_ids":[1,15],"generated_token_ids":[7,9,3],"acc_eagle":{"acc_len":[3,2,1]}}
//
// Each `acc_NAME` is one draft. generated_token_ids may be left out, or be longer than acc_len where the last places
// were not measured. A `task` or `category` may stand beside them. Lines of one `prompt`, or without it of one
// prompt_token_ids, are texts of one prompt. Other keys are not read.

inline constexpr std::string_view position_trace_draft_prefix = "acc_";

struct PositionTraceOptions {
  /// Which `acc_...` object, with or without its "acc_"; needed where a file has several.
  std::string draft;
};

/// Whether a text that begins like this has such an object on its first line.
bool is_position_traces(std::string_view head);

/// Tier accepted_length.
/// @throws FileError naming the line and the key
std::unique_ptr<PositionSource> open_position_traces(const std::filesystem::path& path,
                                                     const PositionTraceOptions& options = {});

}  // namespace specdec::traces
