#include <string>

#include "analysis/cost/model_spec.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gguf_bytes.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using cost::ModelSpec;
using cost::NumberType;
using tests::GgufBytes;

namespace {

constexpr std::uint32_t f32 = 0, f16 = 1, q8_0 = 8, mxfp4 = 39;

GgufBytes metadata(const std::string& architecture, std::uint32_t blocks) {
  const std::string prefix = architecture + '.';
  return GgufBytes()
      .text("general.architecture", architecture)
      .text("general.name", "Small")
      .integer(prefix + "block_count", blocks)
      .integer(prefix + "context_length", 4096)
      .integer(prefix + "embedding_length", 64)
      .integer(prefix + "attention.head_count", 4)
      .integer(prefix + "attention.head_count_kv", 2);
}

/// Width 64, 4 heads of 16, 2 of keys and values, feed-forward 96, 100 tokens.
void add_ends(GgufBytes& file, bool own_head) {
  file.tensor("token_embd.weight", {64, 100}, f16, 12800).tensor("output_norm.weight", {64}, f32, 256);
  if (own_head) file.tensor("output.weight", {64, 100}, f16, 12800);
  file.tensor("rope_freqs.weight", {8}, f32, 32);
}

void add_attention(GgufBytes& file, const std::string& block) {
  file.tensor(block + "attn_norm.weight", {64}, f32, 256)
      .tensor(block + "attn_q.weight", {64, 64}, f16, 8192)
      .tensor(block + "attn_k.weight", {64, 32}, f16, 4096)
      .tensor(block + "attn_v.weight", {64, 32}, f16, 4096)
      .tensor(block + "attn_output.weight", {64, 64}, f16, 8192);
}

void add_feed_forward(GgufBytes& file, const std::string& block, std::uint32_t type = f16) {
  const std::uint64_t bytes = type == f16 ? 12288 : 6528;
  file.tensor(block + "ffn_norm.weight", {64}, f32, 256)
      .tensor(block + "ffn_gate.weight", {64, 96}, type, bytes)
      .tensor(block + "ffn_up.weight", {64, 96}, type, bytes)
      .tensor(block + "ffn_down.weight", {96, 64}, type, bytes);
}

ModelSpec read(const GgufBytes& file) {
  const tests::TemporaryFolder folder;
  return cost::read_model_spec(folder.write("x.gguf", file.file()));
}

}  // namespace

TEST_CASE("the model of a GGUF file is counted from its tensors") {
  GgufBytes file = metadata("llama", 2);
  add_ends(file, false);
  for (const std::string block : {"blk.0.", "blk.1."}) {
    add_attention(file, block);
    add_feed_forward(file, block);
  }
  const ModelSpec model = read(file);
  CHECK(model.name == "Small");
  CHECK(model.model_type == "llama");
  CHECK(model.width == 64);
  CHECK(model.vocabulary == 100);
  CHECK(model.max_context == 4096);
  CHECK(model.tied_head);
  REQUIRE(model.layers.size() == 1);
  CHECK(model.layers[0].count == 2);
  CHECK(model.layers[0].cache_shards == 2);
  const std::int64_t layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96;
  CHECK(active_parameters(model) == 2 * layer + 6400);
  CHECK(total_parameters(model) == 2 * (layer + 128) + 6400 + 64);
  CHECK(cached_values_per_token(model) == 2 * 2 * 2 * 16);
  CHECK(attention_flops_per_pair(model) == 2 * 4 * 64);
  CHECK(model.weight_bytes == 2 * (2 * layer + 2 * 256) + 12800 + 256 + 32);
  CHECK(model.weight_type == NumberType::fp16);
  CHECK_FALSE(model.expert_weight_type.has_value());
}

TEST_CASE("a quantized GGUF file has no type of its weights but their bytes") {
  GgufBytes file = metadata("qwen2", 1);
  add_ends(file, true);
  add_attention(file, "blk.0.");
  add_feed_forward(file, "blk.0.", q8_0);
  const ModelSpec model = read(file);
  CHECK_FALSE(model.tied_head);
  CHECK_FALSE(model.weight_type.has_value());
  CHECK(model.weight_bytes == 2 * 12800 + 256 + 32 + 2 * (2 * 64 * 64 + 2 * 64 * 32) + 2 * 256 + 3 * 6528);
}

TEST_CASE("experts and windows of a GGUF file are told from each other") {
  GgufBytes file = metadata("gpt-oss", 2);
  file.integer("gpt-oss.expert_count", 4).integer("gpt-oss.expert_used_count", 2);
  file.integer("gpt-oss.attention.sliding_window", 128).integer("gpt-oss.attention.key_length", 16);
  add_ends(file, true);
  for (const std::string block : {"blk.0.", "blk.1."}) {
    add_attention(file, block);
    file.tensor(block + "ffn_gate_inp.weight", {64, 4}, f32, 1024)
        .tensor(block + "ffn_up_exps.weight", {64, 32, 4}, mxfp4, 4352)
        .tensor(block + "ffn_up_exps.bias", {32, 4}, f32, 512);
  }
  const ModelSpec model = read(file);
  REQUIRE(model.layers.size() == 2);
  CHECK(model.layers[0].window == 128);
  CHECK_FALSE(model.layers[1].window.has_value());
  CHECK(model.layers[0].experts == 4);
  CHECK(model.layers[0].experts_per_token == 2);
  CHECK(model.layers[0].parameters_per_expert == 64 * 32 + 32);
  CHECK(model.layers[0].dense_parameters == 2 * 64 * 64 + 2 * 64 * 32 + 64 * 4);
  CHECK(model.weight_type == NumberType::fp16);
  CHECK(model.expert_weight_type == NumberType::mxfp4);
}

TEST_CASE("latent attention of a GGUF file caches latents where its keys are absorbed") {
  GgufBytes file = metadata("deepseek2", 1);
  file.integer("deepseek2.attention.kv_lora_rank", 24).integer("deepseek2.rope.dimension_count", 8);
  add_ends(file, true);
  file.tensor("blk.0.attn_k_b.weight", {16, 24, 4}, f16, 3072).tensor("blk.0.attn_v_b.weight", {24, 16, 4}, f16, 3072);
  const ModelSpec model = read(file);
  CHECK(model.layers[0].cached_values_per_token == 32);
  CHECK(model.layers[0].attention_flops_per_pair == 4 * 2 * (32 + 24));
  CHECK(model.layers[0].cache_shards == 1);
}

TEST_CASE("the parts of a GGUF model are read together") {
  const tests::TemporaryFolder folder;
  GgufBytes first = metadata("llama", 1), second;
  first.integer("split.count", 2).integer("split.no", 0);
  add_ends(first, true);
  add_attention(second, "blk.0.");
  const auto path = folder.write("x-00001-of-00002.gguf", first.file());
  CHECK_THROWS_AS(cost::read_model_spec(path), traces::FileError);
  folder.write("x-00002-of-00002.gguf", second.file());
  CHECK(active_parameters(cost::read_model_spec(path)) == 2 * 64 * 64 + 2 * 64 * 32 + 6400);
  CHECK_THROWS_WITH(cost::read_model_spec(folder.write("y.gguf", first.file())), Contains("split.count is 2"));
}

TEST_CASE("a GGUF file whose metadata and tensors do not make a known model is refused") {
  const auto refusal = [](const GgufBytes& file) {
    return tests::message_of<traces::FileError>([&] { static_cast<void>(read(file)); });
  };
  CHECK_THAT(refusal(metadata("rwkv7", 1)), Contains("general.architecture is \"rwkv7\"") && Contains("qwen3moe"));
  CHECK_THAT(refusal(GgufBytes()), Contains("general.architecture is missing"));
  CHECK_THAT(refusal(GgufBytes().text("general.architecture", "llama")), Contains("llama.embedding_length is missing"));
  CHECK_THAT(refusal(metadata("llama", 5000)), Contains("llama.block_count is 5000"));
  CHECK_THAT(refusal(metadata("llama", 1)), Contains("token_embd.weight is missing"));
  GgufBytes file = metadata("llama", 1);
  add_ends(file, true);
  CHECK_THAT(refusal(file), Contains("tensors of block 0 is missing"));
  GgufBytes beyond = file, unknown = file, other_experts = file;
  add_attention(beyond, "blk.1.");
  CHECK_THAT(refusal(beyond), Contains("of a block in [0, 0]"));
  CHECK_THAT(refusal(unknown.tensor("mm.0.weight", {64, 64}, f16, 8192)), Contains("no known use"));
  other_experts.integer("llama.expert_count", 8);
  CHECK_THAT(refusal(other_experts.tensor("blk.0.ffn_up_exps.weight", {64, 32, 4}, mxfp4, 4352)),
             Contains("of 8 experts"));
}
