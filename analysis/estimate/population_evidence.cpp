#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/estimate/population_posterior.hpp"

namespace specdec::estimate {
namespace {

/// The relative error of a counted survival for what no population is, such as two tasks that have little in common.
constexpr double survival_error = 0.03;

void require_valid(const LengthEvidence& length) {
  core::require_in("population_worlds", "gamma", length.gamma, 1, core::largest_integer);
  core::require_in("population_worlds", "tokens_per_step", length.tokens_per_step, 1,
                   static_cast<double>(length.gamma) + 1);
  core::require_in("population_worlds", "relative_error", length.relative_error, 0, core::largest_double);
}

void require_valid(const CountEvidence& counted) {
  core::require_in("population_worlds", "positions", static_cast<std::int64_t>(counted.survival.size()), counted.gamma,
                   counted.gamma);
  core::require_in("population_worlds", "rounds", counted.rounds, 1, core::largest_double);
  core::require_in("population_worlds", "requests", counted.requests, 1, core::largest_double);
  core::require_in("population_worlds", "length_variation", counted.length_variation, 0, core::largest_double);
  double before = 1;
  for (const double share : counted.survival) {
    core::require_in("population_worlds", "survival", share, 0, before);
    before = share;
  }
}

double log_tokens(const CountEvidence& counted) {
  return std::log(std::accumulate(counted.survival.begin(), counted.survival.end(), 1.0));
}

/// Of a walk with these variances up to each gamma.
Eigen::MatrixXd covariance_of(std::span<const double> walk, std::span<const std::int64_t> gammas) {
  const auto size = std::ssize(gammas);
  Eigen::MatrixXd covariance(size, size);
  for (Eigen::Index i = 0; i < size; ++i)
    for (Eigen::Index k = 0; k < size; ++k)
      covariance(i, k) = walk[static_cast<std::size_t>(
          std::min(gammas[static_cast<std::size_t>(i)], gammas[static_cast<std::size_t>(k)]))];
  return covariance;
}

}  // namespace

std::vector<double> PopulationEvidence::precision_of_lengths(std::span<const double> walk) const {
  const auto size = std::ssize(lengths_);
  std::vector<std::int64_t> gammas;
  for (const LengthEvidence& length : lengths_) gammas.push_back(length.gamma);
  Eigen::MatrixXd covariance = covariance_of(walk, gammas);
  constexpr double least = 1e-8;
  for (Eigen::Index i = 0; i < size; ++i) {
    const double error = lengths_[static_cast<std::size_t>(i)].relative_error;
    covariance(i, i) += error * error + least;
  }
  const Eigen::MatrixXd inverse = covariance.inverse();
  return {inverse.data(), inverse.data() + inverse.size()};
}

std::vector<double> PopulationEvidence::walk_variances(std::span<const double> tokens) const {
  constexpr double usual = 0.01;
  const double shown = (stray_ * stray_ - 1) * usual * usual;
  std::vector<double> variances = {0};
  double gained_before = 1;
  for (std::size_t gamma = 1; gamma < tokens.size(); ++gamma) {
    const double gained = tokens[gamma] - tokens[gamma - 1];
    const double step = std::clamp(std::min(gained, gained_before - gained) / tokens[gamma], 0.0, usual);
    variances.push_back(variances.back() + step * step + shown);
    gained_before = gained;
  }
  return variances;
}

bool PopulationEvidence::allow_for(const PopulationLaw& nearest) {
  const std::vector<double> tokens = nearest.tokens_per_step(longest());
  const LengthObservations observed = observations(nearest, tokens, 1);
  const auto size = std::ssize(observed.gammas);
  if (size < 2) return false;
  const auto off = Eigen::Map<const Eigen::VectorXd>(observed.off.data(), size);
  const auto errors = Eigen::Map<const Eigen::MatrixXd>(observed.covariance.data(), size, size);
  const auto too_small = [&](double stray) {
    stray_ = stray;
    const Eigen::MatrixXd covariance = errors + covariance_of(walk_variances(tokens), observed.gammas);
    return off.dot(covariance.ldlt().solve(off)) > static_cast<double>(size - 1);
  };
  constexpr double most = 1e4, near = 1.01;
  double low = stray_, high = stray_;
  while (too_small(high) && high < most) low = std::exchange(high, 2 * high);
  while (high > near * low) {
    const double middle = std::sqrt(low * high);
    (too_small(middle) ? low : high) = middle;
  }
  stray_ = high;
  take_walk(walk_variances(tokens));
  return stray_ > 1;
}

PopulationEvidence::PopulationEvidence(const PopulationPrior& prior, std::span<const LengthEvidence> lengths,
                                       std::span<const CountEvidence> counts)
    : prior_(prior), lengths_(lengths), counts_(counts) {
  for (const LengthEvidence& length : lengths) require_valid(length);
  for (const CountEvidence& counted : counts) require_valid(counted);
  if (lengths.empty()) return;
  const auto longest =
      std::max_element(lengths.begin(), lengths.end(), [](const auto& a, const auto& b) { return a.gamma < b.gamma; });
  PopulationLaw law{prior.mean[0], std::exp(prior.mean[1]), prior.mean[2]};
  const double most = static_cast<double>(longest->gamma) + 1, margin = 1e-3 * most;
  law.solve(longest->gamma, std::clamp(longest->tokens_per_step, 1 + margin, most - margin));
  take_walk(walk_variances(law.tokens_per_step(longest->gamma)));
}

void PopulationEvidence::take_walk(std::span<const double> variances) {
  precision_ = precision_of_lengths(variances);
  std::size_t longest = 0;
  for (const LengthEvidence& length : lengths_) longest = std::max(longest, static_cast<std::size_t>(length.gamma));
  walk_to_longest_ = variances[longest];
}

std::int64_t PopulationEvidence::longest() const {
  std::int64_t longest = 0;
  for (const LengthEvidence& length : lengths_) longest = std::max(longest, length.gamma);
  for (const CountEvidence& counted : counts_) longest = std::max(longest, counted.gamma);
  return longest;
}

double PopulationEvidence::log_likelihood(const PopulationLaw& law) const {
  double sum = 0;
  if (!lengths_.empty()) {
    const std::vector<double> tokens = law.tokens_per_step(longest());
    std::vector<double> off;
    for (const LengthEvidence& length : lengths_)
      off.push_back(std::log(length.tokens_per_step / tokens[static_cast<std::size_t>(length.gamma)]));
    for (std::size_t i = 0; i < off.size(); ++i)
      for (std::size_t k = 0; k < off.size(); ++k) sum -= off[i] * precision_[i * off.size() + k] * off[k] / 2;
  }
  for (const CountEvidence& counted : counts_) sum += law.log_likelihood(counted, stray_ * survival_error);
  return sum;
}

LengthObservations PopulationEvidence::observations(const PopulationLaw& law,
                                                    std::span<const double> tokens, double weighing) const {
  LengthObservations all;
  const auto lengths = std::ssize(lengths_);
  Eigen::Index size = lengths;
  for (const CountEvidence& counted : counts_) size += std::ssize(compared_positions(counted.gamma));
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(size, size);
  for (Eigen::Index i = 0; i < lengths; ++i) {
    const LengthEvidence& length = lengths_[static_cast<std::size_t>(i)];
    all.gammas.push_back(length.gamma);
    all.off.push_back(std::log(length.tokens_per_step / tokens[static_cast<std::size_t>(length.gamma)]));
    covariance(i, i) = length.relative_error * length.relative_error;
  }
  for (const CountEvidence& counted : counts_) {
    const std::vector<std::int64_t> positions = compared_positions(counted.gamma);
    const auto [of_law, errors] = law.prefixes_of(counted);
    double scale = 1;
    if (counted.relative_error && errors.back() > 0) scale = *counted.relative_error * *counted.relative_error / errors.back();
    const Eigen::Index from = std::ssize(all.gammas), count = std::ssize(positions);
    constexpr double shape_error = 0.01;
    covariance.block(from, from, count, count) = scale * Eigen::Map<const Eigen::MatrixXd>(errors.data(), count, count);
    // The mean is as counted; what lies before it also has what no population is.
    for (Eigen::Index i = 0; i + 1 < count; ++i) covariance(from + i, from + i) += shape_error * shape_error;
    std::vector<double> up_to = {1};
    for (const double share : counted.survival) up_to.push_back(up_to.back() + share);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const auto gamma = static_cast<std::size_t>(positions[i]);
      all.gammas.push_back(positions[i]);
      all.off.push_back(std::log(up_to[gamma]) - std::lerp(std::log(tokens[gamma]), of_law[i], weighing));
    }
  }
  all.covariance = {covariance.data(), covariance.data() + covariance.size()};
  return all;
}

LengthObservation PopulationEvidence::anchor() const {
  LengthObservation anchor;
  for (const LengthEvidence& length : lengths_) {
    if (length.gamma < anchor.gamma) continue;
    constexpr double least = 1e-8;
    anchor = {length.gamma, std::log(length.tokens_per_step),
              std::sqrt(length.relative_error * length.relative_error + walk_to_longest_ + least)};
  }
  for (const CountEvidence& counted : counts_) {
    if (counted.gamma < anchor.gamma) continue;
    constexpr double between_requests = 0.4;
    const double sampling = between_requests / std::sqrt(counted.requests) + 1 / std::sqrt(counted.rounds);
    anchor = {counted.gamma, log_tokens(counted), survival_error + sampling};
  }
  return anchor;
}

void PopulationEvidence::drift(PopulationLaw& law, double standard) const {
  for (const CountEvidence& counted : counts_) {
    if (!(counted.drift > 0)) continue;
    const double most = static_cast<double>(counted.gamma) + 1, margin = 1e-6 * most;
    const double tokens = law.tokens_per_step(counted.gamma).back() * std::exp(counted.drift * standard);
    law.solve(counted.gamma, std::clamp(tokens, 1 + margin, most - margin));
  }
}

}  // namespace specdec::estimate
