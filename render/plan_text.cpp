#include "render/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "render/plan_tables.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using planner::Plan;

const planner::StatedAcceptance& stated_of(const Plan& a) { return *a.drafts.front().acceptance.stated; }

const planning::PointPlan* point_of(const Plan& a) { return a.has_points() ? &a.points().front() : nullptr; }

std::string ranges_text(const std::vector<theory::GammaRange>& ranges) {
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

/// True if a few digits of alpha would print as 1.
bool is_near_one(const core::AcceptanceRate& rate) { return 0 < rate.rejection() && rate.rejection() < 0.001; }

/// The acceptance with its few known digits; near 1 as its rejection, which keeps them.
std::string rate_text(const core::AcceptanceRate& rate) {
  return is_near_one(rate) ? fmt::format("1 - alpha {}", brief(rate.rejection())) : "alpha " + brief(rate.alpha());
}

std::string interval_text(const planning::RateInterval& rates) {
  if (is_near_one(rates.low) || is_near_one(rates.high)) {
    return fmt::format("1 - alpha {} to {}", brief(rates.high.rejection()), brief(rates.low.rejection()));
  }
  return fmt::format("alpha {} to {}", brief(rates.low.alpha()), brief(rates.high.alpha()));
}

std::string acceptance_sentence(const Plan& a) {
  const double c = a.closed_form->question.space.cost.c;
  if (stated_of(a).interval) {
    return fmt::format("{}, c {}", interval_text(*stated_of(a).interval), brief(c));
  }
  return fmt::format("{}{}, c {}", rate_text(stated_of(a).rate()),
                     stated_of(a).typed ? fmt::format(" up to gamma {}", a.closed_form->measured()) : std::string(),
                     brief(c));
}

/// The first sentence's remark on a recommendation that the measurements do not reach, or only just reach.
std::string beyond_what(const Plan& a, std::int64_t gamma) {
  const planning::PlanQuestion& question = a.closed_form->question;
  const std::int64_t measured = a.closed_form->measured();
  const bool by_position = question.measured_from == 1;
  const std::string positions = by_position
                                    ? fmt::format("the {} measured position{}", measured, measured == 1 ? "" : "s")
                                    : fmt::format("gamma {}, the longest draft measured", measured);
  if (planning::below_measured(question, gamma)) {
    return fmt::format(", extrapolated below gamma {}, the shortest draft measured", question.measured_from);
  }
  if (a.closed_form->plan.basis == planning::Basis::measured) {
    if (!by_position) return ", the best that was measured";
    return ", the best within " + (measured > 0 ? positions : "the verify factors given");
  }
  return planning::beyond_measured(question, gamma) ? ", extrapolated beyond " + positions : "";
}

/// " (2.46x to 3.13x)", and what that does not include.
std::string range_text(const Plan& a, const estimate::Interval& speedup) {
  const planner::StatedAcceptance& stated = stated_of(a);
  return fmt::format(" ({}{} to {}{})", stated.is_range() ? "" : "95% ", factor_text(speedup.lo),
                     factor_text(speedup.hi),
                     stated.lacks_sampling_error() ? " without sampling error, which --rounds adds"
                     : stated.is_range()           ? " over the range of alpha"
                                                   : "");
}

/// Empty if the acceptance leaves no room.
std::string range_text(const Plan& a, const planning::PlanRow& row) {
  const auto interval = planner::speedup_interval(a.drafts.front().acceptance, row);
  return interval ? range_text(a, *interval) : "";
}

/// Empty if the point's interval has no width.
std::string range_text(const Plan& a, const planning::DeploymentRow& row) {
  return row.speedup_ci95.lo < row.speedup_ci95.hi ? range_text(a, row.speedup_ci95) : "";
}

/// The row of the recommendation, or of the best gamma if the recommendation is not to draft.
const planning::DeploymentRow& judged_row(const Plan& a, const planning::PointPlan& point) {
  const auto& recommended = a.closed_form->plan.recommended;
  const bool has_row =
      recommended && recommended->gamma > 0 && recommended->gamma < static_cast<std::int64_t>(point.rows.size());
  return has_row ? point.rows[static_cast<std::size_t>(recommended->gamma)] : *point.optimal();
}

/// As that of a point, which the closed form has or not.
std::string_view why_plain(const Plan& a) {
  if (a.closed_form->plan.prefers_plain()) return "no gamma that was measured is faster than plain decoding";
  const planning::PointPlan* const point = point_of(a);
  return point == nullptr ? "no gamma is faster than plain decoding" : render::why_plain({point, 1});
}

/// The first sentence if the point's verdict is not to speculate, or cannot be told.
std::string undrafted(const Plan& a, const planning::PointPlan& point) {
  const std::string about = acceptance_sentence(a), enough = factor_text(1 + a.min_gain);
  const planning::DeploymentRow& best = *point.optimal();
  if (point.verdict == planning::Verdict::do_not_speculate) {
    if (best.gamma == 0) {
      return fmt::format("Do not speculate: {} ({}).", why_plain(a), about);
    }
    return fmt::format(
        "Do not speculate: the best gamma, {}, gives {}{}, less than the {} that --min-gain asks for ({}).", best.gamma,
        factor_below(best.speedup, 1 + a.min_gain), range_text(a, best), enough, about);
  }
  const planning::DeploymentRow& judged = judged_row(a, point);
  if (judged.gamma > 0) {
    return fmt::format("Cannot tell: gamma {} gives {}{}, and --min-gain asks for {} ({}){}.", judged.gamma,
                       factor_text(judged.speedup), range_text(a, judged), enough, about, beyond_what(a, judged.gamma));
  }
  const auto most = std::max_element(point.rows.begin(), point.rows.end(), [](const auto& one, const auto& other) {
    return one.speedup_ci95.hi < other.speedup_ci95.hi;
  });
  return fmt::format("Cannot tell: {} {}, but gamma {} may give up to {}, and --min-gain asks for {} ({}).",
                     a.closed_form->plan.interval ? "at the middle" : "by the estimate", why_plain(a), most->gamma,
                     factor_text(most->speedup_ci95.hi), enough, about);
}

std::string drafted(const Plan& a) {
  const planning::Plan& plan = a.closed_form->plan;
  const std::string about = acceptance_sentence(a);
  const auto draft = [&](const auto& row, const std::string& beside) {
    return fmt::format("Draft {} token{} per step: {}{} the speed of plain decoding ({}){}{}.", row.gamma,
                       row.gamma == 1 ? "" : "s", factor_text(row.speedup), range_text(a, row), about,
                       beyond_what(a, row.gamma), beside);
  };
  if (const planning::DeploymentRow* const sure = a.sure_row()) return draft(*sure, unsure_text(a, {point_of(a), 1}));
  if (plan.basis == planning::Basis::not_worth_it) {
    return fmt::format("Do not speculate: {} ({}).", why_plain(a), about);
  }
  const planning::PlanRow& row = *plan.recommended;
  if (row.gamma == 0) return fmt::format("Do not draft: plain decoding is the safe choice ({}).", about);
  return draft(row, "");
}

/// The loss of the gamma with the smallest worst regret, named if the first sentence does not recommend it.
std::string about_minimax(const Plan& a, bool drafts) {
  const planning::IntervalPlan& interval = *a.closed_form->plan.interval;
  const std::int64_t gamma = a.closed_form->plan.recommended->gamma;
  const std::string what = drafts ? "this" : gamma == 0 ? "plain decoding" : fmt::format("gamma {}", gamma);
  const std::string at_middle = gamma == 0 ? "" : "; the speedup is that at the middle";
  if (!interval.best_lies_above && interval.best_at_low == gamma && interval.best_at_high == gamma) {
    return fmt::format(" Wherever alpha lies in the interval, {} is the best{}.", what, at_middle);
  }
  const std::string rivals = interval.best_lies_above ? ", also above --max-gamma"
                             : interval.best_at_high < planning::no_max_gamma
                                 ? fmt::format(" ({} to {})", interval.best_at_low, interval.best_at_high)
                                 : fmt::format(" ({} to no end)", interval.best_at_low);
  return fmt::format(" Wherever alpha lies in the interval, {} loses at most {} to the gamma that is best there{}{}.",
                     what, percent(interval.minimax.worst_regret), rivals, at_middle);
}

/// The extrapolated parts at a gamma: the acceptance, the cost of verification or both.
std::string if_all_goes_on(const Plan& a, std::int64_t gamma) {
  if (planning::below_measured(a.closed_form->question, gamma)) return "by the rates taken for shorter drafts";
  const bool acceptance = planning::beyond_measured(a.closed_form->question, gamma);
  const bool cost = a.closed_form->question.space.cost.extrapolates(gamma);
  return fmt::format("if {} on as before", acceptance && cost ? "acceptance and the verify factor go"
                                           : cost             ? "the verify factor goes"
                                                              : "acceptance goes");
}

std::string recommendation(const Plan& a) {
  const planning::Plan& plan = a.closed_form->plan;
  if (plan.basis == planning::Basis::none) {
    return fmt::format("Draft as many tokens as you can: {}the speedup grows without bound ({}).",
                       plan.interval ? "at the high end of the interval " : "", acceptance_sentence(a));
  }
  const planning::PointPlan* const point = point_of(a);
  const bool drafts = point == nullptr || !point->optimal_row || point->verdict == planning::Verdict::speculate;
  std::string text = drafts ? drafted(a) : undrafted(a, *point);
  if (a.sure_row() != nullptr) return text;
  if (plan.basis == planning::Basis::minimax_regret) text += about_minimax(a, drafts);
  if (plan.prefers_measured()) {
    const double preference = a.closed_form->question.prefer_measured;
    const bool gives_little =
        plan.basis != planning::Basis::sure && plan.recommended->speedup >= (1 - preference) * plan.best.speedup;
    text += fmt::format(" {} would reach {} {}",
                        plan.best.attained() ? fmt::format("Gamma {}", plan.best.gamma) : "Ever larger gammas",
                        factor_text(plan.best.speedup),
                        if_all_goes_on(a, plan.best.attained() ? plan.best.gamma : planning::no_max_gamma));
    const std::string_view over = plan.prefers_plain() ? "plain decoding" : "what was measured";
    text += gives_little
                ? fmt::format("; up to {} is given up for {}.", percent(preference), over)
                : fmt::format(", and {} by the reading that says least: of it no gain of more than {} over {} is sure.",
                              factor_text(plan.least_best_speedup), percent(preference), over);
  }
  if (plan.basis == planning::Basis::share_of_limit) {
    const bool too_large = plan.best.kind == theory::OptimumKind::too_large;
    text += fmt::format(
        " {}: {}the speedup {} {}; {} comes within {} of it.",
        too_large ? "The best gamma exceeds 2^53" : "No gamma is optimal", plan.interval ? "at the middle " : "",
        too_large ? "there is" : "approaches", factor_text(plan.best.speedup),
        drafts ? "this one" : fmt::format("gamma {}", plan.recommended->gamma), percent(a.question.tolerance));
    for (const auto& share : plan.shares_of_limit) {
      text += fmt::format(" Gamma {} reaches {}.", share.gamma, percent(share.share));
    }
  }
  return text;
}

std::string surroundings(const Plan& a) {
  const planning::Plan& plan = a.closed_form->plan;
  const std::string_view where = plan.interval ? ", at the middle" : "";
  std::string text;
  if (plan.worth_it && plan.best.attained()) {
    text += fmt::format("Within {} of the best{}: gamma {}. ", percent(a.question.tolerance), where,
                        ranges_text(plan.near_best));
  }
  if (!a.drafts.empty() && a.drafts[a.shown()].cost.draft.hit_rate == 0.0) {
    text += "With a hit rate of 0 nothing is drafted, and no alpha gains. ";
  } else if (plan.break_even) {
    text += is_near_one(*plan.break_even)
                ? fmt::format("Any gain needs 1 - alpha below {}. ", brief(plan.break_even->rejection(), 3))
                : fmt::format("Any gain needs alpha above {}. ", rate_above_rounding(plan.break_even->alpha()));
  }
  if (plan.oracle_speedup && std::isfinite(*plan.oracle_speedup) && plan.worth_it) {
    text += fmt::format("An oracle for gamma would reach {}{}.", factor_text(*plan.oracle_speedup), where);
  }
  return text;
}

std::string about_gamma_in_use(const Plan& a) {
  const planning::DeployedGamma& deployed = *a.closed_form->plan.deployed;
  const bool recommended = recommends(a, deployed.gamma);
  const bool bounded = a.closed_form->plan.best.gamma != a.closed_form->plan.unrestricted.gamma;
  std::string text = fmt::format("You use {}gamma {}: {}, {} below the best{}{}.",
                                 recommended ? "the recommended " : "", deployed.gamma, factor_text(deployed.speedup),
                                 percent(deployed.regret), bounded ? " of all gammas, also above --max-gamma" : "",
                                 a.closed_form->plan.interval ? ", at the middle" : "");
  if (deployed.worst_regret) {
    text += fmt::format(
        " In the interval it loses at most {} to the gamma that is best there{}.", percent(*deployed.worst_regret),
        recommended ? "" : fmt::format(", {} to the recommended", percent(deployed.behind_recommended)));
  }
  return text;
}

std::string about_finite(const planning::FinitePlan& finite) {
  return fmt::format(
      "Generations of {} tokens (column finite): {} gamma {}, {} in {} steps; {}.", finite.tokens,
      finite.complete ? "best with" : "fastest of those computed is", finite.gamma, factor_text(finite.speedup),
      brief(finite.expected_steps, 3),
      finite.complete ? fmt::format("gammas up to {} tried", finite.searched_up_to)
                      : fmt::format("not all gammas above {} were, since they take too long", finite.searched_up_to));
}

}  // namespace

bool recommends(const Plan& a, std::int64_t gamma) {
  const planning::PointPlan* const point = point_of(a);
  if (point != nullptr && point->verdict == planning::Verdict::do_not_speculate) return gamma == 0;
  if (const planning::DeploymentRow* const sure = a.sure_row()) return sure->gamma == gamma;
  const auto& recommended = a.closed_form->plan.recommended;
  return recommended && recommended->gamma == gamma;
}

std::vector<std::string> closed_form_words(const Plan& a) {
  std::vector<std::string> words = {recommendation(a)};
  const std::string more = surroundings(a);
  if (!more.empty()) words.push_back(more.substr(0, more.find_last_not_of(' ') + 1));
  if (a.closed_form->plan.deployed) words.push_back(about_gamma_in_use(a));
  if (a.closed_form->plan.finite) words.push_back(about_finite(*a.closed_form->plan.finite));
  return words;
}

std::string closed_form_text(const Plan& a) {
  std::string text;
  for (const std::string& paragraph : closed_form_words(a)) text += wrapped(paragraph) + '\n';
  return text + '\n' + text_of(closed_form_table(a));
}

}  // namespace specdec::render
