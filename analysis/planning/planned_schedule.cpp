#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analysis/planning/draft_worlds.hpp"
#include "analysis/worlds/schedule.hpp"

namespace specdec::planning {
namespace {

/// Every whole batch is priced up to this one, and beyond it those that rise by this factor.
constexpr std::int64_t all_batches_up_to = 32;
constexpr double rise_of_batches = 1.125;

/// What is known of one priced batch.
struct AtBatch {
  worlds::BatchRegrets regrets;
  PriceBasis basis = PriceBasis::measured;
  /// [option]: the least over the contexts.
  std::vector<double> speedups, shares;
};

/// The whole batches that are priced, each at which batch: the nearest point that rounds to it, else itself.
std::map<std::int64_t, double> priced_batches(const std::vector<PlanPoint>& points, std::int64_t up_to) {
  std::map<std::int64_t, double> batches;
  for (std::int64_t batch = 1; batch < up_to;) {
    batches[batch] = static_cast<double>(batch);
    batch = batch < all_batches_up_to
                ? batch + 1
                : std::max(batch + 1, static_cast<std::int64_t>(std::floor(static_cast<double>(batch) * rise_of_batches)));
  }
  batches[up_to] = static_cast<double>(up_to);
  for (const PlanPoint& point : points) {
    const auto whole = static_cast<std::int64_t>(whole_batch(point.batch));
    if (whole > up_to) continue;
    const bool is_nearer = batches.count(whole) == 0 || std::abs(batches[whole] - static_cast<double>(whole)) >
                                                            std::abs(point.batch - static_cast<double>(whole)) ||
                           batches[whole] == static_cast<double>(whole);
    if (is_nearer) batches[whole] = point.batch;
  }
  return batches;
}

/// The figures of a batch at one more context: the worst of all contexts counts.
void take_worst(const worlds::PricedWorlds& priced, const DeploymentQuestion& question, AtBatch& at) {
  const std::vector<double> regrets = worlds::regrets_of(priced.speedups, question.min_gain);
  const std::size_t options = regrets.size();
  at.regrets.regrets.resize(options, 0);
  at.speedups.resize(options, std::numeric_limits<double>::infinity());
  at.shares.resize(options, 1);
  const std::vector<int>& alternative = priced.speedups.alternative;
  for (std::size_t option = 0; option < options; ++option) {
    const std::vector<double>& its = priced.speedups.options[option];
    at.regrets.regrets[option] = std::max(at.regrets.regrets[option], regrets[option]);
    at.speedups[option] = std::min(at.speedups[option], worlds::spread_of(its, alternative).middle);
    // Plain decoding gains nothing over itself.
    const double share = option == 0 ? 0 : worlds::share_at_least(its, alternative, 1 + question.min_gain);
    at.shares[option] = std::min(at.shares[option], share);
  }
}

AtBatch at_batch(const DraftWorlds& draft, std::int64_t batch, double priced_at, const DeploymentQuestion& question) {
  AtBatch at;
  at.regrets.batch = batch;
  at.basis = draft.basis(priced_at, question.contexts.front());
  for (const double context : question.contexts) {
    if (draft.basis(priced_at, context) == PriceBasis::extrapolated) at.basis = PriceBasis::extrapolated;
    take_worst(draft.price(priced_at, context), question, at);
  }
  return at;
}

/// Half of the weight by stretches of ln(batch), the other half shared by the points.
void weigh(const std::vector<PlanPoint>& points, std::vector<AtBatch>& batches) {
  const auto log_of = [&](std::size_t i) { return std::log(static_cast<double>(batches[i].regrets.batch)); };
  double sum = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const double low = i == 0 ? log_of(0) - std::log(rise_of_batches) : log_of(i - 1);
    const double high = i + 1 == batches.size() ? log_of(i) + std::log(rise_of_batches) : log_of(i + 1);
    batches[i].regrets.weight = (high - low) / 2;
    sum += batches[i].regrets.weight;
  }
  for (AtBatch& at : batches) {
    for (const PlanPoint& point : points) {
      if (whole_batch(point.batch) == static_cast<double>(at.regrets.batch))
        at.regrets.weight += sum / static_cast<double>(points.size());
    }
  }
}

/// The figures of a stretch over the batches that were priced in it.
PlannedStretch planned(const DraftWorlds& draft, const worlds::Stretch& stretch, const std::vector<AtBatch>& batches) {
  const std::size_t option = stretch.option;
  PlannedStretch result{stretch.from, stretch.to, draft.options().gammas[option], PriceBasis::measured, 1, 0};
  bool first = true;
  for (const AtBatch& at : batches) {
    if (at.regrets.batch < stretch.from || at.regrets.batch > stretch.to) continue;
    const double share = option > 0 ? at.shares[option] : *std::max_element(at.shares.begin(), at.shares.end());
    result.speedup = first ? at.speedups[option] : std::min(result.speedup, at.speedups[option]);
    result.share = first ? share : option > 0 ? std::min(result.share, share) : std::max(result.share, share);
    if (first || at.basis == PriceBasis::extrapolated) result.basis = at.basis;
    first = false;
  }
  return result;
}

}  // namespace

double whole_batch(double batch) { return std::max(1.0, std::round(batch)); }

void plan_schedule(const DraftWorlds& draft, const std::vector<PlanPoint>& points, const DeploymentQuestion& question,
                   DraftPlan& plan) {
  std::vector<AtBatch> batches;
  for (const auto& [batch, priced_at] : priced_batches(points, *question.schedule_up_to))
    batches.push_back(at_batch(draft, batch, priced_at, question));
  weigh(points, batches);
  std::vector<worlds::BatchRegrets> regrets;
  for (const AtBatch& at : batches) regrets.push_back(at.regrets);
  worlds::SchedulePrices prices = question.schedule_prices;
  // SGLang's schedules are of chains.
  if (plan.tree) prices.several = std::numeric_limits<double>::infinity();
  const std::vector<worlds::Stretch> stretches = worlds::schedule(regrets, prices);
  if (stretches != worlds::schedule(regrets)) plan.held_by = prices;
  for (const worlds::Stretch& stretch : stretches) plan.schedule.push_back(planned(draft, stretch, batches));
  if (plan.schedule.size() > 1 && plan.schedule.back().gamma == 0)
    plan.crossover_batch = plan.schedule.back().batch_low;
}

}  // namespace specdec::planning
