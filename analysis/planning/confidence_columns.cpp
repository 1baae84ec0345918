#include "analysis/planning/confidence_columns.hpp"

#include <algorithm>

namespace specdec::planning {
namespace {

bool are_probabilities(const std::vector<double>& column) {
  return !column.empty() && std::all_of(column.begin(), column.end(), [](double p) { return 0 <= p && p <= 1; });
}

}  // namespace

ConfidenceColumns::ConfidenceColumns(std::int64_t bins)
    : rejected_below_(static_cast<std::size_t>(std::max<std::int64_t>(bins, 1)) - 1) {}

double ConfidenceColumns::threshold_of(std::size_t place) const {
  return static_cast<double>(place + 1) / static_cast<double>(rejected_below_.size() + 1);
}

std::vector<double> ConfidenceColumns::thresholds() const {
  std::vector<double> thresholds;
  for (std::size_t h = 0; h < rejected_below_.size(); ++h) thresholds.push_back(threshold_of(h));
  return thresholds;
}

void ConfidenceColumns::take(const estimate::Observations& seen, bool proposes_one_token) {
  known_ = known_ && (proposes_one_token ? take_proposals(seen) : take_samples(seen));
}

void ConfidenceColumns::fill(estimate::DraftedColumns& columns) const {
  if (!known_) return;
  columns.accepted_probability = accepted_probability_;
  columns.rejected_below = rejected_below_;
}

/// If one token is proposed, it is known, accepted or not. False if it is unknown.
bool ConfidenceColumns::take_proposals(const estimate::Observations& seen) {
  if (!are_probabilities(seen.draft_top_probability)) return false;
  accepted_probability_ = seen.draft_top_probability;
  varies_ = varies_ || std::any_of(accepted_probability_.begin(), accepted_probability_.end(),
                                   [](double probability) { return probability < 1; });
  for (std::size_t h = 0; h < rejected_below_.size(); ++h) {
    rejected_below_[h].resize(accepted_probability_.size());
    std::transform(accepted_probability_.begin(), accepted_probability_.end(), rejected_below_[h].begin(),
                   [&](double probability) { return probability < threshold_of(h) ? 1 : 0; });
  }
  return true;
}

/// A sampled draft that is rejected has the law norm(max(0, q - p)), whatever the text is. False without rows.
bool ConfidenceColumns::take_samples(const estimate::Observations& seen) {
  if (!are_probabilities(seen.draft_token_probability) || seen.by_confidence.empty()) return false;
  varies_ = true;
  accepted_probability_ = seen.draft_token_probability;
  for (std::vector<double>& below : rejected_below_) below.assign(accepted_probability_.size(), 0);
  for (std::size_t i = 0; i < accepted_probability_.size(); ++i) {
    const auto rejected = [&](std::size_t bin) {
      const core::DraftConfidence& its = seen.by_confidence[bin][i];
      return std::max(0.0, its.drafted - its.accepted);
    };
    double all = 0;
    for (std::size_t bin = 0; bin < seen.by_confidence.size(); ++bin) all += rejected(bin);
    if (!(all > 0)) continue;
    double below = 0;
    for (std::size_t h = 0; h < rejected_below_.size(); ++h) {
      below += rejected(h);
      rejected_below_[h][i] = std::min(1.0, below / all);
    }
  }
  return true;
}

}  // namespace specdec::planning
