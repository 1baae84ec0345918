#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/serving/counted_requests.hpp"
#include "sim/serving/counted_time.hpp"
#include "sim/serving/gap_histogram.hpp"
#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// Requests in an iteration that takes place, which are waiting, decoding, and in the system at all.
struct RequestsInSystem {
  std::int64_t decoding = 0;
  std::size_t waiting = 0, all = 0;
};

/// Totals put out by iterations.
struct RoundTotals {
  /// Tokens, of rounds and of all.
  std::int64_t round_tokens = 0, tokens = 0;
  /// Rounds, and the drafts that they verified.
  std::int64_t rounds = 0, verified = 0;
};

/// Measurements of a run: integrals over its counted time, and over all of it.
class RunMeasures {
 public:
  RunMeasures(const ServingQuestion& question, bool finds_gaps);

  const CountedRequests& counted_requests() const { return counted_requests_; }

  /// A client sends a request, to arrive then: the counted time begins and ends with requests.
  void send(std::size_t request, double arrival);
  /// Before an iteration's requests end. @param seconds  the iteration's, which `to` - `from` is rounded from
  void pass(double from, double to, double seconds, const RequestsInSystem& there);
  /// A request arrived during the iteration that ends now.
  void arrive(double arrival, double now);
  /// Adds the output of the iteration.
  void put_out(const RoundTotals& totals);
  /// Requests whose last output was so long ago.
  void add_gaps(double seconds, std::int64_t count) {
    if (finds_gaps_ && count > 0) gaps_.add(seconds, count);
  }

  /// All but the requests, their preemptions and the blocks. @param now  the end of the run
  void fill(ServingResult& result, double now, double outside_seconds) const;

 private:
  CountedRequests counted_requests_;
  /// Requests of the run.
  std::size_t requests_;
  CountedTime counted_time_;
  bool finds_gaps_;
  GapHistogram gaps_;
  std::int64_t iterations_ = 0;
  double request_seconds_ = 0;
  /// Whether the current iteration ends in the counted time.
  bool counts_ = false;

  // Sums over the counted time.
  double decoding_time_ = 0, waiting_time_ = 0, system_time_ = 0, busy_time_ = 0, iteration_time_ = 0;
  RoundTotals counted_ = {};
  std::int64_t counted_iterations_ = 0;
};

}  // namespace specdec::sim
