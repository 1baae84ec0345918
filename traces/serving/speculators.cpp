#include "traces/serving/speculators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/csv_records.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/serving/counted_fields.hpp"

namespace specdec::traces {
namespace {

constexpr std::string_view acceptance_name = "speculators acceptance";
constexpr std::string_view results_name = "speculators results";
constexpr std::string_view position_prefix = "acceptance_at_pos_";
/// A figure written in full and multiplied back misses a whole number, or another figure, by at most this share.
constexpr double written_in_full = 1e-6;

bool header_names(const FileHead& head, std::initializer_list<std::string_view> columns) {
  const std::string_view text = without_byte_order_mark(head.bytes);
  const std::string_view line = text.substr(0, text.find('\n'));
  if (!line.starts_with("subset,")) return false;
  return std::all_of(columns.begin(), columns.end(),
                     [&](std::string_view column) { return line.find(column) != std::string_view::npos; });
}

/// The lines of one table, by the names of its columns.
class EvaluationTable {
 public:
  explicit EvaluationTable(const std::filesystem::path& path) : records_(path) {
    records_.next();
    for (const std::string_view name : records_.fields()) {
      if (!columns_.emplace(std::string(trimmed(name)), columns_.size()).second)
        records_.refuse(fmt::format("column {}", printable(trimmed(name))), "there twice", "there once");
    }
    while (columns_.contains(position_column(positions_))) ++positions_;
    if (positions_ > CountedFields::longest_draft) {
      records_.refuse(fmt::format("column {}*", position_prefix), fmt::format("there {} times", positions_),
                      fmt::format("there at most {} times", CountedFields::longest_draft));
    }
  }

  bool next() {
    if (!records_.next()) return false;
    if (records_.fields().size() != columns_.size()) {
      records_.refuse("row", fmt::format("{} fields long", records_.fields().size()),
                      fmt::format("{} fields long, as the header is", columns_.size()));
    }
    return true;
  }

  std::int64_t line() const { return records_.line(); }
  /// Tokens that a draft may have; 0 where the table has no columns of acceptance.
  std::size_t positions() const { return positions_; }
  static std::string position_column(std::size_t j) { return fmt::format("{}{}", position_prefix, j); }

  /// Empty where the column is missing or the field is.
  std::string_view text(std::string_view column) const {
    const auto found = columns_.find(column);
    return found == columns_.end() ? std::string_view() : trimmed(records_.fields()[found->second]);
  }

  /// A finite number in [least, most].
  std::optional<double> find(std::string_view column, double least, double most = largest_count) const {
    const std::string_view field = text(column);
    if (field.empty()) return std::nullopt;
    const auto value = number_in<double>(field);
    if (value && least <= *value && *value <= most) return value;
    records_.refuse(std::string(column), std::string(printable(field)),
                    most < largest_count ? fmt::format("a number in [{:g}, {:g}]", least, most)
                                         : fmt::format("a number >= {:g}", least));
  }

  double number(std::string_view column, double least, double most = largest_count) const {
    if (const auto value = find(column, least, most)) return *value;
    refuse(column, "missing", "given in every row");
  }

  [[noreturn]] void refuse(std::string_view column, std::string found, std::string expected) const {
    records_.refuse(std::string(column), std::move(found), std::move(expected));
  }

 private:
  CsvRecords records_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::size_t positions_ = 0;
};

void take_counts_of(const EvaluationTable& table, ServingCounts& counts) {
  const double rounds = table.number("num_drafts", 1);
  const double drafted = table.number("num_draft_tokens", 0);
  const double accepted = table.number("num_accepted_tokens", 0);
  if (accepted > drafted) {
    table.refuse("num_accepted_tokens", shown(accepted),
                 fmt::format("at most {}, as num_draft_tokens is", shown(drafted)));
  }
  const double length = table.number("acceptance_length", 1);
  if (std::abs(length - 1 - accepted / rounds) > written_in_full * length) {
    table.refuse("acceptance_length", shown(length),
                 fmt::format("{}, 1 + num_accepted_tokens / num_drafts", shown(1 + accepted / rounds)));
  }
  counts.rounds = rounds;
  counts.drafted = drafted;
  counts.accepted = accepted;
  double before = rounds;
  for (std::size_t j = 0; j < table.positions(); ++j) {
    const std::string column = EvaluationTable::position_column(j);
    const double rate = table.number(column, 0, 1);
    const double at = std::round(rate * rounds);
    if (std::abs(at - rate * rounds) > std::max(written_in_full * rounds, 1e-3)) {
      table.refuse(column, shown(rate), fmt::format("a whole number of {} drafts", shown(rounds)));
    }
    if (at > before) table.refuse(column, shown(rate), "at most the rate before it: of all drafts");
    before = at;
    counts.accepted_at.push_back(at);
  }
  if (const double sum = sum_of(counts.accepted_at); sum != accepted) {
    table.refuse(fmt::format("{}*", position_prefix), fmt::format("{} drafts in sum", shown(sum)),
                 fmt::format("{} in sum, as num_accepted_tokens is", shown(accepted)));
  }
}

void require_drafts_of_gamma(const EvaluationTable& table) {
  const double rounds = table.number("num_drafts", 1);
  const double drafted = table.number("num_draft_tokens", 0);
  if (drafted <= rounds * static_cast<double>(table.positions())) return;
  table.refuse("num_draft_tokens", shown(drafted),
               fmt::format("at most {} for each of {} drafts, one for each {}*", table.positions(), shown(rounds),
                           position_prefix));
}

void take_run(const EvaluationTable& table, ServingCounts& counts) {
  BenchRun& run = counts.bench.emplace();
  if (table.text("strategy") == "synchronous") run.max_concurrency = 1;
  run.request_rate = table.find("target_rate", 0);
  run.output_throughput = table.find("output_tps_median", 0);
  // A median of 0 is that of answers in one piece, which have no time between tokens.
  if (const auto between = table.find("itl_median_ms", 0); between.value_or(0) > 0) run.mean_tpot_ms = between;
  // Loads that the table does not tell apart are told apart by their batch.
  const bool load_told = run.max_concurrency || run.request_rate;
  if (!load_told && run.mean_tpot_ms && run.output_throughput.value_or(0) > 0)
    run.batch = *run.output_throughput * *run.mean_tpot_ms / 1000;
}

void take_acceptance(const EvaluationTable& table, ServingCounts& counts) {
  require_drafts_of_gamma(table);
  counts.shape = DraftShape::chain;
  counts.gamma = static_cast<std::int64_t>(table.positions());
}

using ReadRow = void (*)(const EvaluationTable&, ServingCounts&);

void read_acceptance_row(const EvaluationTable& table, ServingCounts& counts) {
  if (table.positions() == 0)
    table.refuse(fmt::format("column {}0", position_prefix), "missing", "in the header, one for each token of a draft");
  take_acceptance(table, counts);
  take_counts_of(table, counts);
}

void read_results_row(const EvaluationTable& table, ServingCounts& counts) {
  take_run(table, counts);
  if (table.positions() == 0 || table.text("num_drafts").empty()) return;
  take_acceptance(table, counts);
  ServingCounts subset;
  take_counts_of(table, subset);
  counts.tokens_per_round = 1 + *subset.accepted / *subset.rounds;
}

std::size_t read_table(const std::filesystem::path& path, const CountsSink& sink, std::string_view format,
                       ReadRow read_row) {
  EvaluationTable table(path);
  ServingCounts counts;
  counts.file = path;
  counts.engine = "vllm";
  counts.format = format;
  counts.unit = CountUnit::run;
  std::size_t rows = 0;
  for (; table.next(); ++rows) {
    clear_counts(counts);
    counts.line = table.line();
    const std::string_view subset = table.text("subset");
    set_label(counts, "category", subset.empty() ? std::nullopt : std::optional(subset));
    read_row(table, counts);
    sink.take(counts);
  }
  if (rows == 0) throw FileError(path, FileError::whole_file(), "the number of rows", "0", "1 or more");
  return rows;
}

void read_acceptance(std::span<const std::filesystem::path> files, const CountsSink& sink) {
  for (const std::filesystem::path& path : files) read_table(path, sink, acceptance_name, read_acceptance_row);
}

void read_results(std::span<const std::filesystem::path> files, const CountsSink& sink) {
  for (const std::filesystem::path& path : files) {
    read_table(path, sink, results_name, read_results_row);
    sink.warn(
        {"medians_for_means", fmt::format("{}: throughput and time between tokens are medians, which the table has "
                                          "alone, and stand for means",
                                          path.string())});
  }
}

}  // namespace

CountsFormat speculators_acceptance_format() {
  return {acceptance_name,
          [](const FileHead& head) {
            return header_names(head, {"num_drafts", "acceptance_length"}) && !header_names(head, {"itl_median_ms"});
          },
          read_acceptance};
}

CountsFormat speculators_results_format() {
  return {results_name,
          [](const FileHead& head) {
            return header_names(head, {"strategy", "itl_median_ms", "output_tps_median"});
          },
          read_results};
}

}  // namespace specdec::traces
