#include "traces/formats/draft_statistics.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>

#include "traces/file_error.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/serving/log_line.hpp"

namespace specdec::traces {
namespace {

constexpr std::string_view durations = "dur(b,g,a) =";
constexpr std::string_view statistics = "statistics ";

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// The second of the three durations on a line, in seconds.
double drafting_seconds(const LogLine& line) {
  const std::string_view behind = line.after(durations).value_or("");
  const auto begun = leading_number(behind);
  const auto drafting = begun && begun->rest.starts_with(',') ? leading_number(begun->rest.substr(1)) : std::nullopt;
  if (drafting && 0 <= drafting->value && std::isfinite(drafting->value)) return drafting->value / 1000;
  line.refuse(durations, printable(behind, 40), "followed by three numbers, 0 or above, and ms");
}

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
    const LogLine line(path, number, whole.substr(at + statistics.size()));
    const std::string_view name = without_blanks_before(line.text().substr(0, line.text().find(':')));
    if (has(name, "ngram") || has(name, "suffix")) continue;
    const bool at_once = has(name, "dflash") || has(name, "dspark");
    const double count = line.count(at_once ? "#gen drafts =" : "#gen tokens =");
    const double seconds = drafting_seconds(line);
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
    throw FileError(path, std::string(durations), "of no draft that is a model and drafted",
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
