#include <fmt/format.h>
#include <utility>

#include "analysis/planning/plan.hpp"
#include "analysis/planning/profile_curve.hpp"
#include "analysis/theory/acceptance_inversion.hpp"
#include "cli/plan_acceptance.hpp"
#include "cli/text.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "traces/acceptance_rules.hpp"

namespace specdec::cli {
namespace {

constexpr Range probability = {0.0, 1.0};

/// "0.7" or "0.7:0.8"; a single value is an interval of no length.
std::pair<double, double> parse_interval(std::string_view option, const std::string& text) {
  const auto parts = split(text, ':');
  if (parts.size() == 1) {
    const double value = parse_number(option, text, probability);
    return {value, value};
  }
  const double low = parts.size() == 2 ? parse_number(option, parts[0], probability) : 1.0;
  const double high = parts.size() == 2 ? parse_number(option, parts[1], probability) : 0.0;
  if (low > high) refuse(option, text, "a number in [0, 1] or LOW:HIGH with LOW <= HIGH");
  return {low, high};
}

Acceptance from_rates(const core::AcceptanceRate& low, const core::AcceptanceRate& high) {
  if (low == high) return {low};
  const planning::RateInterval interval = {low, high};
  return {planning::middle(interval), interval};
}

Acceptance from_lengths(const PlanOptions& o) {
  const std::string_view option = "--acceptance-length";
  const std::string& text = *o.acceptance_length;
  const auto parse_length = [&](std::string_view number, std::int64_t gamma) {
    const Range range = {1.0, static_cast<double>(gamma) + 1};
    const double length = parse_number(option, number, {});
    if (range.contains(length)) return length;
    refuse(option, number,
           fmt::format("in {} at gamma {}: tokens per step, the bonus token included (accepted drafts alone are one "
                       "less, in [0, {}])",
                       range.to_string(), gamma, gamma));
  };
  if (text.find(':') == std::string::npos) {
    if (!o.at) throw UsageError(fmt::format("{} is {}, but needs --at, the gamma it was measured at", option, text));
    return {theory::alpha_from_acceptance_length(parse_length(text, *o.at), *o.at), std::nullopt, true, *o.at};
  }
  if (o.at) throw UsageError(fmt::format("--at is {}, but {} already names its gammas", *o.at, option));
  std::vector<theory::AcceptanceLength> lengths;
  for (const std::string_view part : split(text, ',')) {
    const auto pair = split(part, ':');
    if (pair.size() != 2) refuse(option, part, "GAMMA:LENGTH");
    const std::int64_t above = lengths.empty() ? 1 : lengths.back().gamma + 1;
    const std::int64_t gamma = parse_integer("gamma in --acceptance-length", pair[0], above, largest_max_gamma);
    lengths.push_back({gamma, parse_length(pair[1], gamma)});
  }
  const theory::InvertedProfile inverted = theory::profile_from_acceptance_lengths(lengths);
  return {inverted.profile, std::nullopt, inverted.monotone, lengths.back().gamma};
}

Acceptance from_positions(const PlanOptions& o) {
  std::vector<double> rates;
  for (const std::string_view part : split(*o.acceptance_per_position, ',')) {
    rates.push_back(parse_number("--acceptance-per-position", part, probability));
  }
  if (o.conditional) return {theory::profile_from_conditional_rates(rates)};
  const theory::InvertedProfile inverted = theory::profile_from_unconditional_rates(rates);
  return {inverted.profile, std::nullopt, inverted.monotone};
}

}  // namespace

Acceptance stated_acceptance(const PlanOptions& o) {
  if (o.acceptance_length) return from_lengths(o);
  if (o.acceptance_per_position) return from_positions(o);
  if (o.alpha) {
    const auto [low, high] = parse_interval("--alpha", *o.alpha);
    return from_rates(core::AcceptanceRate(low), core::AcceptanceRate(high));
  }
  const auto [low, high] = parse_interval("--rejection", *o.rejection);
  return from_rates(core::AcceptanceRate::from_rejection(high), core::AcceptanceRate::from_rejection(low));
}

std::shared_ptr<const estimate::AcceptanceCurve> curve_of(const Acceptance& a) {
  if (!a.interval) return std::make_shared<planning::ProfileCurve>(a.profile, a.measured_at);
  return std::make_shared<planning::ProfileCurve>(a.profile, core::AcceptanceProfile(a.interval->low),
                                                  core::AcceptanceProfile(a.interval->high), a.measured_at);
}

PlannedAcceptance planned(const Acceptance& stated, const std::string& rule) {
  PlannedAcceptance acceptance;
  acceptance.curve = curve_of(stated);
  acceptance.stated = stated;
  acceptance.rule = traces::acceptance_rule_named(rule);
  acceptance.alpha = planning::pooled_rate(stated.profile).alpha();
  acceptance.text = fmt::format("alpha {}", brief(*acceptance.alpha));
  acceptance.method = stated.interval ? "stated" : "exact";
  if (!stated.monotone) {
    acceptance.warnings.push_back(
        {"non_monotone_survival",
         "the chance that a draft is reached and accepted must not grow with its position, but does so in the input; "
         "the nearest legal values are used (rates given that all before are accepted go with --conditional)"});
  }
  return acceptance;
}

}  // namespace specdec::cli
