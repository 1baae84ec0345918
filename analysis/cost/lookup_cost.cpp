#include "analysis/cost/lookup_cost.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace specdec::cost {
namespace {

/// E[T] of LookupCost; `time` gives T of a whole number of drafts.
template <class Time>
double over_lengths(const core::LookupLaw& law, std::int64_t gamma, double batch, const Time& time) {
  std::vector<double> times;
  for (std::int64_t l = 0; l <= gamma; ++l) times.push_back(time(l));
  const double mean = std::min(law.mean_drafted(static_cast<double>(gamma)), static_cast<double>(gamma));
  const auto whole = static_cast<std::size_t>(mean);
  const double part = mean - static_cast<double>(whole);
  const double at_mean = times[whole] + (part > 0 ? part * (times[whole + 1] - times[whole]) : 0);
  double of_one = 0;
  for (std::int64_t l = 0; l <= gamma; ++l) of_one += law.drafts_exactly(l, gamma) * times[static_cast<std::size_t>(l)];
  return at_mean + (of_one - at_mean) / std::max(batch, 1.0);
}

}  // namespace

LookupCost::LookupCost(std::shared_ptr<const RoundCost> base, const core::LookupLaw& law)
    : WrappedCost(std::move(base)), law_(law) {
  if (!looks_up(kind())) throw std::invalid_argument("LookupCost: base must be a cost of drafts that are looked up");
  law.require_valid();
}

RoundTime LookupCost::price(std::size_t version, const RoundPoint& point) const {
  RoundTime time = base().price(version, point);
  RoundPoint shorter = point;
  time.target = over_lengths(law_, point.gamma, point.batch, [&](std::int64_t drafts) {
    shorter.gamma = drafts;
    shorter.full_accepts = drafts == point.gamma ? point.full_accepts : 0;
    return base().price(version, shorter).target;
  });
  return time;
}

LookupIterations::LookupIterations(std::shared_ptr<const IterationCost> base, const core::LookupLaw& law)
    : base_(std::move(base)), law_(law) {
  if (!base_) throw std::invalid_argument("LookupIterations: base is null, but must be a cost");
  law.require_valid();
}

double LookupIterations::price(std::size_t version, const Iteration& iteration) const {
  if (iteration.verified)
    throw std::domain_error("LookupIterations: verified is given, but drafts that are found are verified in full");
  Iteration shorter = iteration;
  return over_lengths(law_, iteration.gamma, iteration.sequences, [&](std::int64_t drafts) {
    shorter.gamma = drafts;
    return base_->price(version, shorter);
  });
}

}  // namespace specdec::cost
