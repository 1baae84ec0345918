#include "analysis/estimate/acceptance_curve.hpp"

#include <algorithm>

namespace specdec::estimate {
namespace {

/// Values next to each other, and their mean.
struct Level {
  double sum = 0;
  std::int64_t count = 0;
  double mean() const { return sum / static_cast<double>(count); }
};

/// The closest values in squares that do not rise; their sum stays.
std::vector<double> not_rising(const std::vector<double>& values) {
  std::vector<Level> levels;
  for (const double value : values) {
    levels.push_back({value, 1});
    while (levels.size() > 1 && levels[levels.size() - 2].mean() < levels.back().mean()) {
      const Level last = levels.back();
      levels.pop_back();
      levels.back() = {levels.back().sum + last.sum, levels.back().count + last.count};
    }
  }
  std::vector<double> result;
  for (const Level& level : levels) result.insert(result.end(), static_cast<std::size_t>(level.count), level.mean());
  return result;
}

}  // namespace

std::vector<double> AcceptanceCurve::survival(std::int64_t gamma) const {
  std::vector<double> gains;
  double before = tokens_per_step(0).value;
  for (std::int64_t j = 1; j <= gamma; ++j) {
    const double tokens = tokens_per_step(j).value;
    gains.push_back(tokens - before);
    before = tokens;
  }
  std::vector<double> survival = not_rising(gains);
  for (double& one : survival) one = std::clamp(one, 0.0, 1.0);
  return survival;
}

}  // namespace specdec::estimate
