#include "analysis/theory/policy_replay.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "analysis/core/checks.hpp"

namespace specdec::theory {

PolicyReplay::PolicyReplay(const DraftingLimit& limit) : limit_(limit) {
  core::require_in("PolicyReplay", "gamma", limit.gamma, 0, std::numeric_limits<std::int64_t>::max());
  core::require_in("PolicyReplay", "token_threshold", limit.token_threshold, 0, 1);
  core::require_in("PolicyReplay", "product_threshold", limit.product_threshold, 0, 1);
}

void PolicyReplay::add(std::span<const std::int64_t> sequence, std::span<const double> acceptance, std::int64_t depths,
                       std::span<const double> draft_probability) {
  core::require_in("PolicyReplay::add", "depths", depths, 1, std::numeric_limits<std::int64_t>::max());
  const auto columns = static_cast<std::size_t>(depths);
  core::require_same_size("PolicyReplay::add", "sequence", sequence.size(), "acceptance", acceptance.size() / columns);
  const bool looks = limit_.token_threshold > 0 || limit_.product_threshold > 0;
  if (looks)
    core::require_same_size("PolicyReplay::add", "sequence", sequence.size(), "draft_probability",
                            draft_probability.size());
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    if (sequence_ != sequence[i]) {
      sequence_ = sequence[i];
      under_way_.clear();
      starts_ = 1;
    }
    const double own = looks ? draft_probability[i] : 1;
    core::require_in("PolicyReplay::add", "draft_probability", own, 0, 1);
    take(acceptance.subspan(i * columns, columns), own);
  }
}

void PolicyReplay::take(std::span<const double> acceptance, double draft_probability) {
  steps_.add(starts_);
  under_way_.push_back({starts_, 1, 0, limit_.gamma == 0});
  double next_starts = 0;
  for (Step& step : under_way_) {
    if (step.stopped) {
      next_starts += step.weight;
      step.weight = 0;
      continue;
    }
    const double a = acceptance[std::min(static_cast<std::size_t>(step.drafted), acceptance.size() - 1)];
    core::require_in("PolicyReplay::add", "acceptance", a, 0, 1);
    next_starts += step.weight * (1 - a);
    step.weight *= a;
    step.product *= draft_probability;
    ++step.drafted;
    step.stopped = step.drafted == limit_.gamma || draft_probability < limit_.token_threshold ||
                   step.product < limit_.product_threshold;
  }
  starts_ = next_starts;
  std::erase_if(under_way_, [](const Step& step) { return step.weight == 0; });
}

}  // namespace specdec::theory
