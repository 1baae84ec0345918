#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

namespace specdec::traces {

/// A file whose content violates its format.
///
/// what() is one line: `PATH:LINE: FIELD is FOUND, but must be EXPECTED`, or with `byte OFFSET`
/// in place of the line for binary files. Nothing has been changed or half-read when it is thrown.
class FileError : public std::runtime_error {
 public:
  /// The place in the file: a 1-based line, a 0-based byte offset, or the file as a whole.
  struct Location {
    enum class Kind { whole_file, line, byte };
    Kind kind = Kind::whole_file;
    std::int64_t number = 0;
  };
  static Location whole_file() { return {}; }
  static Location line(std::int64_t number) { return {Location::Kind::line, number}; }
  static Location byte(std::int64_t offset) { return {Location::Kind::byte, offset}; }

  FileError(std::filesystem::path path, Location location, std::string field, std::string found, std::string expected);
  /// Of the whole file.
  FileError(std::filesystem::path path, std::string field, std::string found, std::string expected)
      : FileError(std::move(path), {}, std::move(field), std::move(found), std::move(expected)) {}

  const std::filesystem::path& path() const noexcept { return path_; }
  Location location() const noexcept { return location_; }
  const std::string& field() const noexcept { return field_; }
  const std::string& found() const noexcept { return found_; }
  const std::string& expected() const noexcept { return expected_; }

 private:
  std::filesystem::path path_;
  Location location_;
  std::string field_;
  std::string found_;
  std::string expected_;
};

}  // namespace specdec::traces
