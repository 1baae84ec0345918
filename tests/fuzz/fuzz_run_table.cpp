#include <array>
#include <cmath>

#include "tests/fuzz/fuzzed_file.hpp"
#include "traces/serving/counts_formats.hpp"

namespace {

namespace traces = specdec::traces;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Figures that a table may not hand over.
void check(const traces::ServingCounts& run) {
  for (const auto& count : {run.rounds, run.drafted, run.accepted})
    require(!count || (*count >= 0 && std::isfinite(*count)));
  require(!run.tokens_per_round || *run.tokens_per_round >= 1);
  require(!run.gamma || (*run.gamma >= 0 && *run.gamma <= 4096));
  double before = run.rounds.value_or(0);
  for (const double at : run.accepted_at) {
    require(0 <= at && at <= before);
    before = at;
  }
  if (!run.bench) return;
  require(run.bench->output_throughput.value_or(0) > 0 && run.bench->mean_tpot_ms.value_or(0) > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const specdec::fuzz::FuzzedFile file(data, size);
  const std::array files = {file.path()};
  const traces::CountsSink sink = {check, [](const specdec::Note&) {}};
  const traces::CountsFormat format = traces::run_table_format();
  specdec::fuzz::expect_file_errors_only([&] {
    format.recognises(traces::FileHead::of(file.path()));
    format.read(files, sink);
  });
  return 0;
}
