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
  read_columns(batch);
  number_sequences(batch);
  if (batch.tier == Tier::full) {
    read_rows(shard_->target_rows(), count, target_rows_, batch.target_rows);
    read_rows(shard_->draft_rows(), count, draft_rows_, batch.draft_rows);
    batch.draft_vocab_map = vocab_map_;
  }
  check_labels(batch);
  check_top_k(column::target, batch.target_top_k);
  check_top_k(column::draft, batch.draft_top_k);
  check_scalars(batch);
  check_rounds(batch);
}

void BatchColumns::read_vocab_map() {
  vocab_map_.clear();
  const Tensor* tensor = shard_->find(column::vocab_map);
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

void BatchColumns::read_columns(PositionBatch& batch) {
  const auto width_of = [&](const char* name, std::int64_t otherwise) {
    const Tensor* tensor = shard_->find(name);
    return tensor == nullptr ? otherwise : ColumnReader::width_of(*tensor);
  };
  batch.target_top_k.k = width_of(column::target.topk_ids, 0);
  batch.draft_top_k.k = width_of(column::draft.topk_ids, 0);
  batch.depths = width_of(column::draft.token_logprob, 1);
  each_column(columns_, batch, [&](const char* name, auto& buffer, auto& values, std::int64_t) {
    values = reader_.values(shard_->find(name), buffer);
  });
}

void BatchColumns::number_sequences(PositionBatch& batch) {
  reader_.require_in<std::int64_t>(shard_->find(column::pos), batch.place, 0, std::numeric_limits<std::int64_t>::max());
  columns_.sequence.resize(static_cast<std::size_t>(batch.size));
  columns_.place.resize(columns_.sequence.size());
  sequences_.number(batch.sequence, batch.place, columns_.sequence, columns_.place);
  batch.sequence = columns_.sequence;
  batch.place = columns_.place;
}

void BatchColumns::check_labels(const PositionBatch& batch) {
  reader_.require_in(shard_->find(column::token), batch.token, -1, last_id());
  const auto tasks = static_cast<std::int32_t>(tasks_);
  reader_.require_in(shard_->find(column::task), batch.task, -1,
                     tasks == 0 ? std::numeric_limits<std::int32_t>::max() : tasks - 1);
  check_prompts(batch);
  reader_.require_in(shard_->find(column::accepted_length), batch.accepted_length, 1,
                     std::numeric_limits<std::int32_t>::max());
}

void BatchColumns::check_prompts(const PositionBatch& batch) {
  for (std::size_t i = 0; i < batch.prompt.size(); ++i) {
    const std::int64_t prompt = batch.prompt[i];
    const bool goes_on = batch.place[i] > 0 && prompt_of_last_;
    if (goes_on && prompt != *prompt_of_last_) {
      reader_.report(*shard_->find(column::prompt), static_cast<std::int64_t>(i), fmt::format("{}", prompt),
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

void BatchColumns::read_rows(const ShardRows& stored, std::int64_t count, std::vector<float>& buffer, Rows& rows) {
  const Tensor& tensor = *stored.tensor;
  rows.space = stored.space;
  rows.type = tensor.type;
  rows.vocab = tensor.shape[1];
  rows.sum_tolerance = stored.sum_tolerance;
  if (tensor.type == ElementType::f64) {
    rows.type = ElementType::f32;
    rows.bytes = std::as_bytes(reader_.values(&tensor, buffer));
    return;
  }
  const std::int64_t row_bytes = rows.vocab * size_of(tensor.type);
  rows.bytes =
      tensor.bytes.subspan(static_cast<std::size_t>(first_ * row_bytes), static_cast<std::size_t>(count * row_bytes));
}

void BatchColumns::check_top_k(const column::Model& names, const TopK& top) {
  const Tensor *ids = shard_->find(names.topk_ids), *logprobs = shard_->find(names.topk_logprobs);
  reader_.require_in(ids, top.ids, -1, last_id());
  reader_.require_logprobs(logprobs, top.logprobs);
  reader_.require_logprobs_or_nan(shard_->find(names.tail_logprob), top.tail_logprob);
  reader_.require_logprobs_or_nan(shard_->find(names.at_other_topk), top.at_other);
  constexpr float floor = -9999;
  for (std::size_t i = 0; i < top.ids.size(); ++i) {
    if (top.ids[i] >= 0 || !(top.logprobs[i] > floor)) continue;
    reader_.report(*logprobs, static_cast<std::int64_t>(i), fmt::format("{}", top.logprobs[i]),
                   "-inf where the id is -1");
  }
  const auto k = static_cast<std::size_t>(top.k);
  for (std::size_t begin = 0; begin < top.ids.size(); begin += k) {
    const std::int64_t repeat = repeats_.first_repeat(top.ids.subspan(begin, k));
    if (repeat < 0) continue;
    const std::size_t at = begin + static_cast<std::size_t>(repeat);
    reader_.report(*ids, static_cast<std::int64_t>(at), fmt::format("{} again", top.ids[at]), "each id once in a row");
  }
}

void BatchColumns::check_scalars(const PositionBatch& batch) {
  reader_.require_logprobs(shard_->find(column::target.token_logprob), batch.target_token_logprob);
  check_draft_token_logprob(batch);
  const Tensor* const overlap = shard_->find(column::overlap);
  const auto most = overlap == nullptr ? 1.0F : static_cast<float>(1 + row_sum_tolerance(overlap->type));
  reader_.require(
      overlap, batch.overlap, [=](float value) { return std::isnan(value) || (0 <= value && value <= most); },
      "in [0, 1], or NaN where unknown");
  const std::int32_t last_rank = vocab_size_ ? last_id() + 1 : last_id();
  reader_.require_in(shard_->find(column::target.token_rank), batch.target_token_rank, 0, last_rank);
  reader_.require_in(shard_->find(column::draft.token_rank), batch.draft_token_rank, 0, last_rank);
}

void BatchColumns::check_draft_token_logprob(const PositionBatch& batch) {
  const Tensor* tensor = shard_->find(column::draft.token_logprob);
  if (batch.depths == 1) return reader_.require_logprobs(tensor, batch.draft_token_logprob);
  reader_.require_logprobs_or_nan(tensor, batch.draft_token_logprob);
  for (std::int64_t i = 0; i < batch.size; ++i) {
    const std::int64_t depths_before = std::min(batch.place[static_cast<std::size_t>(i)] + 1, batch.depths);
    for (std::int64_t j = 0; j < depths_before; ++j) {
      const std::int64_t at = i * batch.depths + j;
      if (!std::isnan(batch.draft_token_logprob[static_cast<std::size_t>(at)])) continue;
      reader_.report(*tensor, at, "nan", "a log-probability: only depths beyond the sequence's begin are NaN");
    }
  }
}

void BatchColumns::check_rounds(const PositionBatch& batch) {
  const Tensor *drafts = shard_->find(column::step_drafted), *accepts = shard_->find(column::step_accepted);
  reader_.require_in(drafts, batch.step_drafted, -1, std::numeric_limits<std::int32_t>::max());
  reader_.require_in<std::int64_t>(shard_->find(column::step_time_ns), batch.step_time_ns, -1,
                                   std::numeric_limits<std::int64_t>::max());
  for (std::size_t i = 0; i < batch.step_drafted.size(); ++i) {
    const std::int32_t drafted = batch.step_drafted[i];
    const std::int32_t accepted = batch.step_accepted[i];
    const auto at = static_cast<std::int64_t>(i);
    const bool begins = drafted >= 0;
    if (begins ? accepted < 0 || accepted > drafted : accepted != -1) {
      reader_.report(*accepts, at, fmt::format("{}", accepted),
                     begins ? fmt::format("in [0, {}] as step.drafted is", drafted) : "-1 as step.drafted is");
    }
    if (batch.place[i] == 0) inside_round_ = 0;
    if (begins && inside_round_ > 0) {
      reader_.report(*drafts, at, fmt::format("{}", drafted),
                     fmt::format("-1: the round before emits {} more", inside_round_));
    }
    inside_round_ = begins ? accepted : std::max(inside_round_ - 1, 0);
  }
}

}  // namespace specdec::traces
