#pragma once

#include "planner/acceptance.hpp"
#include "planner/cost.hpp"

/// Drafts that are looked up: how often they find something, and how much.
namespace specdec::planner {

/// Replaces acceptance and cost of a draft by those of core::LookupLaw where its words state one; those of proposed
/// drafts that fill gamma else. What was stated stands among the cost's assumptions.
/// @throws QuestionError for a value out of range, of a draft that is not looked up, or for a mean length without a hit
///   rate
void take_lookups(Acceptance* acceptance, Cost& cost);

}  // namespace specdec::planner
