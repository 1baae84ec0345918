#include "traces/context_stretches.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "traces/prompt_id.hpp"

namespace specdec::traces {

ContextStretches::ContextStretches(std::unique_ptr<PositionSource> source, std::vector<double> bounds,
                                   std::vector<std::string> names)
    : ForwardingSource(std::move(source)), bounds_(std::move(bounds)), metadata_(this->source().metadata()) {
  if (names.size() != bounds_.size() + 1) {
    throw std::invalid_argument("ContextStretches: names must have one entry more than bounds");
  }
  metadata_.task_names = std::move(names);
}

bool ContextStretches::read(PositionBatch& batch) {
  if (!source().read(batch)) return false;
  sequence_.clear();
  prompt_.clear();
  task_.clear();
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch.size); ++i) {
    const auto place = static_cast<double>(batch.place[i]);
    const auto range =
        static_cast<std::int32_t>(std::upper_bound(bounds_.begin(), bounds_.end(), place) - bounds_.begin());
    if (batch.sequence[i] != sequence_of_last_ || range != range_of_last_) ++sequences_;
    sequence_of_last_ = batch.sequence[i];
    range_of_last_ = range;
    sequence_.push_back(sequences_ - 1);
    task_.push_back(range);
    const bool has_prompt = !batch.prompt.empty() && batch.prompt[i] != no_prompt;
    prompt_.push_back(has_prompt ? batch.prompt[i] : batch.sequence[i]);
  }
  batch.sequence = sequence_;
  batch.prompt = prompt_;
  batch.task = task_;
  return true;
}

}  // namespace specdec::traces
