#include "analysis/worlds/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "analysis/core/checks.hpp"

namespace specdec::worlds {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// The option of each batch, by the least sum of regrets and prices.
std::vector<std::size_t> cheapest(const std::vector<BatchRegrets>& batches, const SchedulePrices& prices) {
  const std::size_t options = batches.front().regrets.size();
  const double weights = std::transform_reduce(batches.begin(), batches.end(), 0.0, std::plus<>(),
                                               [](const BatchRegrets& one) { return one.weight; });
  const auto regret = [&](const BatchRegrets& batch, std::size_t option) {
    return batch.weight / weights * batch.regrets[option];
  };
  std::vector<double> costs(options), throughout(options);
  for (std::size_t option = 0; option < options; ++option)
    costs[option] = throughout[option] = regret(batches.front(), option);
  std::vector<std::vector<std::size_t>> came_from;
  for (std::size_t at = 1; at < batches.size(); ++at) {
    std::vector<double> next(options, never);
    std::vector<std::size_t>& from = came_from.emplace_back(options, 0);
    for (std::size_t option = 0; option < options; ++option) {
      for (std::size_t before = 0; before < options; ++before) {
        const bool pauses = option == 0 || before == 0;
        const double change = before == option ? 0
                                               : prices.per_stretch + (option > before ? prices.per_rise : 0) +
                                                     (pauses ? prices.per_pause : 0);
        const double cost = costs[before] + change;
        if (cost < next[option]) {
          next[option] = cost;
          from[option] = before;
        }
      }
      next[option] += regret(batches[at], option);
      throughout[option] += regret(batches[at], option);
    }
    costs = std::move(next);
  }
  const auto one = std::min_element(throughout.begin(), throughout.end());
  const auto last = std::min_element(costs.begin(), costs.end());
  if (*one <= *last + prices.several)
    return std::vector<std::size_t>(batches.size(), static_cast<std::size_t>(one - throughout.begin()));
  std::vector<std::size_t> taken(batches.size());
  taken.back() = static_cast<std::size_t>(last - costs.begin());
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
  for (std::size_t i = 1; i < batches.size(); ++i) {
    if (batches[i].batch <= batches[i - 1].batch) throw std::invalid_argument("schedule: the batches do not rise");
    core::require_same_size("schedule", "regrets", batches[i].regrets.size(), "those of the first batch",
                            batches.front().regrets.size());
  }
  const std::vector<std::size_t> taken = cheapest(batches, prices);
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

}  // namespace specdec::worlds
