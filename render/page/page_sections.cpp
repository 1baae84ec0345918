#include "render/page/page_sections.hpp"

#include <fmt/format.h>

#include "render/page/html.hpp"
#include "render/plan.hpp"
#include "render/plan_tables.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using planner::Plan;

std::string configuration_section(const planning::EngineConfig& config) {
  std::string html = fmt::format("<h3>{}</h3>\n{}", planning::newest_release(config.engine), preformatted(config.command));
  if (!config.text.empty()) html += fmt::format("<p>{}:</p>\n{}", escaped(config.file), preformatted(config.text));
  for (const std::string& note : config.notes) html += fmt::format("<p>Note: {}.</p>\n", escaped(note));
  return html;
}

std::string numbers_section(const Plan& plan) {
  const bool is_one = plan.points().size() == 1;
  std::string html = html_of(points_table(plan));
  if (!is_one) html += html_of(schedule_table(plan));
  if (plan.deployment.drafts.size() > 1) html += html_of(drafts_table(plan));
  std::string gammas;
  for (const planning::PointPlan& point : plan.points()) gammas += html_of(gammas_table(plan, point));
  return html + (is_one
                     ? gammas
                     : fmt::format("<details><summary>Every gamma at every point</summary>\n{}</details>\n", gammas));
}

std::string backtest_section(const planning::BenchPlan& bench) {
  const std::string median =
      bench.leave_one_out_error ? fmt::format("; the median error is {}", percent(*bench.leave_one_out_error)) : "";
  return fmt::format("<p>Each run's time per output token is predicted from all other runs{}.</p>\n", median) +
         html_of(runs_table(bench)) + html_of(held_out_table(bench));
}

std::string next_section(const Plan& plan) {
  const planner::Decision decision = planner::decision_of(plan);
  if (decision.next.empty()) return "";
  const std::string html = paragraphs({before_next(decision)}) + preformatted(decision.next);
  const std::string calibration = calibration_text(plan);
  return calibration.empty() ? html : html + paragraphs({calibration});
}

}  // namespace

PlanSections sections_of(const Plan& plan) {
  return {plan.config ? configuration_section(*plan.config) : "", numbers_section(plan),
          plan.bench ? backtest_section(*plan.bench) : "", next_section(plan)};
}

std::string recording_section(const planner::Analysis& analysis) {
  return paragraphs(words_of(spoken(analysis).decision)) + html_of(task_table(analysis)) + html_of(lenience_table(analysis));
}

}  // namespace specdec::render
