#include "analysis/theory/block_verification.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"

namespace specdec::theory {
namespace {

/// sum_x max(0, prefix p(x) - q(x)).
double missing_mass(const core::TargetDistribution& p, const core::DraftDistribution& q, double prefix) {
  return core::sum_of_terms(p.size(), [&](std::size_t x) { return std::max(0.0, prefix * p[x] - q[x]); });
}

}  // namespace

BlockAcceptance block_acceptance(std::span<const double> target_rows, std::span<const double> draft_rows,
                                 std::size_t vocab, std::span<const std::int64_t> drafts) {
  core::require_same_size("block_acceptance", "target_rows", target_rows.size(), "draft_rows", draft_rows.size());
  core::require_same_size("block_acceptance", "target_rows", target_rows.size(), "rows of the drafts",
                          vocab * drafts.size());
  if (drafts.empty()) throw std::invalid_argument("block_acceptance: there are no drafts");
  BlockAcceptance block;
  double prefix = 1;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const core::TargetDistribution p(target_rows.subspan(i * vocab, vocab));
    const core::DraftDistribution q(draft_rows.subspan(i * vocab, vocab));
    if (i > 0) {
      const double missing = missing_mass(p, q, prefix);
      const double either = missing + (1 - prefix);
      block.pass.push_back(either > 0 ? missing / either : 1);
    }
    core::require_in("block_acceptance", fmt::format("draft {}", i + 1), drafts[i], 0,
                     static_cast<std::int64_t>(vocab) - 1);
    const auto token = static_cast<std::size_t>(drafts[i]);
    if (!(q[token] > 0))
      throw std::domain_error(
          fmt::format("block_acceptance: draft {} is token {}, whose draft probability is 0", i + 1, token));
    prefix = std::min(1.0, prefix * p[token] / q[token]);
    block.prefix.push_back(prefix);
  }
  block.pass.push_back(prefix);
  return block;
}

std::vector<double> accepted_drafts_law(const BlockAcceptance& block) {
  std::vector<double> law(block.pass.size() + 1);
  double later_fail = 1;
  for (std::size_t i = block.pass.size(); i > 0; --i) {
    law[i] = later_fail * block.pass[i - 1];
    later_fail *= 1 - block.pass[i - 1];
  }
  law[0] = later_fail;
  return law;
}

}  // namespace specdec::theory
