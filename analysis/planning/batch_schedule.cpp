#include "analysis/planning/batch_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace specdec::planning {
namespace {

/// The data of one batch.
struct BatchRegrets {
  PriceBasis basis = PriceBasis::measured;
  /// [gamma]: the largest regret over the contexts; for a stated range, in excess of the least one. Empty if it is not
  /// priced; gammas without a price at some context are left out, and so are all but plain decoding if none gains
  /// enough.
  std::vector<double> worst;
  /// [gamma]: the largest regret of all gammas, whether or not one gains enough; of unmeasured acceptance by the
  /// reading that says least.
  std::vector<double> regrets = {};
  /// The same of the measured gammas, infinite for others; empty unless these are preferred at all contexts.
  std::vector<double> measured_regrets = {};
  /// [gamma]: the smallest speedup over plain decoding at any context.
  std::vector<double> least_speedups = {};
  /// As PointPlan::at_limit, at some context.
  bool at_limit = false;
};

/// A stretch under construction: the gammas that are acceptable at all of its batches, and the largest regret of each.
class OpenStretch {
 public:
  OpenStretch(std::int64_t batch, BatchRegrets at, double tolerance)
      : stretch_{batch, batch, 0, at.basis},
        worst_(std::move(at.worst)),
        allowed_(allowed(worst_, tolerance)),
        at_limit_(at.at_limit) {}

  /// False, and nothing changed, if no gamma is acceptable at this batch too, or its basis differs.
  bool extend(std::int64_t batch, const BatchRegrets& at, double tolerance) {
    if (at.basis != stretch_.basis) return false;
    std::vector<bool> both = allowed(at.worst, tolerance);
    both.resize(std::min(both.size(), allowed_.size()));
    for (std::size_t gamma = 0; gamma < both.size(); ++gamma) both[gamma] = both[gamma] && allowed_[gamma];
    if (std::find(both.begin(), both.end(), true) == both.end()) return false;
    allowed_ = std::move(both);
    for (std::size_t gamma = 0; gamma < allowed_.size(); ++gamma) {
      worst_[gamma] = std::max(worst_[gamma], at.worst[gamma]);
    }
    at_limit_ = at_limit_ || at.at_limit;
    stretch_.batch_high = batch;
    return true;
  }

  /// @param max_gamma_is_default  as in DeploymentQuestion
  PlannedStretch close(bool max_gamma_is_default) {
    std::optional<std::size_t> best;
    for (std::size_t gamma = 0; gamma < allowed_.size(); ++gamma) {
      const bool smallest_does = best && at_limit_ && max_gamma_is_default;
      if (allowed_[gamma] && !smallest_does && (!best || worst_[gamma] < worst_[*best])) best = gamma;
    }
    stretch_.gamma = static_cast<std::int64_t>(*best);
    return stretch_;
  }

 private:
  static std::vector<bool> allowed(const std::vector<double>& regrets, double tolerance) {
    const auto least = std::min_element(regrets.begin(), regrets.end());
    std::vector<bool> result(regrets.size(), false);
    if (least == regrets.begin()) {
      result[0] = true;
      return result;
    }
    for (std::size_t gamma = 1; gamma < regrets.size(); ++gamma) {
      result[gamma] = regrets[gamma] <= std::max(tolerance, *least);
    }
    return result;
  }

  PlannedStretch stretch_;
  std::vector<double> worst_;
  std::vector<bool> allowed_;
  bool at_limit_;
};

/// The search for the gamma that loses least where one has to serve all batches.
class FixedGammaSearch {
 public:
  void add(double batch, const BatchRegrets& at) {
    at_limit_ = at_limit_ || at.at_limit;
    prefers_measured_ = prefers_measured_ && !at.measured_regrets.empty();
    add(batch, at.regrets, at.least_speedups, found_);
    if (prefers_measured_) add(batch, at.measured_regrets, at.least_speedups, measured_);
  }

  std::optional<FixedGamma> best(const ScheduleRule& rule) const {
    if (found_.empty()) return std::nullopt;
    const auto drafts = [](const FixedGamma& one) { return one.gamma > 0 && std::isfinite(one.worst_regret); };
    const bool is_measured = prefers_measured_ && std::any_of(measured_.begin(), measured_.end(), drafts);
    return best_of(is_measured ? measured_ : found_, rule);
  }

 private:
  static void add(double batch, const std::vector<double>& regrets, const std::vector<double>& speedups,
                  std::vector<FixedGamma>& found) {
    if (found.empty()) {
      for (std::size_t gamma = 0; gamma < regrets.size(); ++gamma) {
        const double speedup = speedups[gamma];
        found.push_back(
            {static_cast<std::int64_t>(gamma), regrets[gamma], batch, speedup, batch, speedup < 1 ? batch : 0});
      }
      return;
    }
    found.resize(std::min(found.size(), regrets.size()));
    for (std::size_t gamma = 0; gamma < found.size(); ++gamma) {
      FixedGamma& fixed = found[gamma];
      if (regrets[gamma] > fixed.worst_regret) {
        fixed.worst_regret = regrets[gamma];
        fixed.worst_batch = batch;
      }
      if (fixed.slow_from == 0 && speedups[gamma] < 1) fixed.slow_from = batch;
      if (speedups[gamma] < fixed.least_speedup) {
        fixed.least_speedup = speedups[gamma];
        fixed.slowest_batch = batch;
      }
    }
  }

  FixedGamma best_of(const std::vector<FixedGamma>& found, const ScheduleRule& rule) const {
    const auto less = [](const FixedGamma& a, const FixedGamma& b) { return a.worst_regret < b.worst_regret; };
    const auto least = std::min_element(found.begin(), found.end(), less);
    if (!at_limit_ || !rule.max_gamma_is_default) return *least;
    const auto will_do = [&](const FixedGamma& one) {
      return one.worst_regret <= least->worst_regret + rule.tolerance;
    };
    return *std::find_if(found.begin(), found.end(), will_do);
  }

  /// All gammas, and the measured ones alone for when every batch prefers those.
  std::vector<FixedGamma> found_, measured_;
  bool prefers_measured_ = true, at_limit_ = false;
};

bool is_extrapolated(const DraftScan& scan, std::size_t gamma, double batch, double context) {
  const cost::RoundCost& cost = *scan.draft().cost;
  return scan.tokens()[gamma].extrapolated ||
         cost.extrapolates(scan.point(static_cast<std::int64_t>(gamma), batch, context)) ||
         cost.extrapolates(scan.point(0, batch, context));
}

/// Updates the largest regrets with those at one more context; a speed of 0 does not count.
void add_regrets(const std::vector<double>& speeds, std::vector<double>& worst) {
  const double best = *std::max_element(speeds.begin(), speeds.end());
  if (worst.empty()) worst.resize(speeds.size());
  worst.resize(std::min(worst.size(), speeds.size()));
  for (std::size_t gamma = 0; gamma < worst.size(); ++gamma) {
    const double regret = speeds[gamma] > 0 ? 1 - speeds[gamma] / best : std::numeric_limits<double>::infinity();
    worst[gamma] = std::max(worst[gamma], regret);
  }
}

/// The same at both ends of a range of acceptance.
void add_regrets_at_ends(const DraftScan& scan, const std::vector<double>& speeds, std::vector<double>& worst) {
  const auto at_end = [&](auto log_factor) {
    std::vector<double> moved = speeds;
    for (std::size_t gamma = 0; gamma < moved.size(); ++gamma)
      moved[gamma] *= std::exp(log_factor(scan.range_error()[gamma]));
    add_regrets(moved, worst);
  };
  at_end([](const LogError& error) { return -error.below; });
  at_end([](const LogError& error) { return error.above; });
}

BatchRegrets regrets_at(const DraftScan& draft, double batch, const std::vector<double>& contexts,
                        const ScheduleRule& rule) {
  BatchRegrets result;
  result.basis = draft.basis(batch, contexts.front());
  // Relative to the best of all gammas, and of the measured ones.
  std::vector<double> worst, worst_measured;
  bool prefers_measured = true;
  // True if some gamma is 1 + min_gain times as fast as plain decoding at some context.
  bool gains = false, gains_measured = false;
  std::vector<cost::RoundTime> times;
  std::vector<double> speeds, measured_speeds, sure_speeds;
  for (const double context : contexts) {
    const DraftScan& scan = draft.at(context);
    if (!scan.plain_refused(batch, context).empty()) return {PriceBasis::not_priced, {}};
    if (scan.basis(batch, context) == PriceBasis::extrapolated) result.basis = PriceBasis::extrapolated;
    scan.price(batch, context, times);
    speeds.clear();
    measured_speeds.clear();
    sure_speeds.clear();
    result.least_speedups.resize(
        context == contexts.front() ? times.size() : std::min(result.least_speedups.size(), times.size()),
        std::numeric_limits<double>::infinity());
    for (std::size_t gamma = 0; gamma < times.size(); ++gamma) {
      const bool guessed = !rule.extrapolate && scan.is_guessed(static_cast<std::int64_t>(gamma), batch, context);
      const double speed = scan.tokens()[gamma].value / times[gamma].total();
      speeds.push_back(guessed ? 0 : speed);
      sure_speeds.push_back(speeds.back() *
                            (scan.tokens()[gamma].extrapolated ? std::exp(-scan.readings_error()[gamma].below) : 1));
      measured_speeds.push_back(is_extrapolated(scan, gamma, batch, context) ? 0 : speed);
      if (gamma >= result.least_speedups.size()) continue;
      result.least_speedups[gamma] = std::min(result.least_speedups[gamma], speed / speeds[0]);
    }
    const auto fastest = std::max_element(speeds.begin(), speeds.end());
    const double best = *fastest;
    const double sure =
        best * std::exp(-scan.readings_error()[static_cast<std::size_t>(fastest - speeds.begin())].below);
    const double measured = *std::max_element(measured_speeds.begin(), measured_speeds.end());
    const bool prefers = measured > 0 && planning::prefers_measured(measured / speeds[0], sure / speeds[0],
                                                                    1 + rule.min_gain, rule.prefer_measured);
    const bool plain = speeds[0] == (prefers ? measured : best);
    if (plain && scan.most_without_price(batch, context, times) >= 1 + rule.min_gain) {
      return {PriceBasis::not_priced, {}};
    }
    prefers_measured = prefers_measured && prefers;
    const double enough = (1 + rule.min_gain) * speeds[0];
    gains = gains || best >= enough;
    gains_measured = gains_measured || measured >= enough;
    const bool all_priced = times.size() == scan.tokens().size();
    result.at_limit = result.at_limit || (all_priced && &*fastest == &speeds.back());
    const auto add = [&](const std::vector<double>& its_speeds, std::vector<double>& regrets) {
      if (scan.has_range()) return add_regrets_at_ends(scan, its_speeds, regrets);
      add_regrets(its_speeds, regrets);
    };
    add(speeds, worst);
    add(measured_speeds, worst_measured);
    add(sure_speeds, result.regrets);
  }
  if (prefers_measured) result.measured_regrets = worst_measured;
  result.worst = prefers_measured ? std::move(worst_measured) : std::move(worst);
  if (draft.has_range()) {
    const double least = *std::min_element(result.worst.begin(), result.worst.end());
    for (double& regret : result.worst) regret -= least;
    result.at_limit = result.worst.size() == draft.tokens().size() && result.worst.back() <= equal_regrets;
  }
  if (!(prefers_measured ? gains_measured : gains)) result.worst = {0};
  return result;
}

/// Adds one more batch without a price.
void add_not_priced(std::int64_t batch, std::vector<PlannedStretch>& schedule) {
  if (!schedule.empty() && schedule.back().basis == PriceBasis::not_priced) {
    schedule.back().batch_high = batch;
  } else {
    schedule.push_back({batch, batch, std::nullopt, PriceBasis::not_priced});
  }
}

/// The batches of a stretch whose verdict is looked up, rising and with its last: the powers of two, and the points
/// that are asked for.
std::vector<std::int64_t> judged_batches(const PlannedStretch& stretch, const ScheduleRule& rule) {
  std::vector<std::int64_t> batches = {stretch.batch_high};
  const auto add = [&](std::int64_t batch) {
    if (stretch.batch_low < batch && batch < stretch.batch_high) batches.push_back(batch);
  };
  for (std::int64_t batch = 2; batch < stretch.batch_high; batch *= 2) add(batch);
  for (const double point : rule.points) add(static_cast<std::int64_t>(whole_batch(point)));
  std::sort(batches.begin(), batches.end());
  return batches;
}

}  // namespace

double whole_batch(double batch) { return std::max(1.0, std::round(batch)); }

double priced_at(std::int64_t whole, const ScheduleRule& rule) {
  const auto batch = static_cast<double>(whole);
  double nearest = batch, least = std::numeric_limits<double>::infinity();
  for (const double point : rule.points) {
    const double distance = std::abs(point - batch);
    if (whole_batch(point) == batch && distance < least) {
      least = distance;
      nearest = point;
    }
  }
  return nearest;
}

BatchSchedule batch_schedule(const DraftScan& scan, const std::vector<double>& contexts, std::int64_t up_to,
                             const ScheduleRule& rule) {
  std::vector<PlannedStretch> schedule;
  std::optional<OpenStretch> open;
  FixedGammaSearch fixed;
  for (std::int64_t batch = 1; batch <= up_to; ++batch) {
    const double mean_batch = priced_at(batch, rule);
    BatchRegrets at = regrets_at(scan, mean_batch, contexts, rule);
    const bool priced = at.basis != PriceBasis::not_priced;
    if (decides(at.basis, rule.extrapolate)) fixed.add(mean_batch, at);
    if (priced && open && open->extend(batch, at, rule.tolerance)) continue;
    if (open) schedule.push_back(open->close(rule.max_gamma_is_default));
    open.reset();
    if (priced) {
      open.emplace(batch, std::move(at), rule.tolerance);
    } else {
      add_not_priced(batch, schedule);
    }
  }
  if (open) schedule.push_back(open->close(rule.max_gamma_is_default));
  return {std::move(schedule), fixed.best(rule)};
}

std::vector<PlannedStretch> with_verdicts(const std::vector<PlannedStretch>& stretches, const DraftScan& scan,
                                          const DeploymentQuestion& question, const ScheduleRule& rule) {
  std::vector<PlannedStretch> divided;
  const auto verdict_at = [&](std::int64_t batch) { return batch_verdict(scan, batch, question, rule); };
  for (const PlannedStretch& stretch : stretches) {
    PlannedStretch part = stretch;
    part.batch_high = part.batch_low;
    part.verdict = verdict_at(part.batch_low);
    for (const std::int64_t judged : judged_batches(stretch, rule)) {
      const Verdict verdict = verdict_at(judged);
      while (part.verdict != verdict) {
        std::int64_t same = part.batch_high, other = judged;
        while (other - same > 1) {
          const std::int64_t middle = std::midpoint(same, other);
          (verdict_at(middle) == part.verdict ? same : other) = middle;
        }
        part.batch_high = same;
        divided.push_back(part);
        part.batch_low = part.batch_high = other;
        part.verdict = verdict_at(other);
      }
      part.batch_high = judged;
    }
    divided.push_back(part);
  }
  return divided;
}

Verdict batch_verdict(const DraftScan& scan, std::int64_t batch, const DeploymentQuestion& question,
                      const ScheduleRule& rule) {
  bool some_may = false;
  for (const double context : question.contexts) {
    const Verdict verdict = plan_point(scan, priced_at(batch, rule), context, question, std::nullopt).verdict;
    if (verdict == Verdict::speculate) return verdict;
    some_may = some_may || verdict == Verdict::cannot_tell;
  }
  return some_may ? Verdict::cannot_tell : Verdict::do_not_speculate;
}

CrossoverBounds crossover_bounds(const std::vector<PlannedStretch>& schedule, std::int64_t crossover) {
  CrossoverBounds bounds;
  for (const PlannedStretch& stretch : schedule) {
    if (stretch.verdict == Verdict::speculate) bounds.low = std::min(crossover, stretch.batch_high + 1);
    if (stretch.verdict != Verdict::do_not_speculate) {
      bounds.high.reset();
    } else if (!bounds.high) {
      bounds.high = std::max(crossover, stretch.batch_low);
    }
  }
  return bounds;
}

std::optional<std::int64_t> crossover_batch(const std::vector<PlannedStretch>& schedule, bool extrapolate) {
  const auto drafts = [extrapolate](const PlannedStretch& stretch) {
    return stretch.gamma != 0 || !decides(stretch.basis, extrapolate);
  };
  const auto last = std::find_if(schedule.rbegin(), schedule.rend(), drafts);
  if (last == schedule.rbegin()) return std::nullopt;
  return std::prev(last)->batch_low;
}

std::optional<ScheduleLoss> largest_schedule_loss(const DraftPlan& plan) {
  std::optional<ScheduleLoss> most;
  for (const PointPlan& point : plan.points) {
    const auto batch = static_cast<std::int64_t>(whole_batch(point.batch));
    const auto stretch = std::find_if(plan.schedule.begin(), plan.schedule.end(),
                                      [batch](const PlannedStretch& one) { return batch <= one.batch_high; });
    if (stretch == plan.schedule.end() || !stretch->gamma || !point.optimal_row) continue;
    const auto place = static_cast<std::size_t>(*stretch->gamma);
    if (place == *point.optimal_row || place >= point.rows.size()) continue;
    const double regret = 1 - point.rows[place].speedup / point.optimal()->speedup;
    if (regret <= 0) continue;
    if (!most || regret > most->regret) {
      most = {point.batch, *stretch->gamma, point.optimal()->gamma, regret, point.optimal()->speedup};
    }
  }
  return most;
}

}  // namespace specdec::planning
