#include "sim/verifier.hpp"

#include <cstddef>

#include "analysis/core/checks.hpp"
#include "sim/sampling.hpp"

namespace specdec::sim {

Verdict verify_tokens(const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round) {
  const std::size_t gamma = block.drafted.size();
  const std::size_t vocab = block.target_rows.size() / (gamma + 1);
  core::require_same_size("verify_tokens", "target_rows", block.target_rows.size(), "gamma + 1 rows",
                          (gamma + 1) * vocab);
  core::require_same_size("verify_tokens", "draft_rows", block.draft_rows.size(), "gamma rows", gamma * vocab);

  for (std::size_t i = 0; i < gamma; ++i) {
    const auto slot = static_cast<std::int64_t>(i);
    core::require_in("verify_tokens", "drafted token", std::int64_t{block.drafted[i]}, 0,
                     static_cast<std::int64_t>(vocab) - 1);
    const auto token = static_cast<std::size_t>(block.drafted[i]);
    const std::span<const double> p = block.target_rows.subspan(i * vocab, vocab);
    const std::span<const double> q = block.draft_rows.subspan(i * vocab, vocab);
    if (accepts(p[token], q[token], uniforms.uniform(round, slot, Purpose::acceptance))) continue;
    const double u = uniforms.uniform(round, slot, Purpose::residual);
    return {slot, sample_residual(core::TargetDistribution(p), core::DraftDistribution(q), u)};
  }
  const auto accepted = static_cast<std::int64_t>(gamma);
  return {accepted, sample(block.target_rows.last(vocab), uniforms.uniform(round, accepted, Purpose::bonus))};
}

}  // namespace specdec::sim
