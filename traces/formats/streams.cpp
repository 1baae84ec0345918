#include "traces/formats/streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <map>
#include <mutex>
#include <span>
#include <system_error>

#include "traces/file_error.hpp"
#include "traces/formats/descriptor.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& stream, const std::string& what, const std::string& expected) {
  throw FileError(stream, "file", what, expected);
}

std::string reason() { return std::generic_category().message(errno); }

fs::path folder_of_copies() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  return error ? fs::path("/tmp") : folder;
}

Descriptor nameless_file(const fs::path& stream) {
  std::string name = (folder_of_copies() / "specdec-input-XXXXXX").string();
  Descriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.is_open()) refuse(stream, fmt::format("not stored ({}: {})", name, reason()), "stored while it is read");
  ::unlink(name.c_str());
  return file;
}

/// /dev/null is empty, a terminal ends at the user's command; other devices have no end.
bool is_endless(const Descriptor& file) {
  struct stat facts {};
  return ::fstat(file.number(), &facts) == 0 && S_ISCHR(facts.st_mode) && ::isatty(file.number()) == 0;
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
Descriptor open_stream(const fs::path& stream, const Waits& waits) {
  if (stream == "-") return Descriptor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  std::error_code error;
  if (!fs::is_fifo(stream, error)) return Descriptor(::open(stream.c_str(), O_RDONLY | O_CLOEXEC));
  Descriptor file(::open(stream.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return file;
  constexpr int patience_ms = 1000;
  pollfd writer{file.number(), POLLIN, 0};
  if (retried([&] { return ::poll(&writer, 1, patience_ms); }) == 0) {
    if (waits) waits(stream);
    retried([&] { return ::poll(&writer, 1, -1); });
  }
  ::fcntl(file.number(), F_SETFL, ::fcntl(file.number(), F_GETFL) & ~O_NONBLOCK);
  return file;
}

/// Writes all of it.
void store(const Descriptor& out, const fs::path& stream, std::string_view bytes) {
  if (write_all(out, std::as_bytes(std::span<const char>(bytes.data(), bytes.size())))) return;
  refuse(stream, fmt::format("not stored ({})", reason()), "stored while it is read");
}

/// A file without a name that holds a stream's contents.
Descriptor stored_copy(const fs::path& stream, std::int64_t longest, const Waits& waits) {
  const Descriptor in = open_stream(stream, waits);
  if (!in.is_open()) refuse(stream, fmt::format("unreadable ({})", reason()), "a readable file");
  Descriptor out = nameless_file(stream);
  const std::int64_t room = room_for_copies();
  std::array<char, std::size_t{64} << 10U> buffer;
  std::int64_t total = 0;
  while (true) {
    const ssize_t got = retried([&] { return ::read(in.number(), buffer.data(), buffer.size()); });
    if (got < 0) refuse(stream, fmt::format("unreadable ({})", reason()), "a readable file");
    if (got == 0) break;
    if (total == 0 && is_endless(in)) refuse(stream, "a device", "a file, a pipe or a terminal");
    total += got;
    if (total > room) {
      refuse(stream, fmt::format("longer than {} bytes, half of what is free in {}", room, folder_of_copies().string()),
             "shorter, or given as a file");
    }
    if (total > longest) refuse(stream, fmt::format("longer than {} bytes", longest), "shorter, or given as a file");
    store(out, stream, {buffer.data(), static_cast<std::size_t>(got)});
  }
  return out;
}

/// The copies held by one process.
struct Copies {
  std::mutex mutex;
  int scopes = 0;
  Waits waits;
  std::map<FileIdentity, Descriptor> files;
  std::map<fs::path, Descriptor> texts;
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
  copies().files.clear();
  copies().texts.clear();
}

void keep_text(const fs::path& name, std::string_view text) {
  Descriptor out = nameless_file(name);
  store(out, name, text);
  const std::lock_guard lock(copies().mutex);
  copies().texts.emplace(name, std::move(out));
}

fs::path readable_path(const fs::path& file, std::int64_t longest) {
  Copies& kept = copies();
  const std::lock_guard lock(kept.mutex);
  if (const auto text = kept.texts.find(file); text != kept.texts.end())
    return fmt::format("/proc/self/fd/{}", text->second.number());
  if (kept.scopes == 0 || !is_stream(file)) return file;
  const auto identity = identity_of(file);
  if (!identity) refuse(file, fmt::format("unreadable ({})", reason()), "a readable file");
  auto found = kept.files.find(*identity);
  if (found == kept.files.end()) found = kept.files.emplace(*identity, stored_copy(file, longest, kept.waits)).first;
  return fmt::format("/proc/self/fd/{}", found->second.number());
}

std::string small_file(const fs::path& file) {
  constexpr std::size_t longest = std::size_t{1} << 20U;
  const KeptStreams streams;
  errno = 0;
  std::ifstream in(readable_path(file, longest), std::ios::binary);
  std::string text(longest + 1, '\0');
  in.read(text.data(), longest + 1);
  const auto length = static_cast<std::size_t>(in.gcount());
  if (!in.is_open() || in.bad()) refuse(file, fmt::format("unreadable ({})", reason()), "a readable file");
  if (length > longest) refuse(file, "longer", fmt::format("of at most {} bytes", longest));
  text.resize(length);
  return text;
}

}  // namespace specdec::traces
