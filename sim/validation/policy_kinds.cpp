#include <array>

#include "sim/policies.hpp"
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
  std::int64_t gamma = 0;
  for (const sim::GammaFrom& stretch : settings.schedule)
    if (stretch.batch_low <= settings.batch) gamma = stretch.gamma;
  return {gamma};
}

std::string lacks_schedule(const MethodContext& context, const VerifierKind&) {
  return context.settings().schedule.empty() ? "there is no schedule of gammas by batch" : "";
}

}  // namespace

std::span<const PolicyKind> policy_kinds() {
  static constexpr std::array kinds{
      PolicyKind{"fixed", nullptr, fixed, nullptr, false, {.gamma = true}},
      PolicyKind{"threshold", nullptr, threshold, nullptr, false, {.gamma = true, .threshold = true}},
      PolicyKind{"product", nullptr, product, nullptr, false, {.gamma = true, .threshold = true}},
      PolicyKind{"confidence", nullptr, confidence, nullptr, false, {.gamma = true, .threshold = true}},
      PolicyKind{"heuristic", nullptr, heuristic, nullptr, false, {.gamma = true}},
      PolicyKind{"oracle", nullptr, oracle, nullptr, true, {.most_drafts = true}},
      PolicyKind{"known-beta", lacks_known_beta, nullptr, prepare_known_beta, true, {.most_drafts = true}},
      PolicyKind{"batch", lacks_schedule, by_batch, nullptr, false, {.schedule = true}},
  };
  return kinds;
}

}  // namespace specdec::validation
