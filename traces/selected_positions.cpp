#include "traces/selected_positions.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "traces/batch_slice.hpp"

namespace specdec::traces {

UnknownTask::UnknownTask(const std::string& task)
    : std::invalid_argument(fmt::format("SelectedPositions: task is {}, but must be a task of the recording", task)),
      task_(task) {}

SelectedPositions::SelectedPositions(std::unique_ptr<PositionSource> source, Selection selection)
    : ForwardingSource(std::move(source)), selection_(std::move(selection)) {}

bool SelectedPositions::keeps(std::int64_t i) {
  const auto at = static_cast<std::size_t>(i);
  if (!selection_.positions.contains(whole_.first + i) || !selection_.sequences.contains(whole_.sequence[at])) {
    return false;
  }
  if (selection_.tasks.empty()) return true;
  const std::int32_t task = whole_.task.empty() ? -1 : whole_.task[at];
  if (task < 0) return false;
  const std::string name = task_name(metadata().task_names, task);
  if (std::find(selection_.tasks.begin(), selection_.tasks.end(), name) == selection_.tasks.end()) return false;
  found_.insert(name);
  return true;
}

bool SelectedPositions::read(PositionBatch& batch) {
  for (;;) {
    while (next_ < whole_.size && !keeps(next_)) ++next_;
    if (next_ < whole_.size) break;
    if (whole_.first + whole_.size >= selection_.positions.end || !source().read(whole_)) {
      require_known_tasks();
      return false;
    }
    next_ = 0;
    positions_read_ = whole_.first + whole_.size;
    sequences_read_ = whole_.sequence.back() + 1;
  }
  const std::int64_t start = next_;
  while (next_ < whole_.size && keeps(next_)) ++next_;
  hand_out(start, next_ - start, batch);
  return true;
}

void SelectedPositions::hand_out(std::int64_t start, std::int64_t count, PositionBatch& batch) {
  batch = slice_of(whole_, start, count);
  if (batch.first != end_of_last_) sequence_of_last_ = -1;
  sequence_.clear();
  for (const std::int64_t sequence : batch.sequence) {
    if (sequence != sequence_of_last_) ++sequences_;
    sequence_of_last_ = sequence;
    sequence_.push_back(sequences_ - 1);
  }
  end_of_last_ = batch.first + count;
  batch.sequence = sequence_;
  batch.first = positions_;
  positions_ += count;
}

FileError SelectedPositions::refusal(std::int64_t position, Role role, std::string found, std::string expected) const {
  return source().refusal(end_of_last_ - (positions_ - position), role, std::move(found), std::move(expected));
}

void SelectedPositions::require_known_tasks() const {
  const std::vector<std::string>& names = metadata().task_names;
  for (const std::string& task : selection_.tasks) {
    if (found_.count(task) > 0 || std::find(names.begin(), names.end(), task) != names.end()) continue;
    throw UnknownTask(task);
  }
}

}  // namespace specdec::traces
