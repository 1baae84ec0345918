#include "planner/distinct_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "planner/question_error.hpp"
#include "traces/formats/mapped_file.hpp"
#include "traces/formats/streams.hpp"

namespace specdec::planner {

namespace fs = std::filesystem;

void require_distinct(std::string_view option, const std::vector<fs::path>& files) {
  std::set<traces::FileIdentity> seen;
  for (const fs::path& file : files) {
    const auto identity = traces::identity_of(file);
    if (identity && !seen.insert(*identity).second)
      throw QuestionError(fmt::format("{} is {} twice, but must be given once", option, file.string()));
  }
}

void require_apart(std::string_view option, const std::vector<fs::path>& files, std::string_view other,
                   const std::vector<fs::path>& others) {
  std::set<traces::FileIdentity> elsewhere;
  for (const fs::path& file : others) {
    if (const auto identity = traces::identity_of(file)) elsewhere.insert(*identity);
  }
  for (const fs::path& file : files) {
    const auto identity = traces::identity_of(file);
    if (identity && elsewhere.count(*identity) > 0)
      throw QuestionError(fmt::format("{} is {}, which {} has too", option, file.string(), other));
  }
}

bool same_bytes(const std::string& a, const std::string& b) {
  if (!fs::is_regular_file(a) || !fs::is_regular_file(b) || fs::file_size(a) != fs::file_size(b)) return false;
  const traces::MappedFile first(a), second(b);
  return std::equal(first.bytes().begin(), first.bytes().end(), second.bytes().begin(), second.bytes().end());
}

}  // namespace specdec::planner
