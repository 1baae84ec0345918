#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "sim/transformer/config.hpp"

namespace specdec::sim {

// Exits of a transformer, safetensors with the metadata "format": "specdec-exits", "version": "1", and "hidden_size",
// "vocab_size" and "num_hidden_layers" of the model that they were trained on. For each exit, with k the number of
// blocks before it, 1 <= k < layers, and H the width:
//
//   exits.{k}.norm.weight [H], exits.{k}.proj.weight [H, H]; F32, F16 or BF16
//
//   e = h + proj rms_norm(h, norm),   logits = head(final_norm(e)),   h the state after k blocks
//
// with the final norm, its epsilon and the head of the checkpoint that the exits were trained on.

/// Trained exits, packed for the forward pass; immutable, shared by any number of models.
struct ExitWeights;

/// Loads the exits of a model of this shape.
/// @throws FileError naming the tensor or the metadata if the file has another format, holds no exit or one tensor of
///   an exit alone, an exit that does not fit the model, another tensor, shape or type, or a number that is not
///   finite. Sizes are checked before memory is allocated.
std::shared_ptr<const ExitWeights> load_exits(const std::filesystem::path& path, const TransformerConfig& config);

/// The numbers of blocks after which there is an exit, ascending.
std::vector<std::int64_t> exits_of(const ExitWeights& exits);

}  // namespace specdec::sim
