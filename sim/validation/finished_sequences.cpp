#include "sim/validation/finished_sequences.hpp"

#include <vector>

#include "analysis/estimate/ratio_of_sums.hpp"

namespace specdec::validation {

void RatioByCluster::add(std::uint64_t cluster, double numerator, double denominator) {
  estimate::RatioTerm& sums = sums_[cluster];
  sums.numerator += numerator;
  sums.denominator += denominator;
}

std::optional<estimate::Estimate> RatioByCluster::value() const {
  std::vector<double> numerators, denominators;
  for (const auto& [cluster, sums] : sums_) {
    if (sums.denominator == 0) continue;
    numerators.push_back(sums.numerator);
    denominators.push_back(sums.denominator);
  }
  if (numerators.empty()) return std::nullopt;
  return estimate::ratio_of_sums(numerators, denominators);
}

MethodResult summary_of(const Method& method, const std::string& task, std::span<const FinishedSequence> sequences,
                        const std::optional<core::StepCost>& cost) {
  MethodResult result;
  result.method = method;
  result.task = task;
  result.sequences = std::ssize(sequences);
  RatioByCluster tokens_per_step, acceptance, speedup;
  for (const auto& [cluster, run] : sequences) {
    const auto tokens = static_cast<double>(run->counters.tokens);
    result.counters.merge(run->counters);
    tokens_per_step.add(cluster, tokens, static_cast<double>(run->counters.steps));
    acceptance.add(cluster, run->rounds.accepted.expected, run->rounds.judged);
    speedup.add(cluster, tokens, run->cost);
  }
  const auto tokens = static_cast<double>(result.counters.tokens);
  result.tokens_per_step = *tokens_per_step.value();
  result.acceptance = acceptance.value();
  result.target_calls_per_token = static_cast<double>(result.counters.target_calls) / tokens;
  result.draft_calls_per_token = static_cast<double>(result.counters.draft_calls) / tokens;
  if (cost) result.speedup = speedup.value();
  return result;
}

}  // namespace specdec::validation
