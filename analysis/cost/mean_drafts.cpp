#include "analysis/cost/mean_drafts.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace specdec::cost {
void MeanDrafts::add(std::int64_t gamma, double steps, double rounds, double tokens, double accepted) {
  Counted& its = by_gamma_[static_cast<double>(gamma)];
  its.steps += steps;
  its.rounds += rounds;
  its.tokens += tokens;
  its.accepted += accepted;
  its.law = core::LookupLaw::counted(std::min(1.0, its.rounds / its.steps),
                                     its.rounds > 0 ? its.tokens / its.rounds : 1, gamma);
  its.law.counted_at = {gamma, std::clamp(1 + its.accepted / its.steps, 1.0, 1 + static_cast<double>(gamma))};
}

bool MeanDrafts::some_are_short() const {
  constexpr double ends_of_answers = 0.01;
  return std::any_of(by_gamma_.begin(), by_gamma_.end(), [](const auto& counted) {
    const auto& [gamma, its] = counted;
    return its.tokens < (1 - ends_of_answers) * gamma * its.steps;
  });
}

double MeanDrafts::operator()(double gamma) const {
  const auto above = by_gamma_.lower_bound(gamma);
  if (above == by_gamma_.begin()) return above->second.law.mean_drafted(gamma);
  const auto below = std::prev(above);
  const double of_shorter = below->second.law.mean_drafted(gamma);
  if (above == by_gamma_.end()) return of_shorter;
  return std::lerp(of_shorter, above->second.law.mean_drafted(gamma),
                   (gamma - below->first) / (above->first - below->first));
}

MeanDraftsCost::MeanDraftsCost(std::shared_ptr<const RoundCost> base, std::function<double(double)> mean_drafts)
    : WrappedCost(std::move(base)), mean_drafts_(std::move(mean_drafts)) {
  if (!mean_drafts_) throw std::invalid_argument("MeanDraftsCost: mean_drafts is empty, but must be a function");
}

RoundTime MeanDraftsCost::price(std::size_t version, const RoundPoint& point) const {
  const double drafts = mean_drafts_(static_cast<double>(point.gamma));
  RoundPoint shorter = point;
  shorter.gamma = std::min(point.gamma, static_cast<std::int64_t>(drafts));
  if (shorter.gamma == point.gamma) return base().price(version, point);
  shorter.full_accepts = 0;
  const RoundTime below = base().price(version, shorter);
  const double way = drafts - static_cast<double>(shorter.gamma++);
  const RoundTime above = base().price(version, shorter);
  return {.target = std::lerp(below.target, above.target, way),
          .draft = std::lerp(below.draft, above.draft, way),
          .overhead = std::lerp(below.overhead, above.overhead, way)};
}

}  // namespace specdec::cost
