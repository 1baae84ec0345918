#include "traces/batch_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace specdec::traces {

void BatchColumns::open(const TraceShard& shard) {
  shard_ = &shard;
  reader_.set_shard(shard_);
  read_vocab_map();
}

void BatchColumns::read(std::int64_t row, std::int64_t count, PositionBatch& batch) {
  first_ = row;
  reader_.set_rows(row, count);
  batch.size = count;
  batch.tier = shard_->tier();
  read_index(batch);
  read_rows(batch);
  read_top_k(batch);
  read_scalars(batch);
  read_rounds(batch);
}

void BatchColumns::read_vocab_map() {
  vocab_map_.clear();
  const Tensor* tensor = shard_->tensors().vocab_map;
  if (tensor == nullptr) return;
  reader_.set_rows(0, tensor->shape[0]);
  const auto map = reader_.values(tensor, vocab_map_);
  vocab_map_.assign(map.begin(), map.end());
  const std::int64_t vocab = *shard_->vocab();
  std::vector<bool> seen(static_cast<std::size_t>(vocab));
  for (std::size_t i = 0; i < vocab_map_.size(); ++i) {
    const std::int32_t id = vocab_map_[i];
    const bool inside = 0 <= id && id < vocab;
    if (inside && !seen[static_cast<std::size_t>(id)]) {
      seen[static_cast<std::size_t>(id)] = true;
    } else {
      reader_.report(*tensor, static_cast<std::int64_t>(i), fmt::format("{}{}", id, inside ? " again" : ""),
                     fmt::format("in [0, {}), each once", vocab));
    }
  }
}

void BatchColumns::read_index(PositionBatch& batch) {
  const ShardTensors& t = shard_->tensors();
  const auto seq = reader_.values(t.seq, seq_);
  const auto pos = reader_.values(t.pos, pos_);
  if (t.pos != nullptr) reader_.require_in<std::int64_t>(t.pos, pos, 0, std::numeric_limits<std::int64_t>::max());
  columns_.sequence.resize(static_cast<std::size_t>(batch.size));
  columns_.place.resize(columns_.sequence.size());
  sequences_.number(seq, pos, columns_.sequence, columns_.place);
  batch.sequence = columns_.sequence;
  batch.place = columns_.place;
  batch.token = reader_.values(t.token, columns_.token);
  reader_.require_in(t.token, batch.token, -1, last_id());
  batch.task = reader_.values(t.task, columns_.task);
  const auto tasks = static_cast<std::int32_t>(tasks_);
  reader_.require_in(t.task, batch.task, -1, tasks == 0 ? std::numeric_limits<std::int32_t>::max() : tasks - 1);
  read_prompts(batch);
}

void BatchColumns::read_prompts(PositionBatch& batch) {
  const Tensor* const tensor = shard_->tensors().prompt;
  batch.prompt = reader_.values(tensor, columns_.prompt);
  for (std::size_t i = 0; i < batch.prompt.size(); ++i) {
    const std::int64_t prompt = batch.prompt[i];
    const bool goes_on = batch.place[i] > 0 && prompt_of_last_;
    if (goes_on && prompt != *prompt_of_last_) {
      reader_.report(*tensor, static_cast<std::int64_t>(i), fmt::format("{}", prompt),
                     fmt::format("{}, as before it in the sequence", *prompt_of_last_));
    }
    prompt_of_last_ = prompt;
  }
  if (batch.prompt.empty()) prompt_of_last_.reset();
}

std::int32_t BatchColumns::last_id() const {
  constexpr std::int32_t largest = std::numeric_limits<std::int32_t>::max();
  return vocab_size_ ? static_cast<std::int32_t>(*vocab_size_ - 1) : largest;
}

void BatchColumns::read_rows(PositionBatch& batch) {
  const ShardTensors& t = shard_->tensors();
  if (t.target.rows == nullptr) return;
  read_rows(t.target, batch.size, target_rows_, batch.target_rows);
  read_rows(t.draft, batch.size, draft_rows_, batch.draft_rows);
  batch.draft_vocab_map = vocab_map_;
}

void BatchColumns::read_rows(const ModelTensors& model, std::int64_t count, std::vector<float>& buffer, Rows& rows) {
  const Tensor& tensor = *model.rows;
  rows.space = model.space;
  rows.type = tensor.type;
  rows.vocab = tensor.shape[1];
  rows.sum_tolerance = model.sum_tolerance;
  if (tensor.type == ElementType::f64) {
    rows.type = ElementType::f32;
    rows.bytes = std::as_bytes(reader_.values(&tensor, buffer));
    return;
  }
  const std::int64_t row_bytes = rows.vocab * size_of(tensor.type);
  rows.bytes =
      tensor.bytes.subspan(static_cast<std::size_t>(first_ * row_bytes), static_cast<std::size_t>(count * row_bytes));
}

void BatchColumns::read_top_k(PositionBatch& batch) {
  const ShardTensors& t = shard_->tensors();
  read_top_k(t.target, columns_.target_top_k, batch.target_top_k);
  read_top_k(t.draft, columns_.draft_top_k, batch.draft_top_k);
}

void BatchColumns::read_top_k(const ModelTensors& model, OwnedBatch::TopKColumns& buffers, TopK& top) {
  if (model.topk_ids == nullptr) return;
  top.k = model.topk_ids->shape[1];
  top.ids = reader_.values(model.topk_ids, buffers.ids);
  top.logprobs = reader_.values(model.topk_logprobs, buffers.logprobs);
  top.tail_logprob = reader_.values(model.tail_logprob, buffers.tail_logprob);
  top.at_other = reader_.values(model.at_other_topk, buffers.at_other);
  reader_.require_in(model.topk_ids, top.ids, -1, last_id());
  reader_.require_logprobs(model.topk_logprobs, top.logprobs);
  reader_.require_logprobs_or_nan(model.tail_logprob, top.tail_logprob);
  reader_.require_logprobs_or_nan(model.at_other_topk, top.at_other);
  require_padding_without_mass(model, top);
  require_ids_once(model, top);
}

void BatchColumns::require_padding_without_mass(const ModelTensors& model, const TopK& top) {
  constexpr float floor = -9999;
  for (std::size_t i = 0; i < top.ids.size(); ++i) {
    if (top.ids[i] >= 0 || !(top.logprobs[i] > floor)) continue;
    reader_.report(*model.topk_logprobs, static_cast<std::int64_t>(i), fmt::format("{}", top.logprobs[i]),
                   "-inf where the id is -1");
  }
}

void BatchColumns::require_ids_once(const ModelTensors& model, const TopK& top) {
  const auto k = static_cast<std::size_t>(top.k);
  for (std::size_t begin = 0; begin < top.ids.size(); begin += k) {
    const std::int64_t repeat = repeats_.first_repeat(top.ids.subspan(begin, k));
    if (repeat < 0) continue;
    const std::size_t at = begin + static_cast<std::size_t>(repeat);
    reader_.report(*model.topk_ids, static_cast<std::int64_t>(at), fmt::format("{} again", top.ids[at]),
                   "each id once in a row");
  }
}

void BatchColumns::read_scalars(PositionBatch& batch) {
  const ShardTensors& t = shard_->tensors();
  batch.target_token_logprob = reader_.values(t.target.token_logprob, columns_.target_token_logprob);
  reader_.require_logprobs(t.target.token_logprob, batch.target_token_logprob);
  read_draft_token_logprob(batch);
  batch.overlap = reader_.values(t.overlap, columns_.overlap);
  const auto most = t.overlap == nullptr ? 1.0F : static_cast<float>(1 + row_sum_tolerance(t.overlap->type));
  reader_.require(
      t.overlap, batch.overlap, [=](float value) { return std::isnan(value) || (0 <= value && value <= most); },
      "in [0, 1], or NaN where unknown");
  batch.target_token_rank = reader_.values(t.target.token_rank, columns_.target_token_rank);
  batch.draft_token_rank = reader_.values(t.draft.token_rank, columns_.draft_token_rank);
  const std::int32_t last_rank = vocab_size_ ? last_id() + 1 : last_id();
  reader_.require_in(t.target.token_rank, batch.target_token_rank, 0, last_rank);
  reader_.require_in(t.draft.token_rank, batch.draft_token_rank, 0, last_rank);
  batch.accepted_length = reader_.values(t.accepted_length, columns_.accepted_length);
  reader_.require_in(t.accepted_length, batch.accepted_length, 1, std::numeric_limits<std::int32_t>::max());
}

void BatchColumns::read_draft_token_logprob(PositionBatch& batch) {
  const Tensor* tensor = shard_->tensors().draft.token_logprob;
  batch.draft_token_logprob = reader_.values(tensor, columns_.draft_token_logprob);
  if (tensor == nullptr) return;
  batch.depths = ColumnReader::width_of(*tensor);
  if (batch.depths == 1) return reader_.require_logprobs(tensor, batch.draft_token_logprob);
  reader_.require_logprobs_or_nan(tensor, batch.draft_token_logprob);
  for (std::int64_t i = 0; i < batch.size; ++i) {
    const std::int64_t depths_before = std::min(columns_.place[static_cast<std::size_t>(i)] + 1, batch.depths);
    for (std::int64_t j = 0; j < depths_before; ++j) {
      const std::int64_t at = i * batch.depths + j;
      if (!std::isnan(batch.draft_token_logprob[static_cast<std::size_t>(at)])) continue;
      reader_.report(*tensor, at, "nan", "a log-probability: only depths beyond the sequence's begin are NaN");
    }
  }
}

void BatchColumns::read_rounds(PositionBatch& batch) {
  const ShardTensors& t = shard_->tensors();
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  batch.step_drafted = reader_.values(t.step_drafted, columns_.step_drafted);
  batch.step_accepted = reader_.values(t.step_accepted, columns_.step_accepted);
  batch.step_time_ns = reader_.values(t.step_time_ns, columns_.step_time_ns);
  reader_.require_in(t.step_drafted, batch.step_drafted, -1, most);
  reader_.require_in<std::int64_t>(t.step_time_ns, batch.step_time_ns, -1, std::numeric_limits<std::int64_t>::max());
  for (std::size_t i = 0; i < batch.step_drafted.size(); ++i) {
    const std::int32_t drafted = batch.step_drafted[i];
    const std::int32_t accepted = batch.step_accepted[i];
    const auto at = static_cast<std::int64_t>(i);
    const bool begins = drafted >= 0;
    if (begins ? accepted < 0 || accepted > drafted : accepted != -1) {
      reader_.report(*t.step_accepted, at, fmt::format("{}", accepted),
                     begins ? fmt::format("in [0, {}] as step.drafted is", drafted) : "-1 as step.drafted is");
    }
    if (columns_.place[i] == 0) inside_round_ = 0;
    if (begins && inside_round_ > 0) {
      reader_.report(*t.step_drafted, at, fmt::format("{}", drafted),
                     fmt::format("-1: the round before emits {} more", inside_round_));
    }
    inside_round_ = begins ? accepted : std::max(inside_round_ - 1, 0);
  }
}

}  // namespace specdec::traces
