#include "traces/serving/log_counts.hpp"

#include <fmt/format.h>

#include <cmath>

#include "traces/serving/counted_fields.hpp"
#include "traces/serving/counts_from_rates.hpp"

namespace specdec::traces {

ServingCounts LogCounts::counts_of(std::int64_t line, const char* engine, std::string_view format,
                                   CountUnit unit) const {
  ServingCounts counts = no_counts(engine, format, unit, path_);
  counts.line = line;
  return counts;
}

void LogCounts::take(const ServingCounts& counts) {
  taken_ = true;
  sink_.take(counts);
}

void LogCounts::take_window(const ServingCounts& counts) {
  if (!sink_.plain_windows) return;
  any_window_ = true;
  sink_.take(counts);
}

void require_ratio(const LogLine& line, std::string_view field, double printed, double exact, double unit) {
  if (std::abs(printed - exact) <= 0.51 * unit) return;  // a ratio in single precision
  line.refuse(field, fmt::format("{}", printed), fmt::format("{:.6g}, as the counts on the line say", exact));
}

void count_back(const LogLine& line, ServingCounts& counts, double length, const std::vector<double>& rates,
                bool full_drafts, std::optional<double> passes) {
  PrintedRates printed = {*counts.accepted, *counts.drafted, length, rates, full_drafts};
  if (passes) printed.passes = *passes;
  const auto back = counts_from_rates(printed);
  if (!back.consistent) {
    double sum = 0;
    for (const double rate : rates) sum += rate;
    line.refuse("mean acceptance length", fmt::format("{}", length),
                rates.empty()
                    ? fmt::format("possible with {} accepted of {} drafted", *counts.accepted, *counts.drafted)
                    : fmt::format("1 + the rates by position, {:.3f}, with {} accepted of {} drafted", 1 + sum,
                                  *counts.accepted, *counts.drafted));
  }
  counts.rounds = back.rounds;
  counts.rounds_between = back.between;
  counts.accepted_at = back.accepted_at;
  counts.from_rates = true;
  counts.shape = DraftShape::chain;
  const auto positions = static_cast<double>(rates.size());
  if (positions > 0 && *counts.drafted <= back.rounds.value_or(*counts.drafted) * positions) {
    counts.gamma = static_cast<std::int64_t>(rates.size());
  }
}

}  // namespace specdec::traces
