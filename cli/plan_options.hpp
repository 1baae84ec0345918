#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/roofline_options.hpp"
#include "cli/scraping.hpp"
#include "cli/step_cost_options.hpp"
#include "planner/plan.hpp"

namespace specdec::cli {

/// Everything that `specdec plan` can be asked.
struct PlanOptions {
  // Acceptance.
  std::optional<std::string> alpha;
  std::optional<std::string> rejection;
  std::optional<std::string> acceptance_length;
  /// Accepted / drafted, as engines print it.
  std::optional<std::string> acceptance_rate;
  std::optional<std::string> acceptance_per_position;
  std::optional<std::string> published;
  std::vector<std::string> counters;
  /// A server whose counters are scraped in the place of --counters, and of --cost where no other cost is stated.
  ScrapeOptions scrape;
  std::vector<std::string> trace;
  /// Name of the draft's array in the trace, if that holds several drafts.
  std::optional<std::string> draft_array;
  /// Progress of reading the trace.
  Progress progress;
  // About it.
  std::optional<std::int64_t> at;
  std::optional<double> rounds;
  bool conditional = false;
  std::string acceptance = "recorded";
  /// The traffic that --counters or --trace are to stand for.
  std::optional<std::string> by;
  std::optional<std::string> mix;
  std::string mix_by = "tokens";
  // Costs.
  StepCostOptions cost;
  std::vector<std::string> cost_files;
  std::vector<std::string> draft_cost_files;
  std::optional<double> overhead_seconds;
  /// Its options.draft holds what is said of the draft whatever prices it.
  RooflineArguments roofline;
  // Benchmark runs.
  std::vector<std::string> bench;
  std::vector<std::string> holdout;
  // Models and drafts.
  std::optional<std::string> model;
  std::vector<std::string> drafts;
  // Question.
  planner::PlanQuestion question;
  std::optional<std::string> emit_file;

  planner::DraftWords& draft() { return roofline.options.draft; }
  const planner::DraftWords& draft() const { return roofline.options.draft; }
  /// An acceptance is given by an option of its own, outside of --draft and --bench.
  bool states_acceptance() const;
  /// So is a cost, outside of them.
  bool states_cost() const;
  /// A draft alone is named, for which published lengths may stand.
  bool leaves_acceptance_to_draft() const;
  /// Nothing is asked but what one acceptance and --c answer in closed form.
  bool is_closed_form() const;
};

void declare(Options& options, PlanOptions& o);

/// Declares --hit-rate and --mean-draft-length.
void declare_lookups(Options& options, planner::DraftWords& draft);
/// Those of the acceptance alone: --alpha to --trace and what is said about it, for every command that takes one.
/// @param how_many  number of them that may be given, for the heading
void declare_acceptance(Options& options, PlanOptions& o, const std::string& how_many = "one of");

/// @throws UsageError where options contradict each other
void require_consistent(const PlanOptions& o);
/// The same of declare_acceptance's alone.
void require_consistent_acceptance(const PlanOptions& o);

}  // namespace specdec::cli
