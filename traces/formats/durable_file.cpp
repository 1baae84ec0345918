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
  throw FileError(path, "file", "not writable (" + std::generic_category().message(errno) + ")", "writable");
}

/// Locks the descriptor's target exclusively until it is closed; false if another holds the lock. A target that cannot
/// be locked counts as locked.
bool lock(const Descriptor& file) { return ::flock(file.number(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

[[noreturn]] void refuse_second_writer(const fs::path& path, const char* what) {
  throw FileError(path, what, "being written by another run", "written by one at a time");
}

bool stands_at(const Descriptor& file, const fs::path& path) {
  struct stat of_descriptor {
  }, of_path{};
  return ::fstat(file.number(), &of_descriptor) == 0 && ::stat(path.c_str(), &of_path) == 0 &&
         of_descriptor.st_dev == of_path.st_dev && of_descriptor.st_ino == of_path.st_ino;
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

/// A file that disappears with its descriptor, whatever happens to the process; not open if it cannot be created. It
/// has a name for a moment only on file systems without nameless files.
Descriptor open_nameless(const fs::path& folder) {
  Descriptor nameless(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (nameless.is_open() || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return nameless;
  std::string name = (folder / ".specdec-XXXXXX").string();
  Descriptor named(::mkostemp(name.data(), O_CLOEXEC));
  if (named.is_open()) ::unlink(name.c_str());
  return named;
}

/// Makes a rename within the folder durable.
void sync_folder(const fs::path& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) throw_not_writable(folder);
  // Some file systems cannot sync folders and say so.
  if (::fsync(opened.number()) != 0 && errno != EINVAL) throw_not_writable(folder);
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!folder_.is_open()) throw_not_writable(folder);
  if (!lock(folder_)) refuse_second_writer(folder, "folder");
}

DurableFile::DurableFile(fs::path path) : path_(std::move(path)), partial_(path_.string() + suffix) {
  do {
    file_ = Descriptor(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
    if (!file_.is_open()) throw_not_writable(path_);
    if (!lock(file_)) refuse_second_writer(path_, "file");
    // The previous holder may have given it its final name, or removed it.
  } while (!stands_at(file_, partial_));
  if (::ftruncate(file_.number(), 0) != 0) throw_not_writable(path_);
}

DurableFile::~DurableFile() {
  if (file_.is_open()) ::unlink(partial_.c_str());
}

void DurableFile::write(std::span<const std::byte> bytes) {
  if (!write_all(file_, bytes)) throw_not_writable(path_);
}

void DurableFile::commit() {
  if (::fsync(file_.number()) != 0) throw_not_writable(path_);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) throw_not_writable(path_);
  file_ = Descriptor();
  sync_folder(folder_of(path_));
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
  if (!file_.is_open()) file_ = open_nameless(folder_);
  if (!file_.is_open() || !write_all(file_, bytes)) throw_not_writable(folder_);
  spilled_ += static_cast<std::int64_t>(bytes.size());
}

void SpillingBuffer::copy_to(DurableFile& file) const {
  std::vector<std::byte> block(memory_limit);
  for (std::int64_t at = 0; at < spilled_;) {
    const ssize_t count = retried([&] { return ::pread(file_.number(), block.data(), block.size(), at); });
    if (count <= 0) throw_not_writable(folder_);
    file.write({block.data(), static_cast<std::size_t>(count)});
    at += count;
  }
  file.write(memory_);
}

}  // namespace specdec::traces
