#include "sim/serving/run_lengths.hpp"

#include <algorithm>

namespace specdec::sim {
namespace {

/// Sequences that decode on average fill up while so many times as many requests arrive, which are not counted; a run
/// has so many times as many, up to a number, where nobody says how many.
constexpr double warm_up_per_sequence = 1.5;
constexpr double requests_per_sequence = 10;
constexpr std::int64_t most_per_run = 8000;
/// Requests that arrive in this share of a run, at either end, are not counted.
constexpr double least_warm_up = 0.1;
/// At most this share is left out at either end.
constexpr double most_warm_up = 0.4;
/// Requests that benchmark clients send for each one that they keep in flight.
constexpr std::int64_t requests_per_client = 10;

/// Requests of a run in which so many sequences decode on average.
std::int64_t requests_with_decoding(const Workload& workload, double decoding) {
  if (workload.requests) return *workload.requests;
  const double wanted = std::min(requests_per_sequence * decoding, static_cast<double>(most_per_run));
  return std::max(workload.open_requests(), static_cast<std::int64_t>(wanted));
}

}  // namespace

RunLength run_length(const Workload& workload, const PlannedScenario& planned, const ReplicaLoad& load) {
  if (load.clients > 0) {
    // The first request of each, which all come at once, is among those left out; half a request more, since the
    // product is rounded down.
    const std::int64_t requests = requests_with_clients(workload, load.clients);
    const double first_ones = (static_cast<double>(load.clients) + 0.5) / static_cast<double>(requests);
    return {requests, std::clamp(first_ones, least_warm_up, most_warm_up)};
  }
  const double decoding = planned.decoding_at(load.requests_per_second);
  const std::int64_t requests = requests_with_decoding(workload, decoding);
  const double filling = warm_up_per_sequence * decoding / static_cast<double>(requests);
  return {requests, std::clamp(filling, least_warm_up, most_warm_up)};
}

std::int64_t requests_with_clients(const Workload& workload, std::int64_t clients) {
  return workload.requests.value_or(std::min<std::int64_t>(requests_per_client * clients, 1'000'000));
}

std::int64_t requests_to_saturate(const Workload& workload, const PlannedScenario& planned) {
  const std::int64_t asked = workload.open_requests();
  if (!planned.saturation()) return asked;
  const planning::SteadyState& full = planned.saturation()->state;
  const double wanted =
      std::max(8 * full.largest_batch, 100 * planned.saturation()->requests_per_second * full.iteration_seconds);
  return std::max(asked, static_cast<std::int64_t>(std::min(wanted, 4 * static_cast<double>(asked))));
}

std::int64_t most_requests(const Workload& workload, const PlannedScenario& planned) {
  return requests_with_decoding(workload, planned.saturation() ? planned.saturation()->state.largest_batch : 0);
}

double least_requests(double mean_batch) { return warm_up_per_sequence * mean_batch / most_warm_up; }

}  // namespace specdec::sim
