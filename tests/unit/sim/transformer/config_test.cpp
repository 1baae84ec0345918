#include "sim/transformer/config.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using Catch::Matchers::EndsWith;
using nlohmann::json;

namespace {

json llama() {
  return {{"model_type", "llama"},   {"vocab_size", 100},      {"hidden_size", 64},
          {"intermediate_size", 96}, {"num_hidden_layers", 2}, {"num_attention_heads", 4}};
}

json gpt2() { return {{"model_type", "gpt2"}, {"vocab_size", 100}, {"n_embd", 64}, {"n_layer", 2}, {"n_head", 4}}; }

sim::TransformerConfig read(const json& config) {
  const tests::TemporaryFolder folder;
  return sim::read_config(folder.write("config.json", config.dump()));
}

/// The error of read_config for a configuration with these entries changed; an entry set to "remove" is left out.
std::string refusal(json config, const json& changes) {
  for (const auto& [key, value] : changes.items()) {
    if (value == "remove") {
      config.erase(key);
    } else {
      config[key] = value;
    }
  }
  return tests::message_of<traces::FileError>([&] { read(config); });
}

}  // namespace

TEST_CASE("what config.json leaves out takes Hugging Face's defaults") {
  const auto l = read(llama());
  CHECK(l.head_size == 16);
  CHECK(l.key_value_heads == 4);
  CHECK(l.max_length == 2048);
  CHECK(l.norm_epsilon == 1e-6);
  CHECK(l.rope_theta == 10000);
  CHECK_FALSE(l.tied_head);
  CHECK_FALSE(l.attention_bias);
  const auto g = read(gpt2());
  CHECK(g.feed_forward == 256);
  CHECK(g.max_length == 1024);
  CHECK(g.norm_epsilon == 1e-5);
  CHECK(g.tied_head);
}

TEST_CASE("rotary parameters are read in the manner of version 4 and of version 5") {
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 64}};
  auto config = llama();
  config["rope_theta"] = 5e5;
  config["rope_scaling"] = llama3;
  const auto version4 = read(config);
  CHECK(version4.rope_theta == 5e5);
  REQUIRE(version4.rope_scaling);
  CHECK(version4.rope_scaling->factor == 8);
  CHECK(version4.rope_scaling->original_max_position_embeddings == 64);

  config = llama();
  config["rope_parameters"] = llama3;
  config["rope_parameters"]["rope_theta"] = 5e5;
  const auto version5 = read(config);
  CHECK(version5.rope_theta == 5e5);
  REQUIRE(version5.rope_scaling);
  CHECK(version5.rope_scaling->high_freq_factor == 4);

  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 100.0}};
  CHECK_FALSE(read(config).rope_scaling);
}

TEST_CASE("a model that the forward pass does not compute is refused, not approximated") {
  CHECK_THAT(refusal(llama(), {{"model_type", "mamba"}}),
             EndsWith("config.json: model_type is \"mamba\", but must be \"llama\" or \"gpt2\""));
  CHECK_THAT(refusal(llama(), {{"model_type", "remove"}}),
             EndsWith("model_type is missing, but must be \"llama\" or \"gpt2\""));
  CHECK_THAT(refusal(llama(), {{"hidden_act", "relu"}}), EndsWith("hidden_act is \"relu\", but must be \"silu\""));
  CHECK_THAT(refusal(gpt2(), {{"activation_function", "relu"}}),
             EndsWith("activation_function is \"relu\", but must be \"gelu_new\""));
  CHECK_THAT(refusal(gpt2(), {{"scale_attn_weights", false}}),
             EndsWith("scale_attn_weights is false, but must be true"));
  CHECK_THAT(refusal(gpt2(), {{"scale_attn_by_inverse_layer_idx", true}}),
             EndsWith("scale_attn_by_inverse_layer_idx is true, but must be false"));
  CHECK_THAT(refusal(llama(), {{"quantization_config", {{"bits", 4}}}}),
             EndsWith("quantization_config is {\"bits\":4}, but must be absent"));
  for (const char* type : {"linear", "dynamic", "yarn", "longrope"}) {
    const std::string expected = std::string("is \"") + type + "\", but must be \"default\" or \"llama3\"";
    CHECK_THAT(refusal(llama(), {{"rope_scaling", {{"rope_type", type}, {"factor", 2.0}}}}),
               EndsWith("rope_scaling.rope_type " + expected));
    CHECK_THAT(refusal(llama(), {{"rope_scaling", {{"type", type}, {"factor", 2.0}}}}),
               EndsWith("rope_scaling.type " + expected));
    CHECK_THAT(refusal(llama(), {{"rope_parameters", {{"rope_type", type}}}}),
               EndsWith("rope_parameters.rope_type " + expected));
  }
  CHECK_THAT(refusal(llama(), {{"rope_parameters", {{"rope_type", "llama3"}, {"factor", 8.0}}}}),
             EndsWith("rope_parameters.low_freq_factor is missing, but must be present"));
  CHECK_THAT(refusal(llama(), {{"partial_rotary_factor", 0.5}}),
             EndsWith("partial_rotary_factor is 0.5, but must be 1"));
}

TEST_CASE("sizes that are missing, not positive integers or do not divide are refused by name") {
  CHECK_THAT(refusal(llama(), {{"hidden_size", "remove"}}), EndsWith("hidden_size is missing, but must be present"));
  const json bad_sizes = {0, -1, 2.5, "64", 2147483648U, 1e30};
  for (const json& bad : bad_sizes) {
    CHECK_THAT(refusal(llama(), {{"hidden_size", bad}}),
               EndsWith("hidden_size is " + bad.dump() + ", but must be an integer in [1, 2147483647]"));
  }
  CHECK_THAT(refusal(llama(), {{"num_attention_heads", 5}}),
             EndsWith("hidden_size is 64, but must be a multiple of num_attention_heads, 5"));
  CHECK_THAT(refusal(llama(), {{"num_key_value_heads", 3}}),
             EndsWith("num_attention_heads is 4, but must be a multiple of num_key_value_heads, 3"));
  CHECK_THAT(refusal(llama(), {{"head_dim", 7}}), EndsWith("head_dim is 7, but must be even"));
  CHECK_THAT(refusal(llama(), {{"rms_norm_eps", 0}}), EndsWith("rms_norm_eps is 0, but must be a positive number"));
  CHECK_THAT(refusal(llama(), {{"attention_bias", 1}}), EndsWith("attention_bias is 1, but must be true or false"));
  CHECK_THAT(refusal(gpt2(), {{"n_head", 5}}), EndsWith("n_embd is 64, but must be a multiple of n_head, 5"));
}

TEST_CASE("a config.json that is missing or no JSON object is refused") {
  const tests::TemporaryFolder folder;
  CHECK_THAT(tests::message_of<traces::FileError>([&] { sim::read_config(folder.path() / "config.json"); }),
             EndsWith("no such file"));
  for (const char* text : {"", "[]", "{\"model_type\":", "nonsense"}) {
    const auto path = folder.write("config.json", text);
    CHECK_THAT(tests::message_of<traces::FileError>([&] { sim::read_config(path); }),
               EndsWith("but must be a JSON object"));
  }
}
