#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/serving/counted_requests.hpp"
#include "sim/serving/gap_histogram.hpp"
#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// Measurements of a run: integrals over its counted time, and over all of it.
class RunMeasures {
 public:
  RunMeasures(const ServingQuestion& question, bool finds_gaps);

  const CountedRequests& counted_requests() const { return counted_requests_; }

  /// A client sends a request, to arrive then: the counted time begins and ends with requests.
  void send(std::size_t request, double arrival);
  /// An iteration in which so many requests decode.
  void pass(double from, double to, std::int64_t decoding);
  /// Adds the tokens that the iteration puts out.
  void put_out(std::int64_t tokens) { tokens_ += counts_ ? tokens : 0; }
  /// Requests whose last output was so long ago.
  void add_gaps(double seconds, std::int64_t count) {
    if (finds_gaps_ && count > 0) gaps_.add(seconds, count);
  }

  /// All but the requests, their preemptions and the blocks. @param now  the end of the run
  void fill(ServingResult& result, double now) const;

 private:
  CountedRequests counted_requests_;
  /// Requests of the run.
  std::size_t requests_;
  /// The counted time.
  double begin_, end_;
  bool finds_gaps_;
  GapHistogram gaps_;
  std::int64_t iterations_ = 0;
  /// Whether the current iteration ends in the counted time.
  bool counts_ = false;
  /// Over the counted time.
  double decoding_time_ = 0;
  std::int64_t tokens_ = 0;
};

}  // namespace specdec::sim
