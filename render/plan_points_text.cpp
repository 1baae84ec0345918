#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/planning/batch_schedule.hpp"
#include "analysis/planning/tree_plan.hpp"
#include "planner/benchmark_command.hpp"
#include "render/plan.hpp"
#include "render/plan_tables.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using planner::Plan;

using planning::DeploymentRow;
using planning::PointPlan;
using planning::Verdict;

/// Number of points whose next measurements are shown.
/// Number of sentences on verdicts before further ones are only counted.
constexpr std::size_t shown_verdicts = 12;

/// What a plan's draft is where it drafts: "gamma 3 to 4", or "tree 5-4-16".
std::string drafting_text(const Plan& d, const std::string& gammas) {
  const auto& tree = d.shown_plan().tree;
  return tree ? planning::name_of(*tree) : "gamma " + gammas;
}

std::string context_text(double context) { return fmt::format("{:.0f}", context); }

std::string at_point(const Plan& d, const PointPlan& point) {
  return has_several_contexts(d)
             ? fmt::format("batch {}, context {}", whole_or_brief(point.batch), context_text(point.context))
             : fmt::format("batch {}", whole_or_brief(point.batch));
}

/// True for benchmark runs that all drafted.
bool lacks_plain_runs(const Plan& d) { return d.bench && !d.bench->relative.empty(); }

/// True if plain decoding is the best by the estimate.
bool is_plain(const PointPlan& point) { return point.optimal() != nullptr && point.optimal()->gamma == 0; }

/// Groups of neighbouring batches with one context, verdict and basis, of a tree those with it and those without apart.
std::vector<std::span<const PointPlan>> stretches_of(const Plan& d) {
  std::vector<std::span<const PointPlan>> stretches;
  const std::vector<PointPlan>& points = d.points();
  for (std::size_t first = 0; first < points.size();) {
    std::size_t end = first + 1;
    while (end < points.size() && planner::same_context(points[end].context, points[first].context) &&
           points[end].batch > points[end - 1].batch && points[end].verdict == points[first].verdict &&
           points[end].basis == points[first].basis &&
           (!d.shown_plan().tree || is_plain(points[end]) == is_plain(points[first]))) {
      ++end;
    }
    stretches.emplace_back(&points[first], end - first);
    first = end;
  }
  return stretches;
}

/// For a price by hardware an empty cache is mentioned, too: it is the default, and few servers have one.
std::string at_stretch(const Plan& d, std::span<const PointPlan> stretch) {
  const std::string batches = "batch " + from_to(stretch.front().batch, stretch.back().batch);
  const bool is_empty = d.has_roofline() && stretch.front().context == 0;
  if (has_several_contexts(d)) return fmt::format("{}, context {}", batches, context_text(stretch.front().context));
  return is_empty ? batches + " (empty cache)" : batches;
}

/// Advice on pricing the point, or else the reason why it cannot be priced.
std::string why_no_price(const Plan& d, const PointPlan& point) {
  const auto first_without = static_cast<std::int64_t>(point.rows.size());
  const bool is_fit = d.bench || d.cost_from_log();
  const bool beyond = !is_fit && d.cost().extrapolates({first_without, point.batch, point.context});
  if (beyond && !d.extrapolates()) return " (--extrapolate prices what lies beyond the measurements)";
  return point.price_limit.empty() ? "" : fmt::format(", since {}", point.price_limit);
}

/// A note after a range of the shown draft that is not a 95% interval.
std::string_view what_range_holds(const Plan& d) {
  return d.drafts[d.shown()].acceptance.stated->lacks_sampling_error() ? "without sampling error, which --rounds adds"
                                                                       : "over the range of alpha";
}

/// If plain decoding is the best, the gammas that are no faster.
std::string_view no_gamma(const Plan& d, std::span<const PointPlan> points) {
  if (d.shown_plan().tree) return "no tree";
  return std::any_of(points.begin(), points.end(), [](const PointPlan& point) { return point.prefers_plain(); })
             ? "no gamma that was measured"
             : "no gamma";
}

/// why_plain() of gammas or of the shown tree.
std::string_view why_plain_at(const Plan& d, std::span<const PointPlan> points) {
  return d.shown_plan().tree ? "no tree is faster than plain decoding" : why_plain(points);
}

/// If plain decoding is the best by the estimates of a stretch, and the intervals leave more open.
std::string drafts_may_gain(const Plan& d, std::span<const PointPlan> stretch, std::string_view where) {
  const DeploymentRow* most = nullptr;
  for (const PointPlan& point : stretch) {
    for (const DeploymentRow& row : point.rows) {
      if (most == nullptr || row.speedup_ci95.hi > most->speedup_ci95.hi) most = &row;
    }
  }
  return fmt::format("Cannot tell at {}: by the estimate {}, but {} may give up to {}, and {} is asked for.", where,
                     why_plain_at(d, stretch), drafting_text(d, fmt::format("{}", most->gamma)),
                     factor_text(most->speedup_ci95.hi), factor_text(1 + d.min_gain));
}

/// The least and the largest speedup of the best gammas of a stretch, at the ends of brackets where they are known as
/// such.
std::pair<double, double> speedups_of(std::span<const PointPlan> stretch) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const PointPlan& point : stretch) {
    const DeploymentRow& row = *point.optimal();
    const estimate::Interval ends = row.speedup_bracket.value_or(estimate::Interval{row.speedup, row.speedup});
    low = std::min(low, ends.lo);
    high = std::max(high, ends.hi);
  }
  return {low, high};
}

std::string verdict_sentence(const Plan& d, std::span<const PointPlan> stretch) {
  const std::string where = at_stretch(d, stretch);
  const PointPlan& first = stretch.front();
  if (!first.optimal_row && first.rows.size() > 1) {
    return fmt::format(
        "Cannot tell at {}: up to gamma {} none is faster than plain decoding, and longer drafts, which may "
        "be, have no price{}.",
        where, first.rows.size() - 1, why_no_price(d, first));
  }
  if (!first.optimal_row) {
    return fmt::format("Cannot tell at {}: no price tells whether drafts pay there{}.", where, why_no_price(d, first));
  }
  const auto gammas = std::minmax_element(stretch.begin(), stretch.end(), [](const auto& a, const auto& b) {
    return a.optimal()->gamma < b.optimal()->gamma;
  });
  const std::int64_t least = gammas.first->optimal()->gamma, largest = gammas.second->optimal()->gamma;
  const std::string drafts = drafting_text(d, from_to(static_cast<double>(least), static_cast<double>(largest)));
  const auto [low, high] = speedups_of(stretch);
  const std::string speed =
      factor_text(low) == factor_text(high)
          ? factor_text(low)
          : fmt::format("{}{} {} {}", first.optimal()->speedup_bracket ? "between " : "", factor_text(low),
                        first.optimal()->speedup_bracket ? "and" : "to", factor_text(high));
  const auto& interval = first.speedup_estimate->ci95;
  // A width of the order of rounding errors counts as none.
  const bool has_width = interval && interval->hi - interval->lo > 1e-6 * interval->hi;
  const bool of_independent_rounds = !d.drafts.empty() && d.drafts[d.shown()].acceptance.curve_at_design_effect_3;
  const std::string certainty = stretch.size() != 1 || !has_width ? ""
                                : d.lacks_sampling()
                                    ? fmt::format(" ({} {})", speedup_range(interval), what_range_holds(d))
                                    : fmt::format(" (95% {}{})", speedup_range(interval),
                                                  of_independent_rounds ? ", were rounds independent" : "");
  switch (first.verdict) {
    case Verdict::speculate:
      return fmt::format("Speculate at {} with {}: {} the speed of plain decoding{}{}.", where, drafts, speed,
                         certainty, unsure_text(d, stretch));
    case Verdict::do_not_speculate:
      if (largest == 0) return fmt::format("Do not speculate at {}: {}.", where, why_plain_at(d, stretch));
      if (d.shown_plan().tree)
        return fmt::format("Do not speculate at {}: {} gives {}{}, less than the {} asked for.", where, drafts,
                           low < high ? speed : factor_below(high, 1 + d.min_gain), certainty,
                           factor_text(1 + d.min_gain));
      return fmt::format("Do not speculate at {}: the best gamma, {}, gives {}{}, less than the {} asked for.", where,
                         from_to(static_cast<double>(least), static_cast<double>(largest)),
                         low < high ? speed : factor_below(high, 1 + d.min_gain), certainty,
                         factor_text(1 + d.min_gain));
    case Verdict::cannot_tell:
      break;
  }
  const bool decides = planning::decides(first.basis, d.extrapolates());
  if (!decides && lacks_plain_runs(d)) {
    return fmt::format("Cannot tell at {} whether drafts pay: no run without speculation goes with them.", where);
  }
  if (!decides) {
    const std::string what =
        largest == 0 ? std::string(why_plain_at(d, stretch)) : fmt::format("{} gives {}{}", drafts, speed, certainty);
    return fmt::format(
        "Cannot tell at {}, beyond what was measured: {} if {}, and --extrapolate decides by that.", where, what,
        d.cost().name() == "anchored" ? "rounds go on by the hardware's shape" : "all goes on as before");
  }
  if (!d.impossible.empty()) {
    return fmt::format("Cannot tell at {}: by these runs {} would give {}{}, and runs that agree are to be made.",
                       where, drafts, speed, certainty);
  }
  if (const std::string refused = d.refused(); !refused.empty()) {
    return largest == 0 ? fmt::format(
                              "Cannot tell at {}: {}, and by its replay, which then means nothing, no gamma is faster "
                              "than plain decoding.",
                              where, refused)
                        : fmt::format("Cannot tell at {}: {}. Its replay, which then means nothing, gives {} {}{}.",
                                      where, refused, drafts, speed, certainty);
  }
  if (largest == 0) return drafts_may_gain(d, stretch, where);
  return fmt::format("Cannot tell at {}: {} gives {}{}, and {} is asked for.", where, drafts, speed, certainty,
                     factor_text(1 + d.min_gain));
}

std::vector<std::string> verdicts(const Plan& d) {
  const auto stretches = stretches_of(d);
  std::vector<std::string> sentences;
  if (stretches.size() <= shown_verdicts) {
    for (const auto& stretch : stretches) sentences.push_back(verdict_sentence(d, stretch));
    return sentences;
  }
  const auto count = [&](Verdict verdict) {
    return std::count_if(d.points().begin(), d.points().end(), [&](const auto& p) { return p.verdict == verdict; });
  };
  return {fmt::format("Of {} points: speculate at {}, do not at {}, cannot tell at {}.", d.points().size(),
                      count(Verdict::speculate), count(Verdict::do_not_speculate), count(Verdict::cannot_tell))};
}

std::string about_misfit(const Plan& d) {
  return d.misfit().empty() ? "" : fmt::format("But no server starts with this draft: {}.", d.misfit());
}

/// Figures by a rule that the configured engine does not have.
std::string about_rule(const Plan& d) {
  const bool other = d.question.emit == planning::Engine::llamacpp && d.shown() < d.drafts.size() &&
                     d.drafts[d.shown()].acceptance.rule == traces::AcceptanceRule::rejection;
  return other ? "But llama.cpp drafts greedily and compares tokens: these figures are of rejection sampling, which it "
                 "does not have."
               : "";
}

std::string about_shortfall(const Plan& d) {
  return d.shortfall.empty() ? "" : fmt::format("This does not fit: {}. What follows leaves that aside.", d.shortfall);
}

std::string about_impossible(const Plan& d) {
  return d.impossible.empty() ? ""
                              : fmt::format(
                                    "The runs cannot be as they say: {}. What follows is by what they say, and "
                                    "decides nothing.",
                                    d.impossible);
}

/// "The fastest is tree 5-4-16 at batch 1 to 8, chains at batch 32.", where it is not the same everywhere.
std::string fastest_by_batch(const Plan& d) {
  const std::vector<std::optional<std::size_t>>& best = d.deployment.best_draft;
  const std::vector<PointPlan>& points = d.points();
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < best.size();) {
    std::size_t end = first + 1;
    while (end < best.size() && best[end] == best[first] && points[end].batch > points[end - 1].batch) ++end;
    const std::string what = best[first] ? d.deployment.drafts[*best[first]].name : std::string("plain decoding");
    const std::string context =
        has_several_contexts(d) ? fmt::format(", context {}", context_text(points[first].context)) : "";
    parts.push_back(
        fmt::format("{} at batch {}{}", what, from_to(points[first].batch, points[end - 1].batch), context));
    first = end;
  }
  return parts.size() < 2 ? "" : fmt::format(" By the estimate the fastest is {}.", fmt::join(parts, ", "));
}

std::string which_draft(const Plan& d) {
  if (d.deployment.drafts.size() == 1) return "";
  if (!d.drafts_not_told_apart.empty()) {
    return fmt::format("By the estimate alone take the draft {}; what follows is its plan.", d.shown_plan().name);
  }
  return d.deployment.recommended_draft
             ? fmt::format("Take the draft {}; what follows is its plan.", d.shown_plan().name)
             : fmt::format("No draft is known to be faster than plain decoding; what follows is the plan of {}.",
                           d.shown_plan().name);
}

std::string about_passed_over(const Plan& d) {
  std::string text;
  for (std::size_t i = 0; i < d.deployment.drafts.size(); ++i) {
    if (!is_passed_over(d, i)) continue;
    const std::string server =
        d.question.emit ? fmt::format("{} does not start", planning::title_of(*d.question.emit)) : "No server starts";
    text += fmt::format(" {} with {}: {}.", server, d.deployment.drafts[i].name, d.misfits[i]);
  }
  return text;
}

std::string about_drafts(const Plan& d) {
  if (d.deployment.drafts.size() == 1) return "";
  const bool of_runs = d.drafts.empty();
  return wrapped(which_draft(d) + (of_runs ? fastest_by_batch(d) : "") + about_passed_over(d)) + "\n\n" +
         text_of(drafts_table(d)) + '\n';
}

/// The deviations of the held-out runs from the plan.
std::string about_drift(const planning::BenchPlan& bench) {
  std::vector<std::string> drifted;
  for (const planning::BenchPrediction& held : bench.backtest) {
    const auto figure = [&](const char* what, const planning::PredictedFigure& of, double factor) {
      drifted.push_back(fmt::format("{} of {} {}, predicted {} [{} to {}]", what, held.file.filename().string(),
                                    brief(factor * of.measured), brief(factor * of.predicted),
                                    brief(factor * of.ci95.lo), brief(factor * of.ci95.hi)));
    };
    if (held.round && held.round->outside(held.widths)) figure("ms a round", *held.round, 1000);
    if (held.tokens && held.tokens->outside(held.widths)) figure("tokens a step", *held.tokens, 1);
    if (held.drifted() == "time")
      drifted.push_back(fmt::format("the time per token of {}", held.file.filename().string()));
  }
  if (bench.backtest.empty()) return "";
  if (drifted.empty())
    return wrapped("Nothing has drifted: times, rounds and acceptance are as predicted, as far as can be told.") + '\n';
  return wrapped(
             fmt::format("Drifted: {}. Where nothing has, one comparison in twenty says so of some figure by chance.",
                         fmt::join(drifted, "; "))) +
         '\n';
}

std::string about_runs(const Plan& d) {
  if (!d.bench) return "";
  const planning::BenchPlan& bench = *d.bench;
  std::string text = fmt::format(
      "{} runs{}; measured is the speedup over the plain run beside it, predicted the error "
      "in ms/token of a prediction from all other runs",
      bench.runs.size(), bench.model.empty() ? "" : " of " + bench.model);
  if (bench.leave_one_out_error) text += fmt::format(" (median {})", percent(*bench.leave_one_out_error));
  if (!d.drafts.empty()) text += fmt::format(". The plan takes its acceptance from {}", d.drafts[0].acceptance.text);
  if (std::any_of(bench.runs.begin(), bench.runs.end(), [](const auto& run) { return run.tree.has_value(); }))
    text += ". The gamma of a tree is its steps, topk and draft tokens";
  text = wrapped(text + ".") + "\n\n" + text_of(runs_table(bench)) + '\n';
  for (const planning::BenchPrediction& held : bench.backtest) {
    const std::string file = held.file.filename().string();
    text +=
        wrapped(held.predicted ? fmt::format("Held out, {}: predicted {} ms/token [{} to {}], measured {} ({:+.1f}%).",
                                             file, milliseconds(*held.predicted), milliseconds(held.ci95->lo),
                                             milliseconds(held.ci95->hi), milliseconds(held.measured),
                                             100 * held.relative_error.value_or(0))
                               : fmt::format("Held out, {}: not predicted, since {}.", file, held.reason)) +
        '\n';
  }
  return text + about_drift(bench) + (bench.backtest.empty() ? "" : "\n");
}

/// The fastest of the drafts, if runs say nothing about plain decoding.
std::string fastest_drafts(const Plan& d) {
  if (!lacks_plain_runs(d)) return "";
  const std::vector<planning::GammaComparison>& rows = d.bench->relative;
  if (rows.front().gamma == rows.back().gamma) return "";
  std::vector<std::string> places;
  for (const planning::GammaComparison& row : rows) {
    if (!row.fastest) continue;
    const PointPlan* point = nullptr;
    for (const PointPlan& other : d.points())
      if (other.batch == row.batch && other.context == row.context) point = &other;
    if (point != nullptr) places.push_back(fmt::format("gamma {} at {}", row.gamma, at_point(d, *point)));
  }
  return fmt::format("Among gammas {} the fastest is {}.",
                     from_to(static_cast<double>(rows.front().gamma), static_cast<double>(rows.back().gamma)),
                     fmt::join(places, ", "));
}

const DeploymentRow* row_at(const PointPlan& point, std::int64_t gamma) {
  for (const DeploymentRow& row : point.rows) {
    if (row.gamma == gamma) return &row;
  }
  return nullptr;
}

/// The best gammas at the ends of a bracket, in the words of `analyze`.
std::string about_bracket(const Plan& d) {
  const PointPlan& point = d.points().front();
  const auto best = best_at_ends(point);
  if (d.points().size() != 1 || !best) return "";
  return fmt::format(
      "The best gamma lies between {} ({}) and {} ({}), at the ends of the brackets of the recording; gamma {} loses "
      "at most {} there.",
      best->first->gamma, factor_text(best->first->speedup_bracket->lo), best->second->gamma,
      factor_text(best->second->speedup_bracket->hi), point.optimal()->gamma,
      percent(loss_at_ends(point, *point.optimal())));
}

/// Where the cost's uncertainty would go on to rounds shorter than plain steps: such ends are tokens per step.
std::string about_cut_ends(const PointPlan& point) {
  const auto is_cut = [](const DeploymentRow& row) {
    return row.gamma > 0 && row.cost_reaches_plain && row.speedup < row.tokens_per_step &&
           row.speedup_ci95.hi >= (1 - 1e-9) * row.tokens_per_step &&
           row.speedup_ci95.hi <= (1 + 1e-9) * row.tokens_interval.hi;
  };
  return std::any_of(point.rows.begin(), point.rows.end(), is_cut)
             ? wrapped(
                   "An upper end that is the tokens per step is cut there, where drafts take no time: no round is "
                   "shorter than a plain step.") +
                   '\n'
             : std::string();
}

/// True if the intervals do not support the estimates for a stretch.
bool is_untold(const Plan& d, const planning::PlannedStretch& stretch) {
  return stretch.gamma && stretch.verdict == Verdict::cannot_tell && planning::decides(stretch.basis, d.extrapolates());
}

/// " From batch 242 on no gamma gives 1.05x by the estimate; ...", as certain as the intervals are.
std::string about_crossover(const Plan& d) {
  const planning::DraftPlan& plan = d.shown_plan();
  if (!plan.crossover_batch) return "";
  const std::string gain = factor_text(1 + d.min_gain);
  const planning::CrossoverBounds& bounds = *plan.crossover_bounds;
  const std::string from =
      fmt::format(" From batch {} on {} gives {}", *plan.crossover_batch, no_gamma(d, d.points()), gain);
  if (bounds.low == *plan.crossover_batch && bounds.high == plan.crossover_batch) return from + ".";
  return from + (bounds.high ? fmt::format(" by the estimate; by the intervals that begins between batch {} and {}.",
                                           bounds.low, *bounds.high)
                             : fmt::format(" by the estimate; by the intervals that begins at batch {} or later, and "
                                           "cannot be told of any batch planned.",
                                           bounds.low));
}

/// "4 at batch 1 to 8", and for undecided stretches "not known at batch 9 to 64 (no price)".
std::string stretch_text(const Plan& d, const planning::PlannedStretch& stretch) {
  const std::string batches = from_to(static_cast<double>(stretch.batch_low), static_cast<double>(stretch.batch_high));
  if (!stretch.gamma) return fmt::format("not known at batch {} (no price)", batches);
  const bool decided = planning::decides(stretch.basis, d.extrapolates());
  const bool extrapolated = stretch.basis == planning::PriceBasis::extrapolated;
  const auto& tree = d.shown_plan().tree;
  const std::string drafts = !tree                 ? fmt::format("{}", *stretch.gamma)
                             : *stretch.gamma == 0 ? std::string("none")
                                                   : planning::name_of(*tree);
  return fmt::format("{} at batch {}{}", drafts, batches,
                     is_untold(d, stretch) ? (extrapolated ? " (extrapolated, by the estimate)" : " (by the estimate)")
                     : !extrapolated       ? ""
                     : decided             ? " (extrapolated)"
                                           : " (extrapolated, not decided)");
}

/// The reason why the schedule has other gammas than the points.
std::string about_schedule_loss(const Plan& d) {
  const auto loss = planning::largest_schedule_loss(d.shown_plan());
  if (!loss) return "";
  const bool gains_too_little = loss->scheduled == 0 && loss->speedup < 1 + d.min_gain;
  const std::string why =
      gains_too_little ? fmt::format("{} gives {} there", no_gamma(d, d.points()), factor_text(1 + d.min_gain))
      : has_several_contexts(d)
          ? "one gamma serves all contexts of a batch, and neighbouring batches within the tolerance"
          : "one gamma within the tolerance serves neighbouring batches";
  return fmt::format(" It differs from the gammas of the points, most at batch {} ({} for {}, {} slower), since {}.",
                     whole_or_brief(loss->batch), loss->scheduled, loss->recommended, percent(loss->regret), why);
}

std::string schedule_text(const Plan& d) {
  const auto& schedule = d.shown_plan().schedule;
  const bool decides_nothing = lacks_plain_runs(d) && !d.extrapolates();
  const auto is_beyond = [](const planning::PlannedStretch& stretch) {
    return stretch.basis == planning::PriceBasis::extrapolated;
  };
  const bool only_point =
      d.points().size() == 1 && !schedule.empty() && !planning::largest_schedule_loss(d.shown_plan()) &&
      std::none_of(schedule.begin(), schedule.end(), is_beyond) &&
      static_cast<double>(schedule.back().batch_high) <= planning::whole_batch(d.points().front().batch);
  if (schedule.empty() || only_point || decides_nothing) return "";
  std::vector<std::string> parts;
  for (const planning::PlannedStretch& stretch : schedule) parts.push_back(stretch_text(d, stretch));
  std::string text = fmt::format("Schedule: {}{}.", d.shown_plan().tree ? "" : "gamma ", fmt::join(parts, ", "));
  const auto untold = [&](const auto& stretch) { return is_untold(d, stretch); };
  if (std::any_of(schedule.begin(), schedule.end(), untold)) {
    const bool drafts_untold = std::any_of(schedule.begin(), schedule.end(), [&](const auto& stretch) {
      return untold(stretch) && stretch.gamma.value_or(0) > 0;
    });
    text += !d.impossible.empty() ? std::string(" By the estimate, which rests on runs that cannot be as they say.")
            : !d.refused().empty()
                ? std::string(" By the estimate, which rests on a replay that decides nothing.")
                : fmt::format(" By the estimate: at those batches the intervals do not tell whether {} {}.",
                              drafts_untold ? "these gammas give" : "drafts give", factor_text(1 + d.min_gain));
  }
  const bool leaves_faster = std::any_of(d.points().begin(), d.points().end(),
                                         [](const PointPlan& point) { return point.unsure_row.has_value(); });
  if (leaves_faster && schedule.size() > 1) {
    text += fmt::format(" Where a gamma surely gives {}, the best of these is taken, though others may be faster.",
                        factor_text(1 + d.min_gain));
  }
  return text + about_crossover(d) + about_schedule_loss(d);
}

/// The cost and the yield of a step with gamma drafts at a point, in plain steps.
std::string step_text(const Plan& d, const PointPlan& point, const DeploymentRow& row) {
  std::string text = fmt::format("takes {} plain steps", brief(row.tokens_per_step / row.speedup, 3));
  const double step = point.rows.front().time.total();
  if (d.cost().parts_known({row.gamma, point.batch, point.context}) && step > 0) {
    text +=
        fmt::format(" (verifying {}, drafting {}", brief(row.time.target / step, 3), brief(row.time.draft / step, 3));
    text += row.time.overhead > 0 ? fmt::format(", other {})", brief(row.time.overhead / step, 3)) : ")";
  }
  return text + fmt::format(" and yields {} tokens", brief(row.tokens_per_step, 3));
}

/// 0 if none is known.
std::int64_t best_gamma(const PointPlan& point) { return point.optimal_row ? point.optimal()->gamma : 0; }

/// True if the gamma in use is slower here than plain decoding or, without one, the verdict is against drafts.
bool loses_at(const PointPlan& point) {
  if (point.deployed && point.deployed->gamma > 0) return point.deployed->speedup < 1;
  return point.verdict == Verdict::do_not_speculate;
}

/// The reason why the answer changes with the batch: the same gamma at the first point that gains and at the last that
/// loses.
std::string reason(const Plan& d) {
  const auto& points = d.points();
  const auto gains =
      std::find_if(points.begin(), points.end(), [](const auto& p) { return best_gamma(p) > 0 && !loses_at(p); });
  const PointPlan* loses = nullptr;
  for (const PointPlan& point : points) {
    const bool beside = gains != points.end() && planner::same_context(point.context, gains->context);
    if (beside && loses_at(point) && point.batch > gains->batch) loses = &point;
  }
  if (loses == nullptr) return "";
  const std::int64_t gamma =
      loses->deployed && loses->deployed->gamma > 0 ? loses->deployed->gamma : best_gamma(*gains);
  const DeploymentRow* const here = row_at(*loses, gamma);
  const DeploymentRow* const there = row_at(*gains, gamma);
  if (here == nullptr || there == nullptr) return "";
  std::string text =
      fmt::format("Why: at {} a step with {} {}: {}. At batch {} it {}: {}.", at_point(d, *loses),
                  drafting_text(d, fmt::format("{}", gamma)), step_text(d, *loses, *here), factor_text(here->speedup),
                  whole_or_brief(gains->batch), step_text(d, *gains, *there), factor_text(there->speedup));
  return text;
}

std::string break_even(const PointPlan& point) {
  std::vector<std::string> parts;
  if (point.break_even_alpha)
    parts.push_back(fmt::format("alpha above {}", rate_above_rounding(*point.break_even_alpha)));
  if (point.break_even_cost) {
    parts.push_back(fmt::format("a draft step of less than {} plain steps (gamma {})",
                                brief(point.break_even_cost->c, 3), point.break_even_cost->gamma));
  }
  if (parts.empty()) return "";
  return fmt::format("Any gain needs {}, all else equal.", fmt::join(parts, ", or "));
}

/// The gammas that the recording cannot distinguish from the best one, if known as precisely as by `analyze`.
std::string about_alike(const Plan& d) {
  if (d.drafts.empty()) return "";
  const std::vector<std::int64_t>& alike = d.drafts[d.shown()].acceptance.not_told_apart;
  if (alike.size() < 2) return "";
  return fmt::format("Gammas {} cannot be told apart by the recording; near-best is by the estimates.",
                     listed_ranges(alike));
}

/// The benchmark run that is worth most to the choice of gammas, whichever points are in doubt.
NextStep next_run_step(const Plan& d) {
  const planning::NextRun& run = *d.next_run;
  const auto& drafts = d.deployment.drafts;
  const bool has_trees = std::any_of(drafts.begin(), drafts.end(), [](const auto& draft) { return draft.tree; });
  const planning::NextMeasurement next = {run.gamma, run.batch, run.context, std::nullopt, false};
  const std::string place = has_several_contexts(d) ? fmt::format("batch {}, context {}", whole_or_brief(run.batch),
                                                                  context_text(run.context))
                                                    : fmt::format("batch {}", whole_or_brief(run.batch));
  return {fmt::format("The next run {}to buy is {} at {}: of {} it is expected to lower the regret of the "
                      "{} by the estimate most per minute of the server, from {} to {} in {} minutes. Run the "
                      "server {}, and",
                      has_trees ? "of chains " : "",
                      run.gamma == 0 ? "one without speculation" : fmt::format("gamma {}", run.gamma), place,
                      run.candidates, has_trees ? "fastest chain" : "fastest choice", percent(run.regret_now),
                      percent(run.regret_after), brief(run.minutes, 2),
                      planner::server_setting(d.engine.value_or(""), next, d.cost().kind())),
          planner::next_run_command(d), ""};
}

std::string next_measurement(const Plan& d) {
  const std::optional<NextStep> step = next_step(d);
  if (!step) return "";
  const std::string text = '\n' + wrapped(step->words) + '\n' + command_lines(step->command);
  return step->calibration.empty() ? text : text + wrapped(step->calibration) + '\n';
}

std::string about_correlated_rounds(const Plan& d) {
  if (!d.at_design_effect_3) return "";
  std::vector<std::string> changed;
  const std::vector<planning::Verdict>& independent = d.verdicts_if_independent[d.shown()];
  for (std::size_t i = 0; i < independent.size() && changed.size() < shown_verdicts; ++i) {
    if (independent[i] != d.points()[i].verdict)
      changed.push_back(fmt::format("{} at {}", name_of(independent[i]), at_point(d, d.points()[i])));
  }
  return changed.empty() ? "The verdicts stay at a design effect of 3, where rounds that are alike count a third."
                         : fmt::format(
                               "Verdicts take rounds that are alike as a third (a design effect of 3); if they "
                               "were independent, as in the intervals: {}.",
                               fmt::join(changed, ", "));
}

std::string about_deployed(const Plan& d) {
  const PointPlan* worst = nullptr;
  for (const PointPlan& point : d.points()) {
    if (point.deployed && (worst == nullptr || point.deployed->regret > worst->deployed->regret)) worst = &point;
  }
  if (worst == nullptr) return "";
  const planning::DeployedAtPoint& deployed = *worst->deployed;
  const bool one = d.points().size() == 1;
  std::string text;
  if (deployed.regret == 0) {
    const bool is_best = std::all_of(d.points().begin(), d.points().end(), [](const PointPlan& point) {
      return !point.optimal_row || !point.deployed || point.deployed->gamma == point.optimal()->gamma;
    });
    const char* const rank = is_best ? "best" : "fastest by the estimate";
    text = one ? fmt::format("In use: gamma {}, the {}.", deployed.gamma, rank)
               : fmt::format("What is in use is the {} at every point.", rank);
  } else {
    text = fmt::format("{} at {}, {} and {} below the fastest.",
                       one ? fmt::format("In use: gamma {}", deployed.gamma)
                           : fmt::format("What is in use loses most with gamma {}", deployed.gamma),
                       at_point(d, *worst), factor_text(deployed.speedup), percent(deployed.regret));
  }
  if (percent(deployed.worst_regret) != percent(deployed.regret)) {
    text += fmt::format(
        " Within the acceptance's {} it loses at most {} to the gamma that is best there, {} to the recommended.",
        d.lacks_sampling(d.shown()) ? "range" : "interval", percent(deployed.worst_regret),
        percent(deployed.behind_recommended));
  }
  return text;
}

std::string about_config(const Plan& d) {
  if (!d.config) return "";
  std::string text = fmt::format("\n{}:\n", planning::newest_release(d.config->engine));
  text += command_lines(d.config->command);
  if (!d.config->text.empty()) text += d.config->file + ":\n" + d.config->text;
  for (const std::string& note : d.config->notes) text += '\n' + wrapped("Note: " + note + ".", 2);
  return text + (d.config->notes.empty() ? "" : "\n");
}

}  // namespace

bool is_passed_over(const Plan& d, std::size_t draft) { return d.misfit().empty() && !d.misfits[draft].empty(); }

std::optional<std::pair<const DeploymentRow*, const DeploymentRow*>> best_at_ends(const PointPlan& point) {
  if (!point.optimal_row || !point.optimal()->speedup_bracket) return std::nullopt;
  const DeploymentRow *low = point.optimal(), *high = low;
  for (const DeploymentRow& row : point.rows) {
    if (row.speedup_bracket->lo > low->speedup_bracket->lo) low = &row;
    if (row.speedup_bracket->hi > high->speedup_bracket->hi) high = &row;
  }
  return std::pair{low, high};
}

double loss_at_ends(const PointPlan& point, const DeploymentRow& row) {
  const auto best = best_at_ends(point);
  if (!best || !row.speedup_bracket) return row.regret;
  return std::max(1 - row.speedup_bracket->lo / best->first->speedup_bracket->lo,
                  1 - row.speedup_bracket->hi / best->second->speedup_bracket->hi);
}

std::optional<NextStep> next_step(const Plan& d) {
  if (d.next_run) return next_run_step(d);
  for (const PointPlan& point : d.points()) {
    if (!point.next) continue;
    const planning::NextMeasurement& next = *point.next;
    const std::string engine = d.engine.value_or("");
    return NextStep{
        fmt::format("To tell at {}, where most of the uncertainty is that of {}: run the server {}, and",
                    at_point(d, point), point.dominant_source ? name_of(*point.dominant_source) : "the cost",
                    planner::server_setting(engine, next, d.cost().kind())),
        planner::benchmark_command(d, next),
        d.has_roofline() && next.with_baseline ? calibration_text(engine, next) : ""};
  }
  return std::nullopt;
}

std::string speedup_range(const std::optional<estimate::Interval>& interval) {
  return interval && interval->lo < interval->hi ? fmt::format("{:.2f} to {:.2f}", interval->lo, interval->hi) : "-";
}

std::string interval_heading(const Plan& d) { return d.lacks_sampling() ? "range" : "95% interval"; }

std::string interval_heading_of_drafts(const Plan& d) {
  std::size_t lacking = 0;
  for (std::size_t i = 0; i < d.drafts.size(); ++i) lacking += d.lacks_sampling(i) ? 1 : 0;
  return lacking == 0 ? "95% interval" : lacking == d.drafts.size() ? "range" : "95% interval or range";
}

std::string command_lines(const std::string& command) {
  constexpr std::size_t indent = 2;
  if (indent + command.size() <= text_width()) return std::string(indent, ' ') + command + '\n';
  std::string text, line = std::string(indent, ' ');
  std::size_t at = 0;
  while (at < command.size()) {
    std::size_t next = command.find(" --", at + 1);
    if (next == std::string::npos) next = command.size();
    const std::string part = command.substr(at, next - at);
    if (line.size() + part.size() + 2 > text_width() && line.size() > indent) {
      text += line + " \\\n";
      line = std::string(indent + 1, ' ');
    }
    line += part;
    at = next;
  }
  return text + line + '\n';
}

std::vector<std::string> words_of(const Plan& d) {
  if (d.closed_form) return closed_form_words(d);
  std::vector<std::string> words;
  const auto add = [&](const std::string& paragraph) {
    if (!paragraph.empty()) words.push_back(paragraph);
  };
  add(about_shortfall(d));
  add(about_impossible(d));
  add(which_draft(d));
  add(fastest_drafts(d));
  for (const std::string& sentence : verdicts(d)) add(sentence);
  add(about_bracket(d));
  add(about_rule(d));
  add(about_misfit(d));
  add(about_alike(d));
  if (d.points().size() == 1) add(break_even(d.points().front()));
  for (const auto part : {schedule_text, reason, about_deployed, about_correlated_rounds}) add(part(d));
  return words;
}

std::string text_of(const Plan& d) {
  if (d.closed_form) return closed_form_text(d);
  std::string text;
  const auto add = [&](const std::string& before, const std::string& paragraph) {
    if (!paragraph.empty()) text += before + wrapped(paragraph) + '\n';
  };
  add("", about_shortfall(d));
  add("", about_impossible(d));
  add("", fastest_drafts(d));
  for (const std::string& sentence : verdicts(d)) add("", sentence);
  add("", about_bracket(d));
  add("", about_rule(d));
  add("", about_misfit(d));
  add("", about_alike(d));
  if (d.points().size() == 1) add("", break_even(d.points().front()));
  text += '\n' + about_drafts(d) + about_runs(d);
  if (lacks_plain_runs(d)) text += text_of(relative_table(*d.bench)) + '\n';
  text += text_of(points_table(d));
  if (d.points().size() == 1 && !d.points().front().rows.empty())
    text += '\n' + text_of(gammas_table(d, d.points().front())) + about_cut_ends(d.points().front());
  for (const auto part : {schedule_text, reason, about_deployed, about_correlated_rounds}) add("\n", part(d));
  return text + next_measurement(d) + about_config(d);
}

std::string calibration_text(std::string_view engine, const planning::NextMeasurement& next) {
  // The requests of llama.cpp's script have contexts of their own.
  const bool llamacpp = engine == "llamacpp" || engine == "llama.cpp";
  const bool has_context = next.context >= 2 && !llamacpp;
  const std::string given = fmt::format("--calibrate batch={},tpot_ms=P,context={}", brief(next.batch, 3),
                                        has_context ? brief(next.context, 4) : "C");
  std::string text =
      llamacpp ? fmt::format("Give 1000 / its tokens per second of one request, P ms, to {}.", given)
               : fmt::format(
                     "Give the median of its pauses between outputs (ITL), P ms, to {}: the mean time per token "
                     "holds the prompts of other requests.",
                     given);
  if (!has_context) text += " C is the tokens of a prompt and half of its answer, in the mean.";
  if (next.gamma > 0 && engine == "sglang") {
    text +=
        " That is of the run without speculation: with drafts SGLang divides a pause by its tokens, and the time of a "
        "round does not follow from it.";
  } else if (next.gamma > 0) {
    text +=
        fmt::format(" {} with gamma={},tokens_per_step=E, too.",
                    llamacpp ? "With drafts give the same" : "With drafts a pause is a round: give P / E", next.gamma);
  }
  return text;
}

std::string_view why_plain(std::span<const PointPlan> points) {
  const auto some = [points](auto&& is) { return std::any_of(points.begin(), points.end(), is); };
  if (some([](const PointPlan& point) { return point.prefers_plain(); })) {
    return "no gamma that was measured is faster than plain decoding";
  }
  const auto has_faster = [](const PointPlan& point) {
    return std::any_of(point.rows.begin(), point.rows.end(), [](const DeploymentRow& row) { return row.speedup > 1; });
  };
  return some(has_faster) ? "plain decoding loses least over the range of alpha"
                          : "no gamma is faster than plain decoding";
}

std::string unsure_text(const Plan& d, std::span<const PointPlan> points) {
  const DeploymentRow *least = nullptr, *most = nullptr;
  double gain = 0, first_batch = 0, last_batch = 0;
  bool was_measured = false;
  for (const PointPlan& point : points) {
    if (!point.unsure_row) continue;
    const DeploymentRow& row = point.rows[*point.unsure_row];
    if (least == nullptr) first_batch = point.batch;
    last_batch = point.batch;
    if (least == nullptr || row.gamma < least->gamma) least = &row;
    if (most == nullptr || row.gamma > most->gamma) most = &row;
    gain = std::max(gain, row.speedup / point.optimal()->speedup - 1);
    was_measured = was_measured || (point.optimal()->extrapolated && !row.extrapolated);
  }
  if (least == nullptr) return "";
  const std::string gammas = from_to(static_cast<double>(least->gamma), static_cast<double>(most->gamma));
  const std::string what =
      gain > 0       ? fmt::format("is {}{} faster by the estimate", points.size() == 1 ? "" : "up to ", percent(gain))
      : was_measured ? std::string("is the best that was measured")
                     : std::string("loses less over the range");
  if (points.size() == 1) {
    return fmt::format("; gamma {} {} ({} to {})", gammas, what, factor_text(least->speedup_ci95.lo),
                       factor_text(least->speedup_ci95.hi));
  }
  const bool everywhere = first_batch == points.front().batch && last_batch == points.back().batch;
  const std::string where = everywhere ? "" : fmt::format(" at batch {}", from_to(first_batch, last_batch));
  return fmt::format("; gamma {} {}{}, but not sure to give {}", gammas, what, where, factor_text(1 + d.min_gain));
}

}  // namespace specdec::render
