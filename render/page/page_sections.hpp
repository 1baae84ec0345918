#pragma once

#include <string>

#include "planner/plan.hpp"
#include "render/analysis.hpp"

/// What a page says of an answer behind its words and figures, as HTML.
namespace specdec::render {

/// Of a plan, each empty if there is nothing to say.
struct PlanSections {
  /// The engine's configuration.
  std::string configuration;
  /// Its tables.
  std::string numbers;
  /// How well benchmark runs are predicted.
  std::string backtest;
  /// The next measurements.
  std::string next;
};

PlanSections sections_of(const planner::Plan& plan);

/// What a recording says, with tables by task and by lenience.
std::string recording_section(const planner::Analysis& analysis);

}  // namespace specdec::render
