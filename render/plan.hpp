#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan.hpp"

/// Rendering of the answer of `specdec plan`: plan_json.cpp and plan_text.cpp print the closed forms,
/// plan_points_json.cpp and plan_points_text.cpp the points.
namespace specdec::render {

nlohmann::ordered_json json_of(const planner::Plan& plan);
std::string text_of(const planner::Plan& plan);
/// The answer in sentences, without tables, configuration and next measurements: one paragraph each, the recommendation
/// or the verdicts first.
std::vector<std::string> words_of(const planner::Plan& plan);

/// The JSON output of the closed forms.
nlohmann::ordered_json closed_form_json(const planner::Plan& plan);
std::string closed_form_text(const planner::Plan& plan);
std::vector<std::string> closed_form_words(const planner::Plan& plan);

/// Fills in the keys of the JSON output for points.
void put_points(const planner::Plan& plan, nlohmann::ordered_json& json);

/// For the tables of benchmark runs, which most plans lack, a row by the table's name: its keys are the columns.
std::map<std::string, nlohmann::ordered_json, std::less<>> rows_of_empty_runs();

/// True for a draft that is passed over because no server, or not the one asked for, starts with it.
bool is_passed_over(const planner::Plan& plan, std::size_t draft);
/// The best gammas at the lower and at the upper ends of a recording's brackets; empty unless the best gamma's speedup
/// is known as a bracket.
std::optional<std::pair<const planning::DeploymentRow*, const planning::DeploymentRow*>> best_at_ends(
    const planning::PointPlan& point);
/// What a gamma loses to the best one, at either end of a bracket.
double loss_at_ends(const planning::PointPlan& point, const planning::DeploymentRow& row);
/// True if the closed forms recommend this gamma: plain decoding if the verdict is not to speculate.
bool recommends(const planner::Plan& plan, std::int64_t gamma);
/// "1.31 to 1.53"; "-" for an interval without width.
std::string speedup_range(const std::optional<estimate::Interval>& interval);
/// The heading of a speedup's interval; for the draft that is shown, and for all.
std::string interval_heading(const planner::Plan& plan);
std::string interval_heading_of_drafts(const planner::Plan& plan);
/// Where points recommend a sure gamma in place of the best: "; gamma 4 is 0.28% faster by the estimate (0.97x
/// to 3.15x)" of one point, and of several "; gamma 4 is up to 0.3% faster by the estimate, but not sure to
/// give 1.05x". Empty if there is no such point.
std::string unsure_text(const planner::Plan& plan, std::span<const planning::PointPlan> points);
/// The reason why plain decoding is the best at all of these points, in a main clause: no gamma is faster, none that
/// was measured is, or over a range of acceptance rates it loses least.
std::string_view why_plain(std::span<const planning::PointPlan> points);

/// A run that would settle a verdict.
struct NextStep {
  /// Why, and how the server is run, up to the command.
  std::string words;
  std::string command;
  /// How to give its times to a plan by hardware; empty if there is none.
  std::string calibration;
};
/// For benchmark runs the one that is worth most, else that of the first point that cannot be told; empty if there is
/// none.
std::optional<NextStep> next_step(const planner::Plan& plan);
/// Instructions to read times off a run by the engine's own benchmark, and to give them to a plan by hardware.
std::string calibration_text(std::string_view engine, const planning::NextMeasurement& next);
/// A command on separate lines, broken before options if it is long.
std::string command_lines(const std::string& command);

}  // namespace specdec::render
