#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "tests/support/temporary_folder.hpp"
#include "tests/support/trace_file.hpp"
#include "traces/file_error.hpp"
#include "traces/position_source.hpp"

namespace specdec::tests {

/// The error of opening and reading a recording, without the folder in front of files' names; "" if there is none.
inline std::string refusal_of(const std::filesystem::path& folder,
                              const std::function<std::unique_ptr<traces::PositionSource>()>& open) {
  std::string message = message_of<traces::FileError>([&] { WholeTrace trace(*open()); });
  const std::string prefix = folder.string() + "/";
  for (std::size_t at = 0; (at = message.find(prefix, at)) != std::string::npos;) message.erase(at, prefix.size());
  return message;
}

}  // namespace specdec::tests
