#pragma once

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// The tables that scripts/evaluate/evaluate.py of speculators writes (https://github.com/vllm-project/speculators,
// commit c05b95b3), a data set (subset) or a load of one a line. CountUnit::run; the subset is the label "category".
//
// acceptance.csv, the differences of vLLM's counters over each subset:
//
//   subset,num_drafts,num_draft_tokens,num_accepted_tokens,acceptance_length,acceptance_at_pos_0,acceptance_at_pos_1
//   HumanEval,40.0,80.0,60.0,2.5,0.875,0.625
//
// acceptance_length includes the bonus token, acceptance_at_pos_j are fractions of all drafts, one for each token that
// a draft may have. All are written in full, so that the counts by position are exact.
//
// perf_results.csv, guidellm's sweep over the load, each line with the acceptance of its whole subset:
//
//   subset,strategy,target_rate,rps_median,latency_median_s,itl_median_ms,ttft_median_ms,output_tps_median,
//   total_output_tokens,num_drafts,num_draft_tokens,num_accepted_tokens,acceptance_length,acceptance_at_pos_0
//   HumanEval,constant,2.5,2.4,1.9,6.1,40.2,610.5,,40.0,40.0,30.0,1.75,0.75
//
// Without the columns of acceptance a line is a baseline. What was counted over a whole subset belongs to none of its
// lines alone: they have its tokens per round, and acceptance.csv the counts. Times and throughputs are medians and
// stand for means, with the warning "medians_for_means"; a load is known where the strategy is "synchronous", else the
// batch follows from throughput and time.

CountsFormat speculators_acceptance_format();
CountsFormat speculators_results_format();

}  // namespace specdec::traces
