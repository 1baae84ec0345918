#include "cli/plan.hpp"

#include <fmt/format.h>
#include <memory>
#include <utility>

#include "analysis/theory/acceptance_inversion.hpp"
#include "cli/plan_answer.hpp"
#include "cli/text.hpp"
#include "cli/usage_error.hpp"

namespace specdec::cli {
namespace {

constexpr Range probability = {0.0, 1.0};
constexpr std::int64_t largest_max_gamma = 100'000;
constexpr std::int64_t largest_tokens = 1'000'000;

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
  options.flag("--conditional", o.conditional,
               "--acceptance-per-position holds rates given that all\nbefore are accepted");
  o.cost.declare(options, "(required)");
  options.number("--c-hat", o.c_hat, {}, "draft operations / target operations per token [c]");
  options.group("Question");
  options.integer("-k,--gamma,--num-speculative-tokens", o.gamma, {0, planning::no_max_gamma},
                  "gamma in use: shows its speedup and regret");
  options.number("--max-regret", o.max_regret, {0.0, 1.0},
                 "exit with 1 if the regret of --gamma is larger;\nin an interval of rates its worst regret");
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

planning::PlanQuestion question_of(const PlanOptions& o, const Acceptance& acceptance) {
  const std::optional<core::StepCost> cost = o.cost.cost();
  if (!cost) throw UsageError("--c is missing: the time of one draft step / one target step, a number in [0, inf)");
  if (o.max_regret && !o.gamma) throw UsageError("--max-regret is given, but needs --gamma, the gamma in use");
  if (o.gamma && o.max_gamma && *o.gamma > *o.max_gamma) {
    refuse("--gamma", fmt::format("{}", *o.gamma), fmt::format("at most --max-gamma, {}", *o.max_gamma));
  }
  planning::PlanQuestion question{acceptance.profile};
  question.measured_at = acceptance.measured_at;
  question.monotone = acceptance.monotone;
  const std::int64_t known = planning::largest_known_gamma(question);
  if (o.gamma && *o.gamma > known) {
    refuse("--gamma", fmt::format("{}", *o.gamma),
           fmt::format("at most {}: the measured acceptance gives no rate to go on with", known));
  }
  question.space.cost = *cost;
  if (o.max_gamma) question.space.max_gamma = *o.max_gamma;
  question.c_hat = o.c_hat.value_or(cost->c);
  question.tolerance = o.tolerance;
  question.deployed = o.gamma;
  question.max_regret = o.max_regret;
  question.tokens = o.tokens;
  question.interval = acceptance.interval;
  return question;
}

std::vector<Assumption> assumptions_of(const Answer& a) {
  const PlanOptions& o = a.options;
  std::vector<Assumption> assumptions = {{"acceptances", "independent", "default"}};
  if (a.acceptance.interval) {
    const core::AcceptanceRate middle = planning::pooled_rate(a.question.acceptance);
    assumptions.push_back({"middle of the interval", o.alpha ? middle.alpha() : middle.rejection(), "default"});
  }
  for (const Assumption& assumption : o.cost.assumptions()) assumptions.push_back(assumption);
  assumptions.push_back({"c_hat", a.question.c_hat, o.c_hat ? "user" : "default"});
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
         "the nearest legal values are used" +
             std::string(a.options.acceptance_per_position ? "; did you mean --conditional?" : ""));
  }
  const std::int64_t known = planning::largest_known_gamma(a.question);
  if (known < planning::no_max_gamma) {
    warn("not_extrapolated", fmt::format("the measured acceptance gives no rate to go on with, so gammas above {} are "
                                         "neither recommended nor shown",
                                         known));
  }
  if (planning::beyond_measured(a.question, plan.rows.back().gamma)) {
    warn("extrapolated",
         fmt::format("gammas above {} hold the {} acceptance rate, {}", a.measured(),
                     a.is_one_rate() ? "fitted" : "last conditional", brief(a.question.acceptance.tail().alpha())));
  }
  if (a.question.space.cost.extrapolates(plan.rows.back().gamma)) {
    warn("verify_factor_extrapolated", fmt::format("scoring more than {} tokens goes on along the last straight line",
                                                   a.question.space.cost.verification.points().back().tokens));
  }
  if (!plan.worth_it) warn("not_worth_it", "no gamma is faster than plain decoding");
  if (plan.interval && plan.worth_it && plan.interval->best_at_low == 0) {
    warn("break_even_inside_interval", "at the low end of the interval no gamma is faster than plain decoding");
  }
  if (!plan.break_even) warn("no_break_even", "no acceptance rate below 1 makes any gamma pay");
  if (plan.best.kind == theory::OptimumKind::unbounded) {
    warn("no_finite_optimum", "the speedup grows with every larger gamma, so no gamma is optimal");
  }
  if (plan.best.kind == theory::OptimumKind::too_large) {
    warn("no_finite_optimum", "the optimal gamma exceeds 2^53, which is unbounded in practice; limit stays null");
  }
  if (plan.best.attained() && plan.best.gamma != plan.unrestricted.gamma) {
    warn("max_gamma_binds",
         fmt::format("{}without --max-gamma {} would reach {}x", plan.interval ? "at the middle of the interval, " : "",
                     plan.unrestricted.attained() ? fmt::format("gamma {}", plan.unrestricted.gamma)
                                                  : std::string("ever larger gammas"),
                     brief(plan.unrestricted.speedup)));
  }
  std::int64_t near_best = 0;
  for (const theory::GammaRange& range : plan.near_best) {
    near_best += std::min<std::int64_t>(range.last - range.first, listed_gammas) + 1;
  }
  if (near_best > listed_gammas) {
    explain_null("near_optimal_list_cut", "near_optimal_gammas stops early; near_optimal_ranges is complete");
  }
  if (plan.interval && !plan.interval->all_listed) {
    warn("optimal_gammas_cut", fmt::format("only the first {} gammas that are optimal in the interval are listed",
                                           plan.interval->best.size()));
  }
  if (a.options.tokens && (!plan.finite || !plan.finite->complete)) {
    warn("finite_not_computed", "long generations with large gammas are left out, since they take too long to compute");
  }
  if (a.regret_too_large()) {
    warn("max_regret_exceeded",
         fmt::format("the {}regret of gamma {} is {}, above --max-regret {}", plan.interval ? "worst " : "",
                     plan.deployed->gamma, brief(plan.deployed->largest_regret()), *a.options.max_regret));
  }
  if (!plan.gamma_real) {
    explain_null("no_gamma_real", "gamma_real exists for one rate below 1, c > 0, verify factor 1 and no overhead");
  }
  if (!plan.oracle_speedup) {
    explain_null("no_oracle",
                 "the oracle's speedup is known for verify factor 1, no overhead and acceptance that goes on");
  }
  if (plan.oracle_speedup && std::isinf(*plan.oracle_speedup)) {
    explain_null("oracle_unbounded", "the oracle's speedup has no bound");
  }
  return warnings;
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
