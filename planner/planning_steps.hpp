#pragma once

#include <optional>
#include <vector>

#include "planner/plan.hpp"

/// The steps in which a plan is made, whatever its sources.
namespace specdec::planner {

/// @throws QuestionError for a member that is out of its range, whatever the others are
void require_ranges(const PlanQuestion& question);
/// @throws QuestionError unless the stretches go on from batch 1 without gaps, with gammas in their range
void require_schedule(const std::vector<planning::ScheduleStretch>& schedule);
/// The part of the plan that follows from the question before a draft is known.
/// @param usual  the largest gamma if the question names none
/// @throws QuestionError
Plan asked_plan(const PlanQuestion& question, std::int64_t usual);
/// Of the engine to write for, else of the one that was measured; nothing where neither is named. Drafts of a guessed
/// kind are taken for heads, as most are, unless a configuration is written, which has the guess.
worlds::SchedulePrices schedule_prices(const PlanQuestion& question, const std::optional<std::string>& measured,
                                       cost::DraftKind kind, bool kind_told);
/// @throws QuestionError unless the gammas in use cover the batches
void require_scheduled(const Plan& plan, const std::vector<double>& batches);
std::int64_t scheduled_up_to(const PlanQuestion& question, const std::vector<double>& batches);
/// The settings that points and benchmark runs share.
template <class Question>
void take_limits(const Plan& plan, Question& question) {
  question.max_gamma = plan.max_gamma;
  question.min_gain = plan.min_gain;
  question.deployed = plan.deployed;
  question.max_regret = plan.question.max_regret;
}
/// Adds the cost's files, presets and warnings to the plan.
void take_cost(const Cost& cost, Plan& plan);
/// Adds the acceptance's limits, warnings and files to the plan.
void take_acceptance(const Acceptance& acceptance, Plan& plan);
/// The reason why the server that is asked for, or any if none is, does not start with the draft and its target; empty
/// if it does, as far as known.
std::string why_not_served(const Draft& draft, const Plan& plan);
/// Completes a plan: notes, memory, the engine and its configuration.
/// @param runs  set if the plan is from benchmark runs
void conclude(const BenchFiles* runs, Plan& plan);
/// Says which drafts may be as fast as the recommended one.
void compare_drafts(Plan& plan);
/// Adds the warning of --max-regret.
void warn_of_regret(Plan& plan);
/// Adds the plan's assumptions.
/// @param runs  set if the plan is from benchmark runs
void assume(const BenchFiles* runs, Plan& plan);
/// The points of the drafts, without configuration and assumptions.
Plan planned_points(std::vector<Draft> drafts, const PlanQuestion& question);
/// The largest gamma that the closed forms find best for a draft's rate or the upper end of its interval, up to
/// largest_scanned_gamma; 0 without a stated acceptance and constant costs.
std::int64_t gamma_by_closed_form(const Draft& draft);
/// What the paper's formulas say of the plan's one point, if it has one draft of stated acceptance at a constant cost.
void add_closed_form(Plan& plan);

}  // namespace specdec::planner
