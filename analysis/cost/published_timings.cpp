#include "analysis/cost/published_timings.hpp"

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "analysis/cost/preset_files.hpp"

namespace specdec::cost {
namespace {

using nlohmann::json;

double round_seconds(const json& row) {
  const double tokens = row.value("tokens_per_round", 1.0);
  if (row.contains("tokens_per_second")) {
    return row.at("batch").get<double>() * tokens / row.at("tokens_per_second").get<double>();
  }
  if (row.contains("latency_seconds")) return row.at("latency_seconds").get<double>() / row.at("rounds").get<double>();
  return 1e-3 * tokens * row.at("milliseconds_per_token").get<double>();
}

std::vector<PublishedTiming> read_timings() {
  std::vector<PublishedTiming> timings;
  const json document = json::parse(published_timing_files().front().content);
  for (const json& deployment : document.at("deployments")) {
    for (const json& row : deployment.at("points")) {
      PublishedTiming& timing = timings.emplace_back();
      timing.hardware = deployment.at("hardware");
      timing.model = deployment.at("model");
      timing.weights = deployment.at("weights");
      timing.tensor_parallel = deployment.at("tensor_parallel");
      timing.engine = deployment.at("engine");
      timing.source = deployment.at("source");
      timing.quoted = row.at("quoted");
      timing.drafted = deployment.contains("draft") && row.value("gamma", 0) > 0;
      timing.point.gamma = row.value("gamma", 0);
      timing.point.batch = row.at("batch");
      timing.point.context = row.at("context");
      timing.seconds = round_seconds(row);
    }
  }
  return timings;
}

}  // namespace

std::span<const PublishedTiming> published_timings() {
  static const std::vector<PublishedTiming> timings = read_timings();
  return timings;
}

}  // namespace specdec::cost
