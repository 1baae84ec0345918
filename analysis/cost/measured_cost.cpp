#include "analysis/cost/measured_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "analysis/core/checks.hpp"

namespace specdec::cost {

const PassCurve::Axis& PassCurve::axis_for(double batch) const {
  const auto preference = [batch](const Axis& axis) {
    const int timed = axis.batches.contains(batch) ? 4 : 0;
    switch (axis.axis) {
      case traces::TimingAxis::verification:
        return timed + (batch == 1 ? 3 : 0);
      case traces::TimingAxis::grid:
        return timed + 2;
      default:
        return timed + 1;
    }
  };
  return *std::max_element(axes_.begin(), axes_.end(),
                           [&](const Axis& a, const Axis& b) { return preference(a) < preference(b); });
}

bool PassCurve::extrapolates(double batch, double tokens, double context) const {
  const Axis& axis = axis_for(batch);
  const double total = batch * tokens;
  const bool of_other_batches = axis.most_tokens > 1 && tokens > axis.most_tokens;
  return of_other_batches || !axis.batches.contains(batch) || total < axis.total_tokens.front() ||
         total > axis.total_tokens.back() || !axis.contexts.contains(context);
}

std::string PassCurve::about(double batch, double context) const {
  const Axis& axis = axis_for(batch);
  const auto range_text = [](const Range& range) {
    return range.lo == range.hi ? fmt::format("{:g}", range.lo) : fmt::format("{:g} to {:g}", range.lo, range.hi);
  };
  if (!axis.batches.contains(batch)) {
    return fmt::format(
        "passes of the {} were timed at batch {}, and those of other batches are priced as passes over as many tokens "
        "in all; time batch {:g} to know them",
        role_, range_text(axis.batches), batch);
  }
  if (axis.tells_context || axis.contexts.contains(context)) return {};
  return fmt::format(
      "passes of the {} were timed at context {} alone, and are taken to last as long at others; time some of them at "
      "a second context to know what it costs",
      role_, range_text(axis.contexts));
}

/// Where a number of tokens lies among the knots of an axis, and f there.
class PassCurve::Place {
 public:
  Place(const Axis& axis, double total)
      : total_(total), first_(axis.total_tokens.front()), last_(axis.total_tokens.back()) {
    const std::vector<double>& x = axis.total_tokens;
    above = static_cast<std::size_t>(std::lower_bound(x.begin(), x.end(), total) - x.begin());
    if (above < x.size() && x[above] == total) {
      below = above;
      return;
    }
    above = std::min(std::max<std::size_t>(above, 1), x.size() - 1);
    below = above == 0 ? 0 : above - 1;
    if (below < above) share_ = (total - x[below]) / (x[above] - x[below]);
  }

  /// @param lower, upper  f at the knots `below` and `above`
  double seconds(double lower, double upper, const Ends& ends) const {
    if (total_ < first_) {
      const double proportional = lower * (first_ - total_) / first_;
      const double by_slope = below == above ? proportional : std::max(0.0, (lower - upper) * share_);
      return lower - ends.below * std::min(by_slope, proportional);
    }
    if (total_ <= last_) return lower + share_ * (upper - lower);
    const double held = below == above ? upper : upper + std::max(0.0, upper - lower) * (share_ - 1);
    return pass_beyond(held, upper, last_, total_, ends.above);
  }

  std::size_t below = 0, above = 0;

 private:
  double total_, first_, last_;
  /// Of the way from `below` to `above`; outside of [0, 1] beyond the knots.
  double share_ = 0;
};

double PassCurve::seconds(double batch, double tokens, double context, std::size_t version) const {
  const Axis& axis = axis_for(batch);
  const Version& priced = versions_[number_of(axis)].at(version);
  const Place at(axis, batch * tokens);
  return at.seconds(priced.seconds[at.below], priced.seconds[at.above], priced.ends) +
         priced.per_context_token * batch * context;
}

MeasuredCost::MeasuredCost(std::span<const traces::TimedPass> target, std::span<const traces::TimedPass> draft,
                           MeasuredOptions options)
    : options_(options), target_("target", target, options_.curve) {
  core::require_in("MeasuredCost", "c", options_.c.value_or(0), 0, core::largest_double);
  core::require_in("MeasuredCost", "overhead_seconds", options_.overhead_seconds, 0, core::largest_double);
  if (looks_up(options_.kind)) {
    if (!draft.empty() || options_.c)
      throw std::invalid_argument("MeasuredCost: n-gram drafts need no time of a draft, but one is given");
  } else if (draft.empty() == !options_.c) {
    throw std::invalid_argument(fmt::format("MeasuredCost: the draft's time is given {}, but must be by passes or by c",
                                            options_.c ? "by passes and by c" : "by nothing"));
  }
  if (!draft.empty()) draft_.emplace("draft", draft, options_.curve);
  findings_.assign(target_.findings().begin(), target_.findings().end());
  if (!draft_) return;
  for (const Note& finding : draft_->findings())
    if (finding.code != "batch_axis_prices_verification") findings_.push_back(finding);
}

RoundTime MeasuredCost::price(std::size_t version, const RoundPoint& point) const {
  require_legal(point);
  const auto target = [&](double tokens) { return target_.seconds(point.batch, tokens, point.context, version); };
  const auto draft = [&](double tokens) { return draft_->seconds(point.batch, tokens, point.context, version); };
  if (point.gamma == 0) return {.target = target(1.0)};
  const auto gamma = static_cast<double>(point.gamma);
  RoundTime time{.target = target(gamma + 1), .overhead = options_.overhead_seconds};
  const double passes = draft_passes(options_.kind, gamma);
  if (passes == 0) return time;
  if (!draft_) {
    time.draft = passes * *options_.c * target(1.0);
    return time;
  }
  const double pass = draft(1.0);
  time.draft = passes * pass;
  const bool mirrored = options_.kind == DraftKind::mirrored;
  const double times_longer = mirrored ? 1 : point.full_accepts;
  if (times_longer > 0)
    time.draft += times_longer * std::max(0.0, draft(mirrored ? longest_draft_pass(options_.kind, gamma) : 2) - pass);
  return time;
}

bool MeasuredCost::extrapolates(const RoundPoint& point) const {
  require_legal(point);
  const auto gamma = static_cast<double>(point.gamma);
  if (target_.extrapolates(point.batch, gamma + 1, point.context)) return true;
  return draft_passes(options_.kind, gamma) > 0 &&
         (draft_ ? *draft_ : target_).extrapolates(point.batch, 1, point.context);
}

std::string MeasuredCost::about(double batch, double context) const {
  const std::string target = target_.about(batch, context);
  return target.empty() && draft_ ? draft_->about(batch, context) : target;
}

}  // namespace specdec::cost
