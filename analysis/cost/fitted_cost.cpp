#include "analysis/cost/fitted_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/quantile.hpp"
#include "analysis/cost/round_law.hpp"
#include "analysis/cost/round_posterior.hpp"

namespace specdec::cost {
namespace {

/// Within these bounds no product of a run's figures comes near the ends of doubles.
constexpr double least_of_a_run = 1e-12, most_of_a_run = 1e12;
/// Share by which a fit may miss a run.
constexpr double poor_fit = 0.1;
/// Plain steps, for each token that a round verifies, beyond which it cannot have taken what it says.
constexpr double most_steps_per_token = 20;
/// Factor by which the batch of a round may lie beyond those of the runs of its kind, plain or with drafts.
constexpr double near_batches = 1.25;
/// Share of a round up to which what drafting takes may be unknown.
constexpr double known_part = 0.1;

void require_legal(const DraftTree& tree) {
  constexpr std::string_view function = "FittedCost";
  core::require_in(function, "depth", tree.depth, 1, DraftTree::largest);
  core::require_in(function, "top_k", tree.top_k, 1, DraftTree::largest);
  core::require_in(function, "verified", tree.verified, tree.depth + 1, tree.candidates() + 1);
}

void require_legal(const ObservedRound& run) {
  constexpr std::string_view function = "FittedCost";
  core::require_in(function, "gamma", run.gamma, 0, most_of_a_run);
  core::require_in(function, "batch", run.batch, least_of_a_run, most_of_a_run);
  core::require_in(function, "context", run.context.value_or(0), 0, most_of_a_run);
  core::require_in(function, "prompt tokens", run.prompt_tokens, 0, most_of_a_run);
  core::require_in(function, "seconds", run.seconds, least_of_a_run, most_of_a_run);
  core::require_in(function, "weight", run.weight, least_of_a_run, most_of_a_run);
  if (run.tree) require_legal(*run.tree);
}

Range range_of(std::span<const ObservedRound> runs, double (*value)(const ObservedRound&)) {
  Range range{value(runs.front()), value(runs.front())};
  for (const ObservedRound& run : runs) {
    range.lo = std::min(range.lo, value(run));
    range.hi = std::max(range.hi, value(run));
  }
  return range;
}

/// Reorders the values.
double median(std::vector<double>& values) {
  const auto above = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), above, values.end());
  if (values.size() % 2 == 1) return *above;
  return (*above + *std::max_element(values.begin(), above)) / 2;
}

}  // namespace

FittedCost::FittedCost(std::span<const ObservedRound> runs, const FitOptions& options) : options_(options) {
  if (runs.empty()) throw std::invalid_argument("FittedCost: no runs");
  core::require_in("FittedCost", "usual_error", options_.usual_error, 1e-6, 1);
  core::require_in("FittedCost", "usual_error_degrees", options_.usual_error_degrees, core::least_positive,
                   most_of_a_run);
  double context_sum = 0, contexts = 0;
  for (const ObservedRound& run : runs) {
    require_legal(run);
    if (!run.context) continue;
    context_sum += *run.context;
    contexts += 1;
  }
  for (const std::vector<double>& factors : options_.log_factors)
    core::require_same_size("FittedCost", "log_factors", factors.size(), "the runs", runs.size());
  knows_contexts_ = contexts > 0;
  if (knows_contexts_) usual_context_ = context_sum / contexts;
  std::vector<ObservedRound> complete(runs.begin(), runs.end());
  for (ObservedRound& run : complete)
    if (!run.context) run.context = usual_context_;
  const auto ranges_of = [this](std::span<const ObservedRound> some) {
    FittedRanges ranges{range_of(some, [](const ObservedRound& run) { return run.gamma; }),
                        range_of(some, [](const ObservedRound& run) { return run.batch; }),
                        {}};
    if (knows_contexts_) ranges.contexts = range_of(some, [](const ObservedRound& run) { return *run.context; });
    return ranges;
  };
  std::vector<ObservedRound> plain, chains;
  std::map<DraftTree, std::vector<ObservedRound>> trees;
  for (const ObservedRound& run : complete)
    (run.tree ? trees[*run.tree] : run.gamma > 0 ? chains : plain).push_back(run);
  all_ = ranges_of(complete);
  if (!plain.empty()) ranges_[0] = ranges_of(plain);
  if (!chains.empty()) ranges_[1] = ranges_of(chains);
  if (!trees.empty())
    all_.gammas = {plain.empty() && !chains.empty() ? ranges_[1]->gammas.lo : 0,
                   chains.empty() ? 0 : ranges_[1]->gammas.hi};
  for (const auto& [tree, its] : trees) tree_ranges_.emplace(tree, ranges_of(its));
  posterior_ = std::make_shared<const RoundPosterior>(complete, options_, knows_contexts_);
  for (std::size_t i = 0; i < complete.size(); ++i) {
    std::vector<double> factors;
    if (!options_.log_factors.empty())
      for (const std::size_t way : posterior_->ways()) factors.push_back(std::exp(options_.log_factors[way][i]));
    usual_factors_.push_back(factors.empty() ? 1.0 : median(factors));
    complete[i].seconds *= usual_factors_.back();
  }
  check_plain_steps(complete);
  for (const ObservedRound& run : complete) fitted_.push_back(seconds(run));
  check_physics(complete);
}

void FittedCost::check_physics(std::span<const ObservedRound> runs) {
  const auto plain = [](const ObservedRound& run) { return run.gamma == 0; };
  check_order(runs);
  check_gammas(runs);
  if (std::none_of(runs.begin(), runs.end(), plain))
    findings_.push_back({std::string(no_plain_runs),
                         "no run without speculation: speedups rest on a guess of what a plain step takes"});
  std::size_t worst = 0;
  const auto error = [&](std::size_t i) { return fitted_[i] / runs[i].seconds - 1; };
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (std::abs(error(i)) > std::abs(error(worst))) worst = i;
  if (std::abs(error(worst)) > poor_fit) {
    findings_.push_back(
        {"poor_fit", fmt::format("{}: the fit says {:.4g} s a round where {:.4g} s were observed ({:+.0f}%)",
                                 runs[worst].name, fitted_[worst], runs[worst].seconds, 100 * error(worst))});
  }
}

void FittedCost::check_plain_steps(std::span<const ObservedRound> runs) {
  std::size_t more = 0;
  const auto rule_out = [&](const std::string& text) {
    if (impossible_.empty()) {
      impossible_ = text;
    } else {
      ++more;
    }
  };
  for (const ObservedRound& run : runs) {
    if (run.gamma == 0) continue;
    const auto plain_step = [&](auto condition) {
      return std::find_if(runs.begin(), runs.end(), [&](const ObservedRound& other) {
        return other.gamma == 0 && same(run.batch, other.batch) && same(*run.context, *other.context) &&
               condition(other);
      });
    };
    const auto slower = plain_step([&](const ObservedRound& plain) { return run.seconds < plain.seconds; });
    if (slower != runs.end()) {
      const std::string text = fmt::format(
          "{}: a round with {:.3g} drafts took {:.4g} s, less than the {:.4g} s of a plain step of {}; a "
          "round holds a pass of the target",
          run.name, run.gamma, run.seconds, slower->seconds, slower->name);
      findings_.push_back({"round_below_target_pass", text});
      if (slower->seconds > rounds_agree * run.seconds) rule_out(text);
    }
    const auto far_below = plain_step([&](const ObservedRound& plain) {
      return run.seconds > most_steps_per_token * (run.gamma + 1) * plain.seconds;
    });
    if (far_below == runs.end()) continue;
    const std::string text = fmt::format(
        "{}: a round with {:.3g} drafts took {:.4g} s, as long as {:.4g} plain steps of {}, as if one of the two were "
        "in another unit of time",
        run.name, run.gamma, run.seconds, run.seconds / far_below->seconds, far_below->name);
    findings_.push_back({"round_of_many_steps", text});
    rule_out(text);
  }
  if (more > 0) impossible_ += fmt::format(" ({} more)", more);
}

void FittedCost::check_gammas(std::span<const ObservedRound> runs) {
  const auto drafts = std::find_if(runs.begin(), runs.end(), [](const ObservedRound& run) { return run.gamma > 0; });
  if (drafts == runs.end() || looks_up(options_.kind)) return;
  const auto is_another = [&](const ObservedRound& run) { return run.gamma > 0 && !same(run.gamma, drafts->gamma); };
  if (std::any_of(runs.begin(), runs.end(), is_another)) return;
  findings_.push_back({std::string(rounds_of_one_gamma),
                       fmt::format("all rounds with drafts have {:.3g} of them: how a round divides into drafts and "
                                   "verification, and so what another gamma costs, is what is usual of servers, and "
                                   "not measured; rounds of another gamma tell",
                                   drafts->gamma)});
}

void FittedCost::check_order(std::span<const ObservedRound> runs) {
  const ObservedRound* fewer = nullptr;
  const ObservedRound* more = nullptr;
  double most = rounds_agree;
  for (const ObservedRound& a : runs) {
    for (const ObservedRound& b : runs) {
      if (a.tree || b.tree) continue;
      const bool rises = 0 < a.gamma && a.gamma < b.gamma && a.batch * (1 - same_point) <= b.batch;
      if (!rises || !same(*a.context, *b.context) || a.seconds <= most * b.seconds) continue;
      most = a.seconds / b.seconds;
      fewer = &a;
      more = &b;
    }
  }
  if (fewer == nullptr) return;
  findings_.push_back({std::string(rounds_fall_with_gamma),
                       fmt::format("{}: a round with {:.3g} drafts took {:.4g} s, less than the {:.4g} s of one with "
                                   "{:.3g} at no larger batch, {}: more drafts make no round cheaper, so that noise or "
                                   "other settings decide between them; repeat both",
                                   more->name, more->gamma, more->seconds, fewer->seconds, fewer->gamma, fewer->name)});
}

Place FittedCost::place_of(const RoundPoint& point) const {
  cost::require_legal(point);
  if (tree_ && point.gamma != 0 && point.gamma != tree_->depth) {
    throw std::domain_error(
        fmt::format("FittedCost: gamma is {}, but must be 0 or {}, the depth of the tree", point.gamma, tree_->depth));
  }
  // Without contexts the price and the residual are the same at each.
  ObservedRound round{.gamma = static_cast<double>(point.gamma),
                      .batch = point.batch,
                      .context = knows_contexts_ ? point.context : 0.0};
  if (options_.prompt_tokens) round.prompt_tokens = options_.prompt_tokens(point);
  if (point.gamma > 0) round.tree = tree_;
  return cost::place_of(round, options_.mean_drafts);
}

double FittedCost::middle(const Place& at, const Place& plain) const {
  const bool is_bound = at.drafts() && rounds_hold_plain_steps();
  if (replicates() == 0) {
    const double seconds = posterior_->log_seconds(at);
    return std::exp(is_bound ? std::max(seconds, posterior_->log_seconds(plain)) : seconds);
  }
  std::vector<double> totals(replicates());
  bounded_totals(at, plain, 0, totals);
  return median(totals);
}

double FittedCost::seconds(const ObservedRound& of) const {
  ObservedRound run = of;
  if (!knows_contexts_ || !of.context) run.context = usual_context_;
  ObservedRound plain = run;
  plain.gamma = 0;
  plain.tree.reset();
  return middle(cost::place_of(run, options_.mean_drafts), cost::place_of(plain, {}));
}

RoundTime FittedCost::price(std::size_t version, const RoundPoint& point) const {
  const Place at = place_of(point), plain = place_of(point.plain());
  const RoundTime round = posterior_->law().time(
      version == 0 ? posterior_->likeliest().log_terms : posterior_->log_terms_of(version - 1), at);
  double total = version == 0 ? middle(at, plain) : 0;
  if (version > 0) bounded_totals(at, plain, version - 1, {&total, 1});
  return round.times(total / round.total());
}

bool FittedCost::extrapolates(const RoundPoint& point) const {
  cost::require_legal(point);
  const auto outside = [](const Range& range, double value) {
    return value < range.lo * (1 - same_point) || value > range.hi * (1 + same_point);
  };
  // One request at a time, with pauses between, is less than one that runs.
  const auto batches_of = [](const FittedRanges& of) {
    return Range{std::max(1.0, of.batches.lo), std::max(1.0, of.batches.hi)};
  };
  const double batch = std::max(1.0, point.batch);
  const bool drafts = point.gamma > 0;
  bool far_from_its_kind = drafts;
  if (const std::optional<FittedRanges>& its_kind = ranges_[drafts ? 1 : 0]) {
    const Range batches = batches_of(*its_kind);
    far_from_its_kind = batch * near_batches < batches.lo || batch > near_batches * batches.hi;
  }
  return outside(all_.gammas, static_cast<double>(point.gamma)) || outside(batches_of(all_), batch) ||
         far_from_its_kind || (all_.contexts && outside(*all_.contexts, point.context));
}

FittedRanges FittedCost::ranges(bool drafting) const {
  FittedRanges ranges = ranges_[drafting ? 1 : 0].value_or(all_);
  ranges.gammas = all_.gammas;
  return ranges;
}

double FittedCost::correlation(const RoundPoint& a, const RoundPoint& b) {
  const Place at_a{static_cast<double>(a.gamma), a.batch, a.context};
  const Place at_b{static_cast<double>(b.gamma), b.batch, b.context};
  return covariance(at_a, at_b) / (residual_size * residual_size);
}

double FittedCost::step_between(const RoundPoint& a, const RoundPoint& b) const {
  return std::abs(posterior_->law().step(place_of(a)) - posterior_->law().step(place_of(b)));
}

bool FittedCost::parts_known(const RoundPoint& point) const {
  const Place at = place_of(point);
  if (draft_passes(options_.kind, at.gamma) == 0) return true;
  std::vector<double> shares;
  for (std::size_t world = 0; world < replicates(); ++world) {
    const RoundTime time = posterior_->law().time(posterior_->log_terms_of(world), at);
    shares.push_back(time.draft / time.total());
  }
  if (shares.empty()) return false;
  return core::quantile(shares, 0.975) - core::quantile(shares, 0.025) <= known_part;
}

std::shared_ptr<const FittedCost> FittedCost::of_tree(const DraftTree& tree,
                                                      std::function<double(const RoundPoint&)> prompt_tokens) const {
  require_legal(tree);
  auto its = std::make_shared<FittedCost>(*this);
  its->tree_ = tree;
  its->options_.prompt_tokens = std::move(prompt_tokens);
  its->all_.gammas = {0, static_cast<double>(tree.depth)};
  const auto ran = tree_ranges_.find(tree);
  its->ranges_[1] = ran == tree_ranges_.end() ? std::nullopt : std::optional(ran->second);
  return its;
}

double FittedCost::run_error() const { return options_.usual_error * posterior_->error_scale(); }

std::size_t FittedCost::replicates() const { return posterior_->worlds(); }

std::span<const std::size_t> FittedCost::factors_of_replicates() const { return posterior_->ways(); }

void FittedCost::bounded_totals(const Place& at, const Place& plain, std::size_t first,
                                std::span<double> totals) const {
  posterior_->seconds_of_worlds(at, first, totals);
  if (!at.drafts() || !rounds_hold_plain_steps()) return;
  std::vector<double> least(totals.size());
  posterior_->seconds_of_worlds(plain, first, least);
  for (std::size_t i = 0; i < totals.size(); ++i) totals[i] = std::max(totals[i], least[i]);
}

void FittedCost::totals_of_replicates(const RoundPoint& point, std::span<double> totals) const {
  core::require_same_size("totals_of_replicates", "totals", totals.size(), "the replicates", replicates());
  bounded_totals(place_of(point), place_of(point.plain()), 0, totals);
}

std::vector<std::optional<double>> leave_one_out(std::span<const ObservedRound> runs, const FitOptions& options,
                                                 std::optional<std::size_t> predicted) {
  if (runs.empty()) return {};
  // A fit takes as long as the cube of its runs.
  constexpr std::size_t most_groups = 24, fewest_groups = 3, most_squares = 600'000;
  FitOptions alone = options;
  alone.replicates = 0;
  alone.log_factors.clear();
  std::vector<std::optional<double>> predictions(std::min(runs.size(), predicted.value_or(runs.size())));
  const std::size_t affordable = most_squares / (runs.size() * runs.size());
  const std::size_t groups = std::min(runs.size(), std::clamp(affordable, fewest_groups, most_groups));
  for (std::size_t group = 0; group < groups; ++group) {
    std::vector<ObservedRound> others;
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (i % groups != group) others.push_back(runs[i]);
    std::optional<FittedCost> cost;
    for (std::size_t i = group; i < predictions.size(); i += groups) {
      const auto alike = [&](const ObservedRound& other) { return (other.gamma > 0) == (runs[i].gamma > 0); };
      if (!std::any_of(others.begin(), others.end(), alike)) continue;
      if (!cost) cost.emplace(others, alone);
      predictions[i] = cost->seconds(runs[i]);
    }
  }
  return predictions;
}

}  // namespace specdec::cost
