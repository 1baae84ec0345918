#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// The tokens of a request's prompt that are found in the cache, if prompts are computed here.
inline std::int64_t found_tokens(const ServingEngine& engine, const SimulatedRequest& request) {
  const double found = std::floor(engine.prefix_cache_hit_rate * static_cast<double>(request.prompt_tokens));
  return std::min(static_cast<std::int64_t>(found), request.prompt_tokens - 1);
}

/// The blocks that running requests have in common: whole blocks of what they found in the cache.
class SharedPrefixes {
 public:
  /// The question must outlive the object.
  explicit SharedPrefixes(const ServingQuestion& question)
      : question_(question), held_(prefixes_of(question.engine, question.requests.size())) {}

  /// The blocks of a request that others hold.
  std::int64_t blocks_of_others(std::size_t request) const {
    if (held_.empty()) return 0;
    const std::multiset<std::int64_t>& same = held_[request % held_.size()];
    return same.empty() ? 0 : std::min(*same.rbegin(), blocks_of(request));
  }
  void hold(std::size_t request) {
    if (!held_.empty()) held_[request % held_.size()].insert(blocks_of(request));
  }
  void let_go(std::size_t request) {
    if (held_.empty()) return;
    std::multiset<std::int64_t>& same = held_[request % held_.size()];
    same.erase(same.find(blocks_of(request)));
  }

 private:
  /// None if no two requests have the same one.
  static std::size_t prefixes_of(const ServingEngine& engine, std::size_t requests) {
    const auto count = static_cast<std::size_t>(engine.shared_prefixes.value_or(0));
    return count < requests ? count : 0;
  }
  std::int64_t blocks_of(std::size_t request) const {
    return found_tokens(question_.engine, question_.requests[request]) / question_.engine.block_size;
  }

  const ServingQuestion& question_;
  /// [prefix]: blocks that each running request has of it
  std::vector<std::multiset<std::int64_t>> held_;
};

}  // namespace specdec::sim
