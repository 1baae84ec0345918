#include "analysis/theory/multi_draft.hpp"

#include <stdexcept>
#include <vector>

#include "analysis/core/kernels.hpp"
#include "analysis/theory/tokens.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/multi_draft_law.hpp"

namespace specdec::theory {
namespace {

using core::DraftDistribution;
using core::TargetDistribution;

struct DraftedPair {
  std::vector<double> p;
  std::vector<double> q;
};

const DraftedPair first = {{0.5, 0.3, 0.2}, {0.2, 0.3, 0.5}};
const DraftedPair second = {{0.6, 0.25, 0.10, 0.05}, {0.3, 0.3, 0.25, 0.15}};
const DraftedPair third = {{0.9, 0.05, 0.05}, {0.1, 0.8, 0.1}};

Approx exactly(double value) { return Approx(value).epsilon(1e-14).margin(1e-15); }

// Rational values by exact enumeration; rho to 12 digits.
void check_schemes(const DraftedPair& pair, std::int64_t k, double with, double without, double rho,
                   double k_seq_rate, double transport, double transport_without) {
  INFO("k = " << k);
  const TargetDistribution p(pair.p);
  const DraftDistribution q(pair.q);
  CHECK(recursive_rejection(p, q, k, Replacement::with).acceptance().alpha() == exactly(with));
  CHECK(recursive_rejection(p, q, k, Replacement::without).acceptance().alpha() == exactly(without));
  CHECK(k_seq_least_rho(p, q, k) == Approx(rho).epsilon(1e-11));
  CHECK(k_seq_acceptance(p, q, k, k_seq_least_rho(p, q, k)).alpha() == Approx(k_seq_rate).epsilon(1e-11));
  CHECK(transport_acceptance(p, q, k, Replacement::with).alpha() == exactly(transport));
  CHECK(transport_acceptance(p, q, k, Replacement::without).alpha() == exactly(transport_without));
}

}  // namespace

TEST_CASE("several drafts at one position are accepted as exact enumeration says") {
  check_schemes(first, 1, 0.7, 0.7, 1, 0.7, 0.7, 0.7);
  check_schemes(first, 2, 19.0 / 25, 41.0 / 50, 1.45677643628, 0.791355287257, 43.0 / 50, 69.0 / 70);
  check_schemes(first, 3, 101.0 / 125, 1, 1.79259302827, 0.858518605654, 247.0 / 250, 1);
  check_schemes(second, 2, 79.0 / 100, 9719.0 / 11900, 1.41789083458, 0.825367250374, 91.0 / 100,
                584.0 / 595);
  check_schemes(second, 3, 853.0 / 1000, 725261.0 / 785400, 1.6734759141310902, 0.9020427742393, 1,
                1);
  const TargetDistribution p(third.p);
  const DraftDistribution q(third.q);
  CHECK(recursive_rejection(p, q, 2, Replacement::with).acceptance().alpha() == exactly(7.0 / 25));
  CHECK(recursive_rejection(p, q, 2, Replacement::without).acceptance().alpha() == exactly(209.0 / 360));
  CHECK(transport_acceptance(p, q, 2, Replacement::with).alpha() == exactly(29.0 / 100));
  CHECK(transport_acceptance(p, q, 2, Replacement::without).alpha() == exactly(11.0 / 18));
}

TEST_CASE("the acceptance of drafts that were drawn has recursive rejection's own as its mean") {
  for (const DraftedPair& pair : {first, second, third}) {
    const TargetDistribution p(pair.p);
    const DraftDistribution q(pair.q);
    double with = 0;
    double without = 0;
    for (std::int64_t x = 0; x < static_cast<std::int64_t>(pair.q.size()); ++x) {
      for (std::int64_t y = 0; y < static_cast<std::int64_t>(pair.q.size()); ++y) {
        const std::vector<std::int64_t> drafts{x, y};
        const double qx = pair.q[static_cast<std::size_t>(x)];
        const double qy = pair.q[static_cast<std::size_t>(y)];
        with += qx * qy * recursive_acceptance_of(p, q, drafts, Replacement::with);
        if (x != y) without += qx * qy / (1 - qx) * recursive_acceptance_of(p, q, drafts, Replacement::without);
      }
    }
    CHECK(with == Approx(recursive_rejection(p, q, 2, Replacement::with).acceptance().alpha()).epsilon(1e-13));
    CHECK(without == Approx(recursive_rejection(p, q, 2, Replacement::without).acceptance().alpha()).epsilon(1e-13));
    const std::vector<std::int64_t> outside{7};
    CHECK_THROWS_AS(recursive_acceptance_of(p, q, outside, Replacement::with), std::domain_error);
  }
}

TEST_CASE("k-SEQ refuses a rho under which a corrected probability would be negative") {
  const TargetDistribution p(first.p);
  const DraftDistribution q(first.q);
  CHECK_THROWS_AS(k_seq_acceptance(p, q, 2, 1), std::domain_error);
  CHECK_THROWS_AS(k_seq_acceptance(p, q, 2, k_seq_least_rho(p, q, 2) - 1e-9), std::domain_error);
  CHECK_NOTHROW(k_seq_acceptance(p, q, 2, 2));
  CHECK_NOTHROW(k_seq_acceptance(p, q, 1, 1));
}

TEST_CASE("more drafts than the draft's support holds leave the rest to the correction") {
  const TargetDistribution p(first.p);
  const std::vector<double> two_tokens = {0, 0.5, 0.5};
  const MultiDraftLaw law = recursive_rejection(p, DraftDistribution(two_tokens), 5, Replacement::without);
  CHECK(law.acceptance().alpha() == exactly(0.5));
  CHECK(law.corrected == std::vector<double>{0.5, 0, 0});
  CHECK(transport_acceptance(p, DraftDistribution(two_tokens), 5, Replacement::without).alpha() == exactly(0.5));
}

TEST_CASE("equal rows always accept and disjoint ones never do") {
  const std::vector<double> left = {0.25, 0.75, 0, 0};
  const std::vector<double> right = {0, 0, 0.5, 0.5};
  for (const auto replacement : {Replacement::with, Replacement::without}) {
    CHECK(recursive_rejection(TargetDistribution(left), DraftDistribution(left), 3, replacement)
              .acceptance()
              .rejection() == 0);
    CHECK(
        recursive_rejection(TargetDistribution(left), DraftDistribution(right), 3, replacement).acceptance().alpha() ==
        0);
    CHECK(transport_acceptance(TargetDistribution(left), DraftDistribution(left), 3, replacement).rejection() == 0);
    CHECK(transport_acceptance(TargetDistribution(left), DraftDistribution(right), 3, replacement).alpha() == 0);
  }
  CHECK(k_seq_least_rho(TargetDistribution(left), DraftDistribution(left), 3) == 1);
  CHECK(k_seq_least_rho(TargetDistribution(left), DraftDistribution(right), 3) == 1);
  CHECK(k_seq_acceptance(TargetDistribution(left), DraftDistribution(right), 3, 1).alpha() == 0);
}

TEST_CASE("proposals that are given are accepted with the target's mass on them") {
  const TargetDistribution p(second.p);
  CHECK(distinct_drafts_acceptance(p, std::vector<std::int64_t>{0, 2}).alpha() == exactly(0.7));
  CHECK(distinct_drafts_acceptance(p, {}).alpha() == 0);
  CHECK_THROWS_AS(distinct_drafts_acceptance(p, std::vector<std::int64_t>{1, 1}), std::domain_error);
  CHECK_THROWS_AS(distinct_drafts_acceptance(p, std::vector<std::int64_t>{4}), std::domain_error);
}

TEST_CASE("chains of which some survive make the tokens that exact enumeration says") {
  const TargetDistribution p(first.p);
  const DraftDistribution q(first.q);
  const double two[] = {1.76, 2.3058, 2.691034};
  const double three[] = {1.808, 2.4009, 2.8224181};
  for (std::int64_t gamma = 1; gamma <= 3; ++gamma) {
    CHECK(chains_expected_tokens(p, q, 1, gamma) == exactly(expected_tokens(core::acceptance_rate(p, q), gamma)));
    CHECK(chains_expected_tokens(p, q, 2, gamma) == exactly(two[gamma - 1]));
    CHECK(chains_expected_tokens(p, q, 3, gamma) == exactly(three[gamma - 1]));
  }
  CHECK(chains_expected_tokens(p, q, 3, 0) == 1);
}

TEST_CASE("schemes of several drafts refuse what they cannot compute") {
  const TargetDistribution p(first.p);
  const DraftDistribution q(first.q);
  CHECK_THROWS_AS(recursive_rejection(p, q, most_drafts + 1, Replacement::with), std::domain_error);
  CHECK_THROWS_AS(transport_acceptance(p, DraftDistribution(second.q), 2, Replacement::with), std::invalid_argument);
  const std::vector<double> wide(40, 1.0 / 40);
  CHECK_THROWS_AS(recursive_rejection(TargetDistribution(wide), DraftDistribution(wide), 5, Replacement::without),
                  std::domain_error);
  CHECK_THROWS_AS(transport_acceptance(TargetDistribution(wide), DraftDistribution(wide), 2, Replacement::without),
                  std::domain_error);
  CHECK_THROWS_AS(chains_expected_tokens(p, q, 2, -1), std::domain_error);
}

}  // namespace specdec::theory
