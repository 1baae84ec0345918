#include "analysis/estimate/acceptance_estimates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/estimate/acceptance_counts.hpp"

namespace specdec::estimate {
namespace {

Interval in_unit_interval(const Interval& interval) {
  return {std::clamp(interval.lo, 0.0, 1.0), std::clamp(interval.hi, 0.0, 1.0)};
}

/// How many independent yes-or-no trials the positions are worth: as many as would give this standard error, and
/// never more than there are.
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

std::string method_of(std::int64_t sequences, std::int64_t batches, std::size_t strata, bool few) {
  std::string method =
      sequences == 1 && batches < 2 ? "mean of one sequence, too short for an interval"
      : sequences == 1              ? fmt::format("means of {} batches of one sequence, Student's t", batches)
      : strata > 1
          ? fmt::format("ratio of sums over {} sequences, stratified by {} tasks, Student's t", sequences, strata)
          : fmt::format("ratio of sums over {} sequences, Student's t", sequences);
  if (few && (sequences > 1 || batches > 1)) method += ", not narrower than Wilson on the effective count";
  return method;
}

std::vector<std::string> limits_of(std::int64_t sequences, double rejections, double acceptances) {
  std::vector<std::string> notes;
  if (sequences == 1) {
    notes.emplace_back("one sequence: the interval takes it for typical of all others");
  } else if (sequences < few_sequences) {
    notes.push_back(
        fmt::format("{} sequences: below {} the interval may cover less than 95%", sequences, few_sequences));
  }
  if (rejections < few_rejections) {
    notes.push_back(
        fmt::format("{:.3g} expected rejections: below {:g} the interval is wide and may cover less than "
                    "95% where rejections come in bursts",
                    rejections, few_rejections));
  }
  if (acceptances < few_rejections) {
    notes.push_back(
        fmt::format("{:.3g} expected acceptances: below {:g} the interval is wide and may cover less than "
                    "95% where acceptances come in bursts",
                    acceptances, few_rejections));
  }
  return notes;
}

}  // namespace

void RateAccumulator::Group::add(double low, double high) {
  open.lower += low;
  open.upper += high;
  open.count += 1;
  if (lower.clusters() > 0) return;
  lower_batches.add(low, 1);
  upper_batches.add(high, 1);
}

void RateAccumulator::Group::close() {
  if (open.count == 0) return;
  lower.add(open.lower, open.count);
  upper.add(open.upper, open.count);
  if (lower.clusters() == 1) {
    lower_of_first = lower_batches.moments();
    upper_of_first = upper_batches.moments();
    lower_batches = {};
    upper_batches = {};
  }
  open = {};
}

AcceptanceEstimate RateAccumulator::Group::estimate(bool bracketed, std::span<const ClusterMoments> lower_strata,
                                                    std::span<const ClusterMoments> upper_strata) const {
  AcceptanceEstimate result;
  const double positions = lower.denominator();
  result.positions = std::llround(positions);
  result.sequences = lower.clusters();
  result.bounds = in_unit_interval({lower.numerator() / positions, upper.numerator() / positions});
  if (!bracketed) result.value = result.bounds.lo;
  const double acceptances = (lower.numerator() + upper.numerator()) / 2;
  result.rejections = positions - acceptances;
  const bool few = std::min(acceptances, result.rejections) < few_rejections;

  const bool single = result.sequences == 1;
  const auto low = single ? standard_error(lower_of_first) : stratified_standard_error(lower_strata);
  const auto high = single ? standard_error(upper_of_first) : stratified_standard_error(upper_strata);
  if (low && high) {
    result.ci95 = hull(rate_interval(result.bounds.lo, positions, *low, few),
                       rate_interval(result.bounds.hi, positions, *high, few));
  }
  result.method = method_of(result.sequences, lower_of_first.clusters(), lower_strata.size(), few);
  result.notes = limits_of(result.sequences, result.rejections, acceptances);
  return result;
}

void RateAccumulator::add(std::span<const std::int64_t> sequence, std::span<const std::int32_t> task,
                          std::span<const double> lower, std::span<const double> upper, std::int64_t stride) {
  if (!upper.empty()) bracketed_ = true;
  const std::span<const double> highest = upper.empty() ? lower : upper;
  const auto same_run = [&](std::size_t a, std::size_t b) {
    return sequence[a] == sequence[b] && (task.empty() || task[a] == task[b]);
  };
  const auto step = static_cast<std::size_t>(stride);
  for (std::size_t begin = 0, end = 0; begin < sequence.size(); begin = end) {
    while (end < sequence.size() && same_run(begin, end)) ++end;
    add_run(sequence[begin], task.empty() ? -1 : task[begin], lower.subspan(begin * step, (end - begin) * step),
            highest.subspan(begin * step, (end - begin) * step), stride);
  }
}

void RateAccumulator::add_run(std::int64_t sequence, std::int32_t task, std::span<const double> lower,
                              std::span<const double> upper, std::int64_t stride) {
  if (sequence != sequence_) close_sequence();
  sequence_ = sequence;
  Group& group = tasks_[task];
  const auto step = static_cast<std::size_t>(stride);
  for (std::size_t i = 0; i < lower.size(); i += step) {
    if (std::isnan(lower[i]) || std::isnan(upper[i])) {
      ++unknown_;
      continue;
    }
    if (group.open.count == 0) open_tasks_.push_back(task);
    all_.add(lower[i], upper[i]);
    group.add(lower[i], upper[i]);
  }
}

void RateAccumulator::close_sequence() {
  all_.close();
  for (const std::int32_t task : open_tasks_) tasks_[task].close();
  open_tasks_.clear();
}

std::optional<AcceptanceEstimate> RateAccumulator::overall(TaskMix mix) const {
  RateAccumulator closed = *this;
  closed.close_sequence();
  const Group& all = closed.all_;
  if (all.lower.clusters() == 0) return std::nullopt;
  std::vector<ClusterMoments> lower{all.lower};
  std::vector<ClusterMoments> upper{all.upper};
  if (mix == TaskMix::fixed) {
    lower.clear();
    upper.clear();
    for (const auto& [task, group] : closed.tasks_) {
      if (group.lower.clusters() == 0) continue;
      lower.push_back(group.lower);
      upper.push_back(group.upper);
    }
  }
  AcceptanceEstimate result = all.estimate(bracketed_, lower, upper);
  if (unknown_ > 0) {
    result.notes.push_back(fmt::format("the rate is that of {} of {} positions; the others have no value",
                                       result.positions, result.positions + unknown_));
  }
  return result;
}

std::map<std::int32_t, AcceptanceEstimate> RateAccumulator::by_task() const {
  RateAccumulator closed = *this;
  closed.close_sequence();
  std::map<std::int32_t, AcceptanceEstimate> estimates;
  if (closed.tasks_.size() == 1 && closed.tasks_.begin()->first == -1) return estimates;
  for (const auto& [task, group] : closed.tasks_) {
    if (group.lower.clusters() == 0) continue;
    estimates.emplace(task, group.estimate(bracketed_, std::span(&group.lower, 1), std::span(&group.upper, 1)));
  }
  return estimates;
}

void AcceptanceAccumulator::add(const Observations& observations) {
  const auto sequence = observations.sequence;
  const auto task = observations.task;
  const auto track = [&](RateAccumulator& rate, const Bracketed& column, std::int64_t stride) {
    if (column.empty()) return rate.skip(observations.size);
    rate.add(sequence, task, column.lower, column.upper, stride);
  };
  track(mean_, observations.mean_acceptance, 1);
  track(emitted_, observations.acceptance, observations.depths);
  for (std::size_t rule = 0; rule < rules_.size(); ++rule) track(rules_[rule], observations.by_rule[rule], 1);
  positions_ += observations.size;
  for (const std::int64_t s : sequence) {
    if (s != last_sequence_) ++sequences_;
    last_sequence_ = s;
  }
}

std::optional<AcceptanceEstimate> AcceptanceAccumulator::by_rule(traces::AcceptanceRule rule) const {
  return rules_[static_cast<std::size_t>(rule)].overall(mix_);
}

}  // namespace specdec::estimate
