#include "analysis/worlds/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace specdec::worlds {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

double total_weight(const std::vector<BatchRegrets>& batches) {
  double sum = 0;
  for (const BatchRegrets& one : batches)
    if (!one.regrets.empty()) sum += one.weight;
  return sum;
}

std::size_t options_of(const std::vector<BatchRegrets>& batches) {
  std::size_t most = 0;
  for (const BatchRegrets& one : batches) most = std::max(most, one.regrets.size());
  return most;
}

/// The options of batches first to last - 1, all priced, by the least sum of regrets and prices.
std::vector<std::size_t> cheapest(const std::vector<BatchRegrets>& batches, std::size_t first, std::size_t last,
                                  double weights, const SchedulePrices& prices) {
  const std::size_t options = options_of(batches);
  const auto regret = [&](std::size_t at, std::size_t option) {
    const BatchRegrets& batch = batches[at];
    return option < batch.regrets.size() ? batch.weight / weights * batch.regrets[option] : never;
  };
  std::vector<double> costs(options);
  for (std::size_t option = 0; option < options; ++option) costs[option] = regret(first, option);
  std::vector<std::vector<std::size_t>> came_from;
  for (std::size_t at = first + 1; at < last; ++at) {
    std::vector<double> next(options, never);
    std::vector<std::size_t>& from = came_from.emplace_back(options, 0);
    for (std::size_t option = 0; option < options; ++option) {
      for (std::size_t before = 0; before < options; ++before) {
        const double change =
            before == option ? 0 : prices.per_stretch + (option > before ? prices.per_rise : 0);
        const double cost = costs[before] + change;
        if (cost < next[option]) {
          next[option] = cost;
          from[option] = before;
        }
      }
      next[option] += regret(at, option);
    }
    costs = std::move(next);
  }
  std::vector<std::size_t> taken(last - first);
  taken.back() = static_cast<std::size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
  for (std::size_t i = taken.size() - 1; i > 0; --i) taken[i - 1] = came_from[i - 1][taken[i]];
  return taken;
}

/// The last batch that is nearer to `batch` than to the next one of the list.
std::int64_t last_of(std::int64_t batch, std::int64_t next) {
  const double middle = std::sqrt(static_cast<double>(batch) * static_cast<double>(next));
  return std::clamp(static_cast<std::int64_t>(std::floor(middle)), batch, next - 1);
}

}  // namespace

std::vector<Stretch> schedule(const std::vector<BatchRegrets>& batches, const SchedulePrices& prices) {
  if (batches.empty()) throw std::invalid_argument("schedule: there are no batches");
  for (std::size_t i = 1; i < batches.size(); ++i)
    if (batches[i].batch <= batches[i - 1].batch) throw std::invalid_argument("schedule: the batches do not rise");
  const double weights = total_weight(batches);
  std::vector<std::optional<std::size_t>> taken(batches.size());
  for (std::size_t first = 0; first < batches.size();) {
    std::size_t last = first + 1;
    while (last < batches.size() && batches[last].regrets.empty() == batches[first].regrets.empty()) ++last;
    if (!batches[first].regrets.empty()) {
      const std::vector<std::size_t> its = cheapest(batches, first, last, weights, prices);
      std::copy(its.begin(), its.end(), taken.begin() + static_cast<std::ptrdiff_t>(first));
    }
    first = last;
  }
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (stretches.empty() || stretches.back().option != taken[i]) {
      const std::int64_t from = stretches.empty() ? 1 : stretches.back().to + 1;
      stretches.push_back({from, from, taken[i]});
    }
    stretches.back().to =
        i + 1 < batches.size() ? last_of(batches[i].batch, batches[i + 1].batch) : batches[i].batch;
  }
  return stretches;
}

std::optional<std::size_t> fixed_option(const std::vector<BatchRegrets>& batches) {
  std::vector<double> sums(options_of(batches), 0.0);
  for (const BatchRegrets& batch : batches) {
    if (batch.regrets.empty()) continue;
    for (std::size_t option = 0; option < sums.size(); ++option)
      sums[option] += option < batch.regrets.size() ? batch.weight * batch.regrets[option] : never;
  }
  if (sums.empty()) return std::nullopt;
  return static_cast<std::size_t>(std::min_element(sums.begin(), sums.end()) - sums.begin());
}

}  // namespace specdec::worlds
