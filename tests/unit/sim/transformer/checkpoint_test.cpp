#include "sim/transformer/checkpoint.hpp"

#include <cstdint>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/sim/transformer/fixtures.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using nlohmann::json;

namespace {

/// A safetensors file taken apart into its header and its data.
struct Parts {
  json header;
  std::string data;

  explicit Parts(const std::string& file) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    header = json::parse(file.substr(sizeof length, length));
    data = file.substr(sizeof length + length);
  }

  std::string file() const {
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    std::string whole(sizeof length, '\0');
    std::memcpy(whole.data(), &length, sizeof length);
    return whole + text + data;
  }
};

/// The error of load_checkpoint for a fixture in which one file has been changed.
std::string refusal(const std::string& fixture, const std::string& file,
                    const std::function<std::string(std::string)>& change) {
  const tests::TemporaryFolder folder;
  std::filesystem::copy(tests::transformer_fixture(fixture), folder.path(), std::filesystem::copy_options::recursive);
  folder.write(file, change(tests::read_text(folder.path() / file)));
  return tests::message_of<traces::FileError>([&] { sim::load_checkpoint(folder.path()); });
}

std::string refusal_of_tensors(const std::function<void(Parts&)>& change) {
  return refusal("llama_gqa", "model.safetensors", [&](const std::string& text) {
    Parts parts(text);
    change(parts);
    return parts.file();
  });
}

std::string refusal_of_config(const std::string& key, const json& value) {
  return refusal("llama_gqa", "config.json", [&](const std::string& text) {
    json config = json::parse(text);
    config[key] = value;
    return config.dump();
  });
}

void rename(Parts& parts, const std::string& from, const std::string& to) {
  parts.header[to] = parts.header.at(from);
  parts.header.erase(from);
}

}  // namespace

TEST_CASE("the configuration of loaded weights is that of config.json") {
  const auto weights = sim::load_checkpoint(tests::transformer_fixture("llama_sharded_bf16"));
  const auto& config = sim::config_of(*weights);
  CHECK(config.head_size == 12);
  CHECK(config.key_value_heads == 2);
  CHECK(config.attention_bias);
  CHECK(config.feed_forward_bias);
}

TEST_CASE("a missing tensor is named with the shape that it should have") {
  CHECK_THAT(refusal_of_tensors([](Parts& p) { rename(p, "model.norm.weight", "__metadata__"); }),
             Contains("__metadata__"));
  CHECK_THAT(refusal_of_tensors([](Parts& p) { rename(p, "model.norm.weight", "model.nrm.weight"); }),
             EndsWith("model.safetensors: model.norm.weight is missing, but must be a tensor of shape [40]"));
  CHECK_THAT(refusal_of_config("num_hidden_layers", 1000000000),
             EndsWith("model.layers.2.self_attn.q_proj.weight is missing, but must be a tensor of shape [40, 40]"));
  CHECK_THAT(refusal_of_config("attention_bias", true),
             EndsWith("model.layers.0.self_attn.q_proj.bias is missing, but must be a tensor of shape [40]"));
}

TEST_CASE("a shape other than config.json's is refused before memory is allocated") {
  CHECK_THAT(
      refusal_of_config("vocab_size", 2147483647),
      EndsWith("model.embed_tokens.weight.shape is [67, 40], but must be [2147483647, 40], as config.json demands"));
  CHECK_THAT(refusal_of_config("intermediate_size", 2147483647), Contains("mlp.gate_proj.weight.shape is [56, 40]"));
  CHECK_THAT(refusal_of_config("head_dim", 2147483646), Contains("self_attn.q_proj.weight.shape is [40, 40]"));
}

TEST_CASE("tensors of another type, with numbers that are not finite, or without a place in the model are refused") {
  CHECK_THAT(refusal_of_tensors([](Parts& p) { p.header["model.norm.weight"]["dtype"] = "I32"; }),
             EndsWith("model.norm.weight.dtype is I32, but must be F32, F16 or BF16"));
  CHECK_THAT(refusal_of_tensors([](Parts& p) {
               const std::size_t begin = p.header["model.norm.weight"]["data_offsets"][0];
               std::memcpy(p.data.data() + begin + 4, "\0\0\xc0\x7f", 4);
             }),
             EndsWith("model.norm.weight, element 1 is nan, but must be finite"));
  CHECK_THAT(
      refusal_of_tensors([](Parts& p) {
        const std::size_t end = p.data.size();
        p.header["model.layers.0.self_attn.q_norm.weight"] = {
            {"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {end, end + 4}}};
        p.data.append(4, '\0');
      }),
      EndsWith("model.layers.0.self_attn.q_norm.weight is present, but must be absent: the model has no such tensor"));
}

TEST_CASE("buffers that old checkpoints carry are left alone") {
  CHECK(refusal_of_tensors([](Parts& p) {
          const std::size_t end = p.data.size();
          p.header["model.layers.0.self_attn.rotary_emb.inv_freq"] = {
              {"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {end, end + 4}}};
          p.data.append(4, '\0');
        }) == "");
}

TEST_CASE("an index of shards must name files of its folder that hold what it says") {
  const std::string index = "model.safetensors.index.json";
  const auto change = [&](const std::function<void(json&)>& edit) {
    return refusal("llama_sharded_bf16", index, [&](const std::string& text) {
      json document = json::parse(text);
      edit(document);
      return document.dump();
    });
  };
  CHECK_THAT(change([](json& d) { d.erase("weight_map"); }),
             EndsWith("weight_map is missing, but must be an object from tensor to file name"));
  for (const json& bad : {json(5), json(""), json("../model.safetensors"), json("/etc/passwd")}) {
    CHECK_THAT(
        change([&](json& d) { d["weight_map"]["lm_head.weight"] = bad; }),
        EndsWith("weight_map.lm_head.weight is " + bad.dump() + ", but must be the name of a file in the same folder"));
  }
  CHECK_THAT(change([](json& d) { d["weight_map"]["lm_head.weight"] = "none.safetensors"; }),
             EndsWith("none.safetensors: no such file"));
  CHECK_THAT(
      change([](json& d) {
        const std::string last = d["weight_map"]["model.norm.weight"];
        d["weight_map"]["model.embed_tokens.weight"] = last;
      }),
      EndsWith("model.embed_tokens.weight is missing, but must be in this file, as model.safetensors.index.json says"));
  CHECK_THAT(change([](json& d) { d["weight_map"].erase("model.norm.weight"); }),
             EndsWith("index.json: model.norm.weight is missing, but must be a tensor of shape [32]"));
}

TEST_CASE("a folder without weights is refused by the name of the file that should be there") {
  const tests::TemporaryFolder folder;
  std::filesystem::copy(tests::transformer_fixture("gpt2") / "config.json", folder.path() / "config.json");
  CHECK_THAT(
      tests::message_of<traces::FileError>([&] { sim::load_checkpoint(folder.path()); }),
      EndsWith("model.safetensors: no such file"));
}
