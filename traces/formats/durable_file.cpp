#include "traces/formats/durable_file.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "traces/file_error.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t memory_limit = std::size_t{1} << 20U;

[[noreturn]] void throw_not_writable(const fs::path& path) {
  throw FileError(path, FileError::whole_file(), "file",
                  "not writable (" + std::generic_category().message(errno) + ")", "writable");
}

void write_all(int descriptor, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ::ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_not_writable(path);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

/// Locks the descriptor's target exclusively until it is closed; false if another holds the lock. A target that cannot
/// be locked counts as locked.
bool lock(int descriptor) { return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

[[noreturn]] void refuse_second_writer(const fs::path& path, const char* what) {
  throw FileError(path, FileError::whole_file(), what, "being written by another run", "written by one at a time");
}

bool stands_at(int descriptor, const fs::path& path) {
  struct stat of_descriptor {
  }, of_path{};
  return ::fstat(descriptor, &of_descriptor) == 0 && ::stat(path.c_str(), &of_path) == 0 &&
         of_descriptor.st_dev == of_path.st_dev && of_descriptor.st_ino == of_path.st_ino;
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

/// A file that disappears with its descriptor, whatever happens to the process; below 0 if it cannot be created. It has
/// a name for a moment only on file systems without nameless files.
int open_nameless(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return descriptor;
  std::string name = (folder / ".specdec-XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

/// Makes a rename within the folder durable.
void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_not_writable(folder);
  const int failed = ::fsync(descriptor);
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  // Some file systems cannot sync folders and say so.
  if (failed != 0 && reason != EINVAL) throw_not_writable(folder);
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) throw_not_writable(folder);
  if (lock(descriptor_)) return;
  ::close(descriptor_);
  refuse_second_writer(folder, "folder");
}

FolderLock::~FolderLock() { ::close(descriptor_); }

DurableFile::DurableFile(fs::path path) : path_(std::move(path)), partial_(path_.string() + suffix) {
  for (;;) {
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw_not_writable(path_);
    if (!lock(descriptor_)) {
      ::close(descriptor_);
      refuse_second_writer(path_, "file");
    }
    // The previous holder may have given it its final name, or removed it.
    if (stands_at(descriptor_, partial_)) break;
    ::close(descriptor_);
  }
  if (::ftruncate(descriptor_, 0) == 0) return;
  const int reason = errno;
  ::close(descriptor_);
  errno = reason;
  throw_not_writable(path_);
}

DurableFile::~DurableFile() {
  if (descriptor_ < 0) return;
  ::unlink(partial_.c_str());
  ::close(descriptor_);
}

void DurableFile::write(std::span<const std::byte> bytes) { write_all(descriptor_, bytes, path_); }

void DurableFile::commit() {
  if (::fsync(descriptor_) != 0) throw_not_writable(path_);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) throw_not_writable(path_);
  ::close(std::exchange(descriptor_, -1));
  sync_folder(folder_of(path_));
}

SpillingBuffer::SpillingBuffer(SpillingBuffer&& other) noexcept
    : folder_(std::move(other.folder_)),
      memory_(std::move(other.memory_)),
      spilled_(std::exchange(other.spilled_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

SpillingBuffer::~SpillingBuffer() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SpillingBuffer::append(std::span<const std::byte> bytes) {
  if (memory_.size() + bytes.size() <= memory_limit) {
    memory_.insert(memory_.end(), bytes.begin(), bytes.end());
    return;
  }
  spill(memory_);
  memory_.clear();
  spill(bytes);
}

void SpillingBuffer::spill(std::span<const std::byte> bytes) {
  if (descriptor_ < 0) {
    descriptor_ = open_nameless(folder_);
    if (descriptor_ < 0) throw_not_writable(folder_);
  }
  write_all(descriptor_, bytes, folder_);
  spilled_ += static_cast<std::int64_t>(bytes.size());
}

void SpillingBuffer::copy_to(DurableFile& file) const {
  std::vector<std::byte> block(memory_limit);
  for (std::int64_t at = 0; at < spilled_;) {
    const ::ssize_t count = ::pread(descriptor_, block.data(), block.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw_not_writable(folder_);
    file.write({block.data(), static_cast<std::size_t>(count)});
    at += count;
  }
  file.write(memory_);
}

}  // namespace specdec::traces
