#pragma once

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// TensorRT-LLM's iteration statistics, as its metrics endpoint and its get_stats() give them: JSON lines or an array,
// an object an iteration:
//
//   {"iter":7,"iterLatencyMS":20.0,"numActiveRequests":8,"numQueuedRequests":0,"attentionDpRank":0,
//    "inflightBatchingStats":{"numCtxTokens":0,"numGenRequests":8},
//    "specDecodingStats":{"numDraftTokens":24,"numAcceptedTokens":12,"numRequestsWithDraftTokens":8,
//                         "acceptanceLength":2.5,"iterLatencyMS":3.1,"draftOverhead":0.155}}
//
// Each is a window: every request with drafts verifies once, so rounds are numRequestsWithDraftTokens; acceptanceLength
// is 1 + accepted / rounds and is only held against them. Where specDecodingStats is null or drafted nothing, the
// iteration is left out, and so it is where attentionDpRank is not 0: other ranks repeat its counts. An iteration puts
// out one token for each of numGenRequests and its accepted drafts, in iterLatencyMS. max_draft_len and
// max_total_draft_tokens (or maxDraftLen, maxTotalDraftTokens) tell a tree, with more drafts in total than its length.

/// One unit an iteration that drafted.
CountsFormat tensorrt_llm_iterations_format();

}  // namespace specdec::traces
