#include <array>

#include "sim/policies.hpp"
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

}  // namespace

std::span<const PolicyKind> policy_kinds() {
  static constexpr std::array kinds{
      PolicyKind{"fixed", nullptr, fixed},         PolicyKind{"threshold", nullptr, threshold},
      PolicyKind{"product", nullptr, product},     PolicyKind{"confidence", nullptr, confidence},
      PolicyKind{"heuristic", nullptr, heuristic},
  };
  return kinds;
}

}  // namespace specdec::validation
