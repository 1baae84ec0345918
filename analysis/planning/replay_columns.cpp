#include "analysis/planning/replay_columns.hpp"

#include <fmt/format.h>
#include <cmath>

namespace specdec::planning {

bool ReplayColumns::take(const estimate::Observations& seen) {
  own_lower_.clear();
  own_upper_.clear();
  if (!seen.accepted_length.empty()) {
    take_lengths(seen);
  } else if (!seen.acceptance.empty()) {
    take_rates(seen);
  } else {
    return false;
  }
  return true;
}

std::int64_t ReplayColumns::next_of(std::int64_t sequence) {
  if (sequence != sequence_) {
    length_ = 0;
    lengths_.clear();
  }
  sequence_ = sequence;
  return length_++;
}

void ReplayColumns::take_rates(const estimate::Observations& seen) {
  const std::vector<double>& lower = seen.acceptance.lower;
  const std::vector<double>& highest = seen.acceptance.highest();
  const auto is_unknown = [](double rate) { return std::isnan(rate); };
  if (depths_ == 1 && seen.depths == 1 && seen.acceptance.exact() &&
      std::none_of(lower.begin(), lower.end(), is_unknown)) {
    lower_ = upper_ = lower;
    exact_ = true;
    return;
  }
  for (std::int64_t i = 0; i < seen.size; ++i) {
    const std::int64_t before = next_of(seen.sequence[static_cast<std::size_t>(i)]);
    for (std::int64_t depth = 0; depth < depths_; ++depth) {
      const auto at = static_cast<std::size_t>(i * seen.depths + std::min(depth, seen.depths - 1));
      const bool reached = depth <= before;
      own_lower_.push_back(!reached || is_unknown(lower[at]) ? 0 : lower[at]);
      own_upper_.push_back(!reached ? 0 : is_unknown(highest[at]) ? 1 : highest[at]);
    }
  }
  lower_ = own_lower_;
  upper_ = own_upper_;
  exact_ = own_lower_ == own_upper_;
}

void ReplayColumns::take_lengths(const estimate::Observations& seen) {
  for (std::int64_t i = 0; i < seen.size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    next_of(seen.sequence[at]);
    if (std::ssize(lengths_) >= 2 * depths_) lengths_.erase(lengths_.begin(), lengths_.end() - depths_);
    lengths_.push_back(seen.accepted_length[at]);
    largest_length_ = std::max(largest_length_, lengths_.back());
    for (std::int64_t depth = 0; depth < depths_; ++depth) {
      const std::int64_t start = std::ssize(lengths_) - 1 - depth;
      own_lower_.push_back(start >= 0 && lengths_[static_cast<std::size_t>(start)] > depth + 1 ? 1 : 0);
    }
  }
  lower_ = upper_ = own_lower_;
  exact_ = true;
}

std::optional<std::int64_t> ReplayColumns::longest_draft() const {
  if (largest_length_ == 0) return std::nullopt;
  return std::max(1, largest_length_ - 1);
}

std::optional<Note> ReplayColumns::depth_held(std::int64_t gamma) const {
  if (depths_ == 1 || gamma <= depths_) return std::nullopt;
  return Note{
      "depth_held",
      fmt::format("drafts are recorded to depth {}; the acceptance of the last is held beyond, which is approximate",
                  depths_)};
}

std::string no_longer_draft(std::int64_t longest) {
  return fmt::format(
      "no accepted length exceeds {}, so that the recording does not tell whether drafts of more than {} were made, "
      "nor "
      "what they would have gained",
      longest + 1, longest == 1 ? "1 token" : fmt::format("{} tokens", longest));
}

bool lacks_tokens(const traces::PositionBatch& batch) {
  const bool has_rows = batch.tier == traces::Tier::full || batch.tier == traces::Tier::top_k;
  return has_rows && batch.token.empty();
}

std::string nothing_of_acceptance(bool lacks_tokens) {
  std::string why = "the recording says nothing of acceptance under this rule";
  if (lacks_tokens) why += ": column token is missing, the emitted tokens";
  return why;
}

}  // namespace specdec::planning
