#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/option_file.hpp"

namespace CLI {
class App;
struct ConfigItem;
class Option;
class ParseError;
}  // namespace CLI

namespace specdec::cli {

/// The innermost command or group that was named, and its words, each after a blank: " trace info".
struct ChosenApp {
  const CLI::App* app;
  std::string words;
};
ChosenApp chosen_app(const CLI::App& program);

/// The command or group of the group that has this name; null where there is none.
const CLI::App* command_within(const CLI::App& group, std::string_view name);

/// "--alhpa is not an option of plan (near it: --alpha); see specdec plan --help". Where the option is one of other
/// commands alone these are named instead, and where it stands before its own command, that it must stand behind.
std::string not_an_option(const CLI::App& program, const ChosenApp& chosen, std::string_view word);

/// "paln is not a command (near it: plan), but one of plan, report, ... is needed; see specdec --help"; an empty word
/// is a command that is missing.
std::string not_a_command(const ChosenApp& group, std::string_view word);

/// The line of a configuration file that an option is first given in.
using LinesOfOptions = std::map<const CLI::Option*, std::int64_t>;
/// What a configuration file says, as CLI11 takes it. Refuses, with file and line, sections and keys that name no
/// command and no option, and what would be ignored: a second section of a command, and an option that is given again
/// further below. A list for an option of one value is that value, with commas.
/// @param lines  takes the line of each option
/// @throws UsageError
std::vector<CLI::ConfigItem> config_items(const CLI::App& program, const std::string& file,
                                          const std::vector<FileSection>& sections, LinesOfOptions& lines);

/// A complaint of CLI11's in the form of all others, with the names that were perhaps meant.
std::string rephrased(const CLI::App& program, const CLI::ParseError& error);

}  // namespace specdec::cli
