#include "analysis/theory/finite_generation.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "analysis/core/checks.hpp"

namespace specdec::theory {

FiniteGeneration finite_generation(const core::AcceptanceProfile& acceptance, std::int64_t gamma, std::int64_t tokens,
                                   const core::StepCost& cost) {
  core::require_in("finite_generation", "gamma", gamma, 0, std::numeric_limits<std::int64_t>::max());
  core::require_in("finite_generation", "tokens", tokens, 1, longest_generation);
  const std::int64_t most_drafts = std::min(gamma, tokens - 1);
  std::vector<long double> rejected_after;  // [k] = P(k drafts accepted, then one rejected)
  std::vector<long double> all_accepted;    // [h] = P(h drafts accepted)
  for (std::int64_t k = 0; k <= most_drafts; ++k) {
    rejected_after.push_back(acceptance.first_rejection(k + 1));
    all_accepted.push_back(acceptance.survival(k));
  }

  const auto size = static_cast<std::size_t>(tokens) + 1;
  std::vector<long double> steps(size, 0.0L);  // by tokens still to generate
  std::vector<long double> variance(size, 0.0L);
  std::vector<long double> time(size, 0.0L);
  for (std::size_t n = 1; n < size; ++n) {
    const std::size_t drafts = std::min(static_cast<std::size_t>(most_drafts), n - 1);
    const auto visit_step = [&](auto visit) {
      for (std::size_t k = 0; k < drafts; ++k) visit(rejected_after[k], n - k - 1);
      visit(all_accepted[drafts], n - drafts - 1);
    };
    steps[n] = 1;
    time[n] = cost.extended(static_cast<std::int64_t>(drafts));
    visit_step([&](long double p, std::size_t left) {
      steps[n] += p * steps[left];
      time[n] += p * time[left];
    });
    visit_step([&](long double p, std::size_t left) {
      const long double deviation = 1 + steps[left] - steps[n];
      variance[n] += p * (variance[left] + deviation * deviation);
    });
  }
  const auto total = static_cast<std::size_t>(tokens);
  return {static_cast<double>(steps[total]), static_cast<double>(variance[total]), static_cast<double>(time[total]),
          static_cast<double>(static_cast<long double>(tokens) / time[total])};
}

}  // namespace specdec::theory
