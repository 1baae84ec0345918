#pragma once

#include <cstdint>
#include <vector>

#include "analysis/planning/steady_state.hpp"
#include "sim/serving/capacity.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// The requests of a replication at one request per second; for another rate, divide their times by it.
/// Lengths and gaps of request i are functions of (seed, replication, i), so a longer run starts like a shorter one.
std::vector<SimulatedRequest> requests_at_unit_rate(const Workload& workload, std::uint64_t seed,
                                                    std::int64_t replication, std::int64_t replications,
                                                    std::int64_t count);

/// The seed of a replication's acceptance and lengths.
std::uint64_t seed_of_replication(std::uint64_t seed, std::int64_t replication);

/// The statistics of requests that the formulas of an equilibrium need; its rate is left at 0.
planning::OfferedLoad offered_load(const std::vector<SimulatedRequest>& requests, const ServingEngine& engine);

/// The contexts at which a law's rates change.
std::vector<std::int64_t> contexts_of(const RequestAcceptance& law);

/// The tokens that requests emit after their first one, by the range of contexts that they fall into.
class RoundsToCover {
 public:
  /// @param contexts  where ranges begin, rising: those of the laws whose rounds are asked for
  explicit RoundsToCover(const std::vector<SimulatedRequest>& requests, const std::vector<std::int64_t>& contexts = {});

  /// Tokens after the first one per round, over all requests, and the share of rounds that follow a fully accepted one,
  /// if each request draws one of the laws and drafts gamma tokens in every round.
  ///
  ///   N(m) = 1 + sum_n P(n accepted) N(m - n - 1),   N(m) = N(M) + (m - M) / E beyond m = M
  ///
  /// in the range where a request ends; tokens / E in those that it goes through.
  planning::RoundsFrom rounds(const std::vector<RequestAcceptance>& laws, std::int64_t batch_low,
                              std::int64_t gamma) const;

 private:
  struct Range {
    /// The number of requests that end there after m tokens of it, [m], and the tokens of these beyond the largest m.
    std::vector<double> ending;
    double beyond = 0;
    /// Tokens of requests that go on behind it.
    double passed = 0;
  };
  struct AcceptedDrafts;

  void add(std::size_t range, std::int64_t tokens, bool ends);
  static double rounds_in(const Range& range, const AcceptedDrafts& accepted);

  std::vector<std::int64_t> contexts_;
  std::vector<Range> ranges_;
  double tokens_ = 0;
};

}  // namespace specdec::sim
