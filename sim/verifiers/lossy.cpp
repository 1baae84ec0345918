#include "sim/verifiers/lossy.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "analysis/core/checks.hpp"
#include "analysis/core/standardisation.hpp"
#include "sim/sampling.hpp"

namespace specdec::sim {
namespace {

void require_lenience(std::string_view function, double lenience) {
  core::require_in(function, "lenience", lenience, std::numeric_limits<double>::min(), 1);
}

double entropy(std::span<const double> p) {
  double sum = 0;
  for (const double x : p)
    if (x > 0) sum -= x * std::log(x);
  return sum;
}

Token greedy(std::span<const double> p) { return static_cast<Token>(core::argmax(p)); }

}  // namespace

Verifier lenient_verifier(double lenience, LenientResidual residual) {
  require_lenience("lenient_verifier", lenience);
  const ResidualScale scale{1, residual == LenientResidual::lenient ? lenience : 1};
  return [lenience, scale](const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round) -> Verdict {
    block.require_valid("lenient_verifier");
    for (std::size_t i = 0; i < block.gamma(); ++i) {
      const auto slot = static_cast<std::int64_t>(i);
      const std::size_t x = block.token(i);
      const double u = uniforms.uniform(round, slot, Purpose::acceptance);
      if (accepts(block.p(i)[x], lenience * block.q(i)[x], u)) continue;
      const core::TargetDistribution p(block.p(i));
      const core::DraftDistribution q(block.q(i));
      return {slot, sample_residual(p, q, uniforms.uniform(round, slot, Purpose::residual), scale)};
    }
    return accept_all(block, uniforms, round);
  };
}

Verifier lenient_argmax_verifier(double lenience) {
  require_lenience("lenient_argmax_verifier", lenience);
  return [lenience](const DraftedBlock& block, const UniformSource&, std::int64_t) -> Verdict {
    block.require_valid("lenient_argmax_verifier");
    std::size_t i = 0;
    for (; i < block.gamma(); ++i) {
      const std::span<const double> p = block.p(i);
      if (!(p[block.token(i)] >= lenience * *std::max_element(p.begin(), p.end()))) break;
    }
    return {static_cast<std::int64_t>(i), greedy(block.p(i))};
  };
}

Verifier typical_verifier(double epsilon, double delta) {
  core::require_in("typical_verifier", "epsilon", epsilon, 0, 1);
  core::require_in("typical_verifier", "delta", delta, 0, 1);
  return [epsilon, delta](const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round) -> Verdict {
    block.require_valid("typical_verifier");
    for (std::size_t i = 0; i < block.gamma(); ++i) {
      const std::span<const double> p = block.p(i);
      if (p[block.token(i)] > std::min(epsilon, delta * std::exp(-entropy(p)))) continue;
      const auto slot = static_cast<std::int64_t>(i);
      return {slot, sample(p, uniforms.uniform(round, slot, Purpose::residual))};
    }
    return accept_all(block, uniforms, round);
  };
}

}  // namespace specdec::sim
