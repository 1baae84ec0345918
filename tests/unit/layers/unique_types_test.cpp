#include <filesystem>
#include <fstream>
#include <istream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"

namespace {

namespace fs = std::filesystem;

/// Full names of the types that a file defines at the outermost level of its named namespaces. Types of unnamed
/// namespaces are each file's own. Relies on the project's format: namespaces and types open at the line's beginning.
std::vector<std::string> defined_types(std::istream& content) {
  static const std::regex opens_namespace(R"(^namespace ?([\w:]*) \{)");
  static const std::regex closes_namespace(R"(^\}  // namespace)");
  static const std::regex opens_type(R"(^(?:struct|class|enum class|enum|union) (\w+)(?: final)?(?: : .*)? \{)");
  std::vector<std::string> namespaces;
  std::vector<std::string> types;
  std::string line;
  std::smatch match;
  while (std::getline(content, line)) {
    if (std::regex_search(line, match, opens_namespace)) {
      namespaces.push_back(match[1]);
    } else if (std::regex_search(line, closes_namespace) && !namespaces.empty()) {
      namespaces.pop_back();
    } else if (std::regex_search(line, match, opens_type)) {
      std::string name;
      bool unnamed = false;
      for (const std::string& space : namespaces) {
        unnamed = unnamed || space.empty();
        name += space + "::";
      }
      if (!unnamed) types.push_back(name + match[1].str());
    }
  }
  return types;
}

std::vector<std::string> defined_types(const std::string& content) {
  std::istringstream stream(content);
  return defined_types(stream);
}

}  // namespace

// The linker merges the functions of two types of one name without a word, and then one of them reads the other's
// memory.
TEST_CASE("no name stands for two types") {
  const fs::path source = specdec::tests::source_dir();
  std::map<std::string, std::vector<std::string>> files_of;
  for (const char* layer : {"traces", "analysis", "sim", "planner", "render", "cli", "python", "web"}) {
    for (const auto& entry : fs::recursive_directory_iterator(source / layer)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".hpp" && extension != ".cpp") continue;
      std::ifstream content(entry.path());
      for (const std::string& type : defined_types(content)) {
        files_of[type].push_back(fs::relative(entry.path(), source).generic_string());
      }
    }
  }
  CHECK(files_of.size() > 100);
  for (const auto& [type, files] : files_of) {
    INFO(type);
    CHECK(files == std::vector<std::string>{files.front()});
  }
}

TEST_CASE("the reader of types sees types of named namespaces only") {
  CHECK(defined_types("namespace a::b {\nstruct Row {\n  struct Inner {\n  };\n};\n}  // namespace a::b\n") ==
        std::vector<std::string>{"a::b::Row"});
  CHECK(defined_types("namespace a {\nnamespace {\nclass Row final : public Base {\n};\n}  // namespace\n"
                      "enum class Kind {\n};\n}  // namespace a\n") == std::vector<std::string>{"a::Kind"});
  CHECK(defined_types("namespace a {\nstruct Row;\n}  // namespace a\n").empty());
}
