#include "analysis/theory/verification_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "analysis/core/checks.hpp"

namespace specdec::theory {
namespace {

/// One draft that competes.
struct Draft {
  double survival;
  std::int64_t position;  // 0-based
  std::size_t request;

  /// Whether it is admitted before another one.
  bool operator<(const Draft& other) const {
    return std::tuple(-survival, position, request) < std::tuple(-other.survival, other.position, other.request);
  }
};

std::vector<Draft> drafts_of(std::string_view function, const Survivals& survivals) {
  std::vector<Draft> drafts;
  for (std::size_t r = 0; r < survivals.size(); ++r) {
    double most = 1;
    for (std::size_t k = 0; k < survivals[r].size(); ++k) {
      const double survival = survivals[r][k];
      if (!(0 <= survival && survival <= most))
        core::require_in(function, fmt::format("survival of draft {} of request {}", k + 1, r), survival, 0, most);
      most = survival;
      drafts.push_back({survival, static_cast<std::int64_t>(k), r});
    }
  }
  return drafts;
}

}  // namespace

std::vector<std::int64_t> admitted_drafts(const Survivals& survivals, std::int64_t budget) {
  std::vector<Draft> drafts = drafts_of("admitted_drafts", survivals);
  core::require_in("admitted_drafts", "budget", budget, std::int64_t{0}, std::ssize(drafts));
  const auto end = drafts.begin() + budget;
  if (end != drafts.end()) std::nth_element(drafts.begin(), end, drafts.end());
  std::vector<std::int64_t> admitted(survivals.size(), 0);
  std::for_each(drafts.begin(), end, [&](const Draft& draft) { ++admitted[draft.request]; });
  return admitted;
}

VerificationBudget best_budget(const Survivals& survivals, const std::function<double(std::int64_t drafts)>& cost) {
  std::vector<Draft> drafts = drafts_of("best_budget", survivals);
  std::sort(drafts.begin(), drafts.end());
  const auto priced = [&](std::int64_t budget) {
    const double price = cost(budget);
    core::require_in("best_budget", "cost", price, core::least_positive, core::largest_double);
    return price;
  };
  VerificationBudget best{0, static_cast<double>(survivals.size()), priced(0)};
  double tokens = best.tokens;
  for (std::int64_t b = 1; b <= std::ssize(drafts); ++b) {
    tokens += drafts[static_cast<std::size_t>(b - 1)].survival;
    const double price = priced(b);
    if (tokens * best.cost > best.tokens * price) best = {b, tokens, price};
  }
  return best;
}

}  // namespace specdec::theory
