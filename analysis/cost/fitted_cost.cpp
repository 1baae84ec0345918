#include "analysis/cost/fitted_cost.hpp"

#include <fmt/format.h>
#include <Eigen/Dense>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/normal_interval.hpp"
#include "analysis/core/quantile.hpp"
#include "analysis/cost/replicate_draws.hpp"

namespace specdec::cost {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

enum Term : std::size_t {
  iteration,
  sequence,
  context_token,
  speculative_round,
  sequence_of_round,
  draft_pass,
  drafted_token,
  verified_token,
  experts,
  prompt_token,
  knee,
  expert_tokens
};

constexpr Index terms_of_a_round = static_cast<Index>(cost_terms);
/// Logarithms: of the iteration's seconds, of the other seconds' shares of it, and of 1 / knee and 1 / expert_tokens.
using LogTerms = Eigen::Matrix<double, terms_of_a_round, 1>;
using TermMatrix = Eigen::Matrix<double, terms_of_a_round, terms_of_a_round>;

/// Within these bounds no product of a run's figures comes near the ends of doubles.
constexpr double least_of_a_run = 1e-12, most_of_a_run = 1e12;
constexpr std::uint32_t run_stream = 32, prior_stream = 33, residual_stream = 34;
/// Shares by which batches and contexts may differ and still be compared, and a fit may miss a run.
constexpr double same_point = 0.05;
constexpr double poor_fit = 0.1;
/// Plain steps, for each token that a round verifies, beyond which it cannot have taken what it says.
constexpr double most_steps_per_token = 20;
/// Factor by which the batch of a round may lie beyond those of the runs of its kind, plain or with drafts.
constexpr double near_batches = 1.25;
/// Share of a round up to which what drafting takes may be unknown.
constexpr double known_part = 0.1;
constexpr double knee_sharpness = 3;
/// No error is taken for more than twenty times as large as usual.
constexpr double most_widening = 20;

/// The usual size of a term: its median share of the iteration (of the last two the inverse tokens), and the standard
/// deviation of its logarithm over servers.
struct UsualTerm {
  double share = 1;
  double spread = 1;
};

/// Fitted with the laws below to the published rounds that docs/validation.md#rounds-that-others-published names as
/// developed on, for the best density of what was left out. The tokens that meet experts are those of published
/// mixtures: their experts over those that a token takes, 4 to 51. A prompt's token costs what one beyond the knee
/// does.
constexpr std::array<UsualTerm, cost_terms> usual_terms = {{{1, 10},
                                                            {0.0016, 1.4},
                                                            {2.7e-6, 1.2},
                                                            {0.135, 0.65},
                                                            {0.001, 1.5},
                                                            {0.073, 0.7},
                                                            {0.0014, 1.2},
                                                            {0.0011, 1.5},
                                                            {0.03, 2},
                                                            {0.0018, 1},
                                                            {0.0018, 0.9},
                                                            {0.05, 0.8}}};
/// Standard deviation of the logarithm of what a tree's rounds take beyond all terms, at every batch alike: masks and
/// the choice of nodes.
constexpr double tree_size = 0.1;
/// Standard deviation of the logarithm of what all rounds of a server's start share, and of its own logarithm over
/// servers. Assumed: no published rounds repeat a configuration on two starts.
constexpr double usual_start_error = 0.02, spread_of_start_errors = 0.8;
/// The residual's standard deviation, and the distances over which it changes.
constexpr double residual_size = 0.07;
constexpr double batch_length = 1.4, gamma_length = 0.9, context_length = 1, least_context = 500;

double usual_share(std::size_t term, DraftKind kind) {
  if (term == draft_pass && (kind == DraftKind::model || kind == DraftKind::mirrored)) return 0.06;
  // The one pass of a round is told from its fixed part by name alone.
  if (term == draft_pass && kind == DraftKind::parallel) return 0.005;
  return usual_terms[term].share;
}

/// Where a round is priced.
struct Place {
  double gamma = 0, batch = 1, context = 0;
  /// Prompt tokens of other requests, per round.
  double prompt_tokens = 0;
  /// Sequences that a pass of the draft but the first goes on with, and positions verified of each sequence.
  double width = 1, verified = 1;

  Place() = default;
  Place(double its_gamma, double its_batch, double its_context, double prompts = 0,
        const std::optional<DraftTree>& tree = std::nullopt)
      : gamma(its_gamma),
        batch(its_batch),
        context(its_context),
        prompt_tokens(prompts),
        width(tree ? static_cast<double>(tree->top_k) : 1),
        verified(tree ? static_cast<double>(tree->verified) : its_gamma + 1) {}

  bool is_same_tree(const Place& other) const {
    return width > 1 && gamma == other.gamma && width == other.width && verified == other.verified;
  }
};

double squared(double x) { return x * x; }

/// Of chains |ln((gamma + 1) / (gamma' + 1))|; trees are as far as depth and verified tokens are, and their width.
double distance_of_drafts(const Place& a, const Place& b) {
  const double depths = std::log((a.gamma + 1) / (b.gamma + 1)), tokens = std::log(a.verified / b.verified);
  return std::sqrt((squared(depths) + squared(tokens)) / 2 + squared(std::log(a.width / b.width)));
}

double covariance(const Place& a, const Place& b) {
  if ((a.gamma > 0) != (b.gamma > 0)) return 0;
  const double of_tree = a.is_same_tree(b) ? squared(tree_size) : 0;
  return of_tree + squared(residual_size) *
                       std::exp(-0.5 * (squared(std::log(a.batch / b.batch) / batch_length) +
                                        squared(distance_of_drafts(a, b) / gamma_length) +
                                        squared(std::log((a.context + least_context) / (b.context + least_context)) /
                                                context_length)));
}

/// Seconds by term; those of the knee and of expert_tokens are 0, being part of the iteration and of the experts.
using TermSeconds = std::array<double, cost_terms>;

/// The law of a round's time given its terms.
struct RoundLaw {
  DraftKind kind = DraftKind::model;
  bool knows_contexts = false;

  TermSeconds seconds(const LogTerms& log_terms, const Place& at) const {
    const double tokens = at.verified * at.batch, passes = draft_passes(kind, at.gamma);
    const double drafted = passes == 0 ? 0 : (passes - 1) * at.width + longest_draft_pass(kind, at.gamma);
    const double drafts = at.gamma > 0 ? 1 : 0;
    const double over_knee = std::pow(tokens * std::exp(log_terms[knee]), knee_sharpness);
    const TermSeconds amounts = {std::pow(1 + over_knee, 1 / knee_sharpness),
                                 at.batch,
                                 knows_contexts ? at.batch * at.context : 0.0,
                                 drafts,
                                 drafts * at.batch,
                                 passes,
                                 drafted * at.batch,
                                 tokens,
                                 -std::expm1(-tokens * std::exp(log_terms[expert_tokens])),
                                 at.prompt_tokens};
    TermSeconds seconds{};
    const double scale = std::exp(log_terms[iteration]);
    seconds[iteration] = scale * amounts[iteration];
    for (std::size_t j = 1; j < knee; ++j) seconds[j] = scale * amounts[j] * std::exp(log_terms[static_cast<Index>(j)]);
    return seconds;
  }

  /// ln of the total, and by the terms its slopes.
  double log_seconds(const LogTerms& log_terms, const Place& at, LogTerms* slopes = nullptr) const {
    const TermSeconds parts = seconds(log_terms, at);
    double total = 0;
    for (const double part : parts) total += part;
    if (slopes != nullptr) {
      for (std::size_t j = 1; j < knee; ++j) (*slopes)[static_cast<Index>(j)] = parts[j] / total;
      (*slopes)[iteration] = 1;
      const double over_knee = std::pow(at.verified * at.batch * std::exp(log_terms[knee]), knee_sharpness);
      (*slopes)[knee] = parts[iteration] / total * over_knee / (1 + over_knee);
      const double met = at.verified * at.batch * std::exp(log_terms[expert_tokens]);
      (*slopes)[expert_tokens] = std::exp(log_terms[iteration] + log_terms[experts] - met) * met / total;
    }
    return std::log(total);
  }
};

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

bool same(double a, double b) { return std::abs(a - b) <= same_point * std::max(a, b); }

Range range_of(std::span<const ObservedRound> runs, double (*value)(const ObservedRound&)) {
  Range range{value(runs.front()), value(runs.front())};
  for (const ObservedRound& run : runs) {
    range.lo = std::min(range.lo, value(run));
    range.hi = std::max(range.hi, value(run));
  }
  return range;
}

Range central_95(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {core::sorted_quantile(values, 0.025), core::sorted_quantile(values, 0.975)};
}

}  // namespace

/// The law of terms and residual given the runs.
struct FittedCost::Posterior {
  /// One draw of terms and residuals.
  struct Replicate {
    LogTerms log_terms = LogTerms::Zero();
    /// covariances^-1 (ln measured - ln terms), (runs)
    VectorXd weights;
    /// The residual and another run's error beyond these, in their standard deviations: of plain rounds and of
    /// speculative ones.
    std::array<double, 2> residual{}, noise{};
    /// The factor by which another run's error changes its seconds.
    double run_factor(bool drafts) const { return std::exp(noise[drafts ? 1 : 0]); }
    /// All rounds of another start share this error.
    double start = 0;
    /// Its seconds of the runs' rounds, (runs).
    std::vector<double> seconds_of_runs = {};
  };

  Posterior(std::span<const ObservedRound> runs, const FitOptions& options, bool knows_contexts);

  Place place_of(const RoundPoint& point, const FittedCost& cost) const;
  /// @param run  with its context
  Place place_of(const ObservedRound& run) const;
  /// The most probable terms for runs of these logarithms of seconds and priors of these means.
  LogTerms fit(const VectorXd& log_seconds, const LogTerms& means, LogTerms start) const;
  VectorXd log_seconds_of(const LogTerms& log_terms, MatrixXd* slopes = nullptr) const;
  VectorXd covariances_with(const Place& at) const;
  /// 1 where two runs are of one start, else 0, (runs, runs).
  MatrixXd same_starts() const;
  /// The root of the start error's mean square given the runs, by their density at the linearised terms.
  double start_error_given(const MatrixXd& of_runs, const MatrixXd& starts) const;
  void measure_errors(const FitOptions& options);
  /// Standard deviation of ln(measured / true) of a run by what repeats differ by, beside the usual one, which counts
  /// as so many degrees of freedom.
  double repeated_error(const VectorXd& misses, const FitOptions& options) const;
  Replicate draw(std::uint32_t index, const FitOptions& options) const;
  /// The residual at a place according to the runs: its covariances with theirs, and the standard deviation that is
  /// left.
  struct Nearby {
    VectorXd covariances;
    double spread = 0;
  };
  Nearby near(const Place& at) const;
  double log_covariance(const Place& a, const Place& b) const;
  RoundTime time(const LogTerms& log_terms, const Place& at, double log_factor) const;
  /// Without a run's own error.
  RoundTime time(const Replicate& replicate, const Place& at, const Nearby& nearby) const;
  /// The runs that held no more than rounds at a place, and those that held no less; of either kind, plain rounds and
  /// those with drafts, alone where runs contradict it that a round holds a plain step.
  struct Around {
    std::vector<std::size_t> fewer, more;
  };
  Around around(const Place& at, bool rounds_hold_plain_steps) const;

  RoundLaw law;
  std::function<double(double gamma)> mean_drafts;
  std::vector<Place> places;
  /// Of each run; empty where it names none.
  std::vector<std::string> servers;
  /// 0 unless runs name two starts.
  double start_error = 0;
  /// ln measured, (runs)
  VectorXd measured;
  /// Covariances of the runs' residuals and errors, (runs, runs).
  Eigen::LLT<MatrixXd> covariances;
  LogTerms means, spreads;
  LogTerms log_terms;
  /// Covariances of log_terms, by the curvature at their most probable values.
  TermMatrix uncertainty;
  /// covariances^-1 (measured - ln terms), (runs)
  VectorXd weights;
  /// covariances^-1 times the slopes of the runs, (runs, terms)
  MatrixXd solved_slopes;
  double noise = 0;
  double error_scale = 1;
  /// error_scale times Student's quantile over the normal one: of the errors of runs.
  double widening = 1;
  /// That of what runs leave open: runs that predict each other, as repeats do, tell nothing of it.
  double beyond_runs() const { return std::max(1.0, widening); }
  /// Standard deviation of another run's error, as wide as Student's quantile over the normal one makes it.
  double run_error = 0;
  std::vector<Replicate> replicates;
  /// Seconds of the runs by the most probable terms, (runs).
  std::vector<double> seconds_of_runs;
};

FittedCost::Posterior::Posterior(std::span<const ObservedRound> runs, const FitOptions& options, bool knows_contexts)
    : law{options.kind, knows_contexts},
      mean_drafts(options.mean_drafts),
      measured(static_cast<Index>(runs.size())),
      means(LogTerms::Zero()),
      spreads(LogTerms::Zero()),
      noise(options.usual_error) {
  for (const ObservedRound& run : runs) {
    measured[static_cast<Index>(places.size())] = std::log(run.seconds);
    places.push_back(place_of(run));
    servers.push_back(run.server);
  }
  MatrixXd of_runs(measured.size(), measured.size());
  for (Index i = 0; i < measured.size(); ++i) {
    of_runs.col(i) = covariances_with(places[static_cast<std::size_t>(i)]);
    of_runs(i, i) += squared(noise) / runs[static_cast<std::size_t>(i)].weight;
  }
  for (std::size_t j = 0; j < cost_terms; ++j) {
    means[static_cast<Index>(j)] = std::log(usual_share(j, law.kind));
    spreads[static_cast<Index>(j)] = usual_terms[j].spread;
  }
  means[iteration] = measured.minCoeff();
  covariances.compute(of_runs);
  log_terms = fit(measured, means, means);
  std::set<std::string> named(servers.begin(), servers.end());
  named.erase("");
  if (named.size() > 1) {
    const MatrixXd starts = same_starts();
    start_error = start_error_given(of_runs, starts);
    covariances.compute(of_runs + squared(start_error) * starts);
    log_terms = fit(measured, means, log_terms);
  }
  MatrixXd slopes;
  weights = covariances.solve(measured - log_seconds_of(log_terms, &slopes));
  solved_slopes = covariances.solve(slopes);
  const MatrixXd whitened = covariances.matrixL().solve(slopes);
  TermMatrix curvature = whitened.transpose() * whitened;
  curvature.diagonal() += spreads.cwiseAbs2().cwiseInverse();
  uncertainty = curvature.inverse();
  measure_errors(options);
  for (std::size_t r = 0; r < options.replicates; ++r)
    replicates.push_back(draw(static_cast<std::uint32_t>(r), options));
  for (const Place& place : places) {
    const Nearby nearby = near(place);
    seconds_of_runs.push_back(time(log_terms, place, nearby.covariances.dot(weights)).total());
    for (Replicate& replicate : replicates) replicate.seconds_of_runs.push_back(time(replicate, place, nearby).total());
  }
}

FittedCost::Posterior::Around FittedCost::Posterior::around(const Place& at, bool rounds_hold_plain_steps) const {
  const auto holds_no_more = [](const Place& a, const Place& b) {
    return a.gamma <= b.gamma && a.width <= b.width && a.verified <= b.verified && a.batch <= b.batch &&
           a.context <= (1 + same_point) * b.context && a.prompt_tokens <= (1 + same_point) * b.prompt_tokens;
  };
  Around found;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!rounds_hold_plain_steps && (places[i].gamma > 0) != (at.gamma > 0)) continue;
    if (holds_no_more(places[i], at)) found.fewer.push_back(i);
    if (holds_no_more(at, places[i])) found.more.push_back(i);
  }
  return found;
}

MatrixXd FittedCost::Posterior::same_starts() const {
  MatrixXd same = MatrixXd::Identity(measured.size(), measured.size());
  for (Index i = 0; i < measured.size(); ++i) {
    for (Index j = 0; j < measured.size(); ++j) {
      const std::string& its = servers[static_cast<std::size_t>(i)];
      if (!its.empty() && its == servers[static_cast<std::size_t>(j)]) same(i, j) = 1;
    }
  }
  return same;
}

double FittedCost::Posterior::start_error_given(const MatrixXd& of_runs, const MatrixXd& starts) const {
  constexpr int steps = 12;
  constexpr double furthest = 3;
  MatrixXd slopes;
  const VectorXd fitted = log_seconds_of(log_terms, &slopes);
  const VectorXd misses = measured - fitted - slopes * (means - log_terms);
  const MatrixXd without = of_runs + slopes * spreads.cwiseAbs2().asDiagonal() * slopes.transpose();
  std::vector<double> squares, log_densities;
  for (int step = -steps; step <= steps; ++step) {
    const double deviation = furthest * step / steps;
    squares.push_back(squared(usual_start_error * std::exp(spread_of_start_errors * deviation)));
    const Eigen::LLT<MatrixXd> all(without + squares.back() * starts);
    const double log_determinant = 2 * all.matrixLLT().diagonal().array().log().sum();
    log_densities.push_back(-0.5 * (all.matrixL().solve(misses).squaredNorm() + log_determinant + squared(deviation)));
  }
  const double most = *std::max_element(log_densities.begin(), log_densities.end());
  double sum = 0, weights_sum = 0;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    const double weight = std::exp(log_densities[i] - most);
    sum += weight * squares[i];
    weights_sum += weight;
  }
  return std::sqrt(sum / weights_sum);
}

Place FittedCost::Posterior::place_of(const RoundPoint& point, const FittedCost& cost) const {
  cost::require_legal(point);
  if (!cost.answers(point)) {
    throw std::domain_error(fmt::format("FittedCost: gamma is {}, but must be 0 or {}, the depth of the tree",
                                        point.gamma, cost.tree_->depth));
  }
  // Without contexts the price and the residual are the same at each.
  const double context = law.knows_contexts ? point.context : 0;
  const auto& prompt_tokens = cost.options_.prompt_tokens;
  ObservedRound round{.gamma = static_cast<double>(point.gamma), .batch = point.batch, .context = context};
  if (prompt_tokens) round.prompt_tokens = prompt_tokens(point);
  if (point.gamma > 0) round.tree = cost.tree_;
  return place_of(round);
}

Place FittedCost::Posterior::place_of(const ObservedRound& run) const {
  const bool may_be_shorter = mean_drafts && run.gamma > 0 && !run.tree;
  return {may_be_shorter ? mean_drafts(run.gamma) : run.gamma, run.batch, *run.context, run.prompt_tokens, run.tree};
}

VectorXd FittedCost::Posterior::log_seconds_of(const LogTerms& terms, MatrixXd* slopes) const {
  VectorXd seconds(measured.size());
  if (slopes != nullptr) slopes->resize(measured.size(), terms_of_a_round);
  for (Index i = 0; i < seconds.size(); ++i) {
    LogTerms of_run;
    seconds[i] = law.log_seconds(terms, places[static_cast<std::size_t>(i)], &of_run);
    if (slopes != nullptr) slopes->row(i) = of_run.transpose();
  }
  return seconds;
}

VectorXd FittedCost::Posterior::covariances_with(const Place& at) const {
  VectorXd values(measured.size());
  for (Index i = 0; i < values.size(); ++i) values[i] = covariance(at, places[static_cast<std::size_t>(i)]);
  return values;
}

// By Levenberg's and Marquardt's damped Gauss-Newton steps.
LogTerms FittedCost::Posterior::fit(const VectorXd& log_seconds, const LogTerms& prior, LogTerms terms) const {
  constexpr int most_steps = 60;
  constexpr double longest_step = 2, converged = 1e-9;
  double damping = 1e-3;
  MatrixXd slopes;
  VectorXd misses;
  const auto squares = [&](const LogTerms& at, MatrixXd* its_slopes) {
    misses = covariances.matrixL().solve(log_seconds - log_seconds_of(at, its_slopes));
    return misses.squaredNorm() + (at - prior).cwiseQuotient(spreads).squaredNorm();
  };
  double best = squares(terms, &slopes);
  for (int step = 0; step < most_steps && damping < 1e8; ++step) {
    const MatrixXd whitened = covariances.matrixL().solve(slopes);
    TermMatrix curvature = whitened.transpose() * whitened;
    curvature.diagonal() += spreads.cwiseAbs2().cwiseInverse();
    const LogTerms gradient = whitened.transpose() * misses - (terms - prior).cwiseQuotient(spreads.cwiseAbs2());
    curvature.diagonal() *= 1 + damping;
    const LogTerms change = curvature.ldlt().solve(gradient).cwiseMax(-longest_step).cwiseMin(longest_step);
    const VectorXd misses_before = misses;
    const double found = squares(terms + change, nullptr);
    if (!(found < best)) {
      misses = misses_before;
      damping *= 6;
      continue;
    }
    terms += change;
    const bool done = best - found < converged * (1 + best);
    best = squares(terms, &slopes);
    if (done) break;
    damping = std::max(damping / 5, 1e-7);
  }
  return terms;
}

// For a Gaussian with inverse covariance Q the errors e of predicting a group from the rest are Q_GG^-1 (Q r)_G, with
// covariance Q_GG^-1 (Rasmussen and Williams 2006, equation 5.12).
void FittedCost::Posterior::measure_errors(const FitOptions& options) {
  MatrixXd slopes;
  const VectorXd fitted = log_seconds_of(log_terms, &slopes);
  const VectorXd expected = fitted + slopes * (means - log_terms);
  const MatrixXd all =
      covariances.reconstructedMatrix() + slopes * spreads.cwiseAbs2().asDiagonal() * slopes.transpose();
  const MatrixXd inverse = all.llt().solve(MatrixXd::Identity(all.rows(), all.cols()));
  const VectorXd weighted = inverse * (measured - expected);
  const auto squares_of = [&](const std::vector<Index>& group) {
    const auto size = static_cast<Index>(group.size());
    MatrixXd among(size, size);
    VectorXd of_group(size);
    for (Index i = 0; i < size; ++i) {
      of_group[i] = weighted[group[static_cast<std::size_t>(i)]];
      for (Index j = 0; j < size; ++j)
        among(i, j) = inverse(group[static_cast<std::size_t>(i)], group[static_cast<std::size_t>(j)]);
    }
    return among.llt().matrixL().solve(of_group).squaredNorm();
  };
  double of_runs = 0, of_batches = 0;
  std::map<double, std::vector<Index>> batches;
  for (Index i = 0; i < measured.size(); ++i) {
    of_runs += squares_of({i});
    batches[places[static_cast<std::size_t>(i)].batch].push_back(i);
  }
  for (const auto& batch : batches) of_batches += squares_of(batch.second);
  const double made = batches.size() < 3 ? of_runs : std::max(of_runs, of_batches);
  const double degrees = options.usual_error_degrees + static_cast<double>(measured.size());
  error_scale = std::sqrt((options.usual_error_degrees + made) / degrees);
  const boost::math::students_t student(degrees);
  const double of_few = boost::math::quantile(student, 0.975) / core::normal_half_width_95;
  widening = std::min(most_widening, error_scale * of_few);
  run_error = std::max(widening * noise, of_few * repeated_error(measured - fitted, options));
}

double FittedCost::Posterior::repeated_error(const VectorXd& misses, const FitOptions& options) const {
  double squares = options.usual_error_degrees * squared(noise), degrees = options.usual_error_degrees;
  std::vector<bool> seen(places.size(), false);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (seen[i]) continue;
    double count = 0, sum = 0, sum_of_squares = 0;
    for (std::size_t j = i; j < places.size(); ++j) {
      const Place &a = places[i], &b = places[j];
      const bool repeats = a.gamma == b.gamma && a.width == b.width && a.verified == b.verified &&
                           servers[i] == servers[j] && same(a.batch, b.batch) && same(a.context, b.context);
      if (seen[j] || !repeats) continue;
      seen[j] = true;
      const double miss = misses[static_cast<Index>(j)];
      count += 1;
      sum += miss;
      sum_of_squares += squared(miss);
    }
    squares += std::max(0.0, sum_of_squares - squared(sum) / count);
    degrees += count - 1;
  }
  return std::sqrt(squares / degrees);
}

FittedCost::Posterior::Replicate FittedCost::Posterior::draw(std::uint32_t index, const FitOptions& options) const {
  const auto normals = [&](std::uint32_t stream, Index count) {
    const ReplicateDraws draws(options.seed, stream, index);
    VectorXd values(count);
    for (Index i = 0; i < count; ++i) values[i] = draws.standard_normal(static_cast<std::uint64_t>(i));
    return values;
  };
  const VectorXd errors = covariances.matrixL() * normals(run_stream, measured.size());
  LogTerms prior = means + beyond_runs() * spreads.cwiseProduct(normals(prior_stream, terms_of_a_round));
  prior[iteration] = means[iteration];
  Replicate replicate;
  replicate.log_terms = fit(measured + widening * errors, prior, log_terms);
  replicate.weights = covariances.solve(measured - log_seconds_of(replicate.log_terms));
  const VectorXd beyond = normals(residual_stream, 5);
  replicate.residual = {beyond_runs() * beyond[0], beyond_runs() * beyond[1]};
  replicate.noise = {run_error * beyond[2], run_error * beyond[3]};
  replicate.start = widening * start_error * beyond[4];
  return replicate;
}

RoundTime FittedCost::Posterior::time(const LogTerms& terms, const Place& at, double log_factor) const {
  const TermSeconds parts = law.seconds(terms, at);
  const double factor = std::exp(log_factor);
  return {.target = factor * (parts[iteration] + parts[sequence] + parts[context_token] + parts[verified_token] +
                              parts[experts] + parts[prompt_token]),
          .draft = factor * (parts[draft_pass] + parts[drafted_token]),
          .overhead = factor * (parts[speculative_round] + parts[sequence_of_round])};
}

FittedCost::Posterior::Nearby FittedCost::Posterior::near(const Place& at) const {
  Nearby nearby{covariances_with(at), 0};
  const double left = covariance(at, at) - nearby.covariances.dot(covariances.solve(nearby.covariances));
  nearby.spread = std::sqrt(std::max(0.0, left));
  return nearby;
}

double FittedCost::Posterior::log_covariance(const Place& a, const Place& b) const {
  const VectorXd near_a = covariances_with(a), near_b = covariances_with(b);
  const auto sensitivity = [&](const Place& at, const VectorXd& nearby) {
    LogTerms slopes;
    law.log_seconds(log_terms, at, &slopes);
    return LogTerms(slopes - solved_slopes.transpose() * nearby);
  };
  const double of_terms = sensitivity(a, near_a).dot(uncertainty * sensitivity(b, near_b));
  return squared(beyond_runs()) * (of_terms + covariance(a, b) - near_a.dot(covariances.solve(near_b)));
}

RoundTime FittedCost::Posterior::time(const Replicate& replicate, const Place& at, const Nearby& nearby) const {
  const std::size_t drafts = at.gamma > 0 ? 1 : 0;
  return time(replicate.log_terms, at,
              nearby.covariances.dot(replicate.weights) + nearby.spread * replicate.residual[drafts] + replicate.start);
}

namespace {

RoundPoint plain_at(const RoundPoint& point) { return {0, point.batch, point.context, 0}; }

/// Seconds no less than those of runs that held no more, and no more than those of runs that held no less, where the
/// runs themselves are in this order.
double between(double seconds, std::span<const double> of_runs, std::span<const std::size_t> fewer,
               std::span<const std::size_t> more) {
  double least = 0, most = std::numeric_limits<double>::infinity();
  for (const std::size_t run : fewer) least = std::max(least, of_runs[run]);
  for (const std::size_t run : more) most = std::min(most, of_runs[run]);
  return least <= most ? std::clamp(seconds, least, most) : seconds;
}

RoundTime stretched(const RoundTime& round, double seconds) {
  const double factor = seconds / round.total();
  return {.target = factor * round.target, .draft = factor * round.draft, .overhead = factor * round.overhead};
}

}  // namespace

std::string_view cost_term_name(std::size_t term) {
  constexpr std::array<std::string_view, cost_terms> names = {"iteration_seconds",
                                                              "seconds_per_sequence",
                                                              "seconds_per_context_token",
                                                              "seconds_per_speculative_round",
                                                              "seconds_per_sequence_of_a_round",
                                                              "seconds_per_draft_pass",
                                                              "seconds_per_drafted_token",
                                                              "seconds_per_verified_token",
                                                              "seconds_of_all_experts",
                                                              "seconds_per_prompt_token",
                                                              "knee_tokens",
                                                              "expert_tokens"};
  return names.at(term);
}

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
  posterior_ = std::make_shared<const Posterior>(complete, options_, knows_contexts_);
  error_scale_ = posterior_->error_scale;
  check_plain_steps(complete);
  for (const ObservedRound& run : complete) fitted_.push_back(seconds(run));
  describe_terms();
  check_physics(complete);
}

void FittedCost::describe_terms() {
  const Posterior& posterior = *posterior_;
  const auto value = [](const LogTerms& terms, std::size_t term) {
    if (term == iteration) return std::exp(terms[iteration]);
    const double its_log = terms[static_cast<Index>(term)];
    return term >= knee ? std::exp(-its_log) : std::exp(terms[iteration] + its_log);
  };
  double told = 0;
  for (std::size_t j = 0; j < cost_terms; ++j) {
    const auto place = static_cast<Index>(j);
    const double left = posterior.uncertainty(place, place) / squared(posterior.spreads[place]);
    FittedTerm term;
    term.value = value(posterior.log_terms, j);
    term.told = left < 0.25;
    term.ci95 = {term.value, term.value};
    if (!posterior.replicates.empty()) {
      std::vector<double> values;
      for (const Posterior::Replicate& replicate : posterior.replicates)
        values.push_back(value(replicate.log_terms, j));
      term.ci95 = central_95(std::move(values));
    }
    terms_.push_back(term);
    told += 1 - left;
  }
  rank_ = static_cast<std::size_t>(std::llround(told));
}

void FittedCost::check_physics(std::span<const ObservedRound> runs) {
  const auto plain = [](const ObservedRound& run) { return run.gamma == 0; };
  check_order(runs);
  check_gammas(runs);
  if (std::none_of(runs.begin(), runs.end(), plain))
    findings_.push_back({"no_plain_runs", "no run without speculation: what a plain step takes is not measured"});
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
  findings_.push_back({"rounds_of_one_gamma",
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
  findings_.push_back({"rounds_fall_with_gamma",
                       fmt::format("{}: a round with {:.3g} drafts took {:.4g} s, less than the {:.4g} s of one with "
                                   "{:.3g} at no larger batch, {}: more drafts make no round cheaper, so that noise or "
                                   "other settings decide between them; repeat both",
                                   more->name, more->gamma, more->seconds, fewer->seconds, fewer->gamma, fewer->name)});
}

double FittedCost::seconds(const ObservedRound& of) const {
  ObservedRound run = of;
  if (!knows_contexts_ || !of.context) run.context = usual_context_;
  const Place at = posterior_->place_of(run);
  VectorXd shared = posterior_->covariances_with(at);
  for (Index i = 0; i < shared.size(); ++i) {
    const std::string& its = posterior_->servers[static_cast<std::size_t>(i)];
    if (!its.empty() && its == of.server) shared[i] += squared(posterior_->start_error);
  }
  const Posterior::Around around = posterior_->around(at, rounds_hold_plain_steps());
  const double seconds =
      between(std::exp(posterior_->law.log_seconds(posterior_->log_terms, at) + shared.dot(posterior_->weights)),
              posterior_->seconds_of_runs, around.fewer, around.more);
  return of.gamma > 0 && rounds_hold_plain_steps() ? std::max(seconds, round({0, of.batch, at.context, 0}).total())
                                                   : seconds;
}

RoundTime FittedCost::round(const RoundPoint& point) const {
  const Place at = posterior_->place_of(point, *this);
  const RoundTime time =
      posterior_->time(posterior_->log_terms, at, posterior_->covariances_with(at).dot(posterior_->weights));
  const Posterior::Around around = posterior_->around(at, rounds_hold_plain_steps());
  const double seconds = between(time.total(), posterior_->seconds_of_runs, around.fewer, around.more);
  const bool is_bound = point.gamma > 0 && rounds_hold_plain_steps();
  return stretched(time, is_bound ? std::max(seconds, round(plain_at(point)).total()) : seconds);
}

bool FittedCost::extrapolates(const RoundPoint& point) const {
  cost::require_legal(point);
  const auto outside = [](const Range& range, double value) {
    return value < range.lo * (1 - same_point) || value > range.hi * (1 + same_point);
  };
  const bool drafts = point.gamma > 0;
  const std::optional<FittedRanges>& its_kind = ranges_[drafts ? 1 : 0];
  const bool far_from_its_kind =
      its_kind ? point.batch * near_batches < its_kind->batches.lo || point.batch > near_batches * its_kind->batches.hi
               : drafts;
  return outside(all_.gammas, static_cast<double>(point.gamma)) || outside(all_.batches, point.batch) ||
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
  return covariance(at_a, at_b) / squared(residual_size);
}

bool FittedCost::parts_known(const RoundPoint& point) const {
  const Place at = posterior_->place_of(point, *this);
  if (draft_passes(options_.kind, at.gamma) == 0) return true;
  const auto share = [&](const LogTerms& terms) {
    const RoundTime time = posterior_->time(terms, at, 0);
    return time.draft / time.total();
  };
  std::vector<double> shares;
  for (const Posterior::Replicate& replicate : posterior_->replicates) shares.push_back(share(replicate.log_terms));
  if (shares.empty()) return false;
  const Range range = central_95(std::move(shares));
  return range.hi - range.lo <= known_part;
}

double FittedCost::log_covariance(const RoundPoint& a, const RoundPoint& b) const {
  return posterior_->log_covariance(posterior_->place_of(a, *this), posterior_->place_of(b, *this));
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

bool FittedCost::answers(const RoundPoint& point) const {
  return !tree_ || point.gamma == 0 || point.gamma == tree_->depth;
}

double FittedCost::run_error() const { return posterior_->run_error; }

double FittedCost::start_error() const { return posterior_->start_error; }

std::size_t FittedCost::replicates() const { return posterior_->replicates.size(); }

RoundTime FittedCost::round_of_replicate(std::size_t index, const RoundPoint& point) const {
  const Place at = posterior_->place_of(point, *this);
  if (index >= replicates()) {
    throw std::out_of_range(
        fmt::format("FittedCost::round_of_replicate: index is {}, but must be below {}", index, replicates()));
  }
  const Posterior::Replicate& replicate = posterior_->replicates[index];
  std::vector<double> bounded(1);
  bounded_totals(point, index, bounded);
  return stretched(posterior_->time(replicate, at, posterior_->near(at)),
                   bounded.front() * replicate.run_factor(point.gamma > 0));
}

void FittedCost::bounded_totals(const RoundPoint& point, std::size_t first, std::span<double> totals) const {
  const Place at = posterior_->place_of(point, *this);
  const Posterior::Nearby nearby = posterior_->near(at);
  const Posterior::Around around = posterior_->around(at, rounds_hold_plain_steps());
  for (std::size_t i = 0; i < totals.size(); ++i) {
    const Posterior::Replicate& replicate = posterior_->replicates[first + i];
    totals[i] =
        between(posterior_->time(replicate, at, nearby).total(), replicate.seconds_of_runs, around.fewer, around.more);
  }
  if (point.gamma == 0 || !rounds_hold_plain_steps()) return;
  std::vector<double> plain(totals.size());
  bounded_totals(plain_at(point), first, plain);
  for (std::size_t i = 0; i < totals.size(); ++i) totals[i] = std::max(totals[i], plain[i]);
}

void FittedCost::totals_of_replicates(const RoundPoint& point, std::span<double> totals) const {
  core::require_same_size("totals_of_replicates", "totals", totals.size(), "the replicates", replicates());
  bounded_totals(point, 0, totals);
  for (std::size_t i = 0; i < totals.size(); ++i) totals[i] *= posterior_->replicates[i].run_factor(point.gamma > 0);
}

std::optional<double> LeftOut::relative_error() const {
  if (!predicted_seconds) return std::nullopt;
  return *predicted_seconds / measured_seconds - 1;
}

std::vector<LeftOut> leave_one_out(std::span<const ObservedRound> runs, const FitOptions& options,
                                   std::optional<std::size_t> predicted) {
  if (runs.size() < 2)
    throw std::invalid_argument(
        fmt::format("leave_one_out: runs has {} entries, but must have 2 or more", runs.size()));
  FitOptions alone = options;
  alone.replicates = 0;
  std::vector<LeftOut> predictions;
  for (std::size_t i = 0; i < std::min(runs.size(), predicted.value_or(runs.size())); ++i) {
    std::vector<ObservedRound> others(runs.begin(), runs.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    LeftOut prediction{.name = runs[i].name, .measured_seconds = runs[i].seconds};
    const auto alike = [&](const ObservedRound& other) { return (other.gamma > 0) == (runs[i].gamma > 0); };
    if (std::any_of(others.begin(), others.end(), alike)) {
      const FittedCost cost(others, alone);
      prediction.predicted_seconds = cost.seconds(runs[i]);
    }
    predictions.push_back(std::move(prediction));
  }
  return predictions;
}

}  // namespace specdec::cost
