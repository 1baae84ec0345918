#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "traces/formats/descriptor.hpp"

namespace specdec::traces {

/// Locks a folder for one writer, of this process or another, during its lifetime. If the file system has no locks on
/// folders (NFS) it locks nothing.
class FolderLock {
 public:
  /// @throws FileError if another holds it, or the folder cannot be opened
  explicit FolderLock(const std::filesystem::path& folder);

 private:
  Descriptor folder_;
};

/// A file that appears under its name only when it is completely on disk. Until then it is kept next to it as
/// NAME.partial, which is removed with the object; after a crash it remains but is not read. There is one object per
/// name at a time, over all processes.
class DurableFile {
 public:
  static constexpr const char* suffix = ".partial";

  /// @throws FileError if the place is not writable, or another object writes there
  explicit DurableFile(std::filesystem::path path);
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;
  ~DurableFile();

  const std::filesystem::path& path() const noexcept { return path_; }

  /// @throws FileError if the disk reports an error
  void write(std::span<const std::byte> bytes);

  /// Flushes the file to disk and moves it to its name, replacing any file of that name; no writes may follow.
  /// @throws FileError if the disk reports an error
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path partial_;
  Descriptor file_;
};

/// Bytes that are appended and later read once from the front: a few stay in memory, the rest go to a nameless file,
/// so that memory use is bounded.
class SpillingBuffer {
 public:
  /// @param folder  for the nameless file; needed from the first spill on
  explicit SpillingBuffer(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::int64_t size() const noexcept { return spilled_ + static_cast<std::int64_t>(memory_.size()); }

  /// @throws FileError if the disk reports an error
  void append(std::span<const std::byte> bytes);
  /// @throws FileError if the disk reports an error
  void copy_to(DurableFile& file) const;

 private:
  void spill(std::span<const std::byte> bytes);

  std::filesystem::path folder_;
  std::vector<std::byte> memory_;
  std::int64_t spilled_ = 0;
  Descriptor file_;
};

}  // namespace specdec::traces
