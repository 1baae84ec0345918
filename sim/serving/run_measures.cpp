#include "sim/serving/run_measures.hpp"

#include <algorithm>
#include <limits>

namespace specdec::sim {
namespace {

CountedTime counted_time_of(const ServingQuestion& question, std::size_t first) {
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

/// Earlier requests in the system when this one arrived.
std::int64_t backlog_before(std::size_t request, const std::vector<ServedRequest>& served, double outside_seconds) {
  const double time = served[request].arrival_seconds;
  std::int64_t backlog = 0;
  for (std::size_t i = 0; i < request; ++i) {
    if (served[i].arrival_seconds + served[i].last_token_seconds - outside_seconds > time) ++backlog;
  }
  return backlog;
}

}  // namespace

RunMeasures::RunMeasures(const ServingQuestion& question, bool finds_gaps)
    : counted_requests_(question),
      requests_(question.requests.size()),
      counted_time_(counted_time_of(question, counted_requests_.first)),
      finds_gaps_(finds_gaps) {}

void RunMeasures::send(std::size_t request, double arrival) {
  const std::size_t first = counted_requests_.first;
  if (request == first) counted_time_.begin_at(arrival);
  if (request == requests_ - 1 - first && arrival > counted_time_.begin()) counted_time_.end_at(arrival);
}

void RunMeasures::pass(double from, double to, double seconds, const RequestsInSystem& there) {
  const double counted = counted_time_.seconds_of(from, to);
  decoding_time_ += static_cast<double>(there.decoding) * counted;
  busy_time_ += counted;
  waiting_time_ += static_cast<double>(there.waiting) * counted;
  system_time_ += static_cast<double>(there.all) * counted;
  request_seconds_ += static_cast<double>(there.all) * seconds;
  ++iterations_;
  counts_ = counted_time_.counts(to);
  if (!counts_) return;
  ++counted_iterations_;
  iteration_time_ += seconds;
}

void RunMeasures::arrive(double arrival, double now) {
  waiting_time_ += counted_time_.seconds_of(arrival, now);
  system_time_ += counted_time_.seconds_of(arrival, now);
  request_seconds_ += now - arrival;
}

void RunMeasures::put_out(const RoundTotals& totals) {
  if (!counts_) return;
  counted_.tokens += totals.tokens;
  counted_.round_tokens += totals.round_tokens;
  counted_.rounds += totals.rounds;
  counted_.verified += totals.verified;
}

void RunMeasures::fill(ServingResult& result, double now, double outside_seconds) const {
  result.first_counted = counted_requests_.first;
  result.counted_requests = counted_requests_.count;
  const double length = std::min(counted_time_.end(), now) - counted_time_.begin();
  result.counted_seconds = length;
  result.output_tokens_per_second = static_cast<double>(counted_.tokens) / length;
  result.mean_batch = decoding_time_ / length;
  result.mean_waiting = waiting_time_ / length;
  result.mean_in_system = system_time_ / length;
  result.busy_share = busy_time_ / length;
  if (counted_iterations_ > 0) {
    result.mean_iteration_seconds = iteration_time_ / static_cast<double>(counted_iterations_);
  }
  if (counted_.rounds > 0) {
    result.tokens_per_step = static_cast<double>(counted_.round_tokens) / static_cast<double>(counted_.rounds);
    result.verified_per_step = static_cast<double>(counted_.verified) / static_cast<double>(counted_.rounds);
  }
  result.backlog_at_end = backlog_before(requests_ - 1, result.requests, outside_seconds);
  result.backlog_at_middle = backlog_before(requests_ / 2, result.requests, outside_seconds);
  result.iterations = iterations_;
  result.request_seconds = request_seconds_;
  result.seconds = now;
  result.gaps = gaps_.sorted();
}

}  // namespace specdec::sim
