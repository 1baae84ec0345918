#include "analysis/estimate/round_moments.hpp"

#include <array>
#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

namespace specdec::estimate {
namespace {

struct Cluster {
  std::vector<double> accepted, evaluated;
};

std::vector<Cluster> random_clusters(std::size_t count) {
  std::mt19937_64 generator(17);
  std::uniform_int_distribution<int> rounds(5, 60);
  std::vector<Cluster> clusters;
  for (std::size_t k = 0; k < count; ++k) {
    // Positions grow from cluster to cluster, so that vectors of different length meet.
    Cluster& cluster = clusters.emplace_back();
    int alive = rounds(generator);
    for (std::size_t j = 0; j < 1 + k % 4; ++j) {
      cluster.evaluated.push_back(alive);
      alive = std::uniform_int_distribution<int>(0, alive)(generator);
      cluster.accepted.push_back(alive);
    }
  }
  return clusters;
}

}  // namespace

TEST_CASE("the standard error of a function of rates is that of the linearised clusters") {
  const std::vector<Cluster> clusters = random_clusters(23);
  RoundMoments moments;
  for (const Cluster& cluster : clusters) moments.add(cluster.accepted, cluster.evaluated);
  REQUIRE(moments.positions() == 4);
  const std::array<double, 4> gradient{1.5, -0.3, 0.7, 2};
  double mean = 0;
  std::vector<double> deviations;
  for (const Cluster& cluster : clusters) {
    double deviation = 0;
    for (std::size_t j = 0; j < cluster.accepted.size(); ++j) {
      const auto position = static_cast<std::int64_t>(j) + 1;
      deviation += gradient[j] * (cluster.accepted[j] - moments.rate(position) * cluster.evaluated[j]) /
                   moments.evaluated(position);
    }
    deviations.push_back(deviation);
    mean += deviation / 23;
  }
  double squares = 0;
  for (const double deviation : deviations) squares += (deviation - mean) * (deviation - mean);
  const StandardError error = *moments.standard_error(gradient);
  CHECK(error.value == Approx(std::sqrt(squares * 23 / 22)).epsilon(1e-12));
  CHECK(error.degrees_of_freedom == 22);
}

TEST_CASE("for one position it is the standard error of a ratio of sums") {
  RoundMoments moments;
  ClusterMoments ratio;
  for (const Cluster& cluster : random_clusters(12)) {
    moments.add(std::span(cluster.accepted).first(1), std::span(cluster.evaluated).first(1));
    ratio.add(cluster.accepted[0], cluster.evaluated[0]);
  }
  CHECK(moments.standard_error(std::array{1.0})->value == Approx(standard_error(ratio)->value).epsilon(1e-12));
}

TEST_CASE("moments refuse sizes that differ and too many positions") {
  RoundMoments moments;
  CHECK_THROWS_AS(moments.add(std::array{1.0}, std::array{1.0, 2.0}), std::invalid_argument);
  CHECK_THROWS_AS(moments.add(std::vector<double>(257), std::vector<double>(257)), std::domain_error);
  moments.add(std::array{1.0}, std::array{2.0});
  CHECK_THROWS_AS(moments.standard_error(std::array{1.0, 1.0}), std::invalid_argument);
  CHECK(moments.rate(1) == 0.5);
}

}  // namespace specdec::estimate
