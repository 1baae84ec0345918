#include "traces/position_source.hpp"

#include <fmt/format.h>

#include <utility>

namespace specdec::traces {

FileError PositionSource::refusal(std::int64_t position, Role role, std::string found, std::string expected) const {
  const char* model = role == Role::target ? "target" : "draft";
  const std::vector<std::filesystem::path> paths = files();
  return {paths.empty() ? "" : paths.front(), fmt::format("the {}'s row at position {}", model, position),
          std::move(found), std::move(expected)};
}

}  // namespace specdec::traces
