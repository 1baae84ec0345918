#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/planning/plan.hpp"
#include "cli/report.hpp"
#include "cli/step_cost_options.hpp"

/// The answer of `specdec plan` between its computation and its printing: plan.cpp makes it, plan_json.cpp and
/// plan_text.cpp print it.
namespace specdec::cli {

struct PlanOptions {
  std::optional<std::string> alpha;
  std::optional<std::string> rejection;
  std::optional<std::string> acceptance_length;
  std::optional<std::int64_t> at;
  std::optional<std::string> acceptance_per_position;
  bool conditional = false;
  StepCostOptions cost;
  std::optional<double> c_hat;
  std::optional<std::int64_t> gamma;
  std::optional<double> max_regret;
  std::optional<std::int64_t> max_gamma;
  std::optional<std::int64_t> tokens;
  double tolerance = 0.01;
};

/// What the acceptance options say.
struct Acceptance {
  core::AcceptanceProfile profile;
  std::optional<planning::RateInterval> interval = {};
  bool monotone = true;
  std::optional<std::int64_t> measured_at = {};
};

/// One answer with everything that went into it.
struct Answer {
  const PlanOptions& options;
  Acceptance acceptance;
  planning::PlanQuestion question;
  planning::Plan plan;

  bool is_one_rate() const { return question.acceptance.measured_positions() == 0; }
  bool regret_too_large() const { return plan.deployed && plan.deployed->exceeds_max_regret; }
  /// The drafts that the acceptance was measured over; 0 where it holds for any number.
  std::int64_t measured() const { return question.measured_at.value_or(question.acceptance.measured_positions()); }
};

/// Gammas listed one by one in JSON output.
inline constexpr std::int64_t listed_gammas = 1000;

nlohmann::ordered_json json_of(const Answer& answer);
std::string text_of(const Answer& answer);

}  // namespace specdec::cli
