#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/layers/source_files.hpp"

namespace {

namespace fs = std::filesystem;

struct Folder {
  std::string path;
  /// Folders whose headers it may include, besides its own.
  std::vector<std::string> may_include;
};

// docs/architecture.md, "Layers". The longest matching path names a file's folder.
const std::vector<Folder> folders = {
    {"traces", {}},
    {"analysis/core", {"traces"}},
    {"analysis/theory", {"traces", "analysis/core"}},
    {"analysis/cost", {"traces", "analysis/core"}},
    {"analysis/estimate", {"traces", "analysis/core", "analysis/theory", "analysis/cost"}},
    {"analysis/worlds", {"traces", "analysis/core", "analysis/cost", "analysis/estimate"}},
    {"analysis/planning",
     {"traces", "analysis/core", "analysis/theory", "analysis/cost", "analysis/estimate", "analysis/worlds"}},
    {"sim", {"traces", "analysis/core", "analysis/cost", "analysis/estimate", "analysis/worlds", "analysis/planning"}},
    {"sim/validation",
     {"traces", "analysis/core", "analysis/theory", "analysis/cost", "analysis/estimate", "analysis/planning", "sim"}},
    {"planner",
     {"traces", "analysis/core", "analysis/theory", "analysis/cost", "analysis/estimate", "analysis/planning"}},
    {"planner/sources",
     {"traces", "analysis/core", "analysis/theory", "analysis/cost", "analysis/estimate", "analysis/planning",
      "planner"}},
    {"planner/load",
     {"traces", "analysis/core", "analysis/theory", "analysis/cost", "analysis/estimate", "analysis/worlds",
      "analysis/planning", "sim", "planner"}},
    {"planner/methods",
     {"traces", "analysis/core", "analysis/theory", "analysis/cost", "analysis/estimate", "analysis/planning", "sim",
      "sim/validation", "planner", "planner/parts"}},
    {"planner/parts", {"traces", "analysis/core", "planner"}},
    {"planner/recordings",
     {"traces", "analysis/core", "analysis/theory", "analysis/cost", "analysis/estimate", "analysis/planning",
      "planner", "planner/sources", "planner/parts"}},
    {"planner/checkup",
     {"traces", "analysis/core", "analysis/theory", "analysis/cost", "analysis/estimate", "analysis/planning",
      "planner", "planner/sources", "planner/parts", "planner/recordings"}},
    {"planner/sweeps",
     {"traces", "analysis/core", "analysis/cost", "analysis/estimate", "analysis/planning", "sim", "planner",
      "planner/load", "planner/parts"}},
    {"render",
     {"traces", "analysis/core", "analysis/theory", "analysis/cost", "analysis/estimate", "analysis/planning", "sim",
      "sim/validation", "planner", "planner/sources", "planner/load", "planner/methods", "planner/recordings",
      "planner/checkup", "planner/sweeps"}},
    {"render/figures",
     {"traces", "analysis/core", "analysis/theory", "analysis/cost", "analysis/estimate", "analysis/planning", "sim",
      "sim/validation", "planner", "planner/load", "planner/methods", "planner/sweeps", "render"}},
    {"render/page",
     {"traces", "analysis/core", "analysis/theory", "analysis/cost", "analysis/estimate", "analysis/planning",
      "planner", "planner/load", "render", "render/figures"}},
    {"cli",
     {"traces", "analysis/core", "analysis/theory", "analysis/cost", "analysis/estimate", "analysis/planning", "sim",
      "sim/validation", "planner", "planner/sources", "planner/load", "planner/methods", "planner/parts",
      "planner/recordings", "planner/sweeps", "planner/checkup", "render", "render/figures", "render/page"}},
    {"python",
     {"traces", "analysis/core", "analysis/theory", "analysis/cost", "analysis/estimate", "analysis/planning", "sim",
      "planner", "planner/sources", "planner/load", "planner/methods", "planner/recordings", "planner/checkup",
      "render", "render/figures", "render/page"}},
    {"web",
     {"traces", "analysis/core", "analysis/theory", "analysis/cost", "analysis/estimate", "analysis/planning",
      "planner", "render"}},
};

bool is_below(const std::string& path, const std::string& folder) { return path.rfind(folder + "/", 0) == 0; }

const Folder* folder_of(const std::string& path) {
  const Folder* found = nullptr;
  for (const Folder& folder : folders) {
    if (is_below(path, folder.path) && (found == nullptr || folder.path.size() > found->path.size())) found = &folder;
  }
  return found;
}

/// The header between the quotes of `#include "..."`, or "" if the line includes none.
std::string quoted_include(const std::string& line) {
  const std::size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line[hash] != '#') return "";
  const std::size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string::npos || line.compare(word, 7, "include") != 0) return "";
  const std::size_t open = line.find('"', word);
  const std::size_t close = line.find('"', open + 1);
  return open == std::string::npos || close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

/// The arrows of one file that the layers do not allow, as `file -> header`.
std::vector<std::string> forbidden_includes(const std::string& path, std::istream& content) {
  const Folder* from = folder_of(path);
  std::vector<std::string> forbidden;
  std::string line;
  while (std::getline(content, line)) {
    const std::string header = quoted_include(line);
    if (header.empty()) continue;
    const Folder* to = folder_of(header);
    bool allowed = from != nullptr && to != nullptr && from->path == to->path;
    if (from != nullptr && to != nullptr) {
      for (const std::string& folder : from->may_include) allowed = allowed || folder == to->path;
    }
    if (!allowed) forbidden.push_back(path + " -> " + header);
  }
  return forbidden;
}

std::vector<std::string> forbidden_includes(const std::string& path, const std::string& content) {
  std::istringstream stream(content);
  return forbidden_includes(path, stream);
}

struct Reached {
  std::size_t headers = 0;
  std::vector<std::string> forbidden;
};

/// The headers that files include, those that these include, and so on; of others than the project's, their names.
Reached reached_from(const fs::path& source, std::vector<std::string> left, const std::set<std::string>& forbidden) {
  std::set<std::string> seen;
  while (!left.empty()) {
    const std::string path = left.back();
    left.pop_back();
    if (!seen.insert(path).second || !fs::exists(source / path)) continue;
    std::ifstream content(source / path);
    for (std::string line; std::getline(content, line);) {
      const std::size_t open = line.starts_with("#include") ? line.find_first_of("<\"") : std::string::npos;
      if (open == std::string::npos) continue;
      left.push_back(line.substr(open + 1, line.find_first_of(">\"", open + 1) - open - 1));
    }
  }
  Reached reached{seen.size(), {}};
  for (const std::string& header : forbidden) {
    if (seen.count(header) > 0) reached.forbidden.push_back(header);
  }
  return reached;
}

}  // namespace

TEST_CASE("every folder includes only what stands above it") {
  const fs::path source = specdec::tests::source_dir();
  const std::vector<fs::path> files = specdec::tests::source_files();
  std::vector<std::string> forbidden;
  for (const fs::path& file : files) {
    std::ifstream content(source / file);
    for (const std::string& arrow : forbidden_includes(file.generic_string(), content)) forbidden.push_back(arrow);
  }
  CHECK(files.size() > 50);
  CHECK(forbidden == std::vector<std::string>{});
}

TEST_CASE("the planner reaches no reader of recordings, no thread and no simulation, whatever it includes") {
  const fs::path source = specdec::tests::source_dir();
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(source / "planner")) {
    if (entry.is_regular_file()) left.push_back(fs::relative(entry.path(), source).generic_string());
  }
  const std::set<std::string> forbidden = {"traces/open_trace.hpp",
                                           "traces/position_source.hpp",
                                           "analysis/core/parallel.hpp",
                                           "traces/serving/read_serving_counts.hpp",
                                           "simdjson.h",
                                           "thread",
                                           "hwy/highway.h",
                                           "zlib.h",
                                           "nettle/sha2.h"};
  const auto found = reached_from(source, left, forbidden);
  CHECK(found.headers > 40);
  CHECK(found.forbidden == std::vector<std::string>{});
  CHECK(reached_from(source, {"planner/load/capacity.cpp"}, {"sim/serving/capacity_worlds.hpp"}).forbidden.size() == 1);
}

TEST_CASE("the reader of includes catches a decoder that looks at the theory") {
  CHECK(forbidden_includes("sim/decoding.cpp", "#include \"analysis/theory/tokens.hpp\"\n") ==
        std::vector<std::string>{"sim/decoding.cpp -> analysis/theory/tokens.hpp"});
  CHECK(forbidden_includes("sim/decoding.cpp", "#include \"sim/validation/report.hpp\"\n").size() == 1);
  CHECK(forbidden_includes("analysis/cost/roofline.cpp", "#include \"analysis/theory/tokens.hpp\"\n").size() == 1);
  CHECK(forbidden_includes("analysis/planning/plan.cpp", "#include \"sim/random.hpp\"\n").size() == 1);
  CHECK(forbidden_includes("traces/file_error.cpp", "#include \"file_error.hpp\"\n").size() == 1);
}

TEST_CASE("the reader of includes lets the allowed arrows pass") {
  CHECK(forbidden_includes("sim/validation/report.cpp", "#include \"analysis/theory/replay.hpp\"\n").empty());
  CHECK(forbidden_includes("sim/decoding.cpp", "#include \"analysis/core/checks.hpp\"\n#include <vector>\n").empty());
}
