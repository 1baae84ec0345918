#include "analysis/estimate/compared_figures.hpp"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/estimate/serving_summary.hpp"

namespace specdec::estimate {
namespace {

using traces::ServingCounts;
using traces::StatedFigure;

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr std::string_view tokens_per_step = "tokens per step", tokens_per_second = "output tokens/s";
/// Counters of one scrape are read one after the other, and means are rounded.
constexpr double read_apart = 0.01;
/// A server's counters hold warm-up requests and those that failed, which a benchmark's totals leave out.
constexpr double warm_up = 0.1;

std::string text_of(const StatedFigure& figure) {
  if (figure.high == infinite) return fmt::format("{:.4g} or more", figure.low);
  if (!(figure.low > 0)) return fmt::format("{:.4g} at most", figure.high);
  return figure.high - figure.low < 0.05 * figure.high ? fmt::format("{:.4g}", (figure.low + figure.high) / 2)
                                                       : fmt::format("{:.4g} to {:.4g}", figure.low, figure.high);
}

/// What a benchmark says of its own totals; drafts may be missing in some steps, which then put out the rest.
void add_totals(const traces::BenchRun& run, const UnitCounts& unit, std::vector<StatedFigure>& figures) {
  if (!run.total_output_tokens) return;
  if (unit.rounds.value_or(0) > 0) {
    figures.push_back({tokens_per_step, "total_output_tokens / rounds", 0,
                       (1 + warm_up) * *run.total_output_tokens / *unit.rounds});
  }
  if (!(run.duration_s.value_or(0) > 0) || !(run.output_throughput.value_or(0) > 0)) return;
  const auto add = [&](const char* from, double value) {
    figures.push_back({tokens_per_second, from, (1 - warm_up) * value, (1 + warm_up) * value});
  };
  add("total_output_tokens / duration", *run.total_output_tokens / *run.duration_s);
  add("output_throughput", *run.output_throughput);
}

/// The figure that the counts themselves give of tokens per step; empty without rounds.
std::optional<StatedFigure> counted_length(const ServingCounts& counts, const UnitCounts& unit) {
  if (!(unit.rounds.value_or(0) > 0) || !unit.accepted) return std::nullopt;
  const bool of_tokens = !counts.accepted && counts.emitted;
  const double value = of_tokens ? *counts.emitted / *unit.rounds : 1 + *unit.accepted / *unit.rounds;
  return StatedFigure{tokens_per_step, of_tokens ? "tokens put out / rounds" : "1 + accepted / rounds", value, value};
}

}  // namespace

void compare_figures(const ServingCounts& counts, const UnitCounts& unit, std::optional<std::int64_t> gamma,
                     const WarnOfUnit& warn) {
  std::vector<StatedFigure> figures;
  if (const auto length = counted_length(counts, unit)) {
    const double most = gamma ? static_cast<double>(*gamma) + 1 : infinite;
    if (length->high < 1 - read_apart || length->low > most * (1 + read_apart)) {
      throw counts.refusal(fmt::format("{}, {},", tokens_per_step, length->name), fmt::format("{:.4g}", length->low),
                           gamma ? fmt::format("in [1, {}], with {} drafted a round", *gamma + 1, *gamma)
                                 : "1 or more: every round puts out a token");
    }
    figures.push_back(*length);
  }
  figures.insert(figures.end(), counts.stated.begin(), counts.stated.end());
  if (counts.bench && counts.unit == traces::CountUnit::run) add_totals(*counts.bench, unit, figures);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    for (std::size_t j = i + 1; j < figures.size(); ++j) {
      const StatedFigure &a = figures[i], &b = figures[j];
      const bool meet = a.low <= b.high * (1 + read_apart) && b.low <= a.high * (1 + read_apart);
      if (a.quantity != b.quantity || meet) continue;
      warn(figures_contradict, fmt::format("{} are {} by {}, and {} by {}", a.quantity, text_of(a), a.name, text_of(b),
                                           b.name));
      return;
    }
  }
}

}  // namespace specdec::estimate
