#include "analysis/cost/round_posterior.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "analysis/core/normal_interval.hpp"
#include "analysis/core/quantile.hpp"
#include "analysis/cost/replicate_draws.hpp"

namespace specdec::cost {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::uint32_t run_stream = 32, prior_stream = 33, path_stream = 34, tree_stream = 35, feature_stream = 36;
/// Cosines that a path of the residual is the sum of.
constexpr Index features = 32;
/// No error is taken for more than twenty times as large as usual.
constexpr double most_widening = 20;
/// Shares by which batches and contexts of repeats differ at most.
constexpr double same_point = 0.05;

double squared(double x) { return x * x; }
bool same(double a, double b) { return std::abs(a - b) <= same_point * std::max(a, b); }

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
    : law_{options.kind, knows_contexts},
      seed_(options.seed),
      measured_(static_cast<Index>(runs.size())),
      errors_(measured_.size()) {
  for (const ObservedRound& run : runs) {
    const auto i = static_cast<Index>(places_.size());
    measured_[i] = std::log(run.seconds);
    errors_[i] = options.usual_error / std::sqrt(run.weight);
    places_.push_back(place_of(run, options.mean_drafts));
    servers_.push_back(run.server);
  }
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
  of_runs.diagonal() += errors_.cwiseAbs2();
  covariances_.compute(of_runs);
  const auto ways = static_cast<Index>(std::max<std::size_t>(1, options.log_factors.size()));
  shifts_ = MatrixXd::Zero(measured_.size(), ways);
  moved_ = VectorXd::Zero(measured_.size());
  for (std::size_t way = 0; way < options.log_factors.size(); ++way)
    for (std::size_t run = 0; run < options.log_factors[way].size(); ++run)
      shifts_(static_cast<Index>(run), static_cast<Index>(way)) = options.log_factors[way][run];
  const std::vector<RoundPrior> families =
      options.priors.empty() ? usual_rounds(options.kind, options.experts) : options.priors;
  fit_modes(families, options);
  MatrixXd densities = log_densities(families, shifts_);
  if (!options.log_factors.empty()) {
    // Once more about what the runs make of the factors, since densities are linear about the modes.
    const VectorXd of_ways = (densities.array() - densities.maxCoeff()).exp().rowwise().sum();
    moved_ = shifts_ * of_ways / of_ways.sum();
    measured_ += moved_;
    shifts_.colwise() -= moved_;
    fit_modes(families, options);
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
  weights_.resize(count, measured_.size());
  widening_.resize(count);
  for (std::size_t world = 0; world < options.replicates; ++world)
    draw(world, modes_[modes[world]], shifts_.col(static_cast<Index>(ways_[world])));
}

void RoundPosterior::fit_modes(std::span<const RoundPrior> families, const FitOptions& options) {
  modes_.clear();
  for (const RoundPrior& family : families) modes_.push_back(mode_of(family, options));
  const VectorXd logs = log_densities(families, VectorXd::Zero(measured_.size())).row(0).transpose();
  for (std::size_t i = 0; i < modes_.size(); ++i)
    modes_[i].share = std::exp(logs[static_cast<Index>(i)] - log_sum(logs));
}

RoundPosterior::Mode RoundPosterior::mode_of(const RoundPrior& family, const FitOptions& options) const {
  constexpr double converged = 1e-9;
  Mode mode;
  mode.priors = priors_of(family, measured_.minCoeff());
  const auto& [means, spreads] = mode.priors;
  mode.log_terms = fit(measured_, means, spreads, means, converged);
  MatrixXd slopes;
  mode.weights = covariances_.solve(measured_ - log_seconds_of_runs(mode.log_terms, &slopes));
  mode.solved_slopes = covariances_.solve(slopes);
  MatrixXd curvature = slopes.transpose() * mode.solved_slopes;
  curvature.diagonal() += spreads.cwiseAbs2().cwiseInverse();
  mode.uncertainty = curvature.inverse();
  measure_errors(options, mode);
  return mode;
}

const RoundPosterior::Mode& RoundPosterior::likeliest() const {
  return *std::max_element(modes_.begin(), modes_.end(),
                           [](const Mode& a, const Mode& b) { return a.share < b.share; });
}

double RoundPosterior::run_error() const {
  double error = 0;
  for (const Mode& mode : modes_) error += mode.share * mode.run_error;
  return error;
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

MatrixXd RoundPosterior::log_densities(std::span<const RoundPrior> families, const MatrixXd& shifts) const {
  MatrixXd densities(shifts.cols(), static_cast<Index>(modes_.size()));
  const VectorXd impossible = below_plain_steps(shifts);
  for (std::size_t i = 0; i < modes_.size(); ++i) {
    const Mode& mode = modes_[i];
    MatrixXd slopes;
    const VectorXd fitted = log_seconds_of_runs(mode.log_terms, &slopes);
    const VectorXd misses = measured_ - fitted - slopes * (mode.priors.means - mode.log_terms);
    const Eigen::LLT<MatrixXd> all(covariances_.reconstructedMatrix() +
                                   slopes * mode.priors.spreads.cwiseAbs2().asDiagonal() * slopes.transpose());
    MatrixXd whitened = shifts.colwise() + misses;
    all.matrixL().solveInPlace(whitened);
    const VectorXd squares = whitened.colwise().squaredNorm().transpose() + impossible;
    const double constant = std::log(families[i].weight) - 0.5 * log_determinant(all);
    densities.col(static_cast<Index>(i)) = constant - 0.5 * squares.array();
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
  if (options.replicates > 0)
    for (std::size_t i = 0; i < modes_.size(); ++i)
      modes_[i].share = shares[static_cast<Index>(i)] / static_cast<double>(options.replicates);
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
  for (Index i = 0; i < values.size(); ++i) values[i] = covariance(at, places_[static_cast<std::size_t>(i)]);
  return values;
}

// By Levenberg's and Marquardt's damped Gauss-Newton steps.
LogTerms RoundPosterior::fit(const VectorXd& log_seconds, const LogTerms& prior, const LogTerms& spreads,
                             LogTerms terms, double converged) const {
  constexpr int most_steps = 60;
  constexpr double longest_step = 2;
  double damping = 1e-3;
  MatrixXd slopes;
  VectorXd misses;
  const auto squares = [&](const LogTerms& at, MatrixXd* its_slopes) {
    misses = covariances_.matrixL().solve(log_seconds - log_seconds_of_runs(at, its_slopes));
    return misses.squaredNorm() + (at - prior).cwiseQuotient(spreads).squaredNorm();
  };
  double best = squares(terms, &slopes);
  for (int step = 0; step < most_steps && damping < 1e8; ++step) {
    const MatrixXd whitened = covariances_.matrixL().solve(slopes);
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

// For a Gaussian with inverse covariance Q the errors e of predicting a group from the rest are Q_GG^-1 (Q r)_G, with
// covariance Q_GG^-1 (Rasmussen and Williams 2006, equation 5.12).
void RoundPosterior::measure_errors(const FitOptions& options, Mode& mode) const {
  MatrixXd slopes;
  const VectorXd fitted = log_seconds_of_runs(mode.log_terms, &slopes);
  const VectorXd expected = fitted + slopes * (mode.priors.means - mode.log_terms);
  const MatrixXd all =
      covariances_.reconstructedMatrix() + slopes * mode.priors.spreads.cwiseAbs2().asDiagonal() * slopes.transpose();
  const MatrixXd inverse = all.llt().solve(MatrixXd::Identity(all.rows(), all.cols()));
  const VectorXd weighted = inverse * (measured_ - expected);
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
  for (Index i = 0; i < measured_.size(); ++i) {
    of_runs += squares_of({i});
    batches[places_[static_cast<std::size_t>(i)].batch].push_back(i);
  }
  for (const auto& batch : batches) of_batches += squares_of(batch.second);
  const double made = batches.size() < 3 ? of_runs : std::max(of_runs, of_batches);
  const double degrees = options.usual_error_degrees + static_cast<double>(measured_.size());
  mode.error_scale = std::min(most_widening, std::sqrt((options.usual_error_degrees + made) / degrees));
  const boost::math::students_t student(degrees);
  const double of_few = boost::math::quantile(student, 0.975) / core::normal_half_width_95;
  mode.widening = std::max(1.0, mode.error_scale * of_few);
  mode.run_error =
      std::max(mode.error_scale * options.usual_error, of_few * repeated_error(measured_ - fitted, options));
}

double RoundPosterior::repeated_error(const VectorXd& misses, const FitOptions& options) const {
  double squares = options.usual_error_degrees * squared(options.usual_error), degrees = options.usual_error_degrees;
  std::vector<bool> seen(places_.size(), false);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (seen[i]) continue;
    double count = 0, sum = 0, sum_of_squares = 0;
    for (std::size_t j = i; j < places_.size(); ++j) {
      const Place &a = places_[i], &b = places_[j];
      const bool repeats = a.gamma == b.gamma && a.width == b.width && a.verified == b.verified &&
                           servers_[i] == servers_[j] && same(a.batch, b.batch) && same(a.context, b.context);
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
  widening_[row] = mode.widening;
  paths_.row(row) = mode.widening * normals(ReplicateDraws(seed_, path_stream, index), 2 * features).transpose();
  VectorXd made_up =
      mode.error_scale * errors_.cwiseProduct(normals(ReplicateDraws(seed_, run_stream, index), measured_.size()));
  for (Index i = 0; i < made_up.size(); ++i) {
    const Place& place = places_[static_cast<std::size_t>(i)];
    made_up[i] += paths_.row(row).segment(place.drafts() ? features : 0, features).dot(path_features(place)) +
                  mode.widening * tree_path(place, world);
  }
  const VectorXd aim = measured_ + shift - made_up;
  const LogTerms deviations = normals(ReplicateDraws(seed_, prior_stream, index), terms_of_a_round);
  LogTerms prior = mode.priors.means + mode.widening * mode.priors.spreads.cwiseProduct(deviations);
  prior[iteration] = mode.priors.means[iteration];
  const LogTerms terms = fit(aim, prior, mode.priors.spreads, mode.log_terms, converged);
  log_terms_.row(row) = terms.transpose();
  weights_.row(row) = covariances_.solve(aim - log_seconds_of_runs(terms)).transpose();
  for (Index j = 0; j < terms_of_a_round; ++j)
    terms_(row, j) = std::exp(terms[j] + (j > 0 && j < static_cast<Index>(knee) ? terms[iteration] : 0.0));
}

ArrayXd RoundPosterior::log_residuals(const Place& at, std::size_t first, std::size_t count) const {
  const auto begin = static_cast<Index>(first), rows = static_cast<Index>(count);
  ArrayXd residuals = paths_.block(begin, at.drafts() ? features : 0, rows, features) * path_features(at) +
                      weights_.middleRows(begin, rows) * covariances_with(at);
  if (at.width > 1)
    for (Index i = 0; i < rows; ++i)
      residuals[i] += widening_[begin + i] * tree_path(at, first + static_cast<std::size_t>(i));
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
  for (const Mode& mode : modes_) mean += mode.share * (law_.log_seconds(mode.log_terms, at) + near.dot(mode.weights));
  return mean;
}

double RoundPosterior::log_covariance(const Place& a, const Place& b) const {
  const VectorXd near_a = covariances_with(a), near_b = covariances_with(b);
  const double left = covariance(a, b) - near_a.dot(covariances_.solve(near_b));
  const double mean_a = log_seconds(a), mean_b = log_seconds(b);
  double sum = 0;
  for (const Mode& mode : modes_) {
    const auto its = [&](const Place& at, const VectorXd& near, LogTerms& sensitivity) {
      LogTerms slopes;
      const double value = law_.log_seconds(mode.log_terms, at, &slopes) + near.dot(mode.weights);
      sensitivity = slopes - mode.solved_slopes.transpose() * near;
      return value;
    };
    LogTerms of_a, of_b;
    const double off_a = its(a, near_a, of_a) - mean_a, off_b = its(b, near_b, of_b) - mean_b;
    sum += mode.share * (squared(mode.widening) * (of_a.dot(mode.uncertainty * of_b) + left) + off_a * off_b);
  }
  return sum;
}

std::vector<double> RoundPosterior::usual_factors() const {
  std::vector<double> factors;
  for (Index run = 0; run < measured_.size(); ++run) {
    std::vector<double> logs;
    for (const std::size_t way : ways_) logs.push_back(shifts_(run, static_cast<Index>(way)));
    factors.push_back(std::exp(moved_[run] + (logs.empty() ? 0.0 : core::quantile(logs, 0.5))));
  }
  return factors;
}

}  // namespace specdec::cost
