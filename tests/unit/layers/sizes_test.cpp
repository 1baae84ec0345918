#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/layers/source_files.hpp"

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_file_lines = 600;
constexpr int most_function_lines = 80;
/// Without empty lines and comments.
constexpr int most_class_lines = 250;

/// Larger files and blocks, as `file: lines` and `file:line: lines`. The code is as clang-format leaves it, so a block
/// ends with the first brace that is indented as the line that it began with; blocks within functions are counted, too,
/// and never larger than these.
std::vector<std::string> too_large(const std::string& path, std::istream& content) {
  std::vector<std::string> lines, found;
  for (std::string line; std::getline(content, line); lines.push_back(line)) {
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string::npos) continue;
    const std::string closing = line.substr(indent);
    if (closing != "}" && closing != "};") continue;
    int all = 0, code = 0;
    std::size_t begin = lines.size();
    while (begin > 0) {
      const std::string& above = lines[--begin];
      const std::size_t its = above.find_first_not_of(' ');
      if (its != std::string::npos && its <= indent && above[its] != '#') break;
      ++all;
      if (its != std::string::npos && above.compare(its, 2, "//") != 0) ++code;
    }
    if (closing == "}" ? all > most_function_lines : code > most_class_lines)
      found.push_back(path + ":" + std::to_string(begin + 1) + ": " + std::to_string(closing == "}" ? all : code));
  }
  if (lines.size() > most_file_lines) found.push_back(path + ": " + std::to_string(lines.size()));
  return found;
}

std::vector<std::string> too_large(const std::string& content) {
  std::istringstream stream(content);
  return too_large("file", stream);
}

std::string repeated(int times, const std::string& line) {
  std::string lines;
  for (int i = 0; i < times; ++i) lines += line;
  return lines;
}

}  // namespace

TEST_CASE("no file has more than 600 lines, no function more than 80, no class more than 250 of code") {
  const fs::path source = specdec::tests::source_dir();
  const std::vector<fs::path> files = specdec::tests::source_files();
  for (const fs::path& file : files) {
    std::ifstream content(source / file);
    CHECK(too_large(file.generic_string(), content) == std::vector<std::string>{});
  }
  CHECK(files.size() > 50);
}

TEST_CASE("the reader of sizes catches a file, a function and a class of one line too many") {
  const std::string statement = "  f();\n\n", member = "  /// Counted not.\n  int a;\n";
  CHECK(too_large("void g() {\n" + repeated(40, statement) + "}\n").empty());
  CHECK(too_large("void g(int a,\n       int b) {\n" + repeated(40, statement) + "}\n") ==
        std::vector<std::string>{"file:1: 81"});
  CHECK(too_large("class A {\n  int h() {\n" + repeated(81, "    f();\n") + "  }\n};\n") ==
        std::vector<std::string>{"file:2: 81"});
  CHECK(too_large("class A {\n" + repeated(250, member) + "};\n").empty());
  CHECK(too_large("class A {\n" + repeated(251, member) + "};\n") == std::vector<std::string>{"file:1: 251"});
  CHECK(too_large(repeated(600, "int a;\n")).empty());
  CHECK(too_large(repeated(601, "int a;\n")) == std::vector<std::string>{"file: 601"});
}
