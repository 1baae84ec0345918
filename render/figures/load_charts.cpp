#include "render/figures/load_charts.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/question_error.hpp"
#include "render/capacity.hpp"
#include "render/text.hpp"

namespace specdec::render {

namespace {

using sim::ReplicaAtLoad;
using sim::SimulatedPercentiles;
using sim::SimulatedValue;

/// Loads of a figure go up to this share of the saturated rate; beyond it times are those of a growing queue.
constexpr double last_load = 0.98;
/// The position of words beside a line on a logarithmic axis.
constexpr double above_line = 1.04;
/// Their distance to the right of a point, as a share of the axis: clear of a falling line.
constexpr double beside_point = 0.115;
/// For a figure's load; simulation plans up to 10^6 and figures go beyond the requested load.
constexpr double most_replicas = 1e6;

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

std::string range_text(const SimulatedValue& value) {
  return fmt::format("{} (95% {} to {})", brief(value.value, 3), brief(value.lo, 3), brief(value.hi, 3));
}

/// Four times what a replica takes, or a third more than the requested load.
double largest_load(const LoadChartInputs& in) {
  if (in.asked) return *in.asked * 4 / 3;
  double largest = 0;
  for (const ScenarioOverLoads& scenario : in.scenarios) largest = std::max(largest, scenario.sustainable.value);
  return 4 * largest;
}

/// For steps that rise at different places: both at the places of both.
ChartSeries band_between(const std::vector<sim::GpusFrom>& low, const std::vector<sim::GpusFrom>& high, double up_to) {
  std::vector<double> places = {up_to};
  for (const auto* steps : {&low, &high}) {
    for (const sim::GpusFrom& step : *steps) places.push_back(step.requests_per_second);
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  const auto gpus_after = [](const std::vector<sim::GpusFrom>& steps, double load) {
    double gpus = 0;
    for (const sim::GpusFrom& step : steps) {
      if (step.requests_per_second <= load) gpus = static_cast<double>(step.gpus);
    }
    return gpus;
  };
  ChartSeries band;
  band.mark = ChartMark::band;
  for (std::size_t i = 0; i + 1 < places.size(); ++i) {
    for (const double x : {places[i], places[i + 1]}) {
      band.x.push_back(x);
      band.low.push_back(gpus_after(low, places[i]));
      band.high.push_back(gpus_after(high, places[i]));
    }
  }
  return band;
}

/// From lines, not bands: if a version of the cost cannot take a load, its times depend on the run's length.
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

struct NamedPercentile {
  const char* name;
  SimulatedValue SimulatedPercentiles::*place;
  bool has_band;
};

void add_percentiles(const LoadChartInputs& in, std::optional<SimulatedPercentiles> ReplicaAtLoad::*time,
                     ChartPanel& panel) {
  constexpr NamedPercentile shown[] = {{"p99", &SimulatedPercentiles::p99, true},
                                       {"p50", &SimulatedPercentiles::p50, false}};
  for (std::size_t s = 0; s < in.scenarios.size(); ++s) {
    for (const NamedPercentile& percentile : shown) {
      ChartSeries band, line;
      line.name = fmt::format("{}, {}", in.scenarios[s].name, percentile.name);
      band.name = line.name + ", 95%";
      band.mark = ChartMark::band;
      set_look(in.scenarios[s], band);
      set_look(in.scenarios[s], line);
      if (!percentile.has_band) {
        line.colour = *line.colour + (in.scenarios[s].is_plain ? 1 : chart_colours::count);
        if (!in.scenarios[s].is_plain) line.role = ChartRole::data;
      }
      for (const ReplicaAtLoad& point : in.scenarios[s].points) {
        if (!(point.*time)) continue;
        const SimulatedValue& value = (*(point.*time)).*percentile.place;
        line.x.push_back(point.requests_per_second.value);
        line.y.push_back(milliseconds_per_second * value.value);
        band.x.push_back(point.requests_per_second.value);
        band.low.push_back(milliseconds_per_second * std::max(value.lo, value.value / 100));
        band.high.push_back(milliseconds_per_second * value.hi);
      }
      if (percentile.has_band) panel.series.push_back(std::move(band));
      panel.series.push_back(std::move(line));
    }
  }
}

void warn_of_simulation(const LoadChartInputs& in, Chart& chart) {
  chart.assumptions.push_back(
      {"95% intervals", "Student's t over runs, widened to the central 95% of the cost and the ends of the acceptance",
       "default"});
  chart.warnings.push_back(
      {"simulated", fmt::format("figures are those of {} of each way at each load; bands hold the error of these runs, "
                                "of the cost and of the acceptance; where such a version takes less than the load, its "
                                "times grow with the length of the runs; where two bands overlap, their colours mix",
                                in.runs)});
}

}  // namespace

namespace {

sim::CapacityQuestion without_load(sim::CapacityQuestion question) {
  question.workload.requests_per_second.reset();
  return question;
}

/// @param place  of the range's scenarios, which are the question's
ScenarioOverLoads over_loads(const sim::CapacityQuestion& question, const sim::CapacityRange& range, std::size_t place,
                             std::size_t loads) {
  const sim::ScenarioCapacity& found = range.answer.scenarios[place];
  ScenarioOverLoads scenario;
  scenario.name = scenario_text(found.scenario);
  scenario.is_plain = sim::is_plain(found.scenario);
  scenario.gpus_per_replica = question.gpus_per_replica;
  scenario.sustainable = found.requests_per_second_per_replica;
  scenario.saturated = found.saturated_requests_per_second_per_replica;
  if (loads > 0) {
    scenario.points = sim::replica_over_versions(
        question, place, loads_up_to(last_load * scenario.saturated.value, loads), range.versions);
  }
  return scenario;
}

/// Plain decoding in the layout that is best for it. @param range  of the drafts, whose versions it has
ScenarioOverLoads plain_elsewhere(const planner::Capacity& capacity, const sim::CapacityRange& range,
                                  std::size_t loads) {
  sim::CapacityQuestion question = without_load(capacity.of_plain().simulation);
  sim::CapacityAnswer answer = sim::plan_capacity(question);
  const std::size_t place = *plain_place(answer);
  question.scenarios = {question.scenarios[place]};
  answer.scenarios = {answer.scenarios[place]};
  return over_loads(question, sim::over_versions_of(range, question, std::move(answer)), 0, loads);
}

/// "gamma 3, tp 2": where plain decoding is compared in another layout.
void name_layouts(const planner::LayoutSearch& search, std::vector<ScenarioOverLoads>& scenarios) {
  for (ScenarioOverLoads& scenario : scenarios) {
    const planner::Layout drafts = search.layouts[search.chosen].layout;
    scenario.name += ", " + planner::text_of(scenario.is_plain ? *search.layout_of_plain() : drafts);
  }
}

/// "A replica is 2 GPUs.", "A replica is 2 GPUs (γ = 3, tp 2) or 8 GPUs (plain decoding, tp 8)."
std::string replicas_text(const std::vector<ScenarioOverLoads>& scenarios) {
  const auto gpus = [](const ScenarioOverLoads& s) {
    return fmt::format("{} GPU{}", s.gpus_per_replica, s.gpus_per_replica == 1 ? "" : "s");
  };
  const bool alike = std::all_of(scenarios.begin(), scenarios.end(), [&](const ScenarioOverLoads& s) {
    return s.gpus_per_replica == scenarios.front().gpus_per_replica;
  });
  if (alike) return "A replica is " + gpus(scenarios.front());
  std::string text;
  for (const ScenarioOverLoads& scenario : scenarios)
    text += fmt::format("{} {} ({})", text.empty() ? "A replica is" : " or", gpus(scenario), scenario.name);
  return text;
}

}  // namespace

LoadChartInputs load_chart_inputs(const planner::Capacity& capacity, std::size_t loads) {
  const sim::CapacityQuestion question = without_load(capacity.simulation);
  const sim::CapacityAnswer answer = sim::plan_capacity(question);
  // Scenarios that are not shown need not be planned in other versions.
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
  const sim::CapacityRange range = sim::over_versions(two, std::move(its_answer), capacity.acceptance_ends);
  LoadChartInputs in;
  in.asked = capacity.question.arrival_rate;
  in.limits = question.limits;
  in.price_per_gpu_hour = question.price_per_gpu_hour;
  in.runs = fmt::format("{} runs of {} requests", question.replications, question.workload.open_requests());
  for (std::size_t place = 0; place < two.scenarios.size(); ++place) {
    const bool elsewhere = capacity.plain_elsewhere && sim::is_plain(two.scenarios[place]);
    in.scenarios.push_back(elsewhere ? plain_elsewhere(capacity, range, loads) : over_loads(two, range, place, loads));
  }
  if (capacity.plain_elsewhere) name_layouts(*capacity.layouts, in.scenarios);
  return in;
}

Chart gpus_over_load_chart(const LoadChartInputs& in) {
  Chart chart;
  chart.name = "gpus-over-load";
  chart.title = "GPUs that a load needs, with and without speculation";
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = {"requests_per_second", "load (requests/s)"};
  panel.y = {"gpus", "GPUs"};
  panel.x.low = 0;
  panel.y.low = 0;
  const auto serves = [](const ScenarioOverLoads& scenario) { return scenario.sustainable.value > 0; };
  if (std::none_of(in.scenarios.begin(), in.scenarios.end(), serves)) {
    throw planner::QuestionError("no load is served within --ttft-ms and --tpot-ms, with or without speculation");
  }
  for (const ScenarioOverLoads& scenario : in.scenarios) {
    if (in.asked && serves(scenario) && *in.asked > most_replicas / 2 * scenario.sustainable.value) {
      planner::refuse("--arrival-rate", fmt::format("{}", *in.asked),
                      fmt::format("at most {} for this figure: {} takes {} requests/s per replica",
                                  brief(most_replicas / 2 * scenario.sustainable.value, 3), scenario.name,
                                  brief(scenario.sustainable.value, 3)));
    }
  }
  const double up_to = largest_load(in);
  std::vector<ChartSeries> lines;
  std::vector<std::string> told;
  for (std::size_t s = 0; s < in.scenarios.size(); ++s) {
    const ScenarioOverLoads& scenario = in.scenarios[s];
    if (scenario.sustainable.value <= 0) {
      told.push_back(fmt::format("{} meets the limits at no load", scenario.name));
      continue;
    }
    told.push_back(fmt::format("{} takes {} requests/s per replica", scenario.name, range_text(scenario.sustainable)));
    const auto steps = sim::gpus_by_load(scenario.sustainable.value, scenario.gpus_per_replica, up_to);
    if (scenario.sustainable.lo > up_to / most_replicas) {
      ChartSeries band =
          band_between(sim::gpus_by_load(scenario.sustainable.hi, scenario.gpus_per_replica, up_to),
                       sim::gpus_by_load(scenario.sustainable.lo, scenario.gpus_per_replica, up_to), up_to);
      band.name = scenario.name + ", 95%";
      set_look(scenario, band);
      panel.series.push_back(std::move(band));
    } else {
      chart.warnings.push_back({"no_upper_end", fmt::format("{} may not meet the limits at any load, so that its GPUs "
                                                            "have no upper end and no band",
                                                            scenario.name)});
    }
    ChartSeries line;
    line.name = scenario.name;
    line.mark = ChartMark::steps;
    for (const sim::GpusFrom& step : steps) {
      line.x.push_back(step.requests_per_second);
      line.y.push_back(static_cast<double>(step.gpus));
    }
    line.x.push_back(up_to);
    line.y.push_back(line.y.back());
    set_look(scenario, line);
    lines.push_back(std::move(line));
  }
  for (ChartSeries& line : lines) panel.series.push_back(std::move(line));
  if (in.asked) panel.series.push_back(reference_line(ChartMark::vertical, "load asked for", {*in.asked}));
  chart.caption = fmt::format("{}: ", in.who);
  for (std::size_t i = 0; i < told.size(); ++i) chart.caption += (i > 0 ? "; " : "") + told[i];
  chart.caption += fmt::format(". {}. Simulated, {} each.", replicas_text(in.scenarios), in.runs);
  warn_of_simulation(in, chart);
  return chart;
}

Chart latency_over_load_chart(const LoadChartInputs& in) {
  Chart chart;
  chart.name = "latency-over-load";
  chart.title = "What requests wait for over the load of one replica";
  chart.columns = 2;
  for (const bool first : {true, false}) {
    ChartPanel& panel = chart.panels.emplace_back();
    panel.title = first ? "time to first token" : "time per output token";
    panel.x = {"requests_per_second", "load (requests/s)"};
    panel.x.low = 0;
    panel.y = {first ? "ttft_ms" : "tpot_ms", "time (ms)", AxisScale::logarithmic};
    add_percentiles(in, first ? &ReplicaAtLoad::ttft_seconds : &ReplicaAtLoad::tpot_seconds, panel);
    const std::optional<double>& limit = first ? in.limits.ttft_seconds : in.limits.tpot_seconds;
    if (limit)
      panel.series.push_back(reference_line(ChartMark::horizontal, "limit", {milliseconds_per_second * *limit}));
    panel.y.high = 2 * largest_drawn(panel);
  }
  chart.caption = fmt::format("{}, one replica: ", in.who);
  for (std::size_t i = 0; i < in.scenarios.size(); ++i) {
    const ScenarioOverLoads& scenario = in.scenarios[i];
    chart.caption +=
        fmt::format("{}{} stays within the limits up to {} requests/s and its queue grows above {}", i > 0 ? "; " : "",
                    scenario.name, range_text(scenario.sustainable), brief(scenario.saturated.value, 3));
  }
  chart.caption += fmt::format(". Limits hold for {}% of the requests. Simulated, {} at each load.",
                               brief(in.limits.percentile), in.runs);
  warn_of_simulation(in, chart);
  return chart;
}

Chart layouts_chart(const planner::LayoutSearch& search, std::optional<double> limit_ms, const std::string& who) {
  Chart chart;
  chart.name = "layouts";
  chart.title = "What a shorter time per token costs, by layout";
  const bool has_price = search.frontier.front().cost_per_million_tokens.has_value();
  const auto cost_of = [&](const planner::LayoutPoint& point) {
    return has_price ? *point.cost_per_million_tokens : 1e6 * point.gpu_seconds_per_token;
  };
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = has_price ? ChartAxis{"cost_per_million_tokens", "cost per million output tokens (unit of --price)",
                                  AxisScale::logarithmic}
                      : ChartAxis{"gpu_seconds_per_million_tokens", "GPU-seconds per million output tokens",
                                  AxisScale::logarithmic};
  panel.y = {"tpot_ms", "mean time per output token (ms)", AxisScale::logarithmic};
  ChartSeries all, frontier, names;
  all.name = "cheapest and fastest of a layout";
  all.mark = ChartMark::points;
  all.role = ChartRole::reference;
  frontier.name = "beaten by none in both";
  names.mark = ChartMark::text;
  names.role = ChartRole::reference;
  for (const planner::TriedLayout& tried : search.layouts) {
    for (const auto* point : {&tried.cheapest, &tried.fastest}) {
      if (!*point) continue;
      all.x.push_back(cost_of(**point));
      all.y.push_back(milliseconds_per_second * (*point)->tpot_seconds);
    }
  }
  std::optional<std::size_t> named;
  for (const planner::LayoutPoint& point : search.frontier) {
    frontier.x.push_back(cost_of(point));
    frontier.y.push_back(milliseconds_per_second * point.tpot_seconds);
    if (named == point.layout) continue;
    named = point.layout;
    names.x.push_back(cost_of(point));
    names.y.push_back(above_line * milliseconds_per_second * point.tpot_seconds);
    names.labels.push_back(text_of(search.layouts[point.layout].layout));
  }
  if (limit_ms) panel.series.push_back(reference_line(ChartMark::horizontal, "limit", {*limit_ms}));
  panel.series.push_back(std::move(all));
  panel.series.push_back(std::move(frontier));
  panel.series.push_back(std::move(names));
  chart.caption = fmt::format(
      "{} on up to {} GPUs, {} layouts, by the formulas of the steady state: from {} ms to {} ms", who, search.gpus,
      search.layouts.size(), brief(milliseconds_per_second * search.frontier.front().tpot_seconds, 3),
      brief(milliseconds_per_second * search.frontier.back().tpot_seconds, 3));
  return chart;
}

Chart cost_and_time_chart(const LoadChartInputs& in) {
  if (!in.price_per_gpu_hour) throw planner::QuestionError("--price is missing: of a GPU for an hour");
  Chart chart;
  chart.name = "cost-and-time-per-token";
  chart.title = "What a shorter time per token costs, with and without speculation";
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = {"cost_per_million_tokens", "cost per million output tokens (unit of --price)"};
  panel.x.low = 0;
  panel.y = {"tpot_ms", "median time per output token (ms)", AxisScale::logarithmic};
  chart.caption = fmt::format("{}, {} per GPU hour; the load and the mean batch fall from left to right: ", in.who,
                              brief(*in.price_per_gpu_hour));
  for (std::size_t s = 0; s < in.scenarios.size(); ++s) {
    const ScenarioOverLoads& scenario = in.scenarios[s];
    ChartSeries band, line, batches;
    line.name = scenario.name;
    band.name = scenario.name + ", 95%";
    band.mark = ChartMark::band;
    batches.mark = ChartMark::text;
    set_look(scenario, band);
    set_look(scenario, line);
    batches.role = ChartRole::reference;
    std::size_t number = 0;
    for (auto point = scenario.points.rbegin(); point != scenario.points.rend(); ++point, ++number) {
      if (!point->tpot_seconds || !point->cost_per_million_tokens) continue;
      const SimulatedValue& time = point->tpot_seconds->p50;
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
  chart.caption += fmt::format(". Simulated, {} at each load.", in.runs);
  panel.y.high = 2 * largest_drawn(panel);
  warn_of_simulation(in, chart);
  return chart;
}

}  // namespace specdec::render
