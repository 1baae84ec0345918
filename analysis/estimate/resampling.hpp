#pragma once

#include <cstdint>

namespace specdec::estimate {

/// The weight of a cluster in one resampling, mean 1: a function of its key and not of the other clusters, so that
/// recordings from many machines are resampled alike wherever their clusters are stored.
///
///   -ln u,   u = (53 bits + 1/2) 2^-53 of the first two words of Philox4x32-10 with key = seed and
///            counter = (cluster low, cluster high, resampling low, resampling high)
///
/// Divided by their sum, such weights have a Dirichlet law, as for clusters of unknown law that were each seen once.
/// Source:   Rubin 1981 (the Bayesian bootstrap); Salmon et al. 2011 (Random123);
///           docs/theory.md#the-best-gamma-of-a-recording
/// @return (0, 38)
double resampling_weight(std::uint64_t seed, std::uint64_t resampling, std::uint64_t cluster);

}  // namespace specdec::estimate
