#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/support/catch.hpp"

namespace specdec::tests {

/// The result of one run of the program.
struct Run {
  int exit_code;
  std::string out;
  std::string err;
};

inline std::string content_of(const std::filesystem::path& file) {
  std::ostringstream content;
  content << std::ifstream(file, std::ios::binary).rdbuf();
  return content.str();
}

/// A folder of its own for one test, removed at its end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "specdec-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::size_t files() const {
    const auto entries = std::filesystem::directory_iterator(path_);
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }

 private:
  std::filesystem::path path_;
};

/// The built program. One object holds its path, so that all others compile alike in every checkout.
std::string specdec_binary();

/// Runs the built program through the shell with these arguments.
inline Run run_specdec(const std::string& arguments) {
  const ScratchFolder scratch;
  const std::string command = specdec_binary() + " " + arguments + " >" + (scratch / "out").string() + " 2>" +
                              (scratch / "err").string() + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(scratch / "out"), content_of(scratch / "err")};
}

/// The same with a Ctrl-C, so many seconds after the program catches it (bit 1 of the mask that the kernel shows),
/// however long it took to start.
inline Run interrupted_run(const std::string& arguments, double seconds = 0.1) {
  const ScratchFolder scratch;
  // A shell without job control starts background jobs with SIGINT ignored, so that env gives it back.
  const std::string command = "env --default-signal=INT " + specdec_binary() + " " + arguments + " >" +
                              (scratch / "out").string() + " 2>" + (scratch / "err").string() +
                              " </dev/null & program=$!; for i in $(seq 1000); do "
                              "grep -q '^SigCgt:.*[2367abef]$' /proc/$program/status && break; sleep 0.02; done; "
                              "sleep " +
                              std::to_string(seconds) + "; kill -INT $program; wait $program";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(scratch / "out"), content_of(scratch / "err")};
}

/// Exit 2, exactly this line on standard error and nothing on standard output.
inline void check_run_refused(const std::string& arguments, const std::string& message) {
  const Run run = run_specdec(arguments);
  INFO("specdec " << arguments);
  CHECK(run.exit_code == 2);
  CHECK(run.err == "specdec: error: " + message + "\n");
  CHECK(run.out.empty());
}

/// The JSON document that a run prints, with nothing on standard error.
inline nlohmann::ordered_json document_of_run(const std::string& arguments, int exit_code = 0) {
  const Run run = run_specdec(arguments + " --format json");
  INFO("specdec " << arguments << '\n' << run.err);
  REQUIRE(run.exit_code == exit_code);
  REQUIRE(run.err.empty());
  return nlohmann::ordered_json::parse(run.out);
}

inline bool warns(const nlohmann::ordered_json& document, const std::string& code) {
  for (const auto& warning : document["warnings"]) {
    if (warning["code"] == code) return true;
  }
  return false;
}

}  // namespace specdec::tests
