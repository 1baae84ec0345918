#include "analysis/cost/model_config.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/cost/roofline_cost.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using cost::ModelSpec;
using cost::NumberType;

namespace {

ModelSpec read(const std::string& config) { return cost::model_spec_from_document(config, "config.json"); }

std::string refusal(const std::string& config) {
  try {
    static_cast<void>(read(config));
  } catch (const traces::FileError& error) {
    return error.what();
  }
  return "accepted";
}

/// The configuration with further keys; later ones win.
/// The configuration with these keys, in place of those it has.
std::string with(const std::string& config, const std::string& more) {
  auto document = nlohmann::ordered_json::parse(config);
  document.update(nlohmann::ordered_json::parse('{' + more + '}'));
  return document.dump();
}

const std::string llama_70b =
    R"({"model_type":"llama","hidden_size":8192,"num_hidden_layers":80,"num_attention_heads":64,"num_key_value_heads":8,)"
    R"("intermediate_size":28672,"vocab_size":128256,"max_position_embeddings":131072,"tie_word_embeddings":false,)"
    R"("torch_dtype":"bfloat16"})";

const std::string mixtral =
    R"({"model_type":"mixtral","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,)"
    R"("num_key_value_heads":8,"intermediate_size":14336,"vocab_size":32000,"num_local_experts":8,)"
    R"("num_experts_per_tok":2,"sliding_window":null})";

const std::string deepseek_v3 =
    R"({"model_type":"deepseek_v3","hidden_size":7168,"num_hidden_layers":61,"num_attention_heads":128,)"
    R"("intermediate_size":18432,"moe_intermediate_size":2048,"n_routed_experts":256,"n_shared_experts":1,)"
    R"("num_experts_per_tok":8,"first_k_dense_replace":3,"moe_layer_freq":1,"kv_lora_rank":512,"q_lora_rank":1536,)"
    R"("qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":129280,)"
    R"("num_nextn_predict_layers":1,"num_key_value_heads":128,"torch_dtype":"bfloat16",)"
    R"("quantization_config":{"quant_method":"fp8","fmt":"e4m3","weight_block_size":[128,128]}})";

const std::string gpt_oss_120b =
    R"({"model_type":"gpt_oss","hidden_size":2880,"num_hidden_layers":36,"num_attention_heads":64,)"
    R"("num_key_value_heads":8,"head_dim":64,"intermediate_size":2880,"num_local_experts":128,"num_experts_per_tok":4,)"
    R"("vocab_size":201088,"sliding_window":128,"attention_bias":true,"tie_word_embeddings":false,)"
    R"("torch_dtype":"bfloat16","quantization_config":{"quant_method":"mxfp4","modules_to_not_convert":)"
    R"(["model.layers.*.self_attn","model.layers.*.mlp.router","model.embed_tokens","lm_head"]}})";

const std::string gemma2_9b =
    R"({"model_type":"gemma2","hidden_size":3584,"num_hidden_layers":42,"num_attention_heads":16,)"
    R"("num_key_value_heads":8,"head_dim":256,"intermediate_size":14336,"vocab_size":256000,"sliding_window":4096})";

const std::string qwen3_next =
    R"({"model_type":"qwen3_next","hidden_size":2048,"num_hidden_layers":48,"num_attention_heads":16,)"
    R"("num_key_value_heads":2,"head_dim":256,"full_attention_interval":4,"linear_conv_kernel_dim":4,)"
    R"("linear_key_head_dim":128,"linear_num_key_heads":16,"linear_num_value_heads":32,"linear_value_head_dim":128,)"
    R"("decoder_sparse_step":1,"mlp_only_layers":[],"moe_intermediate_size":512,"num_experts":512,)"
    R"("num_experts_per_tok":10,"shared_expert_intermediate_size":512,"intermediate_size":5120,"vocab_size":151936})";

const std::string t5_small =
    R"({"model_type":"t5","d_model":512,"d_kv":64,"d_ff":2048,"num_layers":6,"num_heads":8,"vocab_size":32128})";

const std::string eagle3_8b =
    R"({"model_type":"llama","architectures":["LlamaForCausalLMEagle3"],"hidden_size":4096,"num_hidden_layers":1,)"
    R"("num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,)"
    R"("draft_vocab_size":32000})";

const std::string glm_45 =
    R"({"model_type":"glm4_moe","hidden_size":5120,"num_hidden_layers":92,"num_attention_heads":96,)"
    R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":12288,"moe_intermediate_size":1536,)"
    R"("n_routed_experts":160,"n_shared_experts":1,"num_experts_per_tok":8,"first_k_dense_replace":3,)"
    R"("vocab_size":151552,"use_qk_norm":true,"attention_bias":true,"num_nextn_predict_layers":1})";

const std::string llama_8b =
    R"({"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,)"
    R"("intermediate_size":14336,"vocab_size":128256,"tie_word_embeddings":false,"torch_dtype":"bfloat16"})";

const std::string qwen3_32b =
    R"({"model_type":"qwen3","hidden_size":5120,"num_hidden_layers":64,"num_attention_heads":64,)"
    R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":25600,"vocab_size":151936,)"
    R"("tie_word_embeddings":false,"torch_dtype":"bfloat16"})";

/// The configuration of a quantised checkpoint.
std::string quantised(const std::string& config, const std::string& how) {
  return with(config, R"("quantization_config":{)" + how + '}');
}

double stored_bytes(const ModelSpec& model) {
  cost::PlacedModel placed;
  placed.model = model;
  return weight_bytes_per_gpu(placed);
}

/// Groups of compressed-tensors.
std::string compressed(const std::string& weights, const std::string& ignore) {
  return R"("quant_method":"compressed-tensors","ignore":[)" + ignore + R"(],"config_groups":{"group_0":{"targets":)" +
         R"(["Linear"],"weights":{)" + weights + "}}}";
}

struct PublishedCount {
  std::string config;
  std::int64_t parameters;
};

}  // namespace

TEST_CASE("a configuration gives the number of parameters that its published weights have") {
  // The numbers that huggingface.co shows for the weights of each repository, of its safetensors headers.
  const std::vector<PublishedCount> models = {
      // meta-llama/Llama-3.1-70B, mistralai/Mixtral-8x7B-v0.1 (as math.md prints them), google/gemma-2-9b
      {llama_70b, 70553706496},
      {mixtral, 46702792704},
      {gemma2_9b, 9241705984},
      // mistralai/Mistral-7B-v0.1
      {R"({"model_type":"mistral","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,)"
       R"("num_key_value_heads":8,"intermediate_size":14336,"vocab_size":32000,"sliding_window":4096})",
       7241732096},
      // Qwen/Qwen2.5-7B, Qwen/Qwen2.5-0.5B, Qwen/Qwen1.5-MoE-A2.7B, Qwen/Qwen3-8B, Qwen/Qwen3-30B-A3B
      {R"({"model_type":"qwen2","hidden_size":3584,"num_hidden_layers":28,"num_attention_heads":28,)"
       R"("num_key_value_heads":4,"intermediate_size":18944,"vocab_size":152064,"tie_word_embeddings":false})",
       7615616512},
      {R"({"model_type":"qwen2","hidden_size":896,"num_hidden_layers":24,"num_attention_heads":14,)"
       R"("num_key_value_heads":2,"intermediate_size":4864,"vocab_size":151936,"tie_word_embeddings":true})",
       494032768},
      {R"({"model_type":"qwen2_moe","hidden_size":2048,"num_hidden_layers":24,"num_attention_heads":16,)"
       R"("num_key_value_heads":16,"intermediate_size":5632,"moe_intermediate_size":1408,"num_experts":60,)"
       R"("num_experts_per_tok":4,"shared_expert_intermediate_size":5632,"vocab_size":151936})",
       14315784192},
      {R"({"model_type":"qwen3","hidden_size":4096,"num_hidden_layers":36,"num_attention_heads":32,)"
       R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":12288,"vocab_size":151936})",
       8190735360},
      {R"({"model_type":"qwen3_moe","hidden_size":2048,"num_hidden_layers":48,"num_attention_heads":32,)"
       R"("num_key_value_heads":4,"head_dim":128,"intermediate_size":6144,"moe_intermediate_size":768,)"
       R"("num_experts":128,"num_experts_per_tok":8,"vocab_size":151936})",
       30532122624},
      // google/gemma-7b, google/gemma-3-1b-pt
      {R"({"model_type":"gemma","hidden_size":3072,"num_hidden_layers":28,"num_attention_heads":16,)"
       R"("num_key_value_heads":16,"head_dim":256,"intermediate_size":24576,"vocab_size":256000})",
       8537680896},
      {R"({"model_type":"gemma3_text","hidden_size":1152,"num_hidden_layers":26,"num_attention_heads":4,)"
       R"("num_key_value_heads":1,"head_dim":256,"intermediate_size":6912,"vocab_size":262144,"sliding_window":512})",
       999885952},
      // deepseek-ai/DeepSeek-V2-Lite, microsoft/Phi-3-mini-4k-instruct
      {R"({"model_type":"deepseek_v2","hidden_size":2048,"num_hidden_layers":27,"num_attention_heads":16,)"
       R"("intermediate_size":10944,"moe_intermediate_size":1408,"n_routed_experts":64,"n_shared_experts":2,)"
       R"("num_experts_per_tok":6,"first_k_dense_replace":1,"kv_lora_rank":512,"q_lora_rank":null,)"
       R"("qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":102400})",
       15706484224},
      {R"({"model_type":"phi3","hidden_size":3072,"num_hidden_layers":32,"num_attention_heads":32,)"
       R"("num_key_value_heads":32,"intermediate_size":8192,"vocab_size":32064,"sliding_window":2047})",
       3821079552},
      // openai-community/gpt2, google-t5/t5-small, google-t5/t5-11b
      {R"({"model_type":"gpt2","n_embd":768,"n_layer":12,"n_head":12,"n_positions":1024,"vocab_size":50257})",
       124439808},
      {t5_small, 60506624},
      {R"({"model_type":"t5","d_model":1024,"d_kv":128,"d_ff":65536,"num_layers":24,"num_heads":128,)"
       R"("vocab_size":32128})",
       11307321344},
      // state-spaces/mamba-130m-hf, mistralai/Mamba-Codestral-7B-v0.1
      {R"({"model_type":"mamba","hidden_size":768,"intermediate_size":1536,"state_size":16,"conv_kernel":4,)"
       R"("time_step_rank":48,"num_hidden_layers":24,"vocab_size":50280,"use_bias":false,"use_conv_bias":true})",
       129135360},
      {R"({"model_type":"mamba2","hidden_size":4096,"num_heads":128,"head_dim":64,"n_groups":8,"state_size":128,)"
       R"("conv_kernel":4,"num_hidden_layers":64,"vocab_size":32768,"tie_word_embeddings":false})",
       7285403648}};
  for (const PublishedCount& model : models) {
    INFO(model.config);
    CHECK(total_parameters(read(model.config)) == model.parameters);
  }
}

TEST_CASE("mixtures of experts have the total and active parameters that their makers print") {
  // https://arxiv.org/abs/2412.19437, abstract: 671B, 37B for each token.
  const ModelSpec deepseek = read(deepseek_v3);
  CHECK(std::round(static_cast<double>(total_parameters(deepseek)) / 1e9) == 671);
  CHECK(std::round(static_cast<double>(active_parameters(deepseek)) / 1e9) == 37);
  // https://arxiv.org/abs/2508.10925, table 1: 116.83B, 5.13B.
  const ModelSpec gpt_oss = read(gpt_oss_120b);
  CHECK(std::round(static_cast<double>(total_parameters(gpt_oss)) / 1e7) == 11683);
  CHECK(std::round(static_cast<double>(active_parameters(gpt_oss)) / 1e7) == 513);
  // https://arxiv.org/abs/2508.06471, table 1: 355B with the next-token module and 32B, without embedding and head.
  const ModelSpec glm = read(glm_45);
  const std::int64_t ends = glm.embedding_parameters + glm.head_parameters;
  CHECK(std::round(static_cast<double>(total_parameters(glm) + total_parameters(next_token_module(glm)) - ends) /
                   1e9) == 355);
  CHECK(std::round(static_cast<double>(active_parameters(glm) - glm.head_parameters) / 1e9) == 32);
  // https://huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct: 80B, 79B without embeddings, 3B active.
  const ModelSpec next = read(qwen3_next);
  CHECK(std::round(static_cast<double>(total_parameters(next)) / 1e9) == 80);
  CHECK(std::round(static_cast<double>(total_parameters(next) - 2 * next.head_parameters) / 1e9) == 79);
  CHECK(std::round(static_cast<double>(active_parameters(next) - next.head_parameters) / 1e9) == 3);
}

TEST_CASE("models of 2025 and 2026 have the total and active parameters that their makers print") {
  struct Published {
    std::string config;
    /// In units of the last digit that is printed, embedding and head included.
    double unit, total, active;
  };
  const std::vector<Published> models = {
      // https://huggingface.co/MiniMaxAI/MiniMax-M2.5: 229B, 10B active
      {R"({"model_type":"minimax_m2","num_hidden_layers":62,"hidden_size":3072,"num_attention_heads":48,)"
       R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":1536,"vocab_size":200064,"num_experts_per_tok":8,)"
       R"("num_local_experts":256,"use_qk_norm":true,"qk_norm_type":"per_layer","use_routing_bias":true})",
       1e9, 229, 10},
      // Nemotron 3 Nano: 31.6B, 3.2B active; Nemotron 3 Super 120B-A12B, of experts in a latent space
      {R"({"model_type":"nemotron_h","conv_kernel":4,"head_dim":128,"hidden_size":2688,"hybrid_override_pattern":)"
       R"("MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME","intermediate_size":1856,"mamba_head_dim":64,)"
       R"("mamba_num_heads":64,"moe_intermediate_size":1856,"moe_shared_expert_intermediate_size":3712,"n_groups":8,)"
       R"("n_routed_experts":128,"n_shared_experts":1,"num_attention_heads":32,"num_experts_per_tok":6,)"
       R"("num_key_value_heads":2,"ssm_state_size":128,"vocab_size":131072,"time_step_limit":[0.0,Infinity]})",
       1e8, 316, 32},
      {R"({"model_type":"nemotron_h","conv_kernel":4,"head_dim":128,"hidden_size":4096,"hybrid_override_pattern":)"
       R"("MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME",)"
       R"("intermediate_size":2688,"mamba_head_dim":64,"mamba_num_heads":128,"moe_intermediate_size":2688,)"
       R"("moe_latent_size":1024,"moe_shared_expert_intermediate_size":5376,"n_groups":8,"n_routed_experts":512,)"
       R"("n_shared_experts":1,"num_attention_heads":32,"num_experts_per_tok":22,"num_key_value_heads":2,)"
       R"("ssm_state_size":128,"vocab_size":131072})",
       1e10, 12, 1},
      // https://arxiv.org/abs/2602.15763: 744B, 40B active beside the embedding and the head of 0.95B each
      {R"({"model_type":"glm_moe_dsa","first_k_dense_replace":3,"hidden_size":6144,"index_head_dim":128,)"
       R"("index_n_heads":32,"index_topk":2048,"intermediate_size":12288,"kv_lora_rank":512,)"
       R"("moe_intermediate_size":2048,"n_routed_experts":256,"n_shared_experts":1,"num_attention_heads":64,)"
       R"("num_experts_per_tok":8,"num_hidden_layers":78,"q_lora_rank":2048,"qk_nope_head_dim":192,)"
       R"("qk_rope_head_dim":64,"v_head_dim":256,"vocab_size":154880})",
       1e9, 744, 41},
      // https://huggingface.co/Qwen/Qwen3.5-35B-A3B
      {R"({"model_type":"qwen3_5_moe","tie_word_embeddings":false,"text_config":{"head_dim":256,"hidden_size":2048,)"
       R"("linear_conv_kernel_dim":4,"linear_key_head_dim":128,"linear_num_key_heads":16,"linear_num_value_heads":32,)"
       R"("linear_value_head_dim":128,"moe_intermediate_size":512,"num_attention_heads":16,"num_experts":256,)"
       R"("num_experts_per_tok":8,"num_hidden_layers":40,"num_key_value_heads":2,)"
       R"("shared_expert_intermediate_size":512,"vocab_size":248320}})",
       1e9, 35, 3},
      // Gemma 4 26B A4B: 25.2B, 3.8B active; 31B: 30.7B
      {R"({"model_type":"gemma4","text_config":{"attention_k_eq_v":true,"enable_moe_block":true,"global_head_dim":512,)"
       R"("head_dim":256,"hidden_size":2816,"intermediate_size":2112,"moe_intermediate_size":704,)"
       R"("num_attention_heads":16,"num_experts":128,"num_global_key_value_heads":2,"num_hidden_layers":30,)"
       R"("num_key_value_heads":8,"sliding_window":1024,"top_k_experts":8,"vocab_size":262144}})",
       1e8, 252, 38},
      {R"({"model_type":"gemma4","text_config":{"attention_k_eq_v":true,"global_head_dim":512,"head_dim":256,)"
       R"("hidden_size":5376,"intermediate_size":21504,"num_attention_heads":32,"num_global_key_value_heads":4,)"
       R"("num_hidden_layers":60,"num_key_value_heads":16,"sliding_window":1024,"vocab_size":262144}})",
       1e8, 307, 307},
      // https://huggingface.co/XiaomiMiMo/MiMo-V2-Flash: 309B, 15B active
      {R"({"model_type":"mimo_v2_flash","num_hidden_layers":48,"hidden_size":4096,"num_attention_heads":64,)"
       R"("num_key_value_heads":4,"head_dim":192,"v_head_dim":128,"intermediate_size":16384,"vocab_size":152576,)"
       R"("sliding_window":128,"swa_num_key_value_heads":8,"hybrid_layer_pattern":[0,1,1,1,1,0,1,1,1,1,1,0,1,1,1,1,1,)"
       R"(0,1,1,1,1,1,0,1,1,1,1,1,0,1,1,1,1,1,0,1,1,1,1,1,0,1,1,1,1,1,0],"moe_layer_freq":[0,1,1,1,1,1,1,1,1,1,1,1,1,)"
       R"(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"moe_intermediate_size":2048,)"
       R"("n_routed_experts":256,"num_experts_per_tok":8,"add_swa_attention_sink_bias":true})",
       1e9, 309, 15},
      // Step 3.5 Flash: 196B, 11B active with the embedding of 0.5B
      {R"({"model_type":"step3p7","num_hidden_layers":45,"hidden_size":4096,"num_attention_heads":64,)"
       R"("num_key_value_heads":8,"head_dim":128,"vocab_size":128896,"intermediate_size":11264,)"
       R"("first_k_dense_replace":3,"num_experts":288,"num_experts_per_tok":8,"moe_intermediate_size":1280,)"
       R"("share_expert_dim":1280,"use_moe_router_bias":true})",
       1e9, 196, 10}};
  for (const Published& model : models) {
    INFO(model.config);
    const ModelSpec found = read(model.config);
    CHECK(std::round(static_cast<double>(total_parameters(found)) / model.unit) == model.total);
    CHECK(std::round(static_cast<double>(active_parameters(found)) / model.unit) == model.active);
  }
}

TEST_CASE("a model of text alone counts as the text part of one that sees") {
  const std::string sizes =
      R"("head_dim":256,"hidden_size":5120,"intermediate_size":17408,"linear_conv_kernel_dim":4,)"
      R"("linear_key_head_dim":128,"linear_num_key_heads":16,"linear_num_value_heads":48,"linear_value_head_dim":128,)"
      R"("num_attention_heads":24,"num_hidden_layers":64,"num_key_value_heads":4,"vocab_size":248320,)"
      R"("mtp_num_hidden_layers":1)";
  const std::string text = R"({"model_type":"qwen3_5_text",)" + sizes + '}';
  CHECK(total_parameters(read(text)) ==
        total_parameters(read(R"({"model_type":"qwen3_5","text_config":)" + text + '}')));
  // https://github.com/vllm-project/recipes: Qwen3.8-27B has 55.56 GB, with 0.46B that read pictures.
  const double whole =
      static_cast<double>(total_parameters(read(text)) + total_parameters(next_token_module(read(text))));
  CHECK(2 * (whole / 1e9 + 0.46) == Approx(55.56).epsilon(1e-3));
}

TEST_CASE("what a quantised checkpoint leaves alone is found under the names of its own architecture") {
  // As nvidia/Gemma-4-26B-A4B-NVFP4 has it: experts beside the feed-forward alone are quantised.
  const std::string gemma4 =
      R"({"model_type":"gemma4","dtype":"bfloat16","text_config":{"enable_moe_block":true,"head_dim":256,)"
      R"("hidden_size":2816,"intermediate_size":2112,"moe_intermediate_size":704,"num_attention_heads":16,)"
      R"("num_experts":128,"num_hidden_layers":2,"num_key_value_heads":8,"sliding_window":1024,"top_k_experts":8,)"
      R"("vocab_size":262144}})";
  const ModelSpec beside =
      read(quantised(gemma4, R"("quant_algo":"NVFP4","ignore":["lm_head","model.language_model.layers.0.mlp*",)"
                             R"("model.language_model.layers.0.self_attn*","model.language_model.layers.1.mlp*",)"
                             R"("model.language_model.layers.1.self_attn*"])"));
  CHECK(beside.weight_type == NumberType::bf16);
  CHECK(beside.expert_weight_type == NumberType::nvfp4);
  // As Nemotron 3 Nano NVFP4 has it: names behind "backbone.", one kind of mixer to a layer.
  const std::string nemotron =
      R"({"model_type":"nemotron_h","dtype":"bfloat16","conv_kernel":4,"head_dim":128,"hidden_size":2688,)"
      R"("hybrid_override_pattern":"M*E","intermediate_size":1856,"mamba_head_dim":64,"mamba_num_heads":64,)"
      R"("moe_intermediate_size":1856,"n_groups":8,"n_routed_experts":128,"num_attention_heads":32,)"
      R"("num_experts_per_tok":6,"num_key_value_heads":2,"ssm_state_size":128,"vocab_size":131072})";
  const ModelSpec mixers = read(quantised(nemotron, R"("quant_algo":"NVFP4","exclude_modules":["lm_head",)"
                                                    R"("backbone.layers.1.mixer.q_proj"])"));
  CHECK(mixers.layers[0].unquantized_parameters == 0);
  CHECK(mixers.layers[1].unquantized_parameters == 2688 * 32 * 128);
  CHECK(mixers.weight_type == NumberType::nvfp4);
  // The type may stand in the part for text.
  const std::string nested =
      R"({"model_type":"kimi_k25","text_config":)" + with(deepseek_v3, R"("model_type":"kimi_k2")");
  CHECK(read(nested + "}").weight_type == NumberType::fp8);
}

TEST_CASE("an indexer has keys of its own, which layers that share its choice do not have") {
  const std::string indexer =
      R"("model_type":"deepseek_v32","index_n_heads":64,"index_head_dim":128,"index_topk":2048)";
  const ModelSpec model = read(with(deepseek_v3, indexer));
  const ModelSpec before = read(deepseek_v3);
  CHECK(cached_values_per_token(model) == 61 * (576 + 128));
  CHECK(attention_flops_per_pair(model) == 61 * 2 * 64 * 128);
  CHECK(model.layers[1].selected == 2048);
  const std::int64_t matrices = 1536 * 64 * 128 + 7168 * (128 + 64);
  CHECK(total_parameters(model) - total_parameters(before) == 61 * (matrices + 2 * 128));
  std::string shared = indexer + R"(,"indexer_types":["full")";
  for (int layer = 1; layer < 61; ++layer) shared += R"(,"shared")";
  const ModelSpec sharing = read(with(deepseek_v3, shared + "]"));
  CHECK(cached_values_per_token(sharing) == 61 * 576 + 128);
  CHECK(sharing.layers.back().selected == 2048);
}

TEST_CASE("layers that were searched for differ, and pictures do not count") {
  const std::string llama4 =
      R"({"model_type":"llama4","text_config":{"attention_chunk_size":8192,"head_dim":128,"hidden_size":5120,)"
      R"("interleave_moe_layer_step":1,"intermediate_size":8192,"intermediate_size_mlp":16384,)"
      R"("num_attention_heads":40,"num_experts_per_tok":1,"num_hidden_layers":48,"num_key_value_heads":8,)"
      R"("num_local_experts":16,"vocab_size":202048}})";
  const ModelSpec scout = read(llama4);
  CHECK(scout.layers[0].window == 8192);
  CHECK(scout.layers[0].count == 36);
  // 109B with what reads pictures.
  CHECK(std::round(static_cast<double>(total_parameters(scout)) / 1e9) == 108);
  const std::string nas =
      R"({"model_type":"nemotron-nas","hidden_size":8192,"num_attention_heads":64,"vocab_size":128256,"block_configs":[)"
      R"({"attention":{"n_heads_in_group":8},"ffn":{"ffn_mult":5.25}},)"
      R"({"attention":{"no_op":true},"ffn":{"ffn_mult":2.625}},{"attention":{"no_op":true},"ffn":{"no_op":true}}]})";
  const ModelSpec searched = read(nas);
  CHECK(searched.layers.size() == 3);
  CHECK(searched.layers[0].dense_parameters == 8192 * (2 * 8192 + 2 * 1024 + 3 * 28672));
  CHECK(searched.layers[1].dense_parameters == 8192 * 3 * 14336);
  CHECK(searched.layers[2].dense_parameters == 0);
  CHECK(cached_values_per_token(searched) == 2 * 8 * 128);
  CHECK_THAT(refusal(nas.substr(0, nas.find("n_heads_in_group")) +
                     R"(replace_with_linear":true,"n_heads_in_group":8},"ffn":{}}]})"),
             Catch::Contains("block_configs[0].attention.replace_with_linear is true, but must be false"));
  // A module of the model's own: two norms, a projection, a layer, a norm.
  const std::string mimo = R"({"model_type":"mimo","num_hidden_layers":36,"hidden_size":4096,"num_attention_heads":32,)"
                           R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":11008,"vocab_size":151680,)"
                           R"("num_nextn_predict_layers":1})";
  const ModelSpec module = next_token_module(read(mimo));
  CHECK(module.layers.front().dense_parameters == read(mimo).layers.front().dense_parameters);
  CHECK(module.extra_dense_parameters == 2 * 4096 * 4096);
}

TEST_CASE("latent attention caches the latent and the rotary key and attends to the latents") {
  const ModelSpec model = read(deepseek_v3);
  CHECK(model.layers.size() == 2);
  CHECK(model.layers[0].count == 3);
  CHECK(model.layers[1].count == 58);
  CHECK(cached_values_per_token(model) == 61 * 576);
  CHECK(attention_flops_per_pair(model) == 61 * 128 * 2 * (576 + 512));
  CHECK(model.layers[1].cache_shards == 1);
  const ModelSpec module = next_token_module(model);
  // https://github.com/deepseek-ai/DeepSeek-V3: 14B of weights, 2 x 0.9B of them shared with the main model.
  CHECK(static_cast<double>(total_parameters(module)) / 1e9 == Approx(11.6).margin(0.05));
  CHECK(cached_values_per_token(module) == 576);
}

TEST_CASE("windows follow the pattern of the type unless the configuration lists the layers") {
  const ModelSpec gpt_oss = read(gpt_oss_120b);
  CHECK(gpt_oss.layers.size() == 2);
  CHECK(gpt_oss.layers[0].window == 128);
  CHECK(gpt_oss.layers[0].count == 18);
  CHECK(cache_bytes(gpt_oss, 1000, 2) == 2.0 * 18 * 1024 * (1000 + 128));
  const ModelSpec gemma2 = read(gemma2_9b);
  CHECK(gemma2.layers[0].window == 4096);
  CHECK(gemma2.layers[1].count == 21);
  CHECK(attention_flops_per_pair(gemma2) == 21 * 4 * 16 * 256);

  const std::string nested =
      R"({"model_type":"gemma3","text_config":{"hidden_size":2560,"intermediate_size":10240,"num_hidden_layers":34,)"
      R"("sliding_window":1024}})";
  const ModelSpec gemma3 = read(nested);
  CHECK(gemma3.layers[0].count == 29);
  CHECK(gemma3.layers[1].count == 5);
  CHECK(gemma3.layers[0].cached_values_per_token == 2 * 4 * 256);
  // https://arxiv.org/abs/2503.19786, table 1: 3209M parameters of the 4B model beside embedding and images.
  CHECK(std::llround(static_cast<double>(total_parameters(gemma3) - gemma3.embedding_parameters) / 1e6) == 3209);

  const std::string listed =
      R"({"model_type":"qwen3","hidden_size":64,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,)"
      R"("head_dim":16,"intermediate_size":256,"vocab_size":1000,"sliding_window":32,)"
      R"("layer_types":["full_attention","sliding_attention","sliding_attention"],)";
  const ModelSpec some = read(listed + R"("use_sliding_window":true})");
  CHECK(some.layers[0].count == 1);
  CHECK(some.layers[1].window == 32);
  CHECK(read(listed + R"("use_sliding_window":false})").layers.size() == 1);
  CHECK_THAT(refusal(with(listed + R"("use_sliding_window":true})", R"("num_hidden_layers":4)")),
             Catch::Contains("layer_types is 3 entries, but must be one per layer, num_hidden_layers is 4"));
}

TEST_CASE("linear attention keeps a state of constant size") {
  const ModelSpec model = read(qwen3_next);
  CHECK(model.layers.size() == 2);
  CHECK(model.layers[0].count == 36);
  CHECK(model.layers[0].state_values_per_sequence == 32 * 128 * 128 + 3 * 8192);
  CHECK(model.layers[1].count == 12);
  CHECK(cached_values_per_token(model) == 12 * 2 * 2 * 256);
  CHECK(cache_bytes(model, 0, 2) == 2.0 * 36 * (32 * 128 * 128 + 3 * 8192));
}

TEST_CASE("an EAGLE-3 head takes three states of the target and shares its embedding") {
  constexpr std::int64_t d = 4096;
  const std::int64_t matrices = 3 * d * d + 2 * d * (d + 2 * 1024) + d * d + 3 * d * 14336 + 32000 * d;
  const ModelSpec head = read(eagle3_8b);
  CHECK(active_parameters(head) == matrices);
  CHECK(total_parameters(head) == matrices + 4 * d);
  CHECK(cached_values_per_token(head) == 2048);
  CHECK(attention_flops_per_pair(head) == 4 * d);
  const std::string layer = R"({"hidden_size":4096,"num_hidden_layers":1,"num_attention_heads":32,"vocab_size":128256,)"
                            R"("num_key_value_heads":8,"intermediate_size":14336,"model_type":"llama"})";
  const ModelSpec speculator = read(R"({"speculators_model_type":"eagle3","draft_vocab_size":32000,)"
                                    R"("target_hidden_size":null,"transformer_layer_config":)" +
                                    layer + '}');
  CHECK(total_parameters(speculator) == total_parameters(head));
  CHECK_FALSE(read(with(eagle3_8b, R"("target_hidden_size":8192)")).shared_embedding);
  CHECK_THAT(refusal(with(deepseek_v3, R"("draft_vocab_size":32000)")),
             Catch::Contains("drafting head of deepseek_v3"));
}

TEST_CASE("the decoder of T5 caches prompt and output alike and leaves the encoder idle") {
  const ModelSpec model = read(t5_small);
  CHECK(cached_values_per_token(model) == 6 * 2 * 512);
  CHECK(active_parameters(model) == 6 * (6 * 512 * 512 + 2 * 512 * 2048) + 32128 * 512);
  CHECK(model.idle_parameters == 6 * (4 * 512 * 512 + 2 * 512 * 2048 + 2 * 512) + 512 + 32 * 8 + 6 * 2 * 512 * 512);
}

TEST_CASE("weights have the type that the configuration is certain about") {
  CHECK(read(llama_70b).weight_type == NumberType::bf16);
  CHECK(read(deepseek_v3).weight_type == NumberType::fp8);
  CHECK(read(gpt_oss_120b).weight_type == NumberType::bf16);
  CHECK(read(gpt_oss_120b).expert_weight_type == NumberType::mxfp4);
  const auto quantized = [](const std::string& how) {
    return read(with(llama_70b, R"("quantization_config":{)" + how + '}')).weight_type;
  };
  CHECK(quantized(R"("quant_method":"gptq","bits":4)") == NumberType::int4);
  CHECK(quantized(R"("quant_method":"awq","bits":8)") == NumberType::int8);
  CHECK(quantized(R"("quant_method":"compressed-tensors","format":"nvfp4-pack-quantized")") == NumberType::nvfp4);
  CHECK(quantized(R"("quant_method":"compressed-tensors","format":"float-quantized","config_groups":{"group_0":)"
                  R"({"weights":{"num_bits":8,"type":"float"}}})") == NumberType::fp8);
  CHECK(quantized(R"("quant_method":"compressed-tensors","config_groups":{"a":{"weights":{"num_bits":8}},)"
                  R"("b":{"weights":{"num_bits":4}}})") == std::nullopt);
  CHECK(quantized(R"("quant_method":"modelopt","quant_algo":"NVFP4")") == NumberType::nvfp4);
  CHECK(quantized(R"("quant_method":"bitsandbytes","load_in_4bit":true)") == std::nullopt);
  CHECK(quantized(R"("quant_algo":"FP8","ignore":["lm_head"])") == NumberType::fp8);
  CHECK(quantized(R"("quant_method":"fp8","ignore":["re:(?i).*LM_HEAD"])") == NumberType::fp8);
  CHECK(quantized(R"("quant_method":"gptq","bits":4,"dynamic":{"-:.*lm_head":{}})") == NumberType::int4);
  CHECK(quantized(R"("quant_method":"gptq","bits":4,"dynamic":{"+:.*down":{"bits":8}})") == std::nullopt);
  // Python's look-behind is none of the expressions that are understood here.
  CHECK(quantized(R"("quant_method":"fp8","ignore":["re:(?<!mlp).*"])") == std::nullopt);
}

TEST_CASE("a quantised configuration gives the bytes that its published checkpoint has") {
  struct PublishedBytes {
    std::string config;
    double bytes, within;
  };
  // Bytes of the tensors, from the types and shapes that huggingface.co gives of each repository's safetensors headers.
  // Differences: scales per row or tensor, which are not counted, and those of blocks and groups in other types.
  const std::vector<PublishedBytes> checkpoints = {
      // RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic: a scale per row
      {quantised(llama_8b, compressed(R"("num_bits":8,"type":"float","strategy":"channel")", R"("lm_head")")),
       9083953152, 0.0004},
      // RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16, RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16
      {quantised(llama_8b,
                 compressed(R"("num_bits":4,"type":"int","group_size":128,"symmetric":true)", R"("lm_head")")),
       5735587840, 0.007},
      {quantised(llama_70b,
                 compressed(R"("num_bits":4,"type":"int","group_size":128,"symmetric":true)", R"("lm_head")")),
       39525311232, 0.001},
      // nvidia/Llama-3.3-70B-Instruct-FP4
      {quantised(llama_70b, R"("quant_method":"modelopt","quant_algo":"NVFP4","ignore":["lm_head"])"), 42709045632,
       1e-6},
      // Qwen/Qwen3-32B-FP8 (1558406144 BF16, 31205621760 F8_E4M3), Qwen/Qwen3-32B-AWQ
      {quantised(qwen3_32b, R"("quant_method":"fp8","fmt":"e4m3","weight_block_size":[128,128])"), 34322434048, 0.0002},
      {quantised(qwen3_32b, R"("quant_method":"awq","bits":4,"group_size":128,"zero_point":true,)"
                            R"("modules_to_not_convert":null)"),
       19325298688, 1e-9},
      // openai/gpt-oss-120b; biases of experts are stored in 16 bits
      {gpt_oss_120b, 65248815744, 0.001}};
  for (const PublishedBytes& checkpoint : checkpoints) {
    INFO(checkpoint.config);
    CHECK(stored_bytes(read(checkpoint.config)) == Approx(checkpoint.bytes).epsilon(checkpoint.within));
  }
  // deepseek-ai/DeepSeek-V3: 680571043840 F8_E4M3, 3918786560 BF16, 41555600 F32, with the next-token module, which
  // repeats embedding and head.
  const ModelSpec deepseek = read(deepseek_v3);
  const double repeated = 2.0 * static_cast<double>(deepseek.embedding_parameters + deepseek.head_parameters);
  CHECK(stored_bytes(deepseek) + stored_bytes(next_token_module(deepseek)) + repeated ==
        Approx(680571043840 + 2 * 3918786560.0 + 4 * 41555600.0).epsilon(1e-6));
}

TEST_CASE("modules that a configuration leaves alone keep the type of the unquantised model") {
  const double plain = stored_bytes(read(llama_8b));
  const std::string fp8 = R"("quant_method":"compressed-tensors","config_groups":{"a":{"weights":{"num_bits":8,)"
                          R"("type":"float"},"targets":[)";
  const auto bytes = [&](const std::string& targets, const std::string& ignored) {
    return stored_bytes(read(quantised(llama_8b, fp8 + targets + "]}},\"ignore\":[" + ignored + ']')));
  };
  const double head = 128256 * 4096.0, attention = 4096.0 * (2 * 4096 + 2 * 1024), feed_forward = 3 * 4096.0 * 14336;
  CHECK(bytes(R"("Linear")", "") == plain - 32 * (attention + feed_forward) - head);
  CHECK(bytes(R"("Linear")", R"("lm_head")") == plain - 32 * (attention + feed_forward));
  CHECK(bytes(R"("Linear")", R"("re:.*lm_head","re:.*self_attn.*")") == plain - 32 * feed_forward);
  CHECK(bytes(R"("Linear")", R"("*lm_head*","model.layers.*.self_attn")") == plain - 32 * feed_forward);
  CHECK(bytes(R"("Linear")", R"("lm_head","self_attn","mlp.gate_proj")") == plain - 32 * feed_forward * 2 / 3);
  CHECK(bytes(R"("Linear")", R"("lm_head","language_model.model.layers.3.self_attn.qkv_proj")") ==
        plain - 32 * (attention + feed_forward) + 4096.0 * (4096 + 2 * 1024));
  CHECK(bytes(R"("Linear")", R"("lm_head","model.layers.1")") == plain - 31 * (attention + feed_forward));
  CHECK(bytes(R"("re:.*mlp\\.(gate|up|down)_proj")", "") == plain - 32 * feed_forward);
  // A tied head is the embedding, which is no linear layer.
  CHECK(stored_bytes(read(with(quantised(llama_8b, fp8 + R"("Linear"]}})"), R"("tie_word_embeddings":true)"))) ==
        plain - 2 * head - 32 * (attention + feed_forward));
  const auto gptq = [](const std::string& more) {
    return stored_bytes(read(quantised(llama_8b, R"("quant_method":"gptq","bits":8,"group_size":-1)" + more)));
  };
  CHECK(gptq("") == plain - 32 * (attention + feed_forward));
  CHECK(gptq(R"(,"lm_head":true)") == plain - 32 * (attention + feed_forward) - head);
  CHECK(gptq(R"(,"dynamic":{"-:.*down_proj":{}})") == plain - 32 * (attention + feed_forward * 2 / 3));

  // Experts of 4 bits in groups of 32 beside all else in 16, as moonshotai/Kimi-K2.5 has them.
  const std::string kimi =
      R"("quant_method":"compressed-tensors","format":"pack-quantized","config_groups":{"group_0":)"
      R"({"targets":["Linear"],"weights":{"num_bits":4,"type":"int","group_size":32,)"
      R"("symmetric":true}}},"ignore":["lm_head","re:.*self_attn.*","re:.*shared_experts.*",)"
      R"("re:.*mlp\\.(gate|up|gate_up|down)_proj.*"])";
  const ModelSpec experts = read(quantised(deepseek_v3, kimi));
  CHECK(experts.weight_type == NumberType::bf16);
  CHECK(experts.expert_weight_type == NumberType::int4);
  const double routed = 58.0 * 256 * 3 * 7168 * 2048;
  CHECK(stored_bytes(experts) ==
        Approx(2 * (static_cast<double>(total_parameters(experts)) - routed) + 4.5 / 8 * routed).epsilon(1e-14));
}

TEST_CASE("what a configuration lacks or cannot mean is refused with its key") {
  CHECK_THAT(refusal(R"({"model_type":"llama","hidden_size":8})"), Catch::Contains("num_hidden_layers is missing"));
  for (const char* value : {"0", "-8", "8.5", "\"8\"", "1e30", "4294967296", "[]"}) {
    CHECK_THAT(refusal(with(llama_70b, R"("hidden_size":)" + std::string(value))),
               Catch::Contains("hidden_size is ") && Catch::Contains("an integer in [1, 2147483647]"));
  }
  CHECK_THAT(refusal(with(llama_70b, R"("num_attention_heads":60)")), Catch::Contains("num_attention_heads"));
  CHECK_THAT(refusal(with(llama_70b, R"("num_hidden_layers":70000)")), Catch::Contains("an integer in [1, 65536]"));
  CHECK_THAT(refusal(with(llama_70b, R"("hidden_size":2147483584)")), Catch::Contains("2^53 parameters"));
  CHECK_THAT(refusal(with(llama_70b, R"("intermediate_size":2147483647,"num_hidden_layers":65536)")),
             Catch::Contains("2^53 parameters"));
  CHECK_THAT(refusal(with(mixtral, R"("num_experts_per_tok":9)")), Catch::Contains("at most the number of experts, 8"));
  CHECK_THAT(refusal(with(llama_70b, R"("model_type":"llama9")")),
             Catch::Contains("model_type is \"llama9\"") && Catch::Contains("deepseek_v3") && Catch::Contains("t5"));
  CHECK_THAT(refusal(with(llama_70b, R"("model_type":null)")), Catch::Contains("model_type is missing"));
  CHECK_THAT(refusal(with(llama_70b, R"("tie_word_embeddings":1)")), Catch::Contains("true or false"));
  CHECK_THAT(refusal("[1]"), Catch::Contains("a JSON object"));
  CHECK_THAT(refusal("{"), Catch::Contains("a JSON object"));
  CHECK_THAT(refusal(with(qwen3_next, R"("layer_types":["sliding_attention"],"num_hidden_layers":1)")),
             Catch::Contains("\"full_attention\" or \"linear_attention\""));
  CHECK(std::is_sorted(cost::known_model_types().begin(), cost::known_model_types().end()));
}

TEST_CASE("a folder gives its configuration, its name and the size of its weights") {
  const tests::TemporaryFolder folder;
  const std::filesystem::path model = folder.path() / "My-70B";
  std::filesystem::create_directory(model);
  std::ofstream(model / "config.json") << llama_70b;
  CHECK(cost::read_model_spec(model).name == "My-70B");
  CHECK_FALSE(cost::read_model_spec(model).weight_bytes.has_value());
  std::ofstream(model / "model.safetensors.index.json")
      << R"({"metadata":{"total_size":141107412992},"weight_map":{}})";
  CHECK(cost::read_model_spec(model / "config.json").weight_bytes == 141107412992);
  std::ofstream(model / "model.safetensors.index.json") << R"({"metadata":{"total_size":-1}})";
  CHECK_THROWS_WITH(cost::read_model_spec(model), Catch::Contains("metadata.total_size"));
  std::ofstream(folder.path() / "mine.json") << llama_70b;
  std::ofstream(model / "hf_quant_config.json")
      << R"({"producer":{"name":"modelopt"},"quantization":{"quant_algo":"FP8","exclude_modules":["lm_head"]}})";
  std::filesystem::remove(model / "model.safetensors.index.json");
  CHECK(cost::read_model_spec(model).weight_type == NumberType::fp8);
  CHECK(cost::read_model_spec(model).unquantized_type == NumberType::bf16);
  CHECK(cost::read_model_spec(folder.path() / "mine.json").name == "mine");
  CHECK_THROWS_AS(cost::read_model_spec(folder.path()), traces::FileError);
}

TEST_CASE("a model file of the presets' form names the model, its sources and its types") {
  const auto document = [](const std::string& more) {
    return cost::model_spec_from_document(R"({"name":"mine","config":)" + llama_70b + more + '}', "mine.json");
  };
  const ModelSpec model = document(R"(,"aliases":["own"],"sources":["https://example.org"],"weight_type":"int4")");
  CHECK(model.name == "mine");
  CHECK(model.aliases == std::vector<std::string>{"own"});
  CHECK(model.sources.size() == 1);
  CHECK(model.weight_type == NumberType::int4);
  CHECK(document("").weight_type == NumberType::bf16);
  CHECK_THROWS_WITH(document(R"(,"weight_type":"int3")"), Catch::Contains("weight_type is \"int3\""));
  CHECK_THROWS_WITH(document(R"(,"wieght_type":"int4")"), Catch::Contains("wieght_type"));
  CHECK_THROWS_WITH(cost::model_spec_from_document(R"({"config":{"model_type":"gemma"},"name":"x"})", "x.json"),
                    Catch::Contains("config.num_hidden_layers is missing"));
}

TEST_CASE("a document may say how many parameters a model has that nobody published the shape of, but no file may") {
  const ModelSpec model = cost::model_spec_from_document(R"({"name":"x","parameters":2e9})", "x.json");
  CHECK(*model.stated_parameters == 2000000000);
  CHECK_FALSE(has_shape(model));
  const tests::TemporaryFolder folder;
  CHECK_THROWS_WITH(cost::read_model_spec(folder.write("x.json", R"({"name":"x","parameters":2e9})")),
                    Catch::Contains("x.json: config is missing, but must be the model's configuration"));
  CHECK_THROWS_WITH(
      cost::model_spec_from_document(R"({"name":"x","parameters":2e9,"config":{"model_type":"gemma"}})", "x.json"),
      Catch::Contains("parameters is present, but must be absent beside config"));
}

TEST_CASE("every preset of a model names its sources and is found by its names") {
  CHECK_FALSE(cost::model_presets().empty());
  for (const ModelSpec& model : cost::model_presets()) {
    INFO(model.name);
    CHECK((total_parameters(model) > 0) != model.stated_parameters.has_value());
    CHECK(has_shape(model) != model.stated_parameters.has_value());
    CHECK_FALSE(model.sources.empty());
    for (const std::string& source : model.sources) CHECK(source.rfind("https://", 0) == 0);
    CHECK(cost::model_preset(model.name) == &model);
    for (const std::string& alias : model.aliases) CHECK(cost::model_preset(alias) == &model);
  }
  REQUIRE(cost::model_preset("LLAMA_3.1 8b") != nullptr);
  CHECK(total_parameters(*cost::model_preset("LLAMA_3.1 8b")) == 8030261248);
  CHECK(cost::model_preset("llama") == nullptr);
  CHECK(std::is_sorted(cost::model_presets().begin(), cost::model_presets().end(),
                       [](const ModelSpec& a, const ModelSpec& b) { return a.name < b.name; }));
}
