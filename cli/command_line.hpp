#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "cli/report.hpp"

namespace specdec::cli {

/// A subcommand: `setup` declares its options and returns what runs once they are parsed.
struct Command {
  /// One word, or two: "trace info" is the command info of the group trace. A group's own word: what runs where none of
  /// its commands is named.
  std::string name;
  std::string summary;
  std::vector<CsvTable> tables;  // the first one is the main table
  std::function<std::function<Report()>(Options& options)> setup;
  /// --output is an option of the command itself, for instance the trace that it writes, and the report goes to
  /// standard output.
  bool owns_output = false;
  /// The schema of the JSON output: "plot figure" is specdec.plot.figure/2. If empty, that of the name.
  std::string schema = {};
  /// --table chooses what text shows, too: the report has one of each table.
  bool tables_in_text = false;
};

/// The setup of a command that keeps its options in a structure.
/// @param run      answers them, once they are parsed
/// @param declare  if left out, the structure's own
template <class Chosen>
std::function<std::function<Report()>(Options&)> setup_of(
    Report (*run)(const Chosen&, const Options&),
    void (*declare)(Options&, Chosen&) = [](Options& options, Chosen& chosen) { chosen.declare(options); }) {
  return [run, declare](Options& options) {
    const auto chosen = std::make_shared<Chosen>();
    declare(options, *chosen);
    return [run, chosen, &options] { return run(*chosen, options); };
  };
}

/// The first word of commands that have two.
struct CommandGroup {
  std::string name;
  std::string summary;
};

/// Exit codes of the program.
enum ExitCode { success = 0, check_failed = 1, usage_error = 2, internal_error = 3 };

/// Parses the arguments, runs the command and writes its report. Never throws; errors are one line on standard error.
/// Every group of a command is in `groups`.
int run_command_line(const std::vector<CommandGroup>& groups, const std::vector<Command>& commands, int argc,
                     const char* const* argv);

}  // namespace specdec::cli
