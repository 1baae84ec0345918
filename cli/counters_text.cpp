#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/counters_answer.hpp"
#include "render/table.hpp"
#include "render/text.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using estimate::Estimate;
using estimate::Interval;
using estimate::ServingSummary;

/// Groups whose details are printed one after the other; of more there is a line each.
constexpr std::size_t detailed_groups = 4;

/// Characters of a group's title in the table of groups, at most.
constexpr std::size_t widest_title = 20;

/// Counts are whole in most formats.
std::string count_text(double count) {
  return count == std::floor(count) && std::abs(count) < 1e15 ? fmt::format("{:.0f}", count) : brief(count, 6);
}

std::string interval_text(const Interval& interval) {
  return fmt::format("{} to {}", brief(interval.lo), brief(interval.hi));
}

std::string sure_text(const std::optional<Interval>& ci95, std::string_view method) {
  return ci95 ? fmt::format(" (95%: {}, {})", interval_text(*ci95), method) : " (no interval)";
}

std::string estimate_text(const Estimate& estimate) {
  return brief(estimate.value) + sure_text(estimate.ci95, estimate.method);
}

std::string units_text(const ServingSummary& s) {
  if (!s.unit) return counted(s.units, "unit") + " of several kinds";
  switch (*s.unit) {
    case traces::CountUnit::total:
      return s.units == 1 ? "one total" : counted(s.units, "total");
    case traces::CountUnit::window:
      return counted(s.units, "window") + " of time";
    case traces::CountUnit::request:
      return counted(s.units, "request");
    case traces::CountUnit::run:
      break;
  }
  return counted(s.units, "run");
}

std::string draft_text(const ServingSummary& s) {
  if (s.shape == traces::DraftShape::tree) {
    std::string text = s.longest_draft ? fmt::format("trees of depth {}", *s.longest_draft) : "trees of unknown depth";
    if (s.verified_per_round) text += fmt::format(", {} positions verified a round", brief(*s.verified_per_round));
    return text;
  }
  const std::string shape = s.shape == traces::DraftShape::chain ? "" : " of unknown shape";
  if (s.gamma) return fmt::format("drafts of {}{}", *s.gamma, shape);
  if (s.longest_draft) return fmt::format("drafts of up to {}{}", *s.longest_draft, shape);
  return fmt::format("drafts{} of unknown length", shape);
}

/// "llama-8b, chat: "; empty without a name.
std::string heading_of(const ServingSummary& s) {
  const std::string title = visible(title_of(s));
  return title.empty() ? title : title + ": ";
}

std::string what_sentence(const ServingSummary& s) {
  const std::string rule =
      s.rule ? fmt::format("acceptance rule {}", traces::name_of(*s.rule)) : "acceptance rule unknown";
  const std::string rounds = s.rounds ? fmt::format("{} rounds", count_text(*s.rounds)) : "unknown number of rounds";
  const std::string files = s.files.size() == 1 ? "" : fmt::format(" in {}", counted(std::ssize(s.files), "file"));
  return fmt::format("{}{} in {}{} ({}); {}, {}.", heading_of(s), rounds, units_text(s), files,
                     fmt::join(s.formats, ", "), draft_text(s), rule);
}

std::string alpha_sentence(const ServingSummary& s) {
  if (!s.alpha_hat) return "";
  const estimate::CountedRate& alpha = *s.alpha_hat;
  const std::string value = alpha.value ? brief(*alpha.value) : interval_text(alpha.bounds);
  return fmt::format("alpha_hat {}{}, weighted by rounds.", value, sure_text(alpha.ci95, alpha.method));
}

std::string acceptance_lines(const ServingSummary& s) {
  std::string text;
  const auto add = [&](const std::string& sentence) {
    if (!sentence.empty()) text += wrapped(sentence, 2) + '\n';
  };
  if (s.tokens_per_step) {
    add(fmt::format("Tokens per step of these rounds {}, the bonus token included.",
                    estimate_text(*s.tokens_per_step)));
  }
  add(alpha_sentence(s));
  if (s.draft_acceptance_rate) {
    add(fmt::format("Accepted / drafted {} is {}.", brief(s.draft_acceptance_rate->value),
                    reason_against_alpha(s.shape)));
  }
  if (s.tokens_by_one_rate) {
    add(fmt::format("With that rate at every position tokens per step would be {}.", brief(*s.tokens_by_one_rate)));
  }
  if (s.design_effect) {
    add(fmt::format("{}: the variance is {} times that of independent ones, over {}.",
                    *s.design_effect > 1 ? "Rounds cluster" : "Rounds do not cluster", brief(*s.design_effect, 3),
                    counted(s.clusters, "cluster")));
  }
  return text;
}

std::string with_half_width(const Estimate& estimate) {
  if (!estimate.ci95) return fixed(estimate.value);
  return fmt::format("{} +-{}", fixed(estimate.value), fixed((estimate.ci95->hi - estimate.ci95->lo) / 2));
}

/// 0, 1, ... accepted drafts: the rounds that ended there, and the position itself.
std::string position_table(const ServingSummary& s) {
  const ColumnLook of_histogram = {.shown = !s.rounds_by_accepted.empty()};
  const double rounds = std::accumulate(s.rounds_by_accepted.begin(), s.rounds_by_accepted.end(), 0.0);
  std::vector<std::size_t> places(std::max(s.rounds_by_accepted.size(), s.positions.size() + 1));
  std::iota(places.begin(), places.end(), std::size_t{0});
  if (!of_histogram.shown) places.erase(places.begin());
  /// The cell of a position, which the place before the first one is not, and those behind the last are not known.
  const auto of_position = [&s](const auto& text) {
    return [&s, text](std::size_t j) {
      return j == 0 ? std::string() : j > s.positions.size() ? "-" : text(s.positions[j - 1]);
    };
  };
  const auto known = [&s](std::size_t j) { return j < s.rounds_by_accepted.size(); };
  return text_of(make_table(
      places, {{s.shape == traces::DraftShape::tree ? "depth" : "draft", [](auto j) { return fmt::format("{}", j); }},
               {"rounds that end there", of_histogram,
                [&](auto j) { return known(j) ? count_text(s.rounds_by_accepted[j]) : "-"; }},
               {"share", of_histogram,
                [&](auto j) { return known(j) && rounds > 0 ? fixed(s.rounds_by_accepted[j] / rounds) : "-"; }},
               {"accepted", of_position([](const auto& position) { return count_text(position.accepted); })},
               {"looked at", of_position([](const auto& position) {
                  return position.evaluated ? count_text(*position.evaluated) : "-";
                })},
               {"of all rounds", of_position([](const auto& position) {
                  return position.evaluated == 0.0 ? "-" : with_half_width(position.survival);
                })},
               {"of those looked at", of_position([](const auto& position) {
                  return position.conditional ? with_half_width(*position.conditional) : "-";
                })}}));
}

std::string draft_lengths_sentence(const ServingSummary& s) {
  if (s.rounds_by_accepted_and_drafted.size() < 2) return "";
  double all = 0;
  for (const auto& [length, rounds] : s.rounds_by_accepted_and_drafted) {
    all = std::accumulate(rounds.begin(), rounds.end(), all);
  }
  std::vector<std::string> shares;
  for (const auto& [length, rounds] : s.rounds_by_accepted_and_drafted) {
    const double share = std::accumulate(rounds.begin(), rounds.end(), 0.0) / all;
    shares.push_back(fmt::format("{} in {}", length, percent(share)));
  }
  return wrapped(fmt::format("Tokens drafted: {} of the rounds.", fmt::join(shares, ", ")), 2) + '\n';
}

std::string fixed_interval(const std::optional<Interval>& ci95) {
  return ci95 ? fmt::format("{} to {}", fixed(ci95->lo), fixed(ci95->hi)) : "-";
}

Table gamma_table(const CountersGroup& group) {
  const bool without_interval = group.summary.basis == estimate::IntervalBasis::none;
  return make_table(
      group.gammas,
      {{"draft tokens", [](const auto& row) { return fmt::format("{}", row.gamma); }},
       {"tokens/step", [](const auto& row) { return fixed(row.tokens.value, 2); }},
       {"95%",
        [&](const auto& row) {
          return without_interval ? "-" : fmt::format("{:.2f} to {:.2f}", row.tokens.ci95.lo, row.tokens.ci95.hi);
        }},
       {"all accepted", [](const auto& row) { return percent(row.tokens.full_accepts); }},
       {"", {Align::left},
        [](const auto& row) { return row.measured ? "measured" : row.tokens.extrapolated ? "extrapolated" : ""; }}},
      {}, [](const auto& row) { return row.measured; });
}

/// @param beside_others  a table by draft tokens of its own, which a group alone has above
std::string group_text(const CountersGroup& group, bool beside_others) {
  const ServingSummary& s = group.summary;
  if (!s.rounds && !s.tokens_per_step && !s.draft_acceptance_rate) {
    return wrapped(fmt::format("{}no rounds in {} ({}).", heading_of(s), counted(s.units, "unit"),
                               fmt::join(s.formats, ", ")),
                   2) +
           '\n';
  }
  std::string text = wrapped(what_sentence(s), 2) + '\n' + acceptance_lines(s);
  if (!s.positions.empty() || !s.rounds_by_accepted.empty()) text += '\n' + position_table(s);
  text += draft_lengths_sentence(s);
  if (beside_others && !group.gammas.empty()) text += '\n' + text_of(gamma_table(group));
  return text;
}

Column<CountersGroup> group_column() {
  return {"group", {.align = Align::left, .widest = widest_title}, [](const CountersGroup& group) {
            return title_of(group.summary);
          }};
}

Table group_table(const CountersAnswer& a) {
  /// The cell of a figure; "-" if it is unknown.
  const auto of = [](auto ServingSummary::*figure, const auto& text) {
    return [=](const CountersGroup& group) {
      const auto& known = group.summary.*figure;
      return known ? text(*known) : "-";
    };
  };
  const auto value = [](const auto& estimate) { return fixed(estimate.value); };
  const auto interval = [](const auto& estimate) { return fixed_interval(estimate.ci95); };
  const auto rate_or_bounds = [](const estimate::CountedRate& rate) {
    return rate.value ? fixed(*rate.value) : fmt::format("{}..{}", fixed(rate.bounds.lo), fixed(rate.bounds.hi));
  };
  return make_table(a.groups, {group_column(),
                               {"rounds", of(&ServingSummary::rounds, count_text)},
                               {"tokens/step", of(&ServingSummary::tokens_per_step, value)},
                               {"95%", of(&ServingSummary::tokens_per_step, interval)},
                               {"alpha", of(&ServingSummary::alpha_hat, rate_or_bounds)},
                               {"95%", of(&ServingSummary::alpha_hat, interval)},
                               {"acc./drafted", of(&ServingSummary::draft_acceptance_rate, value)}});
}

/// "Acceptance length 2.88 (2.7 to 3.1) with 4 draft tokens; 72% of the drafts looked at are accepted.": of traffic
/// like this, as in the table's row of the counted gamma; without one of these rounds alone.
std::string accepted_sentence(const CountersGroup& group) {
  const ServingSummary& s = group.summary;
  std::vector<std::string> parts;
  if (s.tokens_per_step) {
    const auto row =
        std::find_if(group.gammas.begin(), group.gammas.end(), [](const auto& one) { return one.measured; });
    const std::optional<Interval> ci95 = row == group.gammas.end() ? s.tokens_per_step->ci95 : row->tokens.ci95;
    const std::string drafts = s.gamma && s.shape != traces::DraftShape::tree
                                   ? fmt::format(" with {}", counted(*s.gamma, "draft token"))
                                   : "";
    parts.push_back(fmt::format("acceptance length {}{}", with_range(s.tokens_per_step->value, ci95), drafts));
  }
  if (s.alpha_hat) {
    const estimate::CountedRate& alpha = *s.alpha_hat;
    const std::string share = alpha.value
                                  ? percent(*alpha.value)
                                  : fmt::format("{} to {}", percent(alpha.bounds.lo), percent(alpha.bounds.hi));
    parts.push_back(fmt::format("{} of the drafts looked at are accepted", share));
  } else if (s.draft_acceptance_rate) {
    parts.push_back(fmt::format("{} of the drafted tokens are accepted", percent(s.draft_acceptance_rate->value)));
  }
  if (parts.empty()) return fmt::format("No rounds of speculative decoding in {}.", units_text(s));
  return capitalised(fmt::format("{}.", fmt::join(parts, "; ")));
}

/// What to find out before anybody plans with these counts; empty where nothing forbids it.
std::string obstacle_of(const ServingSummary& s) {
  for (const Note& warning : s.warnings) {
    if (warning.code == estimate::draft_never_accepted)
      return "No drafted token is accepted: find out why before you plan.";
    if (warning.code == estimate::figures_contradict)
      return "Two figures of these rounds contradict each other: find out which holds before you plan.";
  }
  return "";
}

/// What was counted, what it is not, and what would make it surer.
std::string certainty_sentence(const ServingSummary& s) {
  std::string text = fmt::format("From {}{} ({}).", s.rounds ? count_text(*s.rounds) + " rounds in " : "", units_text(s),
                                 fmt::join(s.formats, ", "));
  if (s.alpha_hat && s.alpha_hat->value)
    text += fmt::format(" alpha {}", with_range(*s.alpha_hat->value, s.alpha_hat->ci95));
  if (s.alpha_hat && s.alpha_hat->value && s.draft_acceptance_rate)
    text += fmt::format("; not your engine's acceptance rate, accepted / drafted, {}",
                        percent(s.draft_acceptance_rate->value));
  if (s.alpha_hat && s.alpha_hat->value) text += '.';
  return text;
}

/// "Acceptance length 2.12 (chat) to 3.4 (code) over 5 groups."
std::string spread_sentence(const CountersAnswer& a) {
  const auto length = [](const CountersGroup& group) {
    return group.summary.tokens_per_step ? group.summary.tokens_per_step->value : 0;
  };
  const auto [least, most] = std::ranges::minmax_element(a.groups, {}, length);
  const auto shown = [&](const CountersGroup& group) {
    return fmt::format("{} ({})", brief(length(group), 3), visible(title_of(group.summary)));
  };
  return fmt::format("Acceptance length {} to {} over {} groups.", shown(*least), shown(*most), a.groups.size());
}

}  // namespace

std::string_view reason_against_alpha(traces::DraftShape shape) {
  if (shape == traces::DraftShape::tree) {
    return "not alpha: at most one of the drafts at one place is accepted, and drafts behind a rejection are never "
           "looked at";
  }
  return "not alpha: drafts behind a rejection count as drafted and are never looked at";
}

std::string title_of(const ServingSummary& summary) {
  if (!summary.group) return summary.model_name;
  const std::string group = summary.group->empty() ? "(none)" : *summary.group;
  return summary.model_name.empty() ? group : fmt::format("{}, {}", summary.model_name, group);
}

render::Spoken spoken(const CountersAnswer& a) {
  render::Spoken answer;
  planner::Decision& decision = answer.decision;
  if (a.groups.size() == 1) {
    const CountersGroup& group = a.groups.front();
    const std::string accepted = accepted_sentence(group), obstacle = obstacle_of(group.summary);
    decision.action = obstacle.empty() ? accepted : obstacle;
    decision.certainty = obstacle.empty() ? "" : accepted + ' ';
    decision.certainty += certainty_sentence(group.summary);
    if (!group.gammas.empty()) answer.table = gamma_table(group);
  } else {
    decision.action = spread_sentence(a);
    decision.certainty = a.groups.front().summary.group ? "plan --mix weighs these groups by your traffic."
                                                        : "plan --model takes one of them.";
    answer.table = group_table(a);
  }
  const std::string files = fmt::format("{}", fmt::join(a.options.sources, " "));
  constexpr std::size_t longest = 70;
  const bool plans = !a.groups.front().gammas.empty() && obstacle_of(a.groups.front().summary).empty();
  if (plans && !a.options.scrape.url && !files.empty() && files.size() <= longest) {
    decision.next = fmt::format("specdec plan --counters {} --c C", files);
    decision.purpose = "with the time of your draft's step over the target's as C:";
  }
  if (a.groups.size() > detailed_groups) return answer;
  std::vector<std::string> parts;
  for (const CountersGroup& group : a.groups) parts.push_back(group_text(group, a.groups.size() > 1));
  answer.more += fmt::format("{}", fmt::join(parts, "\n"));
  return answer;
}

}  // namespace specdec::cli
