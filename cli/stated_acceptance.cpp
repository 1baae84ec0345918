#include "cli/stated_acceptance.hpp"

#include <fmt/format.h>
#include <utility>

#include "analysis/core/lookup_law.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "planner/number_text.hpp"
#include "planner/plan.hpp"
#include "traces/acceptance_rules.hpp"

namespace specdec::cli {
namespace {

using planner::Acceptance;
using planner::AcceptanceWords;
using planner::half_unit_of;

constexpr LegalRange probability = {0.0, 1.0};

/// "0.7" or "0.7:0.8"; a single value is an interval of no length.
planner::RateRange rates_of(std::string_view option, const std::string& text) {
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

AcceptanceWords lengths_of(const PlanOptions& o) {
  const std::string_view option = "--acceptance-length";
  const std::string& text = *o.acceptance_length;
  const auto typed_length = [&](std::string_view number, std::int64_t gamma) {
    return estimate::TypedLength{gamma, parse_number(option, number, {}), half_unit_of(number)};
  };
  std::vector<estimate::TypedLength> lengths;
  if (text.empty()) refuse(option, text, "LENGTH, a number >= 1, or GAMMA:LENGTH,...");
  if (text.find(':') == std::string::npos) {
    if (text.find(',') != std::string::npos) refuse(option, text, "GAMMA:LENGTH,GAMMA:LENGTH,..., the gamma of each");
    if (!o.at) throw UsageError(fmt::format("{} is {}, but needs --at, the gamma it was measured at", option, text));
    lengths.push_back(typed_length(text, *o.at));
    return {.acceptance_length = std::move(lengths)};
  }
  if (o.at) throw UsageError(fmt::format("--at is {}, but {} already names its gammas", *o.at, option));
  for (const std::string_view part : split(text, ',')) {
    const auto pair = split(part, ':');
    if (pair.size() != 2) refuse(option, text, "LENGTH or GAMMA:LENGTH,GAMMA:LENGTH,...");
    const std::int64_t gamma = parse_integer("gamma in --acceptance-length", pair[0], 1, planner::largest_max_gamma);
    lengths.push_back(typed_length(pair[1], gamma));
  }
  return {.acceptance_length = std::move(lengths)};
}

/// Accepted / drafted at --at: 1 + R G tokens per step, or 1 + R D where rounds draft D tokens on average.
AcceptanceWords length_of_rate(const PlanOptions& o) {
  const std::string_view option = "--acceptance-rate";
  const std::string& text = *o.acceptance_rate;
  if (!o.at) throw UsageError(fmt::format("{} is {}, but needs --at, the gamma it was measured at", option, text));
  const double rate = parse_number(option, text, {});
  if (!probability.contains(rate)) {
    const double percent = 1 < rate && rate <= 100 ? rate : 66.3;
    refuse(option, text, fmt::format("in [0, 1]: accepted / drafted tokens, {:g} for {:g}%", percent / 100, percent));
  }
  auto drafted = static_cast<double>(*o.at);
  if (o.draft().kind && cost::looks_up(*o.draft().kind)) {
    if (!o.draft().mean_draft_length) {
      throw UsageError(
          fmt::format("{} is {}, but drafts that are looked up end early, so that accepted / drafted does not tell "
                      "tokens per step: --mean-draft-length, the tokens that a draft has, is needed beside it",
                      option, text));
    }
    drafted = core::LookupLaw{1, o.draft().mean_draft_length}.mean_drafted(drafted);
  }
  return {.acceptance_length = {{*o.at, 1 + rate * drafted, half_unit_of(text) * drafted}}};
}

AcceptanceWords positions_of(const PlanOptions& o) {
  std::vector<estimate::TypedRate> rates;
  for (const std::string_view part : split(*o.acceptance_per_position, ',')) {
    rates.push_back({parse_number("--acceptance-per-position", part, probability), half_unit_of(part)});
  }
  return {.acceptance_per_position = std::move(rates), .conditional = o.conditional};
}

AcceptanceWords what_is_stated(const PlanOptions& o) {
  if (o.acceptance_length) return lengths_of(o);
  if (o.acceptance_rate) return length_of_rate(o);
  if (o.acceptance_per_position) return positions_of(o);
  if (o.published) return {.published = o.published};
  if (o.alpha) return {.alpha = rates_of("--alpha", *o.alpha)};
  return {.rejection = rates_of("--rejection", *o.rejection)};
}

}  // namespace

Acceptance::Rule rule_of(const PlanOptions& o) { return traces::acceptance_rule_named(o.acceptance); }

Acceptance stated_acceptance(const PlanOptions& o) {
  AcceptanceWords words = what_is_stated(o);
  words.rounds = o.rounds;
  words.rule = rule_of(o);
  return Acceptance::of(words);
}

}  // namespace specdec::cli
