#pragma once

#include <cstdint>

#include "analysis/core/standardisation.hpp"
#include "cli/options.hpp"

namespace specdec::cli {

/// Cuts of a sampled distribution, beside its temperature.
struct SamplingCuts {
  std::int64_t top_k = 0;
  double top_p = 1;
  double min_p = 0;

  void declare(Options& options);
  core::Standardisation at(double temperature) const { return {temperature, top_k, top_p, min_p, false}; }
};

}  // namespace specdec::cli
