#pragma once

#include <optional>
#include <string_view>

/// The serving engines, and the release of each that is written for.
namespace specdec::planning {

enum class Engine { vllm, sglang, trtllm, llamacpp };

/// "vllm", "sglang", "trtllm", "llamacpp".
std::string_view name_of(Engine engine);
/// "vLLM", "SGLang", "TensorRT-LLM", "llama.cpp".
std::string_view title_of(Engine engine);
/// The newest release whose options were read: "vLLM 0.33.0".
/// Source:   docs/reference/formats.md#releases-of-engines
std::string_view newest_release(Engine engine);
/// The engine whose name that is, here or in what servers count ("tensorrt-llm", "llama.cpp").
std::optional<Engine> engine_named(std::string_view name);
/// vLLM if there is none.
Engine engine_or_vllm(std::string_view name);

}  // namespace specdec::planning
