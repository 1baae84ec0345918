#include "sim/serving/simulated_workload.hpp"

#include <algorithm>
#include <cmath>

#include "sim/random.hpp"
#include "sim/serving/shared_prefixes.hpp"
#include "sim/variates.hpp"

namespace specdec::sim {
namespace {

/// Beyond this many tokens the overshoot of the last round no longer depends on the start.
constexpr std::size_t explicit_up_to = 256;

std::int64_t length(const LengthLaw& law, double normal) {
  const double variance = std::log1p(law.variation * law.variation);
  const double drawn = law.mean * std::exp(std::sqrt(variance) * normal - 0.5 * variance);
  const auto whole = static_cast<std::int64_t>(std::min(std::round(drawn), 0x1p30));
  return std::clamp<std::int64_t>(whole, 1, law.at_most.value_or(std::int64_t{1} << 30U));
}

std::vector<SimulatedRequest> drawn(const Workload& workload, std::uint64_t seed, std::int64_t count) {
  std::vector<SimulatedRequest> requests;
  requests.reserve(static_cast<std::size_t>(count));
  double now = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const RandomStream stream(seed, static_cast<std::uint64_t>(i));
    Variates variates(stream, 0);
    now -= std::log1p(-variates.uniform());
    const std::int64_t prompt = length(workload.prompt_tokens, variates.normal());
    requests.push_back({now, prompt, length(workload.output_tokens, variates.normal())});
  }
  return requests;
}

std::vector<SimulatedRequest> repeated(const std::vector<SimulatedRequest>& recorded, std::int64_t first,
                                       std::int64_t count) {
  const auto size = static_cast<std::int64_t>(recorded.size());
  const double mean_gap =
      (recorded.back().arrival_seconds - recorded.front().arrival_seconds) / static_cast<double>(size - 1);
  std::vector<SimulatedRequest> requests;
  requests.reserve(static_cast<std::size_t>(count));
  double now = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>((first + i) % size);
    // The gap between the last request and the first is unknown.
    const double gap = at == 0 ? mean_gap : recorded[at].arrival_seconds - recorded[at - 1].arrival_seconds;
    if (i > 0) now += gap / mean_gap;
    requests.push_back({now, recorded[at].prompt_tokens, recorded[at].output_tokens});
  }
  return requests;
}

}  // namespace

/// The law of the number of drafts of a round that are accepted.
struct RoundsToCover::AcceptedDrafts {
  AcceptedDrafts(const std::vector<double>& conditional, std::int64_t gamma) {
    double survival = 1;
    for (std::size_t n = 0; n < static_cast<std::size_t>(gamma); ++n) {
      const double rate = conditional.empty() ? 0 : conditional[std::min(n, conditional.size() - 1)];
      probability.push_back(survival * (1 - rate));
      survival *= rate;
      tokens_per_step += survival;
    }
    probability.push_back(survival);
  }

  /// [n], up to gamma
  std::vector<double> probability;
  double tokens_per_step = 1;
};

std::uint64_t seed_of_replication(std::uint64_t seed, std::int64_t replication) {
  const double u = RandomStream(seed, static_cast<std::uint64_t>(replication)).uniform(0, 0, Purpose::synthetic);
  return static_cast<std::uint64_t>(u * 0x1p53);
}

std::vector<SimulatedRequest> requests_at_unit_rate(const Workload& workload, std::uint64_t seed,
                                                    std::int64_t replication, std::int64_t replications,
                                                    std::int64_t count) {
  if (workload.recorded.empty()) return drawn(workload, seed_of_replication(seed, replication), count);
  const auto size = static_cast<std::int64_t>(workload.recorded.size());
  return repeated(workload.recorded, size * replication / replications, count);
}

planning::OfferedLoad offered_load(const std::vector<SimulatedRequest>& requests, const ServingEngine& engine) {
  double prompts = 0;
  double squares = 0;
  double pairs = 0;
  double outputs = 0;
  double decoded = 0;
  double contexts = 0;
  for (const SimulatedRequest& request : requests) {
    const auto prompt = static_cast<double>(request.prompt_tokens);
    const auto output = static_cast<double>(request.output_tokens);
    const double found = engine.decode_only ? prompt - 1 : static_cast<double>(found_tokens(engine, request));
    prompts += prompt;
    squares += prompt * prompt;
    pairs += (prompt * (prompt + 1) - found * (found + 1)) / 2;
    outputs += output;
    decoded += output - 1;
    contexts += (prompt + output / 2) * (output - 1);
  }
  const auto count = static_cast<double>(requests.size());
  planning::OfferedLoad load;
  load.prompt_tokens = prompts / count;
  load.prompt_variation = std::sqrt(std::max(0.0, squares * count / (prompts * prompts) - 1));
  load.prefix_cache_hit_rate = engine.prefix_cache_hit_rate;
  load.shared_prefixes = engine.shared_prefixes;
  load.prompt_pairs = pairs / count;
  load.output_tokens = outputs / count;
  load.mean_context = decoded > 0 ? contexts / decoded : prompts / count;
  load.decode_only = engine.decode_only;
  return load;
}

std::vector<std::int64_t> contexts_of(const RequestAcceptance& law) {
  std::vector<std::int64_t> contexts;
  for (const RequestAcceptance::FromContext& part : law.from_contexts) contexts.push_back(part.tokens);
  return contexts;
}

RoundsToCover::RoundsToCover(const std::vector<SimulatedRequest>& requests, const std::vector<std::int64_t>& contexts)
    : contexts_(contexts), ranges_(contexts.size() + 1, {std::vector<double>(explicit_up_to + 1, 0)}) {
  for (const SimulatedRequest& request : requests) {
    // The first token comes with the prompt; the context of the rounds begins at the prompt's length.
    const std::int64_t end = request.prompt_tokens + request.output_tokens - 1;
    std::int64_t context = request.prompt_tokens;
    for (std::size_t range = 0; range < contexts_.size() && contexts_[range] < end; ++range) {
      if (contexts_[range] <= context) continue;
      add(range, contexts_[range] - context, false);
      context = contexts_[range];
    }
    const auto last = std::upper_bound(contexts_.begin(), contexts_.end(), context) - contexts_.begin();
    add(static_cast<std::size_t>(last), end - context, true);
  }
}

void RoundsToCover::add(std::size_t range, std::int64_t tokens, bool ends) {
  Range& into = ranges_[range];
  tokens_ += static_cast<double>(tokens);
  if (!ends) {
    into.passed += static_cast<double>(tokens);
    return;
  }
  into.ending[std::min(static_cast<std::size_t>(tokens), explicit_up_to)] += 1;
  into.beyond += std::max(0.0, static_cast<double>(tokens) - static_cast<double>(explicit_up_to));
}

planning::RoundsFrom RoundsToCover::rounds(const std::vector<RequestAcceptance>& laws, std::int64_t batch_low,
                                           std::int64_t gamma) const {
  planning::RoundsFrom result;
  result.batch_low = batch_low;
  result.gamma = gamma;
  if (gamma == 0 || tokens_ == 0) return result;
  double all_rounds = 0;
  double full = 0;
  for (const RequestAcceptance& law : laws) {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const AcceptedDrafts accepted(i == 0 ? law.conditional : law.from_contexts[i - 1].conditional, gamma);
      const double rounds = rounds_in(ranges_[i], accepted);
      all_rounds += rounds;
      full += accepted.probability.back() * rounds;
    }
  }
  result.tokens_per_step =
      std::clamp(tokens_ * static_cast<double>(laws.size()) / all_rounds, 1.0, static_cast<double>(gamma + 1));
  result.full_accepts = full / all_rounds;
  return result;
}

double RoundsToCover::rounds_in(const Range& range, const AcceptedDrafts& accepted) {
  double rounds = (range.passed + range.beyond) / accepted.tokens_per_step;
  std::vector<double> to_cover(explicit_up_to + 1, 0);
  for (std::size_t m = 1; m <= explicit_up_to; ++m) {
    to_cover[m] = 1;
    for (std::size_t n = 0; n < accepted.probability.size() && n + 1 < m; ++n)
      to_cover[m] += accepted.probability[n] * to_cover[m - n - 1];
    rounds += range.ending[m] * to_cover[m];
  }
  return rounds;
}

}  // namespace specdec::sim
