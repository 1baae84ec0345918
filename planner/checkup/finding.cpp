#include "planner/checkup/finding.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "analysis/core/checks.hpp"

namespace specdec::planner {

std::string_view name_of(Severity severity) {
  constexpr std::array<std::string_view, 3> names = {"note", "warning", "error"};
  return names.at(static_cast<std::size_t>(severity));
}

Suspicions::Suspicions(double level) : level_(level) { core::require_in("Suspicions", "level", level, 0, 1); }

void Suspicions::test(double p_value, Finding finding) {
  core::require_in("Suspicions::test", "p_value", p_value, 0, 1);
  p_values_.push_back(p_value);
  tested_.push_back(std::move(finding));
}

void Suspicions::test(double p_value, Finding finding, std::string file, std::string figure, Bound bound) {
  test(p_value, std::move(finding));
  bounds_.push_back({{std::move(file), std::move(figure), {}}, std::move(bound)});
}

std::vector<LookedFor> Suspicions::looked_for() const {
  std::vector<LookedFor> all;
  for (const auto& [what, bound] : bounds_) {
    all.push_back(what);
    all.back().bound = bound(level_ / static_cast<double>(p_values_.size()));
  }
  return all;
}

std::vector<Finding> Suspicions::findings() const {
  std::vector<Finding> standing = findings_;
  const auto tests = static_cast<double>(p_values_.size());
  for (std::size_t i = 0; i < tested_.size(); ++i) {
    if (!(p_values_[i] * tests < level_)) continue;
    standing.push_back(tested_[i]);
    standing.back().adjusted_p_value = p_values_[i] * tests;
  }
  std::stable_sort(standing.begin(), standing.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return standing;
}

}  // namespace specdec::planner
