#include "analysis/planning/batch_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
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
  /// The same of the gammas up to the longest measured one, infinite for others; empty unless these are preferred at
  /// all contexts.
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
  /// @param sure  as BatchVerdict::sure
  void add(double batch, const BatchRegrets& at, const std::vector<bool>& sure) {
    if (!sure.empty()) {
      if (is_sure_.empty()) is_sure_.assign(sure.size(), true);
      is_sure_.resize(std::min(is_sure_.size(), sure.size()));
      for (std::size_t gamma = 1; gamma < is_sure_.size(); ++gamma) is_sure_[gamma] = is_sure_[gamma] && sure[gamma];
    }
    at_limit_ = at_limit_ || at.at_limit;
    prefers_measured_ = prefers_measured_ && !at.measured_regrets.empty();
    add(batch, at.regrets, at.least_speedups, found_);
    if (prefers_measured_) add(batch, at.measured_regrets, at.least_speedups, measured_);
  }

  std::optional<FixedGamma> best(const ScheduleRule& rule) const {
    if (found_.empty()) return std::nullopt;
    const bool is_measured = prefers_measured_ && drafts(measured_);
    const std::vector<FixedGamma> sure_measured = sure_of(measured_), sure = sure_of(found_);
    if (is_measured && drafts(sure_measured)) return best_of(sure_measured, rule);
    if (drafts(sure)) return best_of(sure, rule);
    return best_of(is_measured ? measured_ : found_, rule);
  }

 private:
  static bool drafts(const std::vector<FixedGamma>& found) {
    return std::any_of(found.begin(), found.end(),
                       [](const FixedGamma& one) { return one.gamma > 0 && std::isfinite(one.worst_regret); });
  }

  /// Plain decoding, and of the others those that are sure at all batches where some gamma is; all if none is anywhere.
  std::vector<FixedGamma> sure_of(std::vector<FixedGamma> found) const {
    const auto is_out = [this](const FixedGamma& one) {
      const auto place = static_cast<std::size_t>(one.gamma);
      return !is_sure_.empty() && !(place < is_sure_.size() && is_sure_[place]);
    };
    found.erase(std::remove_if(found.begin(), found.end(), is_out), found.end());
    return found;
  }

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

  /// [gamma]: sure at all batches where some gamma is; empty if none is anywhere.
  std::vector<bool> is_sure_;
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
/// @param best_of  the speeds of which the fastest loses nothing
void add_regrets(const std::vector<double>& speeds, const std::vector<double>& best_of, std::vector<double>& worst) {
  const double best = *std::max_element(best_of.begin(), best_of.end());
  if (worst.empty()) worst.resize(speeds.size());
  worst.resize(std::min(worst.size(), speeds.size()));
  for (std::size_t gamma = 0; gamma < worst.size(); ++gamma) {
    const double regret = speeds[gamma] > 0 ? 1 - speeds[gamma] / best : std::numeric_limits<double>::infinity();
    worst[gamma] = std::max(worst[gamma], regret);
  }
}

/// The same at both ends of a range of acceptance.
void add_regrets_at_ends(const DraftScan& scan, const std::vector<double>& speeds, const std::vector<double>& best_of,
                         std::vector<double>& worst) {
  const auto at_end = [&](auto log_factor) {
    const auto moved = [&](std::vector<double> its) {
      for (std::size_t gamma = 0; gamma < its.size(); ++gamma)
        its[gamma] *= std::exp(log_factor(scan.range_error()[gamma]));
      return its;
    };
    add_regrets(moved(speeds), moved(best_of), worst);
  };
  at_end([](const LogError& error) { return -error.below; });
  at_end([](const LogError& error) { return error.above; });
}

/// [gamma]: tokens per unit of time at one batch and context; 0 if the gamma does not count.
struct Speeds {
  double plain = 0;
  /// Of all gammas that have a price; without those whose cost is guessed, and these by the reading that says least of
  /// unmeasured acceptance.
  std::vector<double> priced, all, least;
  /// One more than the longest draft that was measured.
  std::size_t measured = 0;
};

Speeds speeds_at(const DraftScan& scan, double batch, double context, const std::vector<cost::RoundTime>& times,
                 const ScheduleRule& rule) {
  Speeds speeds;
  for (std::size_t gamma = 0; gamma < times.size(); ++gamma) {
    const estimate::TokensPerStep& tokens = scan.tokens()[gamma];
    const bool guessed = !rule.extrapolate && scan.is_guessed(static_cast<std::int64_t>(gamma), batch, context);
    speeds.priced.push_back(tokens.value / times[gamma].total());
    speeds.all.push_back(guessed ? 0 : speeds.priced.back());
    speeds.least.push_back(speeds.all.back() *
                           (tokens.extrapolated ? std::exp(-scan.readings_error()[gamma].below) : 1));
    if (!is_extrapolated(scan, gamma, batch, context)) speeds.measured = gamma + 1;
  }
  speeds.plain = speeds.all.front();
  return speeds;
}

/// The speeds of some gammas alone; all if none is named.
std::vector<double> of_these(std::vector<double> speeds, const std::vector<bool>& gammas) {
  for (std::size_t gamma = 0; gamma < speeds.size() && !gammas.empty(); ++gamma)
    if (gamma >= gammas.size() || !gammas[gamma]) speeds[gamma] = 0;
  return speeds;
}

std::vector<double> up_to_measured(std::vector<double> speeds, std::size_t measured) {
  std::fill(speeds.begin() + static_cast<std::ptrdiff_t>(measured), speeds.end(), 0.0);
  return speeds;
}

double fastest(const std::vector<double>& speeds) { return *std::max_element(speeds.begin(), speeds.end()); }

/// The gammas that may be taken: those up to the longest measured one, and those beyond that surely gain on these; all
/// if none up to there counts.
/// @param among  the speeds of the gammas that count, as Speeds::all
void add_takeable(const DraftScan& scan, const Speeds& speeds, const std::vector<double>& among,
                  const ScheduleRule& rule, std::vector<bool>& takeable) {
  takeable.resize(takeable.empty() ? among.size() : std::min(takeable.size(), among.size()), false);
  const std::vector<double> up_to_there = up_to_measured(among, speeds.measured);
  const auto measured = std::max_element(up_to_there.begin(), up_to_there.end());
  const auto sampling = [&](std::ptrdiff_t gamma) {
    return scan.sampling_error()[static_cast<std::size_t>(gamma)].below;
  };
  const double its_error = sampling(measured - up_to_there.begin());
  for (std::size_t gamma = 0; gamma < takeable.size(); ++gamma) {
    const double further = further_error(sampling(static_cast<std::ptrdiff_t>(gamma)), its_error);
    const double surely = speeds.all[gamma] * std::exp(-scan.readings_error()[gamma].below - further);
    takeable[gamma] = takeable[gamma] || gamma < speeds.measured || !(*measured > 0) ||
                      (among[gamma] > 0 && surely_gains(surely / speeds.plain, *measured / speeds.plain,
                                                        1 + rule.min_gain, rule.prefer_measured));
  }
}

/// The speeds of one batch at one context.
struct SpeedsAtContext {
  const DraftScan* scan;
  double context;
  std::vector<cost::RoundTime> times;
  Speeds speeds;
  /// Those of the sure gammas alone, where there are some.
  std::vector<double> sure;
};

/// Empty if plain decoding has no price at some context.
std::vector<SpeedsAtContext> speeds_at_contexts(const DraftScan& draft, double batch,
                                                const std::vector<double>& contexts, const ScheduleRule& rule,
                                                const std::vector<bool>& sure) {
  std::vector<SpeedsAtContext> found;
  for (const double context : contexts) {
    const DraftScan& scan = draft.at(context);
    if (!scan.plain_refused(batch, context).empty()) return {};
    SpeedsAtContext& at = found.emplace_back(SpeedsAtContext{&scan, context, {}, {}, {}});
    scan.price(batch, context, at.times);
    at.speeds = speeds_at(scan, batch, context, at.times, rule);
    at.sure = of_these(at.speeds.all, sure);
  }
  return found;
}

/// @param sure  as BatchVerdict::sure
BatchRegrets regrets_at(const DraftScan& draft, double batch, const std::vector<double>& contexts,
                        const ScheduleRule& rule, const std::vector<bool>& sure) {
  std::vector<SpeedsAtContext> all = speeds_at_contexts(draft, batch, contexts, rule, sure);
  if (all.empty()) return {PriceBasis::not_priced, {}};
  BatchRegrets result;
  result.basis = draft.basis(batch, contexts.front());
  // At some context; of the sure gammas, and of all.
  std::vector<bool> takeable, takeable_of_all;
  for (const SpeedsAtContext& at : all) add_takeable(*at.scan, at.speeds, at.speeds.all, rule, takeable_of_all);
  for (SpeedsAtContext& at : all) {
    // As at points: the best of all is taken if it is sure, else the best of the sure ones.
    const std::vector<double> of_all = of_these(at.speeds.all, takeable_of_all);
    const auto best = std::max_element(of_all.begin(), of_all.end()) - of_all.begin();
    if (at.sure[static_cast<std::size_t>(best)] > 0) at.sure = of_these(at.sure, takeable_of_all);
    add_takeable(*at.scan, at.speeds, at.sure, rule, takeable);
  }
  const auto lies_beyond = [&](const SpeedsAtContext& at) {
    const auto beyond =
        takeable_of_all.begin() + static_cast<std::ptrdiff_t>(std::min(at.speeds.measured, takeable_of_all.size()));
    return std::find(beyond, takeable_of_all.end(), true) != takeable_of_all.end();
  };
  const bool prefers_measured = std::none_of(all.begin(), all.end(), lies_beyond);
  bool gains = false;
  for (const SpeedsAtContext& at : all) {
    const DraftScan& scan = *at.scan;
    const Speeds& speeds = at.speeds;
    if (scan.basis(batch, at.context) == PriceBasis::extrapolated) result.basis = PriceBasis::extrapolated;
    result.least_speedups.resize(
        &at == &all.front() ? speeds.all.size() : std::min(result.least_speedups.size(), speeds.all.size()),
        std::numeric_limits<double>::infinity());
    for (std::size_t gamma = 0; gamma < result.least_speedups.size(); ++gamma)
      result.least_speedups[gamma] = std::min(result.least_speedups[gamma], speeds.priced[gamma] / speeds.plain);
    const std::vector<double> taken = of_these(at.sure, takeable);
    if (taken.front() == fastest(taken) && scan.most_without_price(batch, at.context, at.times) >= 1 + rule.min_gain)
      return {PriceBasis::not_priced, {}};
    gains = gains || fastest(taken) >= (1 + rule.min_gain) * speeds.plain;
    const bool all_priced = speeds.all.size() == scan.tokens().size();
    result.at_limit = result.at_limit || (all_priced && at.sure.back() == fastest(at.sure));
    // Over a range gammas lose to the best of all at its ends, as at points; else the recommended one loses nothing.
    const auto add = [&](const std::vector<double>& its_speeds, const std::vector<double>& of_all, auto& regrets) {
      if (scan.has_range()) return add_regrets_at_ends(scan, its_speeds, of_all, regrets);
      add_regrets(its_speeds, its_speeds, regrets);
    };
    add(taken, of_these(speeds.all, takeable_of_all), result.worst);
    add(speeds.least, speeds.least, result.regrets);
    const std::vector<double> measured = up_to_measured(speeds.all, speeds.measured);
    if (prefers_measured) add(measured, measured, result.measured_regrets);
  }
  if (draft.has_range()) {
    const double least = *std::min_element(result.worst.begin(), result.worst.end());
    for (double& regret : result.worst) regret -= least;
    result.at_limit = result.worst.size() == draft.tokens().size() && result.worst.back() <= equal_regrets;
  }
  if (!gains) result.worst = {0};
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

/// The batches at which verdicts are looked up first, rising: the ends, the powers of two, and the points that are
/// asked for.
std::vector<std::int64_t> judged_batches(std::int64_t up_to, const ScheduleRule& rule) {
  std::set<std::int64_t> batches = {1, up_to};
  for (std::int64_t batch = 2; batch < up_to; batch *= 2) batches.insert(batch);
  for (const double point : rule.points) {
    const double whole = whole_batch(point);
    if (whole < static_cast<double>(up_to)) batches.insert(static_cast<std::int64_t>(whole));
  }
  return {batches.begin(), batches.end()};
}

BatchVerdict judged(const DraftScan& scan, std::int64_t batch, const DeploymentQuestion& question,
                    const ScheduleRule& rule) {
  BatchVerdict all{Verdict::do_not_speculate};
  bool all_speculate = true;
  std::size_t gammas = std::numeric_limits<std::size_t>::max();
  for (const double context : question.contexts) {
    const PointPlan point = plan_point(scan, priced_at(batch, rule), context, question, std::nullopt);
    gammas = std::min(gammas, point.rows.size());
    if (point.verdict != Verdict::speculate) {
      all_speculate = false;
      if (point.verdict == Verdict::cannot_tell && all.verdict == Verdict::do_not_speculate)
        all.verdict = point.verdict;
      continue;
    }
    if (all.verdict != Verdict::speculate) all.sure.assign(point.rows.size(), true);
    all.verdict = Verdict::speculate;
    all.sure.resize(std::min(all.sure.size(), point.rows.size()));
    for (std::size_t gamma = 0; gamma < all.sure.size(); ++gamma)
      all.sure[gamma] = all.sure[gamma] && point.rows[gamma].sure;
  }
  if (all.sure.empty()) return all;
  all.sure.resize(std::min(all.sure.size(), gammas));
  if (std::find(all.sure.begin(), all.sure.end(), true) == all.sure.end()) {
    all.sure.clear();
  } else {
    all.sure[0] = !all_speculate;
  }
  return all;
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

std::vector<BatchVerdict> batch_verdicts(const DraftScan& scan, std::int64_t up_to, const DeploymentQuestion& question,
                                         const ScheduleRule& rule) {
  std::vector<BatchVerdict> verdicts(static_cast<std::size_t>(up_to));
  const auto at = [&](std::int64_t batch) -> BatchVerdict& { return verdicts[static_cast<std::size_t>(batch - 1)]; };
  // Fills in what lies between two batches that are known.
  const std::function<void(std::int64_t, std::int64_t)> fill = [&](std::int64_t low, std::int64_t high) {
    if (high - low <= 1) return;
    if (at(low) == at(high)) {
      for (std::int64_t batch = low + 1; batch < high; ++batch) at(batch) = at(low);
      return;
    }
    const std::int64_t middle = std::midpoint(low, high);
    at(middle) = judged(scan, middle, question, rule);
    fill(low, middle);
    fill(middle, high);
  };
  std::int64_t before = 1;
  for (const std::int64_t batch : judged_batches(up_to, rule)) {
    at(batch) = judged(scan, batch, question, rule);
    fill(before, batch);
    before = batch;
  }
  return verdicts;
}

Verdict verdict_of(const BatchVerdict& batch, const std::optional<std::int64_t>& gamma) {
  if (batch.verdict != Verdict::speculate) return batch.verdict;
  const auto place = static_cast<std::size_t>(gamma.value_or(0));
  return place > 0 && place < batch.sure.size() && batch.sure[place] ? Verdict::speculate : Verdict::cannot_tell;
}

BatchSchedule batch_schedule(const DraftScan& scan, const std::vector<double>& contexts, std::int64_t up_to,
                             const ScheduleRule& rule, const std::vector<BatchVerdict>& verdicts) {
  std::vector<PlannedStretch> schedule;
  std::optional<OpenStretch> open;
  FixedGammaSearch fixed;
  const std::vector<bool> none_sure;
  for (std::int64_t batch = 1; batch <= up_to; ++batch) {
    const double mean_batch = priced_at(batch, rule);
    const std::vector<bool>& sure = verdicts.empty() ? none_sure : verdicts[static_cast<std::size_t>(batch - 1)].sure;
    BatchRegrets at = regrets_at(scan, mean_batch, contexts, rule, sure);
    const bool priced = at.basis != PriceBasis::not_priced;
    if (decides(at.basis, rule.extrapolate)) fixed.add(mean_batch, at, sure);
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

std::vector<PlannedStretch> with_verdicts(const std::vector<PlannedStretch>& stretches,
                                          const std::vector<BatchVerdict>& verdicts) {
  std::vector<PlannedStretch> divided;
  for (const PlannedStretch& stretch : stretches) {
    for (std::int64_t batch = stretch.batch_low; batch <= stretch.batch_high; ++batch) {
      const Verdict verdict = verdict_of(verdicts[static_cast<std::size_t>(batch - 1)], stretch.gamma);
      if (batch == stretch.batch_low || divided.back().verdict != verdict) {
        divided.push_back(stretch);
        divided.back().batch_low = batch;
        divided.back().verdict = verdict;
      }
      divided.back().batch_high = batch;
    }
  }
  return divided;
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
