#pragma once

#include <cstddef>

#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// The requests of a run whose figures count: those between the first and the last ones of its warm-up.
struct CountedRequests {
  explicit CountedRequests(const ServingQuestion& question)
      : first(static_cast<std::size_t>(question.warm_up_share * static_cast<double>(question.requests.size()))),
        count(question.requests.size() - 2 * first) {}

  std::size_t first;
  std::size_t count;

  bool contains(std::size_t request) const { return request - first < count; }
};

}  // namespace specdec::sim
