#include "analysis/planning/next_run.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/normal_interval.hpp"
#include "analysis/cost/fitted_cost.hpp"
#include "analysis/cost/replicate_draws.hpp"

namespace specdec::planning {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t quantiles = 48;
constexpr std::uint32_t acceptance_stream = 48, round_stream = 49, regret_draws = 4000;

/// Means of a standard normal variable over intervals of equal probability.
const std::array<double, quantiles>& normal_nodes() {
  static const std::array<double, quantiles> nodes = [] {
    const boost::math::normal_distribution<double> normal;
    std::array<double, quantiles> means{};
    const auto density_at = [&](std::size_t i) {
      if (i == 0 || i == quantiles) return 0.0;
      return boost::math::pdf(normal,
                              boost::math::quantile(normal, static_cast<double>(i) / static_cast<double>(quantiles)));
    };
    for (std::size_t i = 0; i < quantiles; ++i)
      means[i] = static_cast<double>(quantiles) * (density_at(i) - density_at(i + 1));
    return means;
  }();
  return nodes;
}

/// The beliefs about the choice at one point.
struct Beliefs {
  /// The points at which rounds are priced, by gamma.
  std::vector<cost::RoundPoint> places;
  /// E[u], (gammas)
  std::vector<double> utility;

  double chosen() const { return *std::max_element(utility.begin(), utility.end()); }
};

/// A root of a covariance that may be indefinite by rounding.
MatrixXd root_of(const MatrixXd& covariance) {
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(covariance);
  return solver.eigenvectors() * solver.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal();
}

class RunMarket {
 public:
  explicit RunMarket(const NextRunQuestion& question)
      : question_(question),
        acceptance_error_(
            MatrixXd::Zero(static_cast<Index>(question.max_gamma + 1), static_cast<Index>(question.max_gamma + 1))) {
    VectorXd spread(acceptance_error_.rows());
    for (std::int64_t gamma = 0; gamma <= question.max_gamma; ++gamma) {
      tokens_.push_back(question.acceptance->tokens_per_step(gamma));
      const estimate::TokensPerStep& its = tokens_.back();
      const double width = std::log(its.ci95.hi / its.ci95.lo) + std::log(its.readings.hi / its.readings.lo);
      spread[gamma] = gamma == 0 ? 0 : width / (2 * core::normal_half_width_95);
    }
    // As far as the residuals of fitted rounds are correlated.
    for (Index g = 1; g < spread.size(); ++g)
      for (Index h = 1; h < spread.size(); ++h)
        acceptance_error_(g, h) = spread[g] * spread[h] * cost::FittedCost::correlation({g, 1, 0}, {h, 1, 0});
    for (const PlanPoint& point : question.points) beliefs_.push_back(beliefs_at(point));
  }

  /// Expected regret of the best choice that can be made now.
  double regret_now() const {
    const MatrixXd of_acceptance = root_of(acceptance_error_);
    double sum = 0;
    for (const Beliefs& belief : beliefs_) {
      MatrixXd rounds(of_acceptance.rows(), of_acceptance.cols());
      for (Index g = 0; g < rounds.rows(); ++g)
        for (Index h = 0; h < rounds.cols(); ++h)
          rounds(g, h) = question_.covariance(belief.places[static_cast<std::size_t>(g)],
                                              belief.places[static_cast<std::size_t>(h)]);
      const MatrixXd of_rounds = root_of(rounds);
      for (std::uint32_t draw = 0; draw < regret_draws; ++draw) {
        const VectorXd errors =
            of_acceptance * normals(acceptance_stream, draw) - of_rounds * normals(round_stream, draw);
        double best = belief.utility[0] + errors[0];
        for (Index g = 1; g < errors.size(); ++g)
          best = std::max(best, belief.utility[static_cast<std::size_t>(g)] + errors[g]);
        sum += best - belief.chosen();
      }
    }
    return std::max(0.0, sum / static_cast<double>(beliefs_.size()) / regret_draws);
  }

  /// The expected reduction of it by the outcome of a run.
  double value_of(std::size_t point, std::int64_t gamma) const {
    const cost::RoundPoint& run = beliefs_[point].places[static_cast<std::size_t>(gamma)];
    const double error = question_.run_error * question_.run_error;
    const double spread = std::sqrt(question_.covariance(run, run) + error);
    VectorXd of_acceptance = VectorXd::Zero(acceptance_error_.rows());
    if (question_.tells_acceptance && gamma > 0)
      of_acceptance = acceptance_error_.col(gamma) / std::sqrt(acceptance_error_(gamma, gamma) + error);
    const std::vector<double> by_acceptance(of_acceptance.begin(), of_acceptance.end());
    double sum = 0;
    for (const Beliefs& belief : beliefs_) {
      std::vector<double> by_rounds;
      for (const cost::RoundPoint& place : belief.places)
        by_rounds.push_back(-question_.covariance(place, run) / spread);
      sum += expected_maximum(belief.utility, by_rounds, by_acceptance) - belief.chosen();
    }
    return sum / static_cast<double>(beliefs_.size());
  }

  double minutes_of(std::size_t point, std::int64_t gamma) const {
    const auto place = static_cast<std::size_t>(gamma);
    const double seconds = question_.cost->round(beliefs_[point].places[place]).total() / tokens_[place].value;
    return server_start_minutes + benchmark_waves * question_.output_tokens * seconds / 60;
  }

 private:
  VectorXd normals(std::uint32_t stream, std::uint32_t draw) const {
    const cost::ReplicateDraws draws(0, stream, draw);
    VectorXd values(acceptance_error_.rows());
    for (Index i = 0; i < values.size(); ++i) values[i] = draws.standard_normal(static_cast<std::uint64_t>(i));
    return values;
  }

  Beliefs beliefs_at(const PlanPoint& point) const {
    Beliefs belief;
    for (std::int64_t gamma = 0; gamma <= question_.max_gamma; ++gamma) {
      const estimate::TokensPerStep& tokens = tokens_[static_cast<std::size_t>(gamma)];
      belief.places.push_back({gamma, point.batch, point.context, tokens.full_accepts});
      belief.utility.push_back(std::log(tokens.value / question_.cost->round(belief.places.back()).total()) -
                               (gamma > 0 ? std::log1p(question_.min_gain) : 0.0));
    }
    return belief;
  }

  const NextRunQuestion& question_;
  std::vector<estimate::TokensPerStep> tokens_;
  MatrixXd acceptance_error_;
  std::vector<Beliefs> beliefs_;
};

/// Lines that are the highest somewhere within the range of the normal variables.
std::vector<std::size_t> relevant(std::span<const double> a, std::span<const double> b, std::span<const double> c) {
  constexpr double reach = 5;
  double floor = a[0] - reach * core::half_of_both(b[0], c[0]);
  for (std::size_t i = 1; i < a.size(); ++i) floor = std::max(floor, a[i] - reach * core::half_of_both(b[i], c[i]));
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] + reach * core::half_of_both(b[i], c[i]) >= floor) kept.push_back(i);
  return kept;
}

}  // namespace

double expected_maximum(std::span<const double> a, std::span<const double> b, std::span<const double> c) {
  if (a.empty()) throw std::invalid_argument("expected_maximum: a is empty");
  core::require_same_size("expected_maximum", "b", b.size(), "a", a.size());
  core::require_same_size("expected_maximum", "c", c.size(), "a", a.size());
  const std::vector<std::size_t> lines = relevant(a, b, c);
  if (lines.size() == 1) return a[lines[0]];
  double sum = 0;
  for (const double x : normal_nodes()) {
    for (const double y : normal_nodes()) {
      double best = a[lines[0]] + b[lines[0]] * x + c[lines[0]] * y;
      for (const std::size_t i : lines) best = std::max(best, a[i] + b[i] * x + c[i] * y);
      sum += best;
    }
  }
  return sum / static_cast<double>(quantiles * quantiles);
}

std::optional<NextRun> next_run(const NextRunQuestion& question) {
  if (question.points.empty()) throw std::invalid_argument("next_run: points is empty");
  core::require_in("next_run", "max_gamma", question.max_gamma, 1, largest_scanned_gamma);
  core::require_in("next_run", "min_gain", question.min_gain, 0, core::largest_double);
  core::require_in("next_run", "run_error", question.run_error, core::least_positive, 1);
  core::require_in("next_run", "output_tokens", question.output_tokens, core::least_positive, core::largest_double);
  const RunMarket market(question);
  const std::int64_t most_run_gamma = question.lacks_plain_run ? 0 : question.max_gamma;
  NextRun best;
  double most = 0, lowered = 0;
  for (std::size_t point = 0; point < question.points.size(); ++point) {
    for (std::int64_t gamma = 0; gamma <= most_run_gamma; ++gamma) {
      ++best.candidates;
      const double value = market.value_of(point, gamma), minutes = market.minutes_of(point, gamma);
      if (!(value >= least_lowered_regret) || value / minutes <= most) continue;
      most = value / minutes;
      lowered = value;
      best.gamma = gamma;
      best.batch = question.points[point].batch;
      best.context = question.points[point].context;
      best.minutes = minutes;
    }
  }
  if (lowered == 0) return std::nullopt;
  best.regret_now = std::max(market.regret_now(), lowered);
  best.regret_after = best.regret_now - lowered;
  return best;
}

}  // namespace specdec::planning
