#pragma once

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// speculation_profile.json of NVIDIA's Model-Optimizer, schema_version 1.0 (open pull requests 2247, whose
// specdec_bench writes it from an engine, 2315, whose ar_validate.py writes it from a model, and 2313, which puts it
// beside a checkpoint). Its writers leave out different keys, and so may a profile:
//
//   {"schema_version": "1.0", "measured": true, "method": "eagle3", "draft_checkpoint": {"name": "org/draft"},
//    "target_model": {"name": "org/target"}, "num_speculative_tokens": 3, "block_size": null, "max_supported_k": 3,
//    "verification_method": "longest_prefix", "conditional_accept_rates": [0.75, 0.666667, 0.5],
//    "marginal_accept_rates": [0.75, 0.5, 0.25], "mean_accept_length": 2.5, "mean_accept_length_per_request": 2.6,
//    "accept_length_model": "chain_analytic", "accept_length_by_k": {"3": 2.5, "1": 1.8},
//    "acceptance_length_histogram": {"1": 10, "2": 10, "3": 10, "4": 10}}
//
// CountUnit::total. Keys of the histogram are the tokens of a round, the target's own included, so that counts are
// exact where it is there. Where it is not, the product of conditional or the marginal rates give the mean, or else
// mean_accept_length does: rates of an unknown number of rounds are no counts ("rates_without_rounds"). Entries of
// accept_length_by_k at other numbers of drafts are units of their own, by their mean.
//
// All that is there must agree, to the six digits that are written: rates with the histogram and with each other,
// mean_accept_length with both. In profiles without mean_accept_length_per_request it is a mean over requests, which
// the first version of 2247 wrote, and is passed over where a histogram or rates are there. A profile with "measured":
// false is a stub and refused, as one that was not verified by longest prefix is.

/// A total, and one more for each other number of drafts.
CountsFormat speculation_profile_format();

}  // namespace specdec::traces
