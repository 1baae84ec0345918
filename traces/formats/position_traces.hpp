#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "traces/position_source.hpp"

namespace specdec::traces {

// Position traces, one sequence per line: for every place of the text the number of tokens that a round starting there
// would emit, the target's own included:
//
//   {"prompt_token_ids":[1,15],"generated_token_ids":[7,9,3],"acc_eagle":{"acc_len":[3,2,1]}}
//
// Each `acc_NAME` is one draft. generated_token_ids may be left out, or be longer than acc_len if the last places
// were not measured. A `task` or `category` may be present. Lines of one `prompt`, or without it of one
// prompt_token_ids, are texts of one prompt. Other keys are not read.

inline constexpr std::string_view position_trace_draft_prefix = "acc_";

/// True if a text that begins like this has such an object on its first line.
bool is_position_traces(std::string_view head);

/// Tier accepted_length.
/// @throws FileError naming the line and the key
std::unique_ptr<PositionSource> open_position_traces(const std::filesystem::path& path, const ArrayNames& options = {});

}  // namespace specdec::traces
