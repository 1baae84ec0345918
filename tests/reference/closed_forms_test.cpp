#include <algorithm>
#include <boost/math/special_functions/lambert_w.hpp>
#include <functional>

#include "analysis/core/kernels.hpp"
#include "analysis/theory/acceptance_inversion.hpp"
#include "analysis/theory/finite_generation.hpp"
#include "analysis/theory/lenience.hpp"
#include "analysis/theory/operations.hpp"
#include "analysis/theory/optimal_gamma.hpp"
#include "analysis/theory/oracle.hpp"
#include "analysis/theory/rejection_sampling.hpp"
#include "analysis/theory/replay.hpp"
#include "analysis/theory/streaming_replay.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/walltime.hpp"
#include "tests/reference/reference_rows.hpp"
#include "tests/support/exact_laws.hpp"

// Every expected value comes from closed_forms.txt: the textbook formulas with 6000 bits, or sums over all outcomes in
// exact rationals, at exactly the doubles passed here. See generate_closed_forms.py.
namespace specdec {
namespace {

using core::AcceptanceRate;
using test_support::ReferenceRow;
using test_support::relative_error;
using test_support::WorstError;

constexpr long double tolerance = 1e-13L;

void check_rows(const std::string& name, const std::function<double(ReferenceRow&)>& evaluate) {
  WorstError worst;
  test_support::for_each_row(name, [&](ReferenceRow& row) {
    const double actual = evaluate(row);
    worst.note(relative_error(actual, row.value()), row.line());
  });
  worst.require_below(tolerance);
}

struct Pair {
  std::vector<double> p;
  std::vector<double> q;

  explicit Pair(ReferenceRow& row) {
    const auto vocab = static_cast<std::size_t>(row.integer());
    p = row.reals(vocab);
    q = row.reals(vocab);
  }
  core::TargetDistribution target() const { return core::TargetDistribution(p); }
  core::DraftDistribution draft() const { return core::DraftDistribution(q); }
};

void check_pairs(
    const std::string& name,
    const std::function<double(const core::TargetDistribution&, const core::DraftDistribution&)>& evaluate) {
  check_rows(name, [&](ReferenceRow& row) {
    const Pair pair(row);
    return evaluate(pair.target(), pair.draft());
  });
}

}  // namespace

TEST_CASE("powers of a rate and their complements have all digits for exponents up to 2^63 - 1") {
  check_rows("power", [](ReferenceRow& row) { return row.rate().power(row.integer()); });
}

TEST_CASE("one minus a power of a rate has all digits") {
  check_rows("one_minus_power", [](ReferenceRow& row) { return row.rate().one_minus_power(row.integer()); });
}

namespace {

// Function arguments are evaluated in no fixed order; this reads them in the order of the line.
template <class Function>
std::function<double(ReferenceRow&)> of_rate_and_gamma(Function function) {
  return [function](ReferenceRow& row) {
    const AcceptanceRate rate = row.rate();
    return function(rate, row.integer());
  };
}

template <class Function>
std::function<double(ReferenceRow&)> of_rate_gamma_and_cost(Function function) {
  return [function](ReferenceRow& row) {
    const AcceptanceRate rate = row.rate();
    const std::int64_t drafts = row.integer();
    return function(rate, drafts, row.real());
  };
}

template <class Function>
std::function<double(ReferenceRow&)> of_rate_and_cost(Function function) {
  return [function](ReferenceRow& row) {
    const AcceptanceRate rate = row.rate();
    return function(rate, row.real());
  };
}

}  // namespace

TEST_CASE("expected tokens have all digits for epsilon from 0 to 1 and gamma up to 2^63 - 1") {
  check_rows("expected_tokens", of_rate_and_gamma([](const AcceptanceRate& rate, std::int64_t drafts) {
               return theory::expected_tokens(rate, drafts);
             }));
}

TEST_CASE("the variance of the tokens has all digits, also where the textbook form cancels") {
  check_rows("tokens_variance", of_rate_and_gamma(theory::tokens_variance));
}

TEST_CASE("the derivative of the expected tokens has all digits, also where the textbook form cancels") {
  check_rows("expected_tokens_derivative", of_rate_and_gamma(theory::expected_tokens_derivative));
}

TEST_CASE("the wasted fraction has all digits") {
  check_rows("wasted_fraction", of_rate_and_gamma(theory::wasted_fraction));
}

TEST_CASE("the fraction of exact tokens under lenience has all digits") {
  check_rows("exact_token_fraction", of_rate_and_gamma(theory::exact_token_fraction));
}

TEST_CASE("the costs at which neighbouring gammas tie have all digits") {
  check_rows("tie_cost", of_rate_and_gamma(theory::tie_cost));
}

TEST_CASE("the walltime improvement has all digits for costs from 0 to 1e300") {
  check_rows("walltime_improvement",
             of_rate_gamma_and_cost([](const AcceptanceRate& rate, std::int64_t drafts, double c) {
               return theory::walltime_improvement(rate, drafts, c);
             }));
}

TEST_CASE("the operations factor has all digits for operation ratios from 0 to 1e300") {
  check_rows("operations_factor", of_rate_gamma_and_cost([](const AcceptanceRate& rate, std::int64_t drafts, double c) {
               return theory::operations_factor(rate, drafts, c);
             }));
}

TEST_CASE("the oracle's improvement over a fixed gamma has all digits") {
  check_rows("oracle_improvement",
             of_rate_gamma_and_cost([](const AcceptanceRate& rate, std::int64_t drafts, double c) {
               return theory::oracle_improvement(rate, drafts, c);
             }));
}

TEST_CASE("the oracle's speedup has all digits") {
  check_rows("oracle_speedup", of_rate_and_cost(theory::oracle_speedup));
}

TEST_CASE("the real optimum is within 1e-12 of the exact one, for c from the smallest double to nearly 1") {
  WorstError speedup;
  WorstError position;
  test_support::for_each_row("optimal_gamma_real", [&](ReferenceRow& row) {
    const AcceptanceRate rate = row.rate();
    const auto optimum = theory::optimal_gamma_real(rate, row.real());
    REQUIRE(optimum.has_value());
    const long double drafts = row.value();
    position.note(std::abs(optimum->gamma - drafts) / std::max(1.0L, drafts), row.line());
    speedup.note(relative_error(optimum->speedup, row.value()), row.line());
  });
  position.require_below(1e-12L);
  speedup.require_below(tolerance);
}

TEST_CASE("the real optimum agrees with Boost's Lambert W where that is accurate") {
  for (const double alpha : {0.5, 0.7, 0.8, 0.9}) {
    for (const double c : {0.05, 0.1, 0.2}) {
      const double log_reciprocal = -std::log(alpha);
      const double z = -boost::math::lambert_wm1(-std::exp(-1 - log_reciprocal * (1 - c) / c));
      INFO("alpha " << alpha << ", c " << c);
      CHECK(theory::optimal_gamma_real(AcceptanceRate(alpha), c)->gamma ==
            Approx((z - 1) / log_reciprocal - 1 / c).epsilon(1e-12));
    }
  }
}

TEST_CASE("the optimal gamma is the exact one, or ties with it as its direct neighbour, or is called too large") {
  WorstError worst;
  test_support::for_each_row("optimal_gamma", [&](ReferenceRow& row) {
    const AcceptanceRate rate = row.rate();
    const auto optimum = theory::optimal_gamma(rate, row.real());
    const std::string exact = row.word();
    INFO(row.line() << ": found " << optimum.gamma);
    CHECK(optimum.attained() == (exact != "too_large"));
    if (optimum.attained()) {
      CHECK(optimum.ties.first <= std::stoll(exact));
      CHECK(std::stoll(exact) <= optimum.ties.last);
      CHECK(std::stoll(exact) - optimum.gamma <= 1);
    } else {
      CHECK(optimum.kind == theory::OptimumKind::too_large);
      CHECK(optimum.gamma == std::int64_t{1} << 53);
    }
    worst.note(relative_error(optimum.speedup, row.value()), row.line());
  });
  worst.require_below(tolerance);
}

TEST_CASE("the gamma that reaches a share of the limit is the smallest one") {
  test_support::for_each_row("gamma_reaching_share", [](ReferenceRow& row) {
    const AcceptanceRate rate = row.rate();
    const auto drafts = theory::gamma_reaching_share(rate, row.real());
    const std::string expected = row.word();
    INFO(row.line());
    CHECK((drafts ? std::to_string(*drafts) : "none") == expected);
  });
}

TEST_CASE("an acceptance length is inverted to a rate with all digits in the smaller of alpha and epsilon") {
  WorstError worst;
  test_support::for_each_row("alpha_from_acceptance_length", [&](ReferenceRow& row) {
    const double length = row.real();
    const AcceptanceRate rate = theory::alpha_from_acceptance_length(length, row.integer());
    const long double alpha = row.value();
    const long double epsilon = row.value();
    worst.note(alpha < epsilon ? relative_error(rate.alpha(), alpha) : relative_error(rate.rejection(), epsilon),
               row.line());
  });
  worst.require_below(tolerance);
}

TEST_CASE("steps, variance and speedup of a finite generation equal the sums over all paths") {
  WorstError worst;
  test_support::for_each_row("finite_generation", [&](ReferenceRow& row) {
    const AcceptanceRate rate = row.rate();
    const std::int64_t drafts = row.integer();
    const std::int64_t tokens = row.integer();
    const auto result = theory::finite_generation(rate, drafts, tokens, {.c = row.real()});
    worst.note(relative_error(result.expected_steps, row.value()), row.line());
    worst.note(relative_error(result.steps_variance, row.value()), row.line());
    worst.note(relative_error(result.speedup, row.value()), row.line());
  });
  worst.require_below(1e-12L);
}

TEST_CASE("replayed steps equal the sums over all coins of the text") {
  WorstError worst;
  test_support::for_each_row("replay", [&](ReferenceRow& row) {
    const std::int64_t drafts = row.integer();
    const auto length = static_cast<std::size_t>(row.integer());
    const std::vector<double> acceptance = row.reals(length);
    const std::vector<double> law = test_support::steps_law(acceptance, drafts);
    REQUIRE(law.size() == length + 1);
    for (const double probability : law) worst.note(std::abs(probability - row.value()), row.line());
    const auto steps = theory::replay_steps(acceptance, drafts);
    const long double expected = row.value();
    worst.note(relative_error(steps.expected, expected), row.line());
    theory::StreamingReplay forward({.max_gamma = drafts});
    forward.add(acceptance);
    worst.note(relative_error(forward.finish_sequence().steps(drafts), expected), row.line());
    worst.note(std::abs(steps.variance - row.value()), row.line());
  });
  worst.require_below(1e-13L);
}

TEST_CASE("overlap, residual masses and distances of two distributions equal exact rational sums") {
  using core::DraftDistribution;
  using core::TargetDistribution;
  check_pairs("overlap", core::overlap);
  check_pairs("rejected_mass", core::rejected_mass);
  check_pairs("missing_mass", [](const TargetDistribution& p, const DraftDistribution& q) {
    return core::rejected_mass(TargetDistribution(q.probabilities()), DraftDistribution(p.probabilities()));
  });
  check_pairs("d_lk", core::d_lk);
  check_pairs("matching", theory::matching_acceptance);
  check_pairs("rejection_sampling", theory::rejection_sampling_acceptance);
  check_pairs("rejected_mass", [](const TargetDistribution& p, const DraftDistribution& q) {
    return core::acceptance_rate(p, q).rejection();
  });
  check_pairs("overlap", [](const TargetDistribution& p, const DraftDistribution& q) {
    return core::acceptance_rate(p, q).alpha();
  });
}

TEST_CASE("lenient acceptance equals exact rational sums on both sides") {
  WorstError worst;
  test_support::for_each_row("lenient_acceptance", [&](ReferenceRow& row) {
    const Pair pair(row);
    const AcceptanceRate rate = theory::lenient_acceptance(pair.target(), pair.draft(), row.real());
    const long double accepted = row.value();
    const long double rejected = row.value();
    worst.note(
        accepted < rejected ? relative_error(rate.alpha(), accepted) : relative_error(rate.rejection(), rejected),
        row.line());
  });
  worst.require_below(tolerance);
}

TEST_CASE("the lenient output distribution and its distance from the target equal exact rational sums") {
  WorstError entries;
  WorstError distances;
  test_support::for_each_row("lenient_output", [&](ReferenceRow& row) {
    const Pair pair(row);
    const double lenience = row.real();
    const auto residual = row.word() == "strict" ? theory::LenientResidual::strict : theory::LenientResidual::lenient;
    for (const double probability : theory::lenient_output(pair.target(), pair.draft(), lenience, residual)) {
      entries.note(relative_error(probability, row.value()), row.line());
    }
    const double distance = theory::lenient_distance(pair.target(), pair.draft(), lenience, residual);
    distances.note(std::abs(distance - row.value()), row.line());
  });
  entries.require_below(tolerance);
  distances.require_below(1e-15L);
}

}  // namespace specdec
