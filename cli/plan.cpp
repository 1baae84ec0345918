#include "cli/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "analysis/planning/plan.hpp"
#include "analysis/theory/acceptance_inversion.hpp"
#include "cli/text.hpp"
#include "cli/usage_error.hpp"

namespace specdec::cli {
namespace {

using nlohmann::ordered_json;

constexpr Range probability = {0.0, 1.0};
constexpr std::int64_t largest_max_gamma = 100'000;
constexpr std::int64_t largest_tokens = 1'000'000;
constexpr std::int64_t listed_gammas = 1000;

struct PlanOptions {
  std::optional<std::string> alpha;
  std::optional<std::string> rejection;
  std::optional<std::string> acceptance_length;
  std::optional<std::int64_t> at;
  std::optional<std::string> acceptance_per_position;
  bool conditional = false;
  std::optional<double> c;
  std::optional<double> c_hat;
  std::optional<std::string> verify_factor;
  double overhead = 0;
  std::optional<std::int64_t> gamma;
  std::optional<double> max_regret;
  std::optional<std::int64_t> max_gamma;
  std::optional<std::int64_t> tokens;
  double tolerance = 0.01;
};

void declare(Options& options, PlanOptions& o) {
  options.group("Acceptance (one of)");
  options.text("--alpha", o.alpha, "A|LOW:HIGH", "acceptance rate, or an interval of it");
  options.text("--rejection", o.rejection, "E|LOW:HIGH", "1 - alpha, exact where alpha is close to 1");
  options.text("--acceptance-length", o.acceptance_length, "L|G:L,...",
               "tokens per step, bonus token included; one at --at,\nor one for each gamma: 1:1.84,2:2.51,3:3.01");
  options.text("--acceptance-per-position", o.acceptance_per_position, "P1,P2,...",
               "rate at which draft 1, 2, ... is accepted");
  options.group("About the acceptance");
  options.integer("--at", o.at, {1, largest_max_gamma}, "gamma at which --acceptance-length was measured");
  options.flag("--conditional", o.conditional, "--acceptance-per-position holds rates given that all\nbefore are accepted");
  options.group("Costs");
  options.number("-c,--c", o.c, {}, "draft step time / target step time (required)");
  options.number("--c-hat", o.c_hat, {}, "draft operations / target operations per token [c]");
  options.text("--verify-factor", o.verify_factor, "V|N:V,...",
               "time of scoring N tokens / one token: one factor, or\n2:1.02,5:1.10,9:1.31; straight lines between [1]");
  options.number("--overhead", o.overhead, {}, "other time of a speculative step / target step time");
  options.group("Question");
  options.integer("-k,--gamma,--num-speculative-tokens", o.gamma, {0, planning::no_max_gamma},
                  "gamma in use: shows its speedup and regret");
  options.number("--max-regret", o.max_regret, {0.0, 1.0}, "exit with 1 if the regret of --gamma is larger");
  options.integer("--max-gamma", o.max_gamma, {1, largest_max_gamma}, "largest gamma to recommend and to show");
  options.integer("--tokens", o.tokens, {1, largest_tokens}, "also for generations of N tokens");
  options.number("--tolerance", o.tolerance, {0.0, 0.5, true}, "loss of speedup up to which a gamma is near-optimal");
  options.footer(
      "Examples:\n"
      "  specdec plan --alpha 0.8 --c 0.05\n"
      "  specdec plan --acceptance-length 2.92 --at 3 --c 0.02 --gamma 3 --max-regret 0.05\n"
      "  specdec plan --alpha 0.7:0.8 --c 0.05 --verify-factor 2:1.02,5:1.10,9:1.31\n"
      "Also: --config FILE, --print-config. Every option: docs/cli.md.");
}

/// What the acceptance options say.
struct Acceptance {
  core::AcceptanceProfile profile;
  std::optional<planning::RateInterval> interval = {};
  bool monotone = true;
};

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
  return {core::AcceptanceRate(std::midpoint(low.alpha(), high.alpha())), planning::RateInterval{low, high}};
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
    return {theory::alpha_from_acceptance_length(parse_length(text, *o.at), *o.at)};
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
  return {inverted.profile, std::nullopt, inverted.monotone};
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

Acceptance acceptance_of(const PlanOptions& o) {
  const int given = o.alpha.has_value() + o.rejection.has_value() + o.acceptance_length.has_value() +
                    o.acceptance_per_position.has_value();
  constexpr std::string_view choices = "--alpha, --rejection, --acceptance-length, --acceptance-per-position";
  if (given == 0) throw UsageError(fmt::format("one of {} is needed", choices));
  if (given > 1) throw UsageError(fmt::format("{} of {} are given, but must be one", given, choices));
  if (o.at && !o.acceptance_length) throw UsageError("--at is given, but goes with --acceptance-length only");
  if (o.conditional && !o.acceptance_per_position) {
    throw UsageError("--conditional is given, but goes with --acceptance-per-position only");
  }
  if (o.acceptance_length) return from_lengths(o);
  if (o.acceptance_per_position) return from_positions(o);
  if (o.alpha) {
    const auto [low, high] = parse_interval("--alpha", *o.alpha);
    return from_rates(core::AcceptanceRate(low), core::AcceptanceRate(high));
  }
  const auto [low, high] = parse_interval("--rejection", *o.rejection);
  return from_rates(core::AcceptanceRate::from_rejection(high), core::AcceptanceRate::from_rejection(low));
}

core::VerificationCost verification_of(const PlanOptions& o) {
  const std::string_view option = "--verify-factor";
  constexpr Range positive = {0.0, std::numeric_limits<double>::infinity(), true};
  if (!o.verify_factor) return {};
  if (o.verify_factor->find(':') == std::string::npos) {
    return core::VerificationCost::constant(parse_number(option, *o.verify_factor, positive));
  }
  std::vector<core::VerificationCost::Point> points;
  for (const std::string_view part : split(*o.verify_factor, ',')) {
    const auto pair = split(part, ':');
    if (pair.size() != 2) refuse(option, part, "TOKENS:FACTOR");
    const std::int64_t above = points.empty() ? 2 : points.back().tokens + 1;
    const std::int64_t tokens = parse_integer("tokens in --verify-factor", pair[0], above, planning::no_max_gamma);
    points.push_back({tokens, parse_number(option, pair[1], positive)});
  }
  return core::VerificationCost::table(points);
}

planning::PlanQuestion question_of(const PlanOptions& o, const Acceptance& acceptance) {
  if (!o.c) throw UsageError("--c is missing: the time of one draft step / one target step, a number in [0, inf)");
  if (o.max_regret && !o.gamma) throw UsageError("--max-regret is given, but needs --gamma, the gamma in use");
  if (o.gamma && o.max_gamma && *o.gamma > *o.max_gamma) {
    refuse("--gamma", fmt::format("{}", *o.gamma), fmt::format("at most --max-gamma, {}", *o.max_gamma));
  }
  planning::PlanQuestion question{acceptance.profile};
  question.space.cost = {*o.c, o.overhead, verification_of(o)};
  if (o.max_gamma) question.space.max_gamma = *o.max_gamma;
  question.c_hat = o.c_hat.value_or(*o.c);
  question.tolerance = o.tolerance;
  question.deployed = o.gamma;
  question.tokens = o.tokens;
  question.interval = acceptance.interval;
  return question;
}

/// One answer with everything that went into it.
struct Answer {
  const PlanOptions& options;
  Acceptance acceptance;
  planning::PlanQuestion question;
  planning::Plan plan;

  bool is_one_rate() const { return question.acceptance.measured_positions() == 0; }
  double deployed_regret() const { return plan.deployed->worst_regret.value_or(plan.deployed->regret); }
  bool regret_too_large() const { return options.max_regret && deployed_regret() > *options.max_regret; }
};

// ---------------------------------------------------------------------------------------------------------- JSON

ordered_json gamma_or_null(std::int64_t gamma) {
  return gamma < planning::no_max_gamma ? ordered_json(gamma) : ordered_json();
}

void put_row_values(ordered_json& object, const planning::PlanRow& row) {
  put_number(object, "expected_tokens", row.expected_tokens);
  put_number(object, "speedup", row.speedup);
  put_number(object, "operations_factor", row.operations_factor);
  put_number(object, "memory_access_factor", row.memory_access_factor);
}

ordered_json json_row(const planning::PlanRow& row) {
  ordered_json object = {{"gamma", row.gamma}};
  put_row_values(object, row);
  object["extrapolated"] = row.extrapolated;
  object["finite_speedup"] = number_or_null(row.finite_speedup);
  object["worst_regret"] = number_or_null(row.worst_regret);
  return object;
}

ordered_json json_optimal(const planning::Plan& plan) {
  ordered_json object = {{"gamma", plan.best_row ? ordered_json(plan.best_row->gamma) : ordered_json()},
                         {"gamma_real", number_or_null(plan.gamma_real)}};
  if (plan.best_row) {
    put_row_values(object, *plan.best_row);
  } else {
    for (const char* key : {"expected_tokens", "speedup", "operations_factor", "memory_access_factor"}) {
      object[key] = nullptr;
    }
  }
  return object;
}

std::string_view basis_name(planning::Basis basis) {
  switch (basis) {
    case planning::Basis::optimum: return "optimum";
    case planning::Basis::share_of_limit: return "share_of_limit";
    case planning::Basis::max_gamma: return "max_gamma";
    case planning::Basis::minimax_regret: return "minimax_regret";
    case planning::Basis::not_worth_it: return "not_worth_it";
    case planning::Basis::none: break;
  }
  return "none";
}

ordered_json json_limit(const planning::Plan& plan) {
  if (plan.best.attained()) return nullptr;
  ordered_json limit;
  put_number(limit, "speedup", plan.best.speedup);
  limit["shares"] = ordered_json::array();
  for (const auto& share : plan.shares_of_limit) {
    limit["shares"].push_back({{"share", share.share}, {"gamma", share.gamma}});
  }
  return limit;
}

/// The gammas of the ranges one by one, as many as are listed.
ordered_json json_gammas(const std::vector<theory::GammaRange>& ranges) {
  ordered_json gammas = ordered_json::array();
  for (const theory::GammaRange& range : ranges) {
    for (std::int64_t gamma = range.first; gamma <= range.last && gammas.size() < listed_gammas; ++gamma) {
      gammas.push_back(gamma);
    }
  }
  return gammas;
}

ordered_json json_ranges(const std::vector<theory::GammaRange>& ranges) {
  ordered_json list = ordered_json::array();
  for (const theory::GammaRange& range : ranges) list.push_back({range.first, gamma_or_null(range.last)});
  return list;
}

ordered_json json_interval(const Answer& a) {
  if (!a.plan.interval) return nullptr;
  const planning::IntervalPlan& interval = *a.plan.interval;
  ordered_json stretches = ordered_json::array();
  for (const auto& stretch : interval.best) {
    stretches.push_back({{"gamma", gamma_or_null(stretch.gamma)},
                         {"alpha_interval", {stretch.alpha_low, stretch.alpha_high}}});
  }
  const bool attained = interval.minimax.attained;
  return {{"alpha_interval", {a.question.interval->low.alpha(), a.question.interval->high.alpha()}},
          {"gamma", gamma_or_null(interval.minimax.gamma)},
          {"worst_regret", attained ? ordered_json(interval.minimax.worst_regret) : ordered_json()},
          {"optimal_from", gamma_or_null(interval.best_at_low)},
          {"optimal_to", gamma_or_null(interval.best_at_high)},
          {"optimal_gammas", stretches}};
}

ordered_json json_finite(const planning::Plan& plan) {
  if (!plan.finite) return nullptr;
  return {{"tokens", plan.finite->tokens},
          {"gamma", plan.finite->gamma},
          {"speedup", plan.finite->speedup},
          {"expected_steps", plan.finite->expected_steps},
          {"searched_up_to", plan.finite->searched_up_to}};
}

ordered_json json_deployed(const planning::Plan& plan) {
  if (!plan.deployed) return nullptr;
  return {{"gamma", plan.deployed->gamma},
          {"speedup", plan.deployed->speedup},
          {"regret", plan.deployed->regret},
          {"worst_regret", number_or_null(plan.deployed->worst_regret)}};
}

ordered_json json_of(const Answer& a) {
  const planning::Plan& plan = a.plan;
  const core::AcceptanceRate rate = planning::pooled_rate(a.question.acceptance);
  ordered_json json = {{"alpha", rate.alpha()},
                       {"rejection", rate.rejection()},
                       {"c", a.question.space.cost.c},
                       {"c_hat", a.question.c_hat},
                       {"worth_it", plan.worth_it}};
  json["break_even_alpha"] = plan.break_even ? ordered_json(plan.break_even->alpha()) : ordered_json();
  json["optimal"] = json_optimal(plan);
  json["recommended"] = {{"gamma", plan.recommended ? ordered_json(plan.recommended->gamma) : ordered_json()},
                         {"basis", basis_name(plan.basis)}};
  json["oracle_speedup"] = number_or_null(plan.oracle_speedup);
  json["near_optimal_gammas"] = json_gammas(plan.near_best);
  json["near_optimal_ranges"] = json_ranges(plan.near_best);
  json["limit"] = json_limit(plan);
  json["deployed"] = json_deployed(plan);
  json["interval"] = json_interval(a);
  json["finite"] = json_finite(plan);
  ordered_json& rows = json["rows"] = ordered_json::array();
  for (const planning::PlanRow& row : plan.rows) rows.push_back(json_row(row));
  return json;
}

// ---------------------------------------------------------------------------------------- assumptions and warnings

std::vector<Assumption> assumptions_of(const Answer& a) {
  const PlanOptions& o = a.options;
  const auto source = [](bool given) { return given ? "user" : "default"; };
  std::vector<Assumption> assumptions = {{"acceptances", "independent", "default"}};
  if (a.acceptance.interval) {
    assumptions.push_back({"alpha", planning::pooled_rate(a.question.acceptance).alpha(), "default"});
  }
  assumptions.push_back({"verify_factor", o.verify_factor.value_or("1"), source(o.verify_factor.has_value())});
  assumptions.push_back({"overhead", o.overhead, source(o.overhead != 0)});
  assumptions.push_back({"c_hat", a.question.c_hat, source(o.c_hat.has_value())});
  assumptions.push_back({"generations", "long", "default"});
  return assumptions;
}

std::vector<Warning> warnings_of(const Answer& a) {
  const planning::Plan& plan = a.plan;
  std::vector<Warning> warnings;
  const auto warn = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message)});
  };
  const auto explain_null = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message), true});
  };
  if (!a.acceptance.monotone) {
    warn("non_monotone_survival",
         "the chance that a draft is reached and accepted must not grow with its position, but does so in the input; "
         "the nearest legal values are used");
  }
  if (!a.is_one_rate() && plan.rows.back().gamma > a.question.acceptance.measured_positions()) {
    warn("extrapolated", fmt::format("gammas above {} hold the last conditional acceptance rate, {}",
                                     a.question.acceptance.measured_positions(),
                                     brief(a.question.acceptance.tail().alpha())));
  }
  if (a.question.space.cost.extrapolates(plan.rows.back().gamma)) {
    warn("verify_factor_extrapolated", fmt::format("scoring more than {} tokens goes on along the last straight line",
                                                   a.question.space.cost.verification.points().back().tokens));
  }
  if (!plan.worth_it) warn("not_worth_it", "no gamma is faster than plain decoding");
  if (!plan.break_even) warn("no_break_even", "no acceptance rate below 1 makes any gamma pay");
  if (plan.best.kind == theory::OptimumKind::unbounded) {
    warn("no_finite_optimum", "the speedup grows with every larger gamma, so no gamma is optimal");
  }
  if (plan.best.kind == theory::OptimumKind::too_large) {
    warn("no_finite_optimum", "the optimal gamma exceeds 2^53, which is unbounded in practice");
  }
  if (plan.best.attained() && plan.best.gamma != plan.unrestricted.gamma) {
    warn("max_gamma_binds", fmt::format("without --max-gamma {} would reach {}x",
                                        plan.unrestricted.attained() ? fmt::format("gamma {}", plan.unrestricted.gamma)
                                                                     : std::string("ever larger gammas"),
                                        brief(plan.unrestricted.speedup)));
  }
  const bool cut = !plan.near_best.empty() && plan.near_best.back().last != json_gammas(plan.near_best).back();
  if (cut) explain_null("near_optimal_list_cut", "near_optimal_gammas stops early; near_optimal_ranges is complete");
  if (plan.interval && !plan.interval->all_listed) {
    warn("optimal_gammas_cut", fmt::format("only the first {} gammas that are optimal in the interval are listed",
                                           plan.interval->best.size()));
  }
  if (a.options.tokens && (!plan.finite || plan.finite->searched_up_to < plan.rows.back().gamma)) {
    warn("finite_not_computed", "long generations with large gammas are left out, since they take too long to compute");
  }
  if (a.regret_too_large()) {
    warn("max_regret_exceeded", fmt::format("the regret of gamma {} is {}, above --max-regret {}", plan.deployed->gamma,
                                            brief(a.deployed_regret()), *a.options.max_regret));
  }
  if (!plan.gamma_real) {
    explain_null("no_gamma_real", "gamma_real exists for one rate below 1, c > 0, verify factor 1 and no overhead");
  }
  if (!plan.oracle_speedup) explain_null("no_oracle", "the oracle's speedup is known for verify factor 1 and no overhead");
  if (plan.oracle_speedup && std::isinf(*plan.oracle_speedup)) {
    explain_null("oracle_unbounded", "the oracle's speedup has no bound");
  }
  return warnings;
}

// ---------------------------------------------------------------------------------------------------------- text

std::string percent(double share) { return fmt::format("{:.2g}%", 100 * share); }
std::string factor(double speedup) {
  return speedup < 100 ? fmt::format("{:.2f}x", speedup) : fmt::format("{:.4g}x", speedup);
}

std::string listed(const std::vector<theory::GammaRange>& ranges) {
  std::vector<std::string> parts;
  for (const theory::GammaRange& range : ranges) {
    if (range.last == theory::GammaRange::unbounded) {
      parts.push_back(fmt::format("{} and above", range.first));
    } else if (range.first == range.last) {
      parts.push_back(fmt::format("{}", range.first));
    } else {
      parts.push_back(fmt::format("{} to {}", range.first, range.last));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// The acceptance in the few digits that it is known to; near 1 as its rejection, which keeps them.
std::string rate_text(const core::AcceptanceRate& rate) {
  return rate.rejection() < 0.001 ? fmt::format("1 - alpha {}", brief(rate.rejection())) : "alpha " + brief(rate.alpha());
}

std::string acceptance_sentence(const Answer& a) {
  const double c = a.question.space.cost.c;
  if (a.acceptance.interval) {
    return fmt::format("{} to {}, c {}", rate_text(a.acceptance.interval->low), brief(a.acceptance.interval->high.alpha()),
                       brief(c));
  }
  return fmt::format("{}{}, c {}", rate_text(planning::pooled_rate(a.question.acceptance)),
                     a.is_one_rate() ? "" : " over the measured positions", brief(c));
}

std::string recommendation(const Answer& a) {
  const planning::Plan& plan = a.plan;
  const std::string about = acceptance_sentence(a);
  switch (plan.basis) {
    case planning::Basis::not_worth_it:
      return fmt::format("Do not speculate: no gamma is faster than plain decoding ({}).", about);
    case planning::Basis::none:
      return fmt::format("Draft as many tokens as you can: the speedup grows without bound ({}).", about);
    default: break;
  }
  const planning::PlanRow& row = *plan.recommended;
  std::string text = fmt::format("Draft {} token{} per step: {} the speed of plain decoding ({}).", row.gamma,
                                 row.gamma == 1 ? "" : "s", factor(row.speedup), about);
  if (plan.basis == planning::Basis::minimax_regret) {
    text += fmt::format(" Wherever alpha lies in the interval, this loses at most {} to the gamma that is best there "
                        "({} to {}); the speedup is that at the middle.",
                        percent(plan.interval->minimax.worst_regret), plan.interval->best_at_low,
                        plan.interval->best_at_high < planning::no_max_gamma
                            ? fmt::format("{}", plan.interval->best_at_high)
                            : "no end");
  }
  if (plan.basis == planning::Basis::share_of_limit) {
    text += fmt::format(" No gamma is optimal: the speedup approaches {}; this one comes within {} of it.",
                        factor(plan.best.speedup), percent(a.question.tolerance));
    for (const auto& share : plan.shares_of_limit) {
      text += fmt::format(" Gamma {} reaches {}.", share.gamma, percent(share.share));
    }
  }
  return text;
}

std::string surroundings(const Answer& a) {
  const planning::Plan& plan = a.plan;
  std::string text;
  if (plan.worth_it && plan.best.attained()) {
    text += fmt::format("Within {} of the best: gamma {}. ", percent(a.question.tolerance), listed(plan.near_best));
  }
  if (plan.break_even) {
    text += fmt::format("Speculation pays where alpha is above {}. ", brief(plan.break_even->alpha(), 3));
  }
  if (plan.oracle_speedup && std::isfinite(*plan.oracle_speedup) && plan.worth_it) {
    text += fmt::format("An oracle for gamma would reach {}.", factor(*plan.oracle_speedup));
  }
  return text;
}

std::string about_deployed(const Answer& a) {
  const planning::DeployedGamma& deployed = *a.plan.deployed;
  std::string text = fmt::format("You use gamma {}: {}, {} below the best.", deployed.gamma, factor(deployed.speedup),
                                 percent(deployed.regret));
  if (deployed.worst_regret) {
    text += fmt::format(" In the interval it loses at most {}.", percent(*deployed.worst_regret));
  }
  return text;
}

std::string about_finite(const planning::FinitePlan& finite) {
  return fmt::format("Generations of {} tokens (column finite): best with gamma {}, {} in {} steps; gammas up to {} tried.",
                     finite.tokens, finite.gamma, factor(finite.speedup), brief(finite.expected_steps, 3),
                     finite.searched_up_to);
}

std::string notes(const Answer& a, const planning::PlanRow& row) {
  const planning::Plan& plan = a.plan;
  const auto is_near = [&](const theory::GammaRange& r) { return r.first <= row.gamma && row.gamma <= r.last; };
  std::vector<std::string> words;
  if (plan.best_row && row.gamma == plan.best_row->gamma) {
    words.push_back("best");
  } else if (std::any_of(plan.near_best.begin(), plan.near_best.end(), is_near)) {
    words.push_back("near-best");
  }
  if (plan.basis == planning::Basis::minimax_regret && row.gamma == plan.recommended->gamma) {
    words.push_back("minimax");
  }
  if (plan.deployed && row.gamma == plan.deployed->gamma) words.push_back("in use");
  if (row.extrapolated) words.push_back("extrapolated");
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string table_of(const Answer& a) {
  const bool finite = a.options.tokens.has_value();
  const bool interval = a.plan.interval.has_value();
  std::vector<TextTable::Column> columns = {{"gamma"}, {"tokens"}, {"speedup"}, {"operations"}, {"memory"}};
  if (finite) columns.push_back({"finite"});
  if (interval) columns.push_back({"max regret"});
  columns.push_back({"", TextTable::Align::left});
  TextTable table(columns);
  for (const planning::PlanRow& row : a.plan.rows) {
    std::vector<std::string> cells = {fmt::format("{}", row.gamma), in_column(row.expected_tokens),
                                      in_column(row.speedup), in_column(row.operations_factor),
                                      in_column(row.memory_access_factor)};
    if (finite) cells.push_back(row.finite_speedup ? in_column(*row.finite_speedup) : "-");
    if (interval) cells.push_back(row.worst_regret ? percent(*row.worst_regret) : "-");
    cells.push_back(notes(a, row));
    table.add_row(std::move(cells));
  }
  return table.to_string();
}

std::string text_of(const Answer& a) {
  std::string text = wrapped(recommendation(a)) + '\n';
  const std::string more = surroundings(a);
  if (!more.empty()) text += wrapped(more) + '\n';
  if (a.plan.deployed) text += wrapped(about_deployed(a)) + '\n';
  if (a.plan.finite) text += wrapped(about_finite(*a.plan.finite)) + '\n';
  return text + '\n' + table_of(a);
}

Report run(const PlanOptions& options) {
  const Acceptance acceptance = acceptance_of(options);
  const planning::PlanQuestion question = question_of(options, acceptance);
  const Answer answer{options, acceptance, question, planning::plan(question)};
  Report report;
  report.json = json_of(answer);
  report.assumptions = assumptions_of(answer);
  report.warnings = warnings_of(answer);
  report.text = text_of(answer);
  report.exit_code = answer.regret_too_large() ? check_failed : success;
  return report;
}

}  // namespace

Command plan_command() {
  return {"plan", "How many tokens to draft, and what that gains", {{"rows", "/rows"}}, [](Options& options) {
            const auto chosen = std::make_shared<PlanOptions>();
            declare(options, *chosen);
            return std::function<Report()>([chosen] { return run(*chosen); });
          }};
}

}  // namespace specdec::cli
