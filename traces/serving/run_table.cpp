#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/mapped_file.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/serving/counted_fields.hpp"
#include "traces/serving/counts_formats.hpp"
#include "traces/serving/run_acceptance.hpp"
#include "traces/serving/run_cells.hpp"

namespace specdec::traces {

// Benchmark runs as people tabulate them and programs print them, a run a row. CountUnit::run.
//
//   concurrency,gamma,output_tokens_per_second,tokens_per_step
//   1,0,163.2,                                                   gamma 0: without speculation
//   1,3,299.7,2.67
//
//   | bs | K        | tok/s        | AL       |                 Markdown, or a grid of | and -
//   |---:|----------|-------------:|----------|
//   |  1 | baseline | 163.2 ± 0.4  |          |
//   |  1 | 3        | **299.7**    | 2.67     |
//
//   ============ Serving Benchmark Result ============           what a benchmark program prints: one run a summary
//   Maximum request concurrency:             64
//   Output token throughput (tok/s):         2148.42
//
// docs/reference/formats.md#a-table-of-runs lists the columns, their other names and their units. Of throughput and
// time one gives the other by Little's law, the batch being as stated, or else as large as the concurrency. Where
// rounds are not given the tokens per step are a mean of unknown precision. A column that could be several things is
// refused where it is needed, and else left out with the warning "columns_left_out".

namespace {

constexpr std::string_view format_name = "run table";
constexpr std::size_t longest_setting = 80;
constexpr std::size_t longest_table = std::size_t{16} << 20U;
/// Batch, throughput and time of one run contradict each other where Little's law is off by more.
constexpr double of_littles_law = 0.05;

bool names_a_column(std::string_view heading) { return column_of(heading).what != RunColumn::unknown; }

/// What the columns of a table together can be read as.
struct Meaning {
  bool load = false, time = false, drafts = false, counts = false;
};

Meaning meaning_of(const TextTable& table) {
  Meaning meaning;
  for (const std::string& name : table.names) {
    const NamedColumn column = column_of(name);
    const bool of_time = column.what == RunColumn::unclear && column.advice.find("_per_") != std::string_view::npos;
    meaning.load |= column.what == RunColumn::concurrency || column.what == RunColumn::batch ||
                    column.what == RunColumn::strategy || (table.summary && column.what == RunColumn::requests);
    meaning.time |= of_time || (RunColumn::throughput <= column.what && column.what <= RunColumn::ms_between);
    meaning.drafts |= column.what == RunColumn::gamma || column.what == RunColumn::steps ||
                      column.what == RunColumn::draft_tokens;
    meaning.counts |= column.what == RunColumn::rounds || column.what == RunColumn::accepted;
  }
  meaning.drafts |= setting_column(table) < table.names.size();
  return meaning;
}

bool holds_runs(const TextTable& table) {
  const Meaning meaning = meaning_of(table);
  const bool timed = meaning.time && (meaning.load || meaning.drafts);
  return timed || (!table.summary && meaning.drafts && meaning.load) ||
         (meaning.counts && std::any_of(table.names.begin(), table.names.end(), [](const std::string& name) {
            const RunColumn what = column_of(name).what;
            return what == RunColumn::tokens_per_step || what == RunColumn::accepted_at || what == RunColumn::drafted ||
                   what == RunColumn::draft_tokens;
          }));
}

bool is_run_table(const FileHead& head) {
  if (!head.json().empty() || head.bytes.find('\0') != std::string::npos) return false;
  const std::vector<TextTable> tables = text_tables(head.bytes, names_a_column);
  return std::any_of(tables.begin(), tables.end(), holds_runs);
}

/// The runs of one table.
class RunTable {
 public:
  RunTable(const TextTable& table, ServingCounts& counts, const CountsSink& sink)
      : cells_(counts.file, table), acceptance_(cells_, counts), counts_(counts), sink_(sink) {
    require_columns();
    count_repeated(table);
  }

  void read() {
    for (const TextTable::Row& row : cells_.table().rows) {
      cells_.read(row);
      clear_counts(counts_);
      counts_.line = row.line;
      take_names();
      take_gamma();
      const bool repeated = repeated_[counted_in_row()] > 1;
      acceptance_.take(plain_, repeated);
      repeats_ = repeats_ || (repeated && !plain_);
      take_run();
      sink_.take(counts_);
    }
    warn();
  }

 private:
  using Counted = std::tuple<std::string, std::string, std::string>;

  /// @throws FileError if there is no column for what every run must have
  void require_columns() {
    const auto require = [&](bool there, const std::string& names) {
      if (there) return;
      const auto [column, advice] = cells_.unclear();
      const FileError::Location place = FileError::line(cells_.table().line);
      if (column.empty()) {
        throw FileError(counts_.file, place, fmt::format("column {}", names), "missing",
                        "in the header of a table of runs");
      }
      throw FileError(counts_.file, place, fmt::format("column {}", column), "one of several things",
                      std::string(advice));
    };
    const auto has = [&](RunColumn what) { return cells_.has(what); };
    const bool counted = has(RunColumn::rounds) || has(RunColumn::drafted);
    const bool throughput = has(RunColumn::throughput);
    const bool time = has(RunColumn::ms_per_token) || has(RunColumn::each_throughput);
    require(throughput || time || has(RunColumn::ms_between) || counted, "output_tokens_per_second or ms_per_token");
    const bool told = has(RunColumn::concurrency) || has(RunColumn::batch) || has(RunColumn::strategy) ||
                      has(RunColumn::request_rate);
    one_request_ = !told && !(throughput && time);
    require(has(RunColumn::gamma) || has(RunColumn::setting) || has(RunColumn::strategy) || counted ||
                cells_.table().summary,
            "gamma");
  }

  /// Counts that several rows have are of all of them together.
  void count_repeated(const TextTable& table) {
    for (const TextTable::Row& row : table.rows) {
      cells_.read(row);
      const auto [rounds, drafted, accepted] = counted_in_row();
      if (!rounds.empty() && !drafted.empty() && !accepted.empty()) ++repeated_[counted_in_row()];
    }
  }
  Counted counted_in_row() const {
    return {std::string(cells_.text(RunColumn::rounds)), std::string(cells_.text(RunColumn::drafted)),
            std::string(cells_.text(RunColumn::accepted))};
  }

  void take_names() {
    const auto named = [&](RunColumn what) {
      const std::string_view text = cells_.text(what);
      return text.empty() ? std::nullopt : std::optional(text);
    };
    const bool vllm = cells_.table().title == "Serving Benchmark Result";
    counts_.engine = named(RunColumn::engine).value_or(vllm ? "vllm" : run_table_engine);
    set_label(counts_, "model_name", named(RunColumn::model));
    set_label(counts_, "draft", named(RunColumn::draft));
    for (const std::size_t i : cells_.dividing()) {
      const auto [name, value] = cells_.named(i);
      set_label(counts_, name, value);
    }
    set_label(counts_, "server", named(RunColumn::server));
    set_label(counts_, "category", named(RunColumn::category));
  }

  /// 0 for a run without speculation; empty for counts that tell it, and for summaries that do not.
  void take_gamma() {
    plain_ = false;
    const std::string_view cell = cells_.text(RunColumn::gamma), setting = cells_.text(RunColumn::setting);
    std::optional<double> gamma;
    if (says_plain(cell) || (cell.empty() && says_plain(setting))) {
      gamma = 0;
    } else if (!cell.empty()) {
      gamma = gamma_in_setting(cell);
      if (!gamma) gamma = cells_.value(RunColumn::gamma, 0, true);
    } else if (gamma = gamma_in_setting(setting); !gamma && cells_.counts_in_setting() && !setting.empty()) {
      gamma = cells_.value(RunColumn::setting, 0, true);
    }
    const bool counted = !cells_.text(RunColumn::rounds).empty() || !cells_.text(RunColumn::drafted).empty();
    const bool says_acceptance = counted || !cells_.text(RunColumn::tokens_per_step).empty() ||
                                 !cells_.text(RunColumn::drafts_per_step).empty() ||
                                 !cells_.text(RunColumn::acceptance_rate).empty();
    if (!gamma && !counted && !cells_.table().summary && !(cells_.has(RunColumn::strategy) && !says_acceptance)) {
      if (cells_.has(RunColumn::gamma) || setting.empty())
        cells_.refuse(cells_.heading(RunColumn::gamma, "gamma"), "missing",
                      "a whole number, 0 for a run without speculation");
      cells_.refuse(RunColumn::setting, printable(setting, longest_setting),
                    "such that it says once how many tokens a round drafts, as k=3, or none");
    }
    plain_ = gamma == 0.0 || (!gamma && !says_acceptance);
    if (plain_) return;
    counts_.draft_method = method_in_setting(setting);
    if (!counts_.draft_method.empty() && !cells_.has(RunColumn::draft))
      set_label(counts_, "draft", counts_.draft_method);
    if (!gamma) return;
    acceptance_.require_draft_of(*gamma);
    counts_.gamma = static_cast<std::int64_t>(*gamma);
  }

  void take_run() {
    BenchRun run;
    run.max_concurrency = cells_.value(RunColumn::concurrency, 0);
    if (!run.max_concurrency && cells_.text(RunColumn::strategy) == "synchronous") run.max_concurrency = 1;
    run.batch = cells_.value(RunColumn::batch, 0);
    if (const std::string_view rate = cells_.text(RunColumn::request_rate); !rate.empty() && rate != "inf")
      run.request_rate = cells_.value(RunColumn::request_rate, 0);
    run.output_throughput = cells_.value(RunColumn::throughput, 0);
    run.mean_tpot_ms = cells_.text(RunColumn::ms_per_token) == "0.0" ? std::nullopt
                                                                     : cells_.value(RunColumn::ms_per_token, 0);
    if (const auto each = cells_.value(RunColumn::each_throughput, 0); each && !run.mean_tpot_ms)
      run.mean_tpot_ms = 1000 / *each;
    run.mean_itl_ms = cells_.value(RunColumn::ms_between, 0);
    take_lengths(run);
    if (!run.output_throughput && !run.mean_tpot_ms) take_time_between(run);
    if (!run.output_throughput && !run.mean_tpot_ms) {
      if (counts_.rounds) return take_steps(run);
      cells_.refuse(cells_.heading(RunColumn::throughput, "output_tokens_per_second"), "missing",
                    "a number above 0, or ms_per_token");
    }
    take_littles_law(run);
    counts_.bench = run;
    if (!plain_ || counts_.engine != "vllm" || !cells_.table().summary) return;
    if (const auto note = count_chunks(counts_)) sink_.warn(*note);
  }

  /// Those without a draft among them, where the tokens are told and nothing else of the run.
  void take_steps(const BenchRun& run) {
    if (!run.total_output_tokens || !counts_.accepted) return;
    counts_.steps = std::max(*counts_.rounds, *run.total_output_tokens - run.completed.value_or(0) - *counts_.accepted);
  }

  /// Between tokens of plain decoding, each is a step; with drafts some engines time tokens and others steps.
  void take_time_between(BenchRun& run) const {
    if (!run.mean_itl_ms) return;
    if (!plain_) {
      cells_.refuse(RunColumn::ms_between, shown(*run.mean_itl_ms),
                    "given as ms_per_token: with drafts some engines time steps by this name, and others tokens");
    }
    run.mean_tpot_ms = run.mean_itl_ms;
  }

  void take_littles_law(BenchRun& run) const {
    const bool load_known = run.batch || run.max_concurrency;
    if (run.mean_tpot_ms && run.output_throughput) {
      const double decoding = *run.output_throughput * *run.mean_tpot_ms / 1000;
      if (run.batch && std::abs(decoding - *run.batch) > of_littles_law * *run.batch)
        cells_.refuse(RunColumn::batch, shown(*run.batch),
                      fmt::format("{}, the output tokens per second times the time of each", shown(decoding)));
      if (const std::string expected = of_other_unit(run); !run.batch && !expected.empty())
        cells_.refuse(cells_.has(RunColumn::ms_per_token) ? RunColumn::ms_per_token : RunColumn::each_throughput,
                      shown(*run.mean_tpot_ms), expected);
      if (!load_known && !run.request_rate) run.batch = decoding;
      return;
    }
    if (one_request_) run.max_concurrency = 1;
    if (!load_known && !one_request_)
      cells_.refuse(cells_.heading(RunColumn::concurrency, "concurrency"), "missing", "a number above 0, or batch");
    const double together = run.batch ? *run.batch : *run.max_concurrency;
    if (!run.mean_tpot_ms) {
      run.mean_tpot_ms = 1000 * together / *run.output_throughput;
    } else {
      run.output_throughput = 1000 * together / *run.mean_tpot_ms;
    }
  }

  void take_lengths(BenchRun& run) const {
    run.completed = cells_.value(RunColumn::requests, 1, true);
    run.duration_s = cells_.value(RunColumn::seconds, 0);
    run.total_input_tokens = cells_.value(RunColumn::total_input, 1);
    run.total_output_tokens = cells_.value(RunColumn::total_output, 1);
    run.input_tokens_per_request = cells_.value(RunColumn::mean_input, 1);
    run.output_tokens_per_request = cells_.value(RunColumn::mean_output, 1);
    constexpr double longest_answer = 1e6;
    for (const RunColumn what : {RunColumn::mean_input, RunColumn::mean_output}) {
      const auto mean = cells_.value(what, 1);
      const double all = run.output_throughput.value_or(0) * run.duration_s.value_or(0);
      const bool is_total = mean && (*mean > longest_answer ||
                                     (what == RunColumn::mean_output && run.completed.value_or(0) > 1 && all > 0 &&
                                      std::abs(*mean - all) < of_littles_law * all));
      if (is_total)
        cells_.refuse(what, shown(*mean),
                      fmt::format("a mean over requests: write total_{}_tokens for a total",
                                  what == RunColumn::mean_input ? "input" : "output"));
    }
  }

  void warn() const {
    const auto say = [&](const char* code, const std::string& text) {
      sink_.warn({code, fmt::format("{}: {}", counts_.file.string(), text)});
    };
    if (one_request_ && counts_.bench)
      say("load_not_said", "no column says how many requests ran at a time, and each run is taken for one at a time; a "
                           "column concurrency says it");
    if (const std::vector<std::string> names = cells_.left_out(); !names.empty())
      say("columns_left_out", fmt::format("not read: {}", fmt::join(names, ", ")));
    if (!cells_.table().summary) {
      for (const RunColumn what : {RunColumn::throughput, RunColumn::ms_per_token}) {
        if (!cells_.has(what) || cells_.column(what).statistic != Statistic::median) continue;
        say("medians_for_means", "throughput or time between tokens are medians, which the table has alone, and stand "
                                 "for means");
        break;
      }
    }
    if (repeats_)
      say("counts_of_several_runs", "several runs have the same counts, which are of all of them together: each run "
                                    "has the mean alone");
    if (!acceptance_.contradiction().empty())
      say("acceptance_rate_left_out",
          fmt::format("{}; a rate is accepted / drafted, and the length is used", acceptance_.contradiction()));
  }

  RunCells cells_;
  RunAcceptance acceptance_;
  ServingCounts& counts_;
  const CountsSink& sink_;
  std::map<Counted, int> repeated_;
  bool plain_ = false, repeats_ = false;
  /// Nothing says the load.
  bool one_request_ = false;
};

void read_tables(std::span<const std::filesystem::path> files, const CountsSink& sink) {
  ServingCounts counts = no_counts({}, format_name, CountUnit::run);
  for (const std::filesystem::path& path : files) {
    counts.file = path;
    counts.labels.clear();
    const MappedFile file(path);
    if (file.bytes().size() > longest_table) {
      throw FileError(path, "table of runs", fmt::format("{} bytes long", file.bytes().size()),
                      fmt::format("at most {}", longest_table));
    }
    std::size_t runs = 0;
    for (const TextTable& table : text_tables(text_of(file.bytes()), names_a_column)) {
      if (!holds_runs(table)) {
        if (table.summary) continue;
        sink.warn({"table_left_out", fmt::format("{}:{}: a table that is none of runs", path.string(), table.line)});
        continue;
      }
      RunTable(table, counts, sink).read();
      runs += table.rows.size();
    }
    if (runs == 0) throw FileError(path, "the number of runs", "0", "1 or more");
  }
}

}  // namespace

CountsFormat run_table_format() { return {format_name, is_run_table, read_tables}; }

}  // namespace specdec::traces
