#pragma once

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// Counters in the Prometheus text exposition format, as an engine's /metrics shows them:
//
//   # TYPE vllm:spec_decode_num_drafts_total counter
//   vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 22.0
//   vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 18.0 1756736798733
//
// scraped_series.hpp lists the series that are read; other lines are passed over. One scrape gives totals, several of
// them (files in order, or one file with timestamps) give the windows between them.

/// "Prometheus text".
CountsFormat prometheus_text_format();

}  // namespace specdec::traces
