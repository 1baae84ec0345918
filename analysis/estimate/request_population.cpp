#include "analysis/estimate/request_population.hpp"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/core/checks.hpp"
#include "analysis/cost/replicate_draws.hpp"
#include "analysis/estimate/population_posterior.hpp"

namespace specdec::estimate {
namespace {

constexpr std::uint32_t walk_stream = 52;
/// Random numbers of a world's observations come before those of its walk.
constexpr std::uint64_t walk_begins = 1024, weighing_draw = walk_begins - 1;

/// A walk over depth so that the law's ln(tokens per step) and the walk together pass through the observations, within
/// their errors: one that does not know of them, moved by how far it misses them (Matheron's rule).
/// @param tokens  [gamma] of the law, up to the longest draft of the evidence at least
/// @return [gamma], up to last
std::vector<double> conditioned_walk(const PopulationEvidence& evidence, const std::vector<double>& tokens,
                                     const PopulationLaw& law, std::size_t last, const cost::ReplicateDraws& draws) {
  const LengthObservations observed = evidence.observations(law, tokens, draws.uniform(weighing_draw));
  const std::vector<double> variances = evidence.walk_variances(tokens);
  std::vector<double> walk = {0};
  for (std::size_t gamma = 1; gamma < tokens.size(); ++gamma)
    walk.push_back(walk.back() +
                   std::sqrt(variances[gamma] - variances[gamma - 1]) * draws.standard_normal(walk_begins + gamma));
  const auto covariance_of = [&](std::int64_t a, std::int64_t b) {
    return variances[static_cast<std::size_t>(std::min(a, b))];
  };
  const auto size = std::ssize(observed.gammas);
  if (size > 0) {
    constexpr double least = 1e-12;
    Eigen::MatrixXd errors = Eigen::Map<const Eigen::MatrixXd>(observed.covariance.data(), size, size);
    errors.diagonal().array() += least;
    Eigen::MatrixXd covariance = errors;
    Eigen::VectorXd missed(size), normals(size);
    for (Eigen::Index i = 0; i < size; ++i) normals[i] = draws.standard_normal(static_cast<std::uint64_t>(i));
    missed = -(errors.llt().matrixL() * normals);
    for (Eigen::Index i = 0; i < size; ++i) {
      const std::int64_t gamma = observed.gammas[static_cast<std::size_t>(i)];
      const auto at = static_cast<std::size_t>(gamma);
      for (Eigen::Index k = 0; k < size; ++k)
        covariance(i, k) += covariance_of(gamma, observed.gammas[static_cast<std::size_t>(k)]);
      missed[i] += observed.off[static_cast<std::size_t>(i)] - walk[at];
    }
    const Eigen::VectorXd moved = covariance.ldlt().solve(missed);
    for (Eigen::Index i = 0; i < size; ++i)
      for (std::size_t gamma = 1; gamma < walk.size(); ++gamma)
        walk[gamma] += covariance_of(static_cast<std::int64_t>(gamma), observed.gammas[static_cast<std::size_t>(i)]) * moved[i];
  }
  walk.resize(last + 1);
  return walk;
}

}  // namespace

double sampling_error(const PopulationPrior& prior, const CountEvidence& counted) {
  PopulationLaw law{prior.mean[0], std::exp(prior.mean[1]), prior.mean[2]};
  const double most = static_cast<double>(counted.gamma) + 1, margin = 1 / (1 + counted.rounds);
  const double tokens = std::accumulate(counted.survival.begin(), counted.survival.end(), 1.0);
  law.solve(counted.gamma, std::clamp(tokens, 1 + margin * (most - 1), most - margin * (most - 1)));
  return law.sampling_error(counted);
}

TokenWorlds population_worlds(const PopulationPrior& prior, std::span<const LengthEvidence> lengths,
                              std::span<const CountEvidence> counts, std::int64_t max_gamma,
                              const DrawOptions& options) {
  core::require_in("population_worlds", "max_gamma", max_gamma, 0, std::int64_t{1} << 20);
  PopulationEvidence evidence(prior, lengths, counts);
  const std::vector<PopulationLaw> laws = draw_populations(evidence, options);
  const auto last = static_cast<std::size_t>(max_gamma);
  TokenWorlds worlds;
  worlds.tokens.assign(last + 1, std::vector<double>(laws.size(), 1));
  worlds.alternative.assign(laws.size(), 0);
  for (std::size_t world = 0; world < laws.size(); ++world) {
    const PopulationLaw& law = laws[world];
    const std::vector<double> tokens = law.tokens_per_step(std::max(max_gamma, evidence.longest()));
    const cost::ReplicateDraws draws(options.seed, walk_stream, static_cast<std::uint32_t>(world));
    const std::vector<double> walk = conditioned_walk(evidence, tokens, law, last, draws);
    for (std::size_t gamma = 1; gamma <= last; ++gamma) {
      const double before = worlds.tokens[gamma - 1][world], least = evidence.of_several_drafts() ? 1 : before;
      worlds.tokens[gamma][world] = std::clamp(tokens[gamma] * std::exp(walk[gamma]), least, before + 1);
    }
  }
  return worlds;
}

}  // namespace specdec::estimate
