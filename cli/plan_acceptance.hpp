#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/planning/regret.hpp"
#include "analysis/planning/request_laws.hpp"
#include "cli/plan_options.hpp"
#include "cli/report.hpp"
#include "traces/trace_metadata.hpp"

/// The acceptance that a plan rests on, from the options of `specdec plan`.
namespace specdec::cli {

/// An acceptance that somebody states.
struct Acceptance {
  core::AcceptanceProfile profile;
  std::optional<planning::RateInterval> interval = {};
  bool monotone = true;
  std::optional<std::int64_t> measured_at = {};
};

/// What the options --alpha, --rejection, --acceptance-length and --acceptance-per-position say.
/// @throws UsageError for a wrong value
Acceptance stated_acceptance(const PlanOptions& o);
std::shared_ptr<const estimate::AcceptanceCurve> curve_of(const Acceptance& acceptance);

/// An acceptance for every gamma, wherever it comes from.
struct PlannedAcceptance {
  std::shared_ptr<const estimate::AcceptanceCurve> curve;
  /// The same with three times the variance, where it was taken from rounds as if they were independent.
  std::shared_ptr<const estimate::AcceptanceCurve> curve_at_design_effect_3;
  /// Where it is stated.
  std::optional<Acceptance> stated;
  std::optional<traces::AcceptanceRule> rule;
  /// Requests, windows, ... behind the interval.
  std::optional<std::int64_t> clusters;
  /// "alpha 0.8", "counters of m (vllm metrics)", ... for people.
  std::string text;
  /// The rate and its 95% interval, where there is one.
  std::optional<double> alpha;
  std::optional<estimate::Interval> alpha_ci95;
  /// That counted, where it is one: "vllm", "sglang", "tensorrt-llm", "llama.cpp".
  std::optional<std::string> engine;
  /// How the interval came about: "exact", "stated", "iid_rounds", "clusters", "batch_means", "sequences".
  std::string method;
  /// Of requests or sequences, where they were asked for and there are any.
  std::vector<planning::RequestRate> request_rates;
  std::vector<std::string> files;
  std::vector<Warning> warnings;
};

/// Where to read an acceptance from, and how.
struct AcceptanceSource {
  std::vector<std::string> counters;
  std::vector<std::string> trace;
  /// Of counters that do not say it.
  std::optional<std::int64_t> gamma;
  /// Of the target, where counters hold several models.
  std::optional<std::string> model;
  std::string rule = "recorded";
  std::string beyond = "hold";
  std::int64_t max_gamma = usual_max_gamma;
  /// Also the rates of single requests or sequences.
  bool by_request = false;
};

/// What --counters or --trace of a plan name, read as far as `max_gamma`.
AcceptanceSource acceptance_source(const PlanOptions& o, std::int64_t max_gamma);
/// @throws UsageError, traces::FileError
PlannedAcceptance acceptance_from(const AcceptanceSource& source);
PlannedAcceptance planned(const Acceptance& acceptance, const std::string& rule);

}  // namespace specdec::cli
