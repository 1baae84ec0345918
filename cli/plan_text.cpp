#include "cli/plan_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>

#include "cli/text.hpp"

namespace specdec::cli {
namespace {

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

/// Whether a few digits of alpha would read as 1.
bool is_near_one(const core::AcceptanceRate& rate) { return 0 < rate.rejection() && rate.rejection() < 0.001; }

/// The acceptance in the few digits that it is known to; near 1 as its rejection, which keeps them.
std::string rate_text(const core::AcceptanceRate& rate) {
  return is_near_one(rate) ? fmt::format("1 - alpha {}", brief(rate.rejection())) : "alpha " + brief(rate.alpha());
}

std::string interval_text(const planning::RateInterval& rates) {
  if (is_near_one(rates.low) || is_near_one(rates.high)) {
    return fmt::format("1 - alpha {} to {}", brief(rates.high.rejection()), brief(rates.low.rejection()));
  }
  return fmt::format("alpha {} to {}", brief(rates.low.alpha()), brief(rates.high.alpha()));
}

std::string acceptance_sentence(const Answer& a) {
  const double c = a.question.space.cost.c;
  if (a.acceptance.interval) {
    return fmt::format("{}, c {}", interval_text(*a.acceptance.interval), brief(c));
  }
  return fmt::format("{}{}, c {}", rate_text(planning::pooled_rate(a.question.acceptance)),
                     a.is_one_rate() ? "" : " over the measured positions", brief(c));
}

/// What the first sentence says of a recommendation that the measurements do not reach, or reach only just.
std::string beyond_what(const Answer& a, std::int64_t gamma) {
  const std::string positions = fmt::format("{} measured position{}", a.measured(), a.measured() == 1 ? "" : "s");
  if (a.plan.basis == planning::Basis::measured) {
    return ", the best within " + (a.measured() > 0 ? "the " + positions : "what was measured");
  }
  return planning::beyond_measured(a.question, gamma) ? ", extrapolated beyond the " + positions : "";
}

std::string recommendation(const Answer& a) {
  const planning::Plan& plan = a.plan;
  const std::string about = acceptance_sentence(a);
  switch (plan.basis) {
    case planning::Basis::not_worth_it:
      return fmt::format("Do not speculate: no gamma is faster than plain decoding ({}).", about);
    case planning::Basis::none:
      return fmt::format("Draft as many tokens as you can: {}the speedup grows without bound ({}).",
                         plan.interval ? "at the high end of the interval " : "", about);
    default:
      break;
  }
  const planning::PlanRow& row = *plan.recommended;
  std::string text =
      row.gamma == 0 ? fmt::format("Do not draft: plain decoding is the safe choice ({}).", about)
                     : fmt::format("Draft {} token{} per step: {} the speed of plain decoding ({}){}.", row.gamma,
                                   row.gamma == 1 ? "" : "s", factor(row.speedup), about, beyond_what(a, row.gamma));
  if (plan.basis == planning::Basis::minimax_regret) {
    text += fmt::format(
        " Wherever alpha lies in the interval, this loses at most {} to the gamma that is best there "
        "({} to {}){}.",
        percent(plan.interval->minimax.worst_regret), plan.interval->best_at_low,
        plan.interval->best_at_high < planning::no_max_gamma ? fmt::format("{}", plan.interval->best_at_high)
                                                             : "no end",
        row.gamma == 0 ? "" : "; the speedup is that at the middle");
  }
  if (a.plan.prefers_measured()) {
    text +=
        fmt::format(" {} would reach {} if acceptance goes on as before; up to {} is given up for what was measured.",
                    plan.best.attained() ? fmt::format("Gamma {}", plan.best.gamma) : "Ever larger gammas",
                    factor(plan.best.speedup), percent(a.question.prefer_measured));
  }
  if (plan.basis == planning::Basis::share_of_limit) {
    const bool too_large = plan.best.kind == theory::OptimumKind::too_large;
    text += fmt::format(" {}: {}the speedup {} {}; this one comes within {} of it.",
                        too_large ? "The best gamma exceeds 2^53" : "No gamma is optimal",
                        plan.interval ? "at the middle " : "", too_large ? "there is" : "approaches",
                        factor(plan.best.speedup), percent(a.question.tolerance));
    for (const auto& share : plan.shares_of_limit) {
      text += fmt::format(" Gamma {} reaches {}.", share.gamma, percent(share.share));
    }
  }
  return text;
}

std::string surroundings(const Answer& a) {
  const planning::Plan& plan = a.plan;
  const std::string_view where = plan.interval ? ", at the middle" : "";
  std::string text;
  if (plan.worth_it && plan.best.attained()) {
    text += fmt::format("Within {} of the best{}: gamma {}. ", percent(a.question.tolerance), where,
                        listed(plan.near_best));
  }
  if (plan.break_even) {
    text += is_near_one(*plan.break_even)
                ? fmt::format("Speculation pays where 1 - alpha is below {}. ", brief(plan.break_even->rejection(), 3))
                : fmt::format("Speculation pays where alpha is above {}. ", brief(plan.break_even->alpha(), 3));
  }
  if (plan.oracle_speedup && std::isfinite(*plan.oracle_speedup) && plan.worth_it) {
    text += fmt::format("An oracle for gamma would reach {}{}.", factor(*plan.oracle_speedup), where);
  }
  return text;
}

std::string about_deployed(const Answer& a) {
  const planning::DeployedGamma& deployed = *a.plan.deployed;
  const bool bounded = a.plan.best.gamma != a.plan.unrestricted.gamma;
  std::string text =
      fmt::format("You use gamma {}: {}, {} below the best{}{}.", deployed.gamma, factor(deployed.speedup),
                  percent(deployed.regret), bounded ? " of all gammas, also above --max-gamma" : "",
                  a.plan.interval ? ", at the middle" : "");
  if (deployed.worst_regret) {
    text += fmt::format(" In the interval it loses at most {}.", percent(*deployed.worst_regret));
  }
  return text;
}

std::string about_finite(const planning::FinitePlan& finite) {
  return fmt::format(
      "Generations of {} tokens (column finite): {} gamma {}, {} in {} steps; {}.", finite.tokens,
      finite.complete ? "best with" : "fastest of those computed is", finite.gamma, factor(finite.speedup),
      brief(finite.expected_steps, 3),
      finite.complete ? fmt::format("gammas up to {} tried", finite.searched_up_to)
                      : fmt::format("not all gammas above {} were, since they take too long", finite.searched_up_to));
}

std::string notes(const Answer& a, const planning::PlanRow& row) {
  const planning::Plan& plan = a.plan;
  const auto is_near = [&](const theory::GammaRange& r) { return r.first <= row.gamma && row.gamma <= r.last; };
  std::vector<std::string> words;
  const bool is_preferred = a.plan.prefers_measured() && row.gamma == plan.recommended->gamma;
  if (is_preferred) words.push_back("recommended");
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

}  // namespace

std::vector<std::string> words_of(const Answer& a) {
  std::vector<std::string> words = {recommendation(a)};
  const std::string more = surroundings(a);
  if (!more.empty()) words.push_back(more.substr(0, more.find_last_not_of(' ') + 1));
  if (a.plan.deployed) words.push_back(about_deployed(a));
  if (a.plan.finite) words.push_back(about_finite(*a.plan.finite));
  return words;
}

std::string text_of(const Answer& a) {
  std::string text;
  for (const std::string& paragraph : words_of(a)) text += wrapped(paragraph) + '\n';
  return text + '\n' + table_of(a);
}

}  // namespace specdec::cli
