#include "analysis/theory/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "analysis/core/checks.hpp"

namespace specdec::theory {
namespace {

constexpr std::int64_t largest_depth = std::int64_t{1} << 24U;

void require_acceptance(std::string_view function, std::span<const double> acceptance, std::int64_t gamma) {
  core::require_in(function, "gamma", gamma, 0, std::numeric_limits<std::int64_t>::max());
  for (std::size_t t = 0; t < acceptance.size(); ++t) {
    if (!(0 <= acceptance[t] && acceptance[t] <= 1)) {
      core::require_in(function, fmt::format("acceptance at position {}", t), acceptance[t], 0, 1);
    }
  }
}

}  // namespace

ReplayedSteps replay_steps_within(std::span<const double> acceptance, std::int64_t depths,
                                  std::span<const std::int64_t> limits) {
  core::require_in("replay_steps_within", "depths", depths, 1, largest_depth);
  const auto columns = static_cast<std::size_t>(depths);
  core::require_same_size("replay_steps_within", "limits", limits.size() * columns, "acceptance", acceptance.size());
  require_acceptance("replay_steps_within", acceptance, 0);
  for (const std::int64_t limit : limits)
    core::require_in("replay_steps_within", "limits", limit, 0, std::numeric_limits<std::int64_t>::max());
  const std::size_t length = limits.size();
  // Calls visit(k, P(k | t)) for every number k of tokens that a step from t may emit; steps that reach beyond the text
  // end at k = T - t, since nothing remains after them.
  const auto visit_step = [&](std::size_t t, auto visit) {
    const std::size_t drafted = std::min(static_cast<std::size_t>(limits[t]), length - t - 1);
    long double reach = 1;
    for (std::size_t k = 1; k <= drafted && reach > 0; ++k) {
      const double accepted = acceptance[(t + k - 1) * columns + std::min(k, columns) - 1];
      visit(k, reach * (1 - accepted));
      reach *= accepted;
    }
    visit(drafted + 1, reach);
  };
  std::vector<long double> expected(length + 1, 0.0L), variance(length + 1, 0.0L);
  for (std::size_t t = length; t-- > 0;) {
    long double mean = 1;
    visit_step(t, [&](std::size_t k, long double p) { mean += p * expected[t + k]; });
    long double spread = 0;
    visit_step(t, [&](std::size_t k, long double p) {
      const long double deviation = 1 + expected[t + k] - mean;
      spread += p * (variance[t + k] + deviation * deviation);
    });
    expected[t] = mean;
    variance[t] = spread;
  }
  return {static_cast<double>(expected[0]), static_cast<double>(variance[0])};
}

ReplayedSteps replay_steps(std::span<const double> acceptance, std::int64_t gamma) {
  require_acceptance("replay_steps", acceptance, gamma);
  return replay_steps_within(acceptance, 1, std::vector(acceptance.size(), gamma));
}

}  // namespace specdec::theory
