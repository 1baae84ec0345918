#include "sim/policies.hpp"

#include <algorithm>
#include <limits>

#include "analysis/core/checks.hpp"

namespace specdec::sim {

DraftingPolicy threshold_policy(double token_threshold, double product_threshold) {
  core::require_in("threshold_policy", "token_threshold", token_threshold, 0, 1);
  core::require_in("threshold_policy", "product_threshold", product_threshold, 0, 1);
  DraftingPolicy policy;
  policy.stops_after = [token_threshold, product_threshold](double token_probability, double running_product) {
    return token_probability < token_threshold || running_product < product_threshold;
  };
  return policy;
}

DraftingPolicy confidence_policy(double least) {
  core::require_in("confidence_policy", "least", least, 0, 1);
  DraftingPolicy policy;
  policy.stops_before = [least](std::span<const double> row) {
    return *std::max_element(row.begin(), row.end()) < least;
  };
  return policy;
}

DraftingPolicy feedback_policy() {
  DraftingPolicy policy;
  policy.next_gamma = [](std::int64_t gamma, const Step& last) {
    if (last.accepted < last.drafted) return std::max(std::int64_t{1}, gamma - 1);
    return gamma > std::numeric_limits<std::int64_t>::max() - 2 ? gamma : gamma + 2;
  };
  return policy;
}

}  // namespace specdec::sim
