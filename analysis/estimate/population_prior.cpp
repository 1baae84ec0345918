#include <algorithm>

#include "analysis/estimate/population_priors.hpp"
#include "analysis/estimate/request_population.hpp"

namespace specdec::estimate {
namespace {

constexpr std::string_view lookups = "n-gram";

std::string_view method_of(std::optional<cost::DraftKind> kind) {
  if (!kind) return "any";
  switch (*kind) {
    case cost::DraftKind::eagle:
      return "eagle3";
    case cost::DraftKind::mtp:
      return "mtp";
    case cost::DraftKind::parallel:
      return "parallel";
    case cost::DraftKind::model:
    case cost::DraftKind::mirrored:
      return "model";
    case cost::DraftKind::ngram:
    case cost::DraftKind::suffix:
      return lookups;
  }
  return "any";
}

}  // namespace

double PopulationPrior::requests_of(double rounds, std::optional<double> requests) const {
  constexpr double usual_rounds = 64, most_stretches = 8;
  if (rounds_of_stretch)
    return std::max(1.0, std::min(rounds / *rounds_of_stretch, most_stretches * requests.value_or(rounds)));
  return std::max(1.0, requests.value_or(rounds / usual_rounds));
}

PopulationPrior population_prior(std::optional<cost::DraftKind> kind) {
  const auto* const row =
      std::find_if(std::begin(population_prior_rows), std::end(population_prior_rows),
                   [&](const PopulationPriorRow& one) { return one.method == method_of(kind); });
  PopulationPrior prior;
  prior.mean = row->mean;
  prior.cliff = row->cliff;
  // Texts differ as if 15 rounds were alike; CountEvidence::length_variation makes 10 of it.
  if (row->method == lookups) prior.rounds_of_stretch = 10;
  const std::array<std::array<double, 3>, 3> correlation = {{{1, row->correlation[0], row->correlation[1]},
                                                             {row->correlation[0], 1, row->correlation[2]},
                                                             {row->correlation[1], row->correlation[2], 1}}};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 3; ++k)
      prior.covariance[i][k] = correlation[i][k] * row->deviation[i] * row->deviation[k];
  return prior;
}

PopulationPrior without_location(PopulationPrior prior) {
  constexpr double variance = 25;
  prior.covariance[0] = {variance, 0, 0};
  prior.covariance[1][0] = prior.covariance[2][0] = 0;
  return prior;
}

}  // namespace specdec::estimate
