#include "traces/formats/streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <mutex>
#include <string>
#include <system_error>

#include "traces/file_error.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

/// A descriptor that is closed unless it is released.
struct OwnedDescriptor {
  int number;
  explicit OwnedDescriptor(int n) : number(n) {}
  OwnedDescriptor(const OwnedDescriptor&) = delete;
  OwnedDescriptor& operator=(const OwnedDescriptor&) = delete;
  ~OwnedDescriptor() {
    if (number > STDERR_FILENO) ::close(number);
  }
  int take() {
    const int taken = number;
    number = -1;
    return taken;
  }
};

[[noreturn]] void refuse(const fs::path& stream, const std::string& what, const std::string& expected) {
  throw FileError(stream, FileError::whole_file(), "file", what, expected);
}

std::string reason() { return std::generic_category().message(errno); }

/// read() or write(), repeated if interrupted by a signal.
template <class Call>
ssize_t retried(const Call& call) {
  ssize_t result = -1;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

int nameless_file(const fs::path& stream) {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (error) folder = "/tmp";
  std::string name = (folder / "specdec-input-XXXXXX").string();
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) refuse(stream, fmt::format("not stored ({}: {})", name, reason()), "stored while it is read");
  ::unlink(name.c_str());
  return descriptor;
}

/// /dev/null is empty, a terminal ends at the user's command; other devices have no end.
bool is_endless(int descriptor) {
  struct stat facts {};
  return ::fstat(descriptor, &facts) == 0 && S_ISCHR(facts.st_mode) && ::isatty(descriptor) == 0;
}

/// Copies a stream's contents to a file without a name; returns its descriptor.
int copy_of(const fs::path& stream, std::int64_t longest) {
  OwnedDescriptor in(stream == "-" ? STDIN_FILENO : ::open(stream.c_str(), O_RDONLY | O_CLOEXEC));
  if (in.number < 0) refuse(stream, fmt::format("unreadable ({})", reason()), "a readable file");
  OwnedDescriptor out(nameless_file(stream));
  std::array<char, std::size_t{64} << 10U> buffer;
  std::int64_t total = 0;
  while (true) {
    const ssize_t got = retried([&] { return ::read(in.number, buffer.data(), buffer.size()); });
    if (got < 0) refuse(stream, fmt::format("unreadable ({})", reason()), "a readable file");
    if (got == 0) break;
    if (total == 0 && is_endless(in.number)) refuse(stream, "a device", "a file, a pipe or a terminal");
    total += got;
    if (total > longest) refuse(stream, fmt::format("longer than {} bytes", longest), "shorter, or given as a file");
    for (ssize_t done = 0; done < got;) {
      const auto rest = static_cast<std::size_t>(got - done);
      const ssize_t put = retried([&] { return ::write(out.number, buffer.data() + done, rest); });
      if (put <= 0) refuse(stream, fmt::format("not stored ({})", reason()), "stored while it is read");
      done += put;
    }
  }
  return out.take();
}

/// The copies held by one process.
struct Copies {
  std::mutex mutex;
  int scopes = 0;
  std::map<FileIdentity, int> descriptors;
};

Copies& copies() {
  static Copies of_process;
  return of_process;
}

}  // namespace

bool is_stream(const fs::path& file) {
  if (file == "-") return true;
  std::error_code error;
  const fs::file_type type = fs::status(file, error).type();
  return type == fs::file_type::fifo || type == fs::file_type::character || type == fs::file_type::socket;
}

std::optional<FileIdentity> identity_of(const fs::path& file) {
  struct stat facts {};
  const int failed = file == "-" ? ::fstat(STDIN_FILENO, &facts) : ::stat(file.c_str(), &facts);
  if (failed != 0) return std::nullopt;
  return FileIdentity(facts.st_dev, facts.st_ino);
}

KeptStreams::KeptStreams() {
  const std::lock_guard lock(copies().mutex);
  ++copies().scopes;
}

KeptStreams::~KeptStreams() {
  const std::lock_guard lock(copies().mutex);
  if (--copies().scopes > 0) return;
  for (const auto& [stream, descriptor] : copies().descriptors) ::close(descriptor);
  copies().descriptors.clear();
}

fs::path readable_path(const fs::path& file, std::int64_t longest) {
  Copies& kept = copies();
  const std::lock_guard lock(kept.mutex);
  if (kept.scopes == 0 || !is_stream(file)) return file;
  const auto identity = identity_of(file);
  if (!identity) refuse(file, fmt::format("unreadable ({})", reason()), "a readable file");
  auto found = kept.descriptors.find(*identity);
  if (found == kept.descriptors.end()) found = kept.descriptors.emplace(*identity, copy_of(file, longest)).first;
  return fmt::format("/proc/self/fd/{}", found->second);
}

}  // namespace specdec::traces
