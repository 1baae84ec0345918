#pragma once

#include "planner/plan.hpp"
#include "render/table.hpp"

/// The tables of a plan, as text and pages show them. Those of something that a plan lacks have no rows.
namespace specdec::render {

/// The best gamma at each point of the draft that is shown.
Table points_table(const planner::Plan& plan);
/// The gammas at one of these points, as far as they matter.
Table gammas_table(const planner::Plan& plan, const planning::PointPlan& point);
/// The drafted gamma by batch.
Table schedule_table(const planner::Plan& plan);
/// The best gammas of each draft.
Table drafts_table(const planner::Plan& plan);
/// Benchmark runs, and how well the others predict each.
Table runs_table(const planning::BenchPlan& bench);
/// Runs that were used for nothing but a comparison with the plan.
Table held_out_table(const planning::BenchPlan& bench);
/// At most six rows for an answer: of one point plain decoding, what is in use and recommended, and neighbours; of
/// several, points of the schedule.
Table brief_table(const planner::Plan& plan);

}  // namespace specdec::render
