#include "traces/serving/spooled_input.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include "traces/file_error.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

/// A descriptor that is closed unless it is taken out.
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

/// read() or write() that a signal does not end.
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

}  // namespace

bool is_stream(const fs::path& file) {
  if (file == "-") return true;
  std::error_code error;
  const fs::file_type type = fs::status(file, error).type();
  return type == fs::file_type::fifo || type == fs::file_type::character || type == fs::file_type::socket;
}

SpooledInput::SpooledInput(const fs::path& stream, std::int64_t bound) {
  OwnedDescriptor in(stream == "-" ? STDIN_FILENO : ::open(stream.c_str(), O_RDONLY | O_CLOEXEC));
  if (in.number < 0) refuse(stream, fmt::format("unreadable ({})", reason()), "a readable file");
  OwnedDescriptor out(nameless_file(stream));
  std::array<char, std::size_t{64} << 10U> buffer;
  std::int64_t total = 0;
  while (true) {
    const ssize_t got = retried([&] { return ::read(in.number, buffer.data(), buffer.size()); });
    if (got < 0) refuse(stream, fmt::format("unreadable ({})", reason()), "a readable file");
    if (got == 0) break;
    total += got;
    if (total > bound) refuse(stream, fmt::format("longer than {} bytes", bound), "shorter, or given as a file");
    for (ssize_t done = 0; done < got;) {
      const auto rest = static_cast<std::size_t>(got - done);
      const ssize_t put = retried([&] { return ::write(out.number, buffer.data() + done, rest); });
      if (put <= 0) refuse(stream, fmt::format("not stored ({})", reason()), "stored while it is read");
      done += put;
    }
  }
  descriptor_ = out.take();
}

SpooledInput::~SpooledInput() { ::close(descriptor_); }

fs::path SpooledInput::path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

}  // namespace specdec::traces
