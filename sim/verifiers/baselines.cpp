#include "sim/verifiers/baselines.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "sim/sampling.hpp"

namespace specdec::sim {
namespace {

/// 1 / M; the smallest q / p where the target has probability.
double envelope(std::span<const double> p, std::span<const double> q) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t x = 0; x < p.size(); ++x)
    if (p[x] > 0) least = std::min(least, q[x] / p[x]);
  return least;
}

}  // namespace

Verdict verify_by_matching(const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round) {
  block.require_valid("verify_by_matching");
  for (std::size_t i = 0; i < block.gamma(); ++i) {
    const auto slot = static_cast<std::int64_t>(i);
    const Token own = sample(block.p(i), uniforms.uniform(round, slot, Purpose::acceptance));
    if (own != block.drafted[i]) return {slot, own};
  }
  return accept_all(block, uniforms, round);
}

Verdict verify_by_rejection_sampling(const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round) {
  block.require_valid("verify_by_rejection_sampling");
  for (std::size_t i = 0; i < block.gamma(); ++i) {
    const auto slot = static_cast<std::int64_t>(i);
    const std::size_t x = block.token(i);
    const double scaled = envelope(block.p(i), block.q(i)) * block.p(i)[x];
    if (accepts(scaled, block.q(i)[x], uniforms.uniform(round, slot, Purpose::acceptance))) continue;
    return {slot, sample(block.p(i), uniforms.uniform(round, slot, Purpose::residual))};
  }
  return accept_all(block, uniforms, round);
}

}  // namespace specdec::sim
