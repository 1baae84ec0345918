#include "analysis/planning/serving_engine.hpp"

#include <algorithm>
#include <array>

namespace specdec::planning {
namespace {

struct EngineFacts {
  Engine engine;
  std::string_view name, counted, title, newest;
};

constexpr std::array<EngineFacts, 4> engines = {
    {{Engine::vllm, "vllm", "vllm", "vLLM", "vLLM 0.33.0"},
     {Engine::sglang, "sglang", "sglang", "SGLang", "SGLang 0.5.23"},
     {Engine::trtllm, "trtllm", "tensorrt-llm", "TensorRT-LLM", "TensorRT-LLM 1.4.0rc1"},
     {Engine::llamacpp, "llamacpp", "llama.cpp", "llama.cpp", "llama.cpp b11480"}}};

const EngineFacts& facts_of(Engine engine) { return engines[static_cast<std::size_t>(engine)]; }

}  // namespace

std::string_view name_of(Engine engine) { return facts_of(engine).name; }
std::string_view title_of(Engine engine) { return facts_of(engine).title; }
std::string_view newest_release(Engine engine) { return facts_of(engine).newest; }

std::optional<Engine> engine_named(std::string_view name) {
  const auto found = std::find_if(engines.begin(), engines.end(),
                                  [&](const auto& one) { return one.name == name || one.counted == name; });
  return found == engines.end() ? std::nullopt : std::optional(found->engine);
}

Engine engine_or_vllm(std::string_view name) { return engine_named(name).value_or(Engine::vllm); }

}  // namespace specdec::planning
