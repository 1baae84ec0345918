#include <array>
#include <filesystem>
#include <span>

#include "tests/fuzz/fuzzed_file.hpp"
#include "traces/serving/counts_formats.hpp"

namespace {

namespace traces = specdec::traces;

/// Counts that a reader may not hand over.
void check(const traces::ServingCounts& counts) {
  if (counts.rounds && !(*counts.rounds >= 0)) std::abort();
  if (counts.accepted && !(*counts.accepted >= 0)) std::abort();
  for (const double rounds : counts.rounds_by_accepted) {
    if (!(rounds >= 0)) std::abort();
  }
}

}  // namespace

/// Every reader reads every file, whatever it would be recognised as.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const specdec::fuzz::FuzzedFile file(data, size);
  const std::array files = {file.path()};
  const traces::CountsSink sink = {check, [](const specdec::Note&) {}};
  for (const auto& format :
       {traces::vllm_requests_format(), traces::tensorrt_llm_requests_format(), traces::sglang_responses_format(),
        traces::llama_server_timings_format(), traces::sglang_bench_format(), traces::vllm_bench_format(),
        traces::tensorrt_llm_iterations_format(), traces::spec_bench_format(), traces::eagle_format(),
        traces::position_trace_counts_format(), traces::aiperf_records_format(), traces::aiperf_summary_format(),
        traces::guidellm_format(), traces::speed_bench_format()}) {
    specdec::fuzz::expect_file_errors_only([&] {
      format.recognises(traces::FileHead::of(file.path()));
      format.read(files, sink);
    });
  }
  return 0;
}
