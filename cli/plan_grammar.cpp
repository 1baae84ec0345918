#include "cli/plan_grammar.hpp"

#include <fmt/format.h>

namespace specdec::cli {

using planning::ScheduleStretch;

cost::DraftKind kind_named(std::string_view option, std::string_view name) {
  if (const auto kind = cost::draft_kind_named(name)) return *kind;
  refuse(option, name, "one of model, mirrored, eagle, mtp, parallel, ngram, suffix");
}

std::vector<double> rising_list(std::string_view option, const std::string& text, const LegalRange& range) {
  std::vector<double> values;
  for (const std::string_view part : split(text, ',')) {
    if (part.find("..") != std::string_view::npos) refuse(option, text, "a list: write 1,8,64");
    values.push_back(parse_number(option, part, range));
    if (values.size() > 1 && values.back() <= values[values.size() - 2]) refuse(option, text, "a rising list");
  }
  return values;
}

std::vector<ScheduleStretch> parse_schedule(const std::string& text) {
  constexpr std::string_view option = "--schedule";
  constexpr std::string_view expected = "LOW-HIGH:GAMMA,... from batch 1 on without gaps";
  std::vector<ScheduleStretch> schedule;
  for (const std::string_view part : split(text, ',')) {
    const auto pair = split(part, ':');
    if (pair.size() != 2) refuse(option, part, expected);
    const auto ends = split(pair[0], '-');
    if (ends.size() > 2) refuse(option, part, expected);
    const std::int64_t next = schedule.empty() ? 1 : schedule.back().batch_high + 1;
    const std::int64_t low = parse_integer(option, ends.front(), 1, planning::largest_scheduled_batch);
    if (schedule.empty() && low > next) {
      refuse(option, part,
             fmt::format("a range from batch 1 on, as what is in use at batch 1 to {} belongs to a schedule: 1-{}:0,{} "
                         "where that is no draft",
                         low - 1, low - 1, text));
    }
    if (low != next) refuse(option, part, fmt::format("a range that goes on at batch {}", next));
    const std::int64_t high = parse_integer(option, ends.back(), low, planning::largest_scheduled_batch);
    schedule.push_back({low, high, parse_integer(option, pair[1], 0, planning::largest_scanned_gamma)});
  }
  return schedule;
}

}  // namespace specdec::cli
