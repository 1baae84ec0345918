#include "traces/serving/aiperf.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/serving/counted_fields.hpp"
#include "traces/serving/request_counts.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view records_name = "aiperf records";
constexpr std::string_view summary_name = "aiperf summary";
constexpr std::string_view record_key = "spec_decode_acceptance";
constexpr std::string_view histogram_key = "pooled_spec_decode_acceptance_histogram";

/// The engine's name where the counts are its own, else AIPerf's.
std::string_view engine_of(const CountedFields& fields) {
  const auto engine = fields.text("engine");
  return engine && !engine->empty() ? *engine : aiperf_engine;
}

class AiperfRecords {
 public:
  AiperfRecords(const std::filesystem::path& path, const CountsSink& sink) : file_(path), sink_(sink) {
    counts_.file = path;
    counts_.format = records_name;
    counts_.unit = CountUnit::request;
  }

  void read() {
    while (file_.next()) read_record(read_object(file_, file_.document(), {"document"}));
    warn();
  }

 private:
  void read_record(dom::object record) {
    ++records_;
    const CountedFields fields(file_, record);
    const auto metadata = fields.value("metadata");
    if (!metadata) fields.refuse("metadata", "missing", "given in every record");
    const CountedFields about(file_, read_object(file_, *metadata, {"metadata"}), "metadata.");
    if (const auto phase = about.text("benchmark_phase"); phase && *phase != "profiling") {
      ++of_warmup_;
      return;
    }
    const auto counted = fields.value(record_key);
    if (!counted) {
      ++without_;
      return;
    }
    take(CountedFields(file_, read_object(file_, *counted, {record_key}), "spec_decode_acceptance."));
  }

  void take(const CountedFields& fields) {
    clear_counts(counts_);
    counts_.line = file_.line();
    counts_.engine = engine_of(fields);
    counts_.shape = counts_.engine == "vllm" ? DraftShape::chain : DraftShape::unknown;
    request_.read(fields, counts_);
    if (!counts_.rounds) fields.refuse("num_spec_steps", "missing", "given, or acceptance_histogram");
    auto& by_length = counts_.rounds_by_accepted_and_drafted;
    for (auto entry = by_length.begin(); entry != by_length.end();) {
      entry = entry->second.empty() ? by_length.erase(entry) : std::next(entry);
    }
    if (*counts_.rounds == 0) {
      ++without_;
      return;
    }
    ++taken_;
    sink_.take(counts_);
  }

  void warn() const {
    const std::string path = counts_.file.string();
    if (taken_ == 0) {
      throw FileError(counts_.file, FileError::whole_file(), std::string(record_key),
                      fmt::format("missing or without rounds in all of {} requests", records_),
                      "given where a request speculated");
    }
    if (of_warmup_ > 0) {
      sink_.warn({"warmup_left_out", fmt::format("{}: {} of {} requests are not of the phase that was measured and are "
                                                 "left out",
                                                 path, of_warmup_, records_)});
    }
    if (without_ > 0) {
      sink_.warn({"requests_without_speculation",
                  fmt::format("{}: {} of {} documents have no counts of speculation ({}) and are left out", path,
                              without_, records_, record_key)});
    }
  }

  JsonLines file_;
  const CountsSink& sink_;
  ServingCounts counts_;
  std::int64_t records_ = 0, of_warmup_ = 0, without_ = 0, taken_ = 0;
  RequestCounts request_ = RequestCounts({{"num_spec_steps"},
                                          {"num_accepted_draft_tokens"},
                                          {"num_draft_tokens"},
                                          {"acceptance_histogram"},
                                          {},
                                          "num_spec_tokens",
                                          "draft_acceptance_rate",
                                          "mean_acceptance_length",
                                          "per_step_accepted",
                                          "per_step_drafted",
                                          false});
};

/// The metrics of a summary, each an object with its unit and its mean.
class AiperfMetrics {
 public:
  AiperfMetrics(const JsonLines& file, dom::object summary) : file_(file), summary_(summary) {}

  /// The mean; empty if there is no such metric, or no number in it.
  std::optional<double> mean(std::string_view key, std::string_view unit) const {
    const auto found = find_member(summary_, key);
    if (!found) return std::nullopt;
    const std::string prefix = std::string(key) + ".";
    const CountedFields metric(file_, read_object(file_, *found, {key}), prefix);
    const auto its_unit = metric.text("unit");
    if (!its_unit || *its_unit != unit) {
      metric.refuse("unit", its_unit ? std::string(*its_unit) : "missing", std::string(unit));
    }
    return metric.measure("avg");
  }

  /// A mean that must be a count.
  std::optional<double> count(std::string_view key, std::string_view unit) const {
    const auto value = mean(key, unit);
    if (value && (*value != std::floor(*value) || *value > largest_count)) {
      CountedFields(file_, summary_).refuse(std::string(key) + ".avg", shown(*value), "a whole number");
    }
    return value;
  }

 private:
  const JsonLines& file_;
  dom::object summary_;
};

/// Infers the length of whole drafts: a mean that is no integer is one of drafts of different lengths.
void infer_drafts(ServingCounts& counts) {
  if (!counts.rounds || !counts.drafted || !(*counts.rounds > 0)) return;
  counts.engine = "vllm";
  counts.shape = DraftShape::chain;
  if (std::fmod(*counts.drafted, *counts.rounds) != 0) return;
  counts.gamma = static_cast<std::int64_t>(*counts.drafted / *counts.rounds);
}

void read_totals(const CountedFields& fields, const AiperfMetrics& metrics, ServingCounts& counts) {
  counts.rounds = metrics.count("total_spec_decode_steps", "count");
  counts.accepted = metrics.count("total_accepted_draft_tokens", "tokens");
  counts.drafted = metrics.count("total_draft_tokens", "tokens");
  if (counts.accepted && counts.drafted && *counts.accepted > *counts.drafted) {
    fields.refuse("total_accepted_draft_tokens", shown(*counts.accepted),
                  fmt::format("at most {}, as total_draft_tokens is", shown(*counts.drafted)));
  }
  if (!fields.histogram(histogram_key, counts.rounds_by_accepted)) return infer_drafts(counts);
  double accepted = 0;
  for (std::size_t j = 1; j < counts.rounds_by_accepted.size(); ++j) {
    accepted += static_cast<double>(j) * counts.rounds_by_accepted[j];
  }
  const double rounds = sum_of(counts.rounds_by_accepted);
  if (counts.rounds && *counts.rounds != rounds) {
    fields.refuse(histogram_key, fmt::format("{} rounds in sum", shown(rounds)),
                  fmt::format("{} in sum, as total_spec_decode_steps is", shown(*counts.rounds)));
  }
  if (counts.accepted && *counts.accepted != accepted) {
    fields.refuse(histogram_key, fmt::format("{} accepted drafts in sum", shown(accepted)),
                  fmt::format("{} in sum, as total_accepted_draft_tokens is", shown(*counts.accepted)));
  }
  counts.rounds = rounds;
  counts.accepted = accepted;
  infer_drafts(counts);
}

class AiperfSummary {
 public:
  AiperfSummary(const std::filesystem::path& path, const CountsSink& sink) : file_(path), sink_(sink) {
    counts_.file = path;
    counts_.format = summary_name;
    counts_.unit = CountUnit::run;
  }

  void read() {
    bool any = false;
    while (file_.next()) {
      read_run(read_object(file_, file_.document(), {"document"}));
      any = true;
    }
    if (!any) throw FileError(counts_.file, FileError::whole_file(), "file", "empty", "the summary of a run");
  }

 private:
  void read_run(dom::object summary) {
    clear_counts(counts_);
    counts_.engine = aiperf_engine;
    counts_.line = file_.line();
    const CountedFields fields(file_, summary);
    const AiperfMetrics metrics(file_, summary);
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
    const auto input = fields.value("input_config");
    if (!input) return;
    const dom::object config = read_object(file_, *input, {"input_config"});
    if (const auto models = find_member(config, "models"); models && models->is_object()) {
      const dom::object members = *models;
      const auto first = first_of(members, "items");
      if (first)
        set_label(counts_, "model_name", CountedFields(file_, *first, "input_config.models.items[].").text("name"));
    }
    if (const auto data = first_of(config, "datasets")) {
      set_label(counts_, "dataset_name", CountedFields(file_, *data, "input_config.datasets[].").text("type"));
    }
    const auto phases = find_member(config, "phases");
    if (!phases || !phases->is_array()) return;
    const dom::array list = *phases;
    for (const dom::element entry : list) {
      const CountedFields phase(file_, read_object(file_, entry, {"input_config.phases[]"}), "input_config.phases[].");
      if (phase.text("kind") == "profiling") counts_.bench->max_concurrency = phase.measure("concurrency");
    }
  }

  /// The first object of a list.
  static std::optional<dom::object> first_of(dom::object object, std::string_view key) {
    const auto found = find_member(object, key);
    if (!found || !found->is_array()) return std::nullopt;
    const dom::array list = *found;
    for (const dom::element entry : list) {
      if (!entry.is_object()) return std::nullopt;
      const dom::object first = entry;
      return first;
    }
    return std::nullopt;
  }

  JsonLines file_;
  const CountsSink& sink_;
  ServingCounts counts_;
};

bool is_aiperf_record(std::string_view text) {
  return mentions_key(text, "benchmark_phase") && mentions_key(text, "metadata") && mentions_key(text, "metrics");
}

bool is_aiperf_summary(std::string_view text) {
  return mentions_key(text, "aiperf_version") && mentions_key(text, "request_count");
}

}  // namespace

CountsFormat aiperf_records_format() {
  return {records_name, [](const FileHead& head) { return first_document_passes(head, is_aiperf_record); },
          [](std::span<const std::filesystem::path> files, const CountsSink& sink) {
            for (const std::filesystem::path& path : files) AiperfRecords(path, sink).read();
          }};
}

CountsFormat aiperf_summary_format() {
  return {summary_name, [](const FileHead& head) { return is_aiperf_summary(head.json()); },
          [](std::span<const std::filesystem::path> files, const CountsSink& sink) {
            for (const std::filesystem::path& path : files) AiperfSummary(path, sink).read();
          }};
}

}  // namespace specdec::traces
