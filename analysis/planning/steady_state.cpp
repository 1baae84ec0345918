#include "analysis/planning/steady_state.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/planning/replica_iterations.hpp"

namespace specdec::planning {
namespace {

constexpr double largest_count = 1e12;

/// Throws unless every figure is in its range.
const LoadedReplica& legal(const LoadedReplica& replica) {
  constexpr std::string_view function = "steady_state";
  const auto& [load, limits, rounds] = replica;
  core::require_in(function, "prompt_tokens", load.prompt_tokens, 1, largest_count);
  core::require_in(function, "prefix_cache_hit_rate", load.prefix_cache_hit_rate, 0, std::nextafter(1.0, 0.0));
  if (load.shared_prefixes) {
    core::require_in(function, "shared_prefixes", *load.shared_prefixes, std::int64_t{1},
                     std::numeric_limits<std::int64_t>::max());
  }
  core::require_in(function, "prompt_variation", load.prompt_variation, 0, 1e6);
  core::require_in(function, "prompt_pairs", load.prompt_pairs, 0, largest_count * largest_count);
  core::require_in(function, "output_tokens", load.output_tokens, std::nextafter(1.0, 2.0), largest_count);
  core::require_in(function, "mean_context", load.mean_context, 0, largest_count);
  core::require_in(function, "max_num_seqs", limits.max_num_seqs, std::int64_t{1}, std::int64_t{1} << 20U);
  core::require_in(function, "max_num_batched_tokens", limits.max_num_batched_tokens, std::int64_t{1},
                   std::int64_t{1} << 31U);
  core::require_in(function, "cache_tokens", limits.cache_tokens, std::numeric_limits<double>::min(),
                   std::numeric_limits<double>::max());
  if (rounds.empty()) throw std::invalid_argument("steady_state: rounds are none, but must be one or more");
  std::int64_t lowest = 1;
  for (const RoundsFrom& stretch : rounds) {
    core::require_in(function, "batch_low", stretch.batch_low, lowest,
                     lowest == 1 ? 1 : std::numeric_limits<std::int64_t>::max() - 1);
    core::require_in(function, "gamma", stretch.gamma, std::int64_t{0}, std::int64_t{1} << 20U);
    core::require_in(function, "tokens_per_step", stretch.tokens_per_step, 1,
                     static_cast<double>(stretch.gamma + 1) * (1 + 1e-12));
    core::require_in(function, "full_accepts", stretch.full_accepts, 0, 1);
    lowest = stretch.batch_low + 1;
  }
  return replica;
}

/// The law of the number of sequences that decode in a replica.
class EquilibriumChain {
 public:
  /// Both must outlive the object.
  EquilibriumChain(const cost::IterationCost& cost, const LoadedReplica& replica)
      : load_(replica.load), replica_(cost, legal(replica)), batch_(replica_.largest_batch()) {
    if (decodes() && replica.limits.max_num_seqs == 1)
      alone_ = replica_.rounds_of_request(1) * replica_.plain_seconds(1) + replica_.prompt_seconds(0);
  }

  /// False if not even one sequence can decode.
  bool decodes() const { return batch_.states > 0; }

  double largest_batch() const { return batch_.sequences; }

  double balanced_load(double sequences) { return replica_.balanced_load(sequences); }

  /// The largest batch's load, and whether the batch is the limiting factor.
  std::pair<double, CapacityLimit> saturation() {
    if (alone_) return {1 / *alone_, CapacityLimit::max_num_seqs};
    const double load = balanced_load(batch_.sequences);
    const double with_fewer = balanced_load(0.9 * batch_.sequences);
    return {load, load < with_fewer * (1 + 0.1 / 9) ? CapacityLimit::compute : batch_.limit};
  }

  SteadyState saturated() {
    return alone_ ? state_alone(1 / *alone_) : state_of(balanced_load(batch_.sequences), batch_.sequences);
  }

  SteadyState closed(std::int64_t clients, double outside_seconds) {
    if (alone_) return closed_alone(clients, outside_seconds);
    const double most = balanced_load(batch_.sequences);
    double load = 0;
    double prompts = 0;
    double decoding = 0;
    for (std::int64_t i = 1; i <= clients; ++i) {
      const auto count = static_cast<double>(i);
      const double others = (count - 1) / count;
      const double beside = std::min(decoding, batch_.sequences);
      const double own = std::min(decoding + 1, batch_.sequences);
      const double delayed = i == 1 ? 0 : replica_.delay(own, load);
      if (!(load * delayed < 1)) return saturated();
      const double first = replica_.mean_prompt_seconds(beside) + prompts * delayed;
      const double rest = replica_.rounds_of_request(own) * replica_.plain_seconds(own);
      // The smaller root of load (first + rest / (1 - load others delayed) + outside) = clients.
      const double fixed = first + outside_seconds;
      const double square = fixed * others * delayed;
      const double linear = fixed + rest + count * others * delayed;
      load = 2 * count / (linear + std::sqrt(std::max(0.0, linear * linear - 4 * square * count)));
      if (load >= most) return saturated();
      prompts = load * first;
      decoding = load * rest / (1 - load * others * delayed);
    }
    return state_of(load, decoding);
  }

  std::optional<SteadyState> at(double requests_per_second) {
    if (decodes() && alone_) {
      if (requests_per_second * *alone_ >= 1) return std::nullopt;
      return state_alone(requests_per_second);
    }
    if (!decodes() || !(requests_per_second < balanced_load(batch_.sequences))) return std::nullopt;
    // Weights of the law, and sums over it, relative to the largest so far so that none leaves the range of
    // doubles.
    double weight = 1;
    double later = 0;
    double time = 0;
    double decoding = 0;
    for (std::int64_t state = 0; state <= batch_.states; ++state) {
      const bool last = state == batch_.states;
      const double sequences = sequences_in(state);
      const std::optional<Company> arriving = company_at(sequences, requests_per_second);
      if (!arriving) return std::nullopt;
      const Company& company = *arriving;
      if (last) {
        // All states from here on: each is crossed by arrivals as often as by departures.
        const double surplus = replica_.leaving(sequences) - requests_per_second * company.mean;
        weight = (replica_.leaving(sequences) * weight + later / (1 - company.more)) / surplus;
      }
      const double stalled = sequences * company.seconds + (last ? 0 : company.pairs * company.seconds_of_one);
      time += weight * (1 + requests_per_second * company.seconds);
      decoding += weight * (sequences + requests_per_second * stalled);
      // States this improbable are never reached, whatever follows.
      if (last || (state > 0 && weight + later < 1e-30 * time)) break;

      const double here = weight;
      weight = (requests_per_second * here + later) / replica_.leaving(sequences_in(state + 1));
      later = company.more * later + requests_per_second * company.some * here;
      if (weight > 1e100) {
        for (double* value : {&weight, &later, &time, &decoding}) *value *= 1e-100;
      }
    }
    // Members of a group that find no place do not decode, however large it gets.
    return state_of(requests_per_second, std::min(decoding / time, batch_.sequences));
  }

 private:
  /// State k has k sequences, except the last one, which has the largest batch, not necessarily an integer.
  double sequences_in(std::int64_t state) const {
    return state == batch_.states ? batch_.sequences : static_cast<double>(state);
  }

  /// The requests whose prompts are computed in one go, each arriving while another is computed: their number X.
  struct Company {
    /// E[X] and E[X (X - 1)] / 2
    double mean = 1;
    double pairs = 0;
    /// P(X > n) = some more^(n - 1) for n >= 1, which has these two moments.
    double some = 0;
    double more = 0;
    /// Time during which decoding sequences are delayed: by all of them, and by one.
    double seconds = 0;
    double seconds_of_one = 0;
  };

  /// Empty if prompts arrive faster than they are computed.
  std::optional<Company> company_at(double sequences, double requests_per_second) {
    Company company;
    const double delay_here =
        replica_.delay(sequences > 0 ? sequences : std::min(1.0, batch_.sequences), requests_per_second);
    // A law of prompts with the same spread as its lengths.
    const double variance = std::pow(requests_per_second * load_.prompt_variation * delay_here, 2);
    const double load = requests_per_second * delay_here;
    if (!(load < 1)) return std::nullopt;
    double mean = 1 / (1 - load);
    double spread = (load + variance) * mean * mean * mean;
    company.seconds_of_one = delay_here;
    company.seconds = delay_here * mean;
    if (sequences == 0) {
      // The first one finds nothing decoding and takes whole passes.
      const double alone = replica_.prompt_seconds(0);
      const double met = requests_per_second * alone;
      spread = met * spread + (met + variance) * mean * mean;
      company.seconds = alone * mean;
      mean = 1 + met * mean;
    }
    company.mean = mean;
    company.pairs = 0.5 * (spread + mean * mean - mean);
    if (company.pairs > 0) {
      company.more = std::max(0.0, 1 - (mean - 1) / company.pairs);
      company.some = (mean - 1) * (1 - company.more);
    }
    return company;
  }

  /// With one place, a queue with one server: no prompt delays another request's tokens.
  SteadyState state_alone(double load) {
    return state_of(load, load * replica_.rounds_of_request(1) * replica_.plain_seconds(1));
  }

  SteadyState closed_alone(std::int64_t clients, double outside_seconds) {
    double load = 0;
    double waiting = 0;
    for (std::int64_t i = 1; i <= clients; ++i) {
      const double seconds = *alone_ * (1 + waiting);
      load = static_cast<double>(i) / (seconds + outside_seconds);
      waiting = load * seconds;
      if (outside_seconds == 0 || 1 - load * *alone_ < 1e-15) break;
    }
    return state_alone(load);
  }

  SteadyState state_of(double load, double decoding) const {
    SteadyState state;
    state.mean_batch = decoding;
    state.largest_batch = batch_.sequences;
    state.tpot_seconds = decoding / (load * (load_.output_tokens - 1));
    state.iteration_seconds = state.tpot_seconds * replica_.rounds(decoding).tokens_per_step;
    state.output_tokens_per_second = load * load_.output_tokens;
    return state;
  }

  const OfferedLoad& load_;
  ReplicaIterations replica_;
  LargestBatch batch_;
  /// Seconds of a request if there is one place.
  std::optional<double> alone_;
};

}  // namespace

std::string_view name_of(CapacityLimit limit) {
  constexpr std::array<std::string_view, 7> names = {"none",           "compute", "max_num_seqs", "cache",
                                                     "batched_tokens", "ttft",    "tpot"};
  return names.at(static_cast<std::size_t>(limit));
}

std::optional<SteadyState> steady_state(const cost::IterationCost& cost, const LoadedReplica& replica) {
  EquilibriumChain chain(cost, replica);
  const double load = replica.load.requests_per_second;
  core::require_in("steady_state", "requests_per_second", load, std::numeric_limits<double>::min(), largest_count);
  return chain.at(load);
}

std::optional<SteadyState> closed_steady_state(const cost::IterationCost& cost, const LoadedReplica& replica,
                                               std::int64_t clients, double outside_seconds) {
  EquilibriumChain chain(cost, replica);
  constexpr std::string_view function = "closed_steady_state";
  core::require_in(function, "clients", clients, std::int64_t{1}, std::int64_t{1} << 40U);
  core::require_in(function, "outside_seconds", outside_seconds, 0, largest_count);
  if (!chain.decodes()) return std::nullopt;
  return chain.closed(clients, outside_seconds);
}

std::optional<BalancedLoad> balanced_load(const cost::IterationCost& cost, const LoadedReplica& replica,
                                          double sequences) {
  EquilibriumChain chain(cost, replica);
  core::require_in("balanced_load", "sequences", sequences, std::numeric_limits<double>::min(), largest_count);
  if (sequences > chain.largest_batch()) return std::nullopt;
  const double balanced = chain.balanced_load(sequences);
  if (!(balanced > 0)) return std::nullopt;
  return BalancedLoad{balanced, sequences / (balanced * (replica.load.output_tokens - 1))};
}

std::optional<SustainableLoad> sustainable_load(const cost::IterationCost& cost, const LoadedReplica& replica) {
  EquilibriumChain chain(cost, replica);
  if (!chain.decodes()) return std::nullopt;
  const auto [most, limit] = chain.saturation();
  if (!(most > 0)) return std::nullopt;
  return SustainableLoad{most, chain.saturated(), limit};
}

}  // namespace specdec::planning
