#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/planning/trace_analysis.hpp"
#include "cli/acceptance_options.hpp"
#include "cli/report.hpp"
#include "cli/step_cost_options.hpp"
#include "cli/trace_input.hpp"
#include "sim/replay_simulation.hpp"
#include "traces/trace_metadata.hpp"

/// The answer of `specdec analyze` between its computation and its printing: analyze.cpp makes it, analyze_json.cpp and
/// analyze_text.cpp print it.
namespace specdec::cli {

struct AnalyzeOptions {
  TraceInput input;
  AcceptanceOptions acceptance;
  std::optional<double> row_tolerance;
  StepCostOptions cost;
  std::string gamma = "1:16";
  std::string lenience = "0.9,0.7,0.5,0.3,0.1";
  std::string standardise = "auto";
  bool fixed_task_mix = false;
  std::int64_t samples = 16;
  std::int64_t seed = 1;
  std::int64_t threads = 1;
};

/// One answer with everything that went into it.
struct AnalyzeAnswer {
  const AnalyzeOptions& options;
  traces::TraceMetadata metadata;
  std::vector<std::int64_t> gammas;
  std::optional<core::StepCost> cost;
  planning::TraceAnalysis analysis;
  /// One for each of `gammas`; empty where there was no replay. Of the lower ends where acceptance is bracketed, and
  /// then of the upper ends too.
  std::vector<sim::MonteCarloTokens> monte_carlo;
  std::vector<sim::MonteCarloTokens> monte_carlo_upper;
};

/// Standard errors between a Monte Carlo replay and the exact one, above which one of the two is wrong.
inline constexpr double monte_carlo_alarm = 5;

/// How far the simulation of gammas[row] lies from the exact replay, in its standard errors, at the end of the bracket
/// where that is farther; nothing where there is no simulation or nothing is random.
std::optional<double> monte_carlo_z(const AnalyzeAnswer& answer, std::size_t row);

/// "both", "target" or "draft".
std::string_view name_of(planning::SweepSetting::Applies applies);

nlohmann::ordered_json json_of(const AnalyzeAnswer& answer);
/// Of the tables that can be without rows, a row by the table's name, for Report::rows_of_empty.
std::map<std::string, nlohmann::ordered_json, std::less<>> rows_of_empty_analysis();
std::string text_of(const AnalyzeAnswer& answer);
/// What it says first, in sentences: a paragraph each.
std::vector<std::string> words_of(const AnalyzeAnswer& answer);

/// What `specdec analyze` answers, for commands that show it in another form.
struct AnalysisReport {
  Report report;
  std::vector<std::string> words;
  planning::TraceAnalysis analysis;
};

/// @throws UsageError, traces::FileError
AnalysisReport analysis_report(const AnalyzeOptions& options, bool quiet);

}  // namespace specdec::cli
