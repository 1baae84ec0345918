#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "sim/random.hpp"

namespace specdec::test_support {

/// Uniforms set by the test; where none is set, those of `others`.
class ScriptedUniforms final : public sim::UniformSource {
 public:
  using Key = std::tuple<std::int64_t, std::int64_t, sim::Purpose>;

  explicit ScriptedUniforms(std::map<Key, double> scripted, sim::RandomStream others = {0, 0})
      : scripted_(std::move(scripted)), others_(others) {}

  double uniform(std::int64_t round, std::int64_t slot, sim::Purpose purpose) const override {
    const auto found = scripted_.find({round, slot, purpose});
    return found != scripted_.end() ? found->second : others_.uniform(round, slot, purpose);
  }

 private:
  std::map<Key, double> scripted_;
  sim::RandomStream others_;
};

}  // namespace specdec::test_support
