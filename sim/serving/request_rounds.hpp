#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/serving/capacity.hpp"
#include "sim/serving/running_requests.hpp"
#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// The uniforms by which requests accept drafts: functions of (seed, request, tokens emitted before), kept once they
/// were drawn, since every load, gamma and law asks for the same ones. Not for several threads.
class RequestDraws {
 public:
  /// @param requests  those whose lengths count; must outlive the object  @param most_kept  uniforms in memory
  RequestDraws(const std::vector<SimulatedRequest>& requests, std::uint64_t seed, std::size_t most_kept);

  /// @param emitted  tokens before the round, [1, output tokens of the request)
  double acceptance(std::size_t request, std::int64_t emitted);
  /// The one that chooses its law.
  double law(std::size_t request) const;

 private:
  static constexpr std::size_t not_kept = std::numeric_limits<std::size_t>::max();

  double drawn(std::size_t request, std::int64_t emitted) const;

  const std::vector<SimulatedRequest>& requests_;
  std::uint64_t seed_;
  std::size_t most_kept_;
  /// [request]: its first place in the uniforms.
  std::vector<std::size_t> first_;
  std::vector<double> kept_;
};

/// The laws of acceptance of a serving question.
class AcceptanceLaws {
 public:
  AcceptanceLaws(const std::vector<RequestAcceptance>& laws, std::int64_t largest_gamma);

  /// A place for accepted(): the first stretch of the law that a uniform chooses.
  std::size_t stretch_of(double uniform) const;
  /// Drafts that a uniform accepts of so many. @param stretch  that of the request's law, or one before it; moved to it
  std::int64_t accepted(std::size_t& stretch, std::int64_t context, double uniform, std::int64_t drafts) const {
    while (stretches_[stretch].below <= context) ++stretch;
    const double* survival = survival_.data() + stretches_[stretch].survival;
    // They fall, so that those above the uniform are the first ones; a loop to the first one below is mispredicted.
    std::int64_t accepted = 0;
    for (std::int64_t draft = 0; draft < drafts; ++draft) accepted += uniform < survival[draft] ? 1 : 0;
    return accepted;
  }

 private:
  /// A law's rates up to a context.
  struct Stretch {
    std::int64_t below = std::numeric_limits<std::int64_t>::max();
    /// Its first entry in the table of survivals.
    std::size_t survival = 0;
  };
  void add_stretch(const std::vector<double>& conditional, std::int64_t largest_gamma);

  std::size_t laws_;
  /// Those of a law follow each other; all have equally many.
  std::vector<Stretch> stretches_;
  /// [stretch][draft]: P(it and those before it are accepted). Shape: (stretches of all laws, largest gamma)
  std::vector<double> survival_;
};

/// The rounds of sequences in one iteration; a sum of these is that of all of them.
class RoundSum {
 public:
  /// Sequences whose sums have room in a word, at most.
  static constexpr std::size_t most_sequences = 16000;

  RoundSum() = default;
  RoundSum(std::int64_t emitted, bool follows_full_accept, std::int64_t blocks)
      : word_(static_cast<std::uint64_t>(emitted) | static_cast<std::uint64_t>(follows_full_accept) << emitted_bits |
              static_cast<std::uint64_t>(blocks) << (emitted_bits + full_bits)) {}

  /// Tokens that are put out.
  std::int64_t emitted() const { return static_cast<std::int64_t>(word_ & ((std::uint64_t{1} << emitted_bits) - 1)); }
  /// Sequences whose previous round was fully accepted.
  std::int64_t following_full_accepts() const {
    return static_cast<std::int64_t>(word_ >> emitted_bits & ((std::uint64_t{1} << full_bits) - 1));
  }
  /// Blocks of the cache that are taken beside those that were held before.
  std::int64_t blocks() const { return static_cast<std::int64_t>(word_ >> (emitted_bits + full_bits)); }

  RoundSum& operator+=(const RoundSum& other) {
    word_ += other.word_;
    return *this;
  }

 private:
  static constexpr unsigned emitted_bits = 24, full_bits = 16;
  std::uint64_t word_ = 0;
};

/// The rounds of requests that draft gamma tokens in every round and wait for nobody: functions of the request alone,
/// whatever is served beside it and when. Kept once they were found. Not for several threads.
class RequestRounds {
 public:
  /// References must outlive the object. @param most_kept  rounds in memory
  RequestRounds(const std::vector<SimulatedRequest>& requests, const std::vector<RequestAcceptance>& laws,
                const ServingEngine& engine, RequestDraws& draws, std::size_t most_kept);

  std::int64_t largest_gamma() const { return gamma_; }
  /// The first stretch of a request's law.
  std::size_t law_of(std::size_t request) const { return laws_.stretch_of(draws_.law(request)); }
  /// Accepted drafts out of so many of a running request; moves its stretch to the one of its context.
  std::int64_t accepted(RunningRequest& running, std::int64_t drafts) {
    const double u = draws_.acceptance(running.request, running.put_out);
    return laws_.accepted(running.law, running.computed, u, drafts);
  }
  /// From the one after the request's prompt to its last one; until the next call.
  std::span<const RoundSum> of(std::size_t request);
  /// The blocks that it holds when it ends.
  std::int64_t last_blocks(std::size_t request);

 private:
  std::int64_t blocks_for(std::int64_t tokens) const { return (tokens + block_size_ - 1) / block_size_; }
  /// Appends the rounds of a request; returns the blocks that it holds in the end.
  std::int64_t find(std::size_t request, std::vector<RoundSum>& rounds);

  struct Kept {
    std::size_t first = 0, count = 0;
    std::int64_t last_blocks = -1;
  };

  const std::vector<SimulatedRequest>& requests_;
  std::int64_t gamma_, block_size_;
  AcceptanceLaws laws_;
  RequestDraws& draws_;
  std::size_t most_kept_;
  std::vector<Kept> places_;
  std::vector<RoundSum> kept_, single_;
};

/// The requests of all replications of a question and what they draw, for all that is asked of them.
class RequestSets {
 public:
  RequestSets(const Workload& workload, std::uint64_t seed, std::int64_t replications);

  /// Makes at least so many requests of each replication; invalidates references if there were fewer.
  void extend_to(std::int64_t count);
  std::size_t replications() const { return requests_.size(); }
  /// At one per second.
  const std::vector<SimulatedRequest>& requests(std::size_t replication) const { return requests_[replication]; }
  /// The rounds of one replication's requests; references must outlive it.
  RequestRounds rounds(std::size_t replication, const std::vector<RequestAcceptance>& laws,
                       const ServingEngine& engine);

 private:
  /// In memory, of all replications, for each thread that has its own: 128 MB of uniforms, 64 MB of rounds.
  static constexpr std::size_t most_uniforms = std::size_t{1} << 24, most_rounds = std::size_t{1} << 23;

  Workload workload_;
  std::uint64_t seed_;
  std::vector<std::vector<SimulatedRequest>> requests_;
  std::vector<RequestDraws> draws_;
};

}  // namespace specdec::sim
