#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace specdec::traces {

// Prompts, JSON objects as JsonLines reads them, mostly one a line, each with either a text or token ids; `task` may be
// left out. For instance:
//
//   {"task": "prose", "text": "It was a dark and stormy night"}
//   {"task": "code", "tokens": [1, 733, 16289, 28793]}
//
// Other keys are not read.
//
// Or plain text, in a file whose name ends in .txt: each nonblank line is a text.

/// One prompt: either `text` or `tokens` is not empty.
struct Prompt {
  std::string task = "all";
  std::string text;
  std::vector<std::int32_t> tokens;
};

/// Reads a file of prompts.
/// @throws FileError naming the line and the key if a line is not an object, has both or neither of `text` and
///   `tokens`, has one that is empty or of another type, or a token outside [0, 2^31); or if there are no lines
std::vector<Prompt> read_prompts(const std::filesystem::path& path);

}  // namespace specdec::traces
