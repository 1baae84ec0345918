#include "sim/serving/run_measures.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace specdec::sim {
namespace {

/// Its begin and end, infinity as long as they are unknown.
std::pair<double, double> counted_time_of(const ServingQuestion& question, std::size_t first) {
  constexpr double unknown = std::numeric_limits<double>::infinity();
  if (question.clients) {
    const auto clients = static_cast<std::size_t>(*question.clients);
    const bool from_the_start = first < clients || question.requests.size() - first <= clients;
    return {from_the_start ? 0 : unknown, unknown};
  }
  const double begin = question.requests[first].arrival_seconds;
  const double end = question.requests[question.requests.size() - 1 - first].arrival_seconds;
  if (begin < end) return {begin, end};
  return {question.requests.front().arrival_seconds, unknown};
}

}  // namespace

RunMeasures::RunMeasures(const ServingQuestion& question, bool finds_gaps)
    : counted_requests_(question), requests_(question.requests.size()), finds_gaps_(finds_gaps) {
  std::tie(begin_, end_) = counted_time_of(question, counted_requests_.first);
}

void RunMeasures::send(std::size_t request, double arrival) {
  const std::size_t first = counted_requests_.first;
  if (request == first) begin_ = arrival;
  if (request == requests_ - 1 - first && arrival > begin_) end_ = arrival;
}

void RunMeasures::pass(double from, double to, std::int64_t decoding) {
  decoding_time_ += static_cast<double>(decoding) * std::max(0.0, std::min(to, end_) - std::max(from, begin_));
  ++iterations_;
  counts_ = begin_ < to && to <= end_;
}

void RunMeasures::fill(ServingResult& result, double now) const {
  result.first_counted = counted_requests_.first;
  result.counted_requests = counted_requests_.count;
  const double length = std::min(end_, now) - begin_;
  result.output_tokens_per_second = static_cast<double>(tokens_) / length;
  result.mean_batch = decoding_time_ / length;
  result.iterations = iterations_;
  result.seconds = now;
  result.gaps = gaps_.sorted();
}

}  // namespace specdec::sim
