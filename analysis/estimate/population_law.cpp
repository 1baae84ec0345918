#include "analysis/estimate/population_law.hpp"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>

namespace specdec::estimate {
namespace {

constexpr int node_count = 10;
using Nodes = Eigen::Array<double, node_count, 1>;

/// Gauss and Hermite's nodes for a standard normal, and their weights.
struct Quadrature {
  Nodes places, weights;
};

const Quadrature& quadrature() {
  static const Quadrature rule = [] {
    constexpr double places[] = {0.48493570751549764, 1.4659890943911582, 2.4843258416389546, 3.581823483551927,
                                 4.859462828332312};
    constexpr double weights[] = {0.34464233493201896, 0.13548370298026777, 0.01911158050077027, 0.0007580709343122171,
                                  4.3106526307183114e-06};
    Quadrature made;
    for (int i = 0; i < node_count / 2; ++i) {
      made.places[2 * i] = places[i];
      made.places[2 * i + 1] = -places[i];
      made.weights[2 * i] = made.weights[2 * i + 1] = weights[i];
    }
    return made;
  }();
  return rule;
}

/// How many times the odds at each node are those of the median request.
Nodes spread_of(double sigma) { return (sigma * quadrature().places).exp(); }

/// Draft by draft at every node: the odds of the next one, and the chance that all so far were accepted.
class Drafts {
 public:
  explicit Drafts(const PopulationLaw& law) : Drafts(law, spread_of(law.sigma)) {}
  Drafts(const PopulationLaw& law, const Nodes& spread)
      : odds_((std::exp(law.mu) * spread).min(largest_odds).max(1 / largest_odds)),
        ratio_(std::exp(-law.delta)),
        cliff_(law.cliff) {}

  void next() {
    if (drafts_ > 0) odds_ *= ratio_;
    if (cliff_.depth > 0 && drafts_ == cliff_.depth) odds_ *= std::exp(-cliff_.drop);
    ++drafts_;
    odds_ = odds_.min(largest_odds);
    rate_ = odds_ / (1 + odds_);
    alive_ *= rate_;
    tokens_ += alive_;
  }
  const Nodes& rate() const { return rate_; }
  const Nodes& alive() const { return alive_; }
  const Nodes& tokens() const { return tokens_; }

 private:
  static constexpr double largest_odds = 1e26;

  Nodes odds_, rate_ = Nodes::Ones(), alive_ = Nodes::Ones(), tokens_ = Nodes::Ones();
  double ratio_;
  Cliff cliff_;
  std::int64_t drafts_ = 0;
};

struct Tokens {
  double per_step = 1;
  /// d ln(per_step) / d mu
  double slope = 0;
};

Tokens tokens_at(const PopulationLaw& law, std::int64_t gamma, const Nodes& spread) {
  Drafts drafts(law, spread);
  // The slopes of ln(alive) and of tokens at every node.
  Nodes rejected = Nodes::Zero(), steeper = Nodes::Zero();
  for (std::int64_t j = 0; j < gamma; ++j) {
    drafts.next();
    rejected += 1 - drafts.rate();
    steeper += drafts.alive() * rejected;
  }
  const Nodes steps = quadrature().weights / drafts.tokens();
  const double per_step = 1 / steps.sum();
  return {per_step, per_step * (steps * steeper / drafts.tokens()).sum()};
}

using Square = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, 8, 8>;
using Column = Eigen::Matrix<double, Eigen::Dynamic, 1, Eigen::ColMajor, 8, 1>;
using Survivals = Eigen::Array<double, node_count, Eigen::Dynamic, Eigen::ColMajor, node_count, 8>;

/// Variance between requests, whose rounds weigh by 1 / tokens a step, and of the lengths of requests.
double between_factor(const CountEvidence& counted) { return (1 + counted.length_variation) / counted.requests; }

}  // namespace

std::vector<std::int64_t> compared_positions(std::int64_t gamma) {
  constexpr std::int64_t most = 8;
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 1; i <= std::min(gamma, most); ++i) {
    positions.push_back(
        gamma <= most ? i : std::llround(std::pow(static_cast<double>(gamma), static_cast<double>(i - 1) / (most - 1))));
  }
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

std::vector<double> PopulationLaw::tokens_per_step(std::int64_t max_gamma) const {
  std::vector<double> tokens = {1};
  Drafts drafts(*this);
  for (std::int64_t gamma = 1; gamma <= max_gamma; ++gamma) {
    drafts.next();
    tokens.push_back(1 / (quadrature().weights / drafts.tokens()).sum());
  }
  return tokens;
}

double PopulationLaw::slope(std::int64_t gamma) const { return tokens_at(*this, gamma, spread_of(sigma)).slope; }

double PopulationLaw::solve(std::int64_t gamma, double tokens) {
  const double most = static_cast<double>(gamma) + 1;
  const double target = std::log((tokens - 1) / (most - tokens));
  double low = -largest_mu, high = largest_mu, slope = 0;
  const double share = (tokens - 1) / static_cast<double>(gamma);
  mu = std::clamp(std::log(share / (1 - share)) + delta, low, high);
  const Nodes spread = spread_of(sigma);
  constexpr int most_steps = 60;
  for (int step = 0; step < most_steps; ++step) {
    const Tokens here = tokens_at(*this, gamma, spread);
    slope = here.slope;
    const double off = std::log((here.per_step - 1) / (most - here.per_step)) - target;
    (off < 0 ? low : high) = mu;
    const double of_off = here.per_step * (1 / (here.per_step - 1) + 1 / (most - here.per_step));
    const double by_newton = mu - off / (slope * of_off);
    const double next = low < by_newton && by_newton < high ? by_newton : low + (high - low) / 2;
    const bool is_met = std::abs(next - mu) < 1e-9;
    mu = next;
    if (is_met) break;
  }
  return slope;
}

double PopulationLaw::log_likelihood(const CountEvidence& counted, double relative_error) const {
  const std::vector<std::int64_t> positions = compared_positions(counted.gamma);
  const auto count = static_cast<Eigen::Index>(positions.size());
  Survivals alive(node_count, count);
  Drafts drafts(*this);
  Eigen::Index kept = 0;
  for (std::int64_t j = 1; j <= counted.gamma; ++j) {
    drafts.next();
    if (positions[static_cast<std::size_t>(kept)] == j) alive.col(kept++) = drafts.alive();
  }
  Nodes rounds = quadrature().weights / drafts.tokens();
  rounds /= rounds.sum();
  const Nodes between = rounds.square() / quadrature().weights * between_factor(counted);
  Square covariance(count, count);
  Column off(count);
  Eigen::Array<double, 8, 1> mean;
  // Counts are whole numbers: a share of so many rounds stands for all that round to it.
  const double of_rounding = 1 / (12 * counted.rounds * counted.rounds);
  for (Eigen::Index i = 0; i < count; ++i) {
    mean[i] = (rounds * alive.col(i)).sum();
    off[i] = counted.survival[static_cast<std::size_t>(positions[static_cast<std::size_t>(i)] - 1)] - mean[i];
  }
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index k = 0; k <= i; ++k) {
      const double of_requests = (between * (alive.col(i) - mean[i]) * (alive.col(k) - mean[k])).sum();
      const double of_rounds = (mean[i] - (rounds * alive.col(i) * alive.col(k)).sum()) / counted.rounds;
      covariance(i, k) = covariance(k, i) = of_requests + of_rounds;
    }
    constexpr double least = 1e-10;
    covariance(i, i) += std::pow(relative_error * mean[i], 2) + of_rounding + least;
  }
  const Eigen::LLT<Square> factor(covariance);
  const Column scaled = factor.matrixL().solve(off);
  double log_root = 0;
  for (Eigen::Index i = 0; i < count; ++i) log_root += std::log(factor.matrixLLT()(i, i));
  return -scaled.squaredNorm() / 2 - log_root;
}

CountedPrefixes PopulationLaw::prefixes_of(const CountEvidence& counted) const {
  const std::vector<std::int64_t> positions = compared_positions(counted.gamma);
  const auto count = static_cast<Eigen::Index>(positions.size());
  Survivals tokens(node_count, count), squares(node_count, count);
  Drafts drafts(*this);
  Nodes square = Nodes::Zero();
  Eigen::Index kept = 0;
  for (std::int64_t j = 1; j <= counted.gamma; ++j) {
    drafts.next();
    square += static_cast<double>(2 * j - 1) * drafts.alive();
    if (positions[static_cast<std::size_t>(kept)] != j) continue;
    tokens.col(kept) = drafts.tokens();
    squares.col(kept++) = square;
  }
  Nodes rounds = quadrature().weights / drafts.tokens();
  rounds /= rounds.sum();
  const Nodes between = rounds.square() / quadrature().weights * between_factor(counted);
  const Eigen::RowVectorXd mean = rounds.matrix().transpose() * tokens.matrix();
  Eigen::MatrixXd covariance(count, count);
  for (Eigen::Index k = 0; k < count; ++k) {
    for (Eigen::Index i = 0; i <= k; ++i) {
      const double of_requests = (between * (tokens.col(i) - mean[i]) * (tokens.col(k) - mean[k])).sum();
      // Of accepted drafts: those of a longer draft are more by what lies behind the shorter one's end.
      const Nodes products = squares.col(i) + static_cast<double>(positions[static_cast<std::size_t>(i)]) *
                                                  (tokens.col(k) - tokens.col(i));
      const double of_rounds =
          (rounds * (products - (tokens.col(i) - 1) * (tokens.col(k) - 1))).sum() / counted.rounds;
      covariance(i, k) = covariance(k, i) = (of_requests + of_rounds) / (mean[i] * mean[k]);
    }
  }
  CountedPrefixes prefixes;
  for (const double tokens_up_to : mean) prefixes.log_tokens.push_back(std::log(tokens_up_to));
  prefixes.covariance = {covariance.data(), covariance.data() + covariance.size()};
  return prefixes;
}

double PopulationLaw::sampling_error(const CountEvidence& counted) const {
  return std::sqrt(prefixes_of(counted).covariance.back());
}

}  // namespace specdec::estimate
