#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "analysis/cost/model_spec.hpp"
#include "analysis/cost/preset_files.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using cost::ModelSpec;

namespace {

/// The library's value of a quantity of "checked". Pages differ in whether the input embedding, of which a
/// token reads one row, is among the parameters that are active.
std::int64_t computed(const ModelSpec& model, const std::string& quantity) {
  if (quantity == "total_parameters") return model.stated_parameters.value_or(total_parameters(model));
  if (quantity == "parameters_beside_embedding") return total_parameters(model) - model.embedding_parameters;
  if (quantity == "active_parameters") return active_parameters(model);
  if (quantity == "active_and_embedding_parameters") return active_parameters(model) + model.embedding_parameters;
  if (quantity == "active_parameters_beside_head") return active_parameters(model) - model.head_parameters;
  if (quantity == "parameters_with_module") {
    return total_parameters(model) + total_parameters(next_token_module(model));
  }
  if (quantity == "parameters_of_files") {  // the next-token module with an embedding and a head of its own
    return total_parameters(model) + total_parameters(next_token_module(model)) + model.embedding_parameters +
           model.head_parameters;
  }
  FAIL("no such quantity: " << quantity);
  return 0;
}

}  // namespace

TEST_CASE("the parameters of every model preset are those that other pages print") {
  REQUIRE(cost::model_preset_files().size() == cost::model_presets().size());
  std::set<std::string> unchecked;
  for (const auto& file : cost::model_preset_files()) {
    INFO(file.name);
    const auto document = nlohmann::json::parse(file.content.begin(), file.content.end());
    const std::string name = document.at("name");
    CHECK(file.name == name + ".json");
    const ModelSpec* model = cost::model_preset(name);
    REQUIRE(model != nullptr);
    if (document.at("checked").empty()) unchecked.insert(name);
    for (const auto& figure : document.at("checked")) {
      INFO(figure);
      CHECK(std::string(figure.at("source")).rfind("https://", 0) == 0);
      const double value = figure.at("value");
      const double found = static_cast<double>(computed(*model, figure.at("quantity")));
      CHECK(std::abs(found - value) <= figure.at("within").get<double>());
    }
  }
  // Nobody prints how many parameters the drafting heads have.
  for (const std::string& name : unchecked) CHECK((name.starts_with("eagle3-") || name.starts_with("dflash-")));
}

TEST_CASE("the drafting heads among the presets are as wide as what they read and far smaller than their targets") {
  const auto preset = [](const std::string& name) {
    const ModelSpec* model = cost::model_preset(name);
    REQUIRE(model != nullptr);
    return *model;
  };
  for (const char* target : {"llama-3.1-8b", "llama-3.3-70b", "gpt-oss-20b", "gpt-oss-120b", "qwen3-8b", "qwen3-32b",
                             "qwen3-30b-a3b", "qwen3-235b-a22b", "qwen3-coder-30b-a3b", "qwen3-coder-480b-a35b",
                             "qwen3-next-80b-a3b", "qwen3.5-35b-a3b", "llama-4-scout", "deepseek-v3", "kimi-k2"}) {
    INFO(target);
    const ModelSpec head = preset(std::string("eagle3-") + target);
    CHECK(head.width == preset(target).width);
    CHECK(head.vocabulary == preset(target).vocabulary);
    CHECK(head.head_parameters == 32000 * head.width);
    CHECK(head.extra_dense_parameters == 3 * head.width * head.width);
    CHECK(total_parameters(head) < total_parameters(preset(target)) / 10);
  }
}

TEST_CASE("a draft of DFlash has the target's embedding and head, and reads five of its states") {
  for (const char* target : {"qwen3-8b", "qwen3.6-27b", "gpt-oss-20b"}) {
    INFO(target);
    const ModelSpec* draft = cost::model_preset(std::string("dflash-") + target);
    const ModelSpec* of = cost::model_preset(target);
    REQUIRE(draft != nullptr);
    REQUIRE(of != nullptr);
    CHECK(draft->drafts_in_parallel);
    CHECK(draft->target == target);
    CHECK(draft->target_width == of->width);
    CHECK(draft->vocabulary == of->vocabulary);
    CHECK(draft->shared_embedding);
    CHECK(draft->shared_head);
    CHECK(draft->extra_dense_parameters == 5 * of->width * of->width);
    CHECK(total_parameters(*draft) < total_parameters(*of) / 7);
  }
  CHECK(total_parameters(*cost::model_preset("dflash-qwen3-8b")) == 1048626432);
}

TEST_CASE("layers of DeepSeek-V4 keep one vector for 4 or 128 positions beside their window") {
  const ModelSpec& model = *cost::model_preset("deepseek-v4-flash");
  std::int64_t windowed = 0, choosing = 0, all = 0;
  for (const cost::LayerGroup& layer : model.layers) {
    CHECK(layer.latent);
    if (layer.window) {
      windowed += layer.count;
      CHECK(layer.window == 128);
      CHECK(layer.cached_values_per_token == 512);
      continue;
    }
    CHECK(layer.state_values_per_sequence == 128 * 512);
    (layer.selected ? choosing : all) += layer.count;
    CHECK(layer.cached_values_per_token == (layer.selected ? 128 : 4));
    CHECK(layer.index_values_per_token == (layer.selected ? 32 : 0));
    if (layer.selected) CHECK(layer.selected == 4 * 512);
  }
  CHECK(windowed == 2);
  CHECK(choosing == 21);
  CHECK(all == 20);
  CHECK(model.next_token_layers.at(0).window == 128);
  CHECK(model.weight_type == cost::NumberType::fp8);
  CHECK(model.expert_weight_type == cost::NumberType::mxfp4);
  CHECK_FALSE(model.quantized_bits);
}

TEST_CASE("MiniMax-M3 chooses blocks of positions, and Kimi-K3 has a state in three of four layers") {
  for (const cost::LayerGroup& layer : cost::model_preset("minimax-m3")->layers) {
    CHECK(layer.selected.has_value() == (layer.experts > 0));
    CHECK(layer.index_values_per_token == (layer.selected ? 128 : 0));
    if (layer.selected) CHECK(layer.selected == 2048);
  }
  const ModelSpec& kimi = *cost::model_preset("kimi-k3");
  std::int64_t states = 0;
  for (const cost::LayerGroup& layer : kimi.layers) {
    CHECK((layer.state_values_per_sequence > 0) != (layer.cached_values_per_token > 0));
    if (layer.state_values_per_sequence == 0) continue;
    states += layer.count;
    CHECK(layer.state_values_per_sequence == 96 * 128 * 128 + 3 * 3 * 96 * 128);
    // All of attention is in 16 bits.
    CHECK(layer.unquantized_parameters >= 4 * 7168 * 96 * 128);
  }
  CHECK(states == 69);
  CHECK(kimi.expert_weight_type.value_or(*kimi.weight_type) == cost::NumberType::mxfp4);
}
