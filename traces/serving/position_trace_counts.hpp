#pragma once

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

/// Position traces (traces/formats/position_traces.hpp) as counts: from acc_len[t], the tokens that a round starting at
/// t puts out, the rounds of each sequence are walked from its beginning, t += acc_len[t]. The last one may go beyond
/// the places that were measured. One unit (CountUnit::request) a sequence and draft; the label "model_name" is the
/// draft's name without "acc_", "category" the sequence's task.
CountsFormat position_trace_counts_format();

}  // namespace specdec::traces
