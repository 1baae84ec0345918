
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/serving/counted_fields.hpp"
#include "traces/serving/counts_formats.hpp"

namespace specdec::traces {

// Output of AIPerf (https://github.com/ai-dynamo/aiperf, 0.13) but its records, which response_counts.cpp reads.
//
// The summary, profile_export_aiperf.json: one object a run, of whose metrics the mean is read ("avg"):
//
//   {"aiperf_version": "0.13.0", "request_count": {"unit": "requests", "avg": 12},
//    "inter_token_latency": {"unit": "ms", "avg": 11.9}, "output_token_throughput": {"unit": "tokens/sec", "avg":
//    624.4}, "benchmark_duration": {"unit": "sec", "avg": 20.5}, "total_isl": {"unit": "tokens", "avg": 102400},
//    "total_osl": {"unit": "tokens", "avg": 12800}, "total_spec_decode_steps": {"unit": "count", "avg": 40},
//    "total_accepted_draft_tokens": {"unit": "tokens", "avg": 60}, "total_draft_tokens": {"unit": "tokens", "avg":
//    120}, "pooled_spec_decode_acceptance_histogram": {"0": 10, "1": 10, "2": 10, "3": 10}}
//
// and of input_config the first model's name, the kind of the first data set (label dataset_name) and the concurrency
// of the phase "profiling". CountUnit::run. Its inter-token latency is the time behind the first token by the tokens
// behind it, a mean over requests: what other programs call the time per output token. Without the totals of
// speculation the run is a baseline. AIPerf 0.13 has them from vLLM alone, whose drafts are chains. A unit of another
// name is refused.

namespace {

constexpr std::string_view summary_name = "aiperf summary";
constexpr std::string_view histogram_key = "pooled_spec_decode_acceptance_histogram";

/// The metrics of a summary, each an object with its unit and its mean.
class AiperfMetrics {
 public:
  explicit AiperfMetrics(const CountedFields& summary) : summary_(summary) {}

  /// The mean; empty if there is no such metric, or no number in it.
  std::optional<double> mean(std::string_view key, std::string_view unit) const {
    const auto metric = summary_.part(key);
    if (!metric) return std::nullopt;
    const auto its_unit = metric->text("unit");
    if (its_unit != unit) metric->refuse("unit", std::string(its_unit.value_or("missing")), std::string(unit));
    return metric->measure("avg");
  }

  /// A mean that must be a count.
  std::optional<double> count(std::string_view key, std::string_view unit) const {
    const auto value = mean(key, unit);
    if (value && (*value != std::floor(*value) || *value > largest_count)) {
      summary_.refuse(std::string(key) + ".avg", shown(*value), "a whole number");
    }
    return value;
  }

 private:
  const CountedFields& summary_;
};

/// Infers the length of whole drafts: a mean that is no integer is one of drafts of different lengths.
void infer_drafts(ServingCounts& counts) {
  if (!counts.rounds || !counts.drafted || !(*counts.rounds > 0)) return;
  counts.engine = "vllm";
  counts.shape = DraftShape::chain;
  counts.gamma = equal_drafts_of(counts);
}

void read_totals(const CountedFields& fields, const AiperfMetrics& metrics, ServingCounts& counts) {
  counts.rounds = metrics.count("total_spec_decode_steps", "count");
  counts.accepted = metrics.count("total_accepted_draft_tokens", "tokens");
  counts.drafted = metrics.count("total_draft_tokens", "tokens");
  if (fields.histogram(histogram_key, counts.rounds_by_accepted)) add_totals(counts);
  infer_drafts(counts);
}

class AiperfSummary {
 public:
  AiperfSummary(const std::filesystem::path& path, const CountsSink& sink)
      : file_(path), sink_(sink), counts_(no_counts(aiperf_engine, summary_name, CountUnit::run, path)) {}

  void read() {
    each_document(file_, counts_, "the summary of a run", [&](const CountedFields& fields) { read_run(fields); });
  }

 private:
  void read_run(const CountedFields& fields) {
    counts_.engine = aiperf_engine;
    const AiperfMetrics metrics(fields);
    BenchRun& run = counts_.bench.emplace();
    run.completed = run.num_prompts = metrics.count("request_count", "requests");
    run.duration_s = metrics.mean("benchmark_duration", "sec");
    run.total_input_tokens = metrics.count("total_isl", "tokens");
    run.total_output_tokens = metrics.count("total_osl", "tokens");
    run.output_throughput = metrics.mean("output_token_throughput", "tokens/sec");
    run.mean_tpot_ms = metrics.mean("inter_token_latency", "ms");
    run.mean_itl_ms = metrics.mean("inter_chunk_latency", "ms");
    if (!run.completed) fields.refuse("request_count", "missing", "given: the requests that were answered");
    read_input(fields);
    read_totals(fields, metrics, counts_);
    sink_.take(counts_);
  }

  /// The model's name, the kind of prompts, and the concurrency of the phase that was measured.
  void read_input(const CountedFields& fields) {
    set_label(counts_, "model_name", std::nullopt);
    set_label(counts_, "dataset_name", std::nullopt);
    const auto config = fields.part("input_config");
    if (!config) return;
    const auto label = [&](const CountedFields& in, std::string_view list, std::string_view key,
                           std::string_view name) {
      in.each(list, [&](const CountedFields& entry) {
        if (counts_.label(name).empty()) set_label(counts_, name, entry.text(key));
      });
    };
    if (const auto models = config->part_if_any("models")) label(*models, "items", "name", "model_name");
    label(*config, "datasets", "type", "dataset_name");
    config->each("phases", [&](const CountedFields& phase) {
      if (phase.text("kind") == "profiling") counts_.bench->max_concurrency = phase.measure("concurrency");
    });
  }

  JsonLines file_;
  const CountsSink& sink_;
  ServingCounts counts_;
};

bool is_aiperf_summary(std::string_view text) {
  return mentions_key(text, "aiperf_version") && mentions_key(text, "request_count");
}

}  // namespace

CountsFormat aiperf_summary_format() {
  return {summary_name, [](const FileHead& head) { return is_aiperf_summary(head.json()); }, read_each<AiperfSummary>};
}

}  // namespace specdec::traces
