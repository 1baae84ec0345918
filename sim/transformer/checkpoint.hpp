#pragma once

#include <filesystem>
#include <memory>

#include "sim/transformer/config.hpp"

namespace specdec::sim {

/// Weights of a transformer, packed for the forward pass; immutable, shared by any number of Transformer objects.
struct TransformerWeights;

/// Loads the checkpoint in a folder: config.json together with model.safetensors, or with the shards listed in
/// model.safetensors.index.json; F32, F16 or BF16, in which they are held.
///
/// Names and layouts are Hugging Face's: `model.layers.{i}.self_attn.q_proj.weight` and so on for Llama,
/// `h.{i}.attn.c_attn.weight` with or without `transformer.` before it for GPT-2.
/// @throws FileError naming the file and the tensor or field if config.json is refused (see read_config), a tensor is
///   missing, has another shape or type than the configuration demands, holds a number that is not finite, or has no
///   place in the model. Every size is checked against the files before memory for the weights is allocated.
std::shared_ptr<const TransformerWeights> load_checkpoint(const std::filesystem::path& folder);

/// The shape of these weights.
const TransformerConfig& config_of(const TransformerWeights& weights);

}  // namespace specdec::sim
