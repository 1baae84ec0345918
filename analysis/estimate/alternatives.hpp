#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "analysis/estimate/acceptance_curve.hpp"

namespace specdec::estimate {

/// The places of each alternative's worlds, rising. @param alternative  [world]  @return [alternative]
inline std::vector<std::vector<std::size_t>> worlds_of_alternatives(std::span<const int> alternative) {
  std::vector<std::vector<std::size_t>> worlds;
  for (std::size_t world = 0; world < alternative.size(); ++world) {
    const auto its = static_cast<std::size_t>(alternative[world]);
    worlds.resize(std::max(worlds.size(), its + 1));
    worlds[its].push_back(world);
  }
  return worlds;
}

/// Worlds, of each alternative together, for several acceptances that do not have as many.
struct WorldsByAlternative {
  explicit WorldsByAlternative(TokenWorlds drawn)
      : tokens(std::move(drawn.tokens)), worlds(worlds_of_alternatives(drawn.alternative)) {}

  /// Worlds of the alternative that has most of them.
  std::size_t most() const {
    std::size_t most = 0;
    for (const auto& its : worlds) most = std::max(most, its.size());
    return most;
  }
  /// Of fewer alternatives the last one; of fewer worlds they repeat.
  double at(std::size_t gamma, std::size_t alternative, std::size_t world) const {
    const std::vector<std::size_t>& its = worlds[std::min(alternative, worlds.size() - 1)];
    return tokens[gamma][its[world % its.size()]];
  }

  /// [gamma][world]
  std::vector<std::vector<double>> tokens;
  /// [alternative]
  std::vector<std::vector<std::size_t>> worlds;
};

}  // namespace specdec::estimate
