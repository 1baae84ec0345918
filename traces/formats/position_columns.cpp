#include "traces/formats/position_columns.hpp"

#include <algorithm>

namespace specdec::traces {

void PositionColumns::clear() {
  batch.clear();
  begins_.clear();
  lines_.clear();
}

void PositionColumns::end_sequence(const Labels& labels, std::int64_t target_line, std::int64_t draft_line) {
  const std::int64_t begin = batch.size;
  if (begin == size()) return;
  batch.size = size();
  for (std::int64_t i = begin; i < size(); ++i) batch.place.push_back(i - begin);
  batch.sequence.resize(batch.token.size(), next_sequence_++);
  batch.task.resize(batch.token.size(), labels.task);
  has_tasks_ = has_tasks_ || labels.task >= 0;
  batch.prompt.resize(batch.token.size(), labels.prompt);
  has_prompts_ = has_prompts_ || labels.prompt != no_prompt;
  begins_.push_back(begin);
  lines_.push_back({target_line, draft_line});
}

PositionBatch PositionColumns::shown(Tier tier) const {
  PositionBatch shown = batch.view();
  shown.tier = tier;
  if (!has_tasks_) shown.task = {};
  if (!has_prompts_) shown.prompt = {};
  if (tier != Tier::top_k) {
    shown.target_top_k = {};
    shown.draft_top_k = {};
  }
  return shown;
}

PositionColumns::Lines PositionColumns::lines_of(std::int64_t position) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), position - batch.first);
  return lines_.at(static_cast<std::size_t>(after - begins_.begin()) - 1);
}

}  // namespace specdec::traces
