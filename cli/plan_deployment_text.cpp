#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "cli/plan_deployment.hpp"
#include "cli/text.hpp"

namespace specdec::cli {
namespace {

using planning::DeploymentRow;
using planning::PointPlan;
using planning::Verdict;

/// Points of which next measurements are shown.
constexpr std::size_t shown_measurements = 3;
/// Sentences on verdicts before they are only counted.
constexpr std::size_t shown_verdicts = 12;

std::string factor(double speedup) { return fmt::format("{:.2f}x", speedup); }

std::string interval_text(const std::optional<estimate::Interval>& interval) {
  return interval && interval->lo < interval->hi ? fmt::format("{:.2f} to {:.2f}", interval->lo, interval->hi) : "-";
}

std::string milliseconds(double seconds) { return brief(1000 * seconds); }

/// A batch or a gamma; the mean batch of a run need not be whole.
std::string count_text(double count) {
  return count == std::round(count) ? fmt::format("{:.0f}", count) : brief(count, 3);
}

/// "1" or "1 to 8".
std::string from_to(double first, double last) {
  return first == last ? count_text(first) : fmt::format("{} to {}", count_text(first), count_text(last));
}

std::string context_text(double context) { return fmt::format("{:.0f}", context); }

/// Contexts of runs of the same lengths differ a little.
bool same_context(double a, double b) { return a <= 1.1 * b && b <= 1.1 * a; }

bool has_several_contexts(const Deployment& d) {
  const double first = d.points().front().context;
  return std::any_of(d.points().begin(), d.points().end(),
                     [&](const PointPlan& point) { return !same_context(point.context, first); });
}

std::string at_point(const Deployment& d, const PointPlan& point) {
  return has_several_contexts(d)
             ? fmt::format("batch {}, context {}", count_text(point.batch), context_text(point.context))
             : fmt::format("batch {}", count_text(point.batch));
}

/// Neighbouring batches of one context and verdict.
std::vector<std::span<const PointPlan>> stretches_of(const Deployment& d) {
  std::vector<std::span<const PointPlan>> stretches;
  const std::vector<PointPlan>& points = d.points();
  for (std::size_t first = 0; first < points.size();) {
    std::size_t end = first + 1;
    while (end < points.size() && same_context(points[end].context, points[first].context) &&
           points[end].batch > points[end - 1].batch && points[end].verdict == points[first].verdict) {
      ++end;
    }
    stretches.emplace_back(&points[first], end - first);
    first = end;
  }
  return stretches;
}

std::string at_stretch(const Deployment& d, std::span<const PointPlan> stretch) {
  const std::string batches = "batch " + from_to(stretch.front().batch, stretch.back().batch);
  return has_several_contexts(d) ? fmt::format("{}, context {}", batches, context_text(stretch.front().context))
                                 : batches;
}

std::string verdict_sentence(const Deployment& d, std::span<const PointPlan> stretch) {
  const std::string where = at_stretch(d, stretch);
  const auto gammas = std::minmax_element(stretch.begin(), stretch.end(), [](const auto& a, const auto& b) {
    return a.optimal().gamma < b.optimal().gamma;
  });
  const auto speedups = std::minmax_element(stretch.begin(), stretch.end(), [](const auto& a, const auto& b) {
    return a.speedup_estimate.value < b.speedup_estimate.value;
  });
  const std::int64_t least = gammas.first->optimal().gamma, largest = gammas.second->optimal().gamma;
  const std::string gamma = from_to(static_cast<double>(least), static_cast<double>(largest));
  const double low = speedups.first->speedup_estimate.value, high = speedups.second->speedup_estimate.value;
  const std::string speed =
      factor(low) == factor(high) ? factor(low) : fmt::format("{} to {}", factor(low), factor(high));
  const auto& interval = stretch.front().speedup_estimate.ci95;
  const bool has_width = interval && interval->hi > interval->lo;
  const std::string certainty =
      stretch.size() == 1 && has_width ? fmt::format(" (95% {})", interval_text(interval)) : "";
  switch (stretch.front().verdict) {
    case Verdict::speculate:
      return fmt::format("Speculate at {} with gamma {}: {} the speed of plain decoding{}.", where, gamma, speed,
                         certainty);
    case Verdict::do_not_speculate:
      if (largest == 0) return fmt::format("Do not speculate at {}: no gamma is faster than plain decoding.", where);
      return fmt::format("Do not speculate at {}: the best gamma, {}, gives {}{}, less than the {} asked for.", where,
                         gamma, speed, certainty, factor(1 + d.min_gain));
    case Verdict::cannot_tell:
      break;
  }
  return fmt::format("Cannot tell at {}: gamma {} gives {}{}, and {} is asked for.", where, gamma, speed, certainty,
                     factor(1 + d.min_gain));
}

std::vector<std::string> verdicts(const Deployment& d) {
  const auto stretches = stretches_of(d);
  std::vector<std::string> sentences;
  if (stretches.size() <= shown_verdicts) {
    for (const auto& stretch : stretches) sentences.push_back(verdict_sentence(d, stretch));
    return sentences;
  }
  const auto count = [&](Verdict verdict) {
    return std::count_if(d.points().begin(), d.points().end(), [&](const auto& p) { return p.verdict == verdict; });
  };
  return {fmt::format("Of {} points: speculate at {}, do not at {}, cannot tell at {}.", d.points().size(),
                      count(Verdict::speculate), count(Verdict::do_not_speculate), count(Verdict::cannot_tell))};
}

std::string which_draft(const Deployment& d) {
  if (d.plan.drafts.size() == 1) return "";
  return d.plan.recommended_draft
             ? fmt::format("Take the draft {}; what follows is its plan.", d.shown_plan().name)
             : fmt::format("No draft is faster than plain decoding; what follows is the plan of {}.",
                           d.shown_plan().name);
}

std::string about_drafts(const Deployment& d) {
  if (d.plan.drafts.size() == 1) return "";
  std::string text = wrapped(which_draft(d)) + "\n\n";
  std::vector<TextTable::Column> columns = {{"draft", TextTable::Align::left},
                                            {"acceptance", TextTable::Align::left},
                                            {"batch"},
                                            {"context"},
                                            {"gamma"},
                                            {"speedup"},
                                            {"95% interval"},
                                            {"", TextTable::Align::left}};
  TextTable table(columns);
  for (std::size_t i = 0; i < d.plan.drafts.size(); ++i) {
    const auto& points = d.plan.drafts[i].points;
    for (std::size_t j = 0; j < points.size(); ++j) {
      const std::string& source = d.drafts[i].acceptance.text;
      table.add_row({d.plan.drafts[i].name, source.size() > 24 ? source.substr(0, 21) + "..." : source,
                     count_text(points[j].batch), context_text(points[j].context),
                     fmt::format("{}", points[j].optimal().gamma), in_column(points[j].speedup_estimate.value),
                     interval_text(points[j].speedup_estimate.ci95), d.plan.best_draft[j] == i ? "fastest" : ""});
    }
  }
  return text + table.to_string() + '\n';
}

std::string runs_table(const planning::BenchPlan& bench) {
  TextTable table({{"concurrency"},
                   {"batch"},
                   {"context"},
                   {"gamma"},
                   {"tokens"},
                   {"round ms"},
                   {"ms/token"},
                   {"measured"},
                   {"predicted"}});
  for (std::size_t i = 0; i < bench.runs.size(); ++i) {
    const planning::BenchFigures& run = bench.runs[i];
    std::string measured = run.gamma == 0 ? "" : "-";
    for (const planning::BenchSpeedup& speedup : bench.speedups) {
      if (speedup.speculative == i) measured = factor(speedup.speedup.value);
    }
    const auto& error = bench.leave_one_out[i].relative_error;
    table.add_row({run.max_concurrency ? brief(*run.max_concurrency) : "-", brief(run.batch, 3),
                   context_text(run.context), fmt::format("{}", run.gamma), in_column(run.tokens_per_step),
                   milliseconds(run.round_seconds), milliseconds(run.seconds_per_output_token), measured,
                   error ? fmt::format("{:+.1f}%", 100 * *error) : "-"});
  }
  return table.to_string();
}

std::string about_runs(const Deployment& d) {
  if (!d.bench) return "";
  const planning::BenchPlan& bench = *d.bench;
  std::string text = fmt::format(
      "{} runs{}; measured is the speedup over the plain run beside it, predicted the error "
      "in ms/token of a prediction from all other runs",
      bench.runs.size(), bench.model.empty() ? "" : " of " + bench.model);
  if (bench.leave_one_out_error) text += fmt::format(" (median {})", percent(*bench.leave_one_out_error));
  if (!d.drafts.empty()) text += fmt::format(". The plan takes its acceptance from {}", d.drafts[0].acceptance.text);
  text = wrapped(text + ".") + "\n\n" + runs_table(bench) + '\n';
  for (const planning::BenchPrediction& held : bench.backtest) {
    const std::string file = held.file.filename().string();
    text += wrapped(held.predicted ? fmt::format("Held out, {}: predicted {} ms/token, measured {} ({:+.1f}%).", file,
                                                 milliseconds(*held.predicted), milliseconds(held.measured),
                                                 100 * held.relative_error.value_or(0))
                                   : fmt::format("Held out, {}: not predicted, since {}.", file, held.reason)) +
            '\n';
  }
  return text + (bench.backtest.empty() ? "" : "\n");
}

std::string points_table(const Deployment& d) {
  const bool seconds = d.points().front().seconds_per_output_token.has_value();
  const bool contexts = has_several_contexts(d) || d.points().front().context > 0;
  std::vector<TextTable::Column> columns = {{"batch"}};
  if (contexts) columns.push_back({"context"});
  for (const char* name : {"gamma", "speedup", "95% interval"}) columns.push_back({name});
  if (seconds) {
    for (const char* name : {"ms/token", "plain", "tokens/s", "plain"}) columns.push_back({name});
  } else {
    for (const char* name : {"tokens", "near-best"}) columns.push_back({name});
  }
  columns.push_back({"verdict", TextTable::Align::left});
  if (d.has_roofline()) columns.push_back({"bound", TextTable::Align::left});
  TextTable table(columns);
  for (const PointPlan& point : d.points()) {
    std::vector<std::string> cells = {count_text(point.batch)};
    if (contexts) cells.push_back(context_text(point.context));
    cells.push_back(fmt::format("{}", point.optimal().gamma));
    cells.push_back(in_column(point.speedup_estimate.value));
    cells.push_back(interval_text(point.speedup_estimate.ci95));
    if (seconds) {
      cells.push_back(milliseconds(point.seconds_per_output_token->speculative));
      cells.push_back(milliseconds(point.seconds_per_output_token->baseline));
      cells.push_back(brief(point.output_tokens_per_second->speculative));
      cells.push_back(brief(point.output_tokens_per_second->baseline));
    } else {
      cells.push_back(in_column(point.optimal().tokens_per_step));
      const auto& near = point.near_optimal_gammas;
      cells.push_back(near.empty() ? "-"
                                   : from_to(static_cast<double>(near.front()), static_cast<double>(near.back())));
    }
    cells.push_back(point.verdict == Verdict::do_not_speculate ? "do not" : std::string(name_of(point.verdict)));
    if (const auto bound = bound_of(d, point, point.optimal().gamma)) cells.emplace_back(*bound);
    table.add_row(std::move(cells));
  }
  return table.to_string();
}

const DeploymentRow* row_at(const PointPlan& point, std::int64_t gamma) {
  for (const DeploymentRow& row : point.rows) {
    if (row.gamma == gamma) return &row;
  }
  return nullptr;
}

std::string row_notes(const PointPlan& point, const DeploymentRow& row) {
  std::vector<std::string> words;
  const auto& near = point.near_optimal_gammas;
  if (row.gamma == point.optimal().gamma) {
    words.push_back("best");
  } else if (point.passed_over_row && row.gamma == point.rows[*point.passed_over_row].gamma) {
    words.push_back("fastest");
  } else if (std::find(near.begin(), near.end(), row.gamma) != near.end()) {
    words.push_back("near-best");
  }
  if (point.deployed && point.deployed->gamma == row.gamma) words.push_back("in use");
  if (row.extrapolated) words.push_back("extrapolated");
  return fmt::format("{}", fmt::join(words, ", "));
}

/// Every gamma of the only point, as far as they matter.
std::string rows_table(const Deployment& d) {
  const PointPlan& point = d.points().front();
  std::vector<TextTable::Column> columns = {{"gamma"},   {"tokens"},       {"round"},
                                            {"speedup"}, {"95% interval"}, {"regret"}};
  if (d.has_roofline()) columns.push_back({"bound", TextTable::Align::left});
  columns.push_back({"", TextTable::Align::left});
  TextTable table(columns);
  const std::int64_t last =
      std::max({point.optimal().gamma + 4, std::int64_t{8}, point.deployed ? point.deployed->gamma : 0});
  for (const DeploymentRow& row : point.rows) {
    if (row.gamma > last) break;
    std::vector<std::string> cells = {
        fmt::format("{}", row.gamma), in_column(row.tokens_per_step),  in_column(row.tokens_per_step / row.speedup),
        in_column(row.speedup),       interval_text(row.speedup_ci95), percent(row.regret)};
    if (const auto bound = bound_of(d, point, row.gamma)) cells.emplace_back(*bound);
    cells.push_back(row_notes(point, row));
    table.add_row(std::move(cells));
  }
  return '\n' + table.to_string();
}

std::string schedule_text(const Deployment& d) {
  const auto& schedule = d.shown_plan().schedule;
  if (schedule.empty() || d.points().size() == 1) return "";
  std::vector<std::string> parts;
  for (const auto& stretch : schedule) {
    parts.push_back(
        fmt::format("{} at batch {}{}", stretch.gamma,
                    from_to(static_cast<double>(stretch.batch_low), static_cast<double>(stretch.batch_high)),
                    stretch.held ? " (not priced, as beside it)" : ""));
  }
  std::string text = fmt::format("Schedule: gamma {}.", fmt::join(parts, ", "));
  if (d.shown_plan().crossover_batch) {
    text += fmt::format(" From batch {} on plain decoding is faster.", *d.shown_plan().crossover_batch);
  }
  return text;
}

/// What a step with gamma drafts costs and yields at a point, in plain steps.
std::string step_text(const Deployment& d, const PointPlan& point, const DeploymentRow& row) {
  std::string text = fmt::format("takes {} plain steps", brief(row.tokens_per_step / row.speedup, 3));
  const double step = point.rows.front().time.total();
  if (d.cost().parts_known({row.gamma, point.batch, point.context}) && step > 0) {
    text +=
        fmt::format(" (verifying {}, drafting {}", brief(row.time.target / step, 3), brief(row.time.draft / step, 3));
    text += row.time.overhead > 0 ? fmt::format(", other {})", brief(row.time.overhead / step, 3)) : ")";
  }
  return text + fmt::format(" and yields {} tokens", brief(row.tokens_per_step, 3));
}

/// What is in use, or else what gains, loses here.
bool loses_at(const PointPlan& point) {
  if (point.deployed && point.deployed->gamma > 0) return point.deployed->speedup < 1;
  return point.verdict == Verdict::do_not_speculate;
}

/// Why the answer changes with the batch: the same gamma at the first point that gains and at the last that loses.
std::string reason(const Deployment& d) {
  const auto& points = d.points();
  const auto gains =
      std::find_if(points.begin(), points.end(), [](const auto& p) { return p.optimal().gamma > 0 && !loses_at(p); });
  const PointPlan* loses = nullptr;
  for (const PointPlan& point : points) {
    const bool beside = gains != points.end() && same_context(point.context, gains->context);
    if (beside && loses_at(point) && point.batch > gains->batch) loses = &point;
  }
  if (loses == nullptr) return "";
  const std::int64_t gamma =
      loses->deployed && loses->deployed->gamma > 0 ? loses->deployed->gamma : gains->optimal().gamma;
  const DeploymentRow* const here = row_at(*loses, gamma);
  const DeploymentRow* const there = row_at(*gains, gamma);
  if (here == nullptr || there == nullptr) return "";
  std::string text = fmt::format("Why: at {} a step with gamma {} {}: {}. At batch {} it {}: {}.", at_point(d, *loses),
                                 gamma, step_text(d, *loses, *here), factor(here->speedup), count_text(gains->batch),
                                 step_text(d, *gains, *there), factor(there->speedup));
  return text;
}

std::string break_even(const PointPlan& point) {
  std::vector<std::string> parts;
  if (point.break_even_alpha) parts.push_back(fmt::format("alpha is above {}", brief(*point.break_even_alpha, 3)));
  if (point.break_even_cost) {
    parts.push_back(fmt::format("a draft step costs less than {} plain steps (gamma {})",
                                brief(point.break_even_cost->c, 3), point.break_even_cost->gamma));
  }
  if (parts.empty()) return "";
  return fmt::format("Speculation pays where {}, all else equal.", fmt::join(parts, ", or where "));
}

std::string next_measurements(const Deployment& d) {
  std::string text;
  std::size_t shown = 0, left = 0;
  for (const PointPlan& point : d.points()) {
    if (!point.next) continue;
    if (shown == shown_measurements) {
      ++left;
      continue;
    }
    ++shown;
    const planning::NextMeasurement& next = *point.next;
    text +=
        '\n' +
        wrapped(fmt::format("To tell at {}, where most of the uncertainty is that of {}: run the server with "
                            "num_speculative_tokens {}{}, and",
                            at_point(d, point), point.dominant_source ? name_of(*point.dominant_source) : "the cost",
                            next.gamma, next.with_baseline ? ", and once without speculation" : "")) +
        '\n' + command_lines(command_for(d, next));
  }
  if (left > 0) text += wrapped(fmt::format("{} more points cannot be told; --format json has them all.", left)) + '\n';
  return text;
}

std::string about_correlated_rounds(const Deployment& d) {
  if (!d.at_design_effect_3) return "";
  std::vector<std::string> changed;
  const auto& wider = d.at_design_effect_3->drafts[d.shown()].points;
  for (std::size_t i = 0; i < wider.size() && changed.size() < shown_verdicts; ++i) {
    if (wider[i].verdict != d.points()[i].verdict) {
      changed.push_back(fmt::format("{} at {}", name_of(wider[i].verdict), at_point(d, wider[i])));
    }
  }
  return changed.empty() ? "The verdicts stay at a design effect of 3, where rounds that are alike count a third."
                         : fmt::format("At a design effect of 3, where rounds that are alike count a third: {}.",
                                       fmt::join(changed, ", "));
}

std::string about_deployed(const Deployment& d) {
  const PointPlan* worst = nullptr;
  for (const PointPlan& point : d.points()) {
    if (point.deployed && (worst == nullptr || point.deployed->regret > worst->deployed->regret)) worst = &point;
  }
  if (worst == nullptr) return "";
  const planning::DeployedAtPoint& deployed = *worst->deployed;
  const bool one = d.points().size() == 1;
  std::string text;
  if (deployed.regret == 0) {
    text =
        one ? fmt::format("In use: gamma {}, the best.", deployed.gamma) : "What is in use is the best at every point.";
  } else {
    text = fmt::format("{} at {}, {} and {} below the best.",
                       one ? fmt::format("In use: gamma {}", deployed.gamma)
                           : fmt::format("What is in use loses most with gamma {}", deployed.gamma),
                       at_point(d, *worst), factor(deployed.speedup), percent(deployed.regret));
  }
  if (percent(deployed.worst_regret) != percent(deployed.regret)) {
    text += fmt::format(" Within the acceptance's interval it loses at most {}.", percent(deployed.worst_regret));
  }
  return text;
}

std::string about_config(const Deployment& d) {
  if (!d.config) return "";
  std::string text;
  for (const planning::EngineVariant& variant : d.config->variants) {
    text += fmt::format("\n{}:\n", variant.releases);
    text += command_lines(variant.command);
    text += variant.text.empty() ? "" : "FILE:\n" + variant.text;
  }
  for (const std::string& note : d.config->notes) text += '\n' + wrapped("Note: " + note + ".", 2);
  return text + (d.config->notes.empty() ? "" : "\n");
}

}  // namespace

std::string command_lines(const std::string& command) {
  constexpr std::size_t indent = 2;
  if (indent + command.size() <= text_width) return std::string(indent, ' ') + command + '\n';
  std::string text, line = std::string(indent, ' ');
  std::size_t at = 0;
  while (at < command.size()) {
    std::size_t next = command.find(" --", at + 1);
    if (next == std::string::npos) next = command.size();
    const std::string part = command.substr(at, next - at);
    if (line.size() + part.size() + 2 > text_width && line.size() > indent) {
      text += line + " \\\n";
      line = std::string(indent + 1, ' ');
    }
    line += part;
    at = next;
  }
  return text + line + '\n';
}

std::vector<std::string> words_of(const Deployment& d) {
  std::vector<std::string> words;
  const auto add = [&](const std::string& paragraph) {
    if (!paragraph.empty()) words.push_back(paragraph);
  };
  add(which_draft(d));
  for (const std::string& sentence : verdicts(d)) add(sentence);
  if (d.points().size() == 1) add(break_even(d.points().front()));
  for (const auto part : {schedule_text, reason, about_deployed, about_correlated_rounds}) add(part(d));
  return words;
}

std::string text_of(const Deployment& d) {
  std::string text;
  const auto add = [&](const std::string& before, const std::string& paragraph) {
    if (!paragraph.empty()) text += before + wrapped(paragraph) + '\n';
  };
  for (const std::string& sentence : verdicts(d)) add("", sentence);
  if (d.points().size() == 1) add("", break_even(d.points().front()));
  text += '\n' + about_drafts(d) + about_runs(d) + points_table(d);
  if (d.points().size() == 1) text += rows_table(d);
  for (const auto part : {schedule_text, reason, about_deployed, about_correlated_rounds}) add("\n", part(d));
  return text + next_measurements(d) + about_config(d);
}

}  // namespace specdec::cli
