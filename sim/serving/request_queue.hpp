#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// A request that gave up its blocks.
struct GivenUp {
  std::size_t request = 0;
  double last_output = 0;
};

/// The requests of a run up to their admission: sent, then arrived, then admitted, all in order. Those that gave up
/// their blocks wait before all others; the last one is the first to be admitted.
class RequestQueue {
 public:
  /// Sends the requests that do not wait for another one's end. @param outcomes  [request], whose arrivals it sets;
  /// must outlive the object
  RequestQueue(const ServingQuestion& question, std::vector<ServedRequest>& outcomes);

  double arrival_of(std::size_t request) const { return outcomes_[request].arrival_seconds; }
  /// A client whose request has ended sends the next one, to arrive then; returns which, empty if all were sent.
  std::optional<std::size_t> send(double arrival);
  void take_arrivals(double now) {
    while (arrived_ < sent_ && arrival_of(arrived_) <= now) ++arrived_;
  }
  /// When the next request arrives that was sent.
  double next_arrival() const { return arrival_of(arrived_); }

  /// Requests that have been admitted once.
  std::size_t admitted() const { return admitted_; }
  std::size_t waiting() const { return arrived_ - admitted_ + given_up_.size(); }
  const std::vector<GivenUp>& given_up() const { return given_up_; }

  void give_up(const GivenUp& request) { given_up_.push_back(request); }
  /// The first one that waits is admitted.
  void admit() {
    if (given_up_.empty()) {
      ++admitted_;
    } else {
      given_up_.pop_back();
    }
  }

 private:
  std::vector<ServedRequest>& outcomes_;
  std::vector<GivenUp> given_up_;
  /// Requests before these were sent, have arrived and have been admitted once.
  std::size_t sent_ = 0, arrived_ = 0, admitted_ = 0;
};

}  // namespace specdec::sim
