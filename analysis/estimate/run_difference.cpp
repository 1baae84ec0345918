#include "analysis/estimate/run_difference.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>

#include "analysis/core/normal_interval.hpp"
#include "analysis/core/tails.hpp"
#include "analysis/estimate/unit_counts.hpp"

namespace specdec::estimate {
namespace {

/// The standard normal quantile of a power of 80%.
constexpr double quantile_of_power = 0.8416212335729143;

/// Differences up to this are those of figures stored in single precision.
constexpr double least_difference = 1e-6;

/// The units of one prompt, or one whose prompt is unknown.
struct RunCluster {
  double rounds = 0, accepted = 0, seconds = 0;
  RatioTerm other_rule;
  std::vector<double> survived;
  /// Rounds and accepted drafts by group.
  std::map<std::string, RatioTerm> groups;
};

struct GroupSums {
  std::int64_t units = 0;
  double rounds = 0, accepted = 0;
};

class Run {
 public:
  explicit Run(std::span<const RunUnit> units) : units_(std::ssize(units)) {
    if (units.empty()) throw std::invalid_argument("run_difference: a run is empty, but must have a unit");
    std::int64_t number = 0;
    for (const RunUnit& unit : units) {
      if (!(unit.rounds > 0)) {
        throw std::invalid_argument(fmt::format("run_difference: rounds is {}, but must be above 0", unit.rounds));
      }
      // A prompt's own name cannot begin so.
      add(unit, unit.prompt.empty() ? std::string(1, '\0') + std::to_string(number++) : unit.prompt);
    }
  }

  std::int64_t units() const { return units_; }
  std::int64_t clusters() const { return std::ssize(clusters_); }
  const std::map<std::string, RunCluster>& by_prompt() const { return clusters_; }
  const std::map<std::string, GroupSums>& groups() const { return groups_; }
  double rounds() const { return rounds_; }
  double tokens() const { return 1 + accepted_ / rounds_; }
  bool counts_positions() const { return counts_positions_; }
  bool is_timed() const { return is_timed_; }
  bool has_other_rule() const { return has_other_rule_; }
  bool is_grouped() const { return groups_.size() > 1 || !groups_.begin()->first.empty(); }
  std::size_t positions() const { return survived_.size(); }
  double survival(std::size_t j) const { return j < survived_.size() ? survived_[j] / rounds_ : 0; }
  std::int64_t units_of(const std::string& group) const { return sums_of(group).units; }
  double share(const std::string& group) const { return sums_of(group).rounds / rounds_; }
  std::optional<double> tokens_of(const std::string& group) const {
    const GroupSums of = sums_of(group);
    return of.units > 0 ? std::optional(1 + of.accepted / of.rounds) : std::nullopt;
  }
  double seconds_per_round() const { return seconds_ / rounds_; }
  double seconds_per_token() const { return seconds_per_round() / tokens(); }
  double tokens_by_other_rule() const { return 1 + other_rule_.numerator / other_rule_.denominator; }

  /// Influences of a cluster.
  double of_tokens(const RunCluster& k) const { return (k.accepted - (tokens() - 1) * k.rounds) / rounds_; }
  double of_survival(const RunCluster& k, std::size_t j) const {
    return ((j < k.survived.size() ? k.survived[j] : 0) - survival(j) * k.rounds) / rounds_;
  }
  double of_share(const RunCluster& k, const std::string& group) const {
    return (in(k, group).denominator - share(group) * k.rounds) / rounds_;
  }
  double of_tokens_in(const RunCluster& k, const std::string& group) const {
    const GroupSums of = sums_of(group);
    if (of.units == 0) return 0;
    const RatioTerm own = in(k, group);
    return (own.numerator - of.accepted / of.rounds * own.denominator) / of.rounds;
  }
  double of_log_round(const RunCluster& k) const { return (k.seconds - seconds_per_round() * k.rounds) / seconds_; }
  double of_log_tokens(const RunCluster& k) const { return of_tokens(k) / tokens(); }
  double of_other_rule(const RunCluster& k) const {
    return (k.other_rule.numerator - (tokens_by_other_rule() - 1) * k.other_rule.denominator) / other_rule_.denominator;
  }
  /// The factor of an influence with which squares add up to the variance with each cluster left out in turn.
  double correction(const RunCluster& k) const {
    const auto count = static_cast<double>(clusters_.size());
    return std::sqrt((count - 1) / count) / (1 - k.rounds / rounds_);
  }

 private:
  /// Nothing of a group that the run has not.
  GroupSums sums_of(const std::string& group) const {
    const auto found = groups_.find(group);
    return found == groups_.end() ? GroupSums() : found->second;
  }
  static RatioTerm in(const RunCluster& k, const std::string& group) {
    const auto found = k.groups.find(group);
    return found == k.groups.end() ? RatioTerm{} : found->second;
  }

  void add(const RunUnit& unit, const std::string& prompt) {
    RunCluster& cluster = clusters_[prompt];
    cluster.rounds += unit.rounds;
    cluster.accepted += unit.accepted;
    cluster.seconds += unit.seconds.value_or(0);
    traces::add_counts(cluster.survived, unit.survived);
    RatioTerm& own = cluster.groups[unit.group];
    own.denominator += unit.rounds;
    own.numerator += unit.accepted;
    GroupSums& group = groups_[unit.group];
    ++group.units;
    group.rounds += unit.rounds;
    group.accepted += unit.accepted;
    if (unit.other_rule) {
      for (RatioTerm* sum : {&cluster.other_rule, &other_rule_}) {
        sum->numerator += unit.other_rule->numerator;
        sum->denominator += unit.other_rule->denominator;
      }
    }
    rounds_ += unit.rounds;
    accepted_ += unit.accepted;
    seconds_ += unit.seconds.value_or(0);
    traces::add_counts(survived_, unit.survived);
    counts_positions_ = counts_positions_ && (!unit.survived.empty() || unit.accepted == 0);
    is_timed_ = is_timed_ && unit.seconds && *unit.seconds > 0;
    has_other_rule_ = has_other_rule_ && unit.other_rule;
  }

  std::int64_t units_;
  std::map<std::string, RunCluster> clusters_;
  std::map<std::string, GroupSums> groups_;
  double rounds_ = 0, accepted_ = 0, seconds_ = 0;
  std::vector<double> survived_;
  RatioTerm other_rule_;
  bool counts_positions_ = true, is_timed_ = true, has_other_rule_ = true;
};

/// One part of a variance: that of the clusters of both runs, of the first alone, or of the second alone.
struct VariancePart {
  double squares = 0;
  std::int64_t clusters = 0;

  void add(double deviation) {
    squares += deviation * deviation;
    ++clusters;
  }
};

std::optional<StandardError> standard_error_of(const std::array<VariancePart, 3>& parts) {
  double variance = 0, spread = 0;
  for (const VariancePart& part : parts) {
    variance += part.squares;
    if (part.clusters > 0) {
      spread += part.squares * part.squares / std::max(1.0, static_cast<double>(part.clusters) - 1);
    }
  }
  if (!(variance > 0)) return StandardError{0, 1};
  return StandardError{std::sqrt(variance), variance * variance / spread};
}

/// The two runs as one sample of clusters.
class Pair {
 public:
  Pair(const Run& a, const Run& b) : a_(a), b_(b) {}

  /// @param influence  of a cluster on the difference by its part in a run, whose figure counts -1 or 1 times
  template <class Influence>
  std::optional<StandardError> standard_error(const Influence& influence) const {
    if (a_.clusters() < 2 || b_.clusters() < 2) return std::nullopt;
    const auto of_a = [&](const RunCluster& k) { return a_.correction(k) * influence(a_, k, -1.0); };
    const auto of_b = [&](const RunCluster& k) { return b_.correction(k) * influence(b_, k, 1.0); };
    std::array<VariancePart, 3> parts;
    for (const auto& [prompt, cluster] : a_.by_prompt()) {
      if (const RunCluster* const other = in_b(prompt)) {
        parts[0].add(of_a(cluster) + of_b(*other));
      } else {
        parts[1].add(of_a(cluster));
      }
    }
    for (const auto& [prompt, cluster] : b_.by_prompt()) {
      if (!in_a(prompt)) parts[2].add(of_b(cluster));
    }
    return standard_error_of(parts);
  }

  template <class Influence>
  Difference difference(double value, const Influence& influence) const {
    const auto error = standard_error(influence);
    if (!error) return {value, std::nullopt, std::nullopt};
    if (std::abs(value) <= least_difference) return {value, t_interval(value, *error), 1};
    return {value, t_interval(value, *error), p_value(value, *error)};
  }

  std::int64_t paired() const {
    return std::count_if(a_.by_prompt().begin(), a_.by_prompt().end(),
                         [&](const auto& entry) { return in_b(entry.first) != nullptr; });
  }

 private:
  static double p_value(double value, const StandardError& error) {
    if (error.value == 0) return value == 0 ? 1 : 0;
    return 2 * core::t_tail(std::abs(value) / error.value, error.degrees_of_freedom);
  }
  static bool is_prompt(const std::string& key) { return key.front() != '\0'; }
  const RunCluster* in_b(const std::string& prompt) const {
    const auto found = b_.by_prompt().find(prompt);
    return found != b_.by_prompt().end() && is_prompt(prompt) ? &found->second : nullptr;
  }
  bool in_a(const std::string& prompt) const { return is_prompt(prompt) && a_.by_prompt().count(prompt) == 1; }

  const Run& a_;
  const Run& b_;
};

std::vector<PositionDifference> position_differences(const Run& a, const Run& b, const Pair& pair) {
  std::vector<PositionDifference> positions;
  if (!a.counts_positions() || !b.counts_positions()) return positions;
  for (std::size_t j = 0; j < std::max(a.positions(), b.positions()); ++j) {
    const auto drafted = [j](const Run& run) {
      return j < run.positions() ? std::optional(run.survival(j)) : std::nullopt;
    };
    positions.push_back(
        {static_cast<std::int64_t>(j) + 1, drafted(a), drafted(b),
         pair.difference(b.survival(j) - a.survival(j), [j](const Run& run, const RunCluster& k, double sign) {
           return sign * run.of_survival(k, j);
         })});
  }
  return positions;
}

/// True if a group is in both: of runs that share none nothing tells a change of the mix from one of acceptance.
bool share_a_group(const Run& a, const Run& b) {
  if (!a.is_grouped() && !b.is_grouped()) return false;
  return std::any_of(a.groups().begin(), a.groups().end(), [&](const auto& one) { return b.units_of(one.first) > 0; });
}

/// Kitagawa's parts of the difference.
class GroupSplit {
 public:
  GroupSplit(const Run& a, const Run& b, const Pair& pair) : a_(a), b_(b), pair_(pair) {
    for (const Run* run : {&a, &b}) {
      for (const auto& [group, sums] : run->groups()) terms_[group];
    }
    for (auto& [group, of] : terms_) {
      const auto tokens_a = a.tokens_of(group), tokens_b = b.tokens_of(group);
      const double known_a = tokens_a ? *tokens_a : *tokens_b, known_b = tokens_b ? *tokens_b : *tokens_a;
      of = {(known_a + known_b) / 2, (a.share(group) + b.share(group)) / 2, known_b - known_a,
            b.share(group) - a.share(group)};
    }
  }

  Difference mix() const {
    double sum = 0;
    for (const auto& [group, of] : terms_) sum += of.share_gap * of.middle_tokens;
    return pair_.difference(sum,
                            [&](const Run& run, const RunCluster& k, double sign) { return of_mix(run, k, sign); });
  }
  Difference within() const {
    double sum = 0;
    for (const auto& [group, of] : terms_) sum += of.tokens_gap * of.middle_share;
    return pair_.difference(sum,
                            [&](const Run& run, const RunCluster& k, double sign) { return of_within(run, k, sign); });
  }
  std::vector<GroupDifference> groups() const {
    std::vector<GroupDifference> groups;
    for (const auto& [group, of] : terms_) {
      groups.push_back({group, a_.units_of(group), b_.units_of(group), a_.share(group), b_.share(group),
                        a_.tokens_of(group), b_.tokens_of(group), of.share_gap * of.middle_tokens,
                        acceptance_in(group)});
    }
    return groups;
  }

 private:
  struct Terms {
    double middle_tokens = 0, middle_share = 0, tokens_gap = 0, share_gap = 0;
  };

  Difference acceptance_in(const std::string& group) const {
    if (!a_.tokens_of(group) || !b_.tokens_of(group)) return {};
    const Terms& of = terms_.at(group);
    return pair_.difference(of.tokens_gap * of.middle_share, [&](const Run& run, const RunCluster& k, double sign) {
      return of_acceptance_in(run, k, sign, group, of);
    });
  }
  /// Influences of a cluster; `sign` is that of its run in the difference.
  static double of_acceptance_in(const Run& run, const RunCluster& k, double sign, const std::string& group,
                                 const Terms& of) {
    return run.of_share(k, group) * of.tokens_gap / 2 + sign * run.of_tokens_in(k, group) * of.middle_share;
  }
  double of_within(const Run& run, const RunCluster& k, double sign) const {
    double sum = 0;
    for (const auto& [group, of] : terms_) sum += of_acceptance_in(run, k, sign, group, of);
    return sum;
  }
  double of_mix(const Run& run, const RunCluster& k, double sign) const {
    double sum = 0;
    for (const auto& [group, of] : terms_) {
      sum += sign * run.of_share(k, group) * of.middle_tokens + of.share_gap * run.of_tokens_in(k, group) / 2;
    }
    return sum;
  }

  const Run& a_;
  const Run& b_;
  const Pair& pair_;
  std::map<std::string, Terms> terms_;
};

TimeDifference time_difference(const Run& a, const Run& b, const Pair& pair) {
  TimeDifference time;
  time.seconds_per_token_a = a.seconds_per_token();
  time.seconds_per_token_b = b.seconds_per_token();
  time.seconds_per_round_a = a.seconds_per_round();
  time.seconds_per_round_b = b.seconds_per_round();
  const auto round = [](const Run& run, const RunCluster& k, double sign) { return sign * run.of_log_round(k); };
  const auto tokens = [](const Run& run, const RunCluster& k, double sign) { return sign * run.of_log_tokens(k); };
  const auto per_token = [](const Run& run, const RunCluster& k, double sign) {
    return sign * (run.of_log_round(k) - run.of_log_tokens(k));
  };
  time.log_round = pair.difference(std::log(time.seconds_per_round_b / time.seconds_per_round_a), round);
  time.log_tokens = pair.difference(std::log(b.tokens() / a.tokens()), tokens);
  time.log_per_token = pair.difference(time.log_round.value - time.log_tokens.value, per_token);
  return time;
}

/// The other rule's effect is that of b's in a, and of a's in b.
Difference rule_difference(const Run& a, const Run& b, const Pair& pair) {
  const double in_a = a.tokens_by_other_rule() - a.tokens(), in_b = b.tokens_by_other_rule() - b.tokens();
  return pair.difference((in_a - in_b) / 2, [](const Run& run, const RunCluster& k, double sign) {
    return -sign * (run.of_other_rule(k) - run.of_tokens(k)) / 2;
  });
}

void take_power(const Difference& difference, const std::optional<StandardError>& error, RunDifference& result) {
  if (!error) return;
  const double found = (core::normal_half_width_95 + quantile_of_power) * error->value;
  result.detectable = found;
  if (std::abs(difference.value) <= least_difference) return;
  const auto clusters = static_cast<double>(std::max(result.clusters_a, result.clusters_b));
  result.clusters_to_tell = std::max(2.0, std::ceil(clusters * std::pow(found / difference.value, 2)));
}

}  // namespace

std::optional<RunUnit> run_unit(const traces::ServingCounts& counts, std::optional<std::int64_t> gamma,
                                const LabelGroups& by) {
  UnitCounts read;
  normalise(
      counts, {gamma, false}, [](std::string_view, const std::string&) {}, read);
  if (!read.rounds || !(*read.rounds > 0) || !read.accepted) return std::nullopt;
  RunUnit unit;
  unit.prompt = counts.id;
  if (!by.label.empty()) unit.group = by.label == "file" ? counts.file.string() : by.group_of(counts.label(by.label));
  unit.rounds = *read.rounds;
  unit.accepted = *read.accepted;
  if (read.has_positions) unit.survived = read.accepted_at;
  if (counts.bench) {
    const traces::BenchRun& run = *counts.bench;
    if (run.mean_tpot_ms && std::isfinite(*run.mean_tpot_ms)) {
      unit.seconds = *run.mean_tpot_ms / 1000 * (unit.rounds + unit.accepted);
    } else if (counts.unit == traces::CountUnit::request) {
      unit.seconds = run.duration_s;
    }
  }
  return unit;
}

std::vector<RunUnit> joined_windows(std::vector<RunUnit> units, std::size_t most) {
  if (units.size() <= most) return units;
  std::vector<RunUnit> joined;
  for (std::size_t i = 0; i < units.size(); ++i) {
    RunUnit& unit = units[i];
    if (i * most / units.size() == joined.size()) {
      joined.push_back(std::move(unit));
      continue;
    }
    RunUnit& last = joined.back();
    last.rounds += unit.rounds;
    last.accepted += unit.accepted;
    traces::add_counts(last.survived, unit.survived);
    last.seconds = last.seconds && unit.seconds ? std::optional(*last.seconds + *unit.seconds) : std::nullopt;
  }
  return joined;
}

RunDifference run_difference(std::span<const RunUnit> units_a, std::span<const RunUnit> units_b) {
  const Run a(units_a), b(units_b);
  const Pair pair(a, b);
  RunDifference result;
  result.units_a = a.units();
  result.units_b = b.units();
  result.clusters_a = a.clusters();
  result.clusters_b = b.clusters();
  result.paired = pair.paired();
  result.tokens_a = a.tokens();
  result.tokens_b = b.tokens();
  const auto of_tokens = [](const Run& run, const RunCluster& k, double sign) { return sign * run.of_tokens(k); };
  result.tokens = pair.difference(b.tokens() - a.tokens(), of_tokens);
  take_power(result.tokens, pair.standard_error(of_tokens), result);
  result.positions = position_differences(a, b, pair);
  if (share_a_group(a, b)) {
    const GroupSplit split(a, b, pair);
    result.mix = split.mix();
    result.within = split.within();
    result.groups = split.groups();
  }
  if (a.has_other_rule() && b.has_other_rule()) result.rule = rule_difference(a, b, pair);
  if (a.is_timed() && b.is_timed()) result.time = time_difference(a, b, pair);
  return result;
}

}  // namespace specdec::estimate
