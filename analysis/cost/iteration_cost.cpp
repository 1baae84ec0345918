#include "analysis/cost/iteration_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/cost/price_table.hpp"

namespace specdec::cost {
namespace {

bool is_count(double value) { return 0 <= value && value <= core::largest_double; }

/// Sums over sequences of which one is cut are fractions.
double most_verified(const Iteration& iteration) {
  return iteration.sequences * static_cast<double>(iteration.gamma) * (1 + 1e-12);
}

bool verifies_drafts(const Iteration& iteration) {
  return !iteration.verified || (0 <= *iteration.verified && *iteration.verified <= most_verified(iteration));
}

/// Iterations by a provider of rounds.
class RoundsAsIterations final : public IterationCost {
 public:
  RoundsAsIterations(std::shared_ptr<const RoundCost> rounds, const PromptPricing& prompts)
      : rounds_(std::move(rounds)), table_(rounds_), prompts_(prompts) {
    if (!rounds_) throw std::invalid_argument("iterations_of: rounds is null, but must be a cost");
    if (!rounds_->in_seconds()) {
      throw std::invalid_argument("iterations_of: rounds knows multiples of a target step, but must know seconds");
    }
    core::require_in("iterations_of", "tokens_per_second", prompts_.tokens_per_second.value_or(1),
                     std::numeric_limits<double>::min(), core::largest_double);
  }

  double seconds(const Iteration& iteration) const override { return priced(replicates(), iteration); }
  std::size_t replicates() const override { return rounds_->replicates(); }
  double seconds_of_replicate(std::size_t index, const Iteration& iteration) const override {
    if (index >= replicates()) {
      throw std::out_of_range(
          fmt::format("seconds_of_replicate: index is {}, but must be below {}", index, replicates()));
    }
    return priced(index, iteration);
  }

 private:
  using Part = PriceTable::Part;

  /// @param replicate  as in PriceTable
  double priced(std::size_t replicate, const Iteration& iteration) const {
    require_legal(iteration);
    const double sequences = iteration.sequences, cached = iteration.context_tokens;
    double seconds = 0;
    if (sequences > 0) {
      const RoundPoint point{.gamma = iteration.gamma,
                             .batch = sequences,
                             .context = cached / sequences,
                             .full_accepts = iteration.full_accepts};
      seconds = price(replicate, point, Part::total);
      if (iteration.verified) seconds -= not_verified(replicate, point, *iteration.verified / sequences);
    }
    if (iteration.prompt_tokens == 0) return seconds;
    if (prompts_.tokens_per_second) return seconds + iteration.prompt_tokens / *prompts_.tokens_per_second;
    // A plain round of n sequences is the target's pass over n positions; the cache is the same in both.
    const auto pass = [&](double positions) {
      return price(replicate, {.gamma = 0, .batch = positions, .context = cached / positions}, Part::total);
    };
    const double decoding = iteration.decoded_positions();
    const double both = pass(decoding + iteration.prompt_tokens);
    return decoding > 0 ? seconds + std::max(0.0, both - pass(decoding)) : both;
  }

  double price(std::size_t replicate, const RoundPoint& point, Part part) const {
    if (rounds_->replicates() > 0) return table_.price(replicate, point, part);
    const RoundTime time = rounds_->round(point);
    return part == Part::total ? time.total() : time.target;
  }

  /// What the target saves by verifying so many drafts of each sequence alone.
  double not_verified(std::size_t replicate, const RoundPoint& point, double drafts) const {
    const auto target = [&](std::int64_t of_each) {
      RoundPoint shorter = point;
      shorter.gamma = of_each;
      return price(replicate, shorter, Part::target);
    };
    const auto whole = static_cast<std::int64_t>(std::min(drafts, static_cast<double>(point.gamma)));
    const double part = drafts - static_cast<double>(whole);
    const double at_whole = target(whole);
    const double more = whole < point.gamma && part > 0 ? part * (target(whole + 1) - at_whole) : 0;
    return target(point.gamma) - at_whole - more;
  }

  std::shared_ptr<const RoundCost> rounds_;
  PriceTable table_;
  PromptPricing prompts_;
};

}  // namespace

void require_legal(const Iteration& iteration) {
  if (is_count(iteration.sequences) && iteration.gamma >= 0 && is_count(iteration.context_tokens) &&
      is_count(iteration.prompt_tokens) && is_count(iteration.prompts) && is_count(iteration.prompt_pairs) &&
      (iteration.prompts > 0 || iteration.prompt_tokens == 0) && 0 <= iteration.full_accepts &&
      iteration.full_accepts <= 1 && verifies_drafts(iteration))
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
  if (iteration.verified) core::require_in(function, "verified", *iteration.verified, 0, most_verified(iteration));
}

std::unique_ptr<IterationCost> iterations_of(std::shared_ptr<const RoundCost> rounds, const PromptPricing& prompts) {
  return std::make_unique<RoundsAsIterations>(std::move(rounds), prompts);
}

}  // namespace specdec::cost
