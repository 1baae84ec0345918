#include "sim/verifiers/block_verification.hpp"

#include <algorithm>
#include <cstddef>

#include "sim/sampling.hpp"
#include "sim/weight_sums.hpp"

namespace specdec::sim {
namespace {

/// P_i from P_(i-1), without dividing by a draft probability of 0.
double kept_probability(double before, double target_probability, double draft_probability) {
  const double joint = before * target_probability;
  if (!(joint > 0)) return 0;
  return joint >= draft_probability ? 1 : joint / draft_probability;
}

/// h_i: the probability that drafts 1..i are kept if those after them are not.
double stopping_probability(double kept, std::span<const double> p, std::span<const double> q) {
  const double residual = sum_of_weights(p.size(), [&](std::size_t x) { return std::max(0.0, kept * p[x] - q[x]); });
  const double total = residual + (1 - kept);
  return total > 0 ? residual / total : 1;
}

}  // namespace

Verdict verify_block(const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round) {
  block.require_valid("verify_block");
  const std::size_t gamma = block.gamma();
  double kept = 1;
  std::size_t accepted = 0;
  double kept_of_accepted = 1;
  for (std::size_t i = 0; i < gamma; ++i) {
    const std::size_t x = block.token(i);
    kept = kept_probability(kept, block.p(i)[x], block.q(i)[x]);
    const bool last = i + 1 == gamma;
    const double threshold = last ? kept : stopping_probability(kept, block.p(i + 1), block.q(i + 1));
    if (!(uniforms.uniform(round, static_cast<std::int64_t>(i), Purpose::acceptance) < threshold)) continue;
    accepted = i + 1;
    kept_of_accepted = kept;
  }
  if (accepted == gamma) return accept_all(block, uniforms, round);
  const auto slot = static_cast<std::int64_t>(accepted);
  const double u = uniforms.uniform(round, slot, Purpose::residual);
  return {slot, sample_residual(core::TargetDistribution(block.p(accepted)), core::DraftDistribution(block.q(accepted)),
                                u, {kept_of_accepted, 1})};
}

}  // namespace specdec::sim
