#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

#include "cli/command_line.hpp"

namespace specdec::cli {

/// The options that every command has.
struct OutputOptions {
  std::string format = "table";
  std::optional<std::string> table;
  std::optional<std::string> output;
  bool quiet = false;
  bool explain = false;

  void declare(Options& options, const Command& command);
};

struct ParsedCommand {
  const Command* command;
  CLI::App* app;
  Options options;
  OutputOptions output;
  std::function<Report()> run;
};

/// Runs the command and writes its answer.
/// @param config  the configuration file; empty if there is none
/// @return the exit code
/// @throws UsageError
int answer(const ParsedCommand& parsed, const std::string& config);

/// To standard output.
/// @throws UsageError if it cannot be written
void print(const std::string& content);

}  // namespace specdec::cli
