#include "analysis/cost/kernel_times.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "analysis/cost/preset_files.hpp"
#include "analysis/cost/roofline_cost.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/analysis/cost/roofline_models.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using namespace specdec::cost::tests;
using Catch::Matchers::Contains;
using cost::CalibrationPoint;
using cost::DraftKind;
using cost::KernelTimes;
using cost::NumberType;
using cost::ProductTimes;
using cost::RooflineCost;
using cost::RooflineOptions;
using cost::RoundPoint;

namespace {

const std::string sound =
    R"({"device": "device", "source": "mine", "engines": {"own": {"version": "1",
  "products": {"bf16": {"bandwidth_share": 0.8, "peak_share": 0.7, "corner": 2, "call_seconds": 4e-6}},
  "attention": {"bf16": {"floor_seconds": 1e-5, "sequence_seconds": 2e-8, "bandwidth_share": 0.9, "peak_share": 0.5}},
  "all_reduces": [{"accelerators": 2, "bytes": [1000, 4000], "seconds": [2e-6, 8e-6]}],
  "serving": {"layer_seconds": 1e-5, "iteration_seconds": 1e-3, "sequence_seconds": 2e-6, "deployment_error": 0.2, "point_error": 0.1}}}})";

const std::string of_experts =
    R"("experts": {"bf16": {"bandwidth_share": 0.5, "peak_share": 0.4, "corner": 1.5, "call_seconds": 3e-5,
  "routing": 0.75}}, "all_reduces")";

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

std::vector<KernelTimes> read(const std::string& content) {
  const tests::TemporaryFolder folder;
  return cost::read_kernel_times(folder.write("kernels.json", content));
}

std::string refusal(const std::string& content) {
  const std::string message = tests::message_of<traces::FileError>([&] { read(content); });
  const std::size_t name = message.find("kernels.json");
  return name == std::string::npos ? message : message.substr(name);
}

KernelTimes own_kernels() { return read(sound).front(); }

RooflineOptions with_kernels(std::int64_t tensor_parallel = 1) {
  RooflineOptions options;
  options.hardware = h100();
  options.hardware.name = "device";
  options.target = placed(llama_8b(), NumberType::bf16, tensor_parallel);
  options.kind = DraftKind::ngram;
  options.kernels = own_kernels();
  options.losses.layer_seconds = {1e-5, 1e-5, 1e-5};
  options.losses.scheduling_seconds = {1e-3, 1e-3, 1e-3};
  return options;
}

}  // namespace

TEST_CASE("a rounded corner lies between the larger of two times and their sum and nears the larger one far from it") {
  const ProductTimes times{.bandwidth_share = 0.5, .peak_share = 0.25, .corner = 3};
  for (const double weights : {1e-6, 1e-4, 3e-2}) {
    for (const double operations : {0.0, 1e-9, 1e-5, 1e-4, 1.0}) {
      const double read_seconds = weights / 0.5, computed = operations / 0.25;
      const double seconds = times.rounded(weights, operations);
      CHECK(seconds >= std::max(read_seconds, computed) * (1 - 1e-15));
      CHECK(seconds <= (read_seconds + computed) * (1 + 1e-15));
      CHECK(seconds == Approx(std::cbrt(std::pow(read_seconds, 3) + std::pow(computed, 3))).epsilon(1e-13));
    }
  }
  CHECK(ProductTimes{.corner = 1}.rounded(2, 3) == Approx(5).epsilon(1e-15));
  CHECK(ProductTimes{.corner = 100}.rounded(2, 3) == Approx(3).epsilon(1e-12));
}

TEST_CASE(
    "an all-reduce is read between sizes on the logarithms, held below the first and in proportion beyond the last") {
  const KernelTimes kernels = own_kernels();
  const cost::CollectiveTimes* const times = kernels.all_reduce_over(2);
  REQUIRE(times != nullptr);
  CHECK(kernels.all_reduce_over(4) == nullptr);
  CHECK(kernels.measured_accelerators() == "2");
  CHECK(times->at(1) == 2e-6);
  CHECK(times->at(1000) == 2e-6);
  CHECK(times->at(2000) == Approx(4e-6).epsilon(1e-14));
  CHECK(times->at(4000) == Approx(8e-6).epsilon(1e-14));
  CHECK(times->at(40000) == Approx(80e-6).epsilon(1e-14));
}

TEST_CASE("a pass with measured kernels is the sum of its products, attention, all-reduces and constants by hand") {
  for (const std::int64_t shared_by : {1, 2}) {
    const RooflineCost price(with_kernels(shared_by));
    const double batch = 24, context = 700, bandwidth = 3.35e12, peak = 989.4e12;
    const double width = 4096, layers = 32, t = static_cast<double>(shared_by);
    const double dense = 2 * width * 4096 + 2 * width * 1024 + 3 * width * 14336, head = 128256 * width;
    const auto corner = [&](double parameters) {
      return std::hypot(2 * parameters / t / (0.8 * bandwidth), 2 * parameters * batch / t / (0.7 * peak));
    };
    const double moved = 2 * batch / (0.8 * bandwidth);
    const double products = layers * (corner(dense) + 4 * 4e-6 + moved * (2 * dense / width / t + 12 * width)) +
                            corner(head) + 4e-6 + moved * (128256 / t + width);
    const double heads = 8 / t;
    const double attention =
        layers * (1e-5 + batch * heads * 2e-8 + batch * (context + 1) * 2 * heads * 128 * 2 / (0.9 * bandwidth));
    const double reduced = shared_by == 1 ? 0 : 2 * layers * 8e-6 * (2 * batch * width / 4000);
    const double engine = 1e-3 + batch * 2e-6;
    const double expected = products + attention + reduced + layers * 1e-5 + engine;
    CHECK(price.round({.batch = batch, .context = context}).total() == Approx(expected).epsilon(1e-12));
    const cost::PassSeconds pass = price.target_pass(batch, 1, context);
    CHECK(pass.total() == Approx(expected - engine).epsilon(1e-12));
    CHECK(pass.kernels > 0);
  }
}

TEST_CASE("several positions of a sequence take what was measured of them, beside what products of as many take") {
  const std::string packed =
      R"(, "verification": {"floor_seconds": 1e-6, "position_seconds": 2e-10, "tile_seconds": 3e-6}})";
  const std::string apart = R"(, "verification": {"floor_seconds": 0, "position_seconds": 0, "tile_seconds": 0,
    "each_head_bandwidth_share": 0.75}})";
  const std::string end = "0.9, \"peak_share\": 0.5}";
  const auto with = [&](const std::string& verification) {
    return replaced(sound, end, end.substr(0, end.size() - 1) + verification);
  };
  for (const std::int64_t shared_by : {1, 2, 16}) {
    RooflineOptions options = with_kernels(std::min<std::int64_t>(shared_by, 2));
    options.target.tensor_parallel = shared_by;
    options.kernels->all_reduces.front().accelerators = shared_by;
    const RooflineCost none(options);
    const auto priced_with = [&](const std::string& verification) {
      RooflineOptions known = options;
      known.kernels->attention = read(with(verification)).front().attention;
      return RooflineCost(known);
    };
    const RooflineCost one_read = priced_with(packed), many_reads = priced_with(apart);
    // 4 query heads share the keys and values of each of 8; 16 accelerators hold 2 query heads and a copy of one of
    // these.
    const double heads = 32.0 / static_cast<double>(shared_by), group = shared_by == 16 ? 2 : 4;
    const double bandwidth = 3.35e12, held = heads / group, context = 700, batch = 5, layers = 32;
    for (const std::int64_t positions : {1, 2, 16, 17, 33}) {
      const RoundPoint point{.gamma = positions - 1, .batch = batch, .context = context};
      const auto n = static_cast<double>(positions);
      const double tiles = std::ceil(n * group / 64) - 1;
      const double more = positions == 1 ? 0 : 1e-6 + 2e-10 * batch * heads * (n - 1) + 3e-6 * tiles;
      const double plain = none.round(point).total();
      CHECK(one_read.round(point).total() - plain == Approx(layers * more).margin(1e-12));
      const double cache = layers * batch * (context + n) * 2 * held * 128 * 2 / bandwidth;
      const double again = positions == 1 ? 0 : cache * (group / 0.75 - 1 / 0.9);
      CHECK(many_reads.round(point).total() - plain == Approx(again).margin(1e-9));
    }
  }
}

TEST_CASE(
    "tokens travel to experts and back in two measured all-to-alls, or in those over the nearest number of "
    "accelerators") {
  const std::string of_engine = "\"all_reduces\"";
  const std::string tables = R"("all_to_alls": [
    {"accelerators": 8, "bytes": [1000, 1000000], "seconds": [9e-6, 9e-6]},
    {"accelerators": 4, "bytes": [1000, 1000000], "seconds": [5e-6, 5e-6]}], "all_reduces")";
  const cost::KernelTimes kernels = read(replaced(sound, of_engine, tables)).front();
  for (const auto& [asked, found] : {std::pair{2, 4}, {4, 4}, {6, 4}, {8, 8}, {64, 8}})
    CHECK(kernels.all_to_all_over(asked)->accelerators == found);
  CHECK(read(sound).front().all_to_all_over(4) == nullptr);
  RooflineOptions options = with_kernels();
  options.kernels = kernels;
  options.target = placed(mixtral_8x7b(), NumberType::bf16);
  options.target.data_parallel = options.target.expert_parallel = 4;
  const RooflineCost apart(options);
  CHECK(apart.target_pass(4, 1, 100).communication == Approx(2 * 32 * 5e-6));
  const auto says = [](const RooflineCost& price) {
    return std::count_if(price.findings().begin(), price.findings().end(),
                         [](const auto& finding) { return finding.code == "all_to_alls_of_others"; });
  };
  CHECK(says(apart) == 0);
  options.target.data_parallel = 2;
  options.target.expert_parallel = 2;
  CHECK(RooflineCost(options).target_pass(4, 1, 100).communication == Approx(2 * 32 * 5e-6));
  CHECK(says(RooflineCost(options)) == 1);
  options.kernels->all_to_alls.clear();
  options.hardware.link_bytes_per_second = {1e9};
  // One of two accelerators sends half of its two tokens' vectors, 1.5 times over.
  CHECK(RooflineCost(options).target_pass(4, 1, 100).communication ==
        Approx(2 * 32 * (2 * 4096 * 2 * 2 * (1 - 0.25)) / 2 / 1e9));
}

TEST_CASE("latent attention takes nothing more of several positions, however many accelerators divide its heads") {
  for (const auto& [name, differs] : {std::pair{"deepseek-v3", false}, std::pair{"llama-3.1-8b", true}}) {
    for (const std::int64_t shared_by : {1, 2, 8}) {
      INFO(name << " over " << shared_by);
      RooflineOptions options = with_kernels();
      options.target = placed(*cost::model_preset(name), NumberType::bf16, shared_by);
      options.kernels->all_reduces.front().accelerators = std::max<std::int64_t>(shared_by, 2);
      const RoundPoint point{.gamma = 7, .batch = 5, .context = 700};
      const double before = RooflineCost(options).round(point).total();
      options.kernels->attention.find("bf16")->second.verification = {.floor_seconds = 1e-3, .tile_seconds = 1e-3};
      const double after = RooflineCost(options).round(point).total();
      CHECK((after > before + 1e-3) == differs);
      if (!differs) CHECK(after == before);
    }
  }
}

TEST_CASE("measured experts are one call of a layer, and touch what skewed choices touch, not uniform ones") {
  RooflineOptions options = with_kernels();
  options.target = placed(mixtral_8x7b(), NumberType::bf16);
  const double batch = 3, bandwidth = 3.35e12, peak = 989.4e12, layers = 32;
  const double width = 4096, inner = 14336, expert = 3 * width * inner;
  const auto uniform = [&](double positions) { return 8 * (1 - std::pow(0.75, positions)); };
  const auto experts_of = [&](double touched, double b, double e, double p, double calls) {
    const double read = 2 * touched * expert / (b * bandwidth), computed = 2 * 2 * batch * expert / (e * peak);
    const double moved = 2 * batch * 2 * (3 * inner + 2 * width) / (b * bandwidth);
    return layers * (calls + std::pow(std::pow(read, p) + std::pow(computed, p), 1 / p) + moved);
  };
  const RoundPoint point{.batch = batch, .context = 100};
  const RooflineCost unmeasured(options);
  REQUIRE(unmeasured.findings().size() == 2);
  CHECK_THAT(unmeasured.findings().front().message,
             Contains("own on device measured no experts: priced as products of uniformly chosen ones"));

  options.kernels = read(replaced(sound, "\"all_reduces\"", of_experts)).front();
  const RooflineCost measured(options);
  REQUIRE(measured.findings().size() == 1);
  const double before = experts_of(uniform(batch), 0.8, 0.7, 2, 2 * 4e-6);
  const double after = experts_of(uniform(std::pow(batch, 0.75)), 0.5, 0.4, 1.5, 3e-5);
  CHECK(measured.round(point).total() - unmeasured.round(point).total() == Approx(after - before).epsilon(1e-10));
  // One position touches its experts however it chooses.
  options.kernels->experts.find("bf16")->second.routing = 1;
  const RooflineCost evenly(options);
  CHECK(evenly.round({.batch = 1}).total() == Approx(measured.round({.batch = 1}).total()).epsilon(1e-14));
  CHECK(evenly.round({.batch = 4}).total() > measured.round({.batch = 4}).total());

  options.target.expert_weight_type = NumberType::mxfp4;
  const RooflineCost other(options);
  REQUIRE(other.findings().size() == 2);
  CHECK_THAT(other.findings().front().message, Contains("measured no experts in mxfp4: priced with the shares"));
}

TEST_CASE("an iteration with prompts takes its layers' seconds at least, and their experts as often as is said") {
  RooflineOptions options = with_kernels();
  options.target = placed(mixtral_8x7b(), NumberType::bf16);
  options.kernels = read(replaced(sound, "\"all_reduces\"", of_experts)).front();
  cost::Iteration round, mixed;
  round.sequences = mixed.sequences = 3;
  round.context_tokens = mixed.context_tokens = 300;
  mixed.prompt_tokens = 9;
  mixed.prompts = 1;
  mixed.prompt_pairs = 45;
  const RooflineCost before(options);
  options.kernels->prompt_experts = 1.5;
  const RooflineCost longer(options);
  // Of twelve positions, nine of which are the prompt's.
  const double bandwidth = 0.5 * 3.35e12, peak = 0.4 * 989.4e12, expert = 3 * 4096.0 * 14336;
  const double touched = 8 * (1 - std::pow(0.75, std::pow(12, 0.75)));
  const double read_seconds = 2 * touched * expert / bandwidth, computed = 12 * 2 * 2 * expert / peak;
  const double moved = 12 * 2 * 2 * (3 * 14336 + 2 * 4096.0) / bandwidth;
  const double experts = 3e-5 + std::pow(std::pow(read_seconds, 1.5) + std::pow(computed, 1.5), 1 / 1.5) + moved;
  CHECK(longer.seconds(mixed) - before.seconds(mixed) == Approx(32 * 0.5 * 9 / 12 * experts).epsilon(1e-9));
  CHECK(longer.seconds(round) == before.seconds(round));
  options.kernels->prompt_layer_seconds = 1e-2;
  // Graphs are captured up to 512 positions.
  CHECK(RooflineCost(options).seconds(mixed) == longer.seconds(mixed));
  mixed.prompt_tokens = 600;
  mixed.prompt_pairs = 600 * 601 / 2.0;
  CHECK(RooflineCost(options).seconds(mixed) == Approx(0.32).epsilon(1e-12));
  CHECK(RooflineCost(options).seconds(round) == before.seconds(round));
  // A calibration of rounds does not lengthen what the host takes to launch layers.
  const CalibrationPoint timed{.batch = 3, .round_seconds = 1.3 * before.seconds(round), .context = 100};
  CHECK(RooflineCost(options).calibrated({&timed, 1}).seconds(mixed) == Approx(0.32).epsilon(1e-12));
  options.kernels->prompt_layer_seconds = 1e-6;
  CHECK(RooflineCost(options).seconds(mixed) == longer.seconds(mixed));
}

TEST_CASE("more positions, a longer context and a larger batch never take less time with measured kernels") {
  const RooflineCost price(with_kernels(2));
  double before = 0;
  for (std::int64_t gamma = 0; gamma < 300; gamma += 7) {
    const double now = price.round({.gamma = gamma, .batch = 3, .context = 100}).total();
    CHECK(now > before);
    before = now;
  }
  for (const double batch : {1.0, 4.0, 64.0, 500.0}) {
    CHECK(price.round({.batch = batch, .context = 900}).total() <
          price.round({.batch = batch, .context = 9000}).total());
    CHECK(price.round({.batch = batch}).total() < price.round({.batch = batch + 1}).total());
  }
}

TEST_CASE("replicates of measured kernels have the deviation of deployments and points, and calibration narrows it",
          "[long]") {
  RooflineOptions options = with_kernels();
  options.replicates = 4000;
  const RooflineCost price(options);
  const RoundPoint point{.batch = 8, .context = 500};
  const double estimate = price.round(point).total();
  const auto moments = [&](const RooflineCost& cost) {
    std::vector<double> totals(cost.replicates());
    cost.totals_of_replicates(point, totals);
    double sum = 0, squares = 0;
    for (const double total : totals) {
      sum += std::log(total / estimate);
      squares += std::log(total / estimate) * std::log(total / estimate);
    }
    const double mean = sum / static_cast<double>(totals.size());
    return std::array{mean, std::sqrt(squares / static_cast<double>(totals.size()) - mean * mean)};
  };
  // 5 standard errors of 4000 draws: a false alarm in one of 10^6 seeds.
  const double expected = std::hypot(0.2, 0.1);
  CHECK(std::abs(moments(price)[0]) < 5 * expected / std::sqrt(4000.0));
  CHECK(moments(price)[1] == Approx(expected).epsilon(5 / std::sqrt(8000.0)));

  const CalibrationPoint timed{.batch = 8, .round_seconds = 1.3 * estimate, .context = 500};
  const RooflineCost once = price.calibrated({&timed, 1});
  // Regression of one normal quantity on its observation.
  const double before = 0.2 * 0.2 + 0.1 * 0.1, noise = 0.03 * 0.03;
  CHECK(once.factor() == Approx(std::exp(before / (before + noise) * std::log(1.3))).epsilon(1e-12));
  CHECK(once.round(point).total() == Approx(estimate * once.factor()).epsilon(1e-12));
  const double left = std::sqrt(before * noise / (before + noise));
  CHECK(moments(once)[1] == Approx(left).epsilon(5 / std::sqrt(8000.0)));
  // With more positions nothing but what is timed is known, with fewer the deployment's part and less and less of
  // theirs.
  const auto mean_at = [&](double batch) {
    const RoundPoint there{.batch = batch, .context = 500};
    return std::log(once.round(there).total() / price.round(there).total());
  };
  CHECK(mean_at(4096) == Approx(std::log(once.factor())).epsilon(0.02));
  const double likeness = std::pow(8, -1 / RooflineCost::point_error_reach);
  CHECK(mean_at(1) == Approx((0.2 * 0.2 + 0.1 * 0.1 * likeness) / (before + noise) * std::log(1.3)).epsilon(0.01));
  CHECK(once.findings().empty());
  const std::vector<CalibrationPoint> many(400, timed);
  CHECK(price.calibrated(many).factor() == Approx(1.3).epsilon(1e-3));
  CHECK_THROWS_WITH(price.calibrated(std::vector<CalibrationPoint>{{.batch = 8, .round_seconds = 1e-6}}),
                    Contains("at least"));
}

TEST_CASE("calibrated steps do not fall with the batch, and times that rise more than the kernels are said") {
  RooflineOptions options = with_kernels();
  options.replicates = 50;
  const RooflineCost price(options);
  const auto timed = [&](double batch, double slower) {
    const RoundPoint at{.batch = batch, .context = 500};
    return CalibrationPoint{.batch = batch, .round_seconds = slower * price.round(at).total(), .context = 500};
  };
  const RooflineCost rising = price.calibrated(std::vector{timed(8, 0.9), timed(128, 1.5)});
  // Between the times given, and below them, where the deployment's mean would lie above the time of batch 8.
  for (std::size_t version = 0; version <= rising.replicates(); ++version) {
    const auto step = [&](double batch) {
      const RoundPoint at{.batch = batch, .context = 500};
      return rising.price(version, at).total();
    };
    constexpr double rounding = 1 + 1e-12;
    for (const double batch : {1.0, 2.0, 4.0}) CHECK(step(batch) <= rounding * step(8));
    for (const double batch : {16.0, 64.0})
      CHECK((step(8) <= rounding * step(batch) && step(batch) <= rounding * step(128)));
    CHECK(rounding * step(256) >= step(128));
    std::vector<double> totals(rising.replicates());
    rising.totals_of_replicates({.batch = 2, .context = 500}, totals);
    if (version == 0) continue;
    CHECK(totals[version - 1] == Approx(step(2)).epsilon(1e-12));
    // The same for each way to ask, and no round is shorter than the plain step that a bound has lengthened.
    CHECK(rising.price(version, {.sequences = 2, .context_tokens = 1000}) == Approx(step(2)).epsilon(1e-12));
    for (const double batch : {16.0, 256.0}) {
      const cost::Iteration round{.sequences = batch, .gamma = 1, .context_tokens = 500 * batch};
      CHECK(rounding * rising.price(version, round) >= step(batch));
    }
  }
  const auto says = [](const RooflineCost& cost) {
    const auto findings = cost.findings();
    return std::any_of(findings.begin(), findings.end(),
                       [](const auto& finding) { return finding.code == "calibration_rises"; });
  };
  CHECK(says(rising));
  CHECK_FALSE(says(price.calibrated(std::vector{timed(8, 1.2), timed(128, 1.25)})));
  CalibrationPoint drafts = timed(128, 2.5);
  drafts.gamma = 3;
  CHECK_FALSE(says(price.calibrated(std::vector{timed(8, 0.9), timed(128, 1.5), drafts})));
}

TEST_CASE("a speedup that calibration measured is that of the plan, and its interval does not contradict it") {
  RooflineOptions options = with_kernels();
  options.replicates = 400;
  const RooflineCost price(options);
  const RoundPoint plain{.batch = 4, .context = 500}, drafted{.gamma = 3, .batch = 4, .context = 500};
  for (const double slower : {1.0, 1.1, 1.25, 1.6}) {
    const std::vector<CalibrationPoint> timed = {
        {.batch = 4, .round_seconds = 1.2 * price.round(plain).total(), .context = 500},
        {.batch = 4, .round_seconds = 1.2 * slower * price.round(drafted).total(), .gamma = 3, .context = 500}};
    const RooflineCost calibrated = price.calibrated(timed);
    const double measured = timed[0].round_seconds / timed[1].round_seconds;
    std::vector<double> ratios, rounds(calibrated.replicates());
    calibrated.totals_of_replicates(plain, rounds);
    ratios = rounds;
    calibrated.totals_of_replicates(drafted, rounds);
    for (std::size_t i = 0; i < rounds.size(); ++i) ratios[i] /= rounds[i];
    std::sort(ratios.begin(), ratios.end());
    INFO("slower by " << slower);
    CHECK(calibrated.round(plain).total() / calibrated.round(drafted).total() == Approx(measured).epsilon(0.1));
    CHECK(ratios[10] < measured);
    CHECK(measured < ratios[389]);
    const auto findings = calibrated.findings();
    const bool strange = std::any_of(findings.begin(), findings.end(),
                                     [](const auto& finding) { return finding.code == "roofline_misfit"; });
    CHECK(strange == (slower == 1.6));
  }
}

TEST_CASE("calibration names times of one place that differ, and rounds below the plain step that they hold") {
  const auto found = [](const RooflineCost& cost, std::string_view code) {
    const auto findings = cost.findings();
    return std::any_of(findings.begin(), findings.end(), [&](const auto& finding) { return finding.code == code; });
  };
  for (const bool kernels : {true, false}) {
    RooflineOptions options = with_kernels();
    if (!kernels) options.kernels.reset();
    options.replicates = 100;
    const RooflineCost price(options);
    const double plain = 1.1 * price.round({.batch = 4, .context = 500}).total();
    const auto calibrated = [&](const CalibrationPoint& second) {
      return price.calibrated(
          std::vector<CalibrationPoint>{{.batch = 4, .round_seconds = plain, .context = 500}, second});
    };
    const RooflineCost twice = calibrated({.batch = 4, .round_seconds = 1.4 * plain, .context = 500});
    CHECK(found(twice, "calibration_contradicts_itself"));
    CHECK_FALSE(found(twice, "roofline_misfit"));
    CHECK_FALSE(found(calibrated({.batch = 4, .round_seconds = 1.05 * plain, .context = 500}),
                      "calibration_contradicts_itself"));
    const RooflineCost below = calibrated({.batch = 4, .round_seconds = 0.9 * plain, .gamma = 3, .context = 500});
    CHECK(found(below, "round_below_target_pass"));
    CHECK_FALSE(below.impossible().empty());
    CHECK(calibrated({.batch = 4, .round_seconds = 1.2 * plain, .gamma = 3, .context = 500}).impossible().empty());
    const RooflineCost faster = calibrated({.batch = 64, .round_seconds = 0.9 * plain, .context = 500});
    CHECK(found(faster, "calibration_contradicts_itself"));
    CHECK_FALSE(faster.impossible().empty());
    CHECK(calibrated({.batch = 64, .round_seconds = 1.2 * plain, .context = 500}).impossible().empty());
  }
}

TEST_CASE("point errors of measured kernels resemble each other the more, the nearer the numbers of positions") {
  RooflineOptions options = with_kernels();
  options.replicates = 4000;
  // So long that no error reaches the peaks.
  options.losses.scheduling_seconds = {1e3, 1e3, 1e3};
  REQUIRE(options.kind == DraftKind::ngram);
  const RooflineCost price(options);
  const auto deviation = [&](const RoundPoint& one, const RoundPoint& other) {
    std::vector<double> ones(price.replicates()), others(price.replicates());
    price.totals_of_replicates(one, ones);
    price.totals_of_replicates(other, others);
    const double estimate = std::log(price.round(other).total() / price.round(one).total());
    double squares = 0;
    for (std::size_t i = 0; i < ones.size(); ++i) squares += std::pow(std::log(others[i] / ones[i]) - estimate, 2);
    return std::sqrt(squares / static_cast<double>(ones.size()));
  };
  // By the exponential law, beside which interpolation takes up to 3%; 5 standard errors of 4000 draws: a false alarm
  // in one of 10^6 seeds.
  for (const double batch : {1.0, 5.0, 32.0, 300.0}) {
    for (const std::int64_t gamma : {1, 3, 7, 15}) {
      const double expected = 0.1 * std::sqrt(2 * (1 - std::pow(static_cast<double>(gamma + 1), -1 / 1.2)));
      INFO(batch << " " << gamma);
      CHECK(deviation({.batch = batch}, {.batch = batch * static_cast<double>(gamma + 1)}) ==
            Approx(expected).epsilon(0.03 + 5 / std::sqrt(8000.0)));
    }
  }
  // As many positions are alike however they come together, and a context changes nothing.
  const RoundPoint round{.gamma = 7, .batch = 4}, plain{.batch = 4}, as_many{.batch = 32};
  const auto error_of = [&](std::size_t i, const RoundPoint& point) {
    return price.price(1 + i, point).total() / price.round(point).total();
  };
  std::size_t held = 0;
  for (std::size_t i = 0; i < price.replicates(); ++i) {
    // No round is shorter than a plain step.
    const double least = price.price(1 + i, plain).total() / price.round(round).total();
    CHECK(error_of(i, round) == Approx(std::max(error_of(i, as_many), least)).epsilon(1e-12));
    held += error_of(i, as_many) < least ? 1 : 0;
  }
  CHECK(held > 100);
  CHECK(deviation({.batch = 32}, {.batch = 32, .context = 4000}) < 1e-12);
  CHECK(deviation({.batch = 0.5}, {.batch = 1}) < 1e-12);
  CHECK(deviation({.batch = 200'000}, {.batch = 400'000}) < 1e-12);
}

TEST_CASE("measured kernels stand beside no loss that they measure and over no number of accelerators that they lack") {
  RooflineOptions options = with_kernels();
  options.losses.bandwidth_efficiency = {0.8, 0.8, 0.8};
  CHECK_THROWS_WITH(RooflineCost(options),
                    Contains("bandwidth_efficiency is 0.8, but must be 1 beside measured kernels"));
  CHECK_THROWS_WITH(RooflineCost(with_kernels(4)), Contains("hold no all-reduce over 4 accelerators, but over 2"));
}

TEST_CASE(
    "types whose kernels were not measured are named, and priced with the shares of bf16 at their own peak and bytes") {
  RooflineOptions options = with_kernels();
  options.target.weight_type = NumberType::fp8;
  const RooflineCost price(options);
  REQUIRE(price.findings().size() == 2);
  CHECK_THAT(price.findings().front().message, Contains("own on device measured no products in fp8"));
  CHECK(price.round({.batch = 1}).total() < RooflineCost(with_kernels()).round({.batch = 1}).total());
}

TEST_CASE("every preset of kernels names its source, licence and attribution and prices its device sensibly") {
  const std::vector<std::string> devices = cost::devices_with_kernel_times();
  CHECK(devices.size() == cost::kernel_preset_files().size());
  for (const std::string& device : devices) {
    INFO(device);
    const cost::HardwareSpec* const hardware = cost::hardware_preset(device);
    REQUIRE(hardware != nullptr);
    const std::vector<KernelTimes> engines = cost::kernel_times_of(device);
    CHECK(engines.size() == 3);
    for (const KernelTimes& kernels : engines) {
      INFO(kernels.engine);
      CHECK(kernels.device == device);
      CHECK_THAT(kernels.source, Contains("https://"));
      CHECK(kernels.licence == "Apache-2.0");
      CHECK_FALSE(kernels.attribution.empty());
      RooflineOptions options;
      options.hardware = *hardware;
      options.target = placed(llama_8b(), NumberType::bf16);
      options.kind = DraftKind::ngram;
      const double ideal = RooflineCost(options).round({.batch = 1, .context = 1000}).total();
      options.kernels = kernels;
      const double measured = RooflineCost(options).round({.batch = 1, .context = 1000}).total();
      CHECK(measured > ideal);
      CHECK(measured < 2 * ideal);
      REQUIRE(kernels.experts_in(NumberType::bf16) != nullptr);
    }
  }
  CHECK(cost::kernel_times_of("tpu-v4").empty());
}

TEST_CASE("a file of kernels is refused by its file, place, value and what was expected") {
  CHECK(read(sound).size() == 1);
  const std::map<std::string, std::pair<std::string, std::string>> bad = {
      {"engines.own.products.bf16.corner is 0.5, but must be a number in [1, 100]",
       {"\"corner\": 2", "\"corner\": 0.5"}},
      {"engines.own.products.bf16.bandwidth_share is 80", {"\"bandwidth_share\": 0.8", "\"bandwidth_share\": 80"}},
      {"engines.own.attention.bf16.floor_seconds is 10.0", {"\"floor_seconds\": 1e-5", "\"floor_seconds\": 10.0"}},
      {"engines.own.products.bf16.call_seconds is -1, but must be seconds in [0, 0.001]",
       {"\"call_seconds\": 4e-6", "\"call_seconds\": -1"}},
      {"engines.own.products.bf16.call_seconds is 0.004, but must be seconds in [0, 0.001]",
       {"\"call_seconds\": 4e-6", "\"call_seconds\": 4e-3"}},
      {"engines.own.attention.bf16.sequence_seconds is 2e-05, but must be seconds in [0, 1e-05]",
       {"\"sequence_seconds\": 2e-8", "\"sequence_seconds\": 2e-5"}},
      {"engines.own.attention.bf16.verification.floor_seconds is missing, but must be present",
       {"\"peak_share\": 0.5}", "\"peak_share\": 0.5, \"verification\": {}}"}},
      {"engines.own.attention.bf16.verification.tile_seconds is -1, but must be seconds in [0, 0.001]",
       {"\"peak_share\": 0.5}",
        "\"peak_share\": 0.5, \"verification\": {\"floor_seconds\": 0, \"position_seconds\": 0, \"tile_seconds\": "
        "-1}}"}},
      {"engines.own.attention.bf16.verification.each_head_bandwidth_share is 0, but must be a number in (0, 1]",
       {"\"peak_share\": 0.5}",
        "\"peak_share\": 0.5, \"verification\": {\"floor_seconds\": 0, \"position_seconds\": 0, \"tile_seconds\": 0, "
        "\"each_head_bandwidth_share\": 0}}"}},
      {"engines.own.serving.iteration_seconds is 0.3, but must be seconds in [0, 0.1]",
       {"\"iteration_seconds\": 1e-3", "\"iteration_seconds\": 0.3"}},
      {"engines.own.all_reduces[0].seconds[0] is 0.002, but must be seconds in [0, 0.00101]",
       {"[2e-6, 8e-6]", "[2e-3, 8e-3]"}},
      {"engines.own.all_reduces[0].seconds[0] is -2e-06", {"[2e-6, 8e-6]", "[-2e-6, 8e-6]"}},
      {"engines.own.all_reduces[0].bytes[1] is 4000 after 9000, but must be numbers that ascend",
       {"[1000, 4000]", "[9000, 4000]"}},
      {"engines.own.all_reduces[0].seconds[1] is 1e-06 after 2e-06", {"[2e-6, 8e-6]", "[2e-6, 1e-6]"}},
      {"engines.own.all_reduces[0].seconds is 1 numbers, but must be as many as bytes, 2", {"[2e-6, 8e-6]", "[2e-6]"}},
      {"engines.own.all_reduces[0].accelerators is 1", {"\"accelerators\": 2", "\"accelerators\": 1"}},
      {"engines.own.serving.prompt_experts is 0.5, but must be",
       {"\"sequence_seconds\": 2e-6,", "\"sequence_seconds\": 2e-6, \"prompt_experts\": 0.5,"}},
      {"engines.own.serving.sequence_seconds is missing", {"\"sequence_seconds\": 2e-6, ", ""}},
      {"engines.own.experts.bf16.routing is missing",
       {"\"all_reduces\"", replaced(of_experts, ",\n  \"routing\": 0.75", "")}},
      {"engines.own.experts.bf16.routing is 1.2, but must be a number in (0, 1]",
       {"\"all_reduces\"", replaced(of_experts, "0.75", "1.2")}},
      {"engines.own.experts.bf16.call_seconds is 30.0, but must be seconds in [0, 0.001]",
       {"\"all_reduces\"", replaced(of_experts, "3e-5", "30.0")}},
      {"engines.own.serving.point_error is missing", {", \"point_error\": 0.1", ""}},
      {"engines.own.key is wings", {"\"version\": \"1\"", "\"version\": \"1\", \"wings\": 2"}},
      {"engines.own.products.bf16 is missing", {"\"products\": {\"bf16\"", "\"products\": {\"fp8\""}},
      {"engines.own.products.key is bf61", {"\"products\": {\"bf16\"", "\"products\": {\"bf61\""}},
      {"version is 1, but must be a string", {"\"version\": \"1\"", "\"version\": 1"}}};
  for (const auto& [message, change] : bad) {
    INFO(change.first << " -> " << change.second);
    CHECK_THAT(refusal(replaced(sound, change.first, change.second)), Contains(message));
  }
  CHECK_THAT(refusal("{"), Contains("not JSON from there on"));
  CHECK_THAT(refusal("[]"), Contains("must be a JSON object"));
}

TEST_CASE("a round with measured kernels is priced in less than ten microseconds") {
  const RooflineCost price(with_kernels(2));
  constexpr int calls = 20000;
  double sum = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) sum += price.round({.gamma = i % 8, .batch = 1.0 + i % 64, .context = 1000}).total();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CHECK(sum > 0);
  CHECK(seconds / calls < 10e-6);
}
