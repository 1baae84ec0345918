#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "analysis/cost/model_spec.hpp"
#include "traces/formats/config_fields.hpp"

namespace specdec::cost {

// A header of the library's own sources; it is not installed.

/// The model of a preset, or of a user's own file in the same form; told from a config.json, whose model gets no name, by its key "config":
///
///   {"name": "llama-3.1-70b", "aliases": ["llama-70b"], "sources": ["https://..."], "note": "...", "config": {...},
///    "weight_type": "bf16", "expert_weight_type": "mxfp4", "checked": [...]}
///
/// Name and config must be there; the types default to what the configuration says. A note is for who reads the file;
/// "checked" holds published counts, which a test compares with the model. A model whose shape nobody published has
/// "parameters", a number, in the place of "config".
/// @param where  named in errors
/// @throws traces::FileError as read_model_spec
ModelSpec model_spec_from_document(std::string_view json_text, const std::filesystem::path& where);

/// The model of a GGUF file, or of the parts that the first of them names.
/// @throws traces::FileError as read_model_spec
ModelSpec model_spec_from_gguf(const std::filesystem::path& path);

/// The layers, embedding, head and next-token module, by model_type; empty if the type is not known.
std::optional<ModelSpec> read_architecture(std::string_view model_type, const traces::ConfigFields& fields);

/// Reads the storage of weights from quantization_config and torch_dtype, where that is certain: the type of quantised
/// weights, their bits with scales, and which modules are left alone.
///
/// Source:   docs/reference/formats.md#weights
void read_weight_types(const traces::ConfigFields& fields, ModelSpec& model);
/// The same from an object as quantization_config alone, of a model whose weight_type is that of torch_dtype.
void read_quantization(const traces::ConfigFields& quantization, ModelSpec& model);

}  // namespace specdec::cost
