#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace specdec::cli {

/// One option in a file of options. Each of `values` is an entry of its list: one text, or those of a list in the list.
struct FileOption {
  std::string name;
  std::vector<std::vector<std::string>> values;
  /// Line of the file, counted from 1.
  std::int64_t line = 1;
};

/// The options below [NAME] or [[NAME]]; the name is empty for those that stand above all sections or in [default].
struct FileSection {
  std::string name;
  std::vector<FileOption> options;
  std::int64_t line = 1;
  /// [[NAME]], of which there may be several.
  bool is_one_of_several = false;
};

/// What a file of options says, for --config and for sweep: what --print-config writes, and lists beside it. In
///
///     [plan]
///     model = "llama-3.1-70b"       # quotes may be left out
///     quiet                         # a flag that is set
///     batch = [1, 8, 64]            # three values; "1,8,64" is one
///     counters = [["a.txt", "b.txt"], ["c.txt"]]
///
/// '...' is taken as it stands, "..." with \" and \\ for " and \.
/// @param file  its name, for messages
/// @throws UsageError naming the line
std::vector<FileSection> option_sections(const std::string& file, std::string_view text);

}  // namespace specdec::cli
