#include "sim/serving/replica_runs.hpp"

#include <limits>

#include "sim/serving/request_percentiles.hpp"
#include "sim/serving/run_intervals.hpp"
#include "sim/serving/run_lengths.hpp"
#include "sim/serving/serving_run.hpp"
#include "sim/serving/simulated_workload.hpp"

namespace specdec::sim {

ReplicaRuns::ReplicaRuns(const CapacityQuestion& question, const PlannedScenario& planned, RequestSets& requests,
                         const core::RunHooks& hooks)
    : question_(question), planned_(planned), requests_(requests), hooks_(hooks) {
  for (std::size_t r = 0; r < requests.replications(); ++r) {
    rounds_.push_back(requests.rounds(r, question.acceptance, planned.scenario().engine));
    prices_.push_back(std::make_shared<DecodingPrices>(question.cost));
  }
}

ServingResult ReplicaRuns::serve(std::size_t replication, const ReplicaLoad& load, std::int64_t count,
                                 double warm_up_share, bool finds_gaps) {
  if (hooks_.interrupted()) throw Interrupted();
  const auto& unit = requests_.requests(replication);
  ServingQuestion serving;
  serving.requests.assign(unit.begin(), unit.begin() + static_cast<std::ptrdiff_t>(count));
  if (load.clients > 0) {
    serving.clients = load.clients;
  } else {
    for (SimulatedRequest& request : serving.requests) request.arrival_seconds /= load.requests_per_second;
  }
  serving.outside_seconds = question_.workload.outside_seconds;
  serving.engine = planned_.scenario().engine;
  serving.cost = prices_[replication];
  serving.acceptance = question_.acceptance;
  serving.seed = seed_of_replication(question_.seed, static_cast<std::int64_t>(replication));
  serving.warm_up_share = warm_up_share;
  return simulate_serving(serving, rounds_[replication], {.finds_gaps = finds_gaps});
}

ServingResult ReplicaRuns::run(std::size_t replication, const ReplicaLoad& load, bool finds_gaps) {
  const RunLength length = run_length(question_.workload, planned_, load);
  return serve(replication, load, length.requests, length.warm_up, finds_gaps);
}

double ReplicaRuns::served_rate(std::size_t replication, const ServingResult& run) const {
  const auto& unit = requests_.requests(replication);
  double sum = 0;
  for (std::size_t i = 0; i < run.requests.size(); ++i) sum += static_cast<double>(unit[i].output_tokens);
  return run.output_tokens_per_second / (sum / static_cast<double>(run.requests.size()));
}

SimulatedValue ReplicaRuns::saturated_rate() {
  return mean_of(of_replications([this](std::size_t r) { return saturated_rate_of(r); }));
}

double ReplicaRuns::saturated_rate_of(std::size_t replication) {
  const auto& saturation = planned_.saturation();
  const std::int64_t count = requests_to_saturate(question_.workload, planned_);
  // A little more than the replica can take, so that its batch has requests of all ages; all at once if
  // nothing decodes.
  double offered = saturation ? 1.5 * saturation->requests_per_second : std::numeric_limits<double>::infinity();
  for (;;) {
    const double rate = served_rate(replication, serve(replication, {offered}, count, 0.3, false));
    if (!saturation || rate < 0.9 * offered) return rate;
    offered *= 2;
  }
}

JudgedLoad ReplicaRuns::judged_at(const ReplicaLoad& load) {
  const CapacityLimits& limits = question_.limits;
  const std::size_t runs = requests_.replications();
  std::vector<std::vector<double>> ttft(runs), tpot(runs);
  JudgedLoad judged;
  judged.each = of_replications([&](std::size_t r) {
    const ServingResult served = run(r, load, false);
    if (limits.ttft_seconds) ttft[r] = first_token_seconds(served);
    if (limits.tpot_seconds) tpot[r] = seconds_per_token(served);
    return judge(ttft[r], tpot[r], limits);
  });
  std::vector<double> all_ttft = pooled(ttft);
  std::vector<double> all_tpot = pooled(tpot);
  judged.together = judge(all_ttft, all_tpot, limits);
  return judged;
}

}  // namespace specdec::sim
