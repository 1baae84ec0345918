#include "traces/file_error.hpp"

#include <fmt/format.h>

namespace specdec::traces {
namespace {

std::string message(const std::filesystem::path& path, FileError::Location location, const std::string& field,
                    const std::string& found, const std::string& expected) {
  std::string where = path.string();
  if (location.kind == FileError::Location::Kind::line) where += fmt::format(":{}", location.number);
  if (location.kind == FileError::Location::Kind::byte) where += fmt::format(": byte {}", location.number);
  if (found == "unreadable (No such file or directory)")
    return where + (where.find("://") == std::string::npos
                        ? ": no such file"
                        : ": no such file; `specdec counters --scrape` reads a server");
  return fmt::format("{}: {} is {}, but must be {}", where, field, found, expected);
}

}  // namespace

FileError::FileError(std::filesystem::path path, Location location, std::string field, std::string found,
                     std::string expected)
    : std::runtime_error(message(path, location, field, found, expected)),
      path_(std::move(path)),
      location_(location),
      field_(std::move(field)),
      found_(std::move(found)),
      expected_(std::move(expected)) {}

}  // namespace specdec::traces
