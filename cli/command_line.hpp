#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "cli/report.hpp"

namespace specdec::cli {

/// A subcommand: `setup` declares its options and returns what runs once they are parsed.
struct Command {
  std::string name;
  std::string summary;
  std::vector<CsvTable> tables;  // the first one is the main table
  std::function<Report()> (*setup)(Options& options);
};

/// Exit codes of the program.
enum ExitCode { success = 0, check_failed = 1, usage_error = 2, internal_error = 3 };

/// Parses the arguments, runs the command and writes its report. Never throws; errors are one line on standard error.
int run_command_line(const std::vector<Command>& commands, int argc, const char* const* argv);

}  // namespace specdec::cli
