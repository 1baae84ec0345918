#include "traces/formats/draft_statistics.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <string>

#include "traces/file_error.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

constexpr std::string_view durations = "dur(b,g,a) =";
constexpr std::string_view statistics = "statistics ";

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// One line of statistics, behind the word.
class StatisticsLine {
 public:
  StatisticsLine(const std::filesystem::path& path, std::int64_t number, std::string_view text)
      : path_(path), number_(number), text_(text) {}

  std::string_view name() const { return without_blanks_before(text_.substr(0, text_.find(':'))); }

  double count(std::string_view key) const {
    std::string_view rest = behind(key);
    const double value = number_at(key, rest);
    if (value < 0 || value != std::floor(value)) refuse(key, fmt::format("{}", value), "a whole number, 0 or more");
    return value;
  }

  /// The second of the three durations, in seconds.
  double drafting_seconds() const {
    std::string_view rest = behind(durations);
    number_at(durations, rest);
    if (!rest.starts_with(',')) refuse(durations, printable(rest, 40), "followed by three numbers and ms");
    rest.remove_prefix(1);
    const double milliseconds = number_at(durations, rest);
    if (milliseconds < 0) refuse(durations, fmt::format("{}", milliseconds), "0 or more");
    return milliseconds / 1000;
  }

  std::int64_t number() const { return number_; }

 private:
  [[noreturn]] void refuse(std::string_view field, std::string found, std::string expected) const {
    throw FileError(path_, FileError::line(number_), std::string(field), std::move(found), std::move(expected));
  }

  std::string_view behind(std::string_view key) const {
    const std::size_t at = text_.find(key);
    if (at == std::string_view::npos) refuse(key, "missing", "given on a line of statistics");
    return text_.substr(at + key.size());
  }

  /// Takes a finite number from the front.
  double number_at(std::string_view key, std::string_view& rest) const {
    rest = without_blanks_before(rest);
    double value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc() || !std::isfinite(value)) refuse(key, printable(rest, 40), "a number");
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return value;
  }

  const std::filesystem::path& path_;
  std::int64_t number_;
  std::string_view text_;
};

/// The last line of each way to draft with a model.
std::map<std::string, TimedPass, std::less<>> last_passes(const std::filesystem::path& path, std::string_view text) {
  std::map<std::string, TimedPass, std::less<>> passes;
  std::int64_t number = 0;
  while (!text.empty()) {
    const std::size_t left = text.size();
    const std::string_view whole = take_part(text);
    ++number;
    const std::size_t at = whole.find(statistics);
    const bool still_written = whole.size() == left && !has(whole, " ms");
    if (at == std::string_view::npos || !has(whole, durations) || still_written) continue;
    const StatisticsLine line(path, number, whole.substr(at + statistics.size()));
    const std::string_view name = line.name();
    if (has(name, "ngram") || has(name, "suffix")) continue;
    const bool at_once = has(name, "dflash") || has(name, "dspark");
    const double count = line.count(at_once ? "#gen drafts =" : "#gen tokens =");
    const double seconds = line.drafting_seconds();
    if (!(count > 0 && seconds > 0)) continue;
    TimedPass pass;
    pass.model = name;
    pass.axis = TimingAxis::generation;
    pass.seconds = seconds / count;
    pass.repetitions = static_cast<std::int64_t>(std::min(count, largest_count));
    pass.line = line.number();
    passes.insert_or_assign(pass.model, pass);
  }
  return passes;
}

}  // namespace

bool has_draft_statistics(std::string_view text) { return has(text, statistics) && has(text, durations); }

TimingTable draft_statistics(const std::filesystem::path& path, std::string_view text) {
  TimingTable table;
  table.path = path;
  table.format = "llama.cpp statistics";
  for (auto& [name, pass] : last_passes(path, text)) table.passes.push_back(std::move(pass));
  if (table.passes.empty()) {
    throw FileError(path, FileError::whole_file(), std::string(durations), "of no draft that is a model and drafted",
                    "of one, whose steps take time");
  }
  for (const TimedPass& pass : table.passes) {
    table.warnings.push_back(
        {"context_unknown",
         fmt::format("{}:{}: {} took {:.4g} ms for each of {} {}, at contexts that the log does "
                     "not say",
                     path.string(), pass.line, pass.model, 1000 * pass.seconds, pass.repetitions,
                     has(pass.model, "dflash") || has(pass.model, "dspark") ? "drafts" : "drafted tokens")});
  }
  // A name tells models of one file apart.
  if (table.passes.size() == 1) table.passes.front().model.clear();
  return table;
}

}  // namespace specdec::traces
