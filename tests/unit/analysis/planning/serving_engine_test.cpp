#include "analysis/planning/serving_engine.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "analysis/planning/engine_config.hpp"
#include "tests/support/catch.hpp"

using nlohmann::json;
using specdec::cost::DraftKind;
using specdec::planning::Engine;
using specdec::planning::engine_config;
using specdec::planning::EngineRequest;
using specdec::planning::newest_release;
using specdec::traces::AcceptanceRule;

namespace {

using Names = std::set<std::string>;

/// Keys and values that vLLM 0.33.0 reads, transcribed from SpeculativeConfig (vllm/config/speculative.py) and
/// arg_utils.py of its source distribution.
const Names vllm_keys = {"method",
                         "model",
                         "num_speculative_tokens",
                         "draft_tensor_parallel_size",
                         "prompt_lookup_max",
                         "parallel_drafting",
                         "rejection_sample_method",
                         "draft_sample_method",
                         "num_speculative_tokens_per_batch_size"};
const Names rejection_values = {"standard", "synthetic", "block", "fly"}, draft_values = {"greedy", "probabilistic"};

}  // namespace

TEST_CASE("vLLM's text has the keys and values of the newest release's own class and no other") {
  for (const DraftKind kind : {DraftKind::model, DraftKind::mirrored, DraftKind::eagle, DraftKind::mtp,
                               DraftKind::parallel, DraftKind::ngram}) {
    for (const std::optional<AcceptanceRule> rule :
         {std::optional<AcceptanceRule>(), std::optional(AcceptanceRule::rejection),
          std::optional(AcceptanceRule::greedy_draft), std::optional(AcceptanceRule::greedy)}) {
      EngineRequest request;
      request.schedule = {{1, 32, 4}};
      request.target_model = "org/target";
      request.draft_model = "org/draft";
      request.kind = kind;
      request.rule = rule;
      INFO("kind " << static_cast<int>(kind));
      const json text = json::parse(engine_config(Engine::vllm, request).text);
      for (const auto& [key, value] : text.items()) {
        INFO(key);
        CHECK(vllm_keys.count(key) == 1);
        if (key == "rejection_sample_method") CHECK(rejection_values.count(value) == 1);
        if (key == "draft_sample_method") CHECK(draft_values.count(value) == 1);
      }
      CHECK(text["num_speculative_tokens"] == 4);
    }
  }
}

TEST_CASE("the release that is written for is named as the engine writes it") {
  CHECK(newest_release(Engine::vllm) == "vLLM 0.33.0");
  CHECK(newest_release(Engine::trtllm) == "TensorRT-LLM 1.4.0rc1");
  for (const Engine engine : {Engine::vllm, Engine::sglang, Engine::trtllm, Engine::llamacpp})
    CHECK(newest_release(engine).starts_with(std::string(title_of(engine)) + " "));
}
