#include "sim/serving/recorded_workload.hpp"

#include <fmt/format.h>
#include <stdexcept>

namespace specdec::sim {

Workload recorded_workload(const traces::RequestTrace& trace) {
  Workload workload;
  for (const traces::RequestArrival& request : trace.requests) {
    workload.recorded.push_back({request.seconds, request.prompt_tokens, request.output_tokens});
  }
  const double span = workload.recorded.empty()
                          ? 0
                          : workload.recorded.back().arrival_seconds - workload.recorded.front().arrival_seconds;
  if (!(span > 0)) {
    throw std::invalid_argument(
        fmt::format("{}: holds {} requests over {} seconds, but must hold two or more that do not all come at one time",
                    trace.path.string(), workload.recorded.size(), span));
  }
  workload.requests_per_second = static_cast<double>(workload.recorded.size() - 1) / span;
  return workload;
}

}  // namespace specdec::sim
