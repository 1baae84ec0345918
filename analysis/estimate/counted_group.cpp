#include "analysis/estimate/counted_group.hpp"

#include <algorithm>
#include <cmath>

namespace specdec::estimate {
namespace {

using traces::CountUnit;
using traces::DraftShape;
using traces::ServingCounts;

void insert_once(std::vector<std::string>& names, std::string_view name) {
  if (name.empty() || (!names.empty() && names.back() == name)) return;
  if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
}

SeriesKey series_of(const ServingCounts& counts) {
  SeriesKey series;
  for (const traces::CountLabel& label : counts.labels) {
    series.source += label.name + '\0' + label.value + '\0';
  }
  if (!counts.between_scrapes) series.log = counts.file.string();
  return series;
}

}  // namespace

void CountedGroup::WithoutGamma::add(const ServingCounts& counts, double its_rounds, double its_drafted) {
  ++units;
  rounds += its_rounds;
  drafted += its_drafted;
  const std::pair<double, double> between = counts.rounds_between.value_or(std::pair(its_rounds, its_rounds));
  const double fewest = between.first;
  const double least = std::ceil(its_drafted / between.second * (1 - 1e-9));
  if (!(least <= static_cast<double>(RoundMoments::most_positions))) {
    most_gamma = 0;
    return;
  }
  auto gamma = static_cast<std::int64_t>(least);
  least_gamma = std::max(least_gamma, gamma);
  const auto of_end = [&] {
    return static_cast<double>(gamma) * fewest - its_drafted <= drafts_short_of(counts, gamma, fewest);
  };
  while (gamma <= most_gamma && of_end()) ++gamma;
  most_gamma = std::min(most_gamma, gamma - 1);
}

void CountedGroup::add(const ServingCounts& counts, const UnitCounts& normal, ClusterSums& scratch) {
  ++told.units;
  insert_once(told.engines, counts.engine);
  insert_once(told.formats, counts.format);
  insert_once(told.files, counts.file.native());
  told.from_rates = told.from_rates || counts.from_rates;
  rounds.add(normal.rounds);
  drafted.add(normal.drafted);
  accepted.add(normal.accepted);
  emitted.add(normal.emitted);
  steps.add(traces::steps_of(counts));
  if (normal.longest_draft) told.longest_draft = std::max(told.longest_draft.value_or(0), *normal.longest_draft);
  const std::pair<double, double> between =
      normal.rounds_between.value_or(std::pair(normal.rounds.value_or(0), normal.rounds.value_or(0)));
  least_rounds += between.first;
  most_rounds += between.second;
  // Units that drafted nothing, such as a baseline or an idle window, say nothing about the shape of drafts.
  if (!(normal.rounds.value_or(0) > 0) && !(normal.drafted.value_or(0) > 0) && !normal.mean_tokens) return;
  ++counted;
  unit.add(counts.unit);
  rule.add(counts.rule);
  draft_method.add(counts.draft_method);
  shape.add(normal.shape);
  verified.add(counts.verified_per_round);
  fixed_gamma.add(normal.fixed_gamma);
  if (counts.engine == "llama.cpp" && normal.shape == DraftShape::chain && !normal.longest_draft &&
      normal.rounds.value_or(0) > 0 && normal.drafted.value_or(0) > 0) {
    without_gamma.add(counts, *normal.rounds, *normal.drafted);
  }
  if (normal.shape == DraftShape::chain && !normal.fixed_gamma && normal.drafted && normal.rounds.value_or(0) > 0 &&
      !is_one_length(*normal.drafted / *normal.rounds)) {
    rounds_of_lengths += *normal.rounds;
    drafted_of_lengths += *normal.drafted;
  }
  exact += normal.evaluation == Evaluation::exact ? 1 : 0;
  bounded += normal.evaluation == Evaluation::bounds ? 1 : 0;
  by_moments += normal.evaluation == Evaluation::moments ? 1 : 0;
  if (normal.has_positions) {
    ++with_positions;
    traces::add_counts(told.rounds_by_accepted, normal.rounds_by_accepted);
  }
  if (!normal.rounds_by_drafted.empty()) {
    ++with_lengths;
    traces::add_counts(rounds_by_drafted, normal.rounds_by_drafted);
  }
  if (normal.by_length != nullptr) {
    ++with_both;
    for (const auto& [length, histogram] : *normal.by_length) traces::add_counts(by_length[length], histogram);
  } else if (normal.has_positions && normal.fixed_gamma) {
    ++with_both;
    traces::add_counts(by_length[*normal.fixed_gamma], normal.rounds_by_accepted);
  }
  if (normal.mean_tokens) {
    scratch.set_mean(*normal.mean_tokens);
  } else {
    scratch.set(normal);
  }
  place(counts, scratch);
  if (counts.unit == CountUnit::window) {
    const SeriesKey its = series_of(counts);
    const double tokens = scratch.rounds > 0 ? 1 + scratch.accepted / scratch.rounds : 1;
    WindowsInOrder& windows = in_order[{its.source, normal.fixed_gamma}];
    if (windows.cells.parts() == 0) windows.first = tokens;
    windows.last = tokens;
    const auto file = std::find(told.files.begin(), told.files.end(), counts.file.native()) - told.files.begin();
    windows.cells.add({static_cast<double>(windows.cells.parts()), static_cast<std::size_t>(file), counts.line,
                       scratch.accepted, scratch.rounds});
    (normal.mean_tokens ? series_of_means : series)[its].add(scratch);
  } else {
    (normal.mean_tokens ? means : clusters).add(scratch);
  }
}

void CountedGroup::place(const ServingCounts& counts, const ClusterSums& sums) {
  const auto add = [&](std::string_view over, double value) {
    if (!(value >= 1) || !(sums.rounds > 0)) return;
    const int power = std::ilogb(value);
    by_place[{over, power}].add({static_cast<double>(power), 0, 0, sums.accepted, sums.rounds});
  };
  if (counts.window && counts.window->running) add("requests at once", *counts.window->running);
  if (counts.unit == CountUnit::request && counts.bench && counts.bench->total_input_tokens)
    add("prompt tokens", *counts.bench->total_input_tokens);
}

std::vector<AcceptanceTrend> CountedGroup::trends() const {
  std::vector<AcceptanceTrend> trends;
  std::optional<AcceptanceTrend> over_time;
  double tried = 0;
  for (const auto& [key, windows] : in_order) {
    auto trend = acceptance_trend(windows.cells.cells(), true);
    if (!trend) continue;
    ++tried;
    if (over_time && over_time->p_value <= trend->p_value) continue;
    trend->units = static_cast<double>(windows.cells.parts());
    if (trend->jump) {
      const TrendCell& turn = trend->turn;
      if (turn.file < told.files.size()) trend->turn_at = told.files[turn.file];
      if (turn.line > 0) trend->turn_at += fmt::format(":{}", turn.line);
    } else {
      trend->before = windows.first;
      trend->after = windows.last;
    }
    over_time = trend;
  }
  if (over_time) {
    over_time->p_value = std::min(1.0, tried * over_time->p_value);
    trends.push_back(*over_time);
  }
  std::map<std::string_view, std::vector<TrendCell>> over;
  for (const auto& [place, cells] : by_place) {
    auto& all = over[place.first];
    all.insert(all.end(), cells.cells().begin(), cells.cells().end());
  }
  for (const auto& [name, cells] : over) {
    auto trend = acceptance_trend(cells, false);
    if (!trend) continue;
    trend->over = name;
    trends.push_back(*trend);
  }
  return trends;
}

}  // namespace specdec::estimate
