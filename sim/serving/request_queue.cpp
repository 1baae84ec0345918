#include "sim/serving/request_queue.hpp"

#include <algorithm>

namespace specdec::sim {

RequestQueue::RequestQueue(const ServingQuestion& question, std::vector<ServedRequest>& outcomes)
    : outcomes_(outcomes), sent_(outcomes.size()) {
  if (question.clients) {
    sent_ = std::min(sent_, static_cast<std::size_t>(*question.clients));
    return;
  }
  for (std::size_t i = 0; i < sent_; ++i) outcomes_[i].arrival_seconds = question.requests[i].arrival_seconds;
}

std::optional<std::size_t> RequestQueue::send(double arrival) {
  if (sent_ == outcomes_.size()) return std::nullopt;
  outcomes_[sent_].arrival_seconds = arrival;
  return sent_++;
}

}  // namespace specdec::sim
