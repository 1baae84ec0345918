#include "analysis/core/draft_confidence.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "analysis/core/checks.hpp"

namespace specdec::core {

void draft_confidence(std::span<const double> target, std::span<const double> draft, std::span<DraftConfidence> bins) {
  require_same_size("draft_confidence", "draft", draft.size(), "target", target.size());
  if (bins.empty()) throw std::invalid_argument("draft_confidence: bins is empty, but must have at least one");
  std::fill(bins.begin(), bins.end(), DraftConfidence{});
  const auto count = static_cast<double>(bins.size());
  for (std::size_t x = 0; x < draft.size(); ++x) {
    const double q = draft[x];
    if (!(q > 0)) continue;
    DraftConfidence& bin = bins[static_cast<std::size_t>(std::min(q * count, count - 1))];
    bin.drafted += q;
    bin.confidence += q * q;
    bin.accepted += std::min(target[x], q);
  }
}

}  // namespace specdec::core
