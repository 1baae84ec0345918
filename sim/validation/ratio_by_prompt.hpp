#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "analysis/estimate/ratio_of_sums.hpp"

namespace specdec::validation {

/// Clusters of sequences that continue the prompts in turn: those of one prompt, with a single prompt every sequence.
inline std::size_t clusters_of(std::size_t prompts, std::size_t sequences) {
  return prompts > 1 ? std::min(prompts, sequences) : sequences;
}

/// A ratio of sums over the clusters, those left out whose denominator is 0.
/// @param add  adds what a sequence has to the numerator and the denominator of its cluster
template <class Add>
estimate::Estimate ratio_by_prompt(std::size_t prompts, std::size_t sequences, const Add& add) {
  std::vector<double> numerators, denominators;
  const std::size_t clusters = clusters_of(prompts, sequences);
  for (std::size_t first = 0; first < clusters; ++first) {
    double numerator = 0, denominator = 0;
    for (std::size_t s = first; s < sequences; s += clusters) add(s, numerator, denominator);
    if (denominator == 0) continue;
    numerators.push_back(numerator);
    denominators.push_back(denominator);
  }
  return estimate::ratio_of_sums(numerators, denominators);
}

}  // namespace specdec::validation
