#include "analysis/cost/link_presets.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "analysis/cost/preset_files.hpp"

namespace specdec::cost {
namespace {

std::vector<LinkSpec> read_links() {
  std::vector<LinkSpec> links;
  const nlohmann::json document = nlohmann::json::parse(link_preset_files().front().content);
  for (const nlohmann::json& entry : document.at("links")) {
    LinkSpec& link = links.emplace_back();
    link.name = entry.at("name");
    link.bytes_per_second.value = entry.at("bytes_per_second");
    link.bytes_per_second.source = entry.at("source");
    link.bytes_per_second.quoted = entry.at("quoted");
  }
  return links;
}

}  // namespace

std::span<const LinkSpec> link_presets() {
  static const std::vector<LinkSpec> links = read_links();
  return links;
}

const LinkSpec* link_preset(std::string_view name) {
  const std::span<const LinkSpec> all = link_presets();
  const auto found = std::find_if(all.begin(), all.end(), [&](const LinkSpec& link) { return link.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace specdec::cost
