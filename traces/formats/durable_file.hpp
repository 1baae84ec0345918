#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

namespace specdec::traces {

/// Holds a folder for one writer, of this process or another, while it lives. Where the file system knows no locks of
/// folders (NFS) it holds nothing.
class FolderLock {
 public:
  /// @throws FileError if another holds it, or the folder cannot be opened
  explicit FolderLock(const std::filesystem::path& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  int descriptor_;
};

/// A file that appears under its name only when all of it is on the disk. Until then it stands beside it as
/// NAME.partial, which goes with the object; after a crash it stays and reads as nothing. There is one object of a name
/// at a time, in all processes.
class DurableFile {
 public:
  static constexpr const char* suffix = ".partial";

  /// @throws FileError if the place cannot be written, or another object writes there
  explicit DurableFile(std::filesystem::path path);
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;
  ~DurableFile();

  const std::filesystem::path& path() const noexcept { return path_; }

  /// @throws FileError if the disk refuses
  void write(std::span<const std::byte> bytes);

  /// Puts the file on the disk and under its name, in place of any file of that name; nothing is written afterwards.
  /// @throws FileError if the disk refuses
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path partial_;
  int descriptor_;
};

/// Bytes that are appended and later read from the front once: few of them stay in memory, more go to a nameless file,
/// so that memory use is bounded.
class SpillingBuffer {
 public:
  /// @param folder  where the nameless file goes; needed from the first spill on
  explicit SpillingBuffer(std::filesystem::path folder) : folder_(std::move(folder)) {}
  SpillingBuffer(SpillingBuffer&& other) noexcept;
  SpillingBuffer& operator=(SpillingBuffer&&) = delete;
  ~SpillingBuffer();

  std::int64_t size() const noexcept { return spilled_ + static_cast<std::int64_t>(memory_.size()); }

  /// @throws FileError if the disk refuses
  void append(std::span<const std::byte> bytes);
  /// @throws FileError if the disk refuses
  void copy_to(DurableFile& file) const;

 private:
  void spill(std::span<const std::byte> bytes);

  std::filesystem::path folder_;
  std::vector<std::byte> memory_;
  std::int64_t spilled_ = 0;
  int descriptor_ = -1;
};

}  // namespace specdec::traces
