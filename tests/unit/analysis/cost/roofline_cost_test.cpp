#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/theory/walltime.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/analysis/cost/roofline_models.hpp"

using namespace specdec;
using namespace specdec::cost::tests;
using Catch::Matchers::Contains;
using cost::CalibrationPoint;
using cost::DraftKind;
using cost::Iteration;
using cost::LayerGroup;
using cost::NumberType;
using cost::PassBound;
using cost::RooflineCost;
using cost::RooflineOptions;
using cost::RoundPoint;

namespace {

/// Full attention, a window of 100, and a recurrence; experts in the second half.
cost::ModelSpec mixed_model() {
  cost::ModelSpec model;
  model.name = "mixed";
  model.width = 1000;
  model.layers = {{.count = 3,
                   .dense_parameters = 2'000'000,
                   .other_parameters = 2000,
                   .cached_values_per_token = 512,
                   .attention_flops_per_pair = 4096,
                   .cache_shards = 2},
                  {.count = 2,
                   .dense_parameters = 1'000'000,
                   .experts = 16,
                   .experts_per_token = 2,
                   .parameters_per_expert = 300'000,
                   .cached_values_per_token = 256,
                   .attention_flops_per_pair = 8192,
                   .window = 100,
                   .cache_shards = 4},
                  {.count = 1,
                   .dense_parameters = 500'000,
                   .state_values_per_sequence = 70'000,
                   .state_flops_per_token = 140'000,
                   .cache_shards = 8}};
  model.embedding_parameters = model.head_parameters = 5'000'000;
  model.extra_dense_parameters = 40'000;
  model.extra_other_parameters = 1000;
  return model;
}

RooflineOptions usual() {
  RooflineOptions options = roofline(h200(), placed(llama_70b(), NumberType::fp8), placed(llama_1b(), NumberType::fp8));
  options.replicates = 200;
  return options;
}

cost::UncertainValue range(double low, double high) { return {low, (low + high) / 2, high}; }
cost::UncertainValue exactly(double value) { return {value, value, value}; }

RooflineOptions uncertain() {
  RooflineOptions options = usual();
  options.losses.bandwidth_efficiency = range(0.6, 0.9);
  options.losses.compute_efficiency = range(0.3, 0.7);
  options.losses.launch_seconds = range(1e-4, 1e-3);
  options.losses.scheduling_seconds = range(2e-4, 2e-3);
  options.deployment_error = options.point_error = 0;
  return options;
}

bool has_roofline_finding(const RooflineCost& price, const std::string& code) {
  return std::any_of(price.findings().begin(), price.findings().end(),
                     [&](const auto& finding) { return finding.code == code; });
}

std::vector<double> sorted_totals(const RooflineCost& price, const RoundPoint& point) {
  std::vector<double> totals(price.replicates());
  price.totals_of_replicates(point, totals);
  std::sort(totals.begin(), totals.end());
  return totals;
}

/// Central 95% of 200 replicates.
bool interval_holds(const RooflineCost& price, const RoundPoint& point, double seconds) {
  const std::vector<double> totals = sorted_totals(price, point);
  const auto last = static_cast<double>(totals.size() - 1);
  return totals[static_cast<std::size_t>(std::lround(0.025 * last))] <= seconds &&
         seconds <= totals[static_cast<std::size_t>(std::lround(0.975 * last))];
}

}  // namespace

TEST_CASE("a roofline whose verification is free gives the speedup of Theorem 3.8") {
  const RooflineCost price(roofline(h200(), placed(weights_only(llama_70b()), NumberType::fp8),
                                    placed(weights_only(llama_8b()), NumberType::fp8)));
  const double c = 7504658432.0 / 69501714432.0;
  for (const double alpha : {0.0, 0.4, 0.8, 0.95}) {
    for (const std::int64_t gamma : {0, 1, 3, 10, 50}) {
      const double expected = theory::walltime_improvement(core::AcceptanceRate(alpha), gamma, c);
      CHECK(speedup(price, alpha, {.gamma = gamma}) == Approx(expected).epsilon(1e-12));
    }
  }
}

TEST_CASE("a pass is what a count over positions, layers and experts gives") {
  RooflineOptions options;
  options.hardware = h200();
  options.target = placed(mixed_model(), NumberType::bf16);
  options.target.expert_weight_type = NumberType::fp8;
  options.kind = DraftKind::ngram;
  const RooflineCost price(options);
  for (const double context : {0.0, 98.0, 5000.0}) {
    for (const int tokens : {1, 5, 150}) {
      const double batch = 3;
      const double dense = 3 * 2e6 + 2 * 1e6 + 5e5 + 4e4 + 5e6;
      const double distinct = 16 * (1 - std::pow(1 - 2.0 / 16, batch * tokens));
      double pairs_flops = 0;
      for (int i = 1; i <= tokens; ++i)
        pairs_flops += 3 * 4096 * (context + i) + 2 * 8192 * std::min(context + i, 100.0) + 140'000;
      const double end = context + tokens;
      const double cached = 2 * (3 * 512 * end + 2 * 256 * std::min(end, 100.0)) + 2 * 2 * 70'000;
      const cost::PassSeconds pass = price.target_pass(batch, tokens, context);
      CHECK(pass.weights == Approx((2 * dense + 2 * distinct * 300'000) / 4.8e12).epsilon(1e-12));
      CHECK(pass.weight_products ==
            Approx(batch * tokens * 2 * (dense / 989.4e12 + 2 * 2 * 300'000 / 1978.9e12)).epsilon(1e-12));
      CHECK(pass.cache == Approx(batch * cached / 4.8e12).epsilon(1e-12));
      CHECK(pass.attention == Approx(batch * pairs_flops / 989.4e12).epsilon(1e-12));
      CHECK(pass.communication == 0);
      CHECK(pass.overhead == 0);
      CHECK(price.round({.gamma = tokens - 1, .batch = batch, .context = context}).target ==
            Approx(pass.total()).epsilon(1e-14));
      // States count twice in time, as they are read and written, and once in memory.
      CHECK(pass.cache * 4.8e12 == Approx(batch * (cache_bytes(mixed_model(), end, 2) + 2 * 70'000)).epsilon(1e-12));
    }
  }
}

TEST_CASE("sparse attention reads what each token chose and looks for it through all of the context") {
  RooflineOptions options;
  options.hardware = h200();
  options.kind = DraftKind::ngram;
  options.target.model = mixed_model();
  options.target.model.layers = {{.count = 3,
                                  .dense_parameters = 2'000'000,
                                  .cached_values_per_token = 512,
                                  .attention_flops_per_pair = 4096,
                                  .selected = 100,
                                  .index_values_per_token = 32,
                                  .index_flops_per_pair = 256}};
  const RooflineCost price(options);
  for (const double tokens : {1.0, 4.0}) {
    for (const double context : {10.0, 250.0, 5000.0}) {
      const double end = context + tokens;
      const cost::PassSeconds pass = price.target_pass(8, tokens, context);
      const double read = 512 * std::min(end, 100 * tokens) + 32 * end;
      CHECK(pass.cache * 4.8e12 == Approx(8 * 3 * 2 * read).epsilon(1e-12));
      double flops = 0;
      for (double seen = context + 1; seen <= end; ++seen) flops += 4096 * std::min(seen, 100.0) + 256 * seen;
      CHECK(pass.attention * 989.4e12 == Approx(8 * 3 * flops).epsilon(1e-12));
    }
  }
  CHECK(cost::cache_bytes_per_token_per_gpu(options.target) == 3 * 2 * (512 + 32));
}

TEST_CASE("the file's own size scales the bytes unless the user names a type") {
  cost::PlacedModel model;
  model.model = llama_8b();
  model.model.weight_bytes = 4'015'130'624;  // half a byte per parameter
  CHECK(weight_bytes_per_gpu(model) == Approx(4'015'130'624.0).epsilon(1e-14));
  RooflineOptions options;
  options.hardware = h200();
  options.target = model;
  options.kind = DraftKind::ngram;
  CHECK(RooflineCost(options).target_pass(1, 1, 0).weights == Approx(7504658432 / 2 / 4.8e12).epsilon(1e-12));
  options.target.weight_type = NumberType::fp8;
  CHECK(weight_bytes_per_gpu(options.target) == Approx(8030261248.0).epsilon(1e-14));
  model.model.weight_bytes.reset();
  CHECK(weight_bytes_per_gpu(model) == Approx(2 * 8030261248.0).epsilon(1e-14));
  model.model.weight_type = NumberType::nvfp4;
  CHECK(weight_bytes_per_gpu(model) == Approx(4.5 / 8 * 8030261248.0).epsilon(1e-14));

  // Experts may have a type of their own, and a file holds the next-token module too.
  cost::PlacedModel experts;
  experts.model = mixed_model();
  experts.model.expert_weight_type = NumberType::mxfp4;
  const double routed = 2.0 * 16 * 300'000, rest = static_cast<double>(total_parameters(experts.model)) - routed;
  CHECK(weight_bytes_per_gpu(experts) == Approx(2 * rest + 4.25 / 8 * routed).epsilon(1e-14));
  experts.model.next_token_layers = {{.count = 1, .dense_parameters = 1'500'000, .other_parameters = 500'000}};
  experts.model.next_token_extra_parameters = 1'000'000;
  experts.model.weight_bytes = static_cast<std::int64_t>(2 * (2 * (rest + 3e6) + 4.25 / 8 * routed));
  CHECK(weight_bytes_per_gpu(experts) == Approx(2 * (2 * rest + 4.25 / 8 * routed)).epsilon(1e-12));
}

TEST_CASE("accelerators that share a model divide it, reduce twice a layer and keep what shards do not divide") {
  RooflineOptions options = usual();
  options.hardware.link_bytes_per_second = {450e9};
  options.losses.all_reduce_latency_seconds = exactly(6e-6);
  const RooflineCost one(options);
  options.target.tensor_parallel = 4;
  options.draft->tensor_parallel = 2;
  const RooflineCost shared(options);
  const cost::PassSeconds alone = one.target_pass(8, 3, 1000), divided = shared.target_pass(8, 3, 1000);
  CHECK(alone.communication == 0);
  CHECK(divided.weights == Approx(alone.weights / 4).epsilon(1e-14));
  CHECK(divided.weight_products == Approx(alone.weight_products / 4).epsilon(1e-14));
  CHECK(divided.cache == Approx(alone.cache / 4).epsilon(1e-14));
  CHECK(divided.attention == Approx(alone.attention / 4).epsilon(1e-14));
  CHECK(divided.communication == Approx(2 * 80 * (6e-6 + 2 * 0.75 * 8 * 3 * 8192 * 2 / 450e9)).epsilon(1e-13));
  options.losses.link_efficiency = exactly(0.4);
  CHECK(RooflineCost(options).target_pass(8, 3, 1000).communication ==
        Approx(2 * 80 * (6e-6 + 2 * 0.75 * 8 * 3 * 8192 * 2 / 180e9)).epsilon(1e-13));
  CHECK(shared.draft_pass(8, 1, 1000).cache == Approx(one.draft_pass(8, 1, 1000).cache / 2).epsilon(1e-14));

  // 8 key/value heads on 16 accelerators: each of them holds one.
  options.target.tensor_parallel = 16;
  CHECK(RooflineCost(options).target_pass(8, 3, 1000).cache == Approx(alone.cache / 8).epsilon(1e-14));
  CHECK(cache_bytes_per_token_per_gpu(options.target) == 327680.0 / 8);
  CHECK(weight_bytes_per_gpu(options.target) == 70553706496.0 / 16);
  options.target.tensor_parallel = 3;
  CHECK(cache_bytes_per_token_per_gpu(options.target) == 327680.0 * 3 / 8);

  options.hardware.gpus_per_node = {2};
  CHECK(has_roofline_finding(RooflineCost(options), "tensor_parallel_beyond_link"));
  CHECK(has_roofline_finding(RooflineCost(options), "tensor_parallel_uneven"));
  CHECK(cost::uneven_heads(options.target) == "3 accelerators cannot evenly divide 64 heads");
  const auto uneven = [](const char* name, std::int64_t accelerators) {
    cost::PlacedModel placed;
    placed.model = *cost::model_preset(name);
    placed.tensor_parallel = accelerators;
    return cost::uneven_heads(placed);
  };
  CHECK(uneven("qwen2.5-7b", 8) == "8 accelerators cannot evenly divide 28 heads of qwen2.5-7b");
  CHECK(uneven("deepseek-v3", 3) == "3 accelerators cannot evenly divide 128 heads of deepseek-v3");
  CHECK(uneven("qwen2.5-7b", 4).empty());
  CHECK(uneven("llama-3.3-70b", 16).empty());
  options.target.tensor_parallel = 16;
  CHECK_FALSE(has_roofline_finding(RooflineCost(options), "tensor_parallel_uneven"));
  options.hardware.link_bytes_per_second.reset();
  CHECK_THROWS_WITH(RooflineCost(options), Contains("device names no link_bytes_per_second") && Contains("target"));
}

TEST_CASE("groups of accelerators serve sequences of their own, and share experts that tokens travel to and from") {
  // Mixtral 8x7B, written down once more.
  const double layers = 32, width = 4096, attention = 2 * width * width + 2 * width * 1024 + width * 8;
  const double expert = 3 * width * 14336, head = 32000 * width, bandwidth = 4.8e12, peak = 989.4e12, link = 450e9;
  struct Case {
    std::int64_t tensor, data, parts;
  };
  for (const Case& c : {Case{1, 1, 1}, Case{2, 1, 2}, Case{1, 4, 4}, Case{2, 4, 2}, Case{2, 2, 1}, Case{8, 1, 8}}) {
    INFO(c.tensor << " " << c.data << " " << c.parts);
    RooflineOptions options = roofline(h200(), placed(mixtral_8x7b(), NumberType::bf16, c.tensor), {});
    options.draft.reset();
    options.kind = DraftKind::ngram;
    options.target.data_parallel = c.data;
    options.target.expert_parallel = c.parts;
    options.hardware.link_bytes_per_second = {link};
    const double batch = 24, tokens = 3, context = 500;
    const cost::PassSeconds pass = RooflineCost(options).target_pass(batch, tokens, context);

    const auto t = static_cast<double>(c.tensor), d = static_cast<double>(c.data), e = static_cast<double>(c.parts);
    const double positions = batch * tokens, own = positions / d;
    const double touched = 8 * (1 - std::pow(0.75, positions));
    CHECK(pass.weights ==
          Approx(2 * ((layers * attention + head) / t + layers * touched * expert / (t * d)) / bandwidth));
    const double busiest = std::pow(e, 0.4) * positions * 2 * layers * expert / (t * d);
    CHECK(pass.weight_products == Approx(2 * (own * (layers * attention + head) / t + busiest) / peak));
    CHECK(pass.cache == Approx(batch / d * (context + tokens) * layers * 2 * 1024 * 2 / t / bandwidth));
    CHECK(pass.attention == Approx(batch / d * (3 * context + 6) * layers * 4 * width / t / peak));
    const double bytes = own * width * 2;
    const double reduced = (d > 1 ? 1 : 2) * layers * 2 * (t - 1) / t * bytes;
    const double reached = t * d / e * e * (1 - std::pow(1 - 1 / e, 2));
    const double exchanged = d > 1 ? 2 * layers * bytes / t * reached * (t * d - 1) / (t * d) : 0;
    CHECK(pass.communication == Approx((reduced + exchanged) / link).margin(1e-15));

    CHECK(weight_bytes_per_gpu(options.target) ==
          Approx(2 * ((layers * (attention + 2 * width) + 2 * head + width) / t + layers * 8 * expert / (t * d))));
    CHECK(cache_bytes_per_token_per_gpu(options.target) == Approx(layers * 2 * 1024 * 2 / t));
  }
}

TEST_CASE("a prompt is computed by one of the groups, which the others wait for") {
  RooflineOptions options = roofline(h200(), placed(mixtral_8x7b(), NumberType::bf16), {});
  options.draft.reset();
  options.kind = DraftKind::ngram;
  options.target.data_parallel = options.target.expert_parallel = 4;
  const RooflineCost apart(options);
  const auto seconds = [&](double prompts) {
    return apart.seconds({.prompt_tokens = 4000 * prompts, .prompts = prompts, .prompt_pairs = 4000 * 2000 * prompts});
  };
  const double dense = 2 * 4000 * 32 * (2.0 * 4096 * 4096 + 2 * 4096 * 1024 + 4096 * 8) / 989.4e12;
  // Four prompts take the groups as long as one, but experts four times as long.
  CHECK(seconds(4) - seconds(1) < 4 * (seconds(1) - dense) - seconds(1) + dense + 1e-3);
  CHECK(seconds(8) > 1.9 * seconds(4));
  options.target.expert_parallel = 3;
  CHECK_THROWS_WITH(RooflineCost(options), Contains("expert_parallel of the target is 3, but must divide its 4 accel"));
}

TEST_CASE("drafts cost by kind, a full accept one more token, and every pass its launch") {
  RooflineOptions options = usual();
  options.losses.launch_seconds = exactly(1e-4);
  options.losses.scheduling_seconds = exactly(3e-4);
  const RoundPoint point{.gamma = 4, .batch = 16, .context = 3000, .full_accepts = 0.25};
  const auto pass = [](const cost::PassSeconds& seconds) { return seconds.total() - seconds.overhead; };
  const RooflineCost model(options);
  const double one = pass(model.draft_pass(16, 1, 3000)), two = pass(model.draft_pass(16, 2, 3000));
  CHECK(model.round(point).target == Approx(pass(model.target_pass(16, 5, 3000))).epsilon(1e-14));
  CHECK(model.round(point).draft == Approx(4 * (one + 1e-4) + 0.25 * (two - one)).epsilon(1e-14));
  CHECK(model.round(point).overhead == Approx(1e-4 + 3e-4).epsilon(1e-14));
  CHECK(model.round({.batch = 16, .context = 3000}).overhead == Approx(1e-4 + 3e-4).epsilon(1e-14));
  CHECK(model.round({.batch = 16, .context = 3000}).draft == 0);

  for (const DraftKind kind : {DraftKind::eagle, DraftKind::mtp}) {
    options.kind = kind;
    CHECK(RooflineCost(options).round(point).total() == model.round(point).total());
  }
  options.kind = DraftKind::parallel;
  const RooflineCost parallel(options);
  CHECK(parallel.round({.gamma = 4, .batch = 16, .context = 3000}).draft ==
        Approx(pass(parallel.draft_pass(16, 4, 3000)) + 1e-4).epsilon(1e-14));
  CHECK(parallel.round(point).overhead == Approx(1e-4 + 3e-4).epsilon(1e-14));
  options.kind = DraftKind::mirrored;
  const RooflineCost mirrored(options);
  CHECK(mirrored.round(point).draft == Approx(4 * one + pass(mirrored.draft_pass(16, 5, 3000)) + 5e-4).epsilon(1e-14));
  CHECK(mirrored.round(point).overhead == Approx(1e-4 + 3e-4).epsilon(1e-14));
  options.losses.layer_seconds = exactly(2e-6);  // 4 passes of the draft, one of the target
  const auto layers_of = [](const cost::PlacedModel& placed) {
    double layers = 0;
    for (const cost::LayerGroup& group : placed.model.layers) layers += static_cast<double>(group.count);
    return layers;
  };
  options.kind = DraftKind::model;
  const double drafting = 4 * (one + 1e-4 + 2e-6 * layers_of(*options.draft)) + 0.25 * (two - one);
  CHECK(RooflineCost(options).round(point).draft == Approx(drafting).epsilon(1e-14));
  CHECK(RooflineCost(options).round(point).overhead ==
        Approx(1e-4 + 3e-4 + 2e-6 * layers_of(options.target)).epsilon(1e-14));
  CHECK(RooflineCost(options).draft_pass(16, 1, 3000).overhead ==
        Approx(1e-4 + 2e-6 * layers_of(*options.draft)).epsilon(1e-14));
  options.losses.layer_seconds = {};
  options.kind = DraftKind::ngram;
  options.draft.reset();
  const RooflineCost ngram(options);
  CHECK(ngram.round(point).draft == 0);
  CHECK(ngram.round(point).overhead == Approx(1e-4 + 3e-4).epsilon(1e-14));
  CHECK_THROWS_AS(ngram.draft_pass(1, 1, 0), std::logic_error);
}

TEST_CASE("prompts go through the same pass of the target and the first one of the draft") {
  RooflineOptions options = usual();
  options.losses.launch_seconds = exactly(1e-4);
  const RooflineCost price(options);
  const Iteration round{.sequences = 16, .gamma = 4, .context_tokens = 16.0 * 3000, .full_accepts = 0.25};
  CHECK(price.seconds(round) == price.round({.gamma = 4, .batch = 16, .context = 3000, .full_accepts = 0.25}).total());
  CHECK(price.seconds({}) == 0);

  // Alone, 700 positions behind 300 others are a pass whose head sees one position.
  const double pairs = 700.0 * 300 + 700.0 * 701 / 2;
  const cost::PassSeconds target = price.target_pass(1, 700, 300), draft = price.draft_pass(1, 700, 300);
  const auto without_head = [](const cost::PassSeconds& pass, double head_flops) {
    return pass.total() - 699 * head_flops / 1978.9e12;
  };
  const double plain = without_head(target, 2.0 * 128256 * 8192);
  CHECK(target.bound() == PassBound::weight_products);
  CHECK(draft.bound() == PassBound::weight_products);
  CHECK(price.seconds({.prompt_tokens = 700, .prompts = 1, .prompt_pairs = pairs}) == Approx(plain).epsilon(1e-12));
  CHECK(price.seconds({.gamma = 4, .prompt_tokens = 700, .prompts = 1, .prompt_pairs = pairs}) ==
        Approx(plain + without_head(draft, 2.0 * 128256 * 2048)).epsilon(1e-12));

  // Beside a round: weights are read once and everything else adds up.
  Iteration mixed = round;
  mixed.full_accepts = 0;
  mixed.prompt_tokens = 700;
  mixed.prompts = 1;
  mixed.prompt_pairs = pairs;
  const auto together = [&](const cost::PassSeconds& a, const cost::PassSeconds& b, double head_flops) {
    const double products = a.weight_products + b.weight_products - 699 * head_flops / 1978.9e12;
    return std::max(a.weights, products) + std::max(a.cache + b.cache, a.attention + b.attention) + 1e-4;
  };
  const double expected = together(price.target_pass(16, 5, 3000), target, 2.0 * 128256 * 8192) +
                          together(price.draft_pass(16, 1, 3000), draft, 2.0 * 128256 * 2048) +
                          3 * price.draft_pass(16, 1, 3000).total();
  CHECK(price.seconds(mixed) == Approx(expected).epsilon(1e-12));
  mixed.full_accepts = 1;
  CHECK(price.seconds(mixed) > expected);
}

TEST_CASE("the largest part that counts is what bounds a pass") {
  const RooflineCost price(usual());
  CHECK(price.target_pass(1, 1, 0).bound() == PassBound::weights);
  CHECK(price.target_pass(300, 1, 0).bound() == PassBound::weight_products);
  CHECK(price.target_pass(200, 1, 30000).bound() == PassBound::cache);
  CHECK(price.target_pass(1, 100'000, 0).bound() == PassBound::attention);
  CHECK(name_of(PassBound::attention) == "attention");
  CHECK(name_of(cost::PassSeconds{.weights = 1, .communication = 2}.bound()) == "communication");
  CHECK(name_of(cost::PassSeconds{.weights = 1, .weight_products = 3, .cache = 1, .overhead = 4}.bound()) ==
        "overhead");
  CHECK(cost::PassSeconds{1, 2, 3, 1, 5, 6}.total() == 16);
}

TEST_CASE("more bandwidth and more compute are never slower and more drafts never faster") {
  const std::vector<cost::ModelSpec> models = {llama_70b(), mixtral_8x7b(), mixed_model()};
  for (const cost::ModelSpec& model : models) {
    RooflineOptions options = roofline(h100(), placed(model, NumberType::bf16, 2), placed(llama_1b(), NumberType::fp8));
    options.hardware.link_bytes_per_second = {450e9};
    const RooflineCost base(options);
    options.hardware.memory_bandwidth_bytes_per_second.value *= 1.3;
    const RooflineCost wider(options);
    options = base.options();
    for (auto& peak : options.hardware.peak_flops) peak.second.value *= 1.3;
    const RooflineCost stronger(options);
    for (const double batch : {1.0, 7.5, 60.0, 900.0}) {
      for (const double context : {0.0, 150.0, 40'000.0}) {
        double before = 0;
        for (std::int64_t gamma = 0; gamma <= 40; ++gamma) {
          const RoundPoint point{.gamma = gamma, .batch = batch, .context = context, .full_accepts = 0.5};
          const double seconds = base.round(point).total();
          CHECK(seconds > before);
          CHECK(wider.round(point).total() <= seconds);
          CHECK(stronger.round(point).total() <= seconds);
          before = seconds;
        }
      }
    }
  }
}

TEST_CASE("replicates draw every loss over its range, the same for all passes") {
  const RooflineCost price(uncertain());
  REQUIRE(price.replicates() == 200);
  CHECK(has_roofline_finding(price, "roofline_uncalibrated"));
  const RoundPoint plain{.batch = 4, .context = 500}, round{.gamma = 6, .batch = 4, .context = 500};
  std::vector<double> totals(200);
  price.totals_of_replicates(round, totals);
  const cost::PassSeconds pass = price.draft_pass(4, 1, 500);
  const double drafting = 6 * (pass.total() - pass.overhead);
  for (std::size_t i = 0; i < totals.size(); ++i) {
    CHECK(totals[i] == price.price(1 + i, round).total());
    CHECK(totals[i] == price.price(1 + i, {.sequences = 4, .gamma = 6, .context_tokens = 2000}));
    const double overhead = price.price(1 + i, plain).overhead;
    CHECK(price.price(1 + i, round).overhead == Approx(overhead).epsilon(1e-12));
    // Memory bounds both: the same share of the bandwidth shows in target and draft, whose passes are launched besides.
    const double share = price.round(plain).target / price.price(1 + i, plain).target;
    const double launch = (price.price(1 + i, round).draft - drafting / share) / 6;
    CHECK(launch >= 1e-4 * (1 - 1e-9));
    CHECK(launch <= 1e-3 * (1 + 1e-9));
    CHECK(price.round(round).target / price.price(1 + i, round).target == Approx(share).epsilon(1e-12));
    CHECK(share * 0.75 >= 0.6 * (1 - 1e-9));
    CHECK(share * 0.75 <= 0.9 * (1 + 1e-9));
  }
  std::sort(totals.begin(), totals.end());
  const double ideal = 0.75 * (price.round(round).target + drafting);
  const double least = ideal / 0.9 + 9e-4, most = ideal / 0.6 + 9e-3;
  CHECK(totals.front() >= least);
  CHECK(totals.front() < 1.2 * least);
  CHECK(totals.back() <= most);
  CHECK(totals.back() > 0.85 * most);

  RooflineOptions alone = usual();
  alone.losses.all_reduce_latency_seconds = range(1e-6, 1e-5);
  REQUIRE(RooflineCost(alone).findings().size() == 1);
  CHECK(RooflineCost(alone).findings()[0].code == "losses_taken_as_exact");
  CHECK(RooflineCost(alone).replicates() == 0);
  alone.draft->tensor_parallel = 2;
  CHECK(RooflineCost(alone).replicates() == 200);
  CHECK(RooflineCost(usual()).replicates() == 0);
  CHECK(RooflineCost(usual()).findings()[0].code == "losses_taken_as_exact");
}

TEST_CASE("formulas err at one number of positions beside another, but price no round below a plain step") {
  RooflineOptions options = uncertain();
  options.kind = DraftKind::ngram;
  options.draft.reset();
  options.replicates = 2000;
  // Memory bounds a plain step and a round alike, so that losses cancel in their ratio.
  const auto ratios = [&](double point_error) {
    options.point_error = point_error;
    const RooflineCost price(options);
    const RoundPoint plain{.batch = 1, .context = 500}, round{.gamma = 3, .batch = 1, .context = 500};
    std::vector<double> steps(price.replicates()), rounds(price.replicates());
    price.totals_of_replicates(plain, steps);
    price.totals_of_replicates(round, rounds);
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      CHECK(rounds[i] == Approx(price.price(1 + i, round).total()).epsilon(1e-12));
      rounds[i] /= steps[i];
    }
    std::sort(rounds.begin(), rounds.end());
    return rounds;
  };
  const std::vector<double> alike = ratios(0), apart = ratios(0.09);
  CHECK(alike.back() / alike.front() < 1.001);
  CHECK(apart.front() == Approx(1).epsilon(1e-12));
  // The upper half is that of a normal law; 5 standard errors of its quantile: a false alarm in one of 10^6 seeds.
  const double deviation = 0.09 * std::sqrt(2 * (1 - std::pow(4, -1 / RooflineCost::point_error_reach)));
  CHECK(std::log(apart[1950] / alike[1000]) == Approx(1.96 * deviation).epsilon(0.18));
}

TEST_CASE("what prompts add errs by itself until a time to first token tells it, and rounds stay as they are") {
  RooflineOptions options = uncertain();
  options.prompt_error = 0.4;
  options.replicates = 400;
  const RooflineCost price(options);
  const cost::Iteration prompt{.prompt_tokens = 2000, .prompts = 1, .prompt_pairs = 2000.0 * 2001 / 2};
  const cost::TimedPrompt timed{.tokens = 2000, .seconds = 2 * price.seconds(prompt)};
  const RooflineCost told = price.with_prompts(std::array{timed});
  CHECK(told.seconds(prompt) == Approx(timed.seconds).epsilon(1e-12));
  double before = 0, after = 0;
  for (std::size_t i = 0; i < price.replicates(); ++i) {
    before += std::pow(std::log(price.price(1 + i, prompt) / price.seconds(prompt)), 2);
    after += std::pow(std::log(told.price(1 + i, prompt) / timed.seconds), 2);
    const cost::Iteration round{.sequences = 8, .gamma = 3, .context_tokens = 8000};
    CHECK(told.price(1 + i, round) == price.price(1 + i, round));
  }
  CHECK(std::sqrt(before / 400) > 0.4);
  // 5 standard errors of a deviation from 400 draws: a false alarm in one of 10^6 seeds.
  CHECK(std::sqrt(after / 400) == Approx(0.3).epsilon(0.18));
}

TEST_CASE("deployments differ from ranges of losses alone by more, which their plain and speculative rounds share") {
  RooflineOptions options = uncertain();
  options.replicates = 2000;
  // So slow that no error reaches the peaks.
  options.losses.bandwidth_efficiency = range(0.06, 0.09);
  const RoundPoint plain{.batch = 4, .context = 500}, round{.gamma = 3, .batch = 4, .context = 500};
  // Deviations of the logarithms of the replicates' seconds: of plain steps, and of rounds beside these.
  const auto deviations = [&](const RooflineCost& price) {
    std::vector<double> steps(price.replicates()), rounds(price.replicates());
    price.totals_of_replicates(plain, steps);
    price.totals_of_replicates(round, rounds);
    const auto deviation = [](const std::vector<double>& logs) {
      const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / 2000;
      double squares = 0;
      for (const double log : logs) squares += (log - mean) * (log - mean);
      return std::sqrt(squares / 2000);
    };
    for (std::size_t i = 0; i < steps.size(); ++i)
      rounds[i] = std::log(rounds[i] / steps[i]), steps[i] = std::log(steps[i]);
    return std::pair{deviation(steps), deviation(rounds)};
  };
  const auto [steps_by_losses, rounds_by_losses] = deviations(RooflineCost(options));
  options.deployment_error = 0.35;
  const RooflineCost apart(options);
  const auto [steps, rounds] = deviations(apart);
  // Five standard errors of a deviation of 2000: a false alarm in one of 10^6 seeds.
  CHECK(steps == Approx(std::sqrt(0.35 * 0.35 + steps_by_losses * steps_by_losses)).epsilon(0.08));
  CHECK(rounds == Approx(rounds_by_losses).epsilon(1e-9));
  const CalibrationPoint timed{.batch = 4, .round_seconds = 1.5 * apart.round(plain).total(), .context = 500};
  CHECK(deviations(apart.calibrated(std::vector<CalibrationPoint>{timed})).first < 0.05);
}

TEST_CASE(
    "no replicate is faster than the peaks, nor its round than its plain step and the draft's passes at the peaks") {
  RooflineOptions options = uncertain();
  options.replicates = 500;
  options.deployment_error = options.point_error = options.prompt_error = 0.5;
  const RooflineCost price(options), peaks = price.at_peaks();
  // One sequence of an empty cache reads the weights and computes next to nothing.
  const RoundPoint plain{.batch = 1}, round{.gamma = 4, .batch = 1};
  const double step = peaks.round(plain).total(), drafts = 4 * peaks.draft_pass(1, 1, 0).total();
  const cost::Iteration prompt{.prompt_tokens = 8000, .prompts = 1, .prompt_pairs = 8000.0 * 8001 / 2};
  std::size_t bounded = 0;
  for (std::size_t r = 0; r < price.replicates(); ++r) {
    const double plain_step = price.price(1 + r, plain).total();
    CHECK(plain_step > step * (1 - 1e-12));
    CHECK(price.price(1 + r, round).total() > (plain_step + drafts) * (1 - 1e-12));
    CHECK(price.price(1 + r, prompt) > peaks.seconds(prompt) * (1 - 1e-12));
    bounded += plain_step < step * (1 + 1e-12) ? 1 : 0;
  }
  // By a normal deviation of about .72, and what the losses leave: some 30%.
  CHECK(bounded > 50);
  CHECK(bounded < 250);
}

TEST_CASE("a timed round near the peaks is held, and its plain step takes no more than it leaves beside the drafts") {
  RooflineOptions options = uncertain();
  options.replicates = 500;
  options.deployment_error = 0.5;
  const RooflineCost price(options), peaks = price.at_peaks();
  const RoundPoint plain{.batch = 1}, round{.gamma = 4, .batch = 1};
  const double drafts = 4 * peaks.draft_pass(1, 1, 0).total();
  const double timed = 1.2 * (peaks.round(plain).total() + drafts), error = 0.03;
  const RooflineCost told =
      price.calibrated(std::vector<CalibrationPoint>{{.batch = 1, .round_seconds = timed, .gamma = 4}}, error);
  CHECK(told.round(round).total() == Approx(timed).epsilon(2 * error));
  for (std::size_t r = 0; r < told.replicates(); ++r) {
    // Five errors: a false alarm in one of 3,000 such tests.
    const double taken = told.price(1 + r, round).total();
    CHECK(taken == Approx(timed).epsilon(5 * error));
    CHECK(told.price(1 + r, plain).total() < taken - drafts * (1 - 1e-9));
  }
}

TEST_CASE("a plain time says nothing of what a round with drafts takes beside it") {
  RooflineOptions options = uncertain();
  options.kind = DraftKind::ngram;
  options.draft.reset();
  options.replicates = 2000;
  options.point_error = 0.09;
  const RooflineCost before(options);
  const RoundPoint plain{.batch = 4, .context = 500}, round{.gamma = 1, .batch = 4, .context = 500};
  const double timed = before.round(plain).total();
  const RooflineCost after =
      before.calibrated(std::vector<CalibrationPoint>{{.batch = 4, .round_seconds = timed, .context = 500}});
  const auto highest = [&](const RooflineCost& price) {
    std::vector<double> steps(price.replicates()), rounds(price.replicates());
    price.totals_of_replicates(plain, steps);
    price.totals_of_replicates(round, rounds);
    for (std::size_t i = 0; i < rounds.size(); ++i) rounds[i] /= steps[i];
    std::sort(rounds.begin(), rounds.end());
    return std::log(rounds[1950]);
  };
  // By the law 0.165; the quantile of 2000 draws has a standard error of 0.005, so less than 0.12 comes with no seed.
  CHECK(highest(before) > 0.12);
  CHECK(highest(after) > 0.12);
  // The plain step itself is known.
  std::vector<double> steps(after.replicates());
  after.totals_of_replicates(plain, steps);
  std::sort(steps.begin(), steps.end());
  CHECK(std::log(steps[1950] / steps[50]) < 0.2);
}

TEST_CASE("a time narrows rounds like it, leaves others as uncertain, and moves no loss") {
  RooflineOptions options = uncertain();
  options.deployment_error = 0.35;
  options.point_error = 0.2;
  const RooflineCost before(options);
  const RoundPoint timed{.context = 2048}, compute_bound{.batch = 800, .context = 10};
  const double seconds = 1.2 * before.round(timed).total();
  const RooflineCost after =
      before.calibrated(std::vector<CalibrationPoint>{{.round_seconds = seconds, .context = 2048}}, 0.01);
  CHECK(after.is_calibrated());
  CHECK_FALSE(before.is_calibrated());
  CHECK(after.findings().empty());
  CHECK(after.factor() == Approx(1.2).epsilon(0.01));
  CHECK(after.round(timed).total() == Approx(seconds).epsilon(0.01));
  CHECK(after.options().losses.bandwidth_efficiency.value == before.options().losses.bandwidth_efficiency.value);
  const auto width = [](const RooflineCost& price, const RoundPoint& point) {
    const std::vector<double> totals = sorted_totals(price, point);
    return totals[195] / totals[4];
  };
  CHECK(width(after, timed) < 1.06);
  CHECK(width(after, compute_bound) > 1.5);
  CHECK(width(after, compute_bound) < width(before, compute_bound));
}

TEST_CASE("times that rise more than is priced make no draft look better") {
  // Rounds of 256 sequences have more positions than were timed: there they keep what the times exceed the prices by.
  const RooflineCost before{uncertain()};
  RooflineOptions options = uncertain();
  options.deployment_error = 0.35;
  options.point_error = 0.2;
  const RooflineCost price(options);
  std::vector<CalibrationPoint> rising;
  for (const auto& [batch, factor] : {std::pair{64.0, 1.9}, {128.0, 2.2}, {256.0, 2.8}}) {
    const double seconds = before.round({.batch = batch, .context = 500}).total();
    rising.push_back({.batch = batch, .round_seconds = factor * seconds, .context = 500});
  }
  const RooflineCost after = price.calibrated(rising);
  const auto of = [](const RooflineCost& cost, std::int64_t gamma) {
    const RoundPoint point{.gamma = gamma, .batch = 256, .context = 500};
    return cost.round(point).total();
  };
  for (std::int64_t gamma = 1; gamma <= 8; ++gamma) {
    CHECK(of(after, gamma) > of(after, gamma - 1));
    CHECK(of(after, gamma) / of(after, 0) > 0.95 * of(before, gamma) / of(before, 0));
  }
}

TEST_CASE("a time that is far from all deployments is followed, and said to be strange") {
  RooflineOptions options = uncertain();
  options.deployment_error = 0.35;
  options.point_error = 0.2;
  const RooflineCost price(options);
  const RoundPoint plain{.batch = 8}, round{.gamma = 4, .batch = 8};
  const double estimate = price.round(plain).total();
  const RooflineCost usual_time =
      price.calibrated(std::vector<CalibrationPoint>{{.batch = 8, .round_seconds = 1.4 * estimate}});
  CHECK_FALSE(has_roofline_finding(usual_time, "roofline_misfit"));
  const RooflineCost strange =
      price.calibrated(std::vector<CalibrationPoint>{{.batch = 8, .round_seconds = 10 * estimate}});
  CHECK(has_roofline_finding(strange, "roofline_misfit"));
  CHECK(strange.round(plain).total() == Approx(10 * estimate).epsilon(0.02));
  // Its times of rounds are then as uncertain as it is strange.
  const auto width = [&](const RooflineCost& cost) {
    const cost::Range range = cost::central_range(cost, round);
    return std::log(range.hi / range.lo);
  };
  CHECK(width(strange) > 2 * width(usual_time));
}

TEST_CASE("times of one place that differ are said to, and count as little as they agree") {
  const std::vector<CalibrationPoint> points = {{.batch = 8, .round_seconds = 14.5e-3},
                                                {.batch = 8, .round_seconds = 40e-3}};
  const RooflineCost doubted = RooflineCost(uncertain()).calibrated(points);
  CHECK(has_roofline_finding(doubted, "calibration_contradicts_itself"));
  CHECK_FALSE(has_roofline_finding(doubted, "roofline_misfit"));
  CHECK_FALSE(has_roofline_finding(doubted, "roofline_uncalibrated"));
}

TEST_CASE("intervals of a calibration that misses a time reach as far as it missed, also without ranges") {
  const std::vector<CalibrationPoint> strange = {{.batch = 8, .round_seconds = 18e-3},
                                                 {.batch = 8, .round_seconds = 45e-3, .context = 4000}};
  const RoundPoint plain{.batch = 8}, drafted{.gamma = 4, .batch = 8};
  for (const RooflineOptions& options : {uncertain(), usual()}) {
    const RooflineCost misfit = RooflineCost(options).calibrated(strange);
    REQUIRE(has_roofline_finding(misfit, "roofline_misfit"));
    REQUIRE(misfit.replicates() == 200);
    double largest = 1;
    for (const CalibrationPoint& point : strange) {
      const double ratio = point.round_seconds / misfit.round({.batch = 8, .context = point.context}).total();
      largest = std::max({largest, ratio, 1 / ratio});
    }
    REQUIRE(largest > 1.3);
    // The 2.5% quantile of 200 draws of ln(factor) has a standard error of 0.19 of their deviation, 0.1 of the miss.
    const cost::Range interval = cost::central_range(misfit, plain);
    CHECK(interval.hi > misfit.round(plain).total() * std::pow(largest, 0.75));
    const double at_peaks = misfit.at_peaks().round(plain).total();
    CHECK(interval.lo < std::max(misfit.round(plain).total() / std::pow(largest, 0.75), at_peaks * (1 + 1e-12)));
    // Plain rounds err apart from speculative ones, all speculative ones alike, but none is shorter than a plain one
    // and the draft's passes.
    std::vector<double> ratios;
    for (std::size_t r = 0; r < misfit.replicates(); ++r)
      ratios.push_back(misfit.price(1 + r, plain).total() / misfit.price(1 + r, drafted).total());
    std::sort(ratios.begin(), ratios.end());
    CHECK(ratios[195] / ratios[4] > std::pow(largest, 1.5));
    CHECK(ratios.back() < 1);
    CHECK(ratios.back() > 0.9);
    cost::Iteration iteration;
    iteration.sequences = 8;
    CHECK(misfit.price(4, iteration) == Approx(misfit.price(4, plain).total()).epsilon(1e-14));
    std::vector<double> totals(misfit.replicates());
    misfit.totals_of_replicates(drafted, totals);
    CHECK(totals[7] == Approx(misfit.price(8, drafted).total()).epsilon(1e-14));
  }
}

TEST_CASE("intervals of a calibrated roofline hold the truth as often as they say", "[long]") {
  // 100 truths from the ranges, four points each with 3% noise, one prediction elsewhere. Of 95% intervals fewer than
  // 88 hold the truth with probability 0.002.
  std::mt19937_64 bits(20'24);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53;
  };
  const auto normal = [&] {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform(0, 1);
    return sum;
  };
  const RoundPoint asked{.gamma = 3, .batch = 100, .context = 1500};
  int held = 0;
  std::vector<double> recovered;
  for (int truth = 0; truth < 100; ++truth) {
    RooflineOptions options = usual();
    options.losses.bandwidth_efficiency = exactly(uniform(0.6, 0.9));
    options.losses.compute_efficiency = exactly(uniform(0.3, 0.7));
    options.losses.launch_seconds = exactly(uniform(1e-4, 1e-3));
    options.losses.scheduling_seconds = exactly(uniform(2e-4, 2e-3));
    const RooflineCost real(options);
    std::vector<CalibrationPoint> points = {{1, 0, 0, 1000}, {16, 0, 4, 1000}, {64, 0, 0, 1000}, {256, 0, 4, 1000}};
    for (CalibrationPoint& point : points) {
      const RoundPoint at{.gamma = point.gamma, .batch = point.batch, .context = point.context};
      point.round_seconds = real.round(at).total() * std::exp(0.03 * normal());
    }
    RooflineOptions before = uncertain();
    before.seed = static_cast<std::uint64_t>(truth);
    before.deployment_error = 0.35;
    before.point_error = 0.2;
    const double seconds = real.round(asked).total();
    const RooflineCost calibrated = RooflineCost(before).calibrated(points);
    held += interval_holds(calibrated, asked, seconds);
    recovered.push_back(calibrated.round(asked).total() / seconds);
  }
  CHECK(held >= 88);
  std::sort(recovered.begin(), recovered.end());
  CHECK(recovered[50] == Approx(1).epsilon(0.03));
  CHECK(recovered.front() > 0.75);
  CHECK(recovered.back() < 1.25);
}

TEST_CASE("the central range of a round is that of its replicates") {
  const RooflineCost price(uncertain());
  const RoundPoint point = {.gamma = 3, .batch = 4, .context = 100};
  std::vector<double> totals(price.replicates());
  price.totals_of_replicates(point, totals);
  const cost::Range range = cost::central_range(price, point);
  std::size_t below = 0, above = 0;
  for (const double total : totals) {
    below += total < range.lo ? 1 : 0;
    above += total > range.hi ? 1 : 0;
  }
  CHECK(below == 5);
  CHECK(above == 5);
  const RooflineCost exact(usual());
  CHECK(cost::central_range(exact, point).lo == exact.round(point).total());
  CHECK(cost::central_range(exact, point).hi == exact.round(point).total());
}

TEST_CASE("a roofline refuses what is outside its range or missing") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto with = [](auto change) {
    RooflineOptions options = usual();
    change(options);
    return options;
  };
  CHECK_THROWS_WITH(RooflineCost(with([](auto& o) { o.losses.bandwidth_efficiency = exactly(1.1); })),
                    Contains("bandwidth_efficiency is 1.1"));
  CHECK_THROWS_AS(RooflineCost(with([](auto& o) { o.losses.compute_efficiency = exactly(0); })), std::domain_error);
  CHECK_THROWS_AS(RooflineCost(with([](auto& o) { o.losses.launch_seconds = exactly(-1); })), std::domain_error);
  CHECK_THROWS_WITH(RooflineCost(with([](auto& o) {
                      o.losses.scheduling_seconds = {2, 1, 3};
                    })),
                    Contains("low of scheduling_seconds is 2"));
  CHECK_THROWS_AS(RooflineCost(with([](auto& o) { o.target.tensor_parallel = 0; })), std::domain_error);
  CHECK_THROWS_WITH(RooflineCost(with([](auto& o) { o.draft.reset(); })), Contains("draft model is missing"));
  CHECK_THROWS_AS(RooflineCost(with([](auto& o) { o.kind = DraftKind::ngram; })), std::invalid_argument);
  CHECK_THROWS_WITH(RooflineCost(with([](auto& o) { o.target.model.layers.clear(); })), Contains("no layers"));
  CHECK_THROWS_AS(RooflineCost(with([](auto& o) { o.hardware.peak_flops.clear(); })), std::invalid_argument);
  CHECK_THROWS_WITH(RooflineCost(with([](auto& o) { o.hardware.memory_bandwidth_bytes_per_second.value = 0; })),
                    Contains("memory_bandwidth_bytes_per_second of device is 0"));

  const RooflineCost price(usual());
  CHECK_THROWS_AS(price.round({.gamma = -1}), std::domain_error);
  CHECK_THROWS_AS(price.target_pass(0, 1, 0), std::domain_error);
  CHECK_THROWS_AS(price.target_pass(1, nan, 0), std::domain_error);
  CHECK_THROWS_AS(price.draft_pass(1, 1, -1), std::domain_error);
  CHECK_THROWS_AS(price.seconds({.sequences = nan}), std::domain_error);
  CHECK_THROWS_WITH(price.seconds({.prompt_tokens = 5}), Contains("prompts is 0"));
  CHECK_THROWS_AS(price.calibrated({}), std::invalid_argument);
  const std::vector<CalibrationPoint> good = {{.round_seconds = 1}}, bad = {{.round_seconds = 0}};
  CHECK_THROWS_AS(price.calibrated(good, 0), std::domain_error);
  CHECK_THROWS_AS(price.calibrated(bad), std::domain_error);
}
