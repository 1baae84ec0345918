#pragma once

#include <cstdint>
#include <functional>
#include <vector>

/// Verification within a budget: the drafts of a batch compete for the tokens that one call of the target verifies.
namespace specdec::theory {

/// S_k of each request of a batch: the probability that its first k drafts are all accepted, k = 1, 2, ...
/// Shape: (requests), then (drafts of the request), each in [0, 1] and not rising.
using Survivals = std::vector<std::vector<double>>;

/// The number of drafts of each request to verify so that together they are `budget` and the expected tokens are most:
///
///   max sum_r sum_{k <= b_r} S_rk   where sum_r b_r = budget
///
/// The `budget` largest survivals: a draft counts only if those before it are accepted, and since S_rk does not rise
/// in k the largest ones are a prefix of each request. Ties go to the shorter prefix, then to the earlier request.
///
/// Source:   docs/theory.md#verification-within-a-budget
/// @param budget  [0, number of drafts]
/// @return one number per request
/// @throws std::domain_error if a survival or the budget is outside its range, or survivals rise
std::vector<std::int64_t> admitted_drafts(const Survivals& survivals, std::int64_t budget);

/// A budget and what its round is expected to do.
struct VerificationBudget {
  /// Verified drafts of all requests together, the target's own tokens not included.
  std::int64_t drafts = 0;
  /// Expected tokens of the round: one per request, and the survivals of the drafts.
  double tokens = 0;
  /// > 0
  double cost = 0;
};

/// The budget with most expected tokens per cost, the smallest in a tie:
///
///   max_B (n + sum of the B largest S_rk) / cost(B)
///
/// The best throughput of all rules that know the survivals and not the outcomes, if rounds have the same survivals.
///
/// Source:   docs/theory.md#verification-within-a-budget
/// @param cost  cost of a round with so many verified drafts, > 0
/// @throws as admitted_drafts; std::domain_error if a cost is not positive or not finite
/// Accuracy: relative error <= 1e-12
VerificationBudget best_budget(const Survivals& survivals, const std::function<double(std::int64_t drafts)>& cost);

}  // namespace specdec::theory
