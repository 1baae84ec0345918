#include "analysis/planning/replica_iterations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace specdec::planning {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

}  // namespace

ReplicaIterations::ReplicaIterations(const cost::IterationCost& cost, const LoadedReplica& replica)
    : cost_(cost),
      load_(replica.load),
      limits_(replica.limits),
      rounds_(replica.rounds),
      budget_(static_cast<double>(limits_.max_num_batched_tokens)),
      prompt_(load_.decode_only ? 1 : std::max(1.0, load_.prompt_tokens * (1 - load_.prefix_cache_hit_rate))) {}

const RoundsFrom& ReplicaIterations::rounds(double sequences) const {
  std::size_t at = rounds_.size() - 1;
  while (at > 0 && static_cast<double>(rounds_[at].batch_low) > sequences) --at;
  return rounds_[at];
}

double ReplicaIterations::rounds_of_request(double sequences) const {
  return (load_.output_tokens - 1) / rounds(sequences).tokens_per_step;
}

/// The sequences k with k (tokens - prefix) + min(k, shared_prefixes) prefix = cache.
double ReplicaIterations::sequences_in_cache(double cache, double tokens) const {
  const double each_its_own = cache / tokens;
  const auto prefixes = static_cast<double>(load_.shared_prefixes.value_or(std::numeric_limits<std::int64_t>::max()));
  if (each_its_own <= prefixes) return each_its_own;
  const double prefix = load_.prefix_cache_hit_rate * load_.prompt_tokens;
  return (cache - prefixes * prefix) / (tokens - prefix);
}

LargestBatch ReplicaIterations::largest_batch() const {
  LargestBatch largest;
  std::int64_t slots = 0;
  for (const RoundsFrom& stretch : rounds_) slots = std::max(slots, stretch.gamma);
  // Passes that occupy a place while the prompt is computed.
  const double passes = std::max(1.0, prompt_ / budget_);
  for (std::size_t i = 0; i < rounds_.size(); ++i) {
    const RoundsFrom& stretch = rounds_[i];
    const auto low = static_cast<double>(stretch.batch_low);
    const double positions = static_cast<double>(stretch.gamma + 1);
    const double request = rounds_of_request(low);
    const double by_seqs = static_cast<double>(limits_.max_num_seqs) * request / (request + passes);
    const double by_cache =
        sequences_in_cache(limits_.cache_tokens, load_.mean_context + positions + static_cast<double>(slots));
    const double by_budget = budget_ / (positions + prompt_ / request);
    const double end = i + 1 < rounds_.size() ? static_cast<double>(rounds_[i + 1].batch_low - 1) : unlimited;
    const double most = std::min({by_seqs, by_cache, by_budget, end});
    if (by_cache < 1 || (i > 0 && most < low)) break;
    largest.sequences = most;
    largest.states = static_cast<std::int64_t>(std::ceil(most));
    largest.limit = by_cache == most    ? CapacityLimit::cache
                    : by_budget == most ? CapacityLimit::batched_tokens
                                        : CapacityLimit::max_num_seqs;
    if (most < end) break;
  }
  return largest;
}

cost::Iteration ReplicaIterations::iteration(double sequences, double prompt_positions) const {
  cost::Iteration result;
  result.sequences = sequences;
  result.context_tokens = sequences * load_.mean_context;
  if (sequences > 0) {
    result.gamma = rounds(sequences).gamma;
    result.full_accepts = rounds(sequences).full_accepts;
  }
  if (prompt_positions > 0) {
    result.prompt_tokens = prompt_positions;
    result.prompts = std::max(1.0, prompt_positions / prompt_);
    result.prompt_pairs = load_.prompt_pairs * prompt_positions / prompt_;
  }
  return result;
}

double ReplicaIterations::plain_seconds(double sequences) {
  const auto at = static_cast<std::size_t>(sequences);
  if (static_cast<double>(at) != sequences) return cost_.seconds(iteration(sequences, 0));
  if (plain_.size() <= at) plain_.resize(at + 1, 0);
  if (plain_[at] == 0) plain_[at] = cost_.seconds(iteration(sequences, 0));
  return plain_[at];
}

double ReplicaIterations::leaving(double sequences) {
  return sequences > 0 ? sequences / (rounds_of_request(sequences) * plain_seconds(sequences)) : 0;
}

/// Positions of prompts in an iteration that has any: those of the prompts that arrived during one of these seconds,
/// as far as the budget allows.
double ReplicaIterations::piece(double sequences, double prompts_per_iteration) const {
  const double several = prompts_per_iteration > 0 ? prompts_per_iteration / -std::expm1(-prompts_per_iteration) : 1;
  const bool shared = sequences > 0 && !limits_.prefill_first;
  const double positions = shared ? sequences * static_cast<double>(rounds(sequences).gamma + 1) : 0.0;
  return std::min(budget_ - positions, prompt_ * std::max(1.0, several));
}

/// Seconds by which a prompt delays the sequences where iterations have so many positions of prompts.
double ReplicaIterations::delay_of(double sequences, double positions) {
  const double more = limits_.prefill_first ? cost_.seconds(iteration(0, positions))
                                            : cost_.seconds(iteration(sequences, positions)) - plain_seconds(sequences);
  return std::max(0.0, more) * prompt_ / positions;
}

double ReplicaIterations::delay(double sequences, double requests_per_second) {
  const double plain = plain_seconds(sequences);
  const double most = piece(sequences, unlimited);
  if (!(most > 0)) return unlimited;
  double seconds = plain;
  double result = 0;
  double positions = 0;
  bool damped = false, rose = true;
  for (int round = 0; round < 200; ++round) {
    positions = piece(sequences, requests_per_second * seconds);
    result = delay_of(sequences, positions);
    if (!(requests_per_second * result < 1)) {
      // More of them in one pass may cost less each.
      if (positions >= most) return unlimited;
      seconds *= 2;
      damped = true;
      continue;
    }
    const double next = plain / (1 - requests_per_second * result);
    if (std::abs(next - seconds) <= 1e-12 * next) break;
    // Passes of a fixed cost make it jump to and fro.
    damped = damped || (next > seconds) != rose;
    rose = next > seconds;
    seconds = damped ? std::sqrt(seconds * next) : next;
  }
  const double share = requests_per_second * plain / (1 - requests_per_second * result) * prompt_ / positions;
  return share > 1 + 1e-9 ? unlimited : result;
}

double ReplicaIterations::prompt_seconds(double sequences) const {
  const double positions = piece(sequences, 0);
  return cost_.seconds(iteration(limits_.prefill_first ? 0 : sequences, positions)) * prompt_ / positions;
}

double ReplicaIterations::mean_prompt_seconds(double sequences) const {
  if (sequences >= 1) return prompt_seconds(sequences);
  return (1 - sequences) * prompt_seconds(0) + sequences * prompt_seconds(1);
}

double ReplicaIterations::balanced_load(double sequences) {
  const double most = piece(sequences, unlimited);
  if (!(most > 0)) return 0;
  const double prompts = std::min(sequences / rounds_of_request(sequences), most / prompt_);
  const double positions = piece(sequences, prompts);
  return prompts / (plain_seconds(sequences) + prompts * delay_of(sequences, positions));
}

}  // namespace specdec::planning
