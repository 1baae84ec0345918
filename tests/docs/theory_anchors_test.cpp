#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"

namespace specdec {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The anchor of a Markdown heading: lower case, hyphens for blanks, nothing but letters, digits and hyphens.
std::string anchor(const std::string& heading) {
  std::string result;
  for (const char c : heading) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-') result += static_cast<char>(std::tolower(c));
    if (c == ' ') result += '-';
  }
  return result;
}

// Whatever follows the marker, up to the first character that is not wanted.
template <class Wanted>
std::set<std::string> after(const std::string& marker, const std::string& text, Wanted wanted) {
  std::set<std::string> found;
  for (std::size_t at = text.find(marker); at != std::string::npos; at = text.find(marker, at)) {
    at += marker.size();
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at);
    found.insert(std::string(begin, std::find_if_not(begin, text.end(), wanted)));
  }
  return found;
}

}  // namespace

TEST_CASE("every formula that a docstring refers to stands in docs/theory.md") {
  const std::filesystem::path root = tests::source_dir();
  std::set<std::string> anchors;
  const auto in_line = [](char c) { return c != '\n'; };
  const auto in_anchor = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-'; };
  for (const char* level : {"\n## ", "\n### "}) {
    for (const std::string& heading : after(level, contents(root / "docs/theory.md"), in_line)) {
      anchors.insert(anchor(heading));
    }
  }
  int references = 0;
  for (const char* layer : {"traces", "analysis", "sim", "planner", "render", "cli"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / layer)) {
      if (entry.path().extension() != ".hpp") continue;
      for (const std::string& reference : after("docs/theory.md#", contents(entry.path()), in_anchor)) {
        INFO(entry.path() << " refers to #" << reference);
        CHECK(anchors.count(reference) == 1);
        ++references;
      }
    }
  }
  CHECK(references > 10);
}

}  // namespace specdec
