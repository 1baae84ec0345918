#include "sim/batch_verification.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "sim/random.hpp"

namespace specdec::sim {
namespace {

void require_valid(const BatchedText& text) {
  core::require_in("decode_in_batches", "tokens", text.tokens, std::int64_t{1}, RandomStream::max_round);
  core::require_in("decode_in_batches", "depths", text.depths, std::int64_t{1}, RandomStream::max_slot);
  const auto depths = static_cast<std::size_t>(text.depths);
  const auto tokens = static_cast<std::size_t>(text.tokens);
  if (text.acceptance.size() != depths && text.acceptance.size() != depths * tokens)
    throw std::invalid_argument(fmt::format("decode_in_batches: acceptance has {} entries, but must have {} or {}",
                                            text.acceptance.size(), depths, depths * tokens));
}

void require_allowed(const BatchDecision& decision, std::span<const BatchedPlace> batch) {
  core::require_same_size("decode_in_batches", "verified", decision.verified.size(), "batch", batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (decision.verified[i] < 0 || decision.verified[i] > std::min(decision.drafted, batch[i].most_drafts()))
      throw std::invalid_argument("decode_in_batches: the rule verifies what was not drafted or is of no use");
}

/// Counts that [0, n) were reached.
void count_to(std::int64_t n, std::vector<std::int64_t>& counts) {
  counts.resize(std::max(counts.size(), static_cast<std::size_t>(n)));
  for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) ++counts[j];
}

/// Judges the drafts of one text and adds the round to its run.
std::int64_t judge(const BatchedPlace& at, std::int64_t verified, std::uint64_t seed, BatchedRun& run) {
  const RandomStream stream(seed, static_cast<std::uint64_t>(at.text->sequence));
  std::int64_t accepted = 0;
  while (accepted < verified) {
    const std::int64_t place = at.place + accepted;
    const double probability = at.text->acceptance_at(place, accepted);
    core::require_in("decode_in_batches", "acceptance", probability, 0, 1);
    run.judged += 1;
    run.accepted_expected += probability;
    if (!(stream.uniform(place, 0, Purpose::acceptance) < probability)) break;
    ++accepted;
  }
  run.steps += 1;
  run.tokens += accepted + 1;
  run.verified += verified;
  run.accepted += accepted;
  count_to(verified, run.verified_at);
  count_to(accepted, run.accepted_at);
  return accepted;
}

}  // namespace

double BatchedText::acceptance_at(std::int64_t place, std::int64_t depth) const {
  const bool is_stationary = acceptance.size() == static_cast<std::size_t>(depths);
  return acceptance[static_cast<std::size_t>((is_stationary ? 0 : place) * depths + std::min(depth, depths - 1))];
}

std::vector<BatchedRun> decode_in_batches(std::span<const BatchedText> texts, std::int64_t batch, BatchRule& rule,
                                          const BatchCost& cost, std::uint64_t seed,
                                          const std::function<bool()>& interrupted) {
  core::require_in("decode_in_batches", "batch", batch, std::int64_t{1}, core::largest_integer);
  std::ranges::for_each(texts, require_valid);
  std::vector<BatchedRun> runs(texts.size());
  std::vector<BatchedPlace> places;
  std::vector<std::int64_t> accepted;
  std::size_t next = 0;
  while (true) {
    for (; next < texts.size() && std::ssize(places) < batch; ++next) places.push_back({next, &texts[next], 0});
    if (places.empty() || (interrupted && interrupted())) return runs;
    const BatchDecision decision = rule.decide(places);
    require_allowed(decision, places);
    std::int64_t verified = 0;
    for (const std::int64_t one : decision.verified) verified += one;
    const double share = cost(std::ssize(places), decision.drafted, verified) / static_cast<double>(places.size());
    accepted.clear();
    for (std::size_t i = 0; i < places.size(); ++i) {
      BatchedRun& run = runs[places[i].number];
      run.drafted += decision.drafted;
      run.cost += share;
      accepted.push_back(judge(places[i], decision.verified[i], seed, run));
    }
    rule.observe(places, decision, accepted);
    for (std::size_t i = 0; i < places.size(); ++i) places[i].place += accepted[i] + 1;
    std::erase_if(places, [](const BatchedPlace& at) { return at.place >= at.text->tokens; });
  }
}

}  // namespace specdec::sim
