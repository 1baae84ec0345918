#pragma once

#include <nlohmann/json_fwd.hpp>

#include "planner/acceptance.hpp"
#include "planner/cost.hpp"
#include "planner/plan.hpp"

/// A question of `specdec plan` as a value: the stated acceptance and cost of one draft, and the question about them.
/// Options, a page's controls and a document fill it in; docs/schema/plan.request.json describes the document:
///
///     {"acceptance": {"alpha": [0.7, 0.8]}, "cost": {"c": 0.05}, "question": {"gamma": 3}}
namespace specdec::planner {

struct PlanRequest {
  /// If it states none, the prior for the draft of the cost: Acceptance::prior_for.
  AcceptanceWords acceptance;
  CostWords cost;
  PlanQuestion question;
};

/// @throws QuestionError, traces::FileError, std::domain_error as Acceptance::of, Cost::of and plan
Plan plan(const PlanRequest& request);

/// Members that have their default value are left out.
void to_json(nlohmann::ordered_json& json, const PlanRequest& request);
void to_json(nlohmann::ordered_json& json, const AcceptanceWords& words);
void to_json(nlohmann::ordered_json& json, const CostWords& words);
void to_json(nlohmann::ordered_json& json, const PlanQuestion& question);

/// @throws QuestionError for an unknown key and for a value of another type or out of range; it names the key, the
/// value
///   found and the values expected
void from_json(const nlohmann::ordered_json& json, PlanRequest& request);
void from_json(const nlohmann::ordered_json& json, AcceptanceWords& words);
void from_json(const nlohmann::ordered_json& json, CostWords& words);
void from_json(const nlohmann::ordered_json& json, PlanQuestion& question);

}  // namespace specdec::planner
