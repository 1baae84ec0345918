#include "planner/checkup/count_checks.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/core/quantile.hpp"
#include "analysis/core/tails.hpp"
#include "analysis/estimate/acceptance_counts.hpp"
#include "planner/checkup/first_acceptance.hpp"
#include "planner/number_text.hpp"

namespace specdec::planner {
namespace {

using estimate::PositionAcceptance;
using estimate::ServingSummary;
using traces::ServingCounts;

std::string file_of(const ServingSummary& summary) { return summary.files.empty() ? "" : summary.files.front(); }

Evidence evidence_of(const ServingSummary& summary, std::string name, double value) {
  return {file_of(summary), 0, std::move(name), value};
}

/// The first drafts of a group; those that an engine counts in sum alone are at most as many as all.
std::optional<FirstDrafts> first_drafts_of(const ServingSummary& s) {
  if (!s.accepted || s.longest_draft == 0) return std::nullopt;
  constexpr double long_draft = 16;
  const auto longest = s.longest_draft ? static_cast<double>(*s.longest_draft) : long_draft;
  const double rounds = s.rounds.value_or(std::floor(s.drafted.value_or(0) / longest));
  if (!(rounds >= 1)) return std::nullopt;
  const bool requests = s.unit == traces::CountUnit::request;
  const double units = requests ? static_cast<double>(s.units) : rounds / rounds_of_a_request;
  if (s.positions.empty()) return FirstDrafts{std::min(*s.accepted, rounds), rounds, units};
  // Some units may not count by position.
  return FirstDrafts{s.positions.front().accepted, s.positions.front().evaluated.value_or(rounds), units};
}

/// The finding of first drafts that published ones of their kind are not like.
/// @param drafted  tokens, 0 if unknown
Finding rare_acceptance(const FirstDrafts& drafts, std::optional<cost::DraftKind> kind, double drafted,
                        const std::string& file, std::int64_t line) {
  const double rate = drafts.accepted / drafts.rounds;
  const double most = estimate::clopper_pearson_interval_of_share(drafts.accepted, drafts.rounds).hi;
  const bool never = drafts.accepted == 0;
  const std::string found =
      never && drafted > 0 ? fmt::format("0 of {} drafted tokens were accepted", brief(drafted))
                           : fmt::format("{} of {} first drafts were accepted, {} (at most {})", brief(drafts.accepted),
                                         brief(drafts.rounds), percent(rate), percent(most));
  const std::string place = line > 0 ? fmt::format("{}:{}: ", file, line) : "";
  return {std::string(never ? estimate::draft_never_accepted : "draft_hardly_accepted"),
          rate < least_first_acceptance ? Severity::error : Severity::warning,
          fmt::format("{}{}: of 100 published drafts of {} 99 reach {} or more", place, found,
                      kind ? "this kind" : "models and heads", percent(least_published(kind))),
          {{file, line, "rounds", drafts.rounds}, {file, line, "accepted", drafts.accepted}},
          std::string(estimate::causes_of_rejection)};
}

void check_first_acceptance(const ServingSummary& s, Suspicions& suspicions) {
  if (s.unweighted_means) {
    // The digits that engines write of a length.
    constexpr double rounding = 0.005;
    if (!s.tokens_per_step || s.tokens_per_step->value > 1 + rounding) return;
    suspicions.add({std::string(estimate::draft_never_accepted),
                    Severity::error,
                    fmt::format("acceptance length is {} in every report: no draft is ever accepted",
                                brief(s.tokens_per_step->value)),
                    {evidence_of(s, "tokens_per_step", s.tokens_per_step->value)},
                    std::string(estimate::causes_of_rejection)});
    return;
  }
  const auto drafts = first_drafts_of(s);
  if (!drafts) return;
  const auto kind = cost::kind_of_method(s.draft_method);
  suspicions.test(as_rare_as_published(*drafts, kind),
                  rare_acceptance(*drafts, kind, s.drafted.value_or(0), file_of(s), 0), file_of(s),
                  "first_draft_acceptance", [=](double p) { return shown_below(*drafts, kind, p); });
}

/// A conditional rate with one success and one failure more, so that its error is not 0 at the ends.
struct Rate {
  double value, variance;

  explicit Rate(const PositionAcceptance& position) {
    const double trials = *position.evaluated / design_effect;
    value = (position.accepted / design_effect + 1) / (trials + 2);
    variance = value * (1 - value) / (trials + 2);
  }
};

double conditional(const PositionAcceptance& position) { return position.accepted / *position.evaluated; }

void check_rise(const ServingSummary& s, std::size_t known, Suspicions& suspicions) {
  const Rate first(s.positions[0]), second(s.positions[1]);
  const double rise = second.value - first.value;
  // Requests that differ raise all rates, the later ones by less; a fault of the first token raises the second alone.
  const bool alone = known > 2 && rise > 3 * (Rate(s.positions[2]).value - second.value);
  const double least = alone ? largest_rise : 2 * largest_rise;
  const double z = (rise - least) / std::sqrt(first.variance + second.variance);
  suspicions.test(
      core::normal_tail(z),
      {"first_position_below_second",
       Severity::warning,
       fmt::format("the first draft is accepted in {} of rounds, the second in {} of those that got there: the first "
                   "token of a draft is worse than what follows it",
                   percent(conditional(s.positions[0])), percent(conditional(s.positions[1]))),
       {evidence_of(s, "conditional_rate_1", conditional(s.positions[0])),
        evidence_of(s, "conditional_rate_2", conditional(s.positions[1]))},
       "check what the draft's first pass sees: hidden states one position off, a missing token or a stale cache; with "
       "n-gram drafts, which are all right or all wrong, it is as it should be"});
}

void check_drop(const ServingSummary& s, std::size_t known, Suspicions& suspicions) {
  for (std::size_t j = 0; j + 1 < known; ++j) {
    const Rate before(s.positions[j]), after(s.positions[j + 1]);
    const double z = (cliff * before.value - after.value) / std::sqrt(cliff * cliff * before.variance + after.variance);
    const std::int64_t position = s.positions[j].position;
    suspicions.test(
        core::normal_tail(z),
        {"drop_behind_position",
         Severity::warning,
         fmt::format("behind position {0} acceptance drops from {1} to {2}: the draft seems to be trained for {0} {3}",
                     position, percent(conditional(s.positions[j])), percent(conditional(s.positions[j + 1])),
                     position == 1 ? "token" : "tokens"),
         {evidence_of(s, fmt::format("conditional_rate_{}", position), conditional(s.positions[j])),
          evidence_of(s, fmt::format("conditional_rate_{}", position + 1), conditional(s.positions[j + 1]))},
         fmt::format("draft {} {}, or take a draft that was trained for more", position,
                     position == 1 ? "token" : "tokens")});
  }
}

/// Means over tokens of a request's rounds.
struct RequestMeans {
  double sum = 0, requests = 0, rounds = 0, accepted = 0;
  std::string file;
  /// Gamma of all requests; empty if it differs or is unknown.
  std::optional<std::int64_t> gamma;

  void add(const ServingCounts& one) {
    gamma = requests == 0 || gamma == one.gamma ? one.gamma : std::nullopt;
    sum += 1 + *one.accepted / *one.rounds;
    ++requests;
    rounds += *one.rounds;
    accepted += *one.accepted;
    file = one.file.string();
  }
  double over_requests() const { return sum / requests; }
  double over_rounds() const { return 1 + accepted / rounds; }
};

std::string model_of(const ServingCounts& one) { return std::string(one.label("model_name")); }

/// The length that a unit states without counting it.
std::optional<double> stated_length(const ServingCounts& one) {
  // Counts of its own give the length themselves.
  if (one.rounds && (one.accepted || one.emitted) && !one.from_rates) return std::nullopt;
  if (one.tokens_per_round) return one.tokens_per_round;
  const bool counted_back = one.unit == traces::CountUnit::run && one.from_rates && one.rounds && one.accepted;
  if (!counted_back || !(*one.rounds > 0)) return std::nullopt;
  return 1 + *one.accepted / *one.rounds;
}

/// Seconds of a round, or of a token where nothing is drafted; empty if a unit does not say it alone.
std::optional<double> round_seconds(const ServingCounts& one) {
  const bool drafted = one.rounds.value_or(0) > 0;
  if (one.window && one.unit == traces::CountUnit::window) {
    const traces::EngineWindow& w = *one.window;
    if (w.prompt_tokens_per_second.value_or(1) > 0 || !(w.running.value_or(0) > 0)) return std::nullopt;
    if (w.waiting.value_or(0) > 0 || !(w.generation_tokens_per_second.value_or(0) > 0)) return std::nullopt;
    const double tokens = drafted && one.accepted ? 1 + *one.accepted / *one.rounds : 1;
    return *w.running * tokens / *w.generation_tokens_per_second;
  }
  if (one.unit != traces::CountUnit::request || !one.bench || !one.bench->duration_s) return std::nullopt;
  const double passes = drafted ? *one.rounds : one.emitted.value_or(0);
  if (!(passes > 0) || !(*one.bench->duration_s > 0)) return std::nullopt;
  return *one.bench->duration_s / passes;
}

/// Key of the load: rounds take as long only where it is the same.
std::string load_of(const ServingCounts& one) {
  std::string load = one.file.string();
  for (const traces::CountLabel& label : one.labels) load += fmt::format("|{}={}", label.name, label.value);
  if (one.window && one.window->running) load += fmt::format("|{}", *one.window->running);
  return load + (one.rounds.value_or(0) > 0 ? "|drafted" : "|plain");
}

struct TimedUnit {
  const ServingCounts* unit;
  double seconds;
};

void check_first(const std::vector<TimedUnit>& units, Suspicions& suspicions) {
  constexpr std::size_t least_others = 5;
  if (units.size() < least_others + 1) return;
  std::vector<double> others;
  double sum = 0, squares = 0;
  for (std::size_t i = 1; i < units.size(); ++i) {
    others.push_back(units[i].seconds);
    sum += std::log(units[i].seconds);
  }
  const auto count = static_cast<double>(others.size());
  for (const double seconds : others) squares += std::pow(std::log(seconds) - sum / count, 2);
  std::sort(others.begin(), others.end());
  const double median = core::sorted_quantile(others, 0.5);
  constexpr double least_excess = 1.15;
  const double first = units.front().seconds;
  const double deviation = std::log(first) - sum / count;
  const double error = std::sqrt(squares / (count - 1) * (1 + 1 / count));
  double p = 1;
  if (first > least_excess * median) p = error > 0 ? core::t_tail(deviation / error, count - 1) : 0;
  const std::string file = units.front().unit->file.string();
  suspicions.test(
      p,
      {"server_warming_up",
       Severity::warning,
       fmt::format("the first of {} like {} took {} longer a round than the others: the server was "
                   "on its way up",
                   units.size(), units.front().unit->window ? "windows" : "answers", percent(first / median - 1)),
       {{file, units.front().unit->line, "round_seconds", first}, {file, 0, "median_round_seconds_of_others", median}},
       "leave it out, or warm the server up before it is measured"});
}

}  // namespace

void check_trends(const ServingSummary& s, Suspicions& suspicions) {
  for (const estimate::AcceptanceTrend& trend : s.trends) {
    const bool large = std::abs(trend.change) >= estimate::least_trend * trend.mean;
    suspicions.test(
        large ? trend.p_value : 1,
        {std::string(estimate::acceptance_changes),
         trend.over == "time" ? Severity::warning : Severity::note,
         text_of(trend),
         {evidence_of(s, "tokens_per_step_before", trend.before), evidence_of(s, "tokens_per_step_after", trend.after)},
         fmt::format(
             "find what changed{}{} (traffic, context, batch, a restart), and plan from the part that you serve now",
             trend.turn_at.empty() ? "" : " at ", trend.turn_at)},
        file_of(s), "change_of_tokens_per_step", [trend](double p) { return std::optional(trend.least_change(p)); });
  }
}

void check_acceptance(const ServingSummary& summary, Suspicions& suspicions) {
  check_first_acceptance(summary, suspicions);
  const auto unknown = std::find_if(summary.positions.begin(), summary.positions.end(), [](const auto& position) {
    return !position.evaluated || !(*position.evaluated > 0);
  });
  const auto known = static_cast<std::size_t>(unknown - summary.positions.begin());
  if (known < 2) return;
  check_rise(summary, known, suspicions);
  check_drop(summary, known, suspicions);
}

void check_worst_unit(std::span<const ServingCounts> counts, Suspicions& suspicions) {
  struct Worst {
    const ServingCounts* unit = nullptr;
    FirstDrafts drafts;
    double units = 0, accepted = 0, rounds = 0;
  };
  std::map<std::string, Worst> by_file;
  for (const ServingCounts& one : counts) {
    if (one.unit == traces::CountUnit::request || !(one.rounds.value_or(0) >= 1) || !one.accepted) continue;
    const double rounds = *one.rounds;
    const double first = one.accepted_at.empty() ? std::min(*one.accepted, rounds) : one.accepted_at.front();
    const FirstDrafts drafts = {first, rounds, rounds / rounds_of_a_request};
    Worst& worst = by_file[one.file.string()];
    ++worst.units;
    worst.accepted += first;
    worst.rounds += rounds;
    // Of few rounds and of many, the one that chance explains least.
    const auto surprise = [](const FirstDrafts& some) {
      constexpr double usual = 0.5;
      return std::max(0.0, usual - some.accepted / some.rounds) * std::sqrt(some.rounds);
    };
    if (worst.unit == nullptr || surprise(drafts) > surprise(worst.drafts)) {
      worst.unit = &one;
      worst.drafts = drafts;
    }
  }
  for (const auto& [file, worst] : by_file) {
    if (worst.units < 2) continue;
    const auto kind = cost::kind_of_method(worst.unit->draft_method);
    const double of_others = (worst.accepted - worst.drafts.accepted) / (worst.rounds - worst.drafts.rounds);
    // The file as a whole is tested by itself.
    if (of_others < least_published(kind)) continue;
    const double beside = as_rare_beside(worst.drafts, kind, of_others);
    suspicions.test(std::min(1.0, worst.units * std::min(beside, as_rare_as_published(worst.drafts, kind))),
                    rare_acceptance(worst.drafts, kind, worst.unit->drafted.value_or(0), file, worst.unit->line));
  }
}

void check_means(std::span<const ServingCounts> counts, Suspicions& suspicions) {
  std::map<std::string, RequestMeans> by_model;
  for (const ServingCounts& one : counts) {
    const bool told = one.unit == traces::CountUnit::request && one.rounds && one.accepted;
    if (told && *one.rounds > 0) by_model[model_of(one)].add(one);
  }
  for (const ServingCounts& one : counts) {
    const std::optional<double> stated = stated_length(one);
    if (!stated || one.unit == traces::CountUnit::request) continue;
    auto found = by_model.find(model_of(one));
    if (found == by_model.end() && by_model.size() == 1 && model_of(one).empty()) found = by_model.begin();
    if (found == by_model.end()) continue;
    const RequestMeans& means = found->second;
    // Lengths are written to two digits.
    constexpr double rounding = 0.0051, apart = 0.02;
    const bool of_another_gamma = one.gamma && means.gamma && *one.gamma != *means.gamma;
    const bool is_mean = !of_another_gamma && std::abs(*stated - means.over_requests()) <= rounding;
    if (!is_mean || std::abs(*stated - means.over_rounds()) < apart) continue;
    suspicions.add({"mean_over_requests",
                    Severity::warning,
                    fmt::format("the length {} is the mean of the requests' lengths; a step made {} tokens, the ratio "
                                "of their sums",
                                brief(*stated), brief(means.over_rounds())),
                    {{one.file.string(), one.line, "tokens_per_step", *stated},
                     {means.file, 0, "mean_over_requests", means.over_requests()},
                     {means.file, 0, "tokens_per_step", means.over_rounds()}},
                    "plan with the ratio of the sums, (accepted + rounds) / rounds: short requests count less there"});
  }
}

void check_ends(std::span<const ServingCounts> counts, Suspicions& suspicions) {
  struct Outputs {
    std::set<double> lengths;
    double answers = 0;
    bool all_told = true;
  };
  std::map<std::string, Outputs> by_file;
  for (const ServingCounts& one : counts) {
    const bool is_request = one.unit == traces::CountUnit::request;
    if (!is_request && one.unit != traces::CountUnit::run) continue;
    Outputs& outputs = by_file[one.file.string()];
    const traces::BenchRun run = one.bench.value_or(traces::BenchRun());
    const std::optional<double> length = is_request ? run.total_output_tokens : run.equal_output_tokens;
    outputs.all_told = outputs.all_told && length.has_value();
    if (length) outputs.lengths.insert(*length);
    outputs.answers += is_request ? 1 : run.completed.value_or(0);
  }
  constexpr double least_answers = 8;
  for (const auto& [file, outputs] : by_file) {
    if (!outputs.all_told || outputs.lengths.size() != 1 || outputs.answers < least_answers) continue;
    suspicions.add({"outputs_all_equal",
                    Severity::note,
                    fmt::format("all {} answers are {} tokens long: they were cut, or ends of texts were ignored",
                                brief(outputs.answers), brief(*outputs.lengths.begin())),
                    {{file, 0, "output_tokens_per_request", *outputs.lengths.begin()}},
                    "if ends were ignored (ignore_eos), let texts end: what a model says behind its end is accepted "
                    "otherwise than what it says before it"});
  }
}

void check_start(std::span<const ServingCounts> counts, Suspicions& suspicions) {
  std::vector<std::vector<TimedUnit>> loads;
  std::map<std::string, std::size_t> index;
  for (const ServingCounts& one : counts) {
    const std::optional<double> seconds = round_seconds(one);
    if (!seconds) continue;
    const auto [entry, is_new] = index.emplace(load_of(one), loads.size());
    if (is_new) loads.emplace_back();
    loads[entry->second].push_back({&one, *seconds});
  }
  // A server starts once: the first load of a file alone is looked at.
  std::set<std::string> seen;
  for (const std::vector<TimedUnit>& units : loads) {
    if (seen.insert(units.front().unit->file.string()).second) check_first(units, suspicions);
  }
}

}  // namespace specdec::planner
