#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "tests/support/catch.hpp"

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

std::set<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    found.insert((*match)[1]);
  }
  return found;
}

}  // namespace

TEST_CASE("every formula that a docstring refers to stands in docs/theory.md") {
  const std::filesystem::path root = SPECDEC_SOURCE_DIR;
  std::set<std::string> anchors;
  for (const std::string& heading : matches(contents(root / "docs/theory.md"), std::regex("\n##+ ([^\n]+)"))) {
    anchors.insert(anchor(heading));
  }
  int references = 0;
  for (const char* layer : {"traces", "analysis", "sim", "cli"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / layer)) {
      if (entry.path().extension() != ".hpp") continue;
      for (const std::string& reference : matches(contents(entry.path()), std::regex("docs/theory\\.md#([a-z0-9-]+)"))) {
        INFO(entry.path() << " refers to #" << reference);
        CHECK(anchors.count(reference) == 1);
        ++references;
      }
    }
  }
  CHECK(references > 10);
}

}  // namespace specdec
