#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/cost/published_timings.hpp"
#include "analysis/cost/roofline_cost.hpp"
#include "tests/support/catch.hpp"

// Times of decoding that others measured and published (presets/published_timings.json: as printed, with the
// addresses), against what the roofline says without knowing them.
using namespace specdec;
using nlohmann::json;

namespace {

struct TimedRound {
  cost::RoundPoint point = {};
  double seconds = 0;
};

/// Of a round, from what the page prints.
TimedRound timed_round(const json& row) {
  TimedRound timed;
  timed.point.gamma = row.value("gamma", 0);
  timed.point.batch = row.at("batch");
  timed.point.context = row.at("context");
  const double tokens = row.value("tokens_per_round", 1.0);
  if (row.contains("tokens_per_second")) {
    timed.seconds = timed.point.batch * tokens / row.at("tokens_per_second").get<double>();
  } else if (row.contains("latency_seconds")) {
    timed.seconds = row.at("latency_seconds").get<double>() / row.at("rounds").get<double>();
  } else {
    timed.seconds = 1e-3 * tokens * row.at("milliseconds_per_token").get<double>();
  }
  return timed;
}

cost::UncertainValue value_of(const cost::SourcedRange& range) { return {range.low, range.value, range.high}; }

cost::RooflineCost roofline_of(const json& deployment) {
  const auto placed = [&](const std::string& name) {
    const cost::ModelSpec* const model = cost::model_preset(name);
    REQUIRE(model != nullptr);
    cost::PlacedModel result;
    result.model = *model;
    result.tensor_parallel = deployment.at("tensor_parallel");
    return result;
  };
  cost::RooflineOptions options;
  const cost::HardwareSpec* const hardware = cost::hardware_preset(deployment.at("hardware").get<std::string>());
  REQUIRE(hardware != nullptr);
  options.hardware = *hardware;
  options.target = placed(deployment.at("model"));
  options.target.weight_type = cost::number_type_named(deployment.at("weights").get<std::string>());
  options.kind = cost::DraftKind::ngram;
  if (deployment.contains("draft")) {
    options.kind = cost::DraftKind::eagle;
    options.draft = placed(deployment.at("draft"));
  }
  const cost::EfficiencyDefaults& usual = cost::efficiency_defaults();
  options.losses.bandwidth_efficiency = value_of(usual.bandwidth_efficiency);
  options.losses.compute_efficiency = value_of(usual.compute_efficiency);
  options.losses.all_reduce_latency_seconds = value_of(usual.all_reduce_latency_seconds);
  options.losses.link_efficiency = value_of(usual.link_efficiency);
  options.losses.layer_seconds = value_of(usual.layer_seconds);
  options.losses.launch_seconds = value_of(usual.launch_seconds);
  options.losses.scheduling_seconds = value_of(usual.scheduling_seconds);
  return cost::RooflineCost(options);
}

struct Prediction {
  double low = 0, value = 0, high = 0;
};

Prediction predicted(const cost::RooflineCost& cost, const cost::RoundPoint& point) {
  std::vector<double> totals(cost.replicates());
  cost.totals_of_replicates(point, totals);
  std::sort(totals.begin(), totals.end());
  const auto at = [&](double share) {
    return totals[static_cast<std::size_t>(std::lround(share * static_cast<double>(totals.size() - 1)))];
  };
  return {at(0.025), cost.round(point).total(), at(0.975)};
}

/// How predictions fared.
struct Score {
  int points = 0, held = 0;
  std::vector<double> errors = {};

  bool add(const Prediction& prediction, double seconds) {
    const bool holds = prediction.low <= seconds && seconds <= prediction.high;
    ++points;
    held += holds ? 1 : 0;
    errors.push_back(std::abs(prediction.value / seconds - 1));
    return holds;
  }
  double median_error() {
    std::sort(errors.begin(), errors.end());
    return (errors[(errors.size() - 1) / 2] + errors[errors.size() / 2]) / 2;
  }
};

std::string file_text(const std::string& path) {
  std::ifstream file(std::string(SPECDEC_SOURCE_DIR) + path);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A line of the table in docs/capacity.md.
std::string table_line(const json& deployment, const TimedRound& timed, const Prediction& p, bool held) {
  const std::string weights = deployment.at("weights");
  return fmt::format("| {} | {}{} | {} | {} | {:g} | {} | {:g} | {:.2f} | {:.2f} | {:.2f} to {:.2f} | {} |",
                     deployment.at("hardware").get<std::string>(), deployment.at("model").get<std::string>(),
                     weights.empty() ? "" : " " + weights, deployment.at("engine").get<std::string>(),
                     deployment.at("tensor_parallel").get<int>(), timed.point.batch, timed.point.gamma,
                     timed.point.context, 1e3 * timed.seconds, 1e3 * p.value, 1e3 * p.low, 1e3 * p.high,
                     deployment.contains("sets_default") ? "set it"
                     : held                              ? "yes"
                                                         : "no");
}

}  // namespace

TEST_CASE("published times of decoding: the roofline holds those that the documentation says it holds") {
  const json timings = json::parse(file_text("/analysis/cost/presets/published_timings.json"));
  const std::string documentation = file_text("/docs/capacity.md");
  std::set<std::string> engines_of_defaults;
  for (const json& deployment : timings.at("deployments")) {
    if (deployment.contains("sets_default")) engines_of_defaults.insert(deployment.at("engine"));
  }
  Score used, before, elsewhere, after;
  auto listed = cost::published_timings().begin();
  REQUIRE(cost::published_timings().size() == 59);
  for (const json& deployment : timings.at("deployments")) {
    CHECK(deployment.at("source").get<std::string>().rfind("https://", 0) == 0);
    const cost::RooflineCost cost = roofline_of(deployment);
    std::vector<TimedRound> rounds;
    for (const json& row : deployment.at("points")) {
      const TimedRound timed = rounds.emplace_back(timed_round(row));
      CHECK(listed->hardware == deployment.at("hardware"));
      CHECK(listed->engine == deployment.at("engine"));
      CHECK(listed->drafted == (deployment.contains("draft") && timed.point.gamma > 0));
      CHECK(listed->point.gamma == timed.point.gamma);
      CHECK(listed->point.context == timed.point.context);
      CHECK(listed++->seconds == timed.seconds);
      const Prediction prediction = predicted(cost, timed.point);
      const bool held = (deployment.contains("sets_default") ? used : before).add(prediction, timed.seconds);
      if (engines_of_defaults.count(deployment.at("engine")) == 0) elsewhere.add(prediction, timed.seconds);
      const std::string line = table_line(deployment, timed, prediction, held);
      INFO(line);
      CHECK(documentation.find(line) != std::string::npos);
    }
    if (rounds.size() < 4) continue;
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}}) {  // every other point predicts the rest
      std::vector<cost::CalibrationPoint> known;
      for (std::size_t i = first; i < rounds.size(); i += 2) {
        const cost::RoundPoint& point = rounds[i].point;
        known.push_back({point.batch, rounds[i].seconds, point.gamma, point.context});
      }
      const cost::RooflineCost fitted = cost.calibrated(known);
      for (std::size_t i = 1 - first; i < rounds.size(); i += 2) {
        after.add(predicted(fitted, rounds[i].point), rounds[i].seconds);
      }
    }
  }
  CHECK(used.points == 4);
  CHECK(before.points == 55);
  CHECK(before.held >= 27);
  CHECK(before.median_error() < 0.23);
  CHECK(elsewhere.points == 45);
  CHECK(elsewhere.held >= 18);
  CHECK(elsewhere.median_error() < 0.25);
  CHECK(after.points == 28);
  CHECK(after.held >= 20);
  CHECK(after.median_error() < 0.04);
}
