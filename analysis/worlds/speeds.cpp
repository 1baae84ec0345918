#include "analysis/worlds/speeds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/quantile.hpp"
#include "analysis/estimate/alternatives.hpp"

namespace specdec::worlds {
namespace {

/// Prices beyond what was measured may come out as zero, or overflow.
bool is_time(double seconds) { return 0 < seconds && seconds <= std::numeric_limits<double>::max(); }

double usual_round(const cost::RoundCost& cost, const cost::RoundPoint& point) {
  const double usual = cost.round(point).total();
  if (is_time(usual)) return usual;
  throw std::domain_error(
      fmt::format("the cost of a round at gamma {}, batch {:g}, context {:g} is {:g}, but must be positive and finite",
                  point.gamma, point.batch, point.context, usual));
}

/// Rounds in every world: of a cost without replicates the same in all.
std::vector<double> rounds_in_worlds(const cost::RoundCost& cost, const cost::RoundPoint& point, std::size_t worlds) {
  if (cost.replicates() == 0) return std::vector<double>(worlds, usual_round(cost, point));
  std::vector<double> replicates(cost.replicates()), rounds(worlds);
  cost.totals_of_replicates(point, replicates);
  for (double& one : replicates)
    if (!is_time(one)) one = usual_round(cost, point);
  for (std::size_t world = 0; world < worlds; ++world) rounds[world] = replicates[world % replicates.size()];
  return rounds;
}

}  // namespace

Spread spread_of(std::span<const double> values, std::span<const int> alternative) {
  core::require_same_size("spread_of", "values", values.size(), "alternative", alternative.size());
  if (values.empty()) throw std::invalid_argument("spread_of: there are no worlds");
  Spread spread;
  const auto alternatives = estimate::worlds_of_alternatives(alternative);
  for (const std::vector<std::size_t>& worlds : alternatives) {
    std::vector<double> its;
    for (const std::size_t world : worlds) its.push_back(values[world]);
    if (its.empty()) continue;
    const estimate::Interval ci95 = {core::quantile(its, 0.025), core::quantile(its, 0.975)};
    const double median = core::quantile(its, 0.5);
    if (&worlds == &alternatives.front()) spread = {median, ci95, {median, median}};
    spread.ci95 = {std::min(spread.ci95.lo, ci95.lo), std::max(spread.ci95.hi, ci95.hi)};
    spread.middles = {std::min(spread.middles.lo, median), std::max(spread.middles.hi, median)};
  }
  if (alternatives.size() > 1) spread.middle = (spread.middles.lo + spread.middles.hi) / 2;
  return spread;
}

double share_at_least(std::span<const double> values, std::span<const int> alternative, double least) {
  double lowest = 1, highest = 0;
  for (const std::vector<std::size_t>& worlds : estimate::worlds_of_alternatives(alternative)) {
    if (worlds.empty()) continue;
    const auto reached =
        std::count_if(worlds.begin(), worlds.end(), [&](std::size_t world) { return values[world] >= least; });
    const double share = static_cast<double>(reached) / static_cast<double>(worlds.size());
    lowest = std::min(lowest, share);
    highest = std::max(highest, share);
  }
  constexpr double undecided = 0.5;
  return std::clamp(undecided, lowest, highest);
}

PricedWorlds price(const estimate::TokenWorlds& tokens, const cost::RoundCost& cost, const Options& options,
                   double batch, double context) {
  core::require_same_size("price", "full_accepts", options.full_accepts.size(), "gammas", options.gammas.size());
  PricedWorlds priced;
  // Exact rates and their alternatives are few worlds, which are repeated until every replicate of the cost has one.
  const std::size_t drawn = tokens.worlds(), repeats = std::max<std::size_t>(1, (cost.replicates() + drawn - 1) / drawn);
  const auto repeated = [&](const auto& values) {
    std::decay_t<decltype(values)> all;
    for (std::size_t i = 0; i < repeats; ++i) all.insert(all.end(), values.begin(), values.end());
    return all;
  };
  priced.speedups.alternative = repeated(tokens.alternative);
  priced.tokens.alternative = priced.rounds.alternative = priced.speedups.alternative;
  const std::size_t worlds = priced.speedups.worlds();
  for (std::size_t option = 0; option < options.gammas.size(); ++option) {
    const cost::RoundPoint point = {options.gammas[option], batch, context, options.full_accepts[option]};
    const auto gamma = static_cast<std::size_t>(point.gamma);
    priced.tokens.options.push_back(repeated(tokens.tokens.at(gamma)));
    priced.rounds.options.push_back(rounds_in_worlds(cost, point, worlds));
    std::vector<double>& speedups = priced.speedups.options.emplace_back(worlds, 1.0);
    if (option == 0) continue;
    for (std::size_t world = 0; world < worlds; ++world) {
      speedups[world] = priced.tokens.options[option][world] * priced.rounds.options[0][world] /
                        priced.rounds.options[option][world];
    }
  }
  return priced;
}

}  // namespace specdec::worlds
