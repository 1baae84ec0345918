#include "sim/verifier.hpp"

#include "analysis/core/checks.hpp"
#include "sim/sampling.hpp"

namespace specdec::sim {

void DraftedBlock::require_valid(std::string_view function) const {
  core::require_same_size(function, "target_rows", target_rows.size(), "gamma + 1 rows", (gamma() + 1) * vocab());
  core::require_same_size(function, "draft_rows", draft_rows.size(), "gamma rows", gamma() * vocab());
  for (const Token x : drafted)
    core::require_in(function, "drafted token", std::int64_t{x}, 0, static_cast<std::int64_t>(vocab()) - 1);
}

Verdict verify_tokens(const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round) {
  block.require_valid("verify_tokens");
  for (std::size_t i = 0; i < block.gamma(); ++i) {
    const auto slot = static_cast<std::int64_t>(i);
    const std::size_t x = block.token(i);
    if (accepts(block.p(i)[x], block.q(i)[x], uniforms.uniform(round, slot, Purpose::acceptance))) continue;
    const double u = uniforms.uniform(round, slot, Purpose::residual);
    return {slot, sample_residual(core::TargetDistribution(block.p(i)), core::DraftDistribution(block.q(i)), u)};
  }
  return accept_all(block, uniforms, round);
}

Verdict accept_all(const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round) {
  const auto gamma = static_cast<std::int64_t>(block.gamma());
  return {gamma, sample(block.p(block.gamma()), uniforms.uniform(round, gamma, Purpose::bonus))};
}

}  // namespace specdec::sim
