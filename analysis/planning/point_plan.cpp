#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "analysis/core/normal_interval.hpp"
#include "analysis/planning/draft_scan.hpp"

namespace specdec::planning {
namespace {

/// More requests than this count as if no number sufficed.
constexpr double most_requests = 1e9;

/// Errors of a row's ln(speedup), separately.
struct RowErrors {
  LogError sampling, readings, acceptance, cost;

  /// A stated range of acceptance counts from end to end, and no part of it is unlikely.
  LogError total(bool states_range) const {
    if (states_range) return {acceptance.below + cost.below, acceptance.above + cost.above};
    return {core::half_of_both(acceptance.below, cost.below), core::half_of_both(acceptance.above, cost.above)};
  }
};

/// [gamma]: the larger of two regrets.
std::vector<double> worst_of(const std::array<std::vector<double>, 2>& regrets) {
  std::vector<double> worst = regrets[0];
  for (std::size_t gamma = 0; gamma < worst.size(); ++gamma) worst[gamma] = std::max(worst[gamma], regrets[1][gamma]);
  return worst;
}

class PointPlanner {
 public:
  PointPlanner(const DraftScan& scan, const DeploymentQuestion& question, double batch, double context)
      : scan_(scan.at(context)), question_(question) {
    plan_.batch = batch;
    plan_.context = context;
    plan_.price_limit = scan_.plain_refused(batch, context);
    if (!plan_.price_limit.empty()) return;
    scan_.price(batch, context, times_, &plan_.price_limit);
    cost_error_ = scan_.cost_error(batch, context, times_);
    without_price_ = scan_.most_without_price(batch, context, times_);
  }

  PointPlan plan(std::optional<std::int64_t> deployed) {
    if (!times_.empty()) make_rows();
    plan_.basis = plan_.optimal_row ? scan_.basis(plan_.batch, plan_.context) : PriceBasis::not_priced;
    judge();
    if (plan_.optimal_row) describe_optimum();
    if (!times_.empty()) describe_costs();
    if (deployed) judge_deployed(*deployed);
    return std::move(plan_);
  }

 private:
  RowErrors errors(std::size_t gamma) const {
    return {scan_.sampling_error()[gamma], scan_.readings_error()[gamma], scan_.acceptance_error()[gamma],
            cost_error_[gamma]};
  }

  double enough() const { return 1 + question_.min_gain; }
  bool extrapolates(std::int64_t gamma) const {
    return scan_.draft().cost->extrapolates(scan_.point(gamma, plan_.batch, plan_.context));
  }
  bool is_guessed(std::size_t gamma) const {
    return !question_.extrapolate && scan_.is_guessed(static_cast<std::int64_t>(gamma), plan_.batch, plan_.context);
  }

  void make_rows();
  std::optional<std::size_t> longest_measured() const;
  std::optional<std::size_t> surer_than(std::size_t row, const std::vector<std::size_t>& rows) const;
  void prefer_measured();
  std::vector<double> losses() const;
  void choose_row(std::size_t fastest);
  void judge();
  std::vector<std::size_t> sure_rows() const;
  void take_sure(const std::vector<std::size_t>& sure);
  void ask_for_price();
  void explain_doubt(std::size_t row);
  std::optional<std::int64_t> requests_needed(std::size_t row) const;
  void describe_optimum();
  void describe_costs();
  void judge_deployed(std::int64_t gamma);
  std::array<std::vector<double>, 2> regrets_at_ends(const std::vector<LogError>& width) const;
  std::vector<double> worst_regrets() const { return worst_of(regrets_at_ends(scan_.acceptance_error())); }
  void list_near_optimal();
  double most_behind(std::size_t gamma, std::size_t other) const;

  const DraftScan& scan_;
  const DeploymentQuestion& question_;
  std::vector<cost::RoundTime> times_;
  std::vector<LogError> cost_error_;
  /// The largest gain of gammas without a price.
  double without_price_ = 0;
  PointPlan plan_;
};

void PointPlanner::make_rows() {
  const double plain = times_[0].total();
  const bool plain_extrapolated = extrapolates(0);
  std::size_t best = 0, best_known = 0;
  plan_.rows.reserve(times_.size());
  for (std::size_t gamma = 0; gamma < times_.size(); ++gamma) {
    const estimate::TokensPerStep& tokens = scan_.tokens()[gamma];
    const LogError acceptance = errors(gamma).acceptance;
    const LogError total = errors(gamma).total(scan_.draft().states_range);
    DeploymentRow row;
    row.gamma = static_cast<std::int64_t>(gamma);
    row.tokens_per_step = tokens.value;
    row.tokens_interval = {tokens.value * std::exp(-acceptance.below), tokens.value * std::exp(acceptance.above)};
    row.time = times_[gamma];
    row.speedup = tokens.value * plain / row.time.total();
    row.speedup_ci95 = {row.speedup * std::exp(-total.below), row.speedup * std::exp(total.above)};
    if (scan_.draft().acceptance->may_not_draft()) row.speedup_ci95.lo = std::min(1.0, row.speedup_ci95.lo);
    if (tokens.bracket) {
      row.tokens_bracket = tokens.bracket;
      row.speedup_bracket = {tokens.bracket->lo * plain / row.time.total(),
                             tokens.bracket->hi * plain / row.time.total()};
    }
    row.extrapolated = plain_extrapolated || tokens.extrapolated || extrapolates(row.gamma);
    const double above = cost_error_[gamma].above;
    row.cost_reaches_plain = above > 0 && above >= (1 - 1e-9) * std::log(row.time.total() / plain);
    plan_.rows.push_back(row);
    if (row.speedup > plan_.rows[best].speedup) best = gamma;
    if (row.speedup > plan_.rows[best_known].speedup && !is_guessed(gamma)) best_known = gamma;
  }
  for (DeploymentRow& row : plan_.rows) row.regret = 1 - row.speedup / plan_.rows[best].speedup;
  choose_row(best);
  if (is_guessed(*plan_.optimal_row)) plan_.passed_over_row = std::exchange(plan_.optimal_row, best_known);
  prefer_measured();
  if (plan_.optimal_row != 0 || without_price_ < enough()) return;
  plan_.optimal_row.reset();
  plan_.passed_over_row.reset();
}

/// Losses to the best gamma: by the estimate, or at the worse end of a range.
std::vector<double> PointPlanner::losses() const {
  if (scan_.has_range()) return worst_of(regrets_at_ends(scan_.range_error()));
  std::vector<double> regrets;
  for (const DeploymentRow& row : plan_.rows) regrets.push_back(row.regret);
  return regrets;
}

void PointPlanner::choose_row(std::size_t fastest) {
  const std::size_t last = plan_.rows.size() - 1;
  const std::vector<double> losses = this->losses();
  const double least = *std::min_element(losses.begin(), losses.end());
  const auto smallest_within = [&](double loss) {
    const auto will_do = [&](double its) { return its <= least + loss; };
    return static_cast<std::size_t>(std::find_if(losses.begin(), losses.end(), will_do) - losses.begin());
  };
  // Drafts that cost nothing gain up to the limit, at last by less than rounding shows.
  plan_.at_limit = last > 0 && (scan_.has_range() ? losses[last] <= least + equal_regrets : fastest == last);
  const bool by_default = question_.max_gamma_is_default && static_cast<std::int64_t>(last) == question_.max_gamma;
  if (plan_.at_limit && by_default) {
    plan_.optimal_row = std::max<std::size_t>(1, smallest_within(question_.tolerance));
  } else {
    plan_.optimal_row = scan_.has_range() ? smallest_within(equal_regrets) : fastest;
  }
}

std::optional<std::size_t> PointPlanner::longest_measured() const {
  const auto last =
      std::find_if(plan_.rows.rbegin(), plan_.rows.rend(), [](const DeploymentRow& row) { return !row.extrapolated; });
  if (last == plan_.rows.rend()) return std::nullopt;
  return static_cast<std::size_t>(last->gamma);
}

/// The fastest of some rows up to the longest measured draft and of those beyond that surely gain on these, if `row`
/// lies beyond and does not.
std::optional<std::size_t> PointPlanner::surer_than(std::size_t row, const std::vector<std::size_t>& rows) const {
  const std::optional<std::size_t> longest = longest_measured();
  if (!longest || row <= *longest) return std::nullopt;
  const auto fastest_of = [&](auto counts) {
    std::optional<std::size_t> fastest;
    for (const std::size_t one : rows) {
      const bool is_faster = !fastest || plan_.rows[one].speedup > plan_.rows[*fastest].speedup;
      if (is_faster && !is_guessed(one) && counts(one)) fastest = one;
    }
    return fastest;
  };
  const std::optional<std::size_t> measured = fastest_of([&](std::size_t one) { return one <= *longest; });
  if (!measured) return std::nullopt;
  const auto is_sure = [&](std::size_t one) {
    const double least =
        plan_.rows[one].speedup * std::exp(-errors(one).readings.below -
                                           further_error(errors(one).sampling.below, errors(*measured).sampling.below));
    return surely_gains(least, plan_.rows[*measured].speedup, enough(), question_.prefer_measured);
  };
  if (is_sure(row)) return std::nullopt;
  return fastest_of([&](std::size_t one) { return one <= *longest || is_sure(one); });
}

void PointPlanner::prefer_measured() {
  std::vector<std::size_t> all(plan_.rows.size());  // including plain decoding
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto surer = surer_than(*plan_.optimal_row, all);
  if (!surer) return;
  const std::size_t passed_over = *std::exchange(plan_.optimal_row, surer);
  if (!plan_.passed_over_row) plan_.passed_over_row = passed_over;
}

void PointPlanner::judge() {
  if (!plan_.optimal_row) return ask_for_price();
  const std::size_t optimum = *plan_.optimal_row;
  const auto upper_end = [&](std::size_t gamma) { return plan_.rows[gamma].speedup_ci95.hi; };
  std::size_t highest = optimum;
  for (std::size_t gamma = 1; gamma < plan_.rows.size(); ++gamma) {
    if (highest == 0 || upper_end(gamma) > upper_end(highest)) highest = gamma;
  }
  const bool some_may_do = highest > 0 && upper_end(highest) >= enough();
  const std::size_t doubted = optimum > 0 && upper_end(optimum) >= enough() ? optimum : highest;
  const bool decided = decides(plan_.basis, question_.extrapolate) && scan_.draft().cost->impossible().empty() &&
                       scan_.draft().acceptance->refused().empty();
  const std::vector<std::size_t> sure = optimum > 0 ? sure_rows() : std::vector<std::size_t>();
  if ((highest > 0 && !decided) || (some_may_do && sure.empty())) {
    explain_doubt(doubted);
  } else if (!sure.empty()) {
    plan_.verdict = Verdict::speculate;
    take_sure(sure);
  } else if (without_price_ >= enough()) {
    ask_for_price();
  } else {
    plan_.verdict = Verdict::do_not_speculate;
  }
}

/// The gammas that surely gain what is asked for, and by the estimate hardly less than the best one.
std::vector<std::size_t> PointPlanner::sure_rows() const {
  constexpr double given_up = 0.05;
  const double least = (1 - given_up) * plan_.optimal()->speedup;
  std::vector<std::size_t> sure;
  for (std::size_t gamma = 1; gamma < plan_.rows.size(); ++gamma) {
    const DeploymentRow& row = plan_.rows[gamma];
    if (row.speedup_ci95.lo >= enough() && row.speedup >= least && !is_guessed(gamma)) sure.push_back(gamma);
  }
  return sure;
}

/// Recommends the best of the gammas that are sure.
void PointPlanner::take_sure(const std::vector<std::size_t>& sure) {
  for (const std::size_t gamma : sure) plan_.rows[gamma].sure = true;
  if (plan_.optimal()->sure) return;
  const std::vector<double> losses = this->losses();
  const std::size_t best = *std::min_element(
      sure.begin(), sure.end(), [&](std::size_t one, std::size_t other) { return losses[one] < losses[other]; });
  plan_.unsure_row = std::exchange(plan_.optimal_row, surer_than(best, sure).value_or(best));
  if (*plan_.optimal_row <= longest_measured().value_or(0) || !plan_.passed_over_row) return;
  // It lies beyond what was measured, too: what may be faster is the fastest by the estimate, if it is not this one.
  const std::size_t fastest = *std::exchange(plan_.passed_over_row, std::nullopt);
  if (fastest != plan_.optimal_row) plan_.unsure_row = fastest;
}

void PointPlanner::ask_for_price() {
  plan_.dominant_source = UncertaintySource::cost;
  NextMeasurement next;
  next.gamma = scan_.gamma_to_time(times_.size());
  next.batch = plan_.batch;
  next.context = plan_.context;
  next.with_baseline = times_.empty() || extrapolates(0);
  plan_.next = next;
}

void PointPlanner::explain_doubt(std::size_t row) {
  const RowErrors e = errors(row);
  const double sampling = e.sampling.squares();
  const double readings = e.readings.squares();
  const double cost = e.cost.squares();
  const bool impossible = !scan_.draft().cost->impossible().empty();
  const bool carried = plan_.rows[row].extrapolated || (readings > 0 && readings >= std::max(sampling, cost));
  NextMeasurement next;
  next.gamma = static_cast<std::int64_t>(row);
  next.batch = plan_.batch;
  next.context = plan_.context;
  if (!impossible && !scan_.draft().acceptance->refused().empty()) {
    plan_.dominant_source = UncertaintySource::acceptance;
    return;
  }
  if (impossible) {
    plan_.dominant_source = UncertaintySource::cost;
    next.with_baseline = true;
  } else if (carried) {
    plan_.dominant_source = UncertaintySource::extrapolation;
    next.requests = requests_needed(row);
    next.with_baseline = extrapolates(next.gamma) || extrapolates(0);
  } else if (sampling + readings >= cost || scan_.draft().acceptance->may_not_draft()) {
    plan_.dominant_source = UncertaintySource::acceptance;
    next.requests = requests_needed(row);
  } else {
    plan_.dominant_source = UncertaintySource::cost;
    next.with_baseline = true;
  }
  plan_.next = next;
}

// Half-widths shrink with the root of the number of clusters; the readings coincide at the measured gamma.
std::optional<std::int64_t> PointPlanner::requests_needed(std::size_t row) const {
  const std::optional<std::int64_t> clusters = scan_.draft().clusters;
  const RowErrors e = errors(row);
  const double margin = std::log(plan_.rows[row].speedup / (1 + question_.min_gain));
  const double now = margin >= 0 ? e.sampling.below : e.sampling.above;
  const double cost = margin >= 0 ? e.cost.below : e.cost.above;
  if (!clusters || now <= 0 || std::abs(margin) <= cost) return std::nullopt;
  const double requests = static_cast<double>(*clusters) * now * now / (margin * margin - cost * cost);
  if (requests > most_requests) return std::nullopt;
  return std::max<std::int64_t>(2, static_cast<std::int64_t>(std::ceil(requests)));
}

void PointPlanner::describe_optimum() {
  const DeploymentRow& best = *plan_.optimal();
  const RowErrors e = errors(*plan_.optimal_row);
  const double acceptance = e.acceptance.squares();
  const double cost = e.cost.squares();
  estimate::Estimate& speedup = plan_.speedup_estimate.emplace();
  speedup.value = best.speedup;
  speedup.ci95 = best.speedup_ci95;
  if (acceptance + cost > 0) {
    // A cost whose error is unbounded has all of the share.
    const double of_cost = std::isfinite(cost) ? cost / (acceptance + cost) : 1;
    plan_.interval_share = IntervalShare{1 - of_cost, of_cost};
    speedup.method = cost > 0 && scan_.draft().states_range ? "half-widths of ln(tokens per step) and of ln(cost) added"
                     : cost > 0 ? "squares of the half-widths of ln(tokens per step) and of ln(cost) added"
                                : "interval of tokens per step, cost taken as exact";
  } else {
    speedup.method = best.gamma == 0 ? "plain decoding, 1 by definition" : "acceptance and cost taken as exact";
  }
  plan_.worst_regret = worst_regrets()[*plan_.optimal_row];
  list_near_optimal();
  if (scan_.draft().cost->in_seconds()) {
    const BaselineAndSpeculative seconds = {times_[0].total(), best.time.total() / best.tokens_per_step};
    plan_.seconds_per_output_token = seconds;
    plan_.output_tokens_per_second = {plan_.batch / seconds.baseline, plan_.batch / seconds.speculative};
  }
}

void PointPlanner::list_near_optimal() {
  const auto ends = regrets_at_ends(scan_.range_error());
  std::vector<std::int64_t>& near = plan_.near_optimal_gammas;
  for (std::size_t gamma = 0; gamma < plan_.rows.size(); ++gamma) {
    const bool at_end = scan_.bracketed() && std::min(ends[0][gamma], ends[1][gamma]) <= question_.tolerance;
    if (at_end || plan_.rows[gamma].regret <= question_.tolerance) near.push_back(plan_.rows[gamma].gamma);
  }
  if (!scan_.bracketed()) return;
  const std::int64_t first = near.front();
  near.resize(static_cast<std::size_t>(near.back() - first) + 1);
  std::iota(near.begin(), near.end(), first);
}

void PointPlanner::describe_costs() {
  const cost::RoundCost& cost = *scan_.draft().cost;
  plan_.break_even_alpha = break_even_alpha(cost, plan_.batch, plan_.context, times_);
  const double plain = times_[0].total();
  for (std::size_t gamma = 1; gamma < times_.size(); ++gamma) {
    if (!cost.parts_known(scan_.point(static_cast<std::int64_t>(gamma), plan_.batch, plan_.context))) return;
  }
  for (const DeploymentRow& row : plan_.rows) {
    if (row.gamma == 0 || scan_.bracketed()) continue;
    const double left = row.tokens_per_step * plain - row.time.target - row.time.overhead;
    const double passes = cost::draft_passes(cost.kind(), static_cast<double>(row.gamma));
    if (passes == 0) continue;
    const double c = left / (passes * plain);
    if (c > (plan_.break_even_cost ? plan_.break_even_cost->c : 0)) plan_.break_even_cost = BreakEvenCost{c, row.gamma};
  }
  if (!(times_[0].target > 0) || times_.size() < 2) return;
  const DeploymentRow& shown = plan_.rows[std::max<std::size_t>(1, plan_.optimal_row.value_or(1))];
  const double passes = cost::draft_passes(cost.kind(), static_cast<double>(shown.gamma));
  plan_.c = passes == 0 ? 0 : shown.time.draft / (passes * plain);
  plan_.verify_factor = shown.time.target / times_[0].target;
}

void PointPlanner::judge_deployed(std::int64_t gamma) {
  const auto place = static_cast<std::size_t>(gamma);
  if (!plan_.optimal_row) {
    if (!question_.max_regret) return;
    throw std::domain_error(fmt::format("plan_deployment: max_regret cannot be checked at batch {:g}, context {:g}: {}",
                                        plan_.batch, plan_.context, plan_.price_limit));
  }
  if (place >= plan_.rows.size()) {
    // Throws with the reason why there is no such row.
    static_cast<void>(scan_.draft().acceptance->tokens_per_step(gamma));
    static_cast<void>(scan_.draft().cost->round(scan_.point(gamma, plan_.batch, plan_.context)));
    throw std::domain_error("plan_deployment: a gamma between 0 and that of what is deployed has no price");
  }
  DeployedAtPoint deployed;
  deployed.gamma = gamma;
  deployed.speedup = plan_.rows[place].speedup;
  deployed.regret = plan_.rows[place].regret;
  deployed.worst_regret = std::max(deployed.regret, worst_regrets()[place]);
  deployed.behind_recommended = most_behind(place, plan_.verdict == Verdict::do_not_speculate ? 0 : *plan_.optimal_row);
  deployed.exceeds_max_regret = question_.max_regret && deployed.behind_recommended > *question_.max_regret;
  plan_.deployed = deployed;
}

/// [end][gamma]: the regret of each gamma at the lower and at the upper end.
std::array<std::vector<double>, 2> PointPlanner::regrets_at_ends(const std::vector<LogError>& width) const {
  const auto at_end = [&](auto log_factor) {
    std::vector<double> speeds;
    for (std::size_t gamma = 0; gamma < plan_.rows.size(); ++gamma) {
      const DeploymentRow& row = plan_.rows[gamma];
      speeds.push_back(row.tokens_per_step * std::exp(log_factor(width[gamma])) / row.time.total());
    }
    const double best = *std::max_element(speeds.begin(), speeds.end());
    for (double& speed : speeds) speed = 1 - speed / best;
    return speeds;
  };
  return {at_end([](const LogError& error) { return -error.below; }),
          at_end([](const LogError& error) { return error.above; })};
}

double PointPlanner::most_behind(std::size_t gamma, std::size_t other) const {
  const DeploymentRow& slow = plan_.rows[gamma];
  const DeploymentRow& fast = plan_.rows[other];
  const double times = fast.time.total() / slow.time.total();
  return std::max({0.0, 1 - slow.tokens_per_step / fast.tokens_per_step * times,
                   1 - slow.tokens_interval.lo / fast.tokens_interval.lo * times,
                   1 - slow.tokens_interval.hi / fast.tokens_interval.hi * times});
}

}  // namespace

PointPlan plan_point(const DraftScan& scan, double batch, double context, const DeploymentQuestion& question,
                     std::optional<std::int64_t> deployed) {
  return PointPlanner(scan, question, batch, context).plan(deployed);
}

}  // namespace specdec::planning
