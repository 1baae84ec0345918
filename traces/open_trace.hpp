#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "traces/position_source.hpp"

namespace specdec::traces {

/// Options for reading files, as far as they do not state them themselves.
struct OpenOptions : ArrayNames {
  /// Leave out shards that are unreadable instead of refusing the trace.
  bool salvage = false;
  /// Called for each inconsistency by the readers that can continue after one (specdec-trace); the others throw.
  std::function<void(const FileError&)> on_error;
  /// A pair recorded separately, one file per model; both or neither. There are no other files then.
  std::filesystem::path target;
  std::filesystem::path draft;

  bool pair() const { return !target.empty(); }
};

/// The beginning of a file, from which its format is determined.
struct FileHead {
  std::filesystem::path path;
  /// A folder has neither size nor bytes.
  bool folder = false;
  std::int64_t size = 0;
  /// The first bytes, at most 64 KiB, so possibly cut off anywhere.
  std::string bytes;

  /// @throws FileError if the file cannot be read
  static FileHead of(const std::filesystem::path& path);

  bool starts_with(std::string_view magic) const { return std::string_view(bytes).starts_with(magic); }
  /// The content without leading blanks and byte order mark; empty if it cannot be JSON.
  std::string_view json() const;
  /// The first few bytes, printable.
  std::string excerpt() const;
  /// "gzip", "zstd", "zip", "xz" or "bzip2" by the magic bytes; empty for a file that is not compressed.
  std::string_view compression() const;
  /// "a table whose first line is numbers", "a table of the columns a, b"; empty if its first two lines are none.
  std::string table() const;
  /// Refuses a file in no known format, with what was found and expected: "gzip-compressed" and "decompressed first,
  /// then ...", the file's beginning and `formats`, or, of a table, its columns and those of `tables`.
  [[noreturn]] void refuse_format(const std::string& formats, std::string_view tables = {}) const;
};

/// A readable format; open_trace.cpp lists them all, specific ones before general ones.
struct TraceFormat {
  std::string_view name;
  /// True if a file's content is in this format; never decided by the file's name.
  bool (*recognises)(const FileHead& head);
  /// Opens files of this format: one or several in order, or none with options.pair(), both of whose files have it.
  std::unique_ptr<PositionSource> (*open)(std::span<const std::filesystem::path> files, const OpenOptions& options);
};

/// True if a file that begins like this is a recording, or one model's half of one.
bool recognised_trace(const FileHead& head);

/// Opens a recording in any readable format, determined from its content. A folder is a specdec-trace.
/// @throws FileError if a file is unreadable, in no readable format or in another than before; or UnpairedFile
/// @throws std::invalid_argument if there are neither files nor a pair, or both, or half a pair
std::unique_ptr<PositionSource> open_trace(std::span<const std::filesystem::path> files,
                                           const OpenOptions& options = {});

}  // namespace specdec::traces
