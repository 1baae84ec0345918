#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/planning/plan.hpp"
#include "cli/plan_acceptance.hpp"
#include "cli/plan_options.hpp"
#include "cli/report.hpp"

/// What closed forms answer to `specdec plan`, between its computation and its printing: plan_closed_form.cpp makes it,
/// plan_json.cpp and plan_text.cpp print it.
namespace specdec::cli {

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

/// What the closed forms answer about one rate and --c. Keeps a reference to the options.
/// @throws UsageError
Answer closed_form(const PlanOptions& options);
std::vector<Assumption> assumptions_of(const Answer& answer);
std::vector<Warning> warnings_of(const Answer& answer);

nlohmann::ordered_json json_of(const Answer& answer);
std::string text_of(const Answer& answer);
/// The answer in sentences, without its table: a paragraph each, the recommendation first.
std::vector<std::string> words_of(const Answer& answer);

}  // namespace specdec::cli
