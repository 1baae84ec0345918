#include "cli/plan_grammar.hpp"

#include <fmt/format.h>

#include "planner/plan.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::cli {

using planning::ScheduleStretch;

namespace {

/// Our name of what an engine's word means; the word itself if it means nothing.
template <class Value>
std::string our_name(const std::optional<Value>& meant, const std::string& word) {
  return meant ? std::string(name_of(*meant)) : word;
}

}  // namespace

void declare_draft_kind(Options& options, std::optional<cost::DraftKind>& kind, const std::string& help) {
  options.choice(
      "--draft-kind", {"model", "mirrored", "eagle", "mtp", "parallel", "ngram", "suffix"}, help,
      [&kind](std::string_view, const std::string& name) { kind = cost::draft_kind_named(name); },
      [](const std::string& word) { return our_name(cost::draft_kind_named(word), word); });
}

void declare_emit(Options& options, std::optional<planning::Engine>& engine, const std::string& help) {
  options.choice(
      "--emit", {"vllm", "sglang", "trtllm", "llamacpp"}, help,
      [&engine](std::string_view, const std::string& name) { engine = planning::engine_named(name); },
      [](const std::string& word) { return our_name(planning::engine_named(traces::lower_case(word)), word); });
}

std::vector<double> rising_list(std::string_view option, const std::string& text, const LegalRange& range) {
  std::vector<double> values;
  for (const std::string_view part : split(text, ',')) {
    const bool is_range =
        part.find("..") != std::string_view::npos || part.find_first_of("-:", 1) != std::string_view::npos;
    if (is_range && part.find_first_of("eE") == std::string_view::npos) refuse(option, text, "a list: write 1,8,64");
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

namespace {

void declare_list(Options& options, const std::string& names, std::vector<double>& list, const LegalRange& range,
                  const std::string& value_name, const std::string& help) {
  options.value(names, value_name, help, [&list, range](std::string_view option, const std::string& text) {
    list = rising_list(option, text, range);
  });
}

}  // namespace

void declare_batch(Options& options, std::vector<double>& batch, const std::string& help) {
  declare_list(options, "--batch,--concurrency", batch,
               {0.0, static_cast<double>(planning::largest_scheduled_batch), true}, "B1,B2,...", help);
}

void declare_context(Options& options, std::vector<double>& context, const std::string& help,
                     const std::string& value_name) {
  declare_list(options, "--context", context, {0.0, planner::largest_context}, value_name, help);
}

void declare_schedule(Options& options, std::vector<ScheduleStretch>& schedule, const std::string& help) {
  options.value("--schedule", "LOW-HIGH:G,...", help,
                [&schedule](std::string_view, const std::string& text) { schedule = parse_schedule(text); });
}

}  // namespace specdec::cli
