#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <string>

#include "planner/benchmark_command.hpp"
#include "render/plan.hpp"
#include "render/plan_tables.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using planner::Plan;

std::string about_passed_over(const Plan& d) {
  std::string text;
  for (std::size_t i = 0; i < d.deployment.drafts.size(); ++i) {
    if (!is_passed_over(d, i)) continue;
    const std::string server =
        d.question.emit ? fmt::format("{} does not start", planning::title_of(*d.question.emit)) : "No server starts";
    text += wrapped(fmt::format("{} with {}: {}.", server, d.deployment.drafts[i].name, d.misfits[i])) + '\n';
  }
  return text;
}

/// The deviations of the held-out runs from the plan.
std::string about_drift(const planning::BenchPlan& bench) {
  std::vector<std::string> drifted;
  for (const planning::BenchPrediction& held : bench.backtest) {
    const auto figure = [&](const char* what, const planning::PredictedFigure& of, double factor) {
      drifted.push_back(fmt::format("{} of {} {}, predicted {} [{} to {}]", what, held.file.filename().string(),
                                    brief(factor * of.measured), brief(factor * of.predicted),
                                    brief(factor * of.ci95.lo), brief(factor * of.ci95.hi)));
    };
    if (held.round && held.round->outside(held.widths)) figure("ms a round", *held.round, 1000);
    if (held.tokens && held.tokens->outside(held.widths)) figure("tokens a step", *held.tokens, 1);
    if (held.drifted() == "time")
      drifted.push_back(fmt::format("the time per token of {}", held.file.filename().string()));
  }
  if (bench.backtest.empty()) return "";
  if (drifted.empty())
    return wrapped("Nothing has drifted: times, rounds and acceptance are as predicted, as far as can be told.") + '\n';
  return wrapped(
             fmt::format("Drifted: {}. Where nothing has, one comparison in twenty says so of some figure by chance.",
                         fmt::join(drifted, "; "))) +
         '\n';
}

std::string about_runs(const Plan& d) {
  if (!d.bench) return "";
  const planning::BenchPlan& bench = *d.bench;
  std::string text = fmt::format(
      "{} runs{}; measured is the speedup over the plain run beside it, predicted the error "
      "in ms/token of a prediction from all other runs",
      bench.runs.size(), bench.model.empty() ? "" : " of " + bench.model);
  if (bench.leave_one_out_error) text += fmt::format(" (median {})", percent(*bench.leave_one_out_error));
  if (!d.drafts.empty()) text += fmt::format(". The plan takes its acceptance from {}", d.drafts[0].acceptance.text);
  if (std::any_of(bench.runs.begin(), bench.runs.end(), [](const auto& run) { return run.tree.has_value(); }))
    text += ". The gamma of a tree is its steps, topk and draft tokens";
  text = wrapped(text + ".") + "\n\n" + text_of(runs_table(bench)) + '\n';
  if (!bench.backtest.empty()) text += "\n" + text_of(held_out_table(bench));
  return text;
}

std::string about_config(const Plan& d) {
  if (!d.config) return "";
  std::string text = fmt::format("\n{}:\n", planning::newest_release(d.config->engine));
  text += command_lines(d.config->command);
  if (!d.config->text.empty()) text += d.config->file + ":\n" + d.config->text;
  for (const std::string& note : d.config->notes) text += '\n' + wrapped("Note: " + note + ".", 2);
  return text + (d.config->notes.empty() ? "" : "\n");
}

}  // namespace

bool is_passed_over(const Plan& d, std::size_t draft) { return d.misfit().empty() && !d.misfits[draft].empty(); }

std::string calibration_text(const Plan& d) {
  if (d.next_run() || !d.has_roofline()) return "";
  for (const planning::PointPlan& point : d.points())
    if (point.next) return point.next->with_baseline ? calibration_text(planner::engine_of(d), *point.next) : "";
  return "";
}

std::string speedup_range(const std::optional<estimate::Interval>& interval) {
  return interval && interval->lo < interval->hi ? fmt::format("{:.2f} to {:.2f}", interval->lo, interval->hi) : "-";
}

Spoken spoken(const Plan& d) {
  Spoken answer;
  answer.decision = planner::decision_of(d);
  answer.table = brief_table(d);
  answer.note = about_passed_over(d) + (d.bench ? about_drift(*d.bench) : "") + about_config(d);
  std::string& text = answer.more;
  if (d.deployment.drafts.size() > 1) text += text_of(drafts_table(d)) + '\n';
  if (d.bench) text += about_runs(d) + '\n';
  text += text_of(points_table(d));
  if (d.points().size() == 1 && !d.points().front().rows.empty())
    text += '\n' + text_of(gammas_table(d, d.points().front()));
  if (!d.shown_plan().schedule.empty()) text += '\n' + text_of(schedule_table(d));
  if (const std::string calibration = calibration_text(d); !calibration.empty())
    text += '\n' + wrapped(calibration) + '\n';
  return answer;
}

std::string calibration_text(planning::Engine engine, const planning::NextMeasurement& next) {
  // The requests of llama.cpp's script have contexts of their own.
  const bool llamacpp = engine == planning::Engine::llamacpp;
  const bool has_context = next.context >= 2 && !llamacpp;
  const std::string given = fmt::format("--calibrate batch={},tpot_ms=P,context={}", brief(next.batch, 3),
                                        has_context ? brief(next.context, 4) : "C");
  std::string text =
      llamacpp ? fmt::format("Give 1000 / its tokens per second of one request, P ms, to {}.", given)
               : fmt::format(
                     "Give the median of its pauses between outputs (ITL), P ms, to {}: the mean time per token "
                     "holds the prompts of other requests.",
                     given);
  if (!has_context) text += " C is the tokens of a prompt and half of its answer, in the mean.";
  if (next.gamma > 0 && engine == planning::Engine::sglang) {
    text +=
        " That is of the run without speculation: with drafts SGLang divides a pause by its tokens, and the time of a "
        "round does not follow from it.";
  } else if (next.gamma > 0) {
    text +=
        fmt::format(" {} with gamma={},tokens_per_step=E, too.",
                    llamacpp ? "With drafts give the same" : "With drafts a pause is a round: give P / E", next.gamma);
  }
  return text;
}

}  // namespace specdec::render
