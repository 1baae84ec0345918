#include <array>
#include <memory>

#include "sim/policies.hpp"
#include "sim/validation/batch_rules.hpp"
#include "sim/validation/known_beta.hpp"
#include "sim/validation/methods.hpp"

namespace specdec::validation {
namespace {

DraftedLength fixed(const MethodSettings& settings) { return {settings.gamma}; }

DraftedLength threshold(const MethodSettings& settings) {
  return {settings.gamma, sim::threshold_policy(settings.threshold)};
}

DraftedLength product(const MethodSettings& settings) {
  return {settings.gamma, sim::threshold_policy(0, settings.threshold)};
}

DraftedLength confidence(const MethodSettings& settings) {
  return {settings.gamma, sim::confidence_policy(settings.threshold)};
}

DraftedLength heuristic(const MethodSettings& settings) { return {settings.gamma, sim::feedback_policy()}; }

DraftedLength oracle(const MethodSettings& settings) { return {settings.most_drafts, {}, true}; }

DraftedLength by_batch(const MethodSettings& settings) {
  return {sim::gamma_at(settings.schedule, static_cast<double>(settings.batch))};
}

std::string lacks_schedule(const MethodContext& context, const VerifierKind&) {
  return context.settings().schedule.empty() ? "there is no schedule of gammas by batch" : "";
}

using RuleOfBatch = std::unique_ptr<sim::BatchRule>;

/// A rule that weighs drafts against their cost.
template <class Rule>
RuleOfBatch budget_rule(const MethodSettings& settings, const sim::BatchCost& cost) {
  return std::make_unique<Rule>(settings.gamma, cost);
}

RuleOfBatch moving_average(const MethodSettings& settings, const sim::BatchCost&) {
  return std::make_unique<MovingAverageRule>(settings.gamma);
}

std::string lacks_batch(const MethodContext& context, const VerifierKind&) {
  if (!context.source().recording) return "texts are decoded together in the replay of a recording alone";
  return context.settings().batch < 2 ? "there is no batch of several texts" : "";
}

std::string lacks_budget(const MethodContext& context, const VerifierKind& verifier) {
  if (std::string lack = lacks_batch(context, verifier); !lack.empty()) return lack;
  return context.settings().cost ? "" : "there is no cost to weigh drafts against";
}

constexpr ParametersUsed of_batches{.gamma = true, .batch = true};

}  // namespace

std::span<const PolicyKind> policy_kinds() {
  static constexpr std::array kinds{
      PolicyKind{"fixed", nullptr, fixed, nullptr, false, {.gamma = true}},
      PolicyKind{"threshold", nullptr, threshold, nullptr, false, {.gamma = true, .threshold = true}},
      PolicyKind{"product", nullptr, product, nullptr, false, {.gamma = true, .threshold = true}},
      PolicyKind{"confidence", nullptr, confidence, nullptr, false, {.gamma = true, .threshold = true}},
      PolicyKind{"heuristic", nullptr, heuristic, nullptr, false, {.gamma = true}},
      PolicyKind{"oracle", nullptr, oracle, nullptr, true, {}},
      PolicyKind{"known-beta", lacks_known_beta, nullptr, prepare_known_beta, true, {}},
      PolicyKind{"batch", lacks_schedule, by_batch, nullptr, false, {.schedule = true, .batch = true}},
      PolicyKind{"moving-average", lacks_batch, nullptr, nullptr, false, of_batches, moving_average},
      PolicyKind{"budget-counts", lacks_budget, nullptr, nullptr, false, of_batches, budget_rule<CountingBudgetRule>},
      PolicyKind{"budget-known", lacks_budget, nullptr, nullptr, false, of_batches, budget_rule<KnownBudgetRule>},
  };
  return kinds;
}

}  // namespace specdec::validation
