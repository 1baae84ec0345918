#pragma once

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// Engines' counts of one request, in their responses: JSON lines, an array, or documents of several lines; responses
// may stand inside other objects ("response", "body", ...) and lists. CountUnit::request. The model's name is `model`;
// a `category` or `task` beside it becomes the label "category". Responses without counts, or with none but zeros, are
// left out with the warning "requests_without_speculation"; a file of nothing else is refused. A request that is there
// again, with the same id (`id`, `request_id`, `meta_info.id`) and equal in all, counts once ("request_given_twice");
// one that has the id of another in its file and says something else counts, with the warning "request_ids_repeat".
//
// vLLM, --per-request-spec-decode-metrics summary or detailed (per_step_*):
//
//   {"model":"m","choices":[...],"metrics":{"speculative_decoding":{"mean_acceptance_length":2.25,
//    "draft_acceptance_rate":0.4166666666666667,"acceptance_histogram":[5,2,2,3],
//    "acceptance_histogram_by_draft_length":{"3":[5,2,2,3]},"num_spec_steps":12,"num_accepted_draft_tokens":15,
//    "num_draft_tokens":36,"num_spec_tokens":3,"per_step_accepted":[0,1],"per_step_drafted":[3,3]}}}
//
// and before that in choices[].speculative_decoding_stats, with {"0":5,"1":2,"2":2,"3":3} for a histogram. Either form
// of histogram is read in either place. The mean length includes the bonus token, the rate is a fraction; the
// histograms count rounds by their accepted drafts.
//
// TensorRT-LLM:
//
//   {"choices":[{"index":0,"speculative_decoding":{"acceptance_rate":0.4166666666666667,"total_accepted_draft_tokens":15,
//    "total_draft_tokens":36,"num_spec_steps":12,"acceptance_histogram":[5,2,2,3],"num_spec_tokens":3}}]}
//
// where num_spec_tokens is null under a schedule. More drafts than num_spec_tokens a round are a tree's.
//
// SGLang, by generation (choices[].meta_info and a list of them too, or the bare objects):
//
//   {"text":"..","meta_info":{"completion_tokens":28,"spec_verify_ct":12,"spec_accept_token_num":15,
//    "spec_draft_token_num":36,"spec_accept_histogram":[5,2,2,3]}}
//   {"text":"..","meta_info":{"completion_tokens":28,"spec_verify_ct":12,"spec_accepted_drafts":15,
//    "spec_proposed_drafts":36,"spec_accept_histogram":[5,2,2,3]}}
//   {"text":"..","meta_info":{"completion_tokens":28,"spec_verify_ct":12,"spec_num_correct_drafts":15,
//    "spec_num_proposed_drafts":36,"spec_correct_drafts_histogram":[5,2,2,3]}}
//
// The histogram may end before the longest draft. The first of completion_tokens comes from the prompt, so its rounds
// put out one less; without a count of accepted drafts these are what was put out beyond one token a round, too few by
// what the end of the text cut off the last round. spec_accept_rate and spec_accept_length are not read: what they
// divide by differs between releases.
//
// llama.cpp's server:
//
//   {"content":"..","timings":{"predicted_n":28,"predicted_ms":250.0,"draft_n":36,"draft_n_accepted":15}}
//
// Rounds are predicted_n - 1 - draft_n_accepted: the first token comes from the prompt's pass, and each later pass puts
// out its accepted drafts and one token more. Passes that drafted nothing are among them. Releases that count the
// tokens of predicted_n as they are put out count too few in a last pass that a stop ends; where that leaves no round
// at all the response is left out with the warning "stopped_in_a_draft". Rule: greedy drafting, since the draft
// proposes its most probable token, which is accepted where the target's sampled token is the same. Where times are
// wanted (CountsSink::plain_windows) every answer is a BenchRun of one request, also one without drafts, which has no
// rounds, and the label "slot" says which of the server's slots decoded it (`id_slot`).

/// One unit a request, or a choice where choices are counted alone.
CountsFormat vllm_requests_format();
CountsFormat tensorrt_llm_requests_format();
CountsFormat sglang_responses_format();
CountsFormat llama_server_timings_format();

}  // namespace specdec::traces
