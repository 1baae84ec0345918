#include "analysis/planning/published_acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "analysis/core/normal_interval.hpp"
#include "analysis/cost/preset_names.hpp"
#include "analysis/planning/preset_files.hpp"

namespace specdec::planning {
namespace {

using nlohmann::json;

RateInterval interval_of_printed(double alpha, double half_unit, std::int64_t tokens) {
  const double around =
      half_unit + core::normal_half_width_95 * std::sqrt(alpha * (1 - alpha) / static_cast<double>(tokens));
  return {core::AcceptanceRate(std::max(0.0, alpha - around)), core::AcceptanceRate(std::min(1.0, alpha + around))};
}

PublishedAcceptance read_setting(const json& setting, const json& document) {
  PublishedAcceptance read;
  read.name = setting.at("name");
  read.task = setting.at("task");
  read.target_model = setting.at("target");
  read.draft_model = setting.at("draft");
  read.temperature = setting.at("temperature");
  read.lenience = setting.at("lenience");
  read.alpha = setting.at("alpha");
  read.where = setting.at("where");
  if (setting.contains("source")) {
    read.source = setting.at("source");
    read.tokens = setting.at("tokens");
    read.interval = {core::AcceptanceRate(setting.at("ci95").at(0).get<double>()),
                     core::AcceptanceRate(setting.at("ci95").at(1).get<double>())};
  } else {
    read.source = document.at("source");
    read.tokens = document.at("tokens").at("value");
    read.interval = interval_of_printed(read.alpha, document.at("half_unit"), read.tokens);
  }
  if (setting.contains("measured")) {
    const json& measured = setting.at("measured");
    read.measured = {measured.at("gamma"), measured.at("c"), measured.at("speed"), measured.at("expected")};
  }
  return read;
}

std::vector<PublishedAcceptance> read_all() {
  std::vector<PublishedAcceptance> all;
  for (const core::EmbeddedFile& file : published_acceptance_files()) {
    const json document = json::parse(file.content);
    for (const json& setting : document.at("settings")) all.push_back(read_setting(setting, document));
  }
  return all;
}

}  // namespace

std::span<const PublishedAcceptance> published_acceptances() {
  static const std::vector<PublishedAcceptance> all = read_all();
  return all;
}

const PublishedAcceptance* published_acceptance(std::string_view name) {
  const std::string key = cost::preset_key(name);
  const std::span<const PublishedAcceptance> all = published_acceptances();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return cost::preset_key(one.name) == key; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace specdec::planning
