#include "analysis/planning/batch_schedule.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace specdec::planning {
namespace {

/// A stretch that is being made: which gammas would do at all of its batches, and the largest regret of each.
class OpenStretch {
 public:
  OpenStretch(std::int64_t batch, std::vector<double> regrets, double tolerance)
      : stretch_{batch, batch, 0, false}, worst_(std::move(regrets)), allowed_(allowed(worst_, tolerance)) {}

  /// False, and nothing changed, where no gamma would do at this batch too.
  bool extend(std::int64_t batch, const std::vector<double>& regrets, double tolerance) {
    std::vector<bool> both = allowed(regrets, tolerance);
    both.resize(std::min(both.size(), allowed_.size()));
    for (std::size_t gamma = 0; gamma < both.size(); ++gamma) both[gamma] = both[gamma] && allowed_[gamma];
    if (std::find(both.begin(), both.end(), true) == both.end()) return false;
    allowed_ = std::move(both);
    for (std::size_t gamma = 0; gamma < allowed_.size(); ++gamma) {
      worst_[gamma] = std::max(worst_[gamma], regrets[gamma]);
    }
    stretch_.batch_high = batch;
    return true;
  }

  /// Takes over a batch without a price.
  void hold(std::int64_t batch) {
    stretch_.batch_low = std::min(stretch_.batch_low, batch);
    stretch_.batch_high = std::max(stretch_.batch_high, batch);
    stretch_.held = true;
  }

  ScheduleStretch close() {
    std::optional<std::size_t> best;
    for (std::size_t gamma = 0; gamma < allowed_.size(); ++gamma) {
      if (allowed_[gamma] && (!best || worst_[gamma] < worst_[*best])) best = gamma;
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

  ScheduleStretch stretch_;
  std::vector<double> worst_;
  std::vector<bool> allowed_;
};

bool is_extrapolated(const DraftScan& scan, std::size_t gamma, double batch, double context) {
  const cost::RoundCost& cost = *scan.draft().cost;
  return scan.tokens()[gamma].extrapolated ||
         cost.extrapolates(scan.point(static_cast<std::int64_t>(gamma), batch, context)) ||
         cost.extrapolates(scan.point(0, batch, context));
}

/// Takes the regrets at one more context into the largest ones; a speed of 0 does not count as one.
void add_regrets(const std::vector<double>& speeds, double best, std::vector<double>& worst) {
  if (worst.empty()) worst.resize(speeds.size());
  worst.resize(std::min(worst.size(), speeds.size()));
  for (std::size_t gamma = 0; gamma < worst.size(); ++gamma) {
    const double regret = speeds[gamma] > 0 ? 1 - speeds[gamma] / best : std::numeric_limits<double>::infinity();
    worst[gamma] = std::max(worst[gamma], regret);
  }
}

}  // namespace

std::vector<double> worst_regrets(const DraftScan& scan, double batch, const std::vector<double>& contexts,
                                  double prefer_measured) {
  // Against the best of all gammas, and of those that were measured.
  std::vector<double> worst, worst_measured;
  bool prefers_measured = true;
  std::vector<cost::RoundTime> times;
  std::vector<double> speeds, measured_speeds;
  for (const double context : contexts) {
    if (!scan.draft().cost->answers(scan.point(0, batch, context))) return {};
    scan.price(batch, context, times);
    speeds.clear();
    measured_speeds.clear();
    for (std::size_t gamma = 0; gamma < times.size(); ++gamma) {
      speeds.push_back(scan.tokens()[gamma].value / times[gamma].total());
      measured_speeds.push_back(is_extrapolated(scan, gamma, batch, context) ? 0 : speeds.back());
    }
    const double best = *std::max_element(speeds.begin(), speeds.end());
    const auto best_measured = std::max_element(measured_speeds.begin(), measured_speeds.end());
    const double measured = *best_measured;
    // Plain decoding is preferred where it is the best, and not for being measured.
    const bool drafts = best_measured != measured_speeds.begin() || measured == best;
    prefers_measured = prefers_measured && drafts && measured > 0 && measured >= (1 - prefer_measured) * best;
    add_regrets(speeds, best, worst);
    add_regrets(measured_speeds, measured, worst_measured);
  }
  return prefers_measured ? worst_measured : worst;
}

std::vector<ScheduleStretch> batch_schedule(const DraftScan& scan, const std::vector<double>& contexts,
                                            std::int64_t up_to, double tolerance, double prefer_measured) {
  std::vector<ScheduleStretch> schedule;
  std::optional<OpenStretch> open;
  for (std::int64_t batch = 1; batch <= up_to; ++batch) {
    std::vector<double> regrets = worst_regrets(scan, static_cast<double>(batch), contexts, prefer_measured);
    if (regrets.empty()) {
      if (open) open->hold(batch);
      continue;
    }
    if (open && open->extend(batch, regrets, tolerance)) continue;
    if (open) schedule.push_back(open->close());
    open.emplace(batch, std::move(regrets), tolerance);
    if (schedule.empty() && batch > 1) open->hold(1);
  }
  if (open) schedule.push_back(open->close());
  return schedule;
}

std::optional<std::int64_t> crossover_batch(const std::vector<ScheduleStretch>& schedule) {
  if (schedule.empty() || schedule.back().gamma > 0) return std::nullopt;
  return schedule.back().batch_low;
}

}  // namespace specdec::planning
