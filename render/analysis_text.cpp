#include "render/analysis.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include "planner/plan.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using estimate::AcceptanceEstimate;
using estimate::Estimate;
using estimate::GammaReplay;
using estimate::Interval;
using estimate::ReplayReport;
using planning::TraceAnalysis;

/// "0.612", or "0.58..0.64" for a bracket.
std::string value_text(const Interval& ends, int digits = 4) {
  const std::string low = brief(ends.lo, digits);
  const std::string high = brief(ends.hi, digits);
  return low == high ? low : low + ".." + high;
}

/// "1.970..2.350", three decimals, the smaller one first.
std::string bracket_text(double a, double b) { return fixed(std::min(a, b)) + ".." + fixed(std::max(a, b)); }

std::string rate_text(const AcceptanceEstimate& rate) {
  const std::string sure =
      rate.ci95 ? fmt::format(" (95%: {} to {})", brief(rate.ci95->lo), brief(rate.ci95->hi)) : " (no interval)";
  return value_text(rate.bounds) + sure;
}

std::string acceptance_sentence(const TraceAnalysis& t) {
  const AcceptanceEstimate* const alpha = t.best_alpha();
  const std::string where = fmt::format("{} in {}", counted(t.positions, "position"), counted(t.sequences, "sequence"));
  const std::string distance = t.d_lk ? fmt::format("D_LK {}", rate_text(*t.d_lk)) : "";
  if (!alpha) return fmt::format("alpha is not recorded; {}{}.", where, distance.empty() ? "" : "; " + distance);
  const bool of_tokens = !t.alpha || alpha != &*t.alpha;
  std::string text =
      fmt::format("alpha {}{} under {}{}, from {}{}.", rate_text(*alpha),
                  t.depths > 1 ? " of a round's first draft" : "", traces::name_of(t.rule),
                  distance.empty() ? "" : ", " + distance, of_tokens ? "the emitted tokens of " : "", where);
  if (t.alpha && of_tokens) {
    text +=
        fmt::format(" From the distributions at {}: {}.", counted(t.alpha->positions, "position"), rate_text(*t.alpha));
  } else if (t.alpha && t.alpha_emitted) {
    text += fmt::format(" From the emitted tokens: {}.", rate_text(*t.alpha_emitted));
  }
  std::vector<std::string> others;
  for (std::size_t rule = 0; rule < t.alpha_by_rule.size(); ++rule) {
    if (static_cast<traces::AcceptanceRule>(rule) == t.rule || !t.alpha_by_rule[rule]) continue;
    others.push_back(fmt::format("{} {}", traces::name_of(static_cast<traces::AcceptanceRule>(rule)),
                                 value_text(t.alpha_by_rule[rule]->bounds)));
  }
  if (!others.empty()) text += fmt::format(" Under other rules: {}.", fmt::join(others, ", "));
  return text;
}

std::string text_source_sentence(const planner::Analysis& a) {
  const estimate::TextSourceResult& tests = a.recording.text_source;
  std::vector<std::string> z;
  if (tests.acceptance.z) z.push_back(fmt::format("acceptance z {:.1f}", *tests.acceptance.z));
  if (tests.surprisal.z) z.push_back(fmt::format("surprisal z {:.1f}", *tests.surprisal.z));
  if (tests.root.z && tests.suspicious()) z.push_back(fmt::format("root of q/p z {:.1f}", *tests.root.z));
  if (const auto ratio = tests.mean_ratio()) z.push_back(fmt::format("mean q/p {:.3f}", *ratio));
  const std::string values = fmt::format("({})", fmt::join(z, ", "));
  if (a.metadata.path == traces::TextSource::other) {
    const std::string said = "The text is not the target's own, as the recording says";
    if (z.empty()) return said + ".";
    return fmt::format("{}; the tests {} {}.", said, tests.suspicious() ? "see that too" : "would not have seen it",
                       values);
  }
  const std::string said = fmt::format("Is the text the target's own? the recording {}",
                                       a.metadata.path == traces::TextSource::target ? "says yes" : "does not say");
  if (!z.empty()) {
    const bool is_open = !tests.acceptance.z && !tests.surprisal.z;
    return fmt::format("{}; the tests {} {}.", said,
                       tests.suspicious() ? "say NO"
                       : is_open          ? "do not tell"
                                          : "see nothing against it",
                       values);
  }
  const std::int64_t positions =
      std::max({tests.acceptance.positions, tests.surprisal.positions, tests.root.positions});
  if (positions == 0)
    return said + ", and only whole rows, lists of top tokens or the overlap beside the emitted tokens could test it.";
  return fmt::format("{}; what chance there is in {} is too little for a test.", said, counted(positions, "position"));
}

std::string break_even_sentence(const ReplayReport& report) {
  if (!report.break_even) return "Drafting pays at no cost of the draft.";
  return fmt::format("Drafting pays if a draft step costs less than {} target steps.", brief(report.break_even->c, 3));
}

/// True if there is an exact alpha but no replay.
bool tells_tokens(const planner::Analysis& a) {
  return !a.recording.iid.empty() && a.recording.iid.front().tokens_per_step;
}

/// The gain that a plan asks for, as everywhere by default.
constexpr double gain_asked_for = 1 + planner::default_min_gain;

std::string source_text(const TraceAnalysis& t) {
  const AcceptanceEstimate* const alpha = t.best_alpha();
  const std::string texts = alpha && alpha->prompts ? counted(alpha->clusters, "prompt")
                                                    : counted(t.sequences, "sequence");
  const bool has_distance = t.d_lk && t.d_lk->value;
  return fmt::format("From {} in {}.{}", counted(t.positions, "position"), texts,
                     has_distance ? fmt::format(" D_LK {}.", with_range(*t.d_lk->value, t.d_lk->ci95)) : "");
}

/// "53.5% of the drafts looked at are accepted (52.4% to 54.6%)".
std::string accepted_text(const TraceAnalysis& t) {
  const AcceptanceEstimate* const alpha = t.best_alpha();
  if (!alpha) return "acceptance is not recorded";
  const char* const of = t.depths > 1 ? "a round's first drafts" : "the drafts looked at";
  const std::string share = alpha->bounds.lo == alpha->bounds.hi
                                ? share_with_range(alpha->bounds.lo, alpha->ci95)
                                : fmt::format("{} to {}", percent(alpha->bounds.lo), percent(alpha->bounds.hi));
  return fmt::format("{} of {} are accepted", share, of);
}

/// Sure if the interval lies above the gain that a plan asks for, no if it is nowhere reached.
worlds::Certainty certainty_of_best(const ReplayReport& report) {
  const auto& best = report.gammas[static_cast<std::size_t>(report.optimum->gamma)].speedup;
  const bool some_may = std::any_of(report.gammas.begin() + 1, report.gammas.end(), [](const GammaReplay& row) {
    return row.speedup->ci95 ? row.speedup->ci95->hi >= gain_asked_for : row.speedup->value >= gain_asked_for;
  });
  if (!some_may) return worlds::Certainty::no;
  return best->ci95 && best->ci95->lo >= gain_asked_for ? worlds::Certainty::sure : worlds::Certainty::open;
}

/// How sure it is that this gamma is the fastest.
std::string sureness_of_best(const TraceAnalysis& t) {
  const ReplayReport& low = t.replay->lower;
  const estimate::ReplayOptimum& best = *low.optimum;
  const auto& near = best.near_optimal_gammas;
  std::string text;
  if (near && near->size() > 1) text = fmt::format(" {} tokens cannot be told apart.", listed_ranges(*near));
  if (near && near->size() == 1 && !best.at_limit) text = " Each other length is slower by more than its error.";
  if (best.at_limit && t.longest_draft) text += " Longer drafts were not measured, and may be faster.";
  return text;
}

void decide_by_replay(const planner::Analysis& a, planner::Decision& decision) {
  const TraceAnalysis& t = a.recording;
  const ReplayReport& low = t.replay->lower;
  const std::int64_t gamma = low.optimum->gamma;
  const Estimate& speedup = *low.gammas[static_cast<std::size_t>(gamma)].speedup;
  decision.verdict = certainty_of_best(low);
  const bool drafts = gamma > 0 && decision.verdict != worlds::Certainty::no;
  decision.gamma = drafts ? gamma : 0;
  if (drafts) {
    decision.speedup.value = speedup.value;
    decision.speedup.ci95 = speedup.ci95;
    decision.action = fmt::format("Draft {}: {} at c {}.", counted(gamma, "token"),
                                  speed_with_range(speedup.value, speedup.ci95), brief(a.cost->c, 3));
  } else {
    decision.action = fmt::format("Do not draft: no draft length gains {} at c {}.",
                                  percent(planner::default_min_gain), brief(a.cost->c, 3));
  }
  const char* const sure = decision.verdict == worlds::Certainty::sure ? "Sure to gain"
                           : decision.verdict == worlds::Certainty::no ? "Sure not to gain"
                                                                       : "Open whether it gains";
  decision.certainty =
      fmt::format("{} {}. {}.{} {}", sure, percent(planner::default_min_gain), capitalised(accepted_text(t)),
                  sureness_of_best(t), drafts ? source_text(t) : break_even_sentence(low));
}

/// Of acceptance that is known as a bracket.
void decide_by_bracket(const planner::Analysis& a, planner::Decision& decision) {
  const estimate::ReplayOptimum& low = *a.recording.replay->lower.optimum;
  const estimate::ReplayOptimum& high = *a.recording.replay->upper->optimum;
  decision.verdict = worlds::Certainty::open;
  if (low.gamma == high.gamma) decision.gamma = low.gamma;
  decision.speedup.bounds = Interval{std::min(low.speedup, high.speedup), std::max(low.speedup, high.speedup)};
  const std::string drafts = decision.gamma ? counted(*decision.gamma, "token")
                                            : fmt::format("{} to {} tokens", std::min(low.gamma, high.gamma),
                                                          std::max(low.gamma, high.gamma));
  decision.action = decision.gamma == 0
                        ? fmt::format("Do not draft: no draft length gains at c {}.", brief(a.cost->c, 3))
                        : fmt::format("Draft {}: {}x to {}x plain decoding at c {}.", drafts, brief(low.speedup, 3),
                                      brief(high.speedup, 3), brief(a.cost->c, 3));
  decision.certainty = fmt::format("Acceptance is known as a bracket alone: {}. Whole rows would close it. {}",
                                   accepted_text(a.recording), source_text(a.recording));
}

/// Without a cost, or without a replay.
void tell_acceptance(const planner::Analysis& a, planner::Decision& decision) {
  const TraceAnalysis& t = a.recording;
  decision.action = capitalised(accepted_text(t)) + ".";
  decision.certainty = source_text(t);
  if (t.replay && !t.replay->upper && !t.replay_refused) decision.certainty += ' ' + break_even_sentence(t.replay->lower);
  const planning::IidRow* best = nullptr;
  for (const planning::IidRow& row : t.iid)
    if (row.speedup && *row.speedup > (best ? *best->speedup : 1)) best = &row;
  if (best)
    decision.certainty += fmt::format(" By this rate alone (Theorem 3.8) {} would give {}x at c {}.",
                                      counted(best->gamma, "draft token"), brief(*best->speedup, 3), brief(a.cost->c, 3));
  if (!a.cost && t.best_alpha() && a.files.size() == 1)
    decision.next = fmt::format("specdec analyze {} --c C", a.files.front());
}

planner::Decision decision_of(const planner::Analysis& a) {
  const TraceAnalysis& t = a.recording;
  planner::Decision decision;
  if (t.replay && !t.replay->lower.looks_at_drafts()) {
    decision.action = "This recording decides nothing: every text holds one token, so that no draft was looked at.";
  } else if (t.replay_refused) {
    decision.action = "This recording decides nothing: its text does not look like the target's own.";
    decision.certainty = fmt::format("{}. Its replay means nothing; --force-replay takes it all the same.",
                                     capitalised(accepted_text(t)));
  } else if (t.replay && a.cost && t.replay->lower.optimum) {
    t.replay->upper ? decide_by_bracket(a, decision) : decide_by_replay(a, decision);
  } else {
    tell_acceptance(a, decision);
  }
  return decision;
}

/// An estimate with its interval, or the bracket of two.
std::string figure_text(const std::optional<Estimate>& low, const std::optional<Estimate>& high) {
  if (!low) return "-";
  return high ? bracket_text(low->value, high->value) : with_interval(*low, 3);
}

std::string range_text(const std::optional<Interval>& interval) {
  return interval ? fmt::format("{} to {}", fixed(interval->lo), fixed(interval->hi)) : "-";
}

std::string notes_on(const ReplayReport& report, std::int64_t gamma) {
  if (!report.optimum) return "";
  if (gamma == report.optimum->gamma) return "best";
  const auto& near = report.optimum->near_optimal_gammas;
  return near && std::find(near->begin(), near->end(), gamma) != near->end() ? "near-best" : "";
}

/// Without replay, the figures that follow from alpha alone; without rows if that is not known exactly.
Table iid_table(const planner::Analysis& a) {
  if (!tells_tokens(a)) return {};
  const auto at = [&a](std::int64_t gamma) { return a.recording.iid[static_cast<std::size_t>(gamma - 1)]; };
  return make_table(
      a.gammas, {{"draft tokens", [](auto gamma) { return fmt::format("{}", gamma); }},
                 {"Eq.1", [&](auto gamma) { return fixed(*at(gamma).tokens_per_step); }},
                 {"Thm3.8", {.shown = a.cost.has_value()}, [&](auto gamma) { return fixed(*at(gamma).speedup); }}});
}

/// The replay of one gamma, at both ends of a bracket if acceptance is one.
struct ReplayedGamma {
  const GammaReplay& low;
  const GammaReplay* high;

  /// A figure that is known without a bracket alone.
  std::optional<double> exact(const std::optional<double>& figure) const { return high ? std::nullopt : figure; }
};

/// @param is_brief  without the columns that hold the replay against theory
Table gamma_table(const planner::Analysis& a, bool is_brief) {
  if (!a.recording.replay) return iid_table(a);
  const estimate::ReplayReport& lower = a.recording.replay->lower;
  const auto& upper = a.recording.replay->upper;
  std::vector<ReplayedGamma> rows;
  for (const std::int64_t gamma : a.gammas) {
    const auto at = static_cast<std::size_t>(gamma);
    rows.push_back({lower.gammas[at], upper ? &upper->gammas[at] : nullptr});
  }
  const ColumnLook of_cost = {.shown = a.cost.has_value()};
  const ColumnLook of_theory = {.shown = !is_brief};
  const ColumnLook of_both = {.shown = a.cost && !is_brief};
  return make_table(
      rows,
      {{"draft tokens", [](const auto& row) { return fmt::format("{}", row.low.gamma); }},
       {"tokens/step",
        [](const auto& row) {
          return figure_text(row.low.tokens_per_step,
                             row.high ? std::optional(row.high->tokens_per_step) : std::nullopt);
        }},
       {"Eq.1", of_theory, [](const auto& row) { return fixed(row.exact(row.low.iid_tokens_per_step)); }},
       {"error", of_theory,
        [](const auto& row) {
          const auto difference = row.exact(row.low.difference);
          return difference ? fmt::format("{:+.1f}%", 100 * *difference / row.low.tokens_per_step.value) : "-";
        }},
       {"speedup", of_cost,
        [](const auto& row) { return figure_text(row.low.speedup, row.high ? row.high->speedup : std::nullopt); }},
       {"Thm3.8", of_both, [](const auto& row) { return fixed(row.exact(row.low.iid_speedup)); }},
       {"",
        {.align = Align::left, .shown = a.cost.has_value()},
        [&](const auto& row) { return row.high ? "" : notes_on(lower, row.low.gamma); }}},
      {}, [&](const auto& row) { return lower.optimum && row.low.gamma == lower.optimum->gamma; });
}

std::string position_lines(const TraceAnalysis& t) {
  constexpr std::size_t shown = 8;
  std::vector<std::string> unconditional, conditional;
  for (const planning::PositionAcceptance& row : t.replay->positions) {
    if (unconditional.size() == shown) break;
    unconditional.push_back(value_text(row.unconditional, 3));
    conditional.push_back(row.conditional ? value_text(*row.conditional, 3) : "-");
  }
  return wrapped(fmt::format(
             "With drafts of {}, draft 1, 2, ... accepted in {} of all rounds, and in {} of those that look at it, "
             "which rounds do not behind a rejected draft nor at the end of a text.",
             t.replay->positions.size(), fmt::join(unconditional, ", "), fmt::join(conditional, ", "))) +
         '\n';
}

std::string setting_text(const core::Standardisation& s) {
  std::string text = fmt::format("temperature {}", brief(s.temperature));
  if (s.top_k > 0) text += fmt::format(", top-k {}", s.top_k);
  if (s.top_p < 1) text += fmt::format(", top-p {}", brief(s.top_p));
  if (s.min_p > 0) text += fmt::format(", min-p {}", brief(s.min_p));
  if (s.temperature_last) text += ", temperature last";
  return text;
}

std::string sweep_table(const planner::Analysis& a) {
  const ColumnLook of_cost = {.shown = a.cost.has_value()};
  return text_of(make_table(
             a.recording.sweep,
             {{"sampled with",
               {Align::left},
               [](const auto& row) { return setting_text(row.setting.standardisation); }},
              {"of", {Align::left}, [](const auto& row) { return std::string(name_of(row.setting.applies)); }},
              {"alpha", [](const auto& row) { return value_text(row.alpha.bounds); }},
              {"gamma", of_cost, [](const auto& row) { return row.gamma ? fmt::format("{}", *row.gamma) : "-"; }},
              {"Thm3.8", of_cost, [](const auto& row) { return fixed(row.speedup); }}})) +
         "(over the prefixes that were recorded, whatever they were sampled with)\n";
}

/// "1.3% to 4.2%".
std::string percent_range(const Interval& interval) {
  return fmt::format("{:.1f}% to {:.1f}%", 100 * interval.lo, 100 * interval.hi);
}

/// "15 prompts", or sequences where prompts are unknown.
std::string units_of_adaptive(const TraceAnalysis& t) {
  const AcceptanceEstimate* const alpha = t.best_alpha();
  if (alpha && alpha->prompts) return counted(alpha->clusters, "prompt");
  return counted(t.adaptive->chosen_on + t.adaptive->judged_on, "sequence");
}

/// Says whether a confidence threshold pays.
std::string threshold_sentence(const TraceAnalysis& t) {
  const estimate::AdaptiveReport& report = *t.adaptive;
  if (!report.threshold) return "";
  const estimate::JudgedThreshold& judged = *report.threshold;
  const std::string policy =
      fmt::format("stopping behind a token of the draft's probability below {}, at {} at the latest",
                  brief(judged.threshold), counted(judged.limit, "token"));
  const std::string fixed = report.fixed->gamma == 0 ? "plain decoding" : fmt::format("gamma {}", report.fixed->gamma);
  const std::string on = fmt::format("judged on {} that did not choose it", counted(report.judged_on, "sequence"));
  switch (verdict_of(judged)) {
    case estimate::ThresholdVerdict::gains:
      return fmt::format("A confidence threshold pays: {}, gains {} over {} (95%), {}.", policy,
                         percent_range(*judged.gain_ci95), fixed, on);
    case estimate::ThresholdVerdict::loses:
      return fmt::format(
          "No confidence threshold that was tried pays: the best one, {}, loses {} against {} (95%), "
          "{}.",
          policy, percent_range({-judged.gain_ci95->hi, -judged.gain_ci95->lo}), fixed, on);
    case estimate::ThresholdVerdict::cannot_tell:
      break;
  }
  if (!judged.gain_ci95) {
    return fmt::format(
        "Whether a confidence threshold pays cannot be told from {}: half of them choose it, and the others make up "
        "{}, where it takes {} to judge it.",
        units_of_adaptive(t), counted(judged.groups, "independent group"), estimate::fewest_judged);
  }
  return fmt::format(
      "Whether a confidence threshold pays cannot be told: the best one, {}, changes the speed of {} by "
      "{} (95%), {}.",
      policy, fixed, percent_range(*judged.gain_ci95), on);
}

struct AdaptiveRow {
  std::string drafting, speedup, drafted = {};
};

std::string adaptive_table(const TraceAnalysis& t) {
  const estimate::AdaptiveReport& report = *t.adaptive;
  std::vector<AdaptiveRow> rows;
  if (report.fixed)
    rows.push_back({fmt::format("gamma {} throughout", report.fixed->gamma), fixed(report.fixed->speedup)});
  if (report.threshold) {
    const estimate::JudgedThreshold& judged = *report.threshold;
    rows.push_back({fmt::format("until q of the token < {}, at most {}", brief(judged.threshold), judged.limit),
                    value_text(judged.speedup), value_text(judged.drafted_per_step, 3)});
  }
  std::string sentence = threshold_sentence(t);
  const auto why =
      std::find_if(t.notes.begin(), t.notes.end(), [](const Note& note) { return note.code == "no_confidence"; });
  if (sentence.empty() && why != t.notes.end()) sentence = "W" + why->message.substr(1) + ".";
  std::string text = (sentence.empty() ? "" : wrapped(sentence) + "\n\n") +
                     text_of(make_table(rows, {{"drafting", {Align::left}, &AdaptiveRow::drafting},
                                               {"speedup", &AdaptiveRow::speedup},
                                               {"drafted", &AdaptiveRow::drafted}}));
  if (report.fixed) {
    text +=
        fmt::format("(chosen on {}, judged on {} others)\n", counted(report.chosen_on, "sequence"), report.judged_on);
  }
  return text;
}

}  // namespace

Table task_table(const planner::Analysis& a) {
  struct Row {
    const planning::TaskAnalysis& task;
    std::optional<AcceptanceEstimate> alpha;
    std::optional<estimate::ReplayOptimum> best;
  };
  std::vector<Row> rows;
  for (const planning::TaskAnalysis& task : a.recording.tasks) {
    const bool is_replayed = task.replay && !task.replay_upper;
    rows.push_back(
        {task, task.alpha ? task.alpha : task.alpha_emitted, is_replayed ? task.replay->optimum : std::nullopt});
  }
  const bool both =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.task.alpha && row.task.alpha_emitted; });
  return make_table(
      rows,
      {{"task", {Align::left}, [](const auto& row) { return row.task.name.empty() ? "(none)" : row.task.name; }},
       {"positions", [](const auto& row) { return fmt::format("{}", row.task.positions); }},
       {"sequences", [](const auto& row) { return fmt::format("{}", row.task.sequences); }},
       {"alpha", [](const auto& row) { return row.alpha ? value_text(row.alpha->bounds) : "-"; }},
       {"95%",
        {.title = "95% interval"},
        [](const auto& row) { return row.alpha ? range_text(row.alpha->ci95) : "-"; }},
       {"emitted",
        {.shown = both, .title = "Alpha of the emitted tokens", .page_only = true},
        [](const auto& row) { return row.task.alpha_emitted ? rate_text(*row.task.alpha_emitted) : "-"; }},
       {"gamma",
        {.shown = a.cost.has_value()},
        [](const auto& row) { return row.best ? fmt::format("{}", row.best->gamma) : "-"; }},
       {"speedup",
        {.shown = a.cost.has_value()},
        [](const auto& row) { return row.best ? fixed(row.best->speedup) : "-"; }}},
      "Acceptance by task");
}

Table lenience_table(const planner::Analysis& a) {
  return make_table(a.recording.lenience,
                    {{"lenience", [](const auto& row) { return brief(row.lenience); }},
                     {"alpha", [](const auto& row) { return fixed(row.alpha.value); }},
                     {"TV, residual kept",
                      {.title = "Total variation, residual kept"},
                      [](const auto& row) { return fixed(row.distance_strict.value); }},
                     {"TV, residual scaled",
                      {.title = "Total variation, residual scaled"},
                      [](const auto& row) { return fixed(row.distance_lenient.value); }}},
                    "Lenience: what acceptance costs in fidelity");
}

Spoken spoken(const planner::Analysis& a) {
  const TraceAnalysis& t = a.recording;
  Spoken answer;
  answer.decision = decision_of(a);
  if (!t.replay_refused) answer.table = gamma_table(a, true);
  std::string& text = answer.more;
  text = wrapped(acceptance_sentence(t)) + '\n' + wrapped(text_source_sentence(a)) + '\n';
  const auto add_table = [&](bool there, const std::string& table) {
    if (there) text += '\n' + table;
  };
  if (const Table table = gamma_table(a, false); !table.rows.empty()) add_table(true, text_of(table));
  if (t.replay) add_table(true, position_lines(t));
  add_table(t.tasks.size() > 1, text_of(task_table(a)));
  add_table(t.adaptive.has_value(), t.adaptive ? adaptive_table(t) : "");
  // What somebody asked for stands in the answer.
  if (!t.lenience.empty()) (a.question.lenience ? answer.note : text) += '\n' + text_of(lenience_table(a));
  if (!t.sweep.empty()) (a.question.standardise ? answer.note : text) += '\n' + sweep_table(a);
  return answer;
}

}  // namespace specdec::render
