#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace specdec::cli {

/// The script that a shell reads for completion: of bash, zsh or fish. @throws UsageError for another shell
std::string completion_script(std::string_view shell);

/// The names that --table takes, of a command by its words.
using CommandTables = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Candidates for the last word of a command line, as the scripts read them: a line "files" where names of files may
/// stand, else "words"; then a line for each candidate, with a tab and its meaning. The beginning of the word does not
/// count, except for a dash, which asks for options, and "--option=", which asks for its values.
/// @param words   those behind the program's own name; one or more
std::string candidates(const CLI::App& program, const CommandTables& tables, std::span<const std::string> words);

}  // namespace specdec::cli
