#include "analysis/cost/iteration_cost.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/cost/price_table.hpp"

namespace specdec::cost {
namespace {

/// Sums over sequences of which one is cut are fractions.
double most_verified(const Iteration& iteration) {
  return iteration.sequences * static_cast<double>(iteration.gamma) * (1 + 1e-12);
}

/// Iterations by a provider of rounds.
class RoundsAsIterations final : public IterationCost {
 public:
  RoundsAsIterations(std::shared_ptr<const RoundCost> rounds, std::optional<double> prompt_tokens_per_second)
      : rounds_(std::move(rounds)), table_(rounds_), prompt_tokens_per_second_(prompt_tokens_per_second) {
    if (!rounds_) throw std::invalid_argument("iterations_of: rounds is null, but must be a cost");
    if (!rounds_->in_seconds()) {
      throw std::invalid_argument("iterations_of: rounds knows multiples of a target step, but must know seconds");
    }
    core::require_in("iterations_of", "prompt_tokens_per_second", prompt_tokens_per_second.value_or(1),
                     std::numeric_limits<double>::min(), core::largest_double);
  }

  std::size_t replicates() const override { return rounds_->replicates(); }
  double price(std::size_t version, const Iteration& iteration) const override {
    require_legal(iteration);
    const double sequences = iteration.sequences, cached = iteration.context_tokens;
    double seconds = 0;
    if (sequences > 0) {
      const RoundPoint point{.gamma = iteration.gamma,
                             .batch = sequences,
                             .context = cached / sequences,
                             .full_accepts = iteration.full_accepts};
      seconds = of_round(version, point, Part::total);
      if (iteration.verified) seconds -= not_verified(version, point, *iteration.verified / sequences);
    }
    if (iteration.prompt_tokens == 0) return seconds;
    if (prompt_tokens_per_second_) return seconds + iteration.prompt_tokens / *prompt_tokens_per_second_;
    // A plain round of n sequences is the target's pass over n positions; the cache is the same in both.
    const auto pass = [&](double positions) {
      return of_round(version, {.gamma = 0, .batch = positions, .context = cached / positions}, Part::total);
    };
    const double decoding = iteration.decoded_positions();
    const double both = pass(decoding + iteration.prompt_tokens);
    return decoding > 0 ? seconds + std::max(0.0, both - pass(decoding)) : both;
  }

 private:
  using Part = PriceTable::Part;

  double of_round(std::size_t version, const RoundPoint& point, Part part) const {
    if (rounds_->replicates() > 0) return table_.price(version, point, part);
    const RoundTime time = rounds_->round(point);
    return part == Part::total ? time.total() : time.target;
  }

  /// What the target saves by verifying so many drafts of each sequence alone.
  double not_verified(std::size_t version, const RoundPoint& point, double drafts) const {
    const auto target = [&](std::int64_t of_each) {
      RoundPoint shorter = point;
      shorter.gamma = of_each;
      return of_round(version, shorter, Part::target);
    };
    const auto whole = static_cast<std::int64_t>(std::min(drafts, static_cast<double>(point.gamma)));
    const double part = drafts - static_cast<double>(whole);
    const double at_whole = target(whole);
    const double more = whole < point.gamma && part > 0 ? part * (target(whole + 1) - at_whole) : 0;
    return target(point.gamma) - at_whole - more;
  }

  std::shared_ptr<const RoundCost> rounds_;
  PriceTable table_;
  std::optional<double> prompt_tokens_per_second_;
};

}  // namespace

void require_legal(const Iteration& iteration) {
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

std::unique_ptr<IterationCost> iterations_of(std::shared_ptr<const RoundCost> rounds,
                                             std::optional<double> prompt_tokens_per_second) {
  return std::make_unique<RoundsAsIterations>(std::move(rounds), prompt_tokens_per_second);
}

}  // namespace specdec::cost
