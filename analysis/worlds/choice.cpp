#include "analysis/worlds/choice.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/estimate/alternatives.hpp"

namespace specdec::worlds {
namespace {

/// Of the options from `first` on the one of least regret, as choose() breaks ties.
std::size_t least_regret(const std::vector<double>& regrets, std::size_t first, double alike,
                         const std::vector<bool>& measured) {
  const double least = *std::min_element(regrets.begin() + static_cast<std::ptrdiff_t>(first), regrets.end());
  std::size_t smallest = regrets.size();
  for (std::size_t option = first; option < regrets.size(); ++option) {
    if (regrets[option] > least + alike) continue;
    if (option < measured.size() && measured[option]) return option;
    smallest = std::min(smallest, option);
  }
  return smallest;
}

/// Whether no two worlds of an alternative differ.
bool is_exact(const Table& speedups) {
  const std::vector<int>& alternative = speedups.alternative;
  return std::all_of(speedups.options.begin(), speedups.options.end(), [&](const std::vector<double>& option) {
    for (std::size_t world = 1; world < option.size(); ++world)
      if (alternative[world] == alternative[world - 1] && option[world] != option[world - 1]) return false;
    return true;
  });
}

}  // namespace

std::string_view name_of(Certainty certainty) {
  constexpr std::array<std::string_view, 5> names = {"sure", "likely", "open", "unlikely", "no"};
  return names[static_cast<std::size_t>(certainty)];
}

Certainty certainty_of(double share) {
  if (share >= 0.95) return Certainty::sure;
  if (share >= 0.75) return Certainty::likely;
  if (share >= 0.25) return Certainty::open;
  return share >= 0.05 ? Certainty::unlikely : Certainty::no;
}

std::vector<double> regrets_of(const Table& speedups, double min_gain) {
  const std::size_t worlds = speedups.worlds(), count = speedups.options.size();
  std::vector<double> best(worlds, 1 + min_gain);
  for (std::size_t option = 1; option < count; ++option) {
    for (std::size_t world = 0; world < worlds; ++world)
      best[world] = std::max(best[world], speedups.options[option][world]);
  }
  const auto alternatives = estimate::worlds_of_alternatives(speedups.alternative);
  std::vector<double> regrets;
  for (std::size_t option = 0; option < count; ++option) {
    double worst = 0;
    for (const std::vector<std::size_t>& its : alternatives) {
      double sum = 0;
      for (const std::size_t world : its)
        sum += 1 - (option == 0 ? 1 + min_gain : speedups.options[option][world]) / best[world];
      if (!its.empty()) worst = std::max(worst, sum / static_cast<double>(its.size()));
    }
    regrets.push_back(worst);
  }
  return regrets;
}

Choice choose(const Table& speedups, const ChoiceOptions& options) {
  if (speedups.options.empty()) throw std::invalid_argument("choose: there are no options");
  for (const std::vector<double>& option : speedups.options)
    core::require_same_size("choose", "an option", option.size(), "the worlds", speedups.worlds());
  Choice choice;
  choice.regrets = regrets_of(speedups, options.min_gain);
  const auto fastest = std::min_element(choice.regrets.begin(), choice.regrets.end());
  const bool is_last = fastest + 1 == choice.regrets.end();
  const double alike = is_exact(speedups) && !is_last ? 0 : alike_regrets;
  if (speedups.options.size() > 1) choice.drafting = least_regret(choice.regrets, 1, alike, options.measured);
  choice.take(least_regret(choice.regrets, 0, alike, options.measured), speedups, options.min_gain);
  return choice;
}

void Choice::take(std::size_t other, const Table& speedups, double min_gain) {
  option = other;
  if (option > 0) drafting = option;
  if (drafting > 0) share = share_at_least(speedups.options[drafting], speedups.alternative, 1 + min_gain);
}

}  // namespace specdec::worlds
