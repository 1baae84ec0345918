#include "analysis/estimate/acceptance_estimates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/estimate/acceptance_counts.hpp"

namespace specdec::estimate {
namespace {

Interval in_unit_interval(const Interval& interval) {
  return {std::clamp(interval.lo, 0.0, 1.0), std::clamp(interval.hi, 0.0, 1.0)};
}

/// The number of independent yes-or-no trials that the positions are worth: as many as would give this standard error,
/// and never more than there are.
double effective_trials(double rate, double positions, double error) {
  const double of_one = rate * (1 - rate);
  if (!(of_one > 0) || !(error > 0)) return positions;
  return std::min(positions, of_one / (error * error));
}

Interval rate_interval(double rate, double positions, const StandardError& error, bool few) {
  const Interval interval = bounded_t_interval(rate, error, 0, 1);
  if (!few) return interval;
  return hull(interval, wilson_interval_of_share(rate, effective_trials(rate, positions, error.value)));
}

/// The units that the intervals are over.
std::string units_of(std::int64_t clusters, bool prompts, bool bucketed) {
  if (bucketed) return fmt::format("{} groups of {}", clusters, prompts ? "prompts" : "sequences");
  return fmt::format("{} {}", clusters, prompts ? "prompts" : "sequences");
}

std::string method_of(std::int64_t sequences, std::int64_t batches, const std::string& units, bool few) {
  std::string method = sequences == 1 && batches < 2 ? "mean of one sequence, too short for an interval"
                       : sequences == 1 ? fmt::format("means of {} batches of one sequence, Student's t", batches)
                       : fmt::format("ratio of sums over {}, Student's t", units);
  if (few && (sequences > 1 || batches > 1)) method += ", not narrower than Wilson on the effective count";
  return method;
}

std::vector<std::string> limits_of(const AcceptanceEstimate& rate, double acceptances) {
  std::vector<std::string> notes;
  if (rate.sequences == 1) {
    notes.emplace_back("one sequence: the interval takes it for typical of all others");
  } else if (rate.clusters == 1) {
    notes.push_back(
        fmt::format("all {} sequences continue one prompt: of other prompts they say nothing, and there is "
                    "no interval",
                    rate.sequences));
  }
  if (rate.rejections < few_rejections) {
    notes.push_back(
        fmt::format("{:.3g} expected rejections: below {:g} the interval is wide and may cover less than "
                    "95% where rejections come in bursts",
                    rate.rejections, few_rejections));
  }
  if (acceptances < few_rejections) {
    notes.push_back(
        fmt::format("{:.3g} expected acceptances: below {:g} the interval is wide and may cover less than "
                    "95% where acceptances come in bursts",
                    acceptances, few_rejections));
  }
  return notes;
}

/// For the middle of brackets.
std::optional<LengthDependence> length_dependence_of(std::span<const Cluster> clusters) {
  std::vector<RatioTerm> terms;
  for (const Cluster& c : clusters) terms.push_back({(c.sums[0] + c.sums[1]) / 2, c.sums[2]});
  return length_dependence(terms);
}

}  // namespace

bool AcceptanceEstimate::few_clusters() const {
  // Enough up to rounding.
  constexpr double enough = static_cast<double>(few_sequences) * (1 - 1e-9);
  return degrees_of_freedom && (effective_clusters < enough || *degrees_of_freedom < enough - 1);
}

void RateAccumulator::Group::add_to_first(double low, double high) {
  lower_batches.add(low, 1);
  upper_batches.add(high, 1);
}

void RateAccumulator::Group::close(bool has_prompt) {
  texts_without_prompt += has_prompt ? 0 : 1;
  if (++texts == 1) {
    lower_of_first = lower_batches.moments();
    upper_of_first = upper_batches.moments();
    lower_batches = {};
    upper_batches = {};
  }
  open = {};
}

void RateAccumulator::Group::merge(const Group& other) {
  if (texts == 0) {
    lower_of_first = other.lower_of_first;
    upper_of_first = other.upper_of_first;
  }
  texts += other.texts;
  texts_without_prompt += other.texts_without_prompt;
}

AcceptanceEstimate RateAccumulator::estimate(const Group& group, const std::vector<Cluster>& clusters) const {
  AcceptanceEstimate result;
  const RatioSums low_sums = ratio_sums(clusters, 0, 2);
  const RatioSums high_sums = ratio_sums(clusters, 1, 2);
  const double positions = low_sums.denominator;
  result.positions = std::llround(positions);
  result.sequences = group.texts;
  result.clusters = std::ssize(clusters);
  result.prompts = prompts_;
  result.texts_without_prompt = group.texts_without_prompt;
  result.bounds = in_unit_interval({low_sums.numerator / positions, high_sums.numerator / positions});
  if (!bracketed_) result.value = result.bounds.lo;
  const double acceptances = (low_sums.numerator + high_sums.numerator) / 2;
  result.rejections = positions - acceptances;
  const bool few = std::min(acceptances, result.rejections) < few_rejections;

  const bool single = result.sequences == 1;
  const auto low = single ? standard_error(group.lower_of_first) : standard_error(low_sums.clusters);
  const auto high = single ? standard_error(group.upper_of_first) : standard_error(high_sums.clusters);
  if (low && high) {
    result.ci95 = hull(rate_interval(result.bounds.lo, positions, *low, few),
                       rate_interval(result.bounds.hi, positions, *high, few));
  }
  result.effective_clusters = effective_clusters(low_sums.clusters);
  if (low && high && !single) {
    result.degrees_of_freedom = std::min(low->degrees_of_freedom, high->degrees_of_freedom);
    result.length_dependence = length_dependence_of(clusters);
  }
  result.method = method_of(result.sequences, group.lower_of_first.clusters(),
                            units_of(result.clusters, prompts_, clusters_.bucketed()), few);
  result.notes = limits_of(result, acceptances);
  return result;
}

void RateAccumulator::add(const PositionLabels& labels, std::span<const double> lower, std::span<const double> upper,
                          std::int64_t stride) {
  if (!upper.empty()) bracketed_ = true;
  const std::span<const double> highest = upper.empty() ? lower : upper;
  const auto step = static_cast<std::size_t>(stride);
  for (std::size_t begin = 0, end = 0; begin < labels.size(); begin = end) {
    const auto same_run = [&](std::size_t i) {
      return labels.sequence[i] == labels.sequence[begin] && labels.task_of(i) == labels.task_of(begin);
    };
    while (end < labels.size() && same_run(end)) ++end;
    if (labels.sequence[begin] != sequence_) close_text();
    has_prompt_ = labels.has_prompt(begin);
    prompts_ = prompts_ || has_prompt_;
    add_run(labels.cluster(begin), labels.sequence[begin], labels.task_of(begin),
            lower.subspan(begin * step, (end - begin) * step), highest.subspan(begin * step, (end - begin) * step),
            stride);
  }
}

void RateAccumulator::add_run(std::uint64_t cluster, std::int64_t sequence, std::int32_t task,
                              std::span<const double> lower, std::span<const double> upper, std::int64_t stride) {
  sequence_ = sequence;
  cluster_ = cluster;
  Group& group = tasks_[task];
  const auto step = static_cast<std::size_t>(stride);
  // In the order of the positions, whatever the batches: sums do not depend on where the batches are cut.
  Sums open = group.open;
  for (std::size_t i = 0; i < lower.size(); i += step) {
    if (std::isnan(lower[i]) || std::isnan(upper[i])) {
      ++unknown_;
      continue;
    }
    open.lower += lower[i];
    open.upper += upper[i];
    open.count += 1;
    if (all_.texts == 0) all_.add_to_first(lower[i], upper[i]);
    if (group.texts == 0) group.add_to_first(lower[i], upper[i]);
  }
  if (group.open.count == 0 && open.count > 0) open_tasks_.push_back(task);
  group.open = open;
}

void RateAccumulator::close_text() {
  if (!open_tasks_.empty()) all_.close(has_prompt_);
  for (const std::int32_t task : open_tasks_) {
    const Sums& sums = tasks_[task].open;
    clusters_.add(cluster_, task, std::array{sums.lower, sums.upper, sums.count});
    tasks_[task].close(has_prompt_);
  }
  open_tasks_.clear();
}

void RateAccumulator::merge(RateAccumulator other) {
  close_text();
  other.close_text();
  all_.merge(other.all_);
  for (const auto& [task, group] : other.tasks_) tasks_[task].merge(group);
  clusters_.merge(other.clusters_);
  prompts_ = prompts_ || other.prompts_;
  bracketed_ = bracketed_ || other.bracketed_;
  unknown_ += other.unknown_;
}

std::optional<AcceptanceEstimate> RateAccumulator::overall() const {
  RateAccumulator closed = *this;
  closed.close_text();
  if (closed.clusters_.empty()) return std::nullopt;
  AcceptanceEstimate result = closed.estimate(closed.all_, closed.clusters_.clusters());
  if (unknown_ > 0) {
    result.notes.push_back(fmt::format("the rate is that of {} of {} positions; the others have no value",
                                       result.positions, result.positions + unknown_));
  }
  return result;
}

bool RateAccumulator::tasks_share_clusters() const {
  RateAccumulator closed = *this;
  closed.close_text();
  // A text counts once in each of its tasks.
  const bool texts = closed.clusters_.texts() > closed.all_.texts;
  return texts || (closed.prompts_ && closed.clusters_.tasks_may_share());
}

std::map<std::int32_t, AcceptanceEstimate> RateAccumulator::by_task() const {
  RateAccumulator closed = *this;
  closed.close_text();
  std::map<std::int32_t, AcceptanceEstimate> estimates;
  if (closed.tasks_.size() == 1 && closed.tasks_.begin()->first == -1) return estimates;
  for (const std::vector<Cluster>& clusters : closed.clusters_.by_task()) {
    const std::int32_t task = clusters.front().task;
    estimates.emplace(task, closed.estimate(closed.tasks_[task], clusters));
  }
  return estimates;
}

void AcceptanceAccumulator::add(const Observations& observations) {
  const PositionLabels labels = observations.labels();
  const auto track = [&](RateAccumulator& rate, const Bracketed& column, std::int64_t stride) {
    if (column.empty()) return rate.skip(observations.size);
    rate.add(labels, column.lower, column.upper, stride);
  };
  track(mean_, observations.mean_acceptance, 1);
  track(emitted_, observations.acceptance, observations.depths);
  for (std::size_t rule = 0; rule < rules_.size(); ++rule) track(rules_[rule], observations.by_rule[rule], 1);
  positions_ += observations.size;
  for (const std::int64_t s : observations.sequence) {
    if (s != last_sequence_) ++sequences_;
    last_sequence_ = s;
  }
}

void AcceptanceAccumulator::merge(const AcceptanceAccumulator& other) {
  mean_.merge(other.mean_);
  emitted_.merge(other.emitted_);
  for (std::size_t rule = 0; rule < rules_.size(); ++rule) rules_[rule].merge(other.rules_[rule]);
  positions_ += other.positions_;
  sequences_ += other.sequences_;
}

std::optional<AcceptanceEstimate> AcceptanceAccumulator::by_rule(traces::AcceptanceRule rule) const {
  return rules_[static_cast<std::size_t>(rule)].overall();
}

}  // namespace specdec::estimate
