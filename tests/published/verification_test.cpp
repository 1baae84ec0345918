#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/core/quantile.hpp"
#include "analysis/cost/kernel_times.hpp"
#include "analysis/cost/model_spec.hpp"
#include "analysis/cost/roofline_cost.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"

// Times of attention and of whole layers over 1 to 16 positions a sequence, as scripts/measure_verification.py measured
// them (tests/published/verification), against what measured kernels say of them: docs/validation.md.
using namespace specdec;
using cost::KernelTimes;
using cost::RooflineCost;

namespace {

struct MeasuredRow {
  std::string operation = {}, model = {};
  double batch = 0, queries = 0, context = 0, heads = 0, kv_heads = 0, head_size = 0, seconds = 0;
};

std::vector<MeasuredRow> measured_rows(const std::string& device) {
  std::ifstream file(tests::source_dir() + "/tests/published/verification/" + device + ".csv");
  REQUIRE(file);
  std::vector<MeasuredRow> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.front() == '#' || line.rfind("operation", 0) == 0 || line.rfind("product", 0) == 0) continue;
    std::vector<std::string> cells;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
    const auto number = [&](std::size_t column) { return std::stod(cells.at(column)); };
    rows.push_back(
        {cells.at(0), cells.at(2), number(6), number(7), number(8), number(9), number(10), number(11), number(12)});
  }
  return rows;
}

/// Sizes of ln(priced / measured).
struct Errors {
  std::vector<double> sizes = {};

  void add(double priced, double measured) { sizes.push_back(std::abs(std::log(priced / measured))); }
  double at(double share) {
    std::sort(sizes.begin(), sizes.end());
    return core::sorted_quantile(sizes, share);
  }
  double beyond(double limit) const {
    const auto beyond = std::count_if(sizes.begin(), sizes.end(), [&](double size) { return size > std::log(limit); });
    return static_cast<double>(beyond) / static_cast<double>(sizes.size());
  }
};

KernelTimes kernels_of(const std::string& device) {
  for (const KernelTimes& kernels : cost::kernel_times_of(device))
    if (kernels.engine == "vllm") return kernels;
  throw std::logic_error("no kernels of vllm on " + device);
}

/// Seconds of one layer of a model without its head.
using LayerPrice = std::function<double(const MeasuredRow&)>;

LayerPrice layer_price(const std::string& device, const KernelTimes& kernels) {
  std::map<std::string, RooflineCost> prices;
  for (const char* name : {"llama-3.2-1b", "llama-3.1-8b", "llama-3.3-70b"}) {
    cost::RooflineOptions options;
    options.hardware = *cost::hardware_preset(device);
    options.target.model = *cost::model_preset(name);
    cost::ModelSpec& model = options.target.model;
    model.head_parameters = model.extra_dense_parameters = model.vocabulary = 0;
    options.kind = cost::DraftKind::ngram;
    options.kernels = kernels;
    options.losses.layer_seconds = {kernels.layer_seconds, kernels.layer_seconds, kernels.layer_seconds};
    prices.emplace(name, RooflineCost(options));
  }
  return [prices](const MeasuredRow& row) {
    const RooflineCost& price = prices.at(row.model);
    const double layers = static_cast<double>(price.options().target.model.layers.front().count);
    return price.target_pass(row.batch, row.queries, row.context).total() / layers;
  };
}

/// Loss of speed by the gamma that prices choose in place of the best one, by acceptance, model, batch and context.
std::vector<double> regrets(const std::vector<MeasuredRow>& rows, const LayerPrice& price) {
  struct Round {
    double gamma, measured, priced;
  };
  std::map<std::tuple<std::string, double, double>, std::vector<Round>> points;
  for (const MeasuredRow& row : rows) {
    if (row.operation == "layer" && row.queries <= 9)
      points[{row.model, row.batch, row.context}].push_back({row.queries - 1, row.seconds, price(row)});
  }
  std::vector<double> lost;
  for (const double alpha : {0.5, 0.6, 0.7, 0.8, 0.9}) {
    for (const auto& [place, rounds] : points) {
      const auto speed = [&](const Round& round, double seconds) {
        return (1 - std::pow(alpha, round.gamma + 1)) / (1 - alpha) / seconds;
      };
      const auto best = std::max_element(rounds.begin(), rounds.end(), [&](const Round& a, const Round& b) {
        return speed(a, a.measured) < speed(b, b.measured);
      });
      const auto chosen = std::max_element(rounds.begin(), rounds.end(), [&](const Round& a, const Round& b) {
        return speed(a, a.priced) < speed(b, b.priced);
      });
      lost.push_back(1 - speed(*chosen, chosen->measured) / speed(*best, best->measured));
    }
  }
  std::sort(lost.begin(), lost.end());
  return lost;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("measured verification: attention over several positions is priced as the documentation says") {
  /// Median and 90th percentile of the errors: given the time of one position, by it alone, and priced throughout.
  struct Expected {
    const char* device;
    double more_median, more_p90, one_median, one_p90, median, p90;
  };
  for (const Expected& expected : {Expected{"h100-sxm", 0.012, 0.062, 0.037, 0.172, 0.039, 0.176},
                                   Expected{"h200-sxm", 0.023, 0.092, 0.051, 0.220, 0.070, 0.167}}) {
    INFO(expected.device);
    const cost::AttentionTimes times = kernels_of(expected.device).attention_in(cost::NumberType::bf16);
    REQUIRE(times.verification);
    const double bandwidth = cost::hardware_preset(expected.device)->memory_bandwidth_bytes_per_second.value;
    const std::vector<MeasuredRow> rows = measured_rows(expected.device);
    std::map<std::tuple<double, double, double, double, double>, double> one_position;
    for (const MeasuredRow& row : rows) {
      if (row.operation == "attention" && row.queries == 1)
        one_position[{row.batch, row.context, row.heads, row.kv_heads, row.head_size}] = row.seconds;
    }
    Errors priced, by_one, given_one;
    for (const MeasuredRow& row : rows) {
      if (row.operation != "attention" || row.queries == 1) continue;
      const double cache = row.batch * (row.context + row.queries) * 4 * row.kv_heads * row.head_size;
      const double one = times.floor_seconds + times.sequence_seconds * row.batch * row.kv_heads +
                         cache / (times.bandwidth_share * bandwidth);
      const double more = times.verification->more_seconds(row.queries, row.batch, row.heads, row.heads / row.kv_heads);
      const double measured_one = one_position.at({row.batch, row.context, row.heads, row.kv_heads, row.head_size});
      priced.add(one + more, row.seconds);
      by_one.add(measured_one, row.seconds);
      given_one.add(measured_one + more, row.seconds);
    }
    CHECK(priced.sizes.size() == 2460);
    const auto matches = [](Errors& errors, double median, double p90) {
      CHECK(errors.at(0.5) == Approx(median).margin(6e-4));
      CHECK(errors.at(0.9) == Approx(p90).margin(6e-4));
    };
    matches(given_one, expected.more_median, expected.more_p90);
    matches(by_one, expected.one_median, expected.one_p90);
    matches(priced, expected.median, expected.p90);
  }
}

TEST_CASE("measured verification: rounds of whole layers are priced as the documentation says") {
  struct Expected {
    const char* device;
    double time_median, curve_median, curve_p90, curves_beyond, mean_regret, regret_p95;
  };
  for (const Expected& expected : {Expected{"h100-sxm", 0.102, 0.019, 0.072, 0.0208, 0.0102, 0.0456},
                                   Expected{"h200-sxm", 0.117, 0.039, 0.107, 0.0565, 0.0113, 0.0591}}) {
    INFO(expected.device);
    const std::vector<MeasuredRow> rows = measured_rows(expected.device);
    const LayerPrice price = layer_price(expected.device, kernels_of(expected.device));
    std::map<std::tuple<std::string, double, double>, const MeasuredRow*> plain;
    for (const MeasuredRow& row : rows)
      if (row.operation == "layer" && row.queries == 1) plain[{row.model, row.batch, row.context}] = &row;
    Errors times, curves;
    for (const MeasuredRow& row : rows) {
      if (row.operation != "layer") continue;
      const MeasuredRow& one = *plain.at({row.model, row.batch, row.context});
      times.add(price(row), row.seconds);
      if (2 <= row.queries && row.queries <= 8) curves.add(price(row) / price(one), row.seconds / one.seconds);
    }
    CHECK(curves.sizes.size() == 336);
    CHECK(times.at(0.5) == Approx(expected.time_median).margin(6e-4));
    CHECK(curves.at(0.5) == Approx(expected.curve_median).margin(6e-4));
    CHECK(curves.at(0.9) == Approx(expected.curve_p90).margin(6e-4));
    CHECK(curves.beyond(1.15) == Approx(expected.curves_beyond).margin(6e-5));
    const std::vector<double> lost = regrets(rows, price);
    CHECK(lost.size() == 240);
    CHECK(mean(lost) == Approx(expected.mean_regret).margin(6e-5));
    CHECK(core::sorted_quantile(lost, 0.95) == Approx(expected.regret_p95).margin(6e-5));
  }
}

TEST_CASE(
    "measured verification: a kernel that reads the cache for each query head is priced as the documentation says") {
  // As scripts/measure_verification.py fits them.
  const cost::AttentionTimes alone{.floor_seconds = 7.679e-6, .sequence_seconds = 0, .bandwidth_share = 0.913};
  const cost::VerificationTimes more{
      .floor_seconds = 1.93e-7, .position_seconds = 3.52e-9, .tile_seconds = 0, .each_head_bandwidth_share = 0.8};
  const double bandwidth = cost::hardware_preset("h100-sxm")->memory_bandwidth_bytes_per_second.value;
  Errors one, several, as_one;
  for (const MeasuredRow& row : measured_rows("h100-sxm-sdpa")) {
    const double group = row.heads / row.kv_heads;
    const double cache = row.batch * (row.context + row.queries) * 4 * row.kv_heads * row.head_size / bandwidth;
    const double single = alone.floor_seconds + cache / alone.bandwidth_share;
    if (row.queries == 1) {
      one.add(single, row.seconds);
      continue;
    }
    as_one.add(single, row.seconds);
    several.add(alone.floor_seconds + more.more_seconds(row.queries, row.batch, row.heads, group) +
                    cache * group / *more.each_head_bandwidth_share,
                row.seconds);
  }
  CHECK(several.sizes.size() == 1463);
  CHECK(one.at(0.5) == Approx(0.024).margin(1e-3));
  CHECK(several.at(0.5) == Approx(0.100).margin(1e-3));
  CHECK(several.at(0.9) == Approx(0.416).margin(1e-3));
  CHECK(as_one.at(0.5) > 0.7);
}
