#pragma once

#include <optional>
#include <vector>

#include "planner/plan.hpp"

/// The steps that a plan is made in, whatever its sources.
namespace specdec::planner {

/// What the question says before a draft is known.
/// @param usual  the largest gamma where the question names none
/// @throws QuestionError
Plan asked_plan(const PlanQuestion& question, std::int64_t usual);
/// @throws QuestionError unless what is in use covers the batches
void require_scheduled(const Plan& plan, const std::vector<double>& batches);
std::int64_t scheduled_up_to(const PlanQuestion& question, const std::vector<double>& batches);
/// What points and benchmark runs are asked alike.
template <class Question>
void take_limits(const Plan& plan, Question& question) {
  question.max_gamma = plan.max_gamma;
  question.tolerance = plan.question.tolerance;
  question.min_gain = plan.min_gain;
  question.deployed = plan.deployed;
  question.max_regret = plan.question.max_regret;
  question.extrapolate = plan.question.extrapolate;
}
/// Its files, presets and warnings become the plan's.
void take_cost(const Cost& cost, Plan& plan);
/// Its limits, warnings and files become the plan's.
void take_acceptance(const Acceptance& acceptance, Plan& plan);
/// Adds what is said of the plan once it is there: notes, memory, the engine and its configuration.
/// @param runs  where the plan is one of benchmark runs
void conclude(const BenchFiles* runs, Plan& plan);
/// What --max-regret complains about.
void warn_of_regret(Plan& plan);
/// What the plan rests on.
/// @param runs  where the plan is one of benchmark runs
void assume(const BenchFiles* runs, Plan& plan);
/// The points of the drafts, without configuration and assumptions.
Plan planned_points(std::vector<Draft> drafts, const PlanQuestion& question);
/// Whether the closed forms answer.
bool has_closed_form(const std::vector<Draft>& drafts, const PlanQuestion& question);
Plan plan_closed_form(Draft draft, const PlanQuestion& question);

}  // namespace specdec::planner
