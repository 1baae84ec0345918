#include "traces/serving/run_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/csv_records.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/serving/counted_fields.hpp"

namespace specdec::traces {
namespace {

constexpr std::string_view format_name = "run table";
/// Batch, throughput and time of one run contradict each other where Little's law is off by more.
constexpr double rounding = 0.05;

constexpr std::array<std::string_view, 16> columns = {
    "concurrency",     "batch",           "gamma",        "output_tokens_per_second",
    "ms_per_token",    "tokens_per_step", "rounds",       "topk",
    "verified_tokens", "model",           "input_tokens", "output_tokens",
    "requests",        "draft",           "engine",       "server"};
constexpr std::string_view columns_text =
    "one of concurrency, batch, gamma, output_tokens_per_second, ms_per_token, tokens_per_step, rounds, topk, "
    "verified_tokens, input_tokens, output_tokens, requests, model, draft, engine, server";
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> other_names = {
    {{"max_concurrency", "concurrency"},
     {"num_speculative_tokens", "gamma"},
     {"output_throughput", "output_tokens_per_second"},
     {"mean_tpot_ms", "ms_per_token"},
     {"acceptance_length", "tokens_per_step"},
     {"accept_length", "tokens_per_step"},
     {"num_steps", "gamma"},
     {"num_draft_tokens", "verified_tokens"}}};

std::string column_named(std::string_view header) {
  std::string name;
  for (const char c : trimmed(header)) {
    name += c == ' ' || c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  const auto other =
      std::find_if(other_names.begin(), other_names.end(), [&](const auto& o) { return o.first == name; });
  return other == other_names.end() ? name : std::string(other->second);
}

bool is_column(std::string_view name) { return std::find(columns.begin(), columns.end(), name) != columns.end(); }

/// A file whose first line names the drafted tokens, or both a load and a time, is meant for a table of runs.
bool is_run_table(const FileHead& head) {
  const std::string_view text = without_byte_order_mark(head.bytes);
  const std::size_t begin = std::min(text.find_first_not_of("\r\n"), text.size());
  const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  const char separator = csv_separator(line);
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(separator, at), line.size());
    names.push_back(column_named(line.substr(at, end - at)));
    at = end + 1;
  }
  const auto has = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  const bool load = has("concurrency") || has("batch");
  const bool time = has("output_tokens_per_second") || has("ms_per_token");
  return names.size() > 1 && ((has("gamma") && (load || time)) || (load && time));
}

class RunTable {
 public:
  RunTable(const std::filesystem::path& path, ServingCounts& counts) : records_(path), counts_(counts) {
    records_.next();
    for (const std::string_view field : records_.fields()) {
      names_.push_back(column_named(field));
      if (!is_column(names_.back()))
        records_.refuse(fmt::format("column {}", printable(trimmed(field))), "there", std::string(columns_text));
      if (std::count(names_.begin(), names_.end(), names_.back()) > 1)
        records_.refuse(fmt::format("column {}", names_.back()), "there twice", "there once");
    }
    require_one_of("concurrency", "batch");
    require_one_of("gamma", "gamma");
    require_one_of("output_tokens_per_second", "ms_per_token");
  }

  /// The next run's counts; false at the end.
  bool next() {
    if (!records_.next()) return false;
    if (records_.fields().size() != names_.size()) {
      records_.refuse("row", fmt::format("{} fields long", records_.fields().size()),
                      fmt::format("{} fields long, as the header is", names_.size()));
    }
    fields_.clear();
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const std::string_view field = trimmed(records_.fields()[i]);
      if (!field.empty()) fields_[names_[i]] = field;
    }
    clear_counts(counts_);
    counts_.line = records_.line();
    counts_.engine = text("engine").value_or(run_table_engine);
    set_label(counts_, "model_name", text("model"));
    set_label(counts_, "draft", text("draft"));
    set_label(counts_, "server", text("server"));
    take_load();
    take_drafts();
    return true;
  }

 private:
  void require_one_of(std::string_view one, std::string_view other) {
    const auto has = [&](std::string_view name) {
      return std::find(names_.begin(), names_.end(), name) != names_.end();
    };
    if (has(one) || has(other)) return;
    records_.refuse(one == other ? fmt::format("column {}", one) : fmt::format("column {} or {}", one, other),
                    "missing", "in the header of a table of runs");
  }

  std::optional<std::string_view> text(std::string_view name) const {
    const auto found = fields_.find(name);
    return found == fields_.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<double> number(std::string_view name, double least, bool whole = false) const {
    const auto field = text(name);
    if (!field) return std::nullopt;
    const auto value = number_in<double>(*field);
    const bool above = least == 0 && !whole;
    const bool legal = value && std::isfinite(*value) && (above ? *value > 0 : *value >= least) &&
                       !(whole && *value != std::floor(*value)) && *value <= largest_count;
    if (!legal) {
      records_.refuse(
          std::string(name), std::string(printable(*field)),
          above ? "a number above 0" : fmt::format("a {}number, {:g} or above", whole ? "whole " : "", least));
    }
    return value;
  }

  void take_load() {
    BenchRun run;
    run.max_concurrency = number("concurrency", 0);
    const auto batch = number("batch", 0);
    run.batch = batch;
    if (!run.max_concurrency && !batch) records_.refuse("concurrency", "missing", "a number above 0, or batch");
    run.output_throughput = number("output_tokens_per_second", 0);
    run.mean_tpot_ms = number("ms_per_token", 0);
    if (!run.output_throughput && !run.mean_tpot_ms)
      records_.refuse("output_tokens_per_second", "missing", "a number above 0, or ms_per_token");
    const double together = batch ? *batch : *run.max_concurrency;
    if (!batch && run.mean_tpot_ms && run.output_throughput) require_some_decode(run);
    if (!run.mean_tpot_ms) {
      run.mean_tpot_ms = 1000 * together / *run.output_throughput;
    } else if (!run.output_throughput) {
      run.output_throughput = 1000 * together / *run.mean_tpot_ms;
    } else if (const double decoding = *run.output_throughput * *run.mean_tpot_ms / 1000;
               batch && std::abs(decoding - *batch) > rounding * *batch) {
      records_.refuse("batch", shown(*batch),
                      fmt::format("{}, the output tokens per second times the time of each", shown(decoding)));
    }
    run.input_tokens_per_request = number("input_tokens", 1);
    run.output_tokens_per_request = number("output_tokens", 1);
    run.completed = number("requests", 1, true);
    counts_.bench = run;
  }

  /// Refuses times in another unit than milliseconds; prompts that are read in between leave few requests decoding.
  void require_some_decode(const BenchRun& run) const {
    constexpr double least_decoding = 0.02;
    const double decoding = *run.output_throughput * *run.mean_tpot_ms / 1000;
    if (decoding >= least_decoding) return;
    records_.refuse(
        "ms_per_token", shown(*run.mean_tpot_ms),
        fmt::format("in milliseconds: with {} output tokens a second only {} requests would decode at a time",
                    shown(*run.output_throughput), shown(decoding)));
  }

  void take_drafts() {
    const auto gamma = number("gamma", 0, true);
    if (!gamma) records_.refuse("gamma", "missing", "a whole number, 0 for a run without speculation");
    const auto tokens = number("tokens_per_step", 1);
    const auto rounds = number("rounds", 1);
    const auto topk = number("topk", 1, true), verified = number("verified_tokens", 1, true);
    if (*gamma == 0) {
      if (tokens.value_or(1) != 1) records_.refuse("tokens_per_step", shown(*tokens), "1 or empty where gamma is 0");
      return;
    }
    if (*gamma > CountedFields::longest_draft)
      records_.refuse("gamma", shown(*gamma), fmt::format("at most {}", CountedFields::longest_draft));
    counts_.gamma = static_cast<std::int64_t>(*gamma);
    take_shape(static_cast<std::int64_t>(topk.value_or(1)), verified);
    if (rounds && !tokens) records_.refuse("tokens_per_step", "missing", "given, since rounds are");
    if (!tokens) return;
    if (*tokens > *gamma + 1)
      records_.refuse("tokens_per_step", shown(*tokens),
                      fmt::format("in [1, {}], with {} drafted", *gamma + 1, *gamma));
    counts_.tokens_per_round = tokens;
    if (!rounds) return;
    counts_.rounds = rounds;
    counts_.drafted = *rounds * *gamma;
    counts_.accepted = std::round((*tokens - 1) * *rounds);
    counts_.from_rates = true;
  }

  void take_shape(std::int64_t topk, std::optional<double> verified) {
    const double chain = static_cast<double>(*counts_.gamma) + 1;
    counts_.shape = topk > 1 ? DraftShape::tree : DraftShape::chain;
    if (counts_.shape == DraftShape::chain) {
      if (verified.value_or(chain) != chain)
        records_.refuse("verified_tokens", shown(*verified), fmt::format("{} or empty where topk is 1", chain));
      return;
    }
    counts_.top_k = topk;
    if (!verified) return;
    if (*verified < chain)
      records_.refuse("verified_tokens", shown(*verified), fmt::format("at least {}, gamma and the root", chain));
    counts_.verified_per_round = static_cast<std::int64_t>(*verified);
  }

  CsvRecords records_;
  ServingCounts& counts_;
  std::vector<std::string> names_;
  std::map<std::string_view, std::string_view, std::less<>> fields_;
};

void read_tables(std::span<const std::filesystem::path> files, const CountsSink& sink) {
  ServingCounts counts;
  counts.format = format_name;
  counts.unit = CountUnit::run;
  for (const std::filesystem::path& path : files) {
    counts.file = path;
    RunTable table(path, counts);
    bool any = false;
    for (; table.next(); any = true) sink.take(counts);
    if (!any) throw FileError(path, FileError::whole_file(), "the number of runs", "0", "1 or more");
  }
}

}  // namespace

CountsFormat run_table_format() { return {format_name, is_run_table, read_tables}; }

}  // namespace specdec::traces
