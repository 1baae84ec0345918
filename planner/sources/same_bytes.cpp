#include "planner/sources/same_bytes.hpp"

#include <algorithm>
#include <filesystem>

#include "traces/formats/mapped_file.hpp"

namespace specdec::planner {

bool same_bytes(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  if (!fs::is_regular_file(a) || !fs::is_regular_file(b) || fs::file_size(a) != fs::file_size(b)) return false;
  const traces::MappedFile first(a), second(b);
  return std::equal(first.bytes().begin(), first.bytes().end(), second.bytes().begin(), second.bytes().end());
}

}  // namespace specdec::planner
