#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace specdec::cli {

/// Help of a command with many options: examples and the options that most people use. --help-all has the rest.
class BriefHelp : public CLI::Formatter {
 public:
  explicit BriefHelp(std::vector<std::string> names) : names_(std::move(names)) {}
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

 private:
  std::vector<std::string> names_;
};

/// The width that help keeps for names.
constexpr std::size_t help_column = 38;

/// Five questions that people have, each with a command that runs in a clone.
std::string first_questions();

}  // namespace specdec::cli
