#include "analysis/cost/round_cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "analysis/core/checks.hpp"
#include "analysis/core/quantile.hpp"
#include "analysis/cost/preset_names.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::cost {
namespace {

/// Our name of each kind first, then engines' words.
constexpr std::array<std::pair<std::string_view, DraftKind>, 16> draft_kinds = {{{"model", DraftKind::model},
                                                                                 {"mirrored", DraftKind::mirrored},
                                                                                 {"eagle", DraftKind::eagle},
                                                                                 {"mtp", DraftKind::mtp},
                                                                                 {"parallel", DraftKind::parallel},
                                                                                 {"ngram", DraftKind::ngram},
                                                                                 {"suffix", DraftKind::suffix},
                                                                                 {"eagle2", DraftKind::eagle},
                                                                                 {"eagle3", DraftKind::eagle},
                                                                                 {"nextn", DraftKind::mtp},
                                                                                 {"medusa", DraftKind::parallel},
                                                                                 {"dflash", DraftKind::parallel},
                                                                                 {"lookup", DraftKind::ngram},
                                                                                 {"prompt_lookup", DraftKind::ngram},
                                                                                 {"draft_model", DraftKind::model},
                                                                                 {"standalone", DraftKind::model}}};

}  // namespace

std::string_view name_of(DraftKind kind) {
  return std::find_if(draft_kinds.begin(), draft_kinds.end(), [&](const auto& one) { return one.second == kind; })
      ->first;
}

std::optional<DraftKind> draft_kind_named(std::string_view name) {
  const std::string key = preset_key(name);
  for (const auto& [its_name, kind] : draft_kinds) {
    if (preset_key(its_name) == key) return kind;
  }
  return std::nullopt;
}

std::optional<DraftKind> kind_of_method(std::string_view method) {
  const std::string word = traces::lower_case(method);
  if (const auto kind = draft_kind_named(word)) return kind;
  for (const std::string_view part :
       {"eagle", "mtp", "nextn", "suffix", "ngram", "lookup", "medusa", "dflash", "parallel", "model"})
    if (word.find(part) != std::string::npos) return draft_kind_named(part);
  return std::nullopt;
}

void RoundCost::totals_of_replicates(const RoundPoint& point, std::span<double> totals) const {
  core::require_same_size("totals_of_replicates", "totals", totals.size(), "the replicates", replicates());
  for (std::size_t i = 0; i < totals.size(); ++i) totals[i] = price(1 + i, point).total();
}

Range central_range(const RoundCost& cost, const RoundPoint& point) {
  const std::size_t count = cost.replicates();
  const double total = cost.round(point).total();
  if (count == 0) return {total, total};
  std::vector<double> totals(count);
  cost.totals_of_replicates(point, totals);
  std::sort(totals.begin(), totals.end());
  return {core::sorted_quantile(totals, 0.025), core::sorted_quantile(totals, 0.975)};
}

double pass_beyond(double held, double longest, double measured, double tokens, double share) {
  constexpr double largest_limit = 512, least_ratio = 4;
  const double limit = measured * std::pow(std::max(largest_limit / measured, least_ratio), share);
  return std::max(held, longest * tokens / limit);
}

void require_legal(const RoundPoint& point) {
  constexpr std::string_view function = "RoundCost";
  core::require_in(function, "gamma", point.gamma, 0, core::largest_integer);
  core::require_in(function, "batch", point.batch, core::least_positive, core::largest_double);
  core::require_in(function, "context", point.context, 0, core::largest_double);
  core::require_in(function, "full_accepts", point.full_accepts, 0, 1);
}

}  // namespace specdec::cost
