#include "sim/serving/request_rounds.hpp"

#include <algorithm>

#include "sim/random.hpp"
#include "sim/serving/simulated_workload.hpp"

namespace specdec::sim {
namespace {

/// In place of a uniform that was not drawn yet.
constexpr double not_drawn = -1;

}  // namespace

RequestDraws::RequestDraws(const std::vector<SimulatedRequest>& requests, std::uint64_t seed, std::size_t most_kept)
    : requests_(requests), seed_(seed), most_kept_(most_kept), first_(requests.size(), not_kept) {}

double RequestDraws::drawn(std::size_t request, std::int64_t emitted) const {
  return RandomStream(seed_, request).uniform(emitted, 0, Purpose::serving);
}

double RequestDraws::law(std::size_t request) const {
  return RandomStream(seed_, request).uniform(0, 1, Purpose::serving);
}

double RequestDraws::acceptance(std::size_t request, std::int64_t emitted) {
  if (first_[request] == not_kept) {
    const auto tokens = static_cast<std::size_t>(requests_[request].output_tokens);
    if (kept_.size() + tokens > most_kept_) return drawn(request, emitted);
    first_[request] = kept_.size();
    kept_.resize(kept_.size() + tokens, not_drawn);
  }
  double& uniform = kept_[first_[request] + static_cast<std::size_t>(emitted)];
  if (uniform == not_drawn) uniform = drawn(request, emitted);
  return uniform;
}

AcceptanceLaws::AcceptanceLaws(const std::vector<RequestAcceptance>& laws, std::int64_t largest_gamma)
    : laws_(largest_gamma == 0 ? 0 : laws.size()) {
  for (std::size_t i = 0; i < laws_; ++i) {
    add_stretch(laws[i].conditional, largest_gamma);
    for (const RequestAcceptance::FromContext& part : laws[i].from_contexts) {
      stretches_.back().below = part.tokens;
      add_stretch(part.conditional, largest_gamma);
    }
  }
}

void AcceptanceLaws::add_stretch(const std::vector<double>& conditional, std::int64_t largest_gamma) {
  stretches_.push_back({.survival = survival_.size()});
  double survival = 1;
  for (std::size_t j = 0; j < static_cast<std::size_t>(largest_gamma); ++j) {
    survival *= conditional.empty() ? 0 : conditional[std::min(j, conditional.size() - 1)];
    survival_.push_back(survival);
  }
}

std::size_t AcceptanceLaws::stretch_of(double uniform) const {
  if (laws_ < 2) return 0;
  const auto law = std::min(laws_ - 1, static_cast<std::size_t>(uniform * static_cast<double>(laws_)));
  return law * (stretches_.size() / laws_);
}

RequestRounds::RequestRounds(const std::vector<SimulatedRequest>& requests, const std::vector<RequestAcceptance>& laws,
                             const ServingEngine& engine, RequestDraws& draws, std::size_t most_kept)
    : requests_(requests),
      gamma_(largest_gamma_of(engine.schedule)),
      block_size_(engine.block_size),
      laws_(laws, gamma_),
      draws_(draws),
      most_kept_(most_kept),
      places_(requests.size()) {}

std::int64_t RequestRounds::find(std::size_t request, std::vector<RoundSum>& rounds) {
  const SimulatedRequest& asked = requests_[request];
  std::size_t stretch = law_of(request);
  std::int64_t context = asked.prompt_tokens;
  std::int64_t slots = blocks_for(context + gamma_) * block_size_;
  bool was_full = false;
  for (std::int64_t emitted = 1; emitted < asked.output_tokens;) {
    const std::int64_t accepted =
        gamma_ == 0 ? 0 : laws_.accepted(stretch, context, draws_.acceptance(request, emitted), gamma_);
    const std::int64_t tokens = std::min(accepted + 1, asked.output_tokens - emitted);
    std::int64_t taken = 0;
    for (; slots < context + 2 * gamma_ + 1; slots += block_size_) ++taken;
    rounds.emplace_back(tokens, was_full, taken);
    was_full = accepted > 0 && accepted == gamma_;
    context += tokens;
    emitted += tokens;
  }
  return slots / block_size_;
}

std::span<const RoundSum> RequestRounds::of(std::size_t request) {
  Kept& place = places_[request];
  if (place.last_blocks >= 0) return std::span(kept_).subspan(place.first, place.count);
  if (kept_.size() + static_cast<std::size_t>(requests_[request].output_tokens) > most_kept_) {
    single_.clear();
    find(request, single_);
    return single_;
  }
  place.first = kept_.size();
  place.last_blocks = find(request, kept_);
  place.count = kept_.size() - place.first;
  return std::span(kept_).subspan(place.first, place.count);
}

std::int64_t RequestRounds::last_blocks(std::size_t request) {
  if (places_[request].last_blocks >= 0) return places_[request].last_blocks;
  single_.clear();
  return find(request, single_);
}

RequestSets::RequestSets(const Workload& workload, std::uint64_t seed, std::int64_t replications)
    : workload_(workload), seed_(seed), requests_(static_cast<std::size_t>(replications)) {}

void RequestSets::extend_to(std::int64_t count) {
  if (static_cast<std::int64_t>(requests_.front().size()) >= count) return;
  draws_.clear();
  const auto replications = static_cast<std::int64_t>(requests_.size());
  for (std::int64_t r = 0; r < replications; ++r) {
    std::vector<SimulatedRequest>& requests = requests_[static_cast<std::size_t>(r)];
    requests = requests_at_unit_rate(workload_, seed_, r, replications, count);
    draws_.emplace_back(requests, seed_of_replication(seed_, r), most_uniforms / requests_.size());
  }
}

RequestRounds RequestSets::rounds(std::size_t replication, const std::vector<RequestAcceptance>& laws,
                                  const ServingEngine& engine) {
  return {requests_[replication], laws, engine, draws_[replication], most_rounds / requests_.size()};
}

}  // namespace specdec::sim
