#include <algorithm>
#include <filesystem>
#include <vector>

#include "analysis/cost/model_config.hpp"
#include "analysis/cost/preset_files.hpp"
#include "analysis/cost/preset_names.hpp"

namespace specdec::cost {

std::span<const ModelSpec> model_presets() {
  static const std::vector<ModelSpec> presets = [] {
    std::vector<ModelSpec> models;
    for (const core::EmbeddedFile& file : model_preset_files()) {
      models.push_back(model_spec_from_document(file.content, std::filesystem::path("presets/models") / file.name));
    }
    std::sort(models.begin(), models.end(), [](const ModelSpec& a, const ModelSpec& b) { return a.name < b.name; });
    return models;
  }();
  return presets;
}

const ModelSpec* model_preset(std::string_view name) {
  return name.empty() ? nullptr : find_preset(model_presets(), name);
}

}  // namespace specdec::cost
