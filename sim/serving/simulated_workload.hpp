#pragma once

#include <cstdint>
#include <vector>

#include "analysis/planning/steady_state.hpp"
#include "sim/serving/capacity.hpp"

namespace specdec::sim {

// A header of the library's own sources; it is not installed.

/// The requests of a replication at one request per second: those of another rate come at these times divided by it.
/// Lengths and gaps of request i are functions of (seed, replication, i), so that a longer run begins as a shorter one.
std::vector<SimulatedRequest> requests_at_unit_rate(const Workload& workload, std::uint64_t seed,
                                                    std::int64_t replication, std::int64_t replications,
                                                    std::int64_t count);

/// The seed of a replication's acceptance and lengths.
std::uint64_t seed_of_replication(std::uint64_t seed, std::int64_t replication);

/// What the formulas of an equilibrium want to know of requests; its rate is left at 0.
planning::OfferedLoad offered_load(const std::vector<SimulatedRequest>& requests, const ServingEngine& engine);

/// How many requests put out m tokens after their first one, [m], and those that put out more than `explicit_up_to`.
class RoundsToCover {
 public:
  explicit RoundsToCover(const std::vector<SimulatedRequest>& requests);

  /// Tokens after the first one per round, over all requests, and the share of rounds that follow a fully accepted one,
  /// where each request draws one of the laws and drafts gamma tokens in every round.
  ///
  ///   N(m) = 1 + sum_n P(n accepted) N(m - n - 1),   N(m) = N(M) + (m - M) / E beyond m = M
  planning::RoundsFrom rounds(const std::vector<RequestAcceptance>& laws, std::int64_t batch_low,
                              std::int64_t gamma) const;

 private:
  std::vector<double> count_;
  double tokens_ = 0;
  double beyond_ = 0;
};

}  // namespace specdec::sim
