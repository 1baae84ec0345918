#include "render/figures/load_charts.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/question_error.hpp"
#include "render/text.hpp"

namespace specdec::render {

namespace {

/// Loads of a figure go up to this share of the saturated rate; beyond it times are those of a growing queue.
constexpr double last_load = 0.98;
/// The position of words beside a line on a logarithmic axis.
constexpr double above_line = 1.04;
/// Their distance to the right of a point, as a share of the axis: clear of a falling line.
constexpr double beside_point = 0.115;

/// The index of the largest load among scenarios that draft, or among those that do not; empty if there are none.
std::optional<std::size_t> largest_load_place(const sim::CapacityAnswer& answer, bool drafts) {
  std::optional<std::size_t> best;
  const auto rate = [&](std::size_t place) { return answer.scenarios[place].requests_per_second_per_replica.value; };
  for (std::size_t i = 0; i < answer.scenarios.size(); ++i) {
    if (sim::is_plain(answer.scenarios[i].scenario) == drafts) continue;
    if (!best || rate(i) > rate(*best)) best = i;
  }
  return best;
}

std::optional<std::size_t> plain_place(const sim::CapacityAnswer& answer) { return largest_load_place(answer, false); }

/// The recommended speculative scenario, else the one that takes the largest load.
std::optional<std::size_t> speculative_place(const sim::CapacityAnswer& answer) {
  if (answer.recommended && !sim::is_plain(answer.scenarios[*answer.recommended].scenario)) return answer.recommended;
  return largest_load_place(answer, true);
}

std::string scenario_text(const sim::CapacityScenario& scenario) {
  if (sim::is_plain(scenario)) return "plain decoding";
  const std::optional<std::int64_t> gamma = planner::gamma_of(scenario);
  return (gamma ? fmt::format("γ = {}", *gamma) : "schedule") +
         (scenario.engine.verification_budget ? " budgeted" : "");
}

/// Denser where the queue begins to matter.
std::vector<double> loads_up_to(double last, std::size_t count) {
  std::vector<double> loads;
  for (std::size_t i = 1; i <= count; ++i) {
    const double left = 1 - static_cast<double>(i) / static_cast<double>(count);
    loads.push_back(last * (1 - 0.95 * std::pow(left, 1.3)));
  }
  return loads;
}

/// From lines, not bands: if a world cannot take a load, its times depend on the run's length.
double largest_drawn(const ChartPanel& panel) {
  double largest = 0;
  for (const ChartSeries& series : panel.series) {
    for (const double y : series.y) largest = std::max(largest, y);
  }
  return largest;
}

/// Plain decoding is the reference for speculation.
void set_look(const ScenarioOverLoads& scenario, ChartSeries& series) {
  if (scenario.is_plain) {
    series.role = ChartRole::reference;
    series.colour = 0;
  } else {
    series.colour = chart_colours::speculation;
    if (series.mark != ChartMark::band) series.role = ChartRole::highlight;
  }
}

void warn_of_simulation(const std::string& runs, Chart& chart) {
  chart.assumptions.push_back(
      {"95% intervals", "Student's t over runs, widened to seven worlds from 2.5% to 97.5%",
       "default"});
  chart.warnings.push_back(
      {"simulated", fmt::format("figures are those of {} of each way at each load; bands hold the error of these runs, "
                                "of the cost and of the acceptance; where a world takes less than the load, its "
                                "times grow with the length of the runs; where two bands overlap, their colours mix",
                                runs)});
}

}  // namespace

namespace {

sim::CapacityQuestion without_load(sim::CapacityQuestion question) {
  question.workload.requests_per_second.reset();
  return question;
}

/// @param place  of the answer's scenarios, which are the question's
ScenarioOverLoads over_loads(const sim::CapacityQuestion& question, const sim::CapacityInWorlds& worlds,
                             std::size_t place, std::size_t loads) {
  const sim::ScenarioCapacity& found = worlds.answer.scenarios[place];
  ScenarioOverLoads scenario;
  scenario.name = scenario_text(found.scenario);
  scenario.is_plain = sim::is_plain(found.scenario);
  scenario.saturated = found.saturated_requests_per_second_per_replica;
  if (loads > 0) {
    scenario.points =
        sim::replica_in_worlds(question, place, loads_up_to(last_load * scenario.saturated.value, loads), worlds);
  }
  return scenario;
}

/// Plain decoding in the layout that is best for it.
ScenarioOverLoads plain_elsewhere(const planner::Capacity& capacity, std::size_t loads) {
  sim::CapacityQuestion question = without_load(capacity.of_plain().simulation);
  sim::CapacityAnswer answer = sim::plan_capacity(question);
  const std::size_t place = *plain_place(answer);
  question.scenarios = {question.scenarios[place]};
  answer.scenarios = {answer.scenarios[place]};
  return over_loads(question, sim::in_worlds(question, std::move(answer), capacity.worlds), 0, loads);
}

/// "gamma 3, tp 2": where plain decoding is compared in another layout.
void name_layouts(const planner::LayoutSearch& search, std::vector<ScenarioOverLoads>& scenarios) {
  for (ScenarioOverLoads& scenario : scenarios) {
    const planner::Layout drafts = search.layouts[search.chosen].layout;
    scenario.name += ", " + planner::text_of(scenario.is_plain ? *search.layout_of_plain() : drafts);
  }
}

}  // namespace

std::vector<ScenarioOverLoads> scenarios_over_loads(const planner::Capacity& capacity, std::size_t loads) {
  const sim::CapacityQuestion question = without_load(capacity.simulation);
  const sim::CapacityAnswer answer = sim::plan_capacity(question);
  // Scenarios that are not shown need no worlds.
  sim::CapacityQuestion two = question;
  sim::CapacityAnswer its_answer;
  two.scenarios.clear();
  std::vector<std::size_t> places;
  if (const auto plain = plain_place(answer)) places.push_back(*plain);
  if (const auto speculative = speculative_place(answer)) places.push_back(*speculative);
  for (const std::size_t place : places) {
    two.scenarios.push_back(question.scenarios[place]);
    its_answer.scenarios.push_back(answer.scenarios[place]);
    if (answer.recommended == place) its_answer.recommended = its_answer.scenarios.size() - 1;
  }
  const sim::CapacityInWorlds worlds = sim::in_worlds(two, std::move(its_answer), capacity.worlds);
  std::vector<ScenarioOverLoads> scenarios;
  for (std::size_t place = 0; place < two.scenarios.size(); ++place) {
    const bool elsewhere = capacity.plain_elsewhere && sim::is_plain(two.scenarios[place]);
    scenarios.push_back(elsewhere ? plain_elsewhere(capacity, loads) : over_loads(two, worlds, place, loads));
  }
  if (capacity.plain_elsewhere) name_layouts(*capacity.layouts, scenarios);
  return scenarios;
}

Chart cost_and_time_chart(const planner::Capacity& capacity, const std::string& who, std::size_t loads) {
  const sim::CapacityQuestion& asked = capacity.simulation;
  if (!asked.price_per_gpu_hour) throw planner::QuestionError("--price is missing: of a GPU for an hour");
  const std::vector<ScenarioOverLoads> scenarios = scenarios_over_loads(capacity, loads);
  const std::string runs = fmt::format("{} runs of {} requests", asked.replications, asked.workload.open_requests());
  Chart chart{.name = "cost-and-time-per-token",
              .title = "What a shorter time per token costs, with and without speculation"};
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = {"cost_per_million_tokens", "cost per million output tokens (unit of --price)"};
  panel.x.low = 0;
  panel.y = {"tpot_ms", "median time per output token (ms)", AxisScale::logarithmic};
  chart.caption = fmt::format("{}, {} per GPU hour; the load and the mean batch fall from left to right: ", who,
                              brief(*asked.price_per_gpu_hour));
  for (std::size_t s = 0; s < scenarios.size(); ++s) {
    const ScenarioOverLoads& scenario = scenarios[s];
    ChartSeries band{.name = scenario.name + ", 95%", .mark = ChartMark::band}, line{.name = scenario.name};
    ChartSeries batches{.mark = ChartMark::text, .role = ChartRole::reference};
    set_look(scenario, band);
    set_look(scenario, line);
    std::size_t number = 0;
    for (auto point = scenario.points.rbegin(); point != scenario.points.rend(); ++point, ++number) {
      if (!point->tpot_seconds || !point->cost_per_million_tokens) continue;
      const sim::SimulatedValue& time = point->tpot_seconds->p50;
      line.x.push_back(*point->cost_per_million_tokens);
      line.y.push_back(milliseconds_per_second * time.value);
      band.x.push_back(*point->cost_per_million_tokens);
      band.low.push_back(milliseconds_per_second * std::max(time.lo, time.value / 100));
      band.high.push_back(milliseconds_per_second * time.hi);
      if (number % 3 != 2) continue;
      batches.x.push_back(*point->cost_per_million_tokens);
      batches.y.push_back(above_line * milliseconds_per_second * time.value);
      batches.labels.push_back(fmt::format("batch {}", brief(point->mean_batch.value, 2)));
    }
    if (line.x.empty()) continue;
    for (double& x : batches.x) x += beside_point * line.x.back();
    chart.caption += fmt::format("{}{} reaches from {} ms at {} to {} ms at {} a million", s > 0 ? "; " : "",
                                 scenario.name, brief(line.y.front(), 3), brief(line.x.front(), 3),
                                 brief(line.y.back(), 3), brief(line.x.back(), 3));
    panel.series.push_back(std::move(band));
    panel.series.push_back(std::move(line));
    panel.series.push_back(std::move(batches));
  }
  chart.caption += fmt::format(". Simulated, {} at each load.", runs);
  panel.y.high = 2 * largest_drawn(panel);
  warn_of_simulation(runs, chart);
  return chart;
}

}  // namespace specdec::render
