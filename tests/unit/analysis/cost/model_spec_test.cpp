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
  CHECK(matmul_parameters(large) == 69501714432);
  CHECK(active_parameters(large) == 69501714432);
  CHECK(2 * cached_values_per_token(large) == 327680);
  CHECK(attention_flops_per_pair(large) == 2621440);
  CHECK(cache_bytes(large, 2048, 2) == 327680.0 * 2048);

  const ModelSpec small = dense_model({4096, 32, 32, 8, 128, 14336, 128256, false});
  CHECK(total_parameters(small) == 8030261248);
  CHECK(matmul_parameters(small) == 7504658432);
  CHECK(2 * cached_values_per_token(small) == 131072);
  CHECK(attention_flops_per_pair(small) == 524288);

  const ModelSpec tied = dense_model({2048, 16, 32, 8, 64, 8192, 128256, true});
  CHECK(total_parameters(tied) == 1235814400);
  CHECK(matmul_parameters(tied) == 1235746816);
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
  CHECK(matmul_parameters(model) == 1474297856 + 8 * 5637144576);
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

TEST_CASE("the expected number of distinct experts is that of independent choices") {
  const std::vector<std::pair<double, double>> mixtral = {{0, 0},       {1, 2},         {2, 3.5},
                                                          {4, 5.46875}, {5, 6.1015625}, {8, 7.1990966796875}};
  for (const auto& [tokens, expected] : mixtral) {
    CHECK(cost::expected_distinct_experts(8, 2, tokens) == Approx(expected).epsilon(1e-14));
  }
  CHECK(cost::expected_distinct_experts(256, 8, 5) == Approx(37.5769119263).epsilon(1e-12));
  CHECK(cost::expected_distinct_experts(256, 8, 8) == Approx(57.4208307860).epsilon(1e-12));
  CHECK(cost::expected_distinct_experts(4, 4, 0.5) == 4);
  CHECK(cost::expected_distinct_experts(4, 4, 0) == 0);
  CHECK(cost::expected_distinct_experts(1, 1, 3) == 1);
}

TEST_CASE("every choice of two of four experts by three tokens touches 7/2 of them on average") {
  std::vector<unsigned> pairs;
  for (unsigned set = 0; set < 16; ++set) {
    if (__builtin_popcount(set) == 2) pairs.push_back(set);
  }
  int touched = 0;
  for (const unsigned a : pairs) {
    for (const unsigned b : pairs) {
      for (const unsigned c : pairs) touched += __builtin_popcount(a | b | c);
    }
  }
  CHECK(touched / 216.0 == 3.5);
  CHECK(cost::expected_distinct_experts(4, 2, 3) == Approx(3.5).epsilon(1e-14));
}

TEST_CASE("the expected number of distinct experts is accurate where it is tiny, and where nearly all are touched") {
  for (const std::int64_t experts : {3, 128, 100000}) {
    for (const std::int64_t chosen : {std::int64_t{1}, experts / 3, experts / 2, experts / 2 + 1, experts - 1}) {
      for (const double tokens : {1e-12, 0.3, 1.0, 2.5, 700.0, 1e9}) {
        const auto all = static_cast<long double>(experts);
        const long double missed = log1pl(-static_cast<long double>(chosen) / all);
        const long double expected = -all * expm1l(static_cast<long double>(tokens) * missed);
        CHECK(cost::expected_distinct_experts(experts, chosen, tokens) ==
              Approx(static_cast<double>(expected)).epsilon(1e-14));
      }
    }
  }
  CHECK_THROWS_AS(cost::expected_distinct_experts(0, 1, 1), std::domain_error);
  CHECK_THROWS_AS(cost::expected_distinct_experts(8, 9, 1), std::domain_error);
  CHECK_THROWS_AS(cost::expected_distinct_experts(8, 0, 1), std::domain_error);
  CHECK_THROWS_AS(cost::expected_distinct_experts(8, 2, -1), std::domain_error);
  CHECK_THROWS_AS(cost::expected_distinct_experts(8, 2, std::numeric_limits<double>::infinity()), std::domain_error);
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
  CHECK(matmul_parameters(module) == layer + 2 * 64 * 64 + 64 * 1000);
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
