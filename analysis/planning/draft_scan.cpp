#include "analysis/planning/draft_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/math/tools/roots.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/core/quantile.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::planning {
namespace {

/// The `count` smallest values by `less`, sorted; count <= 16.
template <class Less>
std::array<double, 17> least_values(const std::vector<double>& values, std::size_t count, Less less) {
  std::array<double, 17> least{};
  std::size_t filled = 0;
  for (const double value : values) {
    if (filled == count && !less(value, least[count - 1])) continue;
    std::size_t place = std::min(filled, count - 1);
    for (; place > 0 && less(value, least[place - 1]); --place) least[place] = least[place - 1];
    least[place] = value;
    filled = std::min(filled + 1, count);
  }
  return least;
}

/// The quantile of values on the side that `less` puts first, linear between neighbours; reorders them. If few values
/// lie beyond it, it is found without reordering.
template <class Less>
double quantile(std::vector<double>& values, double share, Less less) {
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const auto between = [&](double a, double b) {
    return std::isfinite(a) ? a + (place - static_cast<double>(below)) * (b - a) : a;
  };
  if (above < 16) {
    const std::array<double, 17> least = least_values(values, above + 1, less);
    return between(least[below], least[above]);
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(above);
  std::nth_element(values.begin(), middle, values.end(), less);
  return between(*std::max_element(values.begin(), middle, less), *middle);
}

LogError log_error(double value, const estimate::Interval& interval) {
  return {std::max(0.0, std::log(value / interval.lo)), std::max(0.0, std::log(interval.hi / value))};
}

/// The cost's message if it has no answer.
std::string refusal(const cost::RoundCost& cost, const cost::RoundPoint& point) {
  try {
    static_cast<void>(cost.round(point));
    return {};
  } catch (const std::domain_error& error) {
    return error.what();
  }
}

/// Prices beyond what was measured may come out as zero, or overflow.
bool is_time(double seconds) { return 0 < seconds && seconds <= std::numeric_limits<double>::max(); }

std::string no_time(std::int64_t gamma, double batch, double context, double seconds) {
  return fmt::format(
      "the cost of a round at gamma {}, batch {:g}, context {:g} is {:g}, but must be positive and finite", gamma,
      batch, context, seconds);
}

}  // namespace

LogError error_of_tokens(const estimate::TokensPerStep& tokens) {
  return {std::log(tokens.value / tokens.ci95.lo) + std::log(tokens.value / tokens.readings.lo),
          std::log(tokens.ci95.hi / tokens.value) + std::log(tokens.readings.hi / tokens.value)};
}

LogError error_of_ratio(const cost::RoundCost& cost, const cost::RoundPoint& numerator,
                        const cost::RoundPoint& denominator) {
  std::vector<double> ratios(cost.replicates()), divisors(cost.replicates());
  if (ratios.empty()) return {};
  cost.totals_of_replicates(numerator, ratios);
  cost.totals_of_replicates(denominator, divisors);
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] /= divisors[i];
  std::sort(ratios.begin(), ratios.end());
  return log_error(cost.round(numerator).total() / cost.round(denominator).total(),
                   {core::sorted_quantile(ratios, 0.025), core::sorted_quantile(ratios, 0.975)});
}

DraftScan::DraftScan(const DeploymentDraft& draft, std::int64_t max_gamma) : draft_(&draft) {
  for (std::int64_t gamma = 0; gamma <= max_gamma; ++gamma) {
    try {
      tokens_.push_back(draft.acceptance->tokens_per_step(gamma));
    } catch (const std::domain_error& error) {
      if (gamma == 0) throw;
      limit_ = error.what();
      break;
    }
    sampling_.push_back(log_error(tokens_.back().value, tokens_.back().ci95));
    readings_.push_back(log_error(tokens_.back().value, tokens_.back().readings));
    const double value = tokens_.back().value;
    bracketed_ = bracketed_ || tokens_.back().bracket;
    bracket_.push_back(log_error(value, tokens_.back().bracket.value_or(estimate::Interval{value, value})));
    acceptance_.push_back({std::min(sampling_.back().below + readings_.back().below, std::log(value)),
                           std::min(sampling_.back().above + readings_.back().above,
                                    std::log((static_cast<double>(gamma) + 1) / value))});
  }
  for (const MeasuredSpeedup& run : draft.measured) {
    const auto gamma = static_cast<std::size_t>(run.gamma);
    std::vector<cost::RoundTime> times;
    if (gamma < tokens_.size() && draft.cost->answers({0, run.batch, run.context, 0})) {
      price(run.batch, run.context, times);
    }
    // A point that is not planned is not contradicted.
    if (gamma >= times.size()) continue;
    const double planned = tokens_[gamma].value * times[0].total() / times[gamma].total();
    misses_.push_back({&run, std::log(run.speedup / planned)});
  }
  for (const ContextAcceptance& part : draft.by_context) {
    auto own = std::make_shared<DeploymentDraft>(draft);
    own->acceptance = part.acceptance;
    own->by_context.clear();
    by_context_.push_back({part.from, own, std::make_shared<const DraftScan>(*own, max_gamma)});
  }
}

const DraftScan& DraftScan::at(double context) const {
  const DraftScan* found = this;
  for (const AtContext& part : by_context_) {
    if (part.from <= context) found = part.scan.get();
  }
  return *found;
}

LogError DraftScan::misses_near(std::int64_t gamma, double batch, double context) const {
  const auto share = [](double a, double b) { return std::min(a, b) / std::max(a, b); };
  LogError error;
  for (const Miss& miss : misses_) {
    const double near = share(static_cast<double>(gamma) + 1, static_cast<double>(miss.at->gamma) + 1) *
                        share(batch, miss.at->batch) * share(context + 1, miss.at->context + 1);
    error.below = std::max(error.below, -near * miss.log_ratio);
    error.above = std::max(error.above, near * miss.log_ratio);
  }
  return error;
}

cost::RoundPoint DraftScan::point(std::int64_t gamma, double batch, double context) const {
  return {gamma, batch, context, tokens_[static_cast<std::size_t>(gamma)].full_accepts};
}

void DraftScan::price(double batch, double context, std::vector<cost::RoundTime>& times, std::string* limit) const {
  times.clear();
  times.push_back(draft_->cost->round({0, batch, context, 0}));
  if (!is_time(times[0].total())) throw std::domain_error(no_time(0, batch, context, times[0].total()));
  for (std::size_t gamma = 1; gamma < tokens_.size(); ++gamma) {
    const cost::RoundPoint at = point(static_cast<std::int64_t>(gamma), batch, context);
    if (!draft_->cost->answers(at)) {
      if (limit != nullptr) *limit = refusal(*draft_->cost, at);
      return;
    }
    const cost::RoundTime time = draft_->cost->round(at);
    if (!is_time(time.total())) {
      if (limit != nullptr) *limit = no_time(at.gamma, batch, context, time.total());
      return;
    }
    times.push_back(time);
  }
}

LogError DraftScan::cost_error_of(const cost::RoundPoint& at, double ratio, const std::vector<double>& plain) const {
  LogError error;
  if (!plain.empty()) {
    std::vector<double> least(plain.size()), most(plain.size());
    draft_->cost->totals_of_replicates(at, least);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const double its_ratio = plain[i] / least[i];
      const bool says_nothing = std::isnan(its_ratio);
      least[i] = says_nothing ? 0 : its_ratio;
      most[i] = says_nothing ? std::numeric_limits<double>::infinity() : its_ratio;
    }
    error = log_error(ratio, {quantile(least, 0.025, std::less<>()), quantile(most, 0.025, std::greater<>())});
  }
  const LogError missed = misses_near(at.gamma, at.batch, at.context);
  return {std::max(error.below, missed.below), std::max(error.above, missed.above)};
}

std::vector<LogError> DraftScan::cost_error(double batch, double context,
                                            const std::vector<cost::RoundTime>& times) const {
  std::vector<LogError> errors(times.size());
  std::vector<double> plain(draft_->cost->replicates());
  if (plain.empty() && misses_.empty()) return errors;
  if (!plain.empty()) draft_->cost->totals_of_replicates({0, batch, context, 0}, plain);
  for (std::size_t gamma = 1; gamma < times.size(); ++gamma) {
    errors[gamma] = cost_error_of(point(static_cast<std::int64_t>(gamma), batch, context),
                                  times[0].total() / times[gamma].total(), plain);
  }
  return errors;
}

std::string DraftScan::plain_refused(double batch, double context) const {
  const cost::RoundPoint plain = {0, batch, context, 0};
  return draft_->cost->answers(plain) ? std::string() : refusal(*draft_->cost, plain);
}

/// True if the cost is fitted to rounds none of which, at any gamma, drafted near this batch and context.
bool DraftScan::no_drafts_timed(double batch, double context) const {
  if (draft_->cost->origin() != cost::CostOrigin::measured || draft_->cost->replicates() == 0) return false;
  for (std::size_t gamma = 1; gamma < tokens_.size(); ++gamma) {
    if (!draft_->cost->extrapolates(point(static_cast<std::int64_t>(gamma), batch, context))) return false;
  }
  return tokens_.size() > 1;
}

PriceBasis DraftScan::basis(double batch, double context) const {
  if (draft_->cost->extrapolates({0, batch, context, 0})) return PriceBasis::extrapolated;
  if (no_drafts_timed(batch, context)) return PriceBasis::extrapolated;
  switch (draft_->cost->origin()) {
    case cost::CostOrigin::stated:
      return PriceBasis::stated;
    case cost::CostOrigin::modelled:
      return PriceBasis::modelled;
    case cost::CostOrigin::measured:
      break;
  }
  return PriceBasis::measured;
}

bool DraftScan::is_guessed(std::int64_t gamma, double batch, double context) const {
  const cost::RoundCost& cost = *draft_->cost;
  return cost.origin() == cost::CostOrigin::measured && cost.replicates() == 0 &&
         cost.extrapolates(point(gamma, batch, context)) && !cost.extrapolates({0, batch, context, 0});
}

double DraftScan::most_without_price(double batch, double context, const std::vector<cost::RoundTime>& times) const {
  if (tokens_.size() == 1 && !limit_.empty()) return std::numeric_limits<double>::infinity();
  double tokens = 0;
  for (std::size_t gamma = times.size(); gamma < tokens_.size(); ++gamma) {
    tokens = std::max(tokens, tokens_[gamma].value * std::exp(acceptance_[gamma].above));
  }
  if (tokens == 0 || times.size() == 1) return tokens;
  const double ratio = times[0].total() / times.back().total();
  std::vector<double> plain(draft_->cost->replicates());
  if (!plain.empty()) draft_->cost->totals_of_replicates({0, batch, context, 0}, plain);
  const cost::RoundPoint last = point(static_cast<std::int64_t>(times.size()) - 1, batch, context);
  return tokens * ratio * std::exp(cost_error_of(last, ratio, plain).above);
}

std::int64_t DraftScan::gamma_to_time(std::size_t priced) const {
  const std::int64_t first = std::max<std::int64_t>(1, static_cast<std::int64_t>(priced));
  const auto is_carried = [](const estimate::TokensPerStep& tokens) { return tokens.extrapolated; };
  const auto carried = std::find_if(tokens_.begin(), tokens_.end(), is_carried);
  if (carried != tokens_.end()) return std::max<std::int64_t>(first, carried - tokens_.begin() - 1);
  const double half = (1 + tokens_.back().value) / 2;
  const auto yields = [half](const estimate::TokensPerStep& tokens) { return tokens.value >= half; };
  return std::max<std::int64_t>(first, std::find_if(tokens_.begin(), tokens_.end(), yields) - tokens_.begin());
}

std::optional<double> break_even_alpha(const cost::RoundCost& cost, double batch, double context,
                                       const std::vector<cost::RoundTime>& times) {
  const double plain = times[0].total();
  double smallest = 1;
  for (std::size_t place = 1; place < times.size(); ++place) {
    const auto gamma = static_cast<std::int64_t>(place);
    const auto round = [&](double full_accepts) { return cost.round({gamma, batch, context, full_accepts}).total(); };
    const double none = round(0);
    if (none <= plain) return 0;
    const bool same = round(1) == none;
    const auto gain = [&](double alpha) {
      const core::AcceptanceRate rate(alpha);
      const double time = same ? none : round(rate.power(gamma));
      return theory::expected_tokens(rate, gamma) * plain - time;
    };
    const double highest = gain(smallest);
    if (highest <= 0) continue;
    std::uintmax_t steps = 100;
    const auto root = boost::math::tools::toms748_solve(gain, 0.0, smallest, plain - none, highest,
                                                        boost::math::tools::eps_tolerance<double>(50), steps);
    smallest = (root.first + root.second) / 2;
  }
  if (smallest == 1) return std::nullopt;
  return smallest;
}

}  // namespace specdec::planning
