#include "render/figures/gnuplot.hpp"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "planner/question_error.hpp"

namespace specdec::render {
namespace {

/// A file without a name, in memory: unlike a pipe it accepts data whether or not anybody reads.
class NamelessFile {
 public:
  explicit NamelessFile(const char* purpose) : descriptor_(memfd_create(purpose, MFD_CLOEXEC)) {
    if (descriptor_ < 0) fail("made");
  }
  ~NamelessFile() { close(descriptor_); }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;

  int descriptor() const { return descriptor_; }

  void fill(std::string_view content) {
    while (!content.empty()) {
      const ssize_t written = write(descriptor_, content.data(), content.size());
      if (written < 0) fail("written");
      content.remove_prefix(static_cast<std::size_t>(written));
    }
    lseek(descriptor_, 0, SEEK_SET);
  }

  std::string content() const {
    lseek(descriptor_, 0, SEEK_SET);
    std::string all;
    std::array<char, 1 << 16> block;
    for (;;) {
      const ssize_t count = read(descriptor_, block.data(), block.size());
      if (count < 0) fail("read");
      if (count == 0) return all;
      all.append(block.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), fmt::format("a file in memory cannot be {}", what));
  }

  int descriptor_;
};

/// Starts gnuplot without the user's settings on these three files and waits for its end.
int exit_status_of_gnuplot(const NamelessFile& in, const NamelessFile& out, const NamelessFile& err) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err.descriptor(), STDERR_FILENO);
  std::string name = "gnuplot", plain = "--default-settings";
  char* const words[] = {name.data(), plain.data(), nullptr};
  pid_t process = 0;
  const int error = posix_spawnp(&process, name.c_str(), &files, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&files);
  if (error == ENOENT)
    throw planner::QuestionError(
        "gnuplot is needed to draw, but there is no such program; Debian's package is gnuplot-nox");
  if (error != 0)
    throw planner::QuestionError(fmt::format("gnuplot is needed to draw, but cannot be run: {}", std::strerror(error)));
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waiting for gnuplot");
  }
  return status;
}

}  // namespace

std::string run_gnuplot(std::string_view script) {
  NamelessFile in("gnuplot script");
  const NamelessFile out("drawing"), err("gnuplot complaints");
  in.fill(script);
  const int status = exit_status_of_gnuplot(in, out, err);
  if (status == 0) return out.content();
  std::string complaint = err.content();
  complaint.erase(complaint.find_last_not_of(" \n") + 1);
  // It was ended from outside, or its libraries could not be loaded.
  constexpr int not_started = 127;
  if (WIFSIGNALED(status)) complaint = fmt::format("signal {} ended it", WTERMSIG(status));
  if (WIFSIGNALED(status) || WEXITSTATUS(status) == not_started) {
    throw planner::QuestionError(fmt::format("gnuplot is needed to draw, but cannot be run: {}", complaint));
  }
  throw std::runtime_error(fmt::format("gnuplot failed: {}", complaint));
}

}  // namespace specdec::render
