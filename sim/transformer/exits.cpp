#include "sim/transformer/exits.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "sim/transformer/weight_reader.hpp"
#include "traces/file_error.hpp"

namespace specdec::sim {

std::shared_ptr<const ExitWeights> load_exits(const std::filesystem::path& path, const TransformerConfig& config) {
  TensorStore store = TensorStore::of_heads(path, "specdec-exits", config);
  WeightReader reader(store);
  const auto walk = [&](ExitWeights& exits) {
    for (std::int64_t k = 1; k < config.layers; ++k) {
      const std::string exit = fmt::format("exits.{}.", k);
      if (!store.has(exit + "norm.weight") && !store.has(exit + "proj.weight")) continue;
      ExitHead& head = exits.heads[k];
      reader.norm_weight(exit + "norm.weight", config.width, head.norm.weight);
      reader.matrix(exit + "proj.weight", config.width, config.width, head.projection.matrix);
    }
  };
  ExitWeights checked;
  walk(checked);
  store.require_nothing_else([](const std::string&) { return false; });
  if (checked.heads.empty()) throw traces::FileError(path, "exits", "missing", "at least one exit");
  auto exits = std::make_shared<ExitWeights>();
  exits->width = config.width;
  reader.begin_reading(exits->matrix_memory);
  walk(*exits);
  return exits;
}

std::vector<std::int64_t> exits_of(const ExitWeights& exits) {
  std::vector<std::int64_t> numbers;
  for (const auto& [k, head] : exits.heads) numbers.push_back(k);
  return numbers;
}

std::shared_ptr<const ExitHead> exit_behind(std::int64_t blocks, const TransformerConfig& config,
                                            const std::shared_ptr<const ExitWeights>& exits) {
  if (!exits || blocks == config.layers) return nullptr;
  if (exits->width != config.width)
    throw std::invalid_argument(
        fmt::format("exit_behind: exits has width {}, but the model has {}", exits->width, config.width));
  const auto found = exits->heads.find(blocks);
  if (found == exits->heads.end())
    throw std::domain_error(
        fmt::format("exit_behind: blocks is {}, but must be a number of blocks with an exit", blocks));
  return {exits, &found->second};
}

}  // namespace specdec::sim
