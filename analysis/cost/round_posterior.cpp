#include "analysis/cost/round_posterior.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <tuple>

#include "analysis/core/normal_interval.hpp"
#include "analysis/cost/replicate_draws.hpp"

namespace specdec::cost {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::uint32_t run_stream = 32, prior_stream = 33, path_stream = 34, tree_stream = 35, feature_stream = 36,
                        step_stream = 37;
/// Cosines that a path of the residual is the sum of.
constexpr Index features = 32;
/// The errors of runs, and the spreads of terms and residual, over those that are usual, as worlds have them.
constexpr double error_sizes[] = {0.5, 1, 2, 4}, spread_sizes[] = {1, 2, 4};

double squared(double x) { return x * x; }

auto by_draft(const Place& at) { return std::tuple(at.gamma, at.width, at.verified); }
auto in_order(const Place& at) {
  return std::tuple_cat(by_draft(at), std::tuple(at.batch, at.context, at.prompt_tokens));
}

/// Whether a round costs the same at both, but for less than runs differ by.
bool is_one_place(const Place& a, const Place& b) {
  constexpr double near = 0.01;
  const auto are_near = [](double x, double y) { return std::abs(x - y) <= near * std::max(x, y); };
  return by_draft(a) == by_draft(b) && are_near(a.batch, b.batch) && are_near(a.context, b.context) &&
         are_near(a.prompt_tokens, b.prompt_tokens);
}

double log_determinant(const Eigen::LLT<MatrixXd>& of) { return 2 * of.matrixLLT().diagonal().array().log().sum(); }

double log_sum(const VectorXd& logs) {
  const double most = logs.maxCoeff();
  return most + std::log((logs.array() - most).exp().sum());
}

/// Place i of an even sequence of (0, 1): its binary digits behind the point, in reverse.
double evenly(std::size_t i) {
  double value = 0, digit = 0.5;
  for (++i; i > 0; i /= 2, digit /= 2) value += static_cast<double>(i % 2) * digit;
  return value;
}

/// The entry of shares in which a uniform number falls.
std::size_t entry_at(const VectorXd& shares, double uniform) {
  double below = 0;
  for (Index i = 0; i + 1 < shares.size(); ++i) {
    below += shares[i];
    if (uniform < below) return static_cast<std::size_t>(i);
  }
  return static_cast<std::size_t>(shares.size() - 1);
}

/// (1 + x)^(1/3), faster than by std::cbrt.
ArrayXd corner(const ArrayXd& cubes) { return ((1 + cubes).log() / 3).exp(); }

VectorXd normals(const ReplicateDraws& draws, Index count) {
  VectorXd values(count);
  for (Index i = 0; i < count; ++i) values[i] = draws.standard_normal(static_cast<std::uint64_t>(i));
  return values;
}

}  // namespace

RoundPosterior::RoundPosterior(std::span<const ObservedRound> runs, const FitOptions& options, bool knows_contexts)
    : law_{options.kind, knows_contexts, options.has_kernel_step}, seed_(options.seed) {
  group(runs, options);
  tokens_.resize(measured_.size());
  amounts_.resize(measured_.size(), terms_of_a_round);
  for (Index i = 0; i < measured_.size(); ++i) {
    const Place& place = places_[static_cast<std::size_t>(i)];
    const TermSeconds amounts = law_.amounts(place);
    tokens_[i] = place.tokens();
    for (Index j = 0; j < terms_of_a_round; ++j) amounts_(i, j) = amounts[static_cast<std::size_t>(j)];
  }
  MatrixXd of_runs(measured_.size(), measured_.size());
  for (Index i = 0; i < measured_.size(); ++i) of_runs.col(i) = covariances_with(places_[static_cast<std::size_t>(i)]);
  // The square of a size has an inverse chi-square law about 1.
  const auto log_prior = [&](double size) {
    return -options.usual_error_degrees * (std::log(size) + 0.5 / squared(size));
  };
  for (const double errors : error_sizes) {
    for (const double spreads : spread_sizes) {
      MatrixXd all = squared(spreads) * of_runs;
      all.diagonal() += squared(errors) * errors_.cwiseAbs2();
      sizes_.push_back({errors, spreads, log_prior(errors) + log_prior(spreads), all.llt()});
    }
  }
  const std::vector<RoundPrior> families =
      options.priors.empty() ? usual_rounds(options.kind, options.experts) : options.priors;
  fit_modes(families);
  MatrixXd densities = log_densities(families, shifts_);
  if (!options.log_factors.empty()) {
    // Once more about what the runs make of the factors, since densities are linear about the modes.
    const VectorXd of_ways = (densities.array() - densities.maxCoeff()).exp().rowwise().sum();
    const VectorXd moved = shifts_ * of_ways / of_ways.sum();
    measured_ += moved;
    shifts_.colwise() -= moved;
    fit_modes(families);
    densities = log_densities(families, shifts_);
  }
  const std::vector<std::size_t> modes = choose(densities, options);
  directions_.resize(features, 5);
  phases_.resize(features);
  for (Index i = 0; i < features; ++i) {
    const ReplicateDraws draws(seed_, feature_stream, static_cast<std::uint32_t>(i));
    directions_.row(i) = normals(draws, 5).transpose();
    phases_[i] = 2 * std::numbers::pi * draws.uniform(5);
  }
  const auto count = static_cast<Index>(options.replicates);
  log_terms_.resize(count, terms_of_a_round);
  terms_.resize(count, terms_of_a_round);
  paths_.resize(count, 2 * features);
  steps_.resize(count);
  spreads_.resize(count);
  weights_.resize(count, measured_.size());
  for (std::size_t world = 0; world < options.replicates; ++world)
    draw(world, modes_[modes[world]], shifts_.col(static_cast<Index>(ways_[world])));
}

void RoundPosterior::group(std::span<const ObservedRound> runs, const FitOptions& options) {
  const auto ways = static_cast<Index>(std::max<std::size_t>(1, options.log_factors.size()));
  // Logarithms of the runs' seconds, (runs, ways).
  MatrixXd logs(static_cast<Index>(runs.size()), ways);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const auto row = static_cast<Index>(run);
    logs.row(row).setConstant(std::log(runs[run].seconds));
    for (std::size_t way = 0; way < options.log_factors.size(); ++way)
      logs(row, static_cast<Index>(way)) += options.log_factors[way][run];
  }
  std::vector<Place> places;
  for (const ObservedRound& run : runs) places.push_back(place_of(run, options.mean_drafts));
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return in_order(places[a]) < in_order(places[b]); });
  std::vector<Index> place_of_run(runs.size());
  std::vector<double> weights;
  for (const std::size_t run : order) {
    if (places_.empty() || !is_one_place(places[run], places_.back())) {
      places_.push_back(places[run]);
      weights.push_back(0);
    }
    place_of_run[run] = static_cast<Index>(places_.size() - 1);
    weights.back() += runs[run].weight;
  }
  const auto count = static_cast<Index>(places_.size());
  MatrixXd means = MatrixXd::Zero(count, ways);
  errors_.resize(count);
  for (Index i = 0; i < count; ++i) errors_[i] = options.usual_error / std::sqrt(weights[static_cast<std::size_t>(i)]);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const Index place = place_of_run[run];
    const double share = runs[run].weight / weights[static_cast<std::size_t>(place)];
    means.row(place) += share * logs.row(static_cast<Index>(run));
  }
  repeats_ = static_cast<double>(runs.size() - places_.size());
  squares_of_repeats_ = VectorXd::Zero(ways);
  for (std::size_t run = 0; run < runs.size(); ++run)
    squares_of_repeats_ += runs[run].weight / squared(options.usual_error) *
                           (logs.row(static_cast<Index>(run)) - means.row(place_of_run[run])).cwiseAbs2().transpose();
  measured_ = means.rowwise().mean();
  shifts_ = means.colwise() - measured_;
}

void RoundPosterior::fit_modes(std::span<const RoundPrior> families) {
  modes_.clear();
  for (const RoundPrior& family : families)
    for (std::size_t size = 0; size < sizes_.size(); ++size) modes_.push_back(mode_of(family, size));
}

RoundPosterior::Mode RoundPosterior::mode_of(const RoundPrior& family, std::size_t size) const {
  constexpr double converged = 1e-9;
  const auto& [errors, spread, log_prior, covariances] = sizes_[size];
  Mode mode;
  mode.size = size;
  mode.priors = priors_of(family, measured_.minCoeff());
  mode.priors.spreads *= spread;
  const auto& [means, spreads] = mode.priors;
  mode.log_terms = fit(covariances, measured_, means, spreads, means, converged);
  MatrixXd slopes;
  mode.weights = squared(spread) * covariances.solve(measured_ - log_seconds_of_runs(mode.log_terms, &slopes));
  const MatrixXd solved = covariances.solve(slopes);
  mode.solved_slopes = squared(spread) * solved;
  MatrixXd curvature = slopes.transpose() * solved;
  curvature.diagonal() += spreads.cwiseAbs2().cwiseInverse();
  mode.uncertainty = curvature.inverse();
  return mode;
}

const RoundPosterior::Mode& RoundPosterior::likeliest() const {
  return *std::max_element(modes_.begin(), modes_.end(),
                           [](const Mode& a, const Mode& b) { return a.share < b.share; });
}

double RoundPosterior::error_scale() const {
  double squares = 0;
  for (const Mode& mode : modes_) squares += mode.share * squared(sizes_[mode.size].errors);
  return std::sqrt(squares);
}

VectorXd RoundPosterior::below_plain_steps(const MatrixXd& shifts) const {
  VectorXd sum = VectorXd::Zero(shifts.cols());
  for (Index i = 0; i < measured_.size(); ++i) {
    const Place& round = places_[static_cast<std::size_t>(i)];
    VectorXd worst = VectorXd::Zero(shifts.cols());
    for (Index j = 0; j < measured_.size(); ++j) {
      const Place& plain = places_[static_cast<std::size_t>(j)];
      if (!round.drafts() || plain.drafts() || !same(round.batch, plain.batch) || !same(round.context, plain.context))
        continue;
      const VectorXd below =
          ((measured_[j] - measured_[i] - shifts.row(i).array()) / core::half_of_both(errors_[i], errors_[j]))
              .cwiseMax(0.0)
              .matrix()
              .transpose();
      worst = worst.cwiseMax(below);
    }
    sum += worst.cwiseAbs2();
  }
  return sum;
}

// The terms are integrated out about the mode's own terms t. With r what the runs miss of these, S their slopes, W the
// priors' spreads, m their means, g = S' C^-1 r - W^-2 (t - m), and U the terms' covariances,
//
//   -2 ln density = r' C^-1 r + |W^-1 (t - m)|^2 - g' U g + ln(|C| |W|^2 / |U|)
MatrixXd RoundPosterior::log_densities(std::span<const RoundPrior> families, const MatrixXd& shifts) const {
  MatrixXd densities(shifts.cols(), static_cast<Index>(modes_.size()));
  const VectorXd impossible = below_plain_steps(shifts);
  for (std::size_t i = 0; i < modes_.size(); ++i) {
    const Mode& mode = modes_[i];
    const Size& size = sizes_[mode.size];
    const LogTerms off = (mode.log_terms - mode.priors.means).cwiseQuotient(mode.priors.spreads);
    const MatrixXd misses = shifts.colwise() + (measured_ - log_seconds_of_runs(mode.log_terms));
    MatrixXd gradients = mode.solved_slopes.transpose() * misses / squared(size.spreads);
    gradients.colwise() -= off.cwiseQuotient(mode.priors.spreads);
    const VectorXd squares = size.covariances.matrixL().solve(misses).colwise().squaredNorm().transpose() -
                             gradients.cwiseProduct(mode.uncertainty * gradients).colwise().sum().transpose();
    const double determinant = log_determinant(size.covariances) + 2 * mode.priors.spreads.array().log().sum() -
                               log_determinant(mode.uncertainty.llt());
    const double constant =
        std::log(families[i / sizes_.size()].weight) + size.log_prior - 0.5 * (determinant + off.squaredNorm());
    densities.col(static_cast<Index>(i)) =
        constant - repeats_ * std::log(size.errors) -
        0.5 * (squares + impossible + squares_of_repeats_ / squared(size.errors)).array();
  }
  return densities;
}

std::vector<std::size_t> RoundPosterior::choose(const MatrixXd& log_densities, const FitOptions& options) {
  const auto ways = static_cast<std::size_t>(log_densities.rows());
  ways_.assign(options.replicates, 0);
  if (ways > 1) {
    VectorXd of_ways(log_densities.rows());
    for (Index way = 0; way < of_ways.size(); ++way) of_ways[way] = log_sum(log_densities.row(way).transpose());
    of_ways = (of_ways.array() - log_sum(of_ways)).exp();
    double below = of_ways[0];
    std::size_t way = 0;
    for (std::size_t world = 0; world < options.replicates; ++world) {
      const double share = (static_cast<double>(world) + 0.5) / static_cast<double>(options.replicates);
      while (share > below && way + 1 < ways) below += of_ways[static_cast<Index>(++way)];
      ways_[world] = way;
    }
  }
  std::vector<std::size_t> modes;
  VectorXd shares = VectorXd::Zero(log_densities.cols());
  for (std::size_t world = 0; world < options.replicates; ++world) {
    const VectorXd logs = log_densities.row(static_cast<Index>(ways_[world])).transpose();
    const VectorXd its = (logs.array() - log_sum(logs)).exp();
    modes.push_back(entry_at(its, evenly(world)));
    shares[static_cast<Index>(modes.back())] += 1;
  }
  if (options.replicates == 0) {
    const VectorXd logs = log_densities.row(0).transpose();
    shares = (logs.array() - log_sum(logs)).exp();
  } else {
    shares /= static_cast<double>(options.replicates);
  }
  for (std::size_t i = 0; i < modes_.size(); ++i) modes_[i].share = shares[static_cast<Index>(i)];
  return modes;
}

VectorXd RoundPosterior::log_seconds_of_runs(const LogTerms& terms, MatrixXd* slopes) const {
  const double scale = std::exp(terms[iteration]);
  LogTerms values = scale * terms.array().exp();
  values[iteration] = scale;
  const ArrayXd over_knee = (tokens_ * std::exp(terms[knee])).cube();
  const ArrayXd passes = scale * corner(over_knee);
  const ArrayXd met = tokens_ * std::exp(terms[expert_tokens]), unread = (-met).exp();
  const ArrayXd total = (amounts_ * values).array() + passes + values[experts] * (1 - unread);
  if (slopes != nullptr) {
    *slopes = (amounts_.array().rowwise() * values.transpose().array()).colwise() / total;
    slopes->col(iteration).setOnes();
    slopes->col(experts) = values[experts] * (1 - unread) / total;
    slopes->col(knee) = passes / total * over_knee / (1 + over_knee);
    slopes->col(expert_tokens) = values[experts] * unread * met / total;
  }
  return total.log();
}

VectorXd RoundPosterior::covariances_with(const Place& at) const {
  VectorXd values(static_cast<Index>(places_.size()));
  for (Index i = 0; i < values.size(); ++i) values[i] = covariance_of(at, places_[static_cast<std::size_t>(i)]);
  return values;
}

double RoundPosterior::covariance_of(const Place& a, const Place& b) const {
  return covariance(a, b) + law_.step(a) * law_.step(b);
}

// By Levenberg's and Marquardt's damped Gauss-Newton steps.
LogTerms RoundPosterior::fit(const Eigen::LLT<MatrixXd>& covariances, const VectorXd& log_seconds,
                             const LogTerms& prior, const LogTerms& spreads, LogTerms terms, double converged) const {
  constexpr int most_steps = 60;
  constexpr double longest_step = 2;
  double damping = 1e-3;
  MatrixXd slopes;
  VectorXd misses;
  const auto squares = [&](const LogTerms& at, MatrixXd* its_slopes) {
    misses = covariances.matrixL().solve(log_seconds - log_seconds_of_runs(at, its_slopes));
    return misses.squaredNorm() + (at - prior).cwiseQuotient(spreads).squaredNorm();
  };
  double best = squares(terms, &slopes);
  for (int step = 0; step < most_steps && damping < 1e8; ++step) {
    const MatrixXd whitened = covariances.matrixL().solve(slopes);
    Eigen::Matrix<double, terms_of_a_round, terms_of_a_round> curvature = whitened.transpose() * whitened;
    curvature.diagonal() += spreads.cwiseAbs2().cwiseInverse();
    const LogTerms gradient = whitened.transpose() * misses - (terms - prior).cwiseQuotient(spreads.cwiseAbs2());
    curvature.diagonal() *= 1 + damping;
    const LogTerms change = curvature.ldlt().solve(gradient).cwiseMax(-longest_step).cwiseMin(longest_step);
    const VectorXd misses_before = misses;
    MatrixXd slopes_there;
    const double found = squares(terms + change, &slopes_there);
    if (!(found < best)) {
      misses = misses_before;
      damping *= 6;
      continue;
    }
    terms += change;
    slopes.swap(slopes_there);
    const bool done = best - found < converged * (1 + best);
    best = found;
    if (done) break;
    damping = std::max(damping / 5, 1e-7);
  }
  return terms;
}

VectorXd RoundPosterior::path_features(const Place& at) const {
  const double size = residual_size * std::sqrt(2.0 / static_cast<double>(features));
  return size * (directions_ * coordinates_of(at) + phases_).array().cos();
}

double RoundPosterior::tree_path(const Place& at, std::size_t world) const {
  if (at.width <= 1) return 0;
  const auto whole = [](double x) { return static_cast<std::uint64_t>(x); };
  const std::uint64_t tree = (whole(at.gamma) << 40) ^ (whole(at.width) << 20) ^ whole(at.verified);
  return tree_size * ReplicateDraws(seed_, tree_stream, static_cast<std::uint32_t>(world)).standard_normal(tree);
}

// By pathwise conditioning (Wilson et al. 2020): terms and residual are moved from their priors by what a made-up copy
// of the runs, drawn from the same priors, misses of the runs.
void RoundPosterior::draw(std::size_t world, const Mode& mode, const VectorXd& shift) {
  constexpr double converged = 1e-3;
  const auto row = static_cast<Index>(world);
  const auto index = static_cast<std::uint32_t>(world);
  const auto& [errors, spread, log_prior, covariances] = sizes_[mode.size];
  spreads_[row] = spread;
  paths_.row(row) = spread * normals(ReplicateDraws(seed_, path_stream, index), 2 * features).transpose();
  steps_[row] = spread * ReplicateDraws(seed_, step_stream, index).standard_normal(0);
  VectorXd made_up = errors * errors_.cwiseProduct(normals(ReplicateDraws(seed_, run_stream, index), measured_.size()));
  for (Index i = 0; i < made_up.size(); ++i) {
    const Place& place = places_[static_cast<std::size_t>(i)];
    made_up[i] += paths_.row(row).segment(place.drafts() ? features : 0, features).dot(path_features(place)) +
                  law_.step(place) * steps_[row] + spread * tree_path(place, world);
  }
  const VectorXd aim = measured_ + shift - made_up;
  const LogTerms deviations = normals(ReplicateDraws(seed_, prior_stream, index), terms_of_a_round);
  LogTerms prior = mode.priors.means + mode.priors.spreads.cwiseProduct(deviations);
  prior[iteration] = mode.priors.means[iteration];
  const LogTerms terms = fit(covariances, aim, prior, mode.priors.spreads, mode.log_terms, converged);
  log_terms_.row(row) = terms.transpose();
  weights_.row(row) = squared(spread) * covariances.solve(aim - log_seconds_of_runs(terms)).transpose();
  for (Index j = 0; j < terms_of_a_round; ++j)
    terms_(row, j) = std::exp(terms[j] + (j > 0 && j < static_cast<Index>(knee) ? terms[iteration] : 0.0));
}

ArrayXd RoundPosterior::log_residuals(const Place& at, std::size_t first, std::size_t count) const {
  const auto begin = static_cast<Index>(first), rows = static_cast<Index>(count);
  ArrayXd residuals = paths_.block(begin, at.drafts() ? features : 0, rows, features) * path_features(at) +
                      law_.step(at) * steps_.segment(begin, rows) +
                      weights_.middleRows(begin, rows) * covariances_with(at);
  if (at.width > 1)
    for (Index i = 0; i < rows; ++i)
      residuals[i] += spreads_[begin + i] * tree_path(at, first + static_cast<std::size_t>(i));
  return residuals;
}

void RoundPosterior::seconds_of_worlds(const Place& at, std::size_t first, std::span<double> seconds) const {
  const TermSeconds amounts = law_.amounts(at);
  const auto begin = static_cast<Index>(first), rows = static_cast<Index>(seconds.size());
  const auto terms = [&](std::size_t term) { return terms_.col(static_cast<Index>(term)).segment(begin, rows); };
  const double tokens = at.tokens();
  ArrayXd total = terms(iteration) * corner((tokens * terms(knee)).cube());
  total += terms(experts) * (1 - (-tokens * terms(expert_tokens)).exp());
  for (std::size_t j = 1; j < knee; ++j)
    if (amounts[j] != 0) total += amounts[j] * terms(j);
  Eigen::Map<ArrayXd>(seconds.data(), rows) = total * log_residuals(at, first, seconds.size()).exp();
}

double RoundPosterior::log_seconds(const Place& at) const {
  const VectorXd near = covariances_with(at);
  double mean = 0;
  for (const Mode& mode : modes_) {
    const TermSeconds parts = law_.seconds(mode.log_terms, at);
    mean += mode.share * (std::log(std::accumulate(parts.begin(), parts.end(), 0.0)) + near.dot(mode.weights));
  }
  return mean;
}

}  // namespace specdec::cost
