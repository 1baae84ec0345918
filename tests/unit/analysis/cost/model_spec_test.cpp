#include "analysis/cost/model_spec.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

using namespace specdec;
using cost::LayerGroup;
using cost::ModelSpec;
using cost::NumberType;

namespace {

struct DenseSizes {
  std::int64_t width, layers, heads, key_value_heads, head_size, feed_forward, vocabulary;
  bool tied;
};

/// Written from the matrices' sizes alone, as reference for the readers of configurations too.
ModelSpec dense_model(const DenseSizes& size) {
  const std::int64_t queries = size.heads * size.head_size, keys = size.key_value_heads * size.head_size;
  return {.width = size.width,
          .vocabulary = size.vocabulary,
          .layers = {{.count = size.layers,
                      .dense_parameters =
                          2 * size.width * queries + 2 * size.width * keys + 3 * size.width * size.feed_forward,
                      .other_parameters = 2 * size.width,
                      .cached_values_per_token = 2 * keys,
                      .attention_flops_per_pair = 4 * queries,
                      .cache_shards = size.key_value_heads}},
          .embedding_parameters = size.vocabulary * size.width,
          .head_parameters = size.vocabulary * size.width,
          .tied_head = size.tied,
          .extra_other_parameters = size.width};
}

}  // namespace

TEST_CASE("the numbers of Llama 3 are those of its parts") {
  const ModelSpec large = dense_model({8192, 80, 64, 8, 128, 28672, 128256, false});
  CHECK(total_parameters(large) == 70553706496);
  CHECK(active_parameters(large) == 69501714432);
  CHECK(2 * cached_values_per_token(large) == 327680);
  CHECK(attention_flops_per_pair(large) == 2621440);
  CHECK(cache_bytes(large, 2048, 2) == 327680.0 * 2048);

  const ModelSpec small = dense_model({4096, 32, 32, 8, 128, 14336, 128256, false});
  CHECK(total_parameters(small) == 8030261248);
  CHECK(active_parameters(small) == 7504658432);
  CHECK(2 * cached_values_per_token(small) == 131072);
  CHECK(attention_flops_per_pair(small) == 524288);

  const ModelSpec tied = dense_model({2048, 16, 32, 8, 64, 8192, 128256, true});
  CHECK(total_parameters(tied) == 1235814400);
  CHECK(active_parameters(tied) == 1235746816);
  CHECK(2 * cached_values_per_token(tied) == 32768);
  CHECK(attention_flops_per_pair(tied) == 131072);
}

TEST_CASE("a token is multiplied by its own experts and all are stored") {
  // Mixtral 8x7B: 32 layers of 4096, 32 heads of 128, 8 key/value heads, 8 experts of 14336, 2 of them per token.
  ModelSpec model = dense_model({4096, 32, 32, 8, 128, 0, 32000, false});
  model.layers[0].dense_parameters += 4096 * 8;
  model.layers[0].experts = 8;
  model.layers[0].experts_per_token = 2;
  model.layers[0].parameters_per_expert = 3 * 4096 * 14336;
  CHECK(total_parameters(model) == 46702792704);
  CHECK(active_parameters(model) == 1474297856 + 2 * 5637144576);
}

TEST_CASE("windows and states bound the cache") {
  const LayerGroup full{.count = 3, .cached_values_per_token = 10, .attention_flops_per_pair = 100};
  const LayerGroup windowed{.count = 5, .cached_values_per_token = 20, .attention_flops_per_pair = 7, .window = 128};
  const LayerGroup recurrent{.count = 2, .state_values_per_sequence = 1000};
  const ModelSpec model{.layers = {full, windowed, recurrent}};
  CHECK(cached_values_per_token(model) == 3 * 10 + 5 * 20);
  CHECK(attention_flops_per_pair(model) == 300);
  CHECK(cache_bytes(model, 0, 2) == 2 * 1000 * 2);
  CHECK(cache_bytes(model, 100, 2) == 2 * (3 * 10 * 100 + 5 * 20 * 100 + 2 * 1000));
  CHECK(cache_bytes(model, 1000, 2) == 2 * (3 * 10 * 1000 + 5 * 20 * 128 + 2 * 1000));
  CHECK(cache_bytes(model, 1000, 1) == 3 * 10 * 1000 + 5 * 20 * 128 + 2 * (2 * 1000));
  const ModelSpec sparse{.layers = {{.count = 2,
                                     .cached_values_per_token = 10,
                                     .attention_flops_per_pair = 100,
                                     .selected = 128,
                                     .index_values_per_token = 3,
                                     .index_flops_per_pair = 7}}};
  CHECK(cached_values_per_token(sparse) == 2 * 13);
  CHECK(attention_flops_per_pair(sparse) == 2 * 7);
  CHECK(cache_bytes(sparse, 1000, 2) == 2 * 2 * 13 * 1000);
  CHECK_THROWS_AS(cache_bytes(model, -1, 2), std::domain_error);
  CHECK_THROWS_AS(cache_bytes(model, 1, std::nan("")), std::domain_error);
}

TEST_CASE("the share of experts passed over is accurate where it is nearly 1, and where it is nearly 0") {
  for (const std::int64_t experts : {3, 128, 100000}) {
    for (const std::int64_t chosen : {std::int64_t{1}, experts / 3, experts / 2, experts / 2 + 1, experts - 1}) {
      const long double expected = log1pl(-static_cast<long double>(chosen) / static_cast<long double>(experts));
      CHECK(cost::log_share_passed_over(experts, chosen) == Approx(static_cast<double>(expected)).epsilon(1e-15));
    }
  }
  CHECK(cost::log_share_passed_over(4, 4) == -std::numeric_limits<double>::infinity());
  CHECK_THROWS_AS(cost::log_share_passed_over(0, 1), std::domain_error);
  CHECK_THROWS_AS(cost::log_share_passed_over(8, 9), std::domain_error);
  CHECK_THROWS_AS(cost::log_share_passed_over(8, 0), std::domain_error);
}

TEST_CASE("a next-token module reads the target's head and stores its own layer") {
  ModelSpec target = dense_model({64, 4, 4, 2, 16, 256, 1000, false});
  CHECK_THROWS_AS(next_token_module(target), std::invalid_argument);
  target.next_token_layers = target.layers;
  target.next_token_layers[0].count = 1;
  target.next_token_extra_parameters = 2 * 64 * 64;
  target.weight_bytes = 12345;
  const ModelSpec module = next_token_module(target);
  const std::int64_t layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 256;
  CHECK(total_parameters(module) == layer + 2 * 64 + 2 * 64 * 64);
  CHECK(active_parameters(module) == layer + 2 * 64 * 64 + 64 * 1000);
  CHECK(cached_values_per_token(module) == 2 * 32);
  CHECK_FALSE(module.weight_bytes.has_value());
  CHECK_THROWS_AS(next_token_module(module), std::invalid_argument);
}

TEST_CASE("stored bits count the share of the scales") {
  const std::vector<std::pair<NumberType, double>> types = {
      {NumberType::fp32, 32}, {NumberType::fp16, 16},    {NumberType::bf16, 16},   {NumberType::fp8, 8},
      {NumberType::int8, 8},  {NumberType::int4, 4.125}, {NumberType::nvfp4, 4.5}, {NumberType::mxfp4, 4.25}};
  for (const auto& [type, bits] : types) {
    CHECK(cost::stored_bits(type) == bits);
    CHECK(cost::number_type_named(cost::name_of(type)) == type);
  }
  CHECK_FALSE(cost::number_type_named("fp4").has_value());
  CHECK_FALSE(cost::number_type_named("").has_value());
}
