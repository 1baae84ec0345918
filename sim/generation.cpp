#include "sim/generation.hpp"

#include <algorithm>

namespace specdec::sim {
namespace {

void add(std::vector<std::int64_t>& into, const std::vector<std::int64_t>& from) {
  into.resize(std::max(into.size(), from.size()));
  for (std::size_t j = 0; j < from.size(); ++j) into[j] += from[j];
}

}  // namespace

void Counters::merge(const Counters& other) {
  steps += other.steps;
  tokens += other.tokens;
  drafted += other.drafted;
  accepted += other.accepted;
  add(drafted_at, other.drafted_at);
  add(accepted_at, other.accepted_at);
  draft_calls += other.draft_calls;
  target_calls += other.target_calls;
  draft_positions += other.draft_positions;
  target_positions += other.target_positions;
  operations += other.operations;
}

}  // namespace specdec::sim
