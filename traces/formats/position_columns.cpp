#include "traces/formats/position_columns.hpp"

#include <algorithm>

namespace specdec::traces {
namespace {

void show_lists(const PositionColumns::Lists& lists, TopK& top) {
  top.k = lists.k;
  top.ids = lists.ids;
  top.logprobs = lists.logprobs;
  top.tail_logprob = lists.tail;
}

void clear_lists(PositionColumns::Lists& lists) {
  lists.ids.clear();
  lists.logprobs.clear();
  lists.tail.clear();
}

}  // namespace

void PositionColumns::clear() {
  first_ += size();
  token.clear();
  target_logprob.clear();
  draft_logprob.clear();
  target_rank.clear();
  draft_rank.clear();
  clear_lists(target_top);
  clear_lists(draft_top);
  sequence_.clear();
  place_.clear();
  task_.clear();
  prompt_.clear();
  begins_.clear();
  lines_.clear();
}

void PositionColumns::end_sequence(const Labels& labels, std::int64_t target_line, std::int64_t draft_line) {
  const auto begin = static_cast<std::int64_t>(sequence_.size());
  if (begin == size()) return;
  for (std::int64_t i = begin; i < size(); ++i) place_.push_back(i - begin);
  sequence_.resize(token.size(), next_sequence_++);
  task_.resize(token.size(), labels.task);
  has_tasks_ = has_tasks_ || labels.task >= 0;
  prompt_.resize(token.size(), labels.prompt);
  has_prompts_ = has_prompts_ || labels.prompt != no_prompt;
  begins_.push_back(begin);
  lines_.push_back({target_line, draft_line});
}

void PositionColumns::show(PositionBatch& batch, Tier tier) const {
  batch = {};
  batch.first = first_;
  batch.size = size();
  batch.tier = tier;
  batch.sequence = sequence_;
  batch.place = place_;
  batch.token = token;
  if (has_tasks_) batch.task = task_;
  if (has_prompts_) batch.prompt = prompt_;
  batch.target_token_logprob = target_logprob;
  batch.draft_token_logprob = draft_logprob;
  batch.target_token_rank = target_rank;
  batch.draft_token_rank = draft_rank;
  if (tier != Tier::top_k) return;
  show_lists(target_top, batch.target_top_k);
  show_lists(draft_top, batch.draft_top_k);
}

PositionColumns::Lines PositionColumns::lines_of(std::int64_t position) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), position - first_);
  return lines_.at(static_cast<std::size_t>(after - begins_.begin()) - 1);
}

}  // namespace specdec::traces
