#include "analysis/estimate/serving_clusters.hpp"

namespace specdec::estimate {

void ClusterSums::set(const UnitCounts& unit) {
  rounds = unit.rounds && unit.accepted ? *unit.rounds : 0;
  accepted = unit.rounds && unit.accepted ? *unit.accepted : 0;
  drafted = unit.drafted && unit.accepted ? *unit.drafted : 0;
  accepted_of_drafted = unit.drafted && unit.accepted ? *unit.accepted : 0;
  const bool tried = unit.evaluation != Evaluation::nothing && unit.accepted;
  least_rejections = unit.least_rejections;
  most_rejections = unit.most_rejections;
  tried_accepted = tried ? *unit.accepted : 0;
  rounds_with_positions = 0;
  accepted_at.clear();
  evaluated_accepted_at.clear();
  evaluated_at.clear();
  if (unit.has_positions) {
    rounds_with_positions = traces::sum_of(unit.rounds_by_accepted);
    accepted_at = unit.accepted_at;
  }
  if (unit.has_evaluated) {
    evaluated_accepted_at = unit.accepted_at;
    evaluated_at = unit.evaluated_at;
  }
  // The examined drafts are those of the histogram, even if the total differs because of a scrape between two counts.
  if (unit.evaluation == Evaluation::exact) tried_accepted = traces::sum_of(unit.accepted_at);
}

void ClusterSums::set_mean(double tokens_per_round) {
  *this = {};
  rounds = 1;
  accepted = tokens_per_round - 1;
}

void ClusterSums::add(const ClusterSums& other) {
  rounds += other.rounds;
  accepted += other.accepted;
  drafted += other.drafted;
  accepted_of_drafted += other.accepted_of_drafted;
  tried_accepted += other.tried_accepted;
  least_rejections += other.least_rejections;
  most_rejections += other.most_rejections;
  rounds_with_positions += other.rounds_with_positions;
  traces::add_counts(accepted_at, other.accepted_at);
  traces::add_counts(evaluated_accepted_at, other.evaluated_accepted_at);
  traces::add_counts(evaluated_at, other.evaluated_at);
}

void ClusterTally::add(const ClusterSums& cluster) {
  if (cluster.rounds > 0) accepted_per_round.add(cluster.accepted, cluster.rounds);
  if (cluster.drafted > 0) accepted_per_drafted.add(cluster.accepted_of_drafted, cluster.drafted);
  if (cluster.tried_accepted + cluster.most_rejections > 0) {
    alpha_low.add(cluster.tried_accepted, cluster.tried_accepted + cluster.most_rejections);
    alpha_high.add(cluster.tried_accepted, cluster.tried_accepted + cluster.least_rejections);
  }
  if (cluster.rounds_with_positions > 0) {
    if (survival.size() < cluster.accepted_at.size()) survival.resize(cluster.accepted_at.size(), none_accepted_);
    for (std::size_t j = 0; j < survival.size(); ++j) {
      survival[j].add(j < cluster.accepted_at.size() ? cluster.accepted_at[j] : 0, cluster.rounds_with_positions);
    }
    none_accepted_.add(0, cluster.rounds_with_positions);
  }
  if (!cluster.evaluated_at.empty()) moments.add(cluster.evaluated_accepted_at, cluster.evaluated_at);
}

void ClusterTally::resemble(const NeighbourCorrelation& neighbours) {
  for (ClusterMoments* const clusters : {&accepted_per_round, &accepted_per_drafted, &alpha_low, &alpha_high})
    clusters->resemble(neighbours);
  for (ClusterMoments& clusters : survival) clusters.resemble(neighbours);
  moments.resemble(neighbours);
}

}  // namespace specdec::estimate
