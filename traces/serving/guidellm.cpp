#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/serving/counted_fields.hpp"
#include "traces/serving/counts_formats.hpp"
#include "traces/serving/request_counts.hpp"

namespace specdec::traces {

// The report that guidellm writes (https://github.com/vllm-project/guidellm, 0.8; --output kind=json): one object,
// whose list has one benchmark for each concurrency or rate. CountUnit::run for each of them.
//
//   {"metadata": {"version": 2, "guidellm_version": "0.8.1"},
//    "config": {"spec": {"data": [{"kind": "synthetic_text"}]}}, "benchmarks": [
//     {"config": {"strategy": {"type_": "concurrent", "streams": 4}, "backend": {"model": "m"}},
//      "metrics": {"request_totals": {"successful": 12, "errored": 0, "incomplete": 0, "total": 12},
//                  "prompt_token_count": {"successful": {"total_sum": 240.0}},
//                  "output_token_count": {"successful": {"total_sum": 526.0}},
//                  "inter_token_latency_ms": {"successful": {"mean": 8.3}}},
//      "requests": {"successful": [{"response_metrics": {"speculative_decoding": {"num_spec_steps": 12,
//                   "num_accepted_draft_tokens": 15, "num_draft_tokens": 36, "acceptance_histogram": [5, 2, 2, 3],
//                   "num_spec_tokens": 3}}}]},
//      "duration": 1.35}]}
//
// Its inter-token latency is the time between a request's first and last token by the tokens behind the first, the mean
// weighted by these; its time per output token, which is not read, has the wait for the first token in it. Output
// tokens a second are total_sum / duration.
//
// guidellm keeps what a server says of a request; where that is vLLM's speculative_decoding
// (--per-request-spec-decode-metrics), the counts of the benchmark's requests are summed. Without any the run is a
// baseline. Where it keeps a sample of the requests (sample_size) the counts are of these, with the warning
// "sample_of_requests".

namespace {

constexpr std::string_view report_name = "guidellm report", given = "given in every benchmark";
/// A report holds every request's text.
constexpr std::size_t longest_report = std::size_t{2} << 30U;

/// Adds the counts of one request to those of its benchmark. What one of them lacks no sum has.
void add_request(const ServingCounts& request, bool first, ServingCounts& sums) {
  if (first) {
    sums.rounds = request.rounds;
    sums.accepted = request.accepted;
    sums.drafted = request.drafted;
    sums.gamma = request.gamma;
    sums.rounds_by_accepted = request.rounds_by_accepted;
    sums.rounds_by_accepted_and_drafted = request.rounds_by_accepted_and_drafted;
    return;
  }
  const auto add = [](std::optional<double>& sum, const std::optional<double>& value) {
    sum = sum && value ? std::optional(*sum + *value) : std::nullopt;
  };
  add(sums.rounds, request.rounds);
  add(sums.accepted, request.accepted);
  add(sums.drafted, request.drafted);
  if (sums.gamma != request.gamma) sums.gamma.reset();
  if (sums.rounds_by_accepted.empty() || request.rounds_by_accepted.empty()) {
    sums.rounds_by_accepted.clear();
  } else {
    add_counts(sums.rounds_by_accepted, request.rounds_by_accepted);
  }
  auto& by_length = sums.rounds_by_accepted_and_drafted;
  if (by_length.empty() || request.rounds_by_accepted_and_drafted.empty()) return by_length.clear();
  for (const auto& [length, histogram] : request.rounds_by_accepted_and_drafted) {
    add_counts(by_length[length], histogram);
  }
}

class GuidellmReport {
 public:
  GuidellmReport(const std::filesystem::path& path, const CountsSink& sink)
      : file_(path, longest_report), sink_(sink) {}

  void read() {
    std::int64_t benchmarks = 0;
    while (file_.next()) {
      const CountedFields report(file_);
      dataset_ = dataset_of(report);
      benchmarks += report.each("benchmarks", [&](const CountedFields& benchmark) { read_benchmark(benchmark); });
    }
    if (benchmarks > 0) return;
    throw FileError(file_.path(), "benchmarks", "missing or empty", "the list of a report's benchmarks");
  }

 private:
  /// The kind of a report's first data set.
  static std::optional<std::string_view> dataset_of(const CountedFields& report) {
    std::optional<std::string_view> kind;
    const auto config = report.part("config");
    const auto spec = config ? config->part("spec") : std::nullopt;
    if (!spec) return kind;
    spec->each("data", [&](const CountedFields& data) {
      if (!kind) kind = data.text("kind");
    });
    return kind;
  }

  void read_benchmark(const CountedFields& benchmark) {
    counts_ = no_counts(guidellm_engine, report_name, CountUnit::run, file_.path());
    counts_.line = file_.line();
    read_config(benchmark.at("config", given));
    read_run(benchmark);
    if (const auto requests = benchmark.part("requests")) read_requests(*requests);
    sink_.take(counts_);
  }

  void read_config(const CountedFields& config) {
    BenchRun& run = counts_.bench.emplace();
    const CountedFields strategy = config.at("strategy", given);
    const auto kind = strategy.text("type_");
    run.max_concurrency = strategy.measure(kind == "concurrent" ? "streams" : "max_concurrency");
    if (kind == "synchronous") run.max_concurrency = 1;
    run.request_rate = strategy.rate("rate");
    const auto backend = config.part("backend");
    set_label(counts_, "model_name", backend ? backend->text("model") : std::nullopt);
    set_label(counts_, "dataset_name", dataset_);
  }

  void read_run(const CountedFields& benchmark) {
    BenchRun& run = *counts_.bench;
    const CountedFields metrics = benchmark.at("metrics", given), requests = metrics.at("request_totals", given);
    run.completed = requests.required("successful", "given: the requests that were answered");
    run.num_prompts = requests.count("total");
    run.duration_s = benchmark.measure("duration");
    if (run.duration_s.value_or(0) == 0 && *run.completed > 0) {
      benchmark.refuse("duration", run.duration_s ? "0" : "missing",
                       fmt::format("above 0 where {} requests were answered", shown(*run.completed)));
    }
    const auto of_successful = [&](std::string_view metric, std::string_view key) -> std::optional<double> {
      const auto distribution = metrics.part(metric);
      const auto part = distribution ? distribution->part("successful") : std::nullopt;
      return part ? part->measure(key) : std::nullopt;
    };
    run.total_input_tokens = of_successful("prompt_token_count", "total_sum");
    run.total_output_tokens = of_successful("output_token_count", "total_sum");
    if (run.total_output_tokens && *run.completed > 0)
      run.output_throughput = *run.total_output_tokens / *run.duration_s;
    // A mean of 0 is that of answers in one piece, which have no time between tokens.
    const auto between = of_successful("inter_token_latency_ms", "mean");
    if (between.value_or(0) > 0) run.mean_tpot_ms = between;
  }

  void read_requests(const CountedFields& requests) {
    std::int64_t counted = 0;
    const std::int64_t kept = requests.each("successful", [&](const CountedFields& request) {
      const auto said = request.part("response_metrics");
      const auto speculation = said ? said->part("speculative_decoding") : std::nullopt;
      if (!speculation) return;
      ServingCounts counts;
      request_.read(*speculation, counts);
      add_request(counts, counted++ == 0, counts_);
    });
    if (counted == 0) return;
    counts_.engine = "vllm";
    counts_.shape = DraftShape::chain;
    const double answered = *counts_.bench->completed;
    if (static_cast<double>(counted) < answered) {
      const std::string_view code =
          static_cast<double>(kept) < answered ? "sample_of_requests" : "requests_without_speculation";
      sink_.warn({std::string(code), fmt::format("{}: {} of {} requests of a benchmark have counts of speculation in "
                                                 "the report, and acceptance is theirs",
                                                 counts_.place(), counted, shown(answered))});
    }
  }

  JsonLines file_;
  const CountsSink& sink_;
  ServingCounts counts_;
  std::optional<std::string_view> dataset_;
  RequestCounts request_ = RequestCounts(vllm_request_keys());
};

}  // namespace

CountsFormat guidellm_format() {
  return {report_name, [](const FileHead& head) { return mentions_key(head.json(), "guidellm_version"); },
          read_each<GuidellmReport>};
}

}  // namespace specdec::traces
