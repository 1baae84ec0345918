#pragma once

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// Files that evaluations of speculative decoding store: JSON lines, a question a line, as CountUnit::request. The
// question's category becomes the label "category", its model_id the label "model_name".
//
// Spec-Bench:
//
//   {"question_id":81,"category":"writing","model_id":"m","choices":[{"index":0,"turns":["..."],
//    "decoding_steps":[2,1],"new_tokens":[7,1],"wall_time":[2.1,1.9],"accept_lengths":[3,4,1]}],"tstamp":1.7e9}
//
// accept_lengths holds the tokens of every round, the bonus token included, of all turns behind each other;
// decoding_steps says where they part. A turn's last round may be cut off by the end of the text; it counts as it
// stands, and not at all where nothing of it is left.
//
// EAGLE:
//
//   {"question_id":81,"model_id":"m","choices":[{"index":0,"turns":["..."],"idxs":[1,0],"new_tokens":[7,1],
//    "wall_time":[2.1,1.9],"alpha":[2,2,1],"alpha_num":[3,2,2]}]}
//
// idxs are indices of the last rounds from 0, so a turn has idxs + 1 rounds, which put out new_tokens. alpha and
// alpha_num, where they are, count accepted and attempted drafts by depth, a draft being attempted only after those
// before it: rounds are then those of alpha_num[0].
//
// Where no round of a file accepted anything, it may be a baseline's: warning "no_accepted_drafts".

/// One unit a question.
CountsFormat spec_bench_format();
CountsFormat eagle_format();

}  // namespace specdec::traces
