#include "traces/formats/timing_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/draft_statistics.hpp"
#include "traces/formats/field_rows.hpp"
#include "traces/formats/mapped_file.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/streams.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/open_trace.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view readable_times =
    "a table of batch, tokens, context and seconds (CSV, JSON), what llama-bench or llama-batched-bench wrote, or the "
    "statistics of drafts in llama.cpp's log";
constexpr std::int64_t default_ubatch = 512;
/// Larger files are not tables of timings.
constexpr std::int64_t largest_table = std::int64_t{64} << 20;

/// One row of any kind of file: its fields as text.
struct TableRow {
  std::int64_t line = 0;
  std::map<std::string, std::string, std::less<>> fields = {};
  std::map<std::string, std::vector<double>, std::less<>> lists = {};

  bool has(std::string_view name) const { return fields.find(name) != fields.end(); }
};

struct TableRows {
  fs::path path;
  std::vector<TableRow> rows = {};
  /// n_ubatch, where a program prints its settings before the rows.
  std::optional<std::int64_t> ubatch = {};
  /// The line with the names of the columns; 0 where each row names its own.
  std::int64_t header = 0;

  [[noreturn]] void refuse(const TableRow& row, std::string field, std::string found, std::string expected) const {
    throw FileError(path, FileError::line(row.line), std::move(field), std::move(found), std::move(expected));
  }
  /// Where the names of the row's fields stand.
  [[noreturn]] void refuse_names(const TableRow& row, std::string field, std::string found,
                                 std::string expected) const {
    throw FileError(path, FileError::line(header > 0 ? header : row.line), std::move(field), std::move(found),
                    std::move(expected));
  }
};

struct Limits {
  double lo = 0;
  bool lo_open = false;
  bool whole = false;
  std::string_view expected;
};

constexpr Limits positive = {.lo_open = true, .expected = "a number above 0"};
constexpr Limits non_negative = {.expected = "a number, 0 or above"};
constexpr Limits whole = {.whole = true, .expected = "a whole number, 0 or above"};
constexpr Limits whole_positive = {.lo = 1, .whole = true, .expected = "a whole number, 1 or above"};

double checked(const TableRows& rows, const TableRow& row, std::string_view name, std::string_view text,
               const Limits& limits) {
  const auto value = number_in<double>(text);
  const bool legal = value && std::isfinite(*value) && *value >= limits.lo &&
                     !(limits.lo_open && *value == limits.lo) && !(limits.whole && *value != std::floor(*value));
  if (!legal) rows.refuse(row, std::string(name), printable(text), std::string(limits.expected));
  return *value;
}

std::optional<double> find_number(const TableRows& rows, const TableRow& row, std::string_view name,
                                  const Limits& limits) {
  const auto found = row.fields.find(name);
  if (found == row.fields.end() || found->second.empty()) return std::nullopt;
  return checked(rows, row, name, found->second, limits);
}

double number(const TableRows& rows, const TableRow& row, std::string_view name, const Limits& limits) {
  const auto value = find_number(rows, row, name, limits);
  if (!value && rows.header > 0 && !row.has(name)) {
    rows.refuse_names(row, fmt::format("column {}", name), "missing", "there");
  }
  if (!value) rows.refuse(row, std::string(name), "missing", std::string(limits.expected));
  return *value;
}

std::string text(const TableRow& row, std::string_view name) {
  const auto found = row.fields.find(name);
  return found == row.fields.end() ? std::string() : found->second;
}

std::vector<double> numbers_of(const FieldRows& from, const RowField& field) {
  std::vector<double> numbers;
  for (const simdjson::dom::element element : *field.list) {
    const auto item = number_of(element);
    if (!item) from.refuse(fmt::format("an element of {}", printable(field.name)), excerpt(element), "a number");
    numbers.push_back(*item);
  }
  return numbers;
}

TableRows recorded_rows(const FileHead& head) {
  TableRows rows{head.path};
  FieldRows from(head, "batch,tokens,context,seconds");
  while (from.next()) {
    TableRow& row = rows.rows.emplace_back(TableRow{from.line()});
    for (const RowField& field : from.fields()) {
      if (field.list) {
        row.lists[std::string(field.name)] = numbers_of(from, field);
      } else {
        row.fields[std::string(field.name)] = field.text;
      }
    }
  }
  rows.header = from.header();
  return rows;
}

std::optional<std::int64_t> number_after(std::string_view content, std::string_view name) {
  const std::size_t place = content.find(name);
  if (place == std::string_view::npos) return std::nullopt;
  std::string_view rest = content.substr(place + name.size());
  return take_number<std::int64_t>(rest);
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  line.remove_prefix(1);
  while (!line.empty()) cells.emplace_back(trimmed(take_part(line, '|')));
  return cells;
}

/// What the llama.cpp programs print in Markdown: the lines that begin with `|`, with their log between them or not.
TableRows printed_rows(const FileHead& head, std::string_view content) {
  constexpr std::string_view rules = "|-: ";
  TableRows rows{head.path};
  rows.ubatch = number_after(content, "n_ubatch = ");
  std::vector<std::string> names;
  for (std::int64_t number = 1; !content.empty(); ++number) {
    const std::string_view line = trimmed(take_part(content));
    if (!line.starts_with('|') || line.find_first_not_of(rules) == std::string_view::npos) continue;
    std::vector<std::string> cells = cells_of(line);
    if (names.empty() || cells.front() == names.front()) {
      names = std::move(cells);
      continue;
    }
    TableRow& row = rows.rows.emplace_back(TableRow{number});
    if (cells.size() != names.size()) {
      rows.refuse(row, "row", fmt::format("{} cells long", cells.size()),
                  fmt::format("{} cells long, as the header is", names.size()));
    }
    for (std::size_t i = 0; i < names.size(); ++i) row.fields[names[i]] = cells[i];
  }
  if (rows.rows.empty()) head.refuse_format(std::string(readable_times));
  return rows;
}

/// Settings under which one model's timings may be compared.
class SameSettings {
 public:
  explicit SameSettings(std::span<const std::string_view> not_settings)
      : not_settings_(not_settings.begin(), not_settings.end()) {}

  void check(const TableRows& rows, const TableRow& row, const std::string& model) {
    const auto [place, first] = first_.try_emplace(model, &row);
    if (first) return;
    for (const auto& [name, value] : row.fields) {
      if (not_settings_.count(name) > 0) continue;
      const std::string before = text(*place->second, name);
      if (before == value) continue;
      rows.refuse(row, name, printable(value),
                  fmt::format("{} as on line {}: one file holds one setting", printable(before), place->second->line));
    }
  }

 private:
  std::set<std::string_view> not_settings_;
  std::map<std::string, const TableRow*> first_;
};

class Interpreter {
 public:
  Interpreter(const TableRows& rows, std::string_view format) : rows_(rows) {
    table_.path = rows.path;
    table_.format = format;
  }

  TimingTable finish() {
    if (table_.passes.empty()) {
      throw FileError(rows_.path, "the number of usable timings", "0", "1 or more");
    }
    return std::move(table_);
  }

 protected:
  void warn(const TableRow& row, std::string_view code, const std::string& message) {
    table_.warnings.push_back({std::string(code), fmt::format("{}:{}: {}", rows_.path.string(), row.line, message)});
  }

  void add(const TableRow& row, TimedPass pass) {
    if (!(pass.seconds > 0) || !std::isfinite(pass.seconds))
      rows_.refuse(row, "seconds of a pass", fmt::format("{}", pass.seconds), "a number above 0");
    table_.passes.push_back(std::move(pass));
  }

  /// A list of times, each above 0; empty if there is none.
  std::vector<double> samples(const TableRow& row, std::string_view name) const {
    const auto found = row.lists.find(name);
    if (found == row.lists.end()) return {};
    for (const double sample : found->second) {
      if (!(sample > 0) || !std::isfinite(sample))
        rows_.refuse(row, fmt::format("an element of {}", name), fmt::format("{}", sample), "a number above 0");
    }
    return found->second;
  }

  /// A pass over more tokens than one micro-batch runs as several.
  bool fits(const TableRow& row, double tokens, double ubatch) {
    if (tokens <= ubatch) return true;
    warn(row, "split_pass_excluded",
         fmt::format("{} tokens are more than the {} of one pass (n_ubatch); left out", tokens, ubatch));
    return false;
  }

  const TableRows& rows_;
  TimingTable table_;
};

class OwnTable : public Interpreter {
 public:
  explicit OwnTable(const TableRows& rows) : Interpreter(rows, "timing table") {
    constexpr std::array<std::string_view, 7> known = {"batch", "tokens",         "context",    "seconds",
                                                       "model", "stddev_seconds", "repetitions"};
    for (const TableRow& row : rows.rows) {
      for (const auto& [name, value] : row.fields) {
        if (std::find(known.begin(), known.end(), name) == known.end()) {
          rows.refuse(row, fmt::format("field {}", printable(name)), "there",
                      "one of batch, tokens, context, seconds, model, stddev_seconds, repetitions");
        }
      }
      TimedPass pass;
      pass.model = text(row, "model");
      pass.batch = number(rows, row, "batch", positive);
      pass.tokens = number(rows, row, "tokens", positive);
      pass.context = number(rows, row, "context", non_negative);
      pass.stddev_seconds = find_number(rows, row, "stddev_seconds", non_negative);
      pass.repetitions = static_cast<std::int64_t>(find_number(rows, row, "repetitions", whole_positive).value_or(0));
      pass.line = row.line;
      take_samples(row, pass);
      if (pass.samples_seconds.empty()) pass.seconds = number(rows, row, "seconds", positive);
      add(row, std::move(pass));
    }
  }

 private:
  void take_samples(const TableRow& row, TimedPass& pass) {
    pass.samples_seconds = samples(row, "samples_seconds");
    if (pass.samples_seconds.empty()) return;
    const double sum = sum_of(pass.samples_seconds);
    const auto count = static_cast<std::int64_t>(pass.samples_seconds.size());
    if (pass.repetitions != 0 && pass.repetitions != count) {
      rows_.refuse(row, "repetitions", fmt::format("{}", pass.repetitions),
                   fmt::format("{}, the number of samples_seconds", count));
    }
    pass.repetitions = count;
    pass.seconds = sum / static_cast<double>(count);
    const auto seconds = find_number(rows_, row, "seconds", positive);
    if (seconds && std::abs(*seconds - pass.seconds) > 1e-3 * pass.seconds) {
      rows_.refuse(row, "seconds", fmt::format("{}", *seconds),
                   fmt::format("{}, the mean of samples_seconds", pass.seconds));
    }
  }
};

/// Takes `prefix` and the integer after it off the front of a text; empty if they are not there.
std::optional<double> take_count(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  const auto count = number_after(text, prefix);
  if (!count || *count < 0) return std::nullopt;
  text.remove_prefix(prefix.size());
  text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
  return static_cast<double>(*count);
}

/// A test of llama-bench, from any of its formats.
struct BenchTest {
  std::string model = {};
  double prompt = 0;
  double generated = 0;
  double depth = 0;
  double ubatch = default_ubatch;
  double test_seconds = 0;
  std::optional<double> stddev_seconds = {};
  std::vector<double> samples_seconds = {};
};

class LlamaBench : public Interpreter {
 public:
  explicit LlamaBench(const TableRows& rows) : Interpreter(rows, "llama-bench") {
    constexpr std::array<std::string_view, 17> not_settings = {
        "model_filename", "model_type", "model_size", "model_n_params", "n_prompt", "n_gen",
        "n_depth",        "test_time",  "avg_ns",     "stddev_ns",      "avg_ts",   "stddev_ts",
        "model",          "size",       "params",     "test",           "t/s"};
    SameSettings settings(not_settings);
    for (const TableRow& row : rows.rows) {
      const BenchTest test = row.has("t/s") ? printed_test(row) : recorded_test(row);
      settings.check(rows, row, test.model);
      take(row, test);
    }
  }

 private:
  BenchTest recorded_test(const TableRow& row) const {
    BenchTest test;
    test.model = text(row, "model_filename");
    if (test.model.empty()) test.model = text(row, "model_type");
    test.prompt = number(rows_, row, "n_prompt", whole);
    test.generated = number(rows_, row, "n_gen", whole);
    test.depth = find_number(rows_, row, "n_depth", whole).value_or(0);
    test.ubatch = find_number(rows_, row, "n_ubatch", whole_positive).value_or(default_ubatch);
    test.test_seconds = number(rows_, row, "avg_ns", positive) * 1e-9;
    if (const auto stddev = find_number(rows_, row, "stddev_ns", non_negative)) test.stddev_seconds = *stddev * 1e-9;
    for (const double ns : samples(row, "samples_ns")) test.samples_seconds.push_back(ns * 1e-9);
    return test;
  }

  /// The type alone does not distinguish two models of one architecture.
  static std::string printed_model(const TableRow& row) {
    const std::string type = text(row, "model"), size = text(row, "size"), parameters = text(row, "params");
    return size.empty() || parameters.empty() ? type : fmt::format("{} ({} / {})", type, size, parameters);
  }

  /// `pp5 @ d1024` and `208.36 ± 1.20`.
  BenchTest printed_test(const TableRow& row) const {
    BenchTest test;
    test.model = printed_model(row);
    test.ubatch = find_number(rows_, row, "n_ubatch", whole_positive).value_or(default_ubatch);
    const std::string what = text(row, "test");
    std::string_view left = what;
    test.prompt = take_count(left, "pp").value_or(0);
    const bool combined = test.prompt > 0 && left.starts_with('+');
    if (combined) left.remove_prefix(1);
    test.generated = take_count(left, "tg").value_or(0);
    test.depth = take_count(left, " @ d").value_or(0);
    if (!left.empty() || test.prompt + test.generated == 0 || (combined && test.generated == 0)) {
      rows_.refuse(row, "test", printable(what), "ppN, tgN or ppN+tgM, perhaps with @ dN behind it");
    }
    const std::string rate_text = text(row, "t/s");
    const std::size_t sign = rate_text.find("\xc2\xb1");
    const double rate = checked(rows_, row, "t/s", trimmed(std::string_view(rate_text).substr(0, sign)), positive);
    test.test_seconds = (test.prompt + test.generated) / rate;
    if (sign != std::string::npos) {
      const double deviation =
          checked(rows_, row, "deviation of t/s", trimmed(std::string_view(rate_text).substr(sign + 2)), non_negative);
      test.stddev_seconds = test.test_seconds * deviation / rate;
    }
    return test;
  }

  void take(const TableRow& row, const BenchTest& test) {
    if (test.prompt > 0 && test.generated > 0) {
      warn(row, "combined_test_excluded", "a test that reads a prompt and generates times no single pass; left out");
      return;
    }
    if (test.prompt + test.generated == 0) {
      rows_.refuse(row, "n_prompt + n_gen", "0", "1 or more");
    }
    if (!fits(row, test.prompt, test.ubatch)) return;
    const bool generates = test.generated > 0;
    const double passes = generates ? test.generated : 1;
    TimedPass pass;
    pass.model = test.model;
    pass.axis = generates ? TimingAxis::generation : TimingAxis::verification;
    pass.tokens = generates ? 1 : test.prompt;
    pass.context = generates ? test.depth + (test.generated - 1) / 2 : test.depth;
    pass.seconds = test.test_seconds / passes;
    if (test.stddev_seconds) pass.stddev_seconds = *test.stddev_seconds / passes;
    for (const double seconds : test.samples_seconds) pass.samples_seconds.push_back(seconds / passes);
    pass.repetitions = static_cast<std::int64_t>(pass.samples_seconds.size());
    pass.line = row.line;
    add(row, std::move(pass));
  }
};

class LlamaBatchedBench : public Interpreter {
 public:
  explicit LlamaBatchedBench(const TableRows& rows) : Interpreter(rows, "llama-batched-bench") {
    constexpr std::array<std::string_view, 19> not_settings = {
        "pp", "tg", "pl", "n_kv", "t_pp",   "speed_pp", "t_tg",   "speed_tg", "t",  "speed",
        "PP", "TG", "B",  "N_KV", "T_PP s", "S_PP t/s", "T_TG s", "S_TG t/s", "T s"};
    SameSettings settings(not_settings);
    for (const TableRow& row : rows.rows) {
      const bool printed = row.has("S_TG t/s");
      if (!printed) settings.check(rows, row, "");
      take(row, printed);
    }
  }

 private:
  void take(const TableRow& row, bool printed) {
    const double prompt = number(rows_, row, printed ? "PP" : "pp", whole);
    const double generated = number(rows_, row, printed ? "TG" : "tg", whole);
    const double sequences = number(rows_, row, printed ? "B" : "pl", whole_positive);
    if (generated == 0) {
      warn(row, "no_generation_excluded", "nothing was generated; left out");
      return;
    }
    const double ubatch = printed ? static_cast<double>(rows_.ubatch.value_or(default_ubatch))
                                  : find_number(rows_, row, "n_ubatch", whole_positive).value_or(default_ubatch);
    if (!fits(row, sequences, ubatch)) return;
    TimedPass pass;
    pass.axis = TimingAxis::batch;
    pass.batch = sequences;
    pass.context = prompt + (generated - 1) / 2;
    pass.seconds =
        printed ? printed_seconds(row, sequences, generated) : number(rows_, row, "t_tg", positive) / generated;
    pass.repetitions = 1;
    pass.line = row.line;
    add(row, std::move(pass));
  }

  /// Seconds are printed with three decimals, tokens per second with two.
  double printed_seconds(const TableRow& row, double sequences, double generated) const {
    constexpr double rounding = 0.00051;
    const double rate = number(rows_, row, "S_TG t/s", positive);
    const double seconds = number(rows_, row, "T_TG s", non_negative);
    const double from_rate = sequences * generated / rate;
    if (std::abs(from_rate - seconds) > rounding + from_rate * 0.0051 / rate) {
      rows_.refuse(row, "T_TG s", fmt::format("{}", seconds), fmt::format("{:.3f}, which S_TG t/s says", from_rate));
    }
    return from_rate / generated;
  }
};

void require_table(const FileHead& head) {
  if (head.folder) throw FileError(head.path, "path", "a folder", "a file");
  if (head.size > largest_table) {
    throw FileError(head.path, "size", fmt::format("{} bytes", head.size),
                    fmt::format("at most {} bytes", largest_table));
  }
  if (!head.compression().empty()) head.refuse_format(std::string(readable_times));
}

TableRows rows_of(const FileHead& head, std::string_view content) {
  if (!head.json().empty()) return recorded_rows(head);
  if (content.find("INSERT INTO llama_bench ") != std::string_view::npos) {
    throw FileError(head.path, "content", "what llama-bench -o sql wrote", "of llama-bench -o csv, json, jsonl or md");
  }
  if (content.starts_with('|') || content.find("\n|") != std::string_view::npos) return printed_rows(head, content);
  return recorded_rows(head);
}

}  // namespace

std::vector<std::string> TimingTable::models() const {
  std::vector<std::string> names;
  for (const TimedPass& pass : passes)
    if (std::find(names.begin(), names.end(), pass.model) == names.end()) names.push_back(pass.model);
  return names;
}

std::vector<TimedPass> TimingTable::passes_of(std::string_view model) const {
  std::vector<TimedPass> found;
  std::copy_if(passes.begin(), passes.end(), std::back_inserter(found),
               [model](const TimedPass& pass) { return pass.model == model; });
  return found;
}

TimingTable read_timing_table(const fs::path& path) {
  const KeptStreams streams;
  const FileHead head = FileHead::of(path);
  require_table(head);
  const MappedFile file(path);
  const std::string_view content = text_of(file.bytes());
  constexpr std::size_t longest_mib = 64;
  if (content.size() >> 20U >= longest_mib)
    throw FileError(path, "table", fmt::format("{} MiB long", content.size() >> 20U),
                    fmt::format("below {} MiB", longest_mib));
  if (head.json().empty() && has_draft_statistics(content)) return draft_statistics(path, content);
  const TableRows rows = rows_of(head, content);
  if (rows.rows.empty()) throw FileError(path, "the number of timings", "0", "1 or more");
  const TableRow& first = rows.rows.front();
  if (first.has("pl") || first.has("S_TG t/s")) return LlamaBatchedBench(rows).finish();
  if (first.has("n_prompt") || first.has("t/s")) return LlamaBench(rows).finish();
  if (first.has("seconds") || first.lists.count("samples_seconds") > 0) return OwnTable(rows).finish();
  std::string names;
  for (const auto& [name, value] : first.fields) names += (names.empty() ? "" : ", ") + name;
  rows.refuse_names(first, "columns", names.empty() ? "none" : printable(names, 200), std::string(readable_times));
}

}  // namespace specdec::traces
