#include "sim/serving/sustainable_search.hpp"

#include <algorithm>
#include <cmath>

#include "sim/serving/load_search.hpp"
#include "sim/serving/run_intervals.hpp"

namespace specdec::sim {
namespace {

/// A percentile of the time per output token / its mean, before a run has told.
constexpr double usual_percentile = 1.25;
/// Ratio of the loads between which the slope of an excess is computed.
constexpr double slope_span = 1.05;
/// Relative tolerance of the load of a scenario that is like another: its error is corrected with those of others.
constexpr double tolerance_of_like = 0.1;

}  // namespace

FoundLoad SustainableSearch::find_load(const SimulatedValue& saturated) {
  FoundLoad found;
  found.load = saturated;
  if (!is_limited(question_.limits)) return found;
  LoadSearch search;
  search.lowest = least_load * saturated.value;
  search.highest = saturated.value;
  search.scale = planned_.scale();
  search.guess = like_ ? guess_like(saturated.value, search.lowest) : first_guess(saturated.value);
  search.slope_is_known = like_ && like_->search_end;
  if (like_) search.tolerance = tolerance_of_like;
  JudgedLoad last;
  const auto crossing = find_crossing(search, [&](double load) {
    last = runs_.judged_at({load});
    return last.together.excess;
  });
  if (crossing && crossing->load >= search.highest) return found;
  found.by = last.together.by;
  if (!crossing) {
    found.load = {};
    return found;
  }
  found.end = {search.scale.value_at(std::log(crossing->load)), crossing->slope};
  if (question_.finds_rate_intervals) {
    found.load = around(crossing->load, last, saturated);
  } else {
    found.load = {crossing->load, crossing->load, crossing->load};
  }
  return found;
}

/// Where the formulas expect the limit on the time per output token.
LoadCrossing SustainableSearch::first_guess(double saturated) const {
  const double near = 0.8 * saturated;
  if (!question_.limits.tpot_seconds || !planned_.saturation()) return {near, 1};
  const double load = planned_.load_with(*question_.limits.tpot_seconds / usual_percentile, near);
  return {std::min(load, 0.9 * saturated), 1};
}

/// Where the like scenario met its limit.
LoadCrossing SustainableSearch::guess_like(double saturated, double lowest) const {
  const double most = like_->requests_per_second_per_replica.value;
  if (!like_->search_end) return {most > 0 ? saturated : lowest, 1};
  const double same_share = most / like_->saturated_requests_per_second_per_replica.value * saturated;
  const double same_time = std::exp(planned_.scale().log_load_at(like_->search_end->expected));
  // At a lower share of what saturates, requests differ less in their times.
  return {std::max(same_time, std::sqrt(same_time * same_share)), like_->search_end->slope};
}

/// The runs' own excesses show how far each by itself would have moved the crossing.
SimulatedValue SustainableSearch::around(double load, const JudgedLoad& there, const SimulatedValue& saturated) {
  std::vector<double> deviations;
  for (const JudgedRequests& run : there.each) {
    if (run.by != planning::CapacityLimit::none) deviations.push_back(run.excess - there.together.excess);
  }
  // The last loads that were tried are too close to each other for a slope.
  const double below = runs_.judged_at({load / slope_span}).together.excess;
  const double slope = (there.together.excess - below) / std::log(slope_span);
  if (deviations.size() < 2 || slope <= 0) return {load, 0, saturated.hi};
  const double half = half_width_of(deviations) / slope;
  return {load, load * std::exp(-half), std::min(load * std::exp(half), std::max(load, saturated.hi))};
}

FoundClients SustainableSearch::find_clients() {
  const std::int64_t all = *question_.workload.clients;
  if (!is_limited(question_.limits)) return {all, planning::CapacityLimit::none};
  FoundClients found;
  const auto are_too_many = [&](std::int64_t clients) {
    const JudgedRequests here = runs_.judged_at({.clients = clients}).together;
    if (here.excess > 0) found.by = here.by;
    return here.excess > 0;
  };
  found.most = least_that(all, likely_clients(), are_too_many) - 1;
  return found;
}

std::int64_t SustainableSearch::find_replicas(double requests_per_second, std::int64_t most) {
  const bool limited = is_limited(question_.limits);
  std::optional<double> saturated;
  const auto suffice = [&](std::int64_t replicas) {
    const double each = requests_per_second / static_cast<double>(replicas);
    if (limited && runs_.judged_at({each}).together.excess > 0) return false;
    if (!saturated) saturated = runs_.saturated_rate().value;
    return each <= *saturated;
  };
  const double expected = planned_.saturation() ? planned_.saturation()->requests_per_second : requests_per_second;
  const auto replicas_at = [&](double load) {
    return static_cast<std::int64_t>(std::min(static_cast<double>(most), std::ceil(requests_per_second / load)));
  };
  most = replicas_at(least_load * expected);
  if (most < 1) return 0;
  const std::int64_t fewest = least_that(most, replicas_at(limited ? first_guess(expected).load : expected), suffice);
  return fewest > most ? 0 : fewest;
}

/// Those of a like scenario, else those that the formulas expect within the limit on the time per output token, else
/// all.
std::int64_t SustainableSearch::likely_clients() const {
  const std::int64_t all = *question_.workload.clients;
  if (like_ != nullptr) return std::clamp<std::int64_t>(like_->clients_within_limits, 1, all);
  if (!question_.limits.tpot_seconds || !planned_.saturation()) return all;
  const double tpot = *question_.limits.tpot_seconds / usual_percentile;
  const double saturated = planned_.saturation()->requests_per_second;
  const double load = std::min(saturated, planned_.load_with(tpot, saturated));
  return std::clamp<std::int64_t>(std::llround(load * tpot * planned_.output_tokens()), 1, all);
}

}  // namespace specdec::sim
