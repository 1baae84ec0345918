#include "analysis/estimate/serving_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <cmath>
#include <limits>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/estimate/acceptance_counts.hpp"
#include "analysis/estimate/acceptance_estimates.hpp"
#include "analysis/estimate/serving_clusters.hpp"
#include "analysis/estimate/unit_counts.hpp"
#include "analysis/theory/acceptance_inversion.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::estimate {
namespace {

using traces::CountUnit;
using traces::DraftShape;
using traces::ServingCounts;

/// With fewer expected outcomes of a kind the statistic does not follow the chi-square law.
constexpr double least_expected_count = 5;

/// Rounds behind a mean that comes without their number: those of one request between two lines of SGLang's log
/// (--decode-log-interval, 40 by default), which more requests at once only raise.
constexpr double rounds_of_a_mean = 40;

/// A total, and the number of units that gave it.
struct Total {
  double value = 0;
  std::int64_t units = 0;

  void add(const std::optional<double>& part) {
    if (!part) return;
    value += *part;
    ++units;
  }
  std::optional<double> known() const { return units > 0 ? std::optional(value) : std::nullopt; }
};

/// One value for all units, or the information that they differ.
template <class Value>
class Common {
 public:
  void add(const Value& value) {
    if (!seen_) value_ = value;
    differ_ = differ_ || (seen_ && !(value_ == value));
    seen_ = true;
  }
  bool differ() const { return differ_; }
  Value value_or(Value otherwise) const { return seen_ && !differ_ ? value_ : otherwise; }

 private:
  Value value_{};
  bool seen_ = false, differ_ = false;
};

void insert_once(std::vector<std::string>& names, std::string_view name) {
  if (name.empty() || (!names.empty() && names.back() == name)) return;
  if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
}

/// Merges warnings of one code, keeping the first unit's place and their number.
class Warnings {
 public:
  void add(std::string_view code, const ServingCounts& counts, const std::string& message) {
    auto& [first, times] = by_code_[std::string(code)];
    if (times++ > 0) return;
    first = fmt::format("{}: {}", counts.place(), message);
  }
  std::vector<Note> list() const {
    std::vector<Note> warnings;
    for (const auto& [code, first_and_times] : by_code_) {
      const auto& [first, times] = first_and_times;
      warnings.push_back({code, times > 1 ? fmt::format("{} (and {} more)", first, times - 1) : first});
    }
    return warnings;
  }

 private:
  std::map<std::string, std::pair<std::string, std::int64_t>> by_code_;
};

std::string series_of(const ServingCounts& counts) {
  std::string series;
  for (const traces::CountLabel& label : counts.labels) {
    series += label.name + '\0' + label.value + '\0';
  }
  return series;
}

/// Everything that was added to one group.
struct CountedGroup {
  Warnings warnings;
  std::vector<std::string> engines, formats, files;
  std::int64_t units = 0, exact = 0, bounded = 0, by_moments = 0, without_alpha = 0, with_positions = 0,
               with_lengths = 0, with_both = 0, counted = 0;
  Common<CountUnit> unit;
  Common<std::optional<traces::AcceptanceRule>> rule;
  Common<DraftShape> shape;
  Common<std::optional<std::int64_t>> fixed_gamma;
  Common<std::optional<std::int64_t>> verified;
  std::optional<std::int64_t> longest_draft;
  bool from_rates = false;
  Total rounds, drafted, accepted, emitted, steps;
  /// The fewest and the most possible rounds, over the units that count rounds.
  double least_rounds = 0, most_rounds = 0;
  /// For llama.cpp's units that do not state their gamma: their number, the gammas of which each of them falls short by
  /// no more than the end of an answer explains, and their totals.
  struct WithoutGamma {
    std::int64_t units = 0, least_gamma = 1, most_gamma = RoundMoments::most_positions;
    double rounds = 0, drafted = 0;

    void add(const ServingCounts& counts, double its_rounds, double its_drafted);
  } without_gamma;
  std::vector<double> rounds_by_accepted, rounds_by_drafted;
  std::map<std::int64_t, std::vector<double>> by_length;
  ClusterTally clusters, means;
  std::map<std::string, WindowCells> series, series_of_means;

  void add(const ServingCounts& counts, const UnitCounts& normal, ClusterSums& scratch);
};

void CountedGroup::WithoutGamma::add(const ServingCounts& counts, double its_rounds, double its_drafted) {
  ++units;
  rounds += its_rounds;
  drafted += its_drafted;
  const std::pair<double, double> between = counts.rounds_between.value_or(std::pair(its_rounds, its_rounds));
  const double fewest = between.first;
  const double least = std::ceil(its_drafted / between.second * (1 - 1e-9));
  if (!(least <= static_cast<double>(RoundMoments::most_positions))) {
    most_gamma = 0;
    return;
  }
  auto gamma = static_cast<std::int64_t>(least);
  least_gamma = std::max(least_gamma, gamma);
  const auto of_end = [&] {
    return static_cast<double>(gamma) * fewest - its_drafted <= drafts_short_of(counts, gamma, fewest);
  };
  while (gamma <= most_gamma && of_end()) ++gamma;
  most_gamma = std::min(most_gamma, gamma - 1);
}

void CountedGroup::add(const ServingCounts& counts, const UnitCounts& normal, ClusterSums& scratch) {
  ++units;
  insert_once(engines, counts.engine);
  insert_once(formats, counts.format);
  insert_once(files, counts.file.native());
  from_rates = from_rates || counts.from_rates;
  rounds.add(normal.rounds);
  drafted.add(normal.drafted);
  accepted.add(normal.accepted);
  emitted.add(normal.emitted);
  steps.add(counts.steps);
  if (normal.longest_draft) longest_draft = std::max(longest_draft.value_or(0), *normal.longest_draft);
  const std::pair<double, double> between =
      normal.rounds_between.value_or(std::pair(normal.rounds.value_or(0), normal.rounds.value_or(0)));
  least_rounds += between.first;
  most_rounds += between.second;
  // Units that drafted nothing, such as a baseline or an idle window, say nothing about the shape of drafts.
  if (!(normal.rounds.value_or(0) > 0) && !(normal.drafted.value_or(0) > 0) && !normal.mean_tokens) return;
  ++counted;
  unit.add(counts.unit);
  rule.add(counts.rule);
  shape.add(normal.shape);
  verified.add(counts.verified_per_round);
  fixed_gamma.add(normal.fixed_gamma);
  if (counts.engine == "llama.cpp" && normal.shape == DraftShape::chain && !normal.longest_draft &&
      normal.rounds.value_or(0) > 0 && normal.drafted.value_or(0) > 0) {
    without_gamma.add(counts, *normal.rounds, *normal.drafted);
  }
  exact += normal.evaluation == Evaluation::exact ? 1 : 0;
  bounded += normal.evaluation == Evaluation::bounds ? 1 : 0;
  by_moments += normal.evaluation == Evaluation::moments ? 1 : 0;
  without_alpha += normal.evaluation == Evaluation::nothing ? 1 : 0;
  if (normal.has_positions) {
    ++with_positions;
    add_counts(rounds_by_accepted, normal.rounds_by_accepted);
  }
  if (!normal.rounds_by_drafted.empty()) {
    ++with_lengths;
    add_counts(rounds_by_drafted, normal.rounds_by_drafted);
  }
  if (normal.by_length != nullptr) {
    ++with_both;
    for (const auto& [length, histogram] : *normal.by_length) add_counts(by_length[length], histogram);
  } else if (normal.has_positions && normal.fixed_gamma) {
    ++with_both;
    add_counts(by_length[*normal.fixed_gamma], normal.rounds_by_accepted);
  }
  if (normal.mean_tokens) {
    scratch.set_mean(*normal.mean_tokens);
  } else {
    scratch.set(normal);
  }
  if (counts.unit == CountUnit::window) {
    (normal.mean_tokens ? series_of_means : series)[series_of(counts)].add(scratch);
  } else {
    (normal.mean_tokens ? means : clusters).add(scratch);
  }
}

/// A ratio of totals in [lo, hi] with the data for its interval.
struct Ratio {
  const ClusterMoments& clusters;
  double lo, hi;
  /// The interval of independent rounds, if known.
  std::optional<Interval> iid;
  /// True if there are too few rejections or acceptances for clusters alone.
  bool rare;
};

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
    describe();
    find_basis();
    find_neighbours();
    summary_.moments = tally_.moments;
    find_tokens_per_step();
    find_draft_acceptance_rate();
    find_positions();
    find_alpha();
    find_homogeneity();
    warn_of_basis();
    append(summary_.warnings, group_.warnings.list());
  }

 private:
  static ClusterTally tally_of(ClusterTally tally, const std::map<std::string, WindowCells>& series) {
    for (const auto& [labels, windows] : series) {
      for (const ClusterSums& cell : windows.cells()) tally.add(cell);
    }
    return tally;
  }

  void warn(std::string code, std::string message) {
    summary_.warnings.push_back({std::move(code), std::move(message)});
  }

  void describe() {
    summary_.engines = group_.engines;
    summary_.formats = group_.formats;
    summary_.files = group_.files;
    summary_.units = group_.units;
    summary_.from_rates = group_.from_rates;
    summary_.rounds = group_.rounds.known();
    summary_.drafted = group_.drafted.known();
    summary_.accepted = group_.accepted.known();
    summary_.emitted = group_.emitted.known();
    if (group_.steps.units == group_.units) summary_.steps = group_.steps.known();
    summary_.longest_draft = group_.longest_draft;
    summary_.rounds_by_accepted = group_.rounds_by_accepted;
    if (group_.with_lengths == group_.counted) summary_.rounds_by_drafted = group_.rounds_by_drafted;
    if (group_.with_both == group_.counted) summary_.rounds_by_accepted_and_drafted = group_.by_length;
    if (group_.counted == 0) {
      warn("nothing_drafted", "no rounds were counted: acceptance is unknown");
      return;
    }
    if (!group_.unit.differ()) summary_.unit = group_.unit.value_or(CountUnit::total);
    summary_.rule = group_.rule.value_or(std::nullopt);
    summary_.shape = group_.shape.value_or(DraftShape::unknown);
    if (const auto verified = group_.verified.value_or(std::nullopt)) {
      summary_.verified_per_round = static_cast<double>(*verified);
    }
    if (summary_.shape == DraftShape::chain && !group_.fixed_gamma.differ()) {
      summary_.gamma = group_.fixed_gamma.value_or(std::nullopt);
      summary_.fixed_length = summary_.gamma.has_value();
      infer_gamma();
    }
    if (group_.unit.differ()) {
      warn("mixed_units", "requests, windows, runs or totals were summed: the same rounds may have been counted twice");
    }
    if (group_.rule.differ()) warn("mixed_rules", "units have different acceptance rules, or some have none: unknown");
    if (group_.shape.differ()) {
      warn("mixed_shapes", "units have different shapes of drafts, or some have none: no alpha is given");
    } else if (summary_.shape == DraftShape::unknown) {
      warn("shape_unknown", "whether drafts are chains or trees is unknown: no alpha is given; say --at or --tree");
    } else if (summary_.shape == DraftShape::tree) {
      warn("tree", "drafts are trees: acceptance is given by depth, and there is no alpha of a chain");
    }
    for (const auto& [name, total] : {std::pair("rounds", group_.rounds), std::pair("drafted", group_.drafted),
                                      std::pair("accepted", group_.accepted)}) {
      if (total.units > 0 && total.units < group_.counted) {
        warn("counts_missing", fmt::format("{} is the sum of {} of {} units: the others do not give it", name,
                                           total.units, group_.counted));
      }
    }
    if (group_.with_positions > 0 && group_.with_positions < group_.counted) {
      warn("positions_missing",
           fmt::format("acceptance by position is that of {} of {} units: the others do not give it",
                       group_.with_positions, group_.counted));
    }
  }

  /// llama.cpp's drafts are as long as its options state, except at the ends of answers: their mean lies just below an
  /// integer.
  void infer_gamma() {
    const CountedGroup::WithoutGamma& drafts = group_.without_gamma;
    if (drafts.units == 0 || drafts.units < group_.counted) return;
    const auto gamma = static_cast<double>(drafts.least_gamma);
    constexpr double just_below = 0.25;
    const bool of_ends = drafts.least_gamma <= drafts.most_gamma;
    if (!of_ends || gamma * drafts.rounds - drafts.drafted > just_below * drafts.rounds) return;
    summary_.gamma = summary_.longest_draft = drafts.least_gamma;
    summary_.fixed_length = gamma_inferred_ = true;
    warn(
        "gamma_inferred",
        fmt::format("gamma is taken as {}: {:.4g} tokens were drafted a round, which falls short of it by no more than "
                    "what the ends of answers cut off; --at says another one",
                    drafts.least_gamma, drafts.drafted / drafts.rounds));
  }

  void find_basis() {
    summary_.clusters = tally_.accepted_per_round.clusters();
    if (summary_.clusters == 0) summary_.clusters = tally_.accepted_per_drafted.clusters();
    if (summary_.clusters >= 2) {
      const bool windows = summary_.unit == CountUnit::window;
      summary_.basis = windows ? IntervalBasis::batch_means : IntervalBasis::clusters;
    } else if (tally_.accepted_per_round.clusters() == 1) {
      summary_.basis = IntervalBasis::iid_rounds;
    }
  }

  /// Intervals hold that windows resemble their neighbours, as their accepted drafts a round do.
  void find_neighbours() {
    if (summary_.basis != IntervalBasis::batch_means) return;
    const ClusterMoments& all = tally_.accepted_per_round;
    if (!(all.denominator() > 0)) return;
    const double mean = all.numerator() / all.denominator();
    std::vector<std::vector<double>> residuals;
    for (const auto& [labels, series] : summary_.unweighted_means ? group_.series_of_means : group_.series) {
      std::vector<double>& its = residuals.emplace_back();
      for (const ClusterSums& cell : series.cells()) {
        if (cell.rounds > 0) its.push_back(cell.accepted - mean * cell.rounds);
      }
    }
    neighbours_ = neighbour_correlation(residuals);
    tally_.resemble(neighbours_);
  }

  bool few_clusters() const { return summary_.clusters < few_sequences; }

  static Interval t_interval_above(double value, const StandardError& error, double lo) {
    const Interval interval = t_interval(value, error);
    return {std::max(interval.lo, lo), interval.hi};
  }

  /// By clusters, never narrower than for independent rounds while clusters or events are few.
  std::optional<Interval> interval(double value, const Ratio& ratio) const {
    if (ratio.clusters.clusters() < 2) return ratio.iid;
    const std::optional<StandardError> error = standard_error(ratio.clusters);
    if (!error) return ratio.iid;
    const Interval by_clusters = std::isinf(ratio.hi) ? t_interval_above(value, *error, ratio.lo)
                                                      : bounded_t_interval(value, *error, ratio.lo, ratio.hi);
    if ((few_clusters() || ratio.rare) && ratio.iid) return hull(by_clusters, *ratio.iid);
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
      const double rounds = sum_of_counts(histogram);
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

  /// Tokens per step of independent rounds, whose variance is `design_effect` times that of the rounds.
  std::optional<Interval> tokens_of_independent_rounds(double design_effect) const {
    const std::optional<double> variance = variance_of_accepted();
    if (!variance) return std::nullopt;
    const double rounds = rounds_of_one_ * tally_.accepted_per_round.denominator() / design_effect;
    const double most = most_tokens();
    if (*variance > 0) {
      return bounded_t_interval(tokens_, {std::sqrt(*variance / rounds), std::max(1.0, rounds - 1)}, 1, most);
    }
    if (!summary_.gamma || *summary_.gamma < 1) return std::nullopt;
    // All rounds alike: that many trials without a failure, or without a success; otherwise the variance is unknown.
    const double accepted = tokens_ - 1;
    if (accepted > 0 && tokens_ < most) return std::nullopt;
    const double trials = accepted > 0 ? accepted * rounds : rounds;
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

  void find_tokens_per_step() {
    const ClusterMoments& clusters = tally_.accepted_per_round;
    if (clusters.clusters() == 0) return;
    tokens_ = 1 + clusters.numerator() / clusters.denominator();
    // The same clusters counted as tokens, so that the interval lies in [1, gamma + 1].
    const std::optional<Interval> iid = tokens_of_independent_rounds(1);
    const double rejecting = rounds_of_one_ * clusters.denominator() * (most_tokens() - tokens_);
    const bool rare = rounds_of_one_ * clusters.numerator() < few_rejections || rejecting < few_rejections;
    const Ratio ratio{clusters, 1, most_tokens(), iid, rare};
    summary_.tokens_per_step = Estimate{tokens_, widened_by_rounding(interval(tokens_, ratio)), method(clusters)};
    if (const auto error = standard_error(clusters); error && clusters.clusters() >= 2) {
      const std::optional<double> variance = variance_of_accepted();
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
    return Interval{std::max(1.0, ci95->lo - below), std::min(most_tokens(), ci95->hi + above)};
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
      if (const auto tokens = tokens_of_independent_rounds(1)) {
        const auto gamma = static_cast<double>(*summary_.gamma);
        iid = Interval{(tokens->lo - 1) / gamma, (tokens->hi - 1) / gamma};
      }
    }
    const bool few = rounds_known ? rare_rounds_ : rare(drafts.numerator(), drafts.denominator());
    summary_.draft_acceptance_rate = Estimate{rate, interval(rate, {drafts, 0, 1, iid, few}), method(drafts)};
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
      const double rounds = sum_of_counts(group_.rounds_by_accepted);
      position.accepted = reached ? tally_.survival[i].numerator() : 0;
      const double survival = std::clamp(position.accepted / rounds, 0.0, 1.0);
      const Interval iid = clopper_pearson_interval_of_share(std::min(position.accepted, rounds), rounds);
      const ClusterMoments none;
      const ClusterMoments& clusters = reached ? tally_.survival[i] : none;
      position.survival = {survival, interval(survival, {clusters, 0, 1, iid, rare(position.accepted, rounds)}),
                           method(clusters)};
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
    std::vector<double> gradient(static_cast<std::size_t>(moments.positions()));
    gradient[static_cast<std::size_t>(position.position - 1)] = 1;
    Estimate conditional{rate, iid, std::string(name_of(IntervalBasis::iid_rounds))};
    if (const auto error = moments.standard_error(gradient)) {
      conditional.ci95 = bounded_t_interval(rate, *error, 0, 1);
      if (few_clusters() || rare(accepted, looked_at)) conditional.ci95 = hull(*conditional.ci95, iid);
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
    rate.method = method(low);
    rate.ci95_iid_rounds = trials_interval(low, high, 1);
    rate.ci95_design_effect_3 = trials_interval(low, high, 3);
    const auto part = [&](const ClusterMoments& clusters, double value) {
      const double rejections = clusters.denominator() - clusters.numerator();
      const bool few = clusters.numerator() < few_rejections || rejections < few_rejections;
      return interval(value, {clusters, 0, 1, rate.ci95_iid_rounds, few});
    };
    const auto lowest = part(low, rate.bounds.lo);
    const auto highest = part(high, rate.bounds.hi);
    if (lowest && highest) rate.ci95 = hull(*lowest, *highest);
    summary_.alpha_hat = std::move(rate);
    if (known) return;
    warn("alpha_bounded",
         group_.by_moments + group_.exact == group_.counted
             ? "units draft different numbers of tokens, and some do not say how often all were accepted: alpha is "
               "given within bounds; group them by gamma"
             : "draft lengths vary, and how long each was is unknown: alpha is given within bounds");
  }

  static Interval trials_interval(const ClusterMoments& low, const ClusterMoments& high, double design_effect) {
    const auto of = [&](const ClusterMoments& trials) {
      return clopper_pearson_interval_of_share(std::min(trials.numerator(), trials.denominator()) / design_effect,
                                               trials.denominator() / design_effect);
    };
    return hull(of(low), of(high));
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
    if (const auto tokens = tokens_of_independent_rounds(1)) rate.ci95_iid_rounds = inverted(*tokens);
    if (const auto tokens = tokens_of_independent_rounds(3)) rate.ci95_design_effect_3 = inverted(*tokens);
    summary_.alpha_hat = std::move(rate);
    warn("moment_inversion",
         "how often all drafts of a round were accepted is unknown: alpha is the rate that gives the tokens per step, "
         "which is approximate where acceptance varies");
  }

  /// Examined drafts.
  struct Trials {
    double looked_at = 0, accepted = 0;
    /// Of its positions.
    std::int64_t first = 1, last = 1;
  };

  /// The positions, with neighbours merged until one rate expects enough of both outcomes; the remainder at the end
  /// joins the last cell.
  std::vector<Trials> homogeneity_cells(double alpha) const {
    const RoundMoments& moments = tally_.moments;
    std::vector<Trials> cells;
    Trials open;
    for (std::int64_t j = 1; j <= moments.positions(); ++j) {
      open.looked_at += moments.evaluated(j);
      open.accepted += moments.accepted(j);
      open.last = j;
      if (open.looked_at * std::min(alpha, 1 - alpha) < least_expected_count) continue;
      cells.push_back(open);
      open = {0, 0, j + 1, j + 1};
    }
    if (!cells.empty()) {
      cells.back().looked_at += open.looked_at;
      cells.back().accepted += open.accepted;
      cells.back().last = moments.positions();
    }
    return cells;
  }

  /// Adds the change of the rate of a cell's trials to a gradient over the positions' rates.
  void add_cell(const Trials& cell, double factor, std::vector<double>& gradient) const {
    for (std::int64_t j = cell.first; j <= cell.last; ++j) {
      gradient[static_cast<std::size_t>(j - 1)] += factor * tally_.moments.evaluated(j) / cell.looked_at;
    }
  }

  /// The covariances over clusters of the cells' deviations from the common rate, in standard errors of independent
  /// rounds; empty for fewer than two clusters.
  /// Shape: (cells, cells)
  std::vector<double> deviations_over_clusters(const std::vector<Trials>& cells, double alpha) const {
    const RoundMoments& moments = tally_.moments;
    double trials = 0;
    for (const Trials& cell : cells) trials += cell.looked_at;
    std::vector<std::vector<double>> gradients;
    for (const Trials& cell : cells) {
      std::vector<double>& gradient = gradients.emplace_back(static_cast<std::size_t>(moments.positions()));
      const double scale = std::sqrt(cell.looked_at / (alpha * (1 - alpha)));
      add_cell(cell, scale, gradient);
      for (const Trials& other : cells) add_cell(other, -scale * other.looked_at / trials, gradient);
    }
    const auto variance_of = [&](const std::vector<double>& gradient) {
      const auto error = moments.standard_error(gradient);
      return error ? error->value * error->value : 0;
    };
    if (!moments.standard_error(gradients.front())) return {};
    std::vector<double> covariances(cells.size() * cells.size());
    for (std::size_t a = 0; a < cells.size(); ++a) {
      for (std::size_t b = 0; b < cells.size(); ++b) {
        std::vector<double> sum = gradients[a], difference = gradients[a];
        for (std::size_t j = 0; j < sum.size(); ++j) {
          sum[j] += gradients[b][j];
          difference[j] -= gradients[b][j];
        }
        covariances[a * cells.size() + b] = (variance_of(sum) - variance_of(difference)) / 4;
      }
    }
    return covariances;
  }

  void find_p_value(const std::vector<Trials>& cells, double alpha, HomogeneityTest& test) const {
    const auto degrees = static_cast<double>(test.degrees_of_freedom);
    const boost::math::chi_squared law(degrees);
    test.p_value = boost::math::cdf(boost::math::complement(law, test.chi_square));
    double sum = 0, squares = 0;
    const std::vector<double> covariances = deviations_over_clusters(cells, alpha);
    for (const double covariance : covariances) squares += covariance * covariance;
    for (std::size_t i = 0; i < covariances.size(); i += cells.size() + 1) sum += covariances[i];
    if (!(squares > 0)) return;
    test.design_effect = sum / degrees;
    if (*test.design_effect <= 1) return;
    const double freedom = sum * sum / squares;
    const boost::math::fisher_f over_clusters(freedom, freedom * static_cast<double>(tally_.moments.clusters() - 1));
    test.p_value = boost::math::cdf(boost::math::complement(over_clusters, test.chi_square / sum));
  }

  void find_homogeneity() {
    if (!summary_.alpha_hat || summary_.alpha_hat->estimator != "censored_geometric") return;
    const double alpha = *summary_.alpha_hat->value;
    if (!(0 < alpha && alpha < 1)) return;
    const std::vector<Trials> cells = homogeneity_cells(alpha);
    if (cells.size() < 2) return;
    HomogeneityTest test;
    test.degrees_of_freedom = std::ssize(cells) - 1;
    for (const Trials& cell : cells) {
      test.chi_square += std::pow(cell.accepted - alpha * cell.looked_at, 2) / (cell.looked_at * alpha * (1 - alpha));
    }
    find_p_value(cells, alpha, test);
    test.tokens_per_step_observed = tokens_;
    const double rounds = sum_of_counts(group_.rounds_by_drafted);
    test.tokens_per_step_constant = 0;
    for (std::size_t length = 0; length < group_.rounds_by_drafted.size(); ++length) {
      if (!(group_.rounds_by_drafted[length] > 0)) continue;
      test.tokens_per_step_constant +=
          group_.rounds_by_drafted[length] / rounds *
          theory::expected_tokens(core::AcceptanceRate(alpha), static_cast<std::int64_t>(length));
    }
    summary_.homogeneity = test;
  }

  /// A false alarm in at most one of 100 series of independent windows: sqrt(n) times the correlation without the
  /// correction of its bias is nearly standard normal.
  void warn_of_alike_windows() {
    constexpr double one_in_100 = 2.33;
    const auto windows = static_cast<double>(summary_.clusters);
    if (neighbours_.value * (1 - 3 / windows) * std::sqrt(windows) < one_in_100) return;
    const StandardError error = of_neighbours({1, windows - 1}, summary_.clusters, neighbours_);
    warn(
        "windows_alike",
        fmt::format("neighbouring windows resemble each other (correlation {:.2f} over {}): standard errors are {:.1f} "
                    "times those of independent windows, of which {:.2g} would tell as much, and intervals may still "
                    "cover less than 95%; a longer record tells more",
                    neighbours_.value, summary_.clusters, error.value, windows / neighbours_.variance_inflation()));
  }

  void warn_of_basis() {
    if (summary_.basis == IntervalBasis::iid_rounds) {
      warn("iid_rounds",
           summary_.unit == CountUnit::request
               ? "the intervals are those of the rounds of one request, which say nothing of how requests differ: a "
                 "plan "
                 "takes any acceptance as possible until there are two"
               : "the intervals take rounds as independent and are a lower bound on the width: rounds of one request "
                 "resemble each other. Counts by request, or several scrapes, give better ones");
    } else if (summary_.basis != IntervalBasis::none && few_clusters()) {
      warn("few_clusters", fmt::format("the intervals rest on {} clusters: below {} they may cover less than 95%",
                                       summary_.clusters, few_sequences));
    }
    if (summary_.basis == IntervalBasis::batch_means) warn_of_alike_windows();
    if (summary_.from_rates) {
      const bool several = group_.least_rounds < group_.most_rounds;
      warn("from_rates", "some counts were computed back from rounded rates" +
                             (several ? fmt::format(": {:.6g} to {:.6g} rounds, by which the intervals are wider",
                                                    group_.least_rounds, group_.most_rounds)
                                      : std::string()));
    }
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

std::string_view name_of(IntervalBasis basis) {
  switch (basis) {
    case IntervalBasis::iid_rounds:
      return "iid_rounds";
    case IntervalBasis::clusters:
      return "clusters";
    case IntervalBasis::batch_means:
      return "batch_means";
    case IntervalBasis::none:
      break;
  }
  return "none";
}

std::string_view label_value(const ServingCounts& counts, const LabelGroups& by) {
  if (by.label == "file") return counts.file.native();
  return by.label.empty() ? std::string_view() : counts.label(by.label);
}

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
    ServingSummary& summary = summaries.emplace_back();
    summary.model_name = key.first;
    if (!groups_->options.by.label.empty()) summary.group = key.second;
    Summarising(group, summary).run();
  }
  return summaries;
}

}  // namespace specdec::estimate
