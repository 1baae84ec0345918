#include "analysis/cost/iteration_cost.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"

namespace specdec::cost {
namespace {

bool is_count(double value) { return 0 <= value && value <= core::largest_double; }

/// Iterations by a provider of rounds.
class RoundsAsIterations final : public IterationCost {
 public:
  RoundsAsIterations(std::shared_ptr<const RoundCost> rounds, const PromptPricing& prompts)
      : rounds_(std::move(rounds)), prompts_(prompts) {
    if (!rounds_) throw std::invalid_argument("iterations_of: rounds is null, but must be a cost");
    if (!rounds_->in_seconds()) {
      throw std::invalid_argument("iterations_of: rounds knows multiples of a target step, but must know seconds");
    }
    core::require_in("iterations_of", "tokens_per_second", prompts_.tokens_per_second.value_or(1),
                     std::numeric_limits<double>::min(), core::largest_double);
  }

  double seconds(const Iteration& iteration) const override {
    return price(iteration, [&](const RoundPoint& point) { return rounds_->round(point).total(); });
  }
  std::size_t replicates() const override { return rounds_->replicates(); }
  double seconds_of_replicate(std::size_t index, const Iteration& iteration) const override {
    return price(iteration, [&](const RoundPoint& point) { return rounds_->round_of_replicate(index, point).total(); });
  }

 private:
  template <class Round>
  double price(const Iteration& iteration, const Round& round) const {
    require_legal(iteration);
    const double sequences = iteration.sequences, cached = iteration.context_tokens;
    double seconds = 0;
    if (sequences > 0) {
      seconds = round(RoundPoint{.gamma = iteration.gamma,
                                 .batch = sequences,
                                 .context = cached / sequences,
                                 .full_accepts = iteration.full_accepts});
    }
    if (iteration.prompt_tokens == 0) return seconds;
    if (prompts_.tokens_per_second) return seconds + iteration.prompt_tokens / *prompts_.tokens_per_second;
    // A plain round of n sequences is the target's pass over n positions; the cache is the same in both.
    const auto pass = [&](double positions) {
      return round(RoundPoint{.gamma = 0, .batch = positions, .context = cached / positions});
    };
    const double decoding = sequences * (static_cast<double>(iteration.gamma) + 1);
    const double both = pass(decoding + iteration.prompt_tokens);
    return decoding > 0 ? seconds + std::max(0.0, both - pass(decoding)) : both;
  }

  std::shared_ptr<const RoundCost> rounds_;
  PromptPricing prompts_;
};

}  // namespace

void require_legal(const Iteration& iteration) {
  if (is_count(iteration.sequences) && iteration.gamma >= 0 && is_count(iteration.context_tokens) &&
      is_count(iteration.prompt_tokens) && is_count(iteration.prompts) && is_count(iteration.prompt_pairs) &&
      (iteration.prompts > 0 || iteration.prompt_tokens == 0) && 0 <= iteration.full_accepts &&
      iteration.full_accepts <= 1)
    return;
  constexpr std::string_view function = "IterationCost";
  core::require_in(function, "sequences", iteration.sequences, 0, core::largest_double);
  core::require_in(function, "gamma", iteration.gamma, 0, std::numeric_limits<std::int64_t>::max());
  core::require_in(function, "context_tokens", iteration.context_tokens, 0, core::largest_double);
  core::require_in(function, "prompt_tokens", iteration.prompt_tokens, 0, core::largest_double);
  core::require_in(function, "prompts", iteration.prompts,
                   iteration.prompt_tokens > 0 ? std::numeric_limits<double>::min() : 0, core::largest_double);
  core::require_in(function, "prompt_pairs", iteration.prompt_pairs, 0, core::largest_double);
  core::require_in(function, "full_accepts", iteration.full_accepts, 0, 1);
}

double IterationCost::mean_seconds_of_replicates(std::span<const std::size_t> indices,
                                                 const Iteration& iteration) const {
  double sum = 0;
  for (const std::size_t index : indices) sum += seconds_of_replicate(index, iteration);
  return sum / static_cast<double>(indices.size());
}

std::unique_ptr<IterationCost> iterations_of(std::shared_ptr<const RoundCost> rounds, const PromptPricing& prompts) {
  return std::make_unique<RoundsAsIterations>(std::move(rounds), prompts);
}

}  // namespace specdec::cost
