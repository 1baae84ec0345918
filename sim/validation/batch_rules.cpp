#include "sim/validation/batch_rules.hpp"

#include <algorithm>

namespace specdec::validation {
namespace {

using sim::BatchDecision;
using sim::BatchedPlace;

constexpr std::int64_t rounds_to_half_counts = 1024;

constexpr double weight_of_last_round = 0.2;
constexpr std::int64_t rounds_before_steps_change = 10;
constexpr std::int64_t rounds_between_changes = 5;
constexpr double down_below = 0.5;
constexpr double up_above = 0.75;

BatchDecision same_for_all(std::int64_t gamma, std::span<const BatchedPlace> batch) {
  BatchDecision decision{gamma, {}};
  for (const BatchedPlace& at : batch) decision.verified.push_back(std::min(gamma, at.most_drafts()));
  return decision;
}

/// Drafts of a text that were reached: those accepted, and the first rejected one.
std::int64_t reached(std::int64_t verified, std::int64_t accepted) { return std::min(verified, accepted + 1); }

}  // namespace

std::vector<std::int64_t> drafts_from(std::int64_t gamma, const sim::DraftingPolicy& policy,
                                      std::span<const double> probability, const std::vector<bool>& left_out) {
  std::vector<std::int64_t> drafts(left_out.size(), gamma);
  for (std::size_t t = 0; t < drafts.size(); ++t) {
    double product = 1;
    bool stopped = false;
    std::int64_t drafted = 0;
    for (std::size_t i = t; !stopped && drafted < gamma && i < drafts.size() && !left_out[i]; ++i, ++drafted)
      stopped = policy.stops_after && policy.stops_after(probability[i], product *= probability[i]);
    drafts[t] = drafted;
  }
  return drafts;
}

BatchDecision PolicyRule::decide(std::span<const BatchedPlace> batch) {
  const BatchedPlace& at = batch.front();
  const std::int64_t drafted = std::min(gamma_, at.most_drafts());
  return {drafted, {most_.empty() ? drafted : std::min(drafted, most_[static_cast<std::size_t>(at.place)])}};
}

void PolicyRule::observe(std::span<const BatchedPlace>, const BatchDecision& decision,
                         std::span<const std::int64_t> accepted) {
  if (next_gamma_) gamma_ = next_gamma_(gamma_, {decision.drafted, accepted.front()});
}

BatchDecision BudgetRule::decide(std::span<const BatchedPlace> batch) {
  theory::Survivals now, before;
  for (const BatchedPlace& at : batch) {
    std::vector<double>& survival = now.emplace_back();
    double product = 1;
    const auto drafts = static_cast<std::size_t>(std::min(gamma_, at.most_drafts()));
    while (survival.size() < drafts)
      survival.push_back(product *= estimate(at, static_cast<std::int64_t>(survival.size())));
    last_.resize(std::max(last_.size(), at.number + 1));
    std::vector<double>& last = last_[at.number];
    last.resize(drafts, last.empty() ? 1 : last.back());
    before.push_back(std::exchange(last, survival));
  }
  const theory::VerificationBudget budget =
      theory::best_budget(sees_at_once() ? now : before,
                          [&](std::int64_t drafts) { return cost_(std::ssize(batch), gamma_, drafts); });
  return {gamma_, theory::admitted_drafts(now, budget.drafts)};
}

double KnownBudgetRule::estimate(const BatchedPlace& at, std::int64_t depth) const {
  return at.text->acceptance_at(at.place + depth, depth);
}

double CountingBudgetRule::estimate(const BatchedPlace& at, std::int64_t depth) const {
  const auto group = static_cast<std::size_t>(at.text->group);
  const Counts seen = group < counts_.size() ? counts_[group][static_cast<std::size_t>(depth)] : Counts{};
  return (seen.accepted + 1) / (seen.reached + 2);
}

void CountingBudgetRule::observe(std::span<const BatchedPlace> batch, const BatchDecision& decision,
                                 std::span<const std::int64_t> accepted) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto group = static_cast<std::size_t>(batch[i].text->group);
    if (group >= counts_.size()) counts_.resize(group + 1, std::vector<Counts>(static_cast<std::size_t>(gamma())));
    for (std::int64_t k = 0; k < reached(decision.verified[i], accepted[i]); ++k) {
      Counts& at = counts_[group][static_cast<std::size_t>(k)];
      at.reached += 1;
      at.accepted += k < accepted[i] ? 1 : 0;
    }
  }
  if (++rounds_ % rounds_to_half_counts != 0) return;
  for (std::vector<Counts>& group : counts_)
    for (Counts& at : group) at = {at.accepted / 2, at.reached / 2};
}

MovingAverageRule::MovingAverageRule(std::int64_t gamma) : average_(static_cast<double>(gamma - 1)) {
  for (const std::int64_t usual : {1, 3, 7})
    if (usual < gamma) candidates_.push_back(usual);
  candidates_.push_back(gamma);
  current_ = candidates_.size() - 1;
}

BatchDecision MovingAverageRule::decide(std::span<const BatchedPlace> batch) {
  return same_for_all(candidates_[current_], batch);
}

void MovingAverageRule::observe(std::span<const BatchedPlace>, const BatchDecision&,
                                std::span<const std::int64_t> accepted) {
  double mean = 0;
  for (const std::int64_t one : accepted) mean += static_cast<double>(one) / static_cast<double>(accepted.size());
  average_ += weight_of_last_round * (mean - average_);
  if (++rounds_ <= rounds_before_steps_change || (rounds_ - rounds_before_steps_change) % rounds_between_changes != 0)
    return;
  const auto candidate = [&](std::size_t i) { return static_cast<double>(candidates_[i]); };
  while (current_ > 0 && average_ <= candidate(current_ - 1) - down_below) --current_;
  while (current_ + 1 < candidates_.size() && average_ > candidate(current_) - up_above) ++current_;
}

}  // namespace specdec::validation
