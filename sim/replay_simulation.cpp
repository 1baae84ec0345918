#include "sim/replay_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "analysis/core/checks.hpp"

namespace specdec::sim {
namespace {

constexpr std::int64_t most_gamma = std::int64_t{1} << 24U;

void require_probability(const ReplayedText& text, std::size_t place, const char* name, double value) {
  if (0 <= value && value <= 1) return;
  throw std::domain_error(fmt::format("replay: {} at place {} of sequence {} is {}, but must be in [0, 1]", name, place,
                                      text.sequence, value));
}

/// Requires columns of the right lengths, and every probability that a round could use to be in [0, 1].
void require_valid(const ReplayedPolicy& policy, const ReplayedText& text) {
  core::require_in("replay", "gamma", policy.gamma, 0, most_gamma);
  core::require_in("replay", "depths", text.depths, 1, most_gamma);
  const auto depths = static_cast<std::size_t>(text.depths);
  const std::size_t tokens = text.acceptance.size() / depths;
  core::require_same_size("replay", "acceptance", text.acceptance.size(), "whole rows", tokens * depths);
  const std::size_t looked_at =
      policy.policy.next_gamma ? depths : std::min(depths, static_cast<std::size_t>(policy.gamma));
  // No round reaches depth j + 1 before place j.
  for (std::size_t place = 0; place < tokens; ++place)
    for (std::size_t j = 0; j < std::min(place + 1, looked_at); ++j)
      require_probability(text, place, "acceptance", text.acceptance[place * depths + j]);
  if (!policy.policy.stops_after) return;
  core::require_same_size("replay", "draft_probability", text.draft_probability.size(), "the text", tokens);
  for (std::size_t place = 0; place < tokens; ++place)
    require_probability(text, place, "draft_probability", text.draft_probability[place]);
}

}  // namespace

std::vector<ReplayedRound> replay_rounds(const ReplayedPolicy& policy, std::uint64_t seed, const ReplayedText& text) {
  require_valid(policy, text);
  const RandomStream luck(seed, static_cast<std::uint64_t>(text.sequence));
  const std::int64_t tokens = std::ssize(text.acceptance) / text.depths;
  std::int64_t gamma = policy.gamma;
  std::vector<ReplayedRound> rounds;
  for (std::int64_t place = 0; place < tokens; place += rounds.back().emitted) {
    // The last token of a text is never drafted.
    ReplayedRound round{.place = place, .drafted = std::min(gamma, tokens - place - 1)};
    double product = 1;
    for (bool stopped = false; !stopped && round.accepted < round.drafted;) {
      const std::int64_t t = place + round.accepted;
      const std::int64_t column = std::min(round.accepted, text.depths - 1);
      const double acceptance = text.acceptance[static_cast<std::size_t>(t * text.depths + column)];
      round.rejected = luck.uniform(t, 0, Purpose::acceptance) >= acceptance;
      if (round.rejected) break;
      ++round.accepted;
      if (!policy.policy.stops_after) continue;
      const double own = text.draft_probability[static_cast<std::size_t>(t)];
      product *= own;
      stopped = policy.policy.stops_after(own, product);
    }
    round.emitted = round.accepted + 1;
    if (policy.policy.next_gamma) gamma = policy.policy.next_gamma(gamma, {round.drafted, round.accepted});
    rounds.push_back(round);
  }
  return rounds;
}

}  // namespace specdec::sim
