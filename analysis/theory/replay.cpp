#include "analysis/theory/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "analysis/core/checks.hpp"

namespace specdec::theory {
namespace {

void require_acceptance(std::string_view function, std::span<const double> acceptance, std::int64_t gamma) {
  core::require_in(function, "gamma", gamma, 0, std::numeric_limits<std::int64_t>::max());
  for (std::size_t t = 0; t < acceptance.size(); ++t) {
    if (!(0 <= acceptance[t] && acceptance[t] <= 1)) {
      core::require_in(function, fmt::format("acceptance at position {}", t), acceptance[t], 0, 1);
    }
  }
}

// Calls visit(k, P(k | t)) for every number k of tokens that a step from t may emit; steps that reach beyond the text
// end at k = T - t, since nothing remains after them.
template <class Visit>
void visit_step(std::span<const double> acceptance, std::size_t t, std::int64_t gamma, Visit visit) {
  const std::size_t remaining = acceptance.size() - t;
  const std::size_t drafted = std::min(static_cast<std::size_t>(gamma), remaining - 1);
  long double reach = 1;
  for (std::size_t k = 1; k <= drafted && reach > 0; ++k) {
    const double accept = acceptance[t + k - 1];
    visit(k, reach * (1 - accept));
    reach *= accept;
  }
  visit(drafted + 1, reach);
}

}  // namespace

ReplayedSteps replay_steps(std::span<const double> acceptance, std::int64_t gamma) {
  require_acceptance("replay_steps", acceptance, gamma);
  std::vector<long double> expected(acceptance.size() + 1, 0.0L);
  std::vector<long double> variance(acceptance.size() + 1, 0.0L);
  for (std::size_t t = acceptance.size(); t-- > 0;) {
    long double mean = 1;
    visit_step(acceptance, t, gamma, [&](std::size_t k, long double p) { mean += p * expected[t + k]; });
    long double spread = 0;
    visit_step(acceptance, t, gamma, [&](std::size_t k, long double p) {
      const long double deviation = 1 + expected[t + k] - mean;
      spread += p * (variance[t + k] + deviation * deviation);
    });
    expected[t] = mean;
    variance[t] = spread;
  }
  return {static_cast<double>(expected[0]), static_cast<double>(variance[0])};
}

std::vector<ReplayedSteps> replay_steps(std::span<const double> acceptance, std::span<const std::int64_t> gammas) {
  std::vector<ReplayedSteps> steps;
  steps.reserve(gammas.size());
  for (const std::int64_t gamma : gammas) steps.push_back(replay_steps(acceptance, gamma));
  return steps;
}

std::vector<double> steps_distribution(std::span<const double> acceptance, std::int64_t gamma) {
  require_acceptance("steps_distribution", acceptance, gamma);
  const std::size_t length = acceptance.size();
  // at[t][n] = P(n steps cover the text from t)
  std::vector<std::vector<double>> at(length + 1);
  at[length] = {1.0};
  for (std::size_t t = length; t-- > 0;) {
    at[t].assign(length - t + 1, 0.0);
    visit_step(acceptance, t, gamma, [&](std::size_t k, long double p) {
      const auto probability = static_cast<double>(p);
      for (std::size_t n = 0; n < at[t + k].size(); ++n) at[t][n + 1] += probability * at[t + k][n];
    });
  }
  return at[0];
}

}  // namespace specdec::theory
