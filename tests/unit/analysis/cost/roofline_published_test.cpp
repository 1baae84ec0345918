// Worked figures with their printed digits; batch, gamma and context as in the tables beside them. E is the sum of a
// geometric series, roots are found by bisection, and bytes and FLOP are counted back from seconds and peaks, so that
// none of the closed forms behind the figures is used.
#include <cmath>
#include <functional>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/unit/analysis/cost/roofline_models.hpp"

using namespace specdec;
using namespace specdec::cost::tests;
using cost::NumberType;
using cost::RooflineCost;
using cost::RoundPoint;

namespace {

/// Half a unit of the last printed digit.
bool prints_as(double value, double printed, int decimals) {
  return std::abs(value - printed) <= 0.5 * std::pow(10.0, -decimals) * (1 + 1e-9);
}

RooflineCost h200_fp8(const cost::ModelSpec& draft) {
  return RooflineCost(roofline(h200(), placed(llama_70b(), NumberType::fp8), placed(draft, NumberType::fp8)));
}

std::int64_t best_gamma(const std::function<double(std::int64_t)>& speedup_of) {
  std::int64_t best = 0;
  for (std::int64_t gamma = 1; gamma <= 64; ++gamma)
    if (speedup_of(gamma) > speedup_of(best)) best = gamma;
  return best;
}

std::int64_t first_losing_batch(const RooflineCost& price, double alpha, std::int64_t gamma) {
  for (std::int64_t batch = 1; batch < 1000; ++batch) {
    const RoundPoint point{.gamma = gamma, .batch = static_cast<double>(batch), .context = 2048};
    if (speedup(price, alpha, point) < 1) return batch;
  }
  return 0;
}

}  // namespace

TEST_CASE("the knee of weights and their products is where the devices' data sheets put it") {
  const auto knee = [](const cost::HardwareSpec& hardware, NumberType type) {
    const RooflineCost price(roofline(hardware, placed(llama_70b(), type), placed(llama_8b(), type)));
    const cost::PassSeconds pass = price.target_pass(1, 1, 0);
    return pass.weights / pass.weight_products;
  };
  CHECK(prints_as(knee(h100(), NumberType::bf16), 295.343, 3));
  CHECK(prints_as(knee(h200(), NumberType::bf16), 206.125, 3));
  CHECK(prints_as(knee(h200(), NumberType::fp8), 206.135, 3));
}

TEST_CASE("weights alone break even at the batch of the closed form and speculation only loses beyond the knee") {
  const auto weighing = [](const cost::ModelSpec& draft) {
    return RooflineCost(roofline(h200(), placed(weights_only(llama_70b()), NumberType::fp8),
                                 placed(weights_only(draft), NumberType::fp8)));
  };
  const auto break_even = [](const RooflineCost& price, double alpha, std::int64_t gamma) {
    double low = 30, high = 200;
    while (high - low > 1e-9) {
      const double middle = (low + high) / 2;
      (speedup(price, alpha, {.gamma = gamma, .batch = middle}) > 1 ? low : high) = middle;
    }
    return low;
  };
  const RooflineCost with_8b = weighing(llama_8b()), with_1b = weighing(llama_1b());
  CHECK(prints_as(break_even(with_8b, 0.8, 4), 120.782486, 6));
  CHECK(prints_as(break_even(with_1b, 0.7, 4), 111.394740, 6));
  CHECK(prints_as(break_even(with_1b, 0.7, 8), 70.007724, 6));
  CHECK(prints_as(speedup(with_8b, 0.8, {.gamma = 4, .batch = 5000}), 0.618861262422, 12));
  CHECK(prints_as(speedup(with_1b, 0.7, {.gamma = 4, .batch = 5000}), 0.546841684021, 12));
  for (const double batch : {1.0, 20.0, 41.2}) {
    CHECK(with_8b.round({.gamma = 4, .batch = batch}).target == with_8b.round({.batch = batch}).target);
  }
}

TEST_CASE("one H200 with 8 bit weights at context 2048 reproduces the worked example") {
  const RooflineCost with_8b = h200_fp8(llama_8b()), with_1b = h200_fp8(llama_1b());
  const auto milliseconds = [](const cost::PassSeconds& pass) { return 1e3 * pass.total(); };
  CHECK(prints_as(milliseconds(with_8b.target_pass(1, 1, 2048)), 14.619402, 6));
  CHECK(prints_as(milliseconds(with_8b.target_pass(1, 5, 2048)), 14.619675, 6));
  CHECK(prints_as(milliseconds(with_8b.draft_pass(1, 1, 2048)), 1.619422, 6));
  CHECK(prints_as(with_8b.draft_pass(1, 1, 2048).total() / with_8b.target_pass(1, 1, 2048).total(), 0.110772, 6));
  CHECK(prints_as(milliseconds(with_8b.target_pass(64, 1, 2048)), 23.431741, 6));
  CHECK(prints_as(milliseconds(with_8b.target_pass(64, 5, 2048)), 31.447382, 6));
  CHECK(prints_as(with_1b.draft_pass(1, 1, 2048).total() / with_1b.target_pass(1, 1, 2048).total(), 0.018567, 6));

  struct WorkedPoint {
    const RooflineCost& price;
    double alpha, batch, at_4;
    std::int64_t best;
    double at_best;
  };
  const std::vector<WorkedPoint> points = {{with_8b, 0.8, 1, 2.329418, 5, 2.374232},
                                           {with_8b, 0.8, 64, 1.514050, 2, 1.695073},
                                           {with_1b, 0.7, 1, 2.581343, 8, 2.785043}};
  for (const WorkedPoint& expected : points) {
    const auto at = [&](std::int64_t gamma) {
      return speedup(expected.price, expected.alpha, {.gamma = gamma, .batch = expected.batch, .context = 2048});
    };
    CHECK(prints_as(at(4), expected.at_4, 6));
    CHECK(best_gamma(at) == expected.best);
    CHECK(prints_as(at(expected.best), expected.at_best, 6));
  }
  CHECK(first_losing_batch(with_8b, 0.8, 4) == 174);
  CHECK(first_losing_batch(with_8b, 0.8, 8) == 82);
  CHECK(first_losing_batch(with_1b, 0.7, 8) == 102);
}

TEST_CASE("memory caps the batch where the weights and caches of both models fill it") {
  const auto cap = [](const cost::HardwareSpec& hardware, const cost::ModelSpec& draft, NumberType type,
                      std::int64_t tensor_parallel) {
    const auto target = placed(llama_70b(), type, tensor_parallel), drafting = placed(draft, type, tensor_parallel);
    const double left = hardware.memory_bytes.value - weight_bytes_per_gpu(target) - weight_bytes_per_gpu(drafting);
    return std::floor(left /
                      (2048 * (cache_bytes_per_token_per_gpu(target) + cache_bytes_per_token_per_gpu(drafting))));
  };
  CHECK(cap(h200(), llama_8b(), NumberType::fp8, 1) == 66);
  CHECK(cap(h200(), llama_1b(), NumberType::fp8, 1) == 93);
  CHECK(cap(h100(), llama_8b(), NumberType::bf16, 8) == 513);
}

TEST_CASE("eight H100 that share both models for nothing reproduce the table of batches") {
  const auto shared = [](const cost::ModelSpec& draft) {
    return RooflineCost(roofline(h100(), placed(llama_70b(), NumberType::bf16, 8), placed(draft, NumberType::bf16, 8)));
  };
  const RooflineCost with_8b = shared(llama_8b()), with_1b = shared(llama_1b());
  const std::vector<double> batches = {1, 64, 128, 256, 512};
  const std::vector<double> at_8b = {2.338444955, 1.897095508, 1.292895735, 0.941762998, 0.892099318};
  const std::vector<double> at_1b = {2.585133227, 2.286125871, 1.445347168, 1.010346276, 0.951636945};
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const RoundPoint point{.gamma = 4, .batch = batches[i], .context = 2048};
    CAPTURE(point.batch);
    CHECK(prints_as(speedup(with_8b, 0.8, point), at_8b[i], 9));
    CHECK(prints_as(speedup(with_1b, 0.7, point), at_1b[i], 9));
  }
  CHECK(first_losing_batch(with_8b, 0.8, 4) == 221);
  CHECK(first_losing_batch(with_1b, 0.7, 4) == 263);
}

TEST_CASE("long contexts bring back speedup at batch 128 though the draft reads a cache of its own") {
  const RooflineCost price = h200_fp8(llama_8b());
  const auto at = [&](double context) { return speedup(price, 0.8, {.gamma = 4, .batch = 128, .context = context}); };
  CHECK(prints_as(at(2048), 1.113156, 6));
  CHECK(prints_as(at(16384), 1.251411, 6));
  CHECK(prints_as(at(131072), 1.287119, 6));
  const auto c = [&](double context) {
    return price.draft_pass(128, 1, context).total() / price.target_pass(128, 1, context).total();
  };
  CHECK(prints_as(c(2048), 0.269, 3));
  CHECK(prints_as(c(131072), 0.396, 3));
}

TEST_CASE("seconds beside arithmetic put a floor under what a small draft costs") {
  const std::vector<double> launches = {0, 0.05e-3, 0.2e-3, 1e-3};
  const std::vector<double> ratios = {0.017378, 0.020579, 0.030183, 0.081401};
  const std::vector<double> speedups = {2.592822, 2.562147, 2.474329, 2.091924};
  for (std::size_t i = 0; i < launches.size(); ++i) {
    cost::RooflineOptions options =
        roofline(h200(), placed(llama_70b(), NumberType::fp8), placed(llama_1b(), NumberType::fp8));
    options.losses.launch_seconds = {1e-3, 1e-3, 1e-3};
    options.losses.draft_launch_seconds = {launches[i], launches[i], launches[i]};
    const RooflineCost price(options);
    CHECK(prints_as(price.draft_pass(1, 1, 2048).total() / price.target_pass(1, 1, 2048).total(), ratios[i], 6));
    CHECK(prints_as(speedup(price, 0.7, {.gamma = 4, .context = 2048}), speedups[i], 6));
  }
}

TEST_CASE("price and energy of a token follow from seconds, bytes and operations") {
  const RooflineCost price = h200_fp8(llama_8b());
  const double plain = price.round({.context = 2048}).total();
  const double round = price.round({.gamma = 4, .context = 2048}).total();
  const double tokens = tokens_per_step(0.8, 4);
  CHECK(prints_as(4.0 / 3600 * 1e6 * plain, 16.243780, 6));
  CHECK(prints_as(4.0 / 3600 * 1e6 * round / tokens, 6.973320, 6));

  // 40 pJ per byte, 0.5 pJ per FLOP and 150 W; attention's peak is that of 16 bits, the weights' that of 8.
  const auto joules = [&](const cost::PassSeconds& pass) {
    const double bytes = (pass.weights + pass.cache) * 4.8e12;
    const double flops = pass.weight_products * 1978.9e12 + pass.attention * 989.4e12;
    return 40e-12 * bytes + 0.5e-12 * flops + 150 * pass.total();
  };
  const auto per_token = [&](double batch, std::int64_t gamma) {
    const double draft = static_cast<double>(gamma) * joules(price.draft_pass(batch, 1, 2048));
    const double target = joules(price.target_pass(batch, static_cast<double>(gamma) + 1, 2048));
    return (target + draft) / (batch * tokens_per_step(0.8, gamma));
  };
  CHECK(prints_as(per_token(1, 0), 5.072023, 6));
  CHECK(prints_as(per_token(1, 4), 2.263332, 6));
  CHECK(prints_as(per_token(64, 0), 0.197401, 6));
  CHECK(prints_as(per_token(64, 4), 0.192507, 6));
}

TEST_CASE("experts make verification dear and acceptance above c no longer enough") {
  const cost::ModelSpec mixtral = weights_only(mixtral_8x7b());
  cost::RooflineOptions options;
  options.hardware = h200();
  options.kind = cost::DraftKind::ngram;
  options.target = placed(mixtral, NumberType::bf16);
  const RooflineCost price(options);
  const auto v = [&](std::int64_t tokens) {
    return price.target_pass(1, static_cast<double>(tokens), 0).total() / price.target_pass(1, 1, 0).total();
  };
  CHECK(prints_as(v(2), 1.663266985, 9));
  CHECK(prints_as(v(3), 2.160717223, 9));
  CHECK(prints_as(v(4), 2.533804902, 9));
  CHECK(prints_as(v(5), 2.813620661, 9));
  const auto at = [&](double alpha) {
    return [&v, alpha](std::int64_t gamma) {
      return gamma == 0 ? 1.0 : tokens_per_step(alpha, gamma) / (v(gamma + 1) + 0.05 * static_cast<double>(gamma));
    };
  };
  CHECK(best_gamma(at(0.6)) == 0);
  CHECK(best_gamma(at(0.7)) == 0);
  CHECK(best_gamma(at(0.8)) == 9);
  CHECK(prints_as(at(0.8)(9), 1.14325961219, 11));
  CHECK(best_gamma(at(0.9)) == 21);
  CHECK(prints_as(at(0.9)(21), 1.91945792606, 11));
}
