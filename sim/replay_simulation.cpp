#include "sim/replay_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "sim/random.hpp"

namespace specdec::sim {
namespace {

constexpr std::int64_t most_gamma = std::int64_t{1} << 24U;

void require_column(std::size_t size, std::size_t positions, const char* name) {
  core::require_same_size("replay", "sequence", positions, name, size);
}

void require_probability(const ReplayedPositions& positions, std::size_t i, const char* name, double value) {
  if (0 <= value && value <= 1) return;
  throw std::domain_error(fmt::format("replay: {} at place {} of sequence {} is {}, but must be in [0, 1]", name,
                                      positions.place[i], positions.sequence[i], value));
}

/// Requires columns of the right lengths, and every acceptance that a round could use to be in [0, 1].
void require_valid(const ReplayedPositions& positions, std::size_t looked_at_depths) {
  const std::size_t size = positions.sequence.size();
  require_column(positions.place.size(), size, "place");
  core::require_in("replay", "depths", positions.depths, 1, most_gamma);
  const auto depths = static_cast<std::size_t>(positions.depths);
  require_column(positions.acceptance.size() / depths, size, "acceptance");
  for (std::size_t i = 0; i < size; ++i) {
    // No round reaches depth j + 1 before place j.
    const auto reached = static_cast<std::size_t>(std::min<std::int64_t>(positions.place[i] + 1, positions.depths));
    for (std::size_t j = 0; j < std::min(reached, looked_at_depths); ++j)
      require_probability(positions, i, "acceptance", positions.acceptance[i * depths + j]);
  }
}

double acceptance_at(const ReplayedPositions& positions, std::size_t i, std::int64_t depth) {
  return positions.acceptance[i * static_cast<std::size_t>(positions.depths) +
                              static_cast<std::size_t>(std::min(depth, positions.depths - 1))];
}

double luck(std::uint64_t seed, const ReplayedPositions& positions, std::size_t i) {
  return RandomStream(seed, static_cast<std::uint64_t>(positions.sequence[i]))
      .uniform(positions.place[i], 0, Purpose::acceptance);
}

}  // namespace

void ReplayCounters::add(const ReplayedRound& round) {
  ++rounds;
  tokens += round.emitted;
  accepted += round.accepted;
  drafted += round.drafted;
  const auto slots = static_cast<std::size_t>(round.accepted);
  accepted_at.resize(std::max(accepted_at.size(), slots));
  for (std::size_t j = 0; j < slots; ++j) ++accepted_at[j];
}

ReplaySimulation::ReplaySimulation(const ReplayedPolicy& policy, std::uint64_t seed, OnRound on_round)
    : policy_(policy), seed_(seed), on_round_(std::move(on_round)), gamma_(policy.gamma) {
  core::require_in("ReplaySimulation", "gamma", policy.gamma, 0, most_gamma);
  core::require_in("ReplaySimulation", "threshold", policy.threshold, 0, 1);
}

bool ReplaySimulation::looks_at_probabilities() const {
  return policy_.policy == DraftPolicy::threshold || policy_.policy == DraftPolicy::product;
}

void ReplaySimulation::add(const ReplayedPositions& positions) {
  const bool any_depth = policy_.policy == DraftPolicy::feedback;
  require_valid(positions, static_cast<std::size_t>(any_depth ? positions.depths : policy_.gamma));
  if (looks_at_probabilities()) {
    require_column(positions.draft_probability.size(), positions.sequence.size(), "draft_probability");
    for (std::size_t i = 0; i < positions.sequence.size(); ++i)
      require_probability(positions, i, "draft_probability", positions.draft_probability[i]);
  }
  for (std::size_t i = 0; i < positions.sequence.size(); ++i) {
    if (sequence_ != positions.sequence[i]) {
      end_sequence();
      sequence_ = positions.sequence[i];
    }
    take(positions, i);
  }
}

void ReplaySimulation::finish() { end_sequence(); }

/// Processes the token at position i, the next of the text, in the current round.
void ReplaySimulation::take(const ReplayedPositions& positions, std::size_t i) {
  if (!in_round_) {
    round_ = {.place = positions.place[i]};
    in_round_ = true;
    stopped_ = false;
    product_ = 1;
  }
  ++length_;
  ++round_.emitted;
  const bool drafts = round_.accepted < gamma_ && !stopped_;
  if (drafts && luck(seed_, positions, i) < acceptance_at(positions, i, round_.accepted)) {
    ++round_.accepted;
    stopped_ = policy_stops(positions, i);
    return;
  }
  round_.rejected = drafts;
  end_round();
  settle(false);
}

void ReplaySimulation::end_round() {
  unsettled_.push_back({round_, gamma_});
  in_round_ = false;
  if (policy_.policy == DraftPolicy::feedback)
    gamma_ = round_.accepted < gamma_ ? std::max<std::int64_t>(1, gamma_ - 1) : gamma_ + 2;
}

bool ReplaySimulation::policy_stops(const ReplayedPositions& positions, std::size_t i) {
  if (!looks_at_probabilities()) return false;
  const double own = positions.draft_probability[i];
  product_ *= own;
  return (policy_.policy == DraftPolicy::threshold ? own : product_) < policy_.threshold;
}

/// The last token of a text is never drafted: min(gamma, tokens left - 1) is the limit of a round. A round that took
/// its last token for a draft, accepted or not, actually had the target's own there.
void ReplaySimulation::end_sequence() {
  if (!sequence_) return;
  if (in_round_) {
    round_.accepted = round_.emitted - 1;
    end_round();
  }
  if (!unsettled_.empty()) {
    ReplayedRound& last = unsettled_.back().round;
    last.rejected = last.rejected && last.accepted < length_ - 1 - last.place;
  }
  settle(true);
  sequence_.reset();
  length_ = 0;
  gamma_ = policy_.gamma;
}

/// Passes on the rounds whose limit is known: those followed by their gamma tokens and one more, or all at the end.
void ReplaySimulation::settle(bool at_end) {
  std::size_t done = 0;
  for (; done < unsettled_.size(); ++done) {
    auto& [round, gamma] = unsettled_[done];
    if (!at_end && length_ - round.place <= gamma) break;
    round.drafted = std::min(gamma, length_ - round.place - 1);
    counters_.add(round);
    if (on_round_) on_round_(round);
  }
  unsettled_.erase(unsettled_.begin(), unsettled_.begin() + static_cast<std::ptrdiff_t>(done));
}

}  // namespace specdec::sim
