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

/// What may stand on a command line in the place of its last word, as the scripts read it: a line "files" where names
/// of files may, else "words"; then a line for each word that may, with a tab and its meaning. What the word begins
/// with does not count but for a dash, which asks for options, and "--option=", which asks for its values.
/// @param words   those behind the program's own name; one or more
std::string candidates(const CLI::App& program, const CommandTables& tables, std::span<const std::string> words);

}  // namespace specdec::cli
