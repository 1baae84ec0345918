#include "analysis/theory/adaptive_drafting.hpp"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"

namespace specdec::theory {
namespace {

constexpr double weight_tolerance = 1e-9;
constexpr std::size_t most_products = 1'000'000;

void require_law(std::string_view function, const VaryingAcceptance& acceptance, double c, std::int64_t max_gamma) {
  core::require_same_size(function, "values", acceptance.values.size(), "weights", acceptance.weights.size());
  if (acceptance.values.empty()) throw std::invalid_argument(fmt::format("{}: values is empty", function));
  core::CompensatedSum sum;
  for (std::size_t i = 0; i < acceptance.values.size(); ++i) {
    core::require_in(function, fmt::format("value {}", i), acceptance.values[i], 0, 1);
    core::require_in(function, fmt::format("weight {}", i), acceptance.weights[i], 0, 1);
    sum.add(acceptance.weights[i]);
  }
  core::require_in(function, "sum of weights", sum.value(), 1 - weight_tolerance, 1 + weight_tolerance);
  core::require_in(function, "c", c, 0, std::numeric_limits<double>::max());
  core::require_in(function, "max_gamma", max_gamma, 0, longest_adaptive_step);
}

/// Steps that still draft, by how often each value has occurred, in any order.
struct DraftingSteps {
  double probability = 0;
  double survival = 1;  // the product of the values
};
using StepsByCounts = std::map<std::vector<std::int32_t>, DraftingSteps>;

/// drafts(S, value) returns whether the next token, of acceptance `value`, is drafted at all; goes_on(S, value), with S
/// including that token, whether another one may follow.
template <class Drafts, class GoesOn>
AdaptiveStep run_policy(std::string_view function, const VaryingAcceptance& acceptance, double c,
                        std::int64_t max_gamma, Drafts drafts, GoesOn goes_on) {
  StepsByCounts drafting;
  drafting[std::vector<std::int32_t>(acceptance.values.size(), 0)] = {1, 1};
  core::CompensatedSum tokens;
  tokens.add(1);
  core::CompensatedSum drafted;
  double at_limit = max_gamma == 0 ? 1 : 0;
  for (std::int64_t gamma = 1; gamma <= max_gamma && !drafting.empty(); ++gamma) {
    StepsByCounts next;
    for (const auto& [counts, steps] : drafting) {
      for (std::size_t i = 0; i < acceptance.values.size(); ++i) {
        const double value = acceptance.values[i];
        const double probability = steps.probability * acceptance.weights[i];
        if (probability == 0 || !drafts(steps.survival, value)) continue;
        const double survival = steps.survival * value;
        drafted.add(probability);
        tokens.add(probability * survival);
        if (gamma == max_gamma) at_limit += probability;
        if (!goes_on(survival, value)) continue;
        std::vector<std::int32_t> longer = counts;
        ++longer[i];
        DraftingSteps& reached = next[std::move(longer)];
        reached.probability += probability;
        reached.survival = survival;
      }
    }
    if (next.size() > most_products)
      core::require_in(function, "number of products of acceptances", static_cast<std::int64_t>(next.size()), 0,
                       static_cast<std::int64_t>(most_products));
    drafting = std::move(next);
  }
  const double cost = 1 + c * drafted.value();
  return {tokens.value(), drafted.value(), cost, tokens.value() / cost, at_limit};
}

bool always(double, double) { return true; }

}  // namespace

double VaryingAcceptance::mean() const {
  require_law("VaryingAcceptance", *this, 0, 0);
  core::CompensatedSum sum;
  for (std::size_t i = 0; i < values.size(); ++i) sum.add(weights[i] * values[i]);
  return sum.value();
}

AdaptiveStep survival_threshold_step(const VaryingAcceptance& acceptance, double c, double threshold,
                                     std::int64_t max_gamma) {
  require_law("survival_threshold_step", acceptance, c, max_gamma);
  core::require_in("survival_threshold_step", "threshold", threshold, 0, 1);
  return run_policy("survival_threshold_step", acceptance, c, max_gamma, always,
                    [&](double survival, double) { return survival >= threshold; });
}

AdaptiveStep confidence_threshold_step(const VaryingAcceptance& acceptance, double c, double threshold,
                                       std::int64_t max_gamma) {
  require_law("confidence_threshold_step", acceptance, c, max_gamma);
  core::require_in("confidence_threshold_step", "threshold", threshold, 0, 1);
  return run_policy("confidence_threshold_step", acceptance, c, max_gamma, always,
                    [&](double, double value) { return value >= threshold; });
}

BestStopping best_stopping(const VaryingAcceptance& acceptance, double c, DraftForesight foresight,
                           std::int64_t max_gamma) {
  require_law("best_stopping", acceptance, c, max_gamma);
  const double alpha = acceptance.mean();
  BestStopping best{{1, 0, 1, 1, max_gamma == 0 ? 1.0 : 0.0}, 0};
  for (;;) {
    const double price = best.step.speedup * c;
    AdaptiveStep step{};
    if (foresight == DraftForesight::next) {
      best.survival_threshold = price;
      step = run_policy(
          "best_stopping", acceptance, c, max_gamma,
          [&](double survival, double value) { return survival * value > price; }, always);
    } else {
      best.survival_threshold = alpha > 0 ? price / alpha : std::numeric_limits<double>::infinity();
      step = run_policy(
          "best_stopping", acceptance, c, max_gamma, [&](double survival, double) { return survival * alpha > price; },
          always);
    }
    if (step.speedup <= best.step.speedup) return best;
    best.step = step;
  }
}

}  // namespace specdec::theory
