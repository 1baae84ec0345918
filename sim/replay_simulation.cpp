#include "sim/replay_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"
#include "sim/random.hpp"
#include "sim/replay_draws.hpp"

namespace specdec::sim {
namespace {

constexpr std::int64_t most_gamma = std::int64_t{1} << 24U;
/// Lengths between rejections up to this one are counted, longer ones turned into steps at once.
constexpr std::size_t longest_counted = 255;
/// Tokens that one object may read, so that sums over thousands of them fit 64 bits.
constexpr std::int64_t most_tokens = std::int64_t{1} << 48;

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

double luck(std::uint64_t seed, const ReplayedPositions& positions, std::size_t i, std::int64_t repetition) {
  return RandomStream(seed, static_cast<std::uint64_t>(positions.sequence[i]))
      .uniform(positions.place[i], repetition, Purpose::acceptance);
}

void count_at(std::vector<std::int64_t>& counts, std::int64_t slots) {
  const auto size = static_cast<std::size_t>(slots);
  counts.resize(std::max(counts.size(), size));
  for (std::size_t j = 0; j < size; ++j) ++counts[j];
}

std::int64_t steps_over(std::int64_t length, std::int64_t gamma) { return (length + gamma) / (gamma + 1); }

}  // namespace

void ReplayCounters::add(const ReplayedRound& round) {
  ++rounds;
  tokens += round.emitted;
  accepted += round.accepted;
  drafted_least += round.drafted_least;
  drafted_most += round.drafted_most;
  count_at(examined_at, round.accepted + (round.rejected ? 1 : 0));
  count_at(accepted_at, round.accepted);
  accepted_at.resize(examined_at.size());
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
      ++counters_.sequences;
    }
    take(positions, i);
  }
}

void ReplaySimulation::finish() { end_sequence(); }

/// Processes the token at position i, the next of the text, in the current round.
void ReplaySimulation::take(const ReplayedPositions& positions, std::size_t i) {
  if (!in_round_) {
    round_ = {.sequence = positions.sequence[i], .place = positions.place[i]};
    in_round_ = true;
    stopped_ = false;
    product_ = 1;
  }
  ++length_;
  ++round_.emitted;
  const bool drafts = round_.accepted < gamma_ && !stopped_;
  if (drafts && luck(seed_, positions, i, 0) < acceptance_at(positions, i, round_.accepted)) {
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
    const std::int64_t limit = std::min(gamma, length_ - round.place - 1);
    round.drafted_least = round.drafted_most = round.accepted + (round.rejected ? 1 : 0);
    if (round.rejected) round.drafted_most = limit;
    if (!looks_at_probabilities()) round.drafted_least = round.drafted_most = limit;
    counters_.add(round);
    if (on_round_) on_round_(round);
  }
  unsettled_.erase(unsettled_.begin(), unsettled_.begin() + static_cast<std::ptrdiff_t>(done));
}

MonteCarloReplay::MonteCarloReplay(std::vector<std::int64_t> gammas, std::int64_t repetitions, std::uint64_t seed,
                                   std::int64_t threads)
    : gammas_(std::move(gammas)), repetitions_(repetitions), seed_(seed), threads_(threads) {
  for (const std::int64_t gamma : gammas_) core::require_in("MonteCarloReplay", "gamma", gamma, 0, most_gamma);
  core::require_in("MonteCarloReplay", "repetitions", repetitions, 2, std::int64_t{1} << 24U);
  core::require_in("MonteCarloReplay", "threads", threads, 1, 1024);
  steps_.resize(gammas_.size() * static_cast<std::size_t>(repetitions));
  depth_.resize(steps_.size());
  lengths_.resize(static_cast<std::size_t>(repetitions) * (longest_counted + 1));
  open_.resize(static_cast<std::size_t>(repetitions));
}

void MonteCarloReplay::add(const ReplayedPositions& positions) {
  const std::int64_t largest = gammas_.empty() ? 0 : *std::max_element(gammas_.begin(), gammas_.end());
  require_valid(positions, static_cast<std::size_t>(largest));
  const std::size_t size = positions.sequence.size();
  if (size == 0) return;
  if (tokens_ > 0) core::require_in("MonteCarloReplay::add", "depths", positions.depths, depths_, depths_);
  depths_ = positions.depths;
  if (depths_ > 1) {
    core::for_each_index(repetitions_, threads_,
                         [&](std::int64_t repetition, std::int64_t) { follow(positions, repetition); });
  } else {
    std::vector<std::uint64_t> thresholds(size);
    std::vector<std::uint64_t> last((size + 63) / 64);  // bits of positions whose text ends with them
    const auto [least, most] = std::minmax_element(positions.place.begin(), positions.place.end());
    core::require_in("replay", "place", *least, 0, RandomStream::max_round);
    core::require_in("replay", "place", *most, 0, RandomStream::max_round);
    for (std::size_t i = 0; i < size; ++i) {
      thresholds[i] = kernels::draw_threshold(positions.acceptance[i]);
      const bool ends = i + 1 < size && positions.sequence[i + 1] != positions.sequence[i];
      last[i / 64] |= std::uint64_t{ends} << (i % 64);
    }
    const bool begins = sequence_ != positions.sequence.front();
    core::for_each_index(repetitions_, threads_, [&](std::int64_t repetition, std::int64_t) {
      std::vector<std::uint64_t> ends(last.size());
      kernels::draw_acceptances(seed_, positions.sequence, positions.place, repetition, thresholds, ends);
      for (std::size_t word = 0; word < ends.size(); ++word) ends[word] = ~ends[word] | last[word];
      if (begins) end_length(repetition, 0);
      count_lengths(ends, size, repetition);
    });
  }
  sequence_ = positions.sequence.back();
  tokens_ += static_cast<std::int64_t>(size);
}

/// One repetition for acceptance that depends on the depth: every gamma for itself.
void MonteCarloReplay::follow(const ReplayedPositions& positions, std::int64_t repetition) {
  std::optional<std::int64_t> sequence = sequence_;
  const std::size_t first = static_cast<std::size_t>(repetition) * gammas_.size();
  for (std::size_t i = 0; i < positions.sequence.size(); ++i) {
    const bool begins = sequence != positions.sequence[i];
    sequence = positions.sequence[i];
    const double u = luck(seed_, positions, i, repetition);
    for (std::size_t g = 0; g < gammas_.size(); ++g) {
      std::int64_t& depth = depth_[first + g];
      if (begins) depth = 0;
      if (depth == 0) ++steps_[first + g];
      const bool accepted = depth < gammas_[g] && u < acceptance_at(positions, i, depth);
      depth = accepted ? depth + 1 : 0;
    }
  }
}

/// The next positions of one repetition; bits of `ends` say which are the last of a length.
void MonteCarloReplay::count_lengths(std::span<const std::uint64_t> ends, std::size_t size, std::int64_t repetition) {
  std::int64_t counted = 0;  // positions that belong to lengths that have ended
  for (std::size_t word = 0; word < ends.size(); ++word) {
    const std::size_t first = 64 * word;
    const std::size_t here = std::min<std::size_t>(64, size - first);
    std::uint64_t left = ends[word] & (~std::uint64_t{0} >> (64 - here));
    for (; left != 0; left &= left - 1) {
      const auto after = static_cast<std::int64_t>(first) + std::countr_zero(left) + 1;
      end_length(repetition, after - counted);
      counted = after;
    }
  }
  open_[static_cast<std::size_t>(repetition)] += static_cast<std::int64_t>(size) - counted;
}

/// Counts the open length and `more` tokens, if they are any, as one that has ended.
void MonteCarloReplay::end_length(std::int64_t repetition, std::int64_t more) {
  const auto r = static_cast<std::size_t>(repetition);
  const std::int64_t length = open_[r] + more;
  open_[r] = 0;
  if (length == 0) return;
  if (length <= static_cast<std::int64_t>(longest_counted)) {
    ++lengths_[r * (longest_counted + 1) + static_cast<std::size_t>(length)];
    return;
  }
  for (std::size_t g = 0; g < gammas_.size(); ++g) steps_[r * gammas_.size() + g] += steps_over(length, gammas_[g]);
}

void MonteCarloReplay::end_sequence() {
  for (std::int64_t repetition = 0; repetition < repetitions_; ++repetition) end_length(repetition, 0);
  sequence_.reset();
}

void MonteCarloReplay::merge(MonteCarloReplay other) {
  if (other.tokens_ == 0) return;
  if (tokens_ > 0) core::require_in("MonteCarloReplay::merge", "depths", other.depths_, depths_, depths_);
  core::require_same_size("MonteCarloReplay::merge", "the runs of the other", other.steps_.size(), "runs",
                          steps_.size());
  end_sequence();
  other.end_sequence();
  for (std::size_t i = 0; i < steps_.size(); ++i) steps_[i] += other.steps_[i];
  for (std::size_t i = 0; i < lengths_.size(); ++i) lengths_[i] += other.lengths_[i];
  tokens_ += other.tokens_;
  depths_ = other.depths_;
}

bool MonteCarloReplay::counts_hold() const {
  if (tokens_ < 0 || tokens_ > most_tokens || depths_ < 1) return false;
  const auto within = [](std::int64_t count, std::int64_t most) { return 0 <= count && count <= most; };
  for (const std::int64_t steps : steps_)
    if (!within(steps, tokens_)) return false;
  for (std::size_t r = 0; r < open_.size(); ++r) {
    std::int64_t left = tokens_;
    if (lengths_[r * (longest_counted + 1)] != 0) return false;
    for (std::size_t length = 1; length <= longest_counted; ++length) {
      const std::int64_t count = lengths_[r * (longest_counted + 1) + length];
      if (!within(count, left / static_cast<std::int64_t>(length))) return false;
      left -= count * static_cast<std::int64_t>(length);
    }
  }
  return true;
}

std::int64_t MonteCarloReplay::steps(std::size_t repetition, std::size_t gamma) const {
  std::int64_t steps = steps_[repetition * gammas_.size() + gamma] + steps_over(open_[repetition], gammas_[gamma]);
  for (std::size_t length = 1; length <= longest_counted; ++length) {
    steps += lengths_[repetition * (longest_counted + 1) + length] *
             steps_over(static_cast<std::int64_t>(length), gammas_[gamma]);
  }
  return steps;
}

std::vector<MonteCarloTokens> MonteCarloReplay::result() const {
  std::vector<MonteCarloTokens> results;
  if (tokens_ == 0) return results;
  const auto runs = static_cast<double>(repetitions_);
  const auto tokens = static_cast<double>(tokens_);
  for (std::size_t g = 0; g < gammas_.size(); ++g) {
    std::vector<double> steps_of;
    for (std::size_t r = 0; r < open_.size(); ++r) steps_of.push_back(static_cast<double>(steps(r, g)));
    double mean = 0;
    for (const double steps : steps_of) mean += steps / runs;
    double squares = 0;
    for (const double steps : steps_of) squares += (steps - mean) * (steps - mean);
    const double deviation = std::sqrt(squares / (runs - 1) / runs);
    results.push_back({gammas_[g], tokens / mean, tokens / (mean * mean) * deviation});
  }
  return results;
}

}  // namespace specdec::sim
