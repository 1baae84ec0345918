#include "planner/model_names.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>

namespace specdec::planner {
namespace {

std::string key_of(std::string_view name) {
  while (!name.empty() && name.back() == '/') name.remove_suffix(1);
  const std::size_t folder = name.rfind('/');
  if (folder != std::string_view::npos) name.remove_prefix(folder + 1);
  std::string key;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) key += static_cast<char>(std::tolower(byte));
  }
  return key;
}

/// The tables of llama-bench name a model by kind and size, "llama 8B Q4_0 (4.33 GiB / 8.03 B)", and no file.
bool names_a_kind(std::string_view name) { return name.ends_with(')') && name.find("iB / ") != std::string_view::npos; }

}  // namespace

bool may_be_one_model(std::string_view a, std::string_view b) {
  const std::string first = key_of(a), second = key_of(b);
  if (first.empty() || second.empty()) return true;
  return first.find(second) != std::string::npos || second.find(first) != std::string::npos;
}

std::vector<std::string> names_of(const std::optional<std::string>& given, const cost::ModelSpec* spec) {
  std::vector<std::string> names;
  if (given) names.push_back(*given);
  if (spec == nullptr) return names;
  if (!spec->name.empty()) names.push_back(spec->name);
  names.insert(names.end(), spec->aliases.begin(), spec->aliases.end());
  return names;
}

std::optional<Note> other_model(const std::optional<std::string>& measured, const std::vector<std::string>& planned) {
  const auto alike = [&](const std::string& name) { return may_be_one_model(*measured, name); };
  if (!measured || measured->empty() || planned.empty() || std::any_of(planned.begin(), planned.end(), alike)) {
    return std::nullopt;
  }
  if (names_a_kind(*measured) || std::any_of(planned.begin(), planned.end(), names_a_kind)) {
    return Note{"acceptance_model_not_compared",
                fmt::format("the acceptance was measured with {}, and is planned for {}: whether they are the same "
                            "cannot be told, since llama-bench's tables name kinds of models",
                            *measured, planned.front())};
  }
  return Note{"acceptance_of_another_model",
              fmt::format("the acceptance was measured with {}, but is planned for {}: another target accepts other "
                          "shares of a draft",
                          *measured, planned.front())};
}

}  // namespace specdec::planner
