#include "traces/formats/token_pair_columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "traces/formats/json_fields.hpp"
#include "traces/formats/log_probability.hpp"
#include "traces/formats/printable.hpp"
#include "traces/prompt_id.hpp"

namespace specdec::traces {
namespace {

/// A mass in [0, 1], NaN if unknown.
std::optional<float> overlap_of(double value) {
  constexpr double rounding = 1e-4;
  if (std::isnan(value)) return std::numeric_limits<float>::quiet_NaN();
  if (!(0 <= value && value <= 1 + rounding)) return std::nullopt;
  return static_cast<float>(std::min(value, 1.0));
}

}  // namespace

std::optional<PairColumn> PairColumnNames::column_of(std::string_view name) {
  if (!name.empty() && name == options_.target_array) return PairColumn::target;
  if (!name.empty() && name == options_.draft_array) return PairColumn::draft;
  if (const auto model = model_column(name)) {
    const bool target = model->role == Role::target;
    if (model->rank) return target ? PairColumn::target_rank : PairColumn::draft_rank;
    const std::string& chosen = target ? options_.target_array : options_.draft_array;
    if (chosen.empty()) return target ? PairColumn::target : PairColumn::draft;
    return std::nullopt;
  }
  return index_column(name);
}

std::optional<PairColumn> PairColumnNames::add(std::string_view name) {
  const auto column = column_of(name);
  if (!column) {
    constexpr std::size_t most_named = 20;
    if (not_read_.size() < most_named) not_read_.push_back(printable(name));
    return std::nullopt;
  }
  const auto [place, is_new] = names_.emplace(*column, name);
  if (!is_new && !ambiguous_) {
    ambiguous_ = LabelError{"columns", fmt::format("{} and {}", printable(place->second), printable(name)),
                            fmt::format("one of the two, as they mean the same{}",
                                        *column == PairColumn::target  ? " (target_array says which)"
                                        : *column == PairColumn::draft ? " (draft_array says which)"
                                                                       : "")};
  }
  if (const auto space = space_named_in(name)) spaces_.emplace(*column, *space);
  return column;
}

std::string PairColumnNames::name_of(PairColumn column) const {
  const auto found = names_.find(column);
  return found == names_.end() ? std::string("row") : printable(found->second);
}

std::optional<RowSpace> PairColumnNames::space_of(PairColumn column) const {
  const auto found = spaces_.find(column);
  return found == spaces_.end() ? options_.space : found->second;
}

std::optional<LabelError> PairColumnNames::error() const {
  if (ambiguous_) return ambiguous_;
  for (const PairColumn model : {PairColumn::target, PairColumn::draft}) {
    const bool target = model == PairColumn::target;
    if (!has(model)) {
      return LabelError{fmt::format("the {}'s column", target ? "target" : "draft"), "missing",
                        target ? "named like p, target_logprob or p_prob, or as target_array says"
                               : "named like q, draft_logprob or q_prob, or as draft_array says"};
    }
    if (space_of(model) == RowSpace::logits) {
      return LabelError{name_of(model), "a logit",
                        "a probability or log-probability: of one logit the normaliser is lost"};
    }
  }
  return std::nullopt;
}

std::vector<Note> PairColumnNames::notes() const {
  if (not_read_.empty()) return {};
  return {{"columns_not_read", fmt::format("not read: {}", fmt::join(not_read_, ", "))}};
}

std::optional<PairError> PairColumns::append(const PairRow& row, std::int64_t line, TraceMetadata& metadata) {
  const auto refuse_number = [&](PairColumn model, double value) {
    return PairError{model, fmt::format("{}", value),
                     space_of(model) == RowSpace::probabilities ? "a probability" : "a log-probability, at most 0"};
  };
  const auto target = logprob_of(row.target, target_space_);
  if (!target) return refuse_number(PairColumn::target, row.target);
  const auto draft = logprob_of(row.draft, draft_space_);
  if (!draft) return refuse_number(PairColumn::draft, row.draft);
  const auto overlap = overlap_of(row.overlap);
  if (!overlap) return PairError{PairColumn::overlap, fmt::format("{}", row.overlap), "in [0, 1]"};
  if (row.token < -1 || row.token > largest_token_id) {
    return PairError{PairColumn::token, fmt::format("{}", row.token), fmt::format("in [0, {}]", largest_token_id)};
  }
  for (const auto& [column, rank] :
       {std::pair(PairColumn::target_rank, row.target_rank), std::pair(PairColumn::draft_rank, row.draft_rank)}) {
    if (rank < 0 || rank > largest_token_id) {
      return PairError{column, fmt::format("{}", rank), fmt::format("in [1, {}]", largest_token_id)};
    }
  }
  const auto task = task_ids_.id_of(row.task, metadata.task_names);
  if (!task) return PairError{PairColumn::task, printable(row.task), TaskIds::expected()};
  if (auto error = numbers_.next(row.label, row.place)) {
    return PairError{error->field == "pos" ? PairColumn::place : PairColumn::sequence, error->found, error->expected};
  }
  const std::int64_t prompt = prompt_id(row.prompt);
  if (numbers_.place() > 0 && !batch_.prompt.empty() && prompt != batch_.prompt.back()) {
    return PairError{PairColumn::prompt, row.prompt.empty() ? "missing" : printable(row.prompt),
                     "the same for all rows of a sequence"};
  }
  lines_.push_back(line);
  ++batch_.size;
  batch_.sequence.push_back(numbers_.sequence());
  batch_.place.push_back(numbers_.place());
  batch_.token.push_back(static_cast<std::int32_t>(row.token));
  batch_.task.push_back(*task);
  batch_.prompt.push_back(prompt);
  batch_.target_token_logprob.push_back(*target);
  batch_.draft_token_logprob.push_back(*draft);
  batch_.overlap.push_back(*overlap);
  batch_.target_token_rank.push_back(static_cast<std::int32_t>(row.target_rank));
  batch_.draft_token_rank.push_back(static_cast<std::int32_t>(row.draft_rank));
  return std::nullopt;
}

void PairColumns::clear() {
  batch_.clear();
  lines_.clear();
}

PositionBatch PairColumns::shown(const PairColumnNames& names) const {
  PositionBatch shown = batch_.view();
  if (!names.has(PairColumn::token)) shown.token = {};
  if (!names.has(PairColumn::task)) shown.task = {};
  if (!names.has(PairColumn::prompt)) shown.prompt = {};
  if (!names.has(PairColumn::overlap)) shown.overlap = {};
  if (!names.has(PairColumn::target_rank)) shown.target_token_rank = {};
  if (!names.has(PairColumn::draft_rank)) shown.draft_token_rank = {};
  return shown;
}

std::optional<RowSpace> space_shown_by(double value) {
  if (value < 0) return RowSpace::log_probabilities;
  if (value > 0) return RowSpace::probabilities;
  return std::nullopt;
}

}  // namespace specdec::traces
