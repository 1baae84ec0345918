#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <vector>

#include "analysis/core/parallel.hpp"
#include "analysis/core/run_hooks.hpp"
#include "sim/serving/capacity.hpp"
#include "sim/serving/decoding_prices.hpp"
#include "sim/serving/judged_requests.hpp"
#include "sim/serving/planned_scenario.hpp"
#include "sim/serving/request_rounds.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// Ends the simulations of a scenario that is not finished.
struct Interrupted : std::exception {};

/// The simulated runs of one replica of a scenario: replications of the same requests at any load.
class ReplicaRuns {
 public:
  /// References must outlive the object. @param requests  as many as the longest run of any load takes
  ReplicaRuns(const CapacityQuestion& question, const PlannedScenario& planned, RequestSets& requests,
              const core::RunHooks& hooks);

  const CapacityQuestion& question() const { return question_; }
  const PlannedScenario& planned() const { return planned_; }

  /// Calls `value_of` with each replication, in the question's threads. @return [replication]
  template <class ValueOf>
  auto of_replications(const ValueOf& value_of) const {
    std::vector<std::invoke_result_t<ValueOf, std::size_t>> values(static_cast<std::size_t>(question_.replications));
    core::for_each_index(question_.replications, question_.threads, [&](std::int64_t index, std::int64_t) {
      const auto replication = static_cast<std::size_t>(index);
      values[replication] = value_of(replication);
    });
    return values;
  }

  /// One replication at a load. @throws Interrupted
  ServingResult run(std::size_t replication, const ReplicaLoad& load, bool finds_gaps);
  /// Requests per second that a run served, by the tokens of its counted time.
  double served_rate(std::size_t replication, const ServingResult& run) const;

  /// Requests served per second while some are always waiting.
  SimulatedValue saturated_rate();
  JudgedLoad judged_at(const ReplicaLoad& load);

 private:
  ServingResult serve(std::size_t replication, const ReplicaLoad& load, std::int64_t count, double warm_up_share,
                      bool finds_gaps);
  double saturated_rate_of(std::size_t replication);

  const CapacityQuestion& question_;
  const PlannedScenario& planned_;
  RequestSets& requests_;
  const core::RunHooks& hooks_;
  /// [replication]: of its requests, and what its iterations cost.
  std::vector<RequestRounds> rounds_;
  std::vector<std::shared_ptr<DecodingPrices>> prices_;
};

}  // namespace specdec::sim
