#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "planner/cost.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"

// Times of decoding that others measured and published (presets/published_timings.json: as printed, with the
// addresses), against what the program says without knowing them.
using namespace specdec;
using nlohmann::json;

namespace {

struct TimedRound {
  cost::RoundPoint point = {};
  double seconds = 0;
};

/// The time of a round, from the figures that the page prints.
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

/// As --hardware prices it: by measured kernels where the device has some, unless they are "none".
cost::RooflineCost price_of(const json& deployment, std::optional<std::string> kernel_times = {}) {
  planner::HardwareOptions options;
  options.tensor_parallel = deployment.at("tensor_parallel").get<std::int64_t>();
  options.weight_dtype = cost::number_type_named(deployment.at("weights").get<std::string>());
  options.drafts = deployment.contains("draft");
  if (options.drafts) options.draft = {.model = deployment.at("draft"), .kind = cost::DraftKind::eagle};
  options.kernel_times = std::move(kernel_times);
  return *planner::Cost::of_hardware(deployment.at("hardware"), deployment.at("model"), options).roofline;
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

/// By every `step`-th round from `first` on.
cost::RooflineCost calibrated_by(const cost::RooflineCost& cost, const std::vector<TimedRound>& rounds,
                                 std::size_t first, std::size_t step) {
  std::vector<cost::CalibrationPoint> known;
  for (std::size_t i = first; i < rounds.size(); i += step) {
    const cost::RoundPoint& point = rounds[i].point;
    known.push_back({point.batch, rounds[i].seconds, point.gamma, point.context});
  }
  return cost.calibrated(known);
}

/// Quality of predictions.
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
  std::ifstream file(tests::source_dir() + path);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A line of the table in tests/published/roofline_timings.md.
std::string table_line(const json& deployment, const TimedRound& timed, const Prediction& p, const char* held) {
  const std::string weights = deployment.at("weights");
  return fmt::format("| {} | {}{} | {} | {} | {:g} | {} | {:g} | {:.2f} | {:.2f} | {:.2f} to {:.2f} | {} |",
                     deployment.at("hardware").get<std::string>(), deployment.at("model").get<std::string>(),
                     weights.empty() ? "" : " " + weights, deployment.at("engine").get<std::string>(),
                     deployment.at("tensor_parallel").get<int>(), timed.point.batch, timed.point.gamma,
                     timed.point.context, 1e3 * timed.seconds, 1e3 * p.value, 1e3 * p.low, 1e3 * p.high, held);
}

}  // namespace

TEST_CASE("published times of decoding: kernels and the roofline hold those that the documentation says they hold") {
  const json timings = json::parse(file_text("/analysis/cost/presets/published_timings.json"));
  const std::string documentation = file_text("/tests/published/roofline_timings.md");
  // With kernels and without, as the program prices them; and by the roofline where it could be used everywhere.
  Score kernels, others, used, roofline, calibrated, calibrated_once, kernels_calibrated_once;
  for (const json& deployment : timings.at("deployments")) {
    CHECK(deployment.at("source").get<std::string>().rfind("https://", 0) == 0);
    const cost::RooflineCost cost = price_of(deployment), ideal = price_of(deployment, "none");
    std::vector<TimedRound> rounds;
    for (const json& row : deployment.at("points")) {
      const TimedRound timed = rounds.emplace_back(timed_round(row));
      const Prediction prediction = predicted(cost, timed.point);
      const bool sets_launch = timed.point.gamma > 0 && deployment.contains("rounds_set_default");
      Score& score = sets_launch ? used : cost.options().kernels ? kernels : others;
      const bool held = score.add(prediction, timed.seconds);
      if (!deployment.contains("sets_default")) roofline.add(predicted(ideal, timed.point), timed.seconds);
      const std::string line = table_line(deployment, timed, prediction, sets_launch ? "set it" : held ? "yes" : "no");
      INFO(line);
      CHECK(documentation.find(line) != std::string::npos);
    }
    for (std::size_t known = 0; known < rounds.size(); ++known) {
      const cost::RooflineCost fitted = calibrated_by(cost, rounds, known, rounds.size());
      for (std::size_t i = 0; i < rounds.size(); ++i) {
        if (i == known) continue;
        Score& once = cost.options().kernels ? kernels_calibrated_once : calibrated_once;
        once.add(predicted(fitted, rounds[i].point), rounds[i].seconds);
      }
    }
    if (rounds.size() < 4) continue;
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}}) {  // every other point predicts the rest
      const cost::RooflineCost fitted = calibrated_by(cost, rounds, first, 2);
      for (std::size_t i = 1 - first; i < rounds.size(); i += 2) {
        calibrated.add(predicted(fitted, rounds[i].point), rounds[i].seconds);
      }
    }
  }
  for (Score* const score : {&kernels, &others, &roofline, &calibrated, &calibrated_once, &kernels_calibrated_once})
    UNSCOPED_INFO(
        fmt::format("{} of {} held, {:.3f} off in the median", score->held, score->points, score->median_error()));
  CHECK(used.points == 3);
  CHECK(kernels.points == 32);
  CHECK(kernels.held >= 30);
  CHECK(kernels.median_error() < 0.14);
  CHECK(others.points == 24);
  CHECK(others.held >= 23);
  CHECK(others.median_error() < 0.31);
  CHECK(roofline.points == 55);
  CHECK(roofline.held >= 54);
  CHECK(roofline.median_error() < 0.23);
  CHECK(calibrated.points == 28);
  CHECK(calibrated.held >= 28);
  CHECK(calibrated.median_error() < 0.04);
  CHECK(calibrated_once.points == 54);
  CHECK(calibrated_once.held >= 54);
  CHECK(kernels_calibrated_once.points == 46);
  CHECK(kernels_calibrated_once.held >= 45);
}
