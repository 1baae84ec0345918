#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/serving/counted_fields.hpp"
#include "traces/serving/counts_formats.hpp"
#include "traces/serving/sglang_arguments.hpp"

namespace specdec::traces {

// Results of a run as benchmark programs write them: one JSON object a run, alone in its file, in JSON lines or
// in an array. Keys may be missing or null, others are not read (but become labels where they are strings of `labels`
// below). CountUnit::run.
//
// vllm bench serve:
//
//   {"backend": "vllm", "model_id": "m", "num_prompts": 100, "request_rate": "inf", "max_concurrency": 8,
//    "duration": 20.5, "completed": 100, "total_input_tokens": 102400, "total_output_tokens": 12800,
//    "output_throughput": 624.4, "mean_tpot_ms": 11.9, "mean_itl_ms": 28.1,
//    "spec_decode_acceptance_rate": 50.0, "spec_decode_acceptance_length": 2.5, "spec_decode_num_drafts": 40,
//    "spec_decode_draft_tokens": 120, "spec_decode_accepted_tokens": 60,
//    "spec_decode_per_position_acceptance_rates": [0.75, 0.5, 0.25]}
//
// The rate is a percentage of the drafted tokens, the length includes the bonus token, and the rates by position are
// fractions of all drafts, so they never rise. What is given twice must agree to the digits that are written.
//
// SGLang's bench_serving:
//
//   {"backend": "sglang", "dataset_name": "random", "request_rate": Infinity, "max_concurrency": 8, "duration": 20.5,
//    "completed": 100, "total_input_tokens": 102400, "total_output_tokens": 12800, "output_throughput": 624.4,
//    "mean_tpot_ms": 11.9, "mean_itl_ms": 11.9, "accept_length": 2.5}
//
// accept_length is tokens a round with the bonus token, averaged since the server started. Rounds are counted back from
// it: the first token of every request comes from its prompt, so the rounds put out total_output_tokens - completed.
//
// The draft becomes the label draft where draft_model, speculative_model, speculative_draft_model_path or draft names
// it, speculative_draft_model_path in server_info or server_args, or model in speculative_config.
//
// Without speculation keys a run is a baseline, its BenchRun alone, unless count_chunks tells of drafts.

namespace {

namespace dom = simdjson::dom;

/// Detailed results hold every token's time and every text.
constexpr std::size_t longest_result = std::size_t{2} << 30U;

constexpr std::string_view vllm_name = "vllm bench";
constexpr std::string_view sglang_name = "sglang bench";
constexpr std::string_view rate_key = "spec_decode_acceptance_rate";
constexpr std::string_view length_key = "spec_decode_acceptance_length";
constexpr std::string_view rounds_key = "spec_decode_num_drafts";
constexpr std::string_view drafted_key = "spec_decode_draft_tokens";
constexpr std::string_view accepted_key = "spec_decode_accepted_tokens";
constexpr std::string_view positions_key = "spec_decode_per_position_acceptance_rates";

/// The length of all answers where they are told (--save-detailed) and have one.
std::optional<double> equal_length(const CountedFields& fields) {
  std::vector<double> lengths;
  if (!fields.list("output_lens", lengths) || lengths.empty()) return std::nullopt;
  const bool equal = std::all_of(lengths.begin(), lengths.end(), [&](double l) { return l == lengths.front(); });
  return equal ? std::optional(lengths.front()) : std::nullopt;
}

BenchRun read_run(const CountedFields& fields) {
  BenchRun run;
  run.max_concurrency = fields.measure("max_concurrency");
  run.request_rate = fields.rate("request_rate");
  run.num_prompts = fields.count("num_prompts");
  run.completed = fields.count("completed");
  run.duration_s = fields.measure("duration");
  run.total_input_tokens = fields.count("total_input_tokens");
  run.total_output_tokens = fields.count("total_output_tokens");
  run.equal_output_tokens = equal_length(fields);
  run.output_throughput = fields.measure_or_nan("output_throughput");
  run.mean_tpot_ms = fields.measure_or_nan("mean_tpot_ms");
  run.mean_itl_ms = fields.measure("mean_itl_ms");
  if (const std::string expected = of_other_unit(run); !expected.empty())
    fields.refuse("mean_tpot_ms", shown(*run.mean_tpot_ms), expected);
  return run;
}

/// The draft's name in the result, or in the server's arguments in it.
std::optional<std::string_view> draft_of(const CountedFields& fields) {
  const auto name_in = [](const CountedFields& object, std::string_view key) {
    const auto text = object.text_if_any(key);
    return text && !text->empty() ? text : std::nullopt;
  };
  for (const std::string_view key : {"draft_model", "speculative_model", "speculative_draft_model_path", "draft"}) {
    if (const auto draft = name_in(fields, key)) return draft;
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> members = {
      {{"server_info", "speculative_draft_model_path"},
       {"server_args", "speculative_draft_model_path"},
       {"speculative_config", "model"}}};
  for (const auto& [member, key] : members) {
    const auto object = fields.part_if_any(member);
    if (const auto draft = object ? name_in(*object, key) : std::nullopt) return draft;
  }
  return std::nullopt;
}

void read_labels(const CountedFields& fields, ServingCounts& counts) {
  const auto model = fields.text_if_any("model_id");
  set_label(counts, "model_name", model ? model : fields.text_if_any("model"));
  for (const std::string_view key : {"backend", "dataset_name", "label", "tag", "server"})
    set_label(counts, key, fields.text_if_any(key));
  set_label(counts, "draft", draft_of(fields));
}

/// Counts of vllm bench serve; all that is given twice is held against each other.
class VllmSpeculation {
 public:
  VllmSpeculation(const CountedFields& fields, ServingCounts& counts, const CountsSink& sink)
      : fields_(fields), counts_(counts), sink_(sink) {}

  void read() {
    counts_.rounds = fields_.count(rounds_key);
    counts_.drafted = fields_.count(drafted_key);
    counts_.accepted = fields_.count(accepted_key);
    const auto percent = fields_.measure(rate_key);
    const auto length = fields_.measure(length_key);
    read_positions();
    if (!counts_.rounds && !counts_.drafted && !counts_.accepted && !percent && !length && rates_.empty()) {
      if (const auto note = count_chunks(counts_)) sink_.warn(*note);
      return;
    }
    if (!counts_.rounds && (length || !rates_.empty())) {
      fields_.refuse(rounds_key, "missing", fmt::format("given beside {}", length ? length_key : positions_key));
    }
    counts_.shape = DraftShape::chain;
    if (percent) take_percent(*percent);
    if (length) take_length(*length);
    take_positions();
    counts_.gamma = rates_.empty() ? equal_drafts_of(counts_) : std::optional(std::ssize(rates_));
  }

 private:
  void read_positions() {
    const auto found = fields_.value(positions_key);
    if (!found) return;
    JsonField field{positions_key};
    double before = 1;
    for (const dom::element entry : read_array(fields_.file(), *found, field)) {
      ++field.index;
      const auto rate = number_of(entry);
      if (!rate || !(0 <= *rate && *rate <= 1)) {
        fields_.file().refuse(field.text(), entry,
                              rate && *rate > 1 ? "a fraction of the drafts, in [0, 1], and no percentage"
                                                : "a fraction of the drafts, in [0, 1]");
      }
      if (*rate > before + 2 * three_decimals) {
        fields_.file().refuse(
            field.text(), entry,
            fmt::format("at most {}, the rate before it: of all drafts, not of those that got there", shown(before)));
      }
      before = *rate;
      rates_.push_back(*rate);
      if (rates_.size() > CountedFields::longest_draft) {
        fields_.refuse(positions_key, "longer than a draft can be",
                       fmt::format("at most {} long", CountedFields::longest_draft));
      }
    }
  }

  void take_percent(double percent) {
    if (percent > 100 + two_decimals) {
      fields_.refuse(rate_key, shown(percent), "a percentage, in [0, 100]");
    }
    if (!counts_.drafted) return;
    const double drafted = *counts_.drafted;
    if (!counts_.accepted) {
      if (percent > 0 && percent <= 1) {
        sink_.warn({"percent_taken_as_fraction",
                    fmt::format("{}:{}: {} is {}: taken as a percentage, though it could be a fraction",
                                counts_.file.string(), counts_.line, rate_key, shown(percent))});
      }
      counts_.accepted = std::round(drafted * percent / 100);
      counts_.from_rates = true;
      return;
    }
    if (drafted == 0) return;
    const double expected = 100 * *counts_.accepted / drafted;
    if (std::abs(percent - expected) <= std::max(two_decimals, 1e-6 * expected)) return;
    const bool fraction = std::abs(percent - expected / 100) <= three_decimals;
    fields_.refuse(rate_key, fraction ? fmt::format("{}, a fraction", shown(percent)) : shown(percent),
                   fmt::format("the percentage {} = 100 * {} / {}", shown(expected), accepted_key, drafted_key));
  }

  void take_length(double length) {
    if (length < 1 - two_decimals && (!counts_.rounds || *counts_.rounds > 0)) {
      fields_.refuse(length_key, shown(length), "at least 1: it includes the bonus token");
    }
    if (!counts_.rounds || *counts_.rounds == 0) return;
    require_counted_length(fields_, length_key, length, counts_);
    if (counts_.accepted) return;
    counts_.accepted = std::round((length - 1) * *counts_.rounds);
    counts_.from_rates = true;
  }

  void take_positions() {
    if (rates_.empty() || !counts_.rounds) return;
    double sum = 0;
    for (const double rate : rates_) {
      counts_.accepted_at.push_back(std::round(rate * *counts_.rounds));
      sum += rate;
    }
    counts_.from_rates = true;
    if (!counts_.accepted) return;
    const double expected = *counts_.accepted / std::max(1.0, *counts_.rounds);
    if (std::abs(sum - expected) > three_decimals * static_cast<double>(rates_.size()) + 1e-6) {
      fields_.refuse(positions_key, fmt::format("{} in sum", shown(sum)),
                     fmt::format("{} = {} / {} in sum", shown(expected), accepted_key, rounds_key));
    }
  }

  const CountedFields& fields_;
  ServingCounts& counts_;
  const CountsSink& sink_;
  std::vector<double> rates_;
};

void read_vllm_speculation(const CountedFields& fields, ServingCounts& counts, const CountsSink& sink) {
  VllmSpeculation(fields, counts, sink).read();
}

void read_sglang_speculation(const CountedFields& fields, ServingCounts& counts, const CountsSink& sink) {
  read_sglang_arguments(fields, counts);
  const auto length = fields.measure("accept_length");
  if (!length) return;
  if (*length < 1) fields.refuse("accept_length", shown(*length), "at least 1: it includes the bonus token");
  if (counts.gamma && *length > static_cast<double>(*counts.gamma + 1)) {
    fields.refuse("accept_length", shown(*length), fmt::format("at most {}, one more than a draft", *counts.gamma + 1));
  }
  if (count_back(counts, *length)) return;
  sink.warn({"accept_length_without_tokens",
             fmt::format("{}:{}: accept_length is {}, but total_output_tokens and completed do not say over how many "
                         "tokens; no counts",
                         counts.file.string(), counts.line, shown(*length))});
}

/// Leaves out results that are there twice: two runs do not take the same time to the last digit.
class DistinctRuns {
 public:
  explicit DistinctRuns(const CountsSink& sink) : sink_(sink) {}

  /// @param number  place of the result in its file, since those of a list may all stand in one line
  void take(const ServingCounts& counts, std::size_t number) {
    ServingCounts run = counts;
    run.file.clear();
    run.line = 0;
    const auto same = std::find_if(taken_.begin(), taken_.end(), [&](const Taken& other) { return other.run == run; });
    if (same != taken_.end()) {
      sink_.warn({"run_given_twice",
                  fmt::format("result {} of {} is result {} of {} again, equal in every figure: it counts once", number,
                              counts.file.string(), same->number, same->file.string())});
      return;
    }
    taken_.push_back({std::move(run), counts.file, number});
    sink_.take(counts);
  }

 private:
  struct Taken {
    /// Without its place.
    ServingCounts run;
    std::filesystem::path file;
    std::size_t number;
  };

  const CountsSink& sink_;
  std::vector<Taken> taken_;
};

using ReadSpeculation = void (*)(const CountedFields&, ServingCounts&, const CountsSink&);

void read_results(std::span<const std::filesystem::path> files, const CountsSink& sink, std::string_view engine,
                  std::string_view format, ReadSpeculation read_speculation) {
  ServingCounts counts = no_counts(engine, format, CountUnit::run);
  DistinctRuns runs(sink);
  for (const std::filesystem::path& path : files) {
    JsonLines file(path, longest_result);
    counts.file = path;
    std::size_t number = 0;
    each_document(file, counts, "the result of a benchmark run", [&](const CountedFields& fields) {
      counts.bench = read_run(fields);
      if (!counts.bench->output_throughput && !counts.bench->mean_tpot_ms && !counts.bench->completed) {
        file.refuse("document", "an object without completed, output_throughput and mean_tpot_ms",
                    "the result of a benchmark run");
      }
      if (counts.bench->duration_s == 0 && counts.bench->completed.value_or(0) > 0) {
        fields.refuse("duration", "0", fmt::format("above 0 where completed is {}", shown(*counts.bench->completed)));
      }
      read_labels(fields, counts);
      read_speculation(fields, counts, sink);
      runs.take(counts, ++number);
    });
  }
}

bool is_bench(std::string_view text) {
  return mentions_key(text, "duration") && mentions_key(text, "completed") &&
         (mentions_key(text, "total_output_tokens") || mentions_key(text, "output_throughput"));
}

bool is_sglang_bench(std::string_view text) {
  if (!is_bench(text)) return false;
  if (mentions_key(text, rounds_key) || mentions_key(text, rate_key)) return false;
  constexpr std::array<std::string_view, 5> keys = {"accept_length", "total_output_tokens_retokenized",
                                                    "sharegpt_output_len", "random_input_len", "random_range_ratio"};
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return mentions_key(text, key); });
}

}  // namespace

CountsFormat vllm_bench_format() {
  return {vllm_name, [](const FileHead& head) { return is_bench(head.json()); },
          [](std::span<const std::filesystem::path> files, const CountsSink& sink) {
            read_results(files, sink, "vllm", vllm_name, read_vllm_speculation);
          }};
}

CountsFormat sglang_bench_format() {
  return {sglang_name, [](const FileHead& head) { return is_sglang_bench(head.json()); },
          [](std::span<const std::filesystem::path> files, const CountsSink& sink) {
            read_results(files, sink, "sglang", sglang_name, read_sglang_speculation);
          }};
}

}  // namespace specdec::traces
