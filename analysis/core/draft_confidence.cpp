#include "analysis/core/draft_confidence.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"
#include "analysis/core/unit_bins.hpp"

namespace specdec::core {

void draft_confidence(std::span<const double> target, std::span<const double> draft, std::span<DraftConfidence> bins) {
  require_same_size("draft_confidence", "draft", draft.size(), "target", target.size());
  if (bins.empty()) throw std::invalid_argument("draft_confidence: bins is empty, but must have at least one");
  std::fill(bins.begin(), bins.end(), DraftConfidence{});
  const auto count = static_cast<double>(bins.size());
  const auto add = [&](std::size_t x) {
    const double q = draft[x];
    if (!(q > 0)) return;
    DraftConfidence& bin = bins[unit_bin(q, bins.size())];
    bin.drafted += q;
    bin.confidence += q * q;
    bin.accepted += std::min(target[x], q);
  };
  // Of a large vocabulary nearly all tokens belong to the first bin: whole blocks of them are added at once.
  constexpr std::size_t block = 32;
  std::size_t x = 0;
  for (; x + block <= draft.size(); x += block) {
    const double* const p = &target[x];
    const double* const q = &draft[x];
    if (const double drafted = sum_of_terms(block, [&](std::size_t i) { return q[i]; }); drafted * count < 1) {
      bins[0].drafted += drafted;
      bins[0].confidence += sum_of_terms(block, [&](std::size_t i) { return q[i] * q[i]; });
      bins[0].accepted += sum_of_terms(block, [&](std::size_t i) { return std::min(p[i], q[i]); });
    } else {
      for (std::size_t i = x; i < x + block; ++i) add(i);
    }
  }
  for (; x < draft.size(); ++x) add(x);
}

}  // namespace specdec::core
