#pragma once

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// Answers of a Prometheus server to /api/v1/query (a vector) and /api/v1/query_range (a matrix):
//
//   {"status":"success","data":{"resultType":"matrix","result":[
//     {"metric":{"__name__":"vllm:spec_decode_num_drafts_total","instance":"a:8000"},
//      "values":[[1756736798,"22"],[1756736828,"40"]]}]}}
//
// One answer a document, several documents or files where each series was queried alone; scraped_series.hpp lists the
// series that are read. One sample of each gives totals, more give the windows between consecutive ones.

/// "Prometheus API".
CountsFormat prometheus_api_format();

}  // namespace specdec::traces
