#include "traces/serving/counts_from_rates.hpp"

#include <algorithm>
#include <cmath>

namespace specdec::traces {
namespace {

constexpr double half_of_length = 0.005000001;
constexpr double half_of_rate = 0.000500001;
/// Beyond so many the rates fix no single number of rounds.
constexpr double most_tried = 100'000;

/// Non-increasing integers that round to the rates of so many rounds and sum up to `accepted`; empty if there are none.
std::vector<double> integers_of(const PrintedRates& printed, double rounds) {
  std::vector<double> result;
  double missing = printed.accepted;
  for (const double rate : printed.rates) {
    const double least = std::ceil((rate - half_of_rate) * rounds);
    const double value = std::clamp(std::round(rate * rounds), std::max(least, 0.0), rounds);
    if (std::abs(value - rate * rounds) > half_of_rate * rounds) return {};
    result.push_back(value);
    missing -= value;
  }
  // Where rounds are many, several integers round to one rate: the first positions take what is missing, the last give
  // what is too much, which keeps them from increasing.
  for (std::size_t j = 0; j < result.size() && missing > 0; ++j) {
    const double most =
        std::min({std::floor((printed.rates[j] + half_of_rate) * rounds), rounds, j > 0 ? result[j - 1] : rounds});
    const double more = std::clamp(most - result[j], 0.0, missing);
    result[j] += more;
    missing -= more;
  }
  for (std::size_t j = result.size(); j > 0 && missing < 0; --j) {
    const double least =
        std::max({std::ceil((printed.rates[j - 1] - half_of_rate) * rounds), 0.0, j < result.size() ? result[j] : 0.0});
    const double less = std::clamp(result[j - 1] - least, 0.0, -missing);
    result[j - 1] -= less;
    missing += less;
  }
  if (missing != 0) return {};
  return result;
}

}  // namespace

CountsFromRates counts_from_rates(const PrintedRates& printed) {
  CountsFromRates result;
  const auto positions = static_cast<double>(printed.rates.size());
  const double full = positions > 0 ? printed.drafted / positions : 0;
  const bool can_be_full = positions > 0 && std::floor(full) == full;
  if (!(printed.mean_length >= 1 - half_of_length) || !std::isfinite(printed.mean_length)) return result;
  // 1 + accepted / rounds is within half a unit of the mean length, and a round drafts 1 token at least.
  const double extra = printed.mean_length - 1;
  const double least = std::max({printed.accepted / (extra + half_of_length), printed.full_drafts ? full : 1.0, 1.0});
  double most =
      std::min(printed.drafted, extra > half_of_length ? printed.accepted / (extra - half_of_length) : printed.drafted);
  // Passes are counted short where an answer ends within accepted drafts.
  if (printed.passes >= std::ceil(least)) most = std::min(most, printed.passes);
  const auto fits = [&](double rounds) {
    if (!(std::ceil(least) <= rounds && rounds <= std::floor(most))) return false;
    result.accepted_at = integers_of(printed, rounds);
    return printed.rates.empty() || !result.accepted_at.empty();
  };
  const auto take = [&](double rounds) {
    result.consistent = true;
    result.rounds = rounds;
    const double fewest = std::ceil(least), largest = std::floor(most);
    if (fewest < largest && !(printed.full_drafts && rounds == full)) result.between = {fewest, largest};
    return result;
  };
  if (printed.accepted == 0) {
    const bool none = std::all_of(printed.rates.begin(), printed.rates.end(), [](double rate) { return rate == 0; });
    if (!none || extra > half_of_length) return result;
    result.accepted_at.assign(printed.rates.size(), 0);
    result.consistent = true;
    if (printed.full_drafts && can_be_full) {
      result.rounds = full;
    } else if (printed.passes <= printed.drafted) {
      result.rounds = printed.passes;
    }
    return result;
  }
  if (printed.full_drafts && can_be_full && fits(full)) return take(full);
  const double centre = std::clamp(std::round(extra > 0 ? printed.accepted / extra : most), std::ceil(least),
                                   std::max(std::floor(most), std::ceil(least)));
  for (double step = 0; step <= most_tried; ++step) {
    if (centre - step < least && centre + step > most) break;
    if (fits(centre - step)) return take(centre - step);
    if (step > 0 && fits(centre + step)) return take(centre + step);
  }
  result.accepted_at.clear();
  return result;
}

}  // namespace specdec::traces
