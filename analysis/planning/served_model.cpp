#include "analysis/planning/served_model.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "analysis/cost/model_spec.hpp"
#include "analysis/cost/preset_names.hpp"

namespace specdec::planning {
namespace {

/// "org/name", as on model hubs.
bool is_repository(std::string_view name) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/";
  const std::size_t slash = name.find('/');
  return slash != std::string_view::npos && slash > 0 && slash + 1 < name.size() &&
         name.find('/', slash + 1) == std::string_view::npos && name.front() != '.' && name[slash + 1] != '.' &&
         name.find_first_not_of(allowed) == std::string_view::npos && !name.ends_with(".json") &&
         !name.ends_with(".gguf");
}

/// A path on the server's machine, which may differ from this one.
bool is_absolute_path(std::string_view name) { return name.starts_with('/') && !name.ends_with(".json"); }

bool holds_weights(std::string_view name) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(name), error)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".safetensors" || extension == ".bin") return true;
  }
  return false;
}

bool is_tuned(std::string_view repository) {
  constexpr std::array<std::string_view, 3> marks = {"-Instruct", "-chat", "-Chat"};
  return repository.ends_with("-it") || std::any_of(marks.begin(), marks.end(), [&](std::string_view mark) {
           return repository.find(mark) != std::string_view::npos;
         });
}

}  // namespace

ServedModel served_model(Engine engine, std::string_view asked) {
  ServedModel served;
  if (engine == Engine::llamacpp) {
    if (asked.ends_with(".gguf")) served.name = asked;
    return served;
  }
  if (is_absolute_path(asked) || holds_weights(asked)) {
    served.name = asked;
    return served;
  }
  const cost::ModelSpec* const preset = cost::model_preset(asked);
  if (preset == nullptr) {
    if (is_repository(asked)) served.name = asked;
    return served;
  }
  for (const std::string& alias : preset->aliases) {
    if (is_repository(alias)) served.alike.push_back(alias);
  }
  if (served.alike.empty()) return served;
  const std::string key = cost::preset_key(asked);
  auto chosen = std::find_if(served.alike.begin(), served.alike.end(),
                             [&](const std::string& alias) { return cost::preset_key(alias) == key; });
  if (chosen != served.alike.end()) return {*chosen, {}};
  chosen = std::find_if(served.alike.begin(), served.alike.end(), is_tuned);
  if (chosen == served.alike.end()) chosen = served.alike.begin();
  served.name = *chosen;
  served.alike.erase(chosen);
  return served;
}

}  // namespace specdec::planning
