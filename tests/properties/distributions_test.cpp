#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "analysis/core/kernels.hpp"
#include "analysis/theory/lenience.hpp"
#include "analysis/theory/rejection_sampling.hpp"
#include "tests/properties/random_cases.hpp"
#include "tests/support/catch.hpp"

namespace specdec {
namespace {

using core::DraftDistribution;
using core::TargetDistribution;
using test_support::RandomCases;
using theory::LenientResidual;

template <class Check>
void for_random_pairs(std::uint64_t seed, Check check) {
  RandomCases cases(seed);
  for (int i = 0; i < 1000; ++i) {
    const auto vocab = static_cast<std::size_t>(1 + cases.below(12));
    const std::vector<double> p = cases.row(vocab);
    const std::vector<double> q = cases.row(vocab);
    check(TargetDistribution(p), DraftDistribution(q), cases);
  }
}

}  // namespace

TEST_CASE("D_LK is symmetric, 0 between equal rows, and one minus the overlap") {
  for_random_pairs(1, [](const TargetDistribution& p, const DraftDistribution& q, RandomCases&) {
    const double distance = core::d_lk(p, q);
    CHECK(distance == core::d_lk(TargetDistribution(q.probabilities()), DraftDistribution(p.probabilities())));
    CHECK(distance == Approx(1 - core::overlap(p, q)).margin(1e-14));
    CHECK(core::acceptance_rate(p, q).rejection() == Approx(distance).margin(1e-14));
    CHECK(core::d_lk(p, DraftDistribution(p.probabilities())) == 0);
  });
}

TEST_CASE("the overlap is bounded by the divergence of the rows") {
  // Pinsker: beta >= 1 - sqrt(KL / 2); Bretagnolle-Huber: beta >= 1 - sqrt(1 - exp(-KL))
  for_random_pairs(3, [](const TargetDistribution& p, const DraftDistribution& q, RandomCases&) {
    double divergence = 0;
    for (std::size_t x = 0; x < p.size(); ++x) {
      if (p[x] > 0) divergence += p[x] * std::log(p[x] / q[x]);
    }
    divergence = std::max(0.0, divergence);
    const double beta = core::overlap(p, q);
    CHECK(beta >= 1 - std::sqrt(divergence / 2) - 1e-14);
    CHECK(beta >= 1 - std::sqrt(-std::expm1(-divergence)) - 1e-14);
  });
}

TEST_CASE("one-shot rejection sampling and matching never accept more than speculative sampling") {
  for_random_pairs(4, [](const TargetDistribution& p, const DraftDistribution& q, RandomCases&) {
    const double beta = core::overlap(p, q);
    CHECK(theory::rejection_sampling_acceptance(p, q) <= beta + 1e-14);
    CHECK(theory::matching_acceptance(p, q) <= beta + 1e-14);
  });
}

TEST_CASE("a random draft accepts at least 1 / vocabulary") {
  for_random_pairs(5, [](const TargetDistribution& p, const DraftDistribution&, RandomCases&) {
    const std::vector<double> uniform(p.size(), 1 / static_cast<double>(p.size()));
    CHECK(core::overlap(p, DraftDistribution(uniform)) >= (1 - 1e-14) / static_cast<double>(p.size()));
  });
}

TEST_CASE("lenient outputs are distributions that never exceed p / l, and their distance is as stated") {
  for_random_pairs(6, [](const TargetDistribution& p, const DraftDistribution& q, RandomCases& cases) {
    const double lenience = 1 - cases.uniform();
    const double gained = theory::lenient_acceptance(p, q, lenience).alpha() - core::overlap(p, q);
    for (const auto residual : {LenientResidual::strict, LenientResidual::lenient}) {
      const auto output = theory::lenient_output(p, q, lenience, residual);
      CHECK(std::accumulate(output.begin(), output.end(), 0.0) == Approx(1).epsilon(1e-13));
      double distance = 0;
      for (std::size_t x = 0; x < p.size(); ++x) {
        CHECK(output[x] <= p[x] / lenience * (1 + 1e-14));
        distance += std::abs(output[x] - p[x]) / 2;
      }
      CHECK(theory::lenient_distance(p, q, lenience, residual) == Approx(distance).margin(1e-14));
      CHECK(distance >= gained - 1e-14);
      if (residual == LenientResidual::strict) CHECK(distance == Approx(gained).margin(1e-14));
    }
  });
}

TEST_CASE("less lenience accepts less and stays closer to the target") {
  for_random_pairs(7, [](const TargetDistribution& p, const DraftDistribution& q, RandomCases&) {
    for (const auto residual : {LenientResidual::strict, LenientResidual::lenient}) {
      double acceptance = 2;
      double distance = 2;
      for (const double lenience : {0.1, 0.3, 0.5, 0.9, 1.0}) {
        const double accepted = theory::lenient_acceptance(p, q, lenience).alpha();
        const double apart = theory::lenient_distance(p, q, lenience, residual);
        CHECK(accepted <= acceptance + 1e-15);
        CHECK(apart <= distance + 1e-14);
        acceptance = accepted;
        distance = apart;
      }
      CHECK(distance == Approx(0).margin(1e-14));
    }
  });
}

}  // namespace specdec
