#include "analysis/estimate/serving_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/estimate/acceptance_counts.hpp"
#include "analysis/estimate/acceptance_estimates.hpp"
#include "analysis/estimate/group_description.hpp"
#include "analysis/estimate/serving_clusters.hpp"
#include "analysis/estimate/unit_counts.hpp"
#include "analysis/theory/acceptance_inversion.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::estimate {
namespace {

using traces::DraftShape;

using traces::ServingCounts;

/// Rounds behind a mean that comes without their number: those of one request between two lines of SGLang's log
/// (--decode-log-interval, 40 by default), which more requests at once only raise.
constexpr double rounds_of_a_mean = 40;

/// A ratio of totals in [lo, hi] with the data for its interval.
struct Ratio {
  const ClusterMoments& clusters;
  double lo, hi;
  /// The interval of independent rounds, if known.
  std::optional<Interval> iid;
  /// True if there are too few rejections or acceptances for clusters alone.
  bool rare;
};

Interval t_interval_above(double value, const StandardError& error, double lo) {
  const Interval interval = t_interval(value, error);
  return {std::max(interval.lo, lo), interval.hi};
}

/// Intervals of what a group's rounds did, by their clusters and as if they were independent.
class RoundIntervals {
 public:
  /// @param summary  with everything but its estimates, and at least as long-lived
  /// @param tokens   per step
  /// @param rounds   that they are the mean of
  RoundIntervals(const ServingSummary& summary, double tokens, double rounds)
      : summary_(summary), tokens_(tokens), rounds_(rounds) {}

  bool few_clusters() const { return summary_.clusters < few_sequences; }

  /// By clusters, never narrower than for independent rounds while clusters or events are few, or clusters too alike.
  std::optional<Interval> around(double value, const Ratio& ratio) const {
    if (ratio.clusters.clusters() < 2) return ratio.iid;
    const std::optional<StandardError> error = standard_error(ratio.clusters);
    if (!error) return ratio.iid;
    const Interval by_clusters = std::isinf(ratio.hi) ? t_interval_above(value, *error, ratio.lo)
                                                      : bounded_t_interval(value, *error, ratio.lo, ratio.hi);
    if (!ratio.iid) return by_clusters;
    if (few_clusters() || ratio.rare || too_alike(by_clusters, *ratio.iid)) return hull(by_clusters, *ratio.iid);
    return by_clusters;
  }

  std::string method(const ClusterMoments& clusters) const {
    if (clusters.clusters() >= 2) return std::string(name_of(summary_.basis));
    return std::string(
        name_of(summary_.basis == IntervalBasis::none ? IntervalBasis::none : IntervalBasis::iid_rounds));
  }

  /// Variance of a round's accepted drafts, taken as independent; empty if unknown.
  std::optional<double> variance_of_accepted() const {
    const std::vector<double>& histogram = summary_.rounds_by_accepted;
    if (!histogram.empty()) {
      const double rounds = traces::sum_of(histogram);
      double mean = 0;
      for (std::size_t j = 1; j < histogram.size(); ++j) mean += static_cast<double>(j) * histogram[j] / rounds;
      double variance = 0;
      for (std::size_t j = 0; j < histogram.size(); ++j) {
        variance += std::pow(static_cast<double>(j) - mean, 2) * histogram[j] / rounds;
      }
      return variance;
    }
    if (!summary_.gamma || *summary_.gamma < 1) return std::nullopt;
    const double tokens = std::clamp(tokens_, 1.0, static_cast<double>(*summary_.gamma) + 1);
    return theory::tokens_variance(theory::alpha_from_acceptance_length(tokens, *summary_.gamma), *summary_.gamma);
  }

  std::optional<Interval> tokens_of_independent_rounds() const {
    const std::optional<double> variance = variance_of_accepted();
    if (!variance) return std::nullopt;
    const double most = most_tokens();
    if (*variance > 0) {
      return bounded_t_interval(tokens_, {std::sqrt(*variance / rounds_), std::max(1.0, rounds_ - 1)}, 1, most);
    }
    if (!summary_.gamma || *summary_.gamma < 1) return std::nullopt;
    // All rounds alike: that many trials without a failure, or without a success; otherwise the variance is unknown.
    const double accepted = tokens_ - 1;
    if (accepted > 0 && tokens_ < most) return std::nullopt;
    const double trials = accepted > 0 ? accepted * rounds_ : rounds_;
    const Interval alpha = clopper_pearson_interval_of_share(accepted > 0 ? trials : 0, trials);
    return Interval{theory::expected_tokens(core::AcceptanceRate(alpha.lo), *summary_.gamma),
                    theory::expected_tokens(core::AcceptanceRate(alpha.hi), *summary_.gamma)};
  }

  /// Infinity if nothing limits the length of drafts.
  double most_tokens() const {
    if (summary_.gamma) return std::max(static_cast<double>(*summary_.gamma) + 1, tokens_);
    std::optional<std::int64_t> longest = summary_.longest_draft;
    if (!longest && !summary_.rounds_by_accepted.empty()) longest = std::ssize(summary_.rounds_by_accepted) - 1;
    const double most = longest ? static_cast<double>(*longest) + 1 : 0;
    return tokens_ <= most ? most : std::numeric_limits<double>::infinity();
  }

 private:
  const ServingSummary& summary_;
  double tokens_, rounds_;
};

ClusterTally tally_of(ClusterTally tally, const std::map<SeriesKey, WindowCells>& series) {
  for (const auto& [key, windows] : series) {
    for (const ClusterSums& cell : windows.cells()) tally.add(cell);
  }
  return tally;
}

/// Each window's accepted drafts a round beside the mean of its source, by series: sources that differ are not windows
/// that resemble each other.
std::vector<std::vector<double>> residuals_of(const std::map<SeriesKey, WindowCells>& series) {
  std::map<std::string_view, std::pair<double, double>> accepted_and_rounds;
  for (const auto& [key, windows] : series) {
    auto& [accepted, rounds] = accepted_and_rounds[key.source];
    for (const ClusterSums& cell : windows.cells()) {
      accepted += cell.accepted;
      rounds += cell.rounds;
    }
  }
  std::vector<std::vector<double>> residuals;
  for (const auto& [key, windows] : series) {
    const auto& [accepted, rounds] = accepted_and_rounds[key.source];
    std::vector<double>& its = residuals.emplace_back();
    for (const ClusterSums& cell : windows.cells()) {
      if (cell.rounds > 0) its.push_back(cell.accepted - accepted / rounds * cell.rounds);
    }
  }
  return residuals;
}

/// The combined results of a group's parts.
class Summarising {
 public:
  Summarising(const CountedGroup& group, ServingSummary& summary) : group_(group), summary_(summary) {
    tally_ = tally_of(group.clusters, group.series);
    const ClusterTally means = tally_of(group.means, group.series_of_means);
    if (means.accepted_per_round.clusters() == 0) return;
    if (tally_.accepted_per_round.clusters() == 0) {
      tally_ = means;
      summary.unweighted_means = true;
      rounds_of_one_ = rounds_of_a_mean;
      const bool one = means.accepted_per_round.clusters() == 1;
      warn("unweighted_means",
           fmt::format("tokens per step are {} over rounds that nothing counts, {} as over {} of them, which is what "
                       "SGLang's log holds of one request between two lines; where more are known to lie behind it, "
                       "--acceptance-length GAMMA:MEAN --rounds says so",
                       one ? "a mean" : "the mean of means", one ? "taken" : "each taken", rounds_of_a_mean));
    } else {
      warn("means_left_out", "means over rounds of unknown number are left out: other units count their rounds");
    }
  }

  void run() {
    describe(group_, summary_);
    gamma_inferred_ = infer_gamma(group_, summary_);
    warn_of_acceptance(group_, summary_);
    warn_of_units(group_, summary_);
    find_basis();
    find_neighbours();
    summary_.moments = tally_.moments;
    find_tokens_per_step();
    find_draft_acceptance_rate();
    find_positions();
    find_alpha();
    find_tokens_by_one_rate();
    warn_of_lengths(group_, summary_);
    warn_of_basis(group_, neighbours_, summary_);
    append(summary_.warnings, group_.warnings.list());
  }

 private:
  RoundIntervals intervals() const {
    return {summary_, tokens_, rounds_of_one_ * tally_.accepted_per_round.denominator()};
  }

  void warn(std::string code, std::string message) { add_warning(summary_, std::move(code), std::move(message)); }

  void find_basis() {
    summary_.clusters = tally_.accepted_per_round.clusters();
    if (summary_.clusters == 0) summary_.clusters = tally_.accepted_per_drafted.clusters();
    if (summary_.clusters >= 2) {
      const bool windows = summary_.unit == traces::CountUnit::window;
      summary_.basis = windows ? IntervalBasis::batch_means : IntervalBasis::clusters;
    } else if (tally_.accepted_per_round.clusters() == 1) {
      summary_.basis = IntervalBasis::iid_rounds;
    }
  }

  /// Intervals hold that windows resemble their neighbours.
  void find_neighbours() {
    if (summary_.basis != IntervalBasis::batch_means || !(tally_.accepted_per_round.denominator() > 0)) return;
    neighbours_ =
        neighbour_correlation(residuals_of(summary_.unweighted_means ? group_.series_of_means : group_.series));
    tally_.resemble(neighbours_);
  }

  void find_tokens_per_step() {
    const ClusterMoments& clusters = tally_.accepted_per_round;
    if (clusters.clusters() == 0) return;
    tokens_ = 1 + clusters.numerator() / clusters.denominator();
    // The same clusters counted as tokens, so that the interval lies in [1, gamma + 1].
    const std::optional<Interval> iid = intervals().tokens_of_independent_rounds();
    const double rejecting = rounds_of_one_ * clusters.denominator() * (intervals().most_tokens() - tokens_);
    const bool rare = rounds_of_one_ * clusters.numerator() < few_rejections || rejecting < few_rejections;
    const Ratio ratio{clusters, 1, intervals().most_tokens(), iid, rare};
    summary_.tokens_per_step =
        Estimate{tokens_, widened_by_rounding(intervals().around(tokens_, ratio)), intervals().method(clusters)};
    if (const auto error = standard_error(clusters); error && clusters.clusters() >= 2) {
      const std::optional<double> variance = intervals().variance_of_accepted();
      if (variance && *variance > 0) {
        summary_.design_effect = error->value * error->value * rounds_of_one_ * clusters.denominator() / *variance;
      }
    }
    rare_rounds_ = ratio.rare;
  }

  /// Widened by the possible error of inferred rounds.
  std::optional<Interval> widened_by_rounding(const std::optional<Interval>& ci95) const {
    const double rounds = tally_.accepted_per_round.denominator();
    if (!ci95 || !(group_.least_rounds < group_.most_rounds) || !(group_.least_rounds > 0)) return ci95;
    // The same share of accepted drafts over the fewest and over the most rounds.
    const double accepted = tally_.accepted_per_round.numerator();
    const double all = group_.rounds.value;
    const double below = accepted / rounds * (1 - all / group_.most_rounds);
    const double above = accepted / rounds * (all / group_.least_rounds - 1);
    return Interval{std::max(1.0, ci95->lo - below), std::min(intervals().most_tokens(), ci95->hi + above)};
  }

  /// For drafted tokens, which some sources count without rounds.
  void find_draft_acceptance_rate() {
    const ClusterMoments& drafts = tally_.accepted_per_drafted;
    if (drafts.clusters() == 0) return;
    const double rate = drafts.numerator() / drafts.denominator();
    std::optional<Interval> iid;
    const bool of_all = group_.drafted.units == group_.counted && group_.accepted.units == group_.counted;
    const bool rounds_known = tally_.accepted_per_round.clusters() > 0;
    if (of_all && rounds_known && summary_.gamma && *summary_.gamma > 0) {
      if (const auto tokens = intervals().tokens_of_independent_rounds()) {
        const auto gamma = static_cast<double>(*summary_.gamma);
        iid = Interval{(tokens->lo - 1) / gamma, (tokens->hi - 1) / gamma};
      }
    }
    const bool few = rounds_known ? rare_rounds_ : rare(drafts.numerator(), drafts.denominator());
    summary_.draft_acceptance_rate =
        Estimate{rate, intervals().around(rate, {drafts, 0, 1, iid, few}), intervals().method(drafts)};
  }

  void find_positions() {
    const RoundMoments& moments = tally_.moments;
    const bool looked_at =
        group_.with_positions > 0 && moments.clusters() > 0 &&
        group_.exact + (summary_.shape == DraftShape::tree ? group_.with_positions : 0) == group_.with_positions;
    const std::size_t count =
        std::max(tally_.survival.size(), looked_at ? static_cast<std::size_t>(moments.positions()) : std::size_t{0});
    for (std::size_t i = 0; i < count; ++i) {
      PositionAcceptance position;
      position.position = static_cast<std::int64_t>(i) + 1;
      const bool reached = i < tally_.survival.size();
      const double rounds = traces::sum_of(summary_.rounds_by_accepted);
      position.accepted = reached ? tally_.survival[i].numerator() : 0;
      const double survival = std::clamp(position.accepted / rounds, 0.0, 1.0);
      const Interval iid = clopper_pearson_interval_of_share(std::min(position.accepted, rounds), rounds);
      const ClusterMoments none;
      const ClusterMoments& clusters = reached ? tally_.survival[i] : none;
      position.survival = {survival,
                           intervals().around(survival, {clusters, 0, 1, iid, rare(position.accepted, rounds)}),
                           intervals().method(clusters)};
      if (looked_at && position.position <= moments.positions()) add_conditional(position);
      summary_.positions.push_back(std::move(position));
    }
  }

  static bool rare(double successes, double trials) {
    return successes < few_rejections || trials - successes < few_rejections;
  }

  void add_conditional(PositionAcceptance& position) const {
    const RoundMoments& moments = tally_.moments;
    const double looked_at = moments.evaluated(position.position);
    position.evaluated = looked_at;
    if (!(looked_at > 0)) return;
    const double accepted = std::min(moments.accepted(position.position), looked_at);
    const double rate = accepted / looked_at;
    const Interval iid = clopper_pearson_interval_of_share(accepted, looked_at);
    Estimate conditional{rate, iid, std::string(name_of(IntervalBasis::iid_rounds))};
    if (const auto error = moments.standard_error(position.position)) {
      conditional.ci95 = bounded_t_interval(rate, *error, 0, 1);
      if (intervals().few_clusters() || rare(accepted, looked_at) || too_alike(*conditional.ci95, iid)) {
        conditional.ci95 = hull(*conditional.ci95, iid);
      }
      conditional.method = name_of(summary_.basis);
    }
    position.conditional = std::move(conditional);
  }

  void find_alpha() {
    if (summary_.shape != DraftShape::chain || group_.counted == 0) return;
    if (group_.exact + group_.bounded + group_.by_moments == 0) {
      if (!(tally_.accepted_per_round.denominator() > 0)) {
        warn("counts_incomplete",
             "no unit counts both rounds and accepted drafts: neither tokens per step nor alpha is given");
      } else {
        warn("gamma_unknown", "neither drafted tokens nor the length of drafts is known: no alpha is given; say --at");
      }
      return;
    }
    if (gamma_inferred_ || (group_.exact == 0 && group_.bounded == 0 && summary_.gamma)) {
      alpha_from_moments();
      return;
    }
    const ClusterMoments& low = tally_.alpha_low;
    const ClusterMoments& high = tally_.alpha_high;
    if (!(low.denominator() > 0) || !(high.denominator() > 0)) return;
    const bool known = group_.bounded == 0 && group_.by_moments == 0;
    CountedRate rate;
    rate.bounds = {low.numerator() / low.denominator(), high.numerator() / high.denominator()};
    if (known) rate.value = rate.bounds.lo;
    rate.estimator = known ? "censored_geometric" : "bounds";
    rate.method = intervals().method(low);
    const Interval iid = hull(trials_interval(low), trials_interval(high));
    const auto part = [&](const ClusterMoments& clusters, double value) {
      const double rejections = clusters.denominator() - clusters.numerator();
      const bool few = clusters.numerator() < few_rejections || rejections < few_rejections;
      return intervals().around(value, {clusters, 0, 1, iid, few});
    };
    const auto lowest = part(low, rate.bounds.lo);
    const auto highest = part(high, rate.bounds.hi);
    if (lowest && highest) rate.ci95 = hull(*lowest, *highest);
    summary_.alpha_hat = std::move(rate);
    if (known) return;
    warn(std::string(alpha_is_bounded),
         group_.by_moments + group_.exact == group_.counted
             ? "units draft different numbers of tokens, and some do not say how often all were accepted: alpha is "
               "given within bounds; group them by gamma"
             : "draft lengths vary, and how long each was is unknown: alpha is given within bounds");
  }

  static Interval trials_interval(const ClusterMoments& trials) {
    return clopper_pearson_interval_of_share(std::min(trials.numerator(), trials.denominator()), trials.denominator());
  }

  Interval inverted(const Interval& tokens) const {
    const auto at = [&](double length) {
      const double most = static_cast<double>(*summary_.gamma) + 1;
      return theory::alpha_from_acceptance_length(std::clamp(length, 1.0, most), *summary_.gamma).alpha();
    };
    return {at(tokens.lo), at(tokens.hi)};
  }

  void alpha_from_moments() {
    CountedRate rate;
    rate.value = inverted({tokens_, tokens_}).lo;
    rate.bounds = {*rate.value, *rate.value};
    rate.estimator = "moment_inversion";
    rate.method = summary_.tokens_per_step->method;
    if (summary_.tokens_per_step->ci95) rate.ci95 = inverted(*summary_.tokens_per_step->ci95);
    summary_.alpha_hat = std::move(rate);
    warn("moment_inversion",
         "how often all drafts of a round were accepted is unknown: alpha is the rate that gives the tokens per step, "
         "which is approximate where acceptance varies");
  }

  void find_tokens_by_one_rate() {
    if (!summary_.alpha_hat || summary_.alpha_hat->estimator != "censored_geometric") return;
    const core::AcceptanceRate alpha(*summary_.alpha_hat->value);
    double tokens = 0;
    for (std::size_t length = 0; length < group_.rounds_by_drafted.size(); ++length)
      tokens += group_.rounds_by_drafted[length] * theory::expected_tokens(alpha, static_cast<std::int64_t>(length));
    summary_.tokens_by_one_rate = tokens / traces::sum_of(group_.rounds_by_drafted);
  }

  const CountedGroup& group_;
  ServingSummary& summary_;
  ClusterTally tally_;
  double tokens_ = 1;
  /// Rounds for each that the tally counts.
  double rounds_of_one_ = 1;
  bool gamma_inferred_ = false;
  NeighbourCorrelation neighbours_;
  /// True for rounds with few rejections or few accepted drafts.
  bool rare_rounds_ = false;
};

}  // namespace

bool is_one_length(double mean) { return std::abs(mean - std::round(mean)) <= 0.02; }

std::string_view name_of(IntervalBasis basis) {
  constexpr std::array<std::string_view, 4> names = {"none", "iid_rounds", "clusters", "batch_means"};
  return names.at(static_cast<std::size_t>(basis));
}

std::string text_of(const AcceptanceTrend& trend) {
  const char* const moves = trend.change < 0 ? "falls" : "rises";
  if (trend.over == "time" && trend.jump) {
    return fmt::format("acceptance {} from {:.3g} to {:.3g} tokens per step after {:.0f} of {:.0f} windows{}{}", moves,
                       trend.before, trend.after, trend.turn.place, trend.units, trend.turn_at.empty() ? "" : ", at ",
                       trend.turn_at);
  }
  if (trend.over == "time") {
    return fmt::format("acceptance {} from {:.3g} tokens per step in the first window to {:.3g} in the last of {:.0f}",
                       moves, trend.before, trend.after, trend.units);
  }
  return fmt::format("acceptance {} from {:.3g} tokens per step at {:.0f} {} to {:.3g} at {:.0f}", moves, trend.before,
                     std::exp2(trend.first_place), trend.over, trend.after, std::exp2(trend.last_place));
}

std::string_view label_value(const ServingCounts& counts, const LabelGroups& by) {
  if (by.label == "file") return counts.file.native();
  return by.label.empty() ? std::string_view() : counts.label(by.label);
}

/// Each takes some milliseconds to be summed up.
constexpr std::size_t most_groups = 1000;

struct ServingSummaries::Groups {
  explicit Groups(ServingSummaryOptions asked) : options(std::move(asked)) {}

  /// Neighbouring units mostly belong to one group, so the last one is tried first.
  CountedGroup& group_of(const ServingCounts& counts) {
    const std::string_view model = counts.label("model_name");
    const LabelGroups& by = options.by;
    const std::string_view label = label_value(counts, by);
    if (!by.bounds.empty()) range = by.group_of(label);
    const std::string_view value = by.bounds.empty() ? label : std::string_view(range);
    if (last == by_key.end() || last->first.first != model || last->first.second != value) {
      last = by_key.try_emplace({std::string(model), std::string(value)}).first;
      if (by_key.size() > most_groups)
        throw counts.refusal(
            "models and groups", fmt::format("over {}", most_groups),
            fmt::format("at most {}, each with an answer of its own: leave out the others", most_groups));
    }
    return last->second;
  }

  ServingSummaryOptions options;
  std::map<std::pair<std::string, std::string>, CountedGroup> by_key;
  std::map<std::pair<std::string, std::string>, CountedGroup>::iterator last = by_key.end();
  UnitCounts unit;
  ClusterSums cluster;
  std::string range;
};

ServingSummaries::ServingSummaries(ServingSummaryOptions options) {
  if (options.gamma) {
    core::require_in("ServingSummaries", "gamma", *options.gamma, std::int64_t{1}, RoundMoments::most_positions);
  }
  groups_ = std::make_unique<Groups>(std::move(options));
}

ServingSummaries::~ServingSummaries() = default;
ServingSummaries::ServingSummaries(ServingSummaries&&) noexcept = default;
ServingSummaries& ServingSummaries::operator=(ServingSummaries&&) noexcept = default;

void ServingSummaries::add(const ServingCounts& counts) {
  CountedGroup& group = groups_->group_of(counts);
  const WarnOfUnit warn = [&](std::string_view code, const std::string& message) {
    group.warnings.add(code, counts, message);
  };
  const LabelGroups& by = groups_->options.by;
  if (!by.label.empty() && by.group_of(label_value(counts, by)).empty()) {
    warn("label_missing",
         fmt::format("there is no label {}{}: taken as empty", by.label, by.bounds.empty() ? "" : " with a number"));
  }
  normalise(counts, {groups_->options.gamma, groups_->options.tree}, warn, groups_->unit);
  group.add(counts, groups_->unit, groups_->cluster);
}

std::vector<ServingSummary> ServingSummaries::summaries() const {
  std::vector<ServingSummary> summaries;
  for (const auto& [key, group] : groups_->by_key) {
    ServingSummary& summary = summaries.emplace_back(group.told);
    summary.model_name = key.first;
    if (!groups_->options.by.label.empty()) summary.group = key.second;
    Summarising(group, summary).run();
  }
  return summaries;
}

}  // namespace specdec::estimate
