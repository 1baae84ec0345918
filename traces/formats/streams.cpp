#include "traces/formats/streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

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

fs::path folder_of_copies() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  return error ? fs::path("/tmp") : folder;
}

int nameless_file(const fs::path& stream) {
  std::string name = (folder_of_copies() / "specdec-input-XXXXXX").string();
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

/// Half of what is free, so that other writers are left some.
std::int64_t room_for_copies() {
  std::error_code error;
  const fs::space_info space = fs::space(folder_of_copies(), error);
  constexpr std::uintmax_t most = std::uintmax_t{1} << 62U;
  return static_cast<std::int64_t>(error ? most : std::min(most, space.available / 2));
}

using Waits = std::function<void(const fs::path&)>;

/// Opens a stream. A named pipe that nobody writes to would be opened only with its writer, so that nothing could be
/// said meanwhile; it is opened at once, and then waited for.
int open_stream(const fs::path& stream, const Waits& waits) {
  if (stream == "-") return STDIN_FILENO;
  std::error_code error;
  if (!fs::is_fifo(stream, error)) return ::open(stream.c_str(), O_RDONLY | O_CLOEXEC);
  const int descriptor = ::open(stream.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return descriptor;
  constexpr int patience_ms = 1000;
  pollfd writer{descriptor, POLLIN, 0};
  if (retried([&] { return ::poll(&writer, 1, patience_ms); }) == 0) {
    if (waits) waits(stream);
    retried([&] { return ::poll(&writer, 1, -1); });
  }
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return descriptor;
}

/// Writes all of it.
void store(int out, const fs::path& stream, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = retried([&] { return ::write(out, bytes.data(), bytes.size()); });
    if (put <= 0) refuse(stream, fmt::format("not stored ({})", reason()), "stored while it is read");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

/// Copies a stream's contents to a file without a name; returns its descriptor.
int copy_of(const fs::path& stream, std::int64_t longest, const Waits& waits) {
  OwnedDescriptor in(open_stream(stream, waits));
  if (in.number < 0) refuse(stream, fmt::format("unreadable ({})", reason()), "a readable file");
  OwnedDescriptor out(nameless_file(stream));
  const std::int64_t room = room_for_copies();
  std::array<char, std::size_t{64} << 10U> buffer;
  std::int64_t total = 0;
  while (true) {
    const ssize_t got = retried([&] { return ::read(in.number, buffer.data(), buffer.size()); });
    if (got < 0) refuse(stream, fmt::format("unreadable ({})", reason()), "a readable file");
    if (got == 0) break;
    if (total == 0 && is_endless(in.number)) refuse(stream, "a device", "a file, a pipe or a terminal");
    total += got;
    if (total > room) {
      refuse(stream, fmt::format("longer than {} bytes, half of what is free in {}", room, folder_of_copies().string()),
             "shorter, or given as a file");
    }
    if (total > longest) refuse(stream, fmt::format("longer than {} bytes", longest), "shorter, or given as a file");
    store(out.number, stream, {buffer.data(), static_cast<std::size_t>(got)});
  }
  return out.take();
}

/// The copies held by one process.
struct Copies {
  std::mutex mutex;
  int scopes = 0;
  Waits waits;
  std::map<FileIdentity, int> descriptors;
  /// Descriptors of texts, by their names.
  std::map<fs::path, int> texts;
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

KeptStreams::KeptStreams(Waits waits) {
  const std::lock_guard lock(copies().mutex);
  if (copies().scopes++ == 0) copies().waits = std::move(waits);
}

KeptStreams::~KeptStreams() {
  const std::lock_guard lock(copies().mutex);
  if (--copies().scopes > 0) return;
  for (const auto& [stream, descriptor] : copies().descriptors) ::close(descriptor);
  copies().descriptors.clear();
  for (const auto& [name, descriptor] : copies().texts) ::close(descriptor);
  copies().texts.clear();
}

void keep_text(const fs::path& name, std::string_view text) {
  OwnedDescriptor out(nameless_file(name));
  store(out.number, name, text);
  const std::lock_guard lock(copies().mutex);
  copies().texts.emplace(name, out.take());
}

fs::path readable_path(const fs::path& file, std::int64_t longest) {
  Copies& kept = copies();
  const std::lock_guard lock(kept.mutex);
  if (const auto text = kept.texts.find(file); text != kept.texts.end())
    return fmt::format("/proc/self/fd/{}", text->second);
  if (kept.scopes == 0 || !is_stream(file)) return file;
  const auto identity = identity_of(file);
  if (!identity) refuse(file, fmt::format("unreadable ({})", reason()), "a readable file");
  auto found = kept.descriptors.find(*identity);
  if (found == kept.descriptors.end())
    found = kept.descriptors.emplace(*identity, copy_of(file, longest, kept.waits)).first;
  return fmt::format("/proc/self/fd/{}", found->second);
}

}  // namespace specdec::traces
