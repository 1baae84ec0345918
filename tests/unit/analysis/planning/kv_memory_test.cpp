#include "analysis/planning/kv_memory.hpp"

#include <cmath>
#include <stdexcept>

#include "tests/support/catch.hpp"

using namespace specdec;
using planning::KvMemory;
using planning::ReplicaHolds;

namespace {

/// A decoder of the Llama kind; head size 128 (64 for the smallest), 8 key/value heads.
cost::PlacedModel llama(std::int64_t layers, std::int64_t width, std::int64_t heads, std::int64_t head_size,
                        std::int64_t feed_forward, bool tied, cost::NumberType weights, std::int64_t gpus) {
  constexpr std::int64_t vocabulary = 128256, kv_heads = 8;
  cost::LayerGroup layer;
  layer.count = layers;
  layer.dense_parameters = 2 * width * heads * head_size + 2 * width * kv_heads * head_size + 3 * width * feed_forward;
  layer.other_parameters = 2 * width;
  layer.cached_values_per_token = 2 * kv_heads * head_size;
  layer.attention_flops_per_pair = 4 * heads * head_size;
  layer.cache_shards = kv_heads;
  cost::PlacedModel placed;
  placed.model.name = "llama";
  placed.model.width = width;
  placed.model.vocabulary = vocabulary;
  placed.model.layers = {layer};
  placed.model.embedding_parameters = vocabulary * width;
  placed.model.head_parameters = vocabulary * width;
  placed.model.tied_head = tied;
  placed.model.extra_other_parameters = width;
  placed.weight_type = weights;
  placed.tensor_parallel = gpus;
  return placed;
}

cost::PlacedModel llama_70b(cost::NumberType weights, std::int64_t gpus) {
  return llama(80, 8192, 64, 128, 28672, false, weights, gpus);
}
cost::PlacedModel llama_8b(cost::NumberType weights, std::int64_t gpus) {
  return llama(32, 4096, 32, 128, 14336, false, weights, gpus);
}
cost::PlacedModel llama_1b(cost::NumberType weights, std::int64_t gpus) {
  return llama(16, 2048, 32, 64, 8192, true, weights, gpus);
}

/// All of the memory, blocks of one token.
ReplicaHolds ideal(double memory_bytes, const cost::PlacedModel& target, const cost::PlacedModel& draft) {
  ReplicaHolds holds;
  holds.memory_bytes_per_gpu = memory_bytes;
  holds.utilization = 1;
  holds.reserve_bytes_per_gpu = 0;
  holds.target = target;
  holds.draft = draft;
  holds.block_size = 1;
  return holds;
}

double sequences_of_2048(const ReplicaHolds& holds) {
  return std::floor(static_cast<double>(planning::kv_memory(holds).tokens) / 2048);
}

}  // namespace

TEST_CASE("memory caps the batch where the printed figures of a 70B model say") {
  using cost::NumberType;
  // One H200, fp8 weights, bf16 cache, context 2048.
  const auto target = llama_70b(NumberType::fp8, 1);
  CHECK(sequences_of_2048(ideal(141e9, target, llama_8b(NumberType::fp8, 1))) == 66);
  CHECK(sequences_of_2048(ideal(141e9, target, llama_1b(NumberType::fp8, 1))) == 93);
  // Eight H100, bf16, all models divided by eight.
  const auto eighth = llama_70b(NumberType::bf16, 8);
  CHECK(sequences_of_2048(ideal(80e9, eighth, llama_8b(NumberType::bf16, 8))) == 513);
}

TEST_CASE("what the cache gets is what utilization and reserve leave beside the weights, in whole blocks") {
  using cost::NumberType;
  ReplicaHolds holds = ideal(80e9, llama_8b(NumberType::bf16, 1), llama_1b(NumberType::bf16, 1));
  holds.utilization = 0.9;
  holds.reserve_bytes_per_gpu = 2e9;
  holds.block_size = 16;
  const KvMemory memory = planning::kv_memory(holds);
  CHECK(memory.usable_bytes == Approx(70e9));
  CHECK(memory.target_weight_bytes == 2 * 8030261248.0);
  CHECK(memory.draft_weight_bytes == 2 * 1235814400.0);
  CHECK(memory.bytes_per_token == 131072 + 32768);
  CHECK(memory.cache_bytes == Approx(70e9 - 2 * 8030261248.0 - 2 * 1235814400.0));
  CHECK(memory.blocks == static_cast<std::int64_t>(memory.cache_bytes / (16 * 163840.0)));
  CHECK(memory.tokens == 16 * memory.blocks);

  ReplicaHolds plain = holds;
  plain.draft.reset();
  CHECK(planning::kv_memory(plain).tokens > memory.tokens);
  ReplicaHolds less = holds;
  less.utilization = 0.8;
  CHECK(planning::kv_memory(less).tokens < memory.tokens);
}

TEST_CASE("an engine takes its reserve by the widths of the model, of experts by those that a token chooses") {
  ReplicaHolds holds = ideal(80e9, llama_8b(cost::NumberType::bf16, 1), llama_1b(cost::NumberType::bf16, 1));
  holds.reserve_bytes_per_gpu.reset();
  holds.max_num_batched_tokens = 1000;
  holds.max_num_seqs = 10;
  const double of_logits = 5.3 * 10 * 128256 * 4;
  CHECK(planning::usual_reserve(holds) == Approx(4.7 * 1000 * 4096 * 2 + of_logits));
  CHECK(planning::kv_memory(holds).usable_bytes == Approx(80e9 - planning::usual_reserve(holds)));
  holds.target.tensor_parallel = 2;
  cost::LayerGroup& layer = holds.target.model.layers.front();
  layer.experts = 8;
  layer.experts_per_token = 3;
  layer.parameters_per_expert = 3 * 4096 * std::int64_t{14336};
  CHECK(planning::usual_reserve(holds) ==
        Approx(0.37 * 1073741824.0 + 4.7 * 1000 * (4096 + 3 * 14336.0) * 2 + of_logits));
  layer.parameters_per_expert = 3 * 4096 * std::int64_t{512};
  CHECK(planning::usual_reserve(holds) == Approx(0.37 * 1073741824.0 + 4.7 * 1000 * 4 * 4096 * 2 + of_logits));
}

TEST_CASE("states of recurrent layers are held for every sequence that may run") {
  ReplicaHolds holds = ideal(80e9, llama_8b(cost::NumberType::bf16, 2), llama_1b(cost::NumberType::bf16, 2));
  holds.draft.reset();
  holds.target.model.layers.front().state_values_per_sequence = 1000;
  holds.max_num_seqs = 10;
  // 32 layers, 1000 values of 2 bytes, half of them on each of two accelerators.
  CHECK(planning::kv_memory(holds).state_bytes == 10 * 32 * 1000 * 2 / 2);
}

TEST_CASE("weights that do not fit leave no block, and a power of two of accelerators has room") {
  ReplicaHolds holds = ideal(80e9, llama_70b(cost::NumberType::bf16, 1), llama_1b(cost::NumberType::bf16, 1));
  holds.utilization = 0.9;
  const KvMemory memory = planning::kv_memory(holds);
  CHECK(memory.cache_bytes < 0);
  CHECK(memory.blocks == 0);
  CHECK(memory.tokens == 0);
  // 143.6 GB of weights, 72 GB usable: two accelerators hold 71.8 GB each, and 0.2 GB of cache.
  CHECK(planning::gpus_that_hold(holds) == 2);
  holds.utilization = 0.5;
  CHECK(planning::gpus_that_hold(holds) == 4);
  holds.memory_bytes_per_gpu = 1e6;
  CHECK_FALSE(planning::gpus_that_hold(holds));
}

TEST_CASE("look-ahead slots are the drafts of every sequence and the token they follow") {
  CHECK(planning::lookahead_tokens(256, 0) == 256);
  CHECK(planning::lookahead_tokens(256, 3) == 1024);
  CHECK_THROWS_AS(planning::lookahead_tokens(-1, 3), std::domain_error);
  CHECK_THROWS_AS(planning::lookahead_tokens(1, -3), std::domain_error);
}

TEST_CASE("a memory of nothing and shares beyond one are refused by name") {
  ReplicaHolds holds = ideal(80e9, llama_8b(cost::NumberType::bf16, 1), llama_1b(cost::NumberType::bf16, 1));
  holds.utilization = 1.1;
  CHECK_THROWS_AS(planning::kv_memory(holds), std::domain_error);
  holds.utilization = 1;
  holds.memory_bytes_per_gpu = 0;
  CHECK_THROWS_AS(planning::kv_memory(holds), std::domain_error);
  holds.memory_bytes_per_gpu = 80e9;
  holds.block_size = 0;
  CHECK_THROWS_AS(planning::kv_memory(holds), std::domain_error);
}
