#include "render/figures/sweep_chart.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <utility>

#include "planner/question_error.hpp"
#include "planner/sweeps/sweep_rows.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using nlohmann::ordered_json;

/// Lines that can be told apart.
constexpr std::size_t most_fronts = chart_colours::count;

/// A row's time in milliseconds, and its cost.
using TimeAndCost = std::pair<double, double>;

TimeAndCost place_of(const ordered_json& row, const std::string& cost) {
  return {milliseconds_per_second * row.at("seconds_per_output_token").get<double>(), row.at(cost).get<double>()};
}

/// "context 2000, alpha 0.8" of the options that vary and belong to the work; empty if there are none.
std::string work_text(const ordered_json& row, const std::vector<std::string>& varied,
                      const std::vector<std::string>& work) {
  std::string text;
  for (const std::string& option : varied) {
    if (std::find(work.begin(), work.end(), option) == work.end()) continue;
    const ordered_json& value = row.at(option);
    const std::string shown = value.is_number()   ? brief(value.get<double>(), 4)
                              : value.is_string() ? value.get<std::string>()
                                                  : value.dump();
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", option, shown);
  }
  return text;
}

}  // namespace

Chart pareto_chart(const planner::Sweep& sweep) {
  const std::vector<ordered_json> rows = sweep.rows();
  const std::string cost = planner::pareto_cost_column(rows);
  const std::vector<std::string> work = sweep.work();
  ChartSeries beaten;
  beaten.name = "beaten by another";
  beaten.mark = ChartMark::points;
  beaten.role = ChartRole::reference;
  std::map<std::string, std::vector<TimeAndCost>> fronts;
  for (const ordered_json& row : rows) {
    if (!row.at("pareto").is_boolean()) continue;
    const TimeAndCost place = place_of(row, cost);
    if (row.at("pareto") == true) {
      fronts[work_text(row, sweep.varied, work)].push_back(place);
      continue;
    }
    beaten.x.push_back(place.first);
    beaten.y.push_back(place.second);
  }
  if (fronts.empty())
    throw planner::QuestionError("no point has a time and a cost: --hardware, --cost or --bench know seconds");
  if (fronts.size() > most_fronts) {
    throw planner::QuestionError(fmt::format(
        "the points do {} kinds of work, which differ by {}, but a figure shows at most {}", fronts.size(),
        work_text(rows.front(), sweep.varied, work), most_fronts));
  }
  Chart chart;
  chart.name = "pareto";
  chart.title = "What a shorter time per token costs, over the points of a sweep";
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = {"time_per_token_ms", "time per token (ms)", AxisScale::logarithmic};
  panel.y = {cost,
             cost == "cost_per_million_tokens" ? "cost per million tokens (unit of --price)"
                                               : "GPU time per million tokens (s)",
             AxisScale::logarithmic};
  const std::size_t all_beaten = beaten.x.size();
  std::size_t on_fronts = 0;
  if (all_beaten > 0) panel.series.push_back(std::move(beaten));
  for (auto& [text, places] : fronts) {
    std::sort(places.begin(), places.end());
    on_fronts += places.size();
    ChartSeries line;
    line.name = text.empty() ? "not beaten" : text;
    if (fronts.size() == 1) line.role = ChartRole::highlight;
    for (const auto& [milliseconds, its_cost] : places) {
      line.x.push_back(milliseconds);
      line.y.push_back(its_cost);
    }
    panel.series.push_back(std::move(line));
  }
  chart.caption = fmt::format(
      "{} of {} are not beaten in both time and cost by another of the same work; each decodes with the gamma that is "
      "recommended there.",
      counted(static_cast<std::int64_t>(on_fronts), "point"), on_fronts + all_beaten);
  return chart;
}

}  // namespace specdec::render
