#pragma once

#include <string_view>

#include "planner/acceptance.hpp"
#include "planner/cost.hpp"

/// Drafts that are looked up: how often they find something, and how much.
namespace specdec::planner {

/// Servers draft in at least this share of their steps where drafts are not looked up and never switched off; ends of
/// answers take the rest.
inline constexpr double drafts_in_every_step = 0.9;

/// Codes of warnings of which what to do depends, so that text shows them first.
inline constexpr std::string_view hit_rate_unknown = "hit_rate_unknown", steps_without_drafts = "steps_without_drafts";

/// What the draft of the cost says of its acceptance: Acceptance::take_draft_of.
/// Replaces acceptance and cost of a draft that is looked up by those of core::LookupLaw where its words state one, or
/// where its counters tell one; else drafts fill gamma in every round, and unless a recording tells of rounds without
/// drafts, too, nothing is decided (warning "hit_rate_unknown"). Nor is anything where counts tell of steps without
/// drafts and nothing says how drafts are made ("steps_without_drafts"), unless steps are what was timed
/// (Cost::of_steps): then those of the counts are accepted. What was taken is among the cost's assumptions.
/// @throws QuestionError for a value out of range, of a draft that is not looked up, for a mean length without a hit
///   rate, or one in which a typed length does not fit
void take_draft(Acceptance* acceptance, Cost& cost);

}  // namespace specdec::planner
