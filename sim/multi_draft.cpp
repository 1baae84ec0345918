#include "sim/multi_draft.hpp"

#include <algorithm>
#include <boost/math/tools/roots.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <limits>
#include <string_view>

#include "analysis/core/checks.hpp"
#include "sim/sampling.hpp"
#include "sim/weight_sums.hpp"

namespace specdec::sim {
namespace {

using ProbabilityRow = std::vector<double>;

constexpr double rounding = 4 * std::numeric_limits<double>::epsilon();

void require_candidates(std::string_view function, const DraftedCandidates& candidates) {
  core::require_same_size(function, "target_row", candidates.target_row.size(), "draft_row",
                          candidates.draft_row.size());
  for (const Token x : candidates.drafted)
    core::require_in(function, "candidate", std::int64_t{x}, 0,
                     static_cast<std::int64_t>(candidates.target_row.size()) - 1);
}

double sum(std::span<const double> row) {
  return sum_of_weights(row.size(), [&](std::size_t x) { return row[x]; });
}

/// norm(max(0, p - q)); p itself if only rounding leads here.
void subtract(ProbabilityRow& p, std::span<const double> q) {
  const double mass = sum_of_weights(p.size(), [&](std::size_t x) { return std::max(0.0, p[x] - q[x]); });
  if (mass <= rounding) return;
  for (std::size_t x = 0; x < p.size(); ++x) p[x] = std::max(0.0, p[x] - q[x]) / mass;
}

/// Removes a token from a law. @return true if something is left
bool remove(ProbabilityRow& q, std::size_t token) {
  q[token] = 0;
  const double mass = sum(q);
  if (!(mass > 0)) return false;
  for (double& x : q) x /= mass;
  return true;
}

CandidateVerdict verify_in_turn(const DraftedCandidates& candidates, bool with_replacement,
                                const UniformSource& uniforms, std::int64_t round, std::int64_t slot) {
  // For the first candidate the original rows; copies are made if it is rejected.
  std::span<const double> target = candidates.target_row;
  std::span<const double> draft = candidates.draft_row;
  ProbabilityRow p;
  ProbabilityRow q;
  for (std::size_t i = 0; i < candidates.drafted.size(); ++i) {
    const auto x = static_cast<std::size_t>(candidates.drafted[i]);
    const double u = uniforms.uniform(round, slot + static_cast<std::int64_t>(i), Purpose::acceptance);
    if (accepts(target[x], draft[x], u)) return {i, candidates.drafted[i]};
    if (i == 0) target = p = ProbabilityRow(target.begin(), target.end());
    subtract(p, draft);
    if (with_replacement || i + 1 == candidates.drafted.size()) continue;
    if (i == 0) draft = q = ProbabilityRow(draft.begin(), draft.end());
    if (!remove(q, x)) break;
  }
  return {std::nullopt, sample(target, uniforms.uniform(round, slot, Purpose::residual))};
}

/// 1 - b(rho), and 1 - rho b(rho), each summed without cancellation.
struct Shortfalls {
  double rejected = 0;
  double missing = 0;
};

Shortfalls shortfalls(std::span<const double> p, std::span<const double> q, double divisor) {
  return {sum_of_weights(p.size(), [&](std::size_t x) { return std::max(0.0, q[x] - p[x] / divisor); }),
          sum_of_weights(p.size(), [&](std::size_t x) { return std::max(0.0, p[x] - divisor * q[x]); })};
}

}  // namespace

CandidateVerdict verify_recursively(const DraftedCandidates& candidates, const UniformSource& uniforms,
                                    std::int64_t round, std::int64_t slot) {
  require_candidates("verify_recursively", candidates);
  return verify_in_turn(candidates, true, uniforms, round, slot);
}

CandidateVerdict verify_recursively_without_replacement(const DraftedCandidates& candidates,
                                                        const UniformSource& uniforms, std::int64_t round,
                                                        std::int64_t slot) {
  require_candidates("verify_recursively_without_replacement", candidates);
  return verify_in_turn(candidates, false, uniforms, round, slot);
}

CandidateVerdict verify_k_sequentially(const DraftedCandidates& candidates, const UniformSource& uniforms,
                                       std::int64_t round, std::int64_t slot) {
  require_candidates("verify_k_sequentially", candidates);
  const std::span<const double> p = candidates.target_row;
  const std::span<const double> q = candidates.draft_row;
  const auto k = static_cast<std::int64_t>(candidates.drafted.size());
  if (k == 0) return {std::nullopt, sample(p, uniforms.uniform(round, slot, Purpose::residual))};
  const double divisor = k_sequential_divisor(p, q, k);
  for (std::size_t i = 0; i < candidates.drafted.size(); ++i) {
    const auto x = static_cast<std::size_t>(candidates.drafted[i]);
    const double u = uniforms.uniform(round, slot + static_cast<std::int64_t>(i), Purpose::acceptance);
    if (accepts(p[x], divisor * q[x], u)) return {i, candidates.drafted[i]};
  }
  // (1 - (1 - b)^k) / b as a sum of powers, which needs no b > 0.
  const double rejected = std::min(shortfalls(p, q, divisor).rejected, 1.0);
  double taken = 0;
  for (std::int64_t i = 0; i < k; ++i) taken = taken * rejected + 1;
  ProbabilityRow rest(p.size());
  for (std::size_t x = 0; x < p.size(); ++x) rest[x] = std::max(0.0, p[x] - std::min(p[x] / divisor, q[x]) * taken);
  const double u = uniforms.uniform(round, slot, Purpose::residual);
  return {std::nullopt, sum(rest) <= rounding ? sample(p, u) : sample(rest, u)};
}

CandidateVerdict verify_by_membership(const DraftedCandidates& candidates, const UniformSource& uniforms,
                                      std::int64_t round, std::int64_t slot) {
  require_candidates("verify_by_membership", candidates);
  const Token own = sample(candidates.target_row, uniforms.uniform(round, slot, Purpose::acceptance));
  const auto found = std::ranges::find(candidates.drafted, own);
  if (found == candidates.drafted.end()) return {std::nullopt, own};
  return {static_cast<std::size_t>(found - candidates.drafted.begin()), own};
}

double k_sequential_divisor(std::span<const double> target_row, std::span<const double> draft_row,
                            std::int64_t candidates) {
  core::require_same_size("k_sequential_divisor", "target_row", target_row.size(), "draft_row", draft_row.size());
  core::require_in("k_sequential_divisor", "candidates", candidates, 1, std::numeric_limits<std::int64_t>::max());
  const auto k = static_cast<double>(candidates);
  const auto f = [&](double divisor) {
    const Shortfalls sums = shortfalls(target_row, draft_row, divisor);
    return sums.missing - std::pow(sums.rejected, k);
  };
  const double at_least = f(1);
  if (at_least <= 0) return 1;
  const double at_most = f(k);
  if (at_most >= 0) return k;
  // If f is nearly flat on one side of its root, interpolation approaches it from the other side alone.
  boost::math::tools::eps_tolerance<double> is_narrow;
  std::uintmax_t interpolations = 20;
  const auto [below, above] =
      boost::math::tools::toms748_solve(f, 1.0, k, at_least, at_most, is_narrow, interpolations);
  return is_narrow(below, above) ? above : boost::math::tools::bisect(f, below, above, is_narrow).second;
}

std::vector<Token> sample_without_replacement(std::span<const double> draft_row, std::int64_t k,
                                              const UniformSource& uniforms, std::int64_t round, std::int64_t slot) {
  core::require_in("sample_without_replacement", "k", k, 0, std::numeric_limits<std::int64_t>::max());
  std::vector<Token> drawn;
  ProbabilityRow q;
  for (std::int64_t i = 0; i < k; ++i) {
    if (i == 1) q.assign(draft_row.begin(), draft_row.end());
    if (i > 0 && !remove(q, static_cast<std::size_t>(drawn.back()))) break;
    drawn.push_back(sample(i == 0 ? draft_row : q, uniforms.uniform(round, slot + i, Purpose::draft)));
  }
  return drawn;
}

}  // namespace specdec::sim
