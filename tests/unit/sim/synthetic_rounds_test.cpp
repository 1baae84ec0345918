#include "sim/synthetic_rounds.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/catch.hpp"

using namespace specdec::sim;
namespace core = specdec::core;
using Row = std::vector<double>;

namespace {

/// Weights of very different sizes, every seventh 0; different ones for different strides.
Row uneven_law(std::size_t size, std::size_t stride) {
  Row law(size);
  double sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t j = i * stride % size;
    law[i] = (i + stride) % 7 == 0 ? 0 : std::exp(-0.02 * static_cast<double>(j)) / static_cast<double>(1 + j % 5);
    sum += law[i];
  }
  for (double& x : law) x /= sum;
  return law;
}

AliasPair uneven_pair() {
  return AliasPair(core::TargetDistribution(uneven_law(500, 1)), core::DraftDistribution(uneven_law(500, 3)));
}

SyntheticRoundsOptions short_run(std::int64_t threads) {
  SyntheticRoundsOptions options;
  options.sequences = 150;
  options.rounds_per_sequence = 70;
  options.threads = threads;
  options.seed = 0x1234'5678'9abc;
  options.count_tokens = true;
  return options;
}

/// Every count of one run of each kind.
std::vector<std::int64_t> all_counts(std::int64_t threads) {
  SyntheticRoundsOptions options = short_run(threads);
  const AliasPair pair = uneven_pair();
  std::vector<std::int64_t> all;
  const auto add = [&all](const std::vector<std::int64_t>& counts) {
    all.insert(all.end(), counts.begin(), counts.end());
  };
  for (const std::int64_t gamma : {0, 1, 5, 32}) {
    const SyntheticRounds run = simulate_rounds(pair, gamma, options);
    add(run.accepted_counts);
    add(run.token_counts);
  }
  options.count_tokens = false;
  for (const double alpha : {0.0, 0.3, 0.9, 1.0}) {
    add(simulate_rounds(core::AcceptanceRate(alpha), 7, options).accepted_counts);
  }
  return all;
}

}  // namespace

TEST_CASE("synthetic rounds are bit-identical for any number of threads") {
  const std::vector<std::int64_t> expected = all_counts(1);
  for (const std::int64_t threads : {2, 3}) CHECK(all_counts(threads) == expected);
}

TEST_CASE("the columns of alias tables add up to the laws and hold their acceptances") {
  for (const std::size_t size : {1U, 2U, 500U}) {
    const Row p = size == 1 ? Row{1} : uneven_law(size, 1);
    const Row q = size == 1 ? Row{1} : uneven_law(size, 3 % size);
    Row residual(size);
    double missing = 0;
    for (std::size_t i = 0; i < size; ++i) missing += residual[i] = std::max(0.0, p[i] - q[i]);
    for (double& x : residual) x = missing > 0 ? x / missing : p[0];
    const AliasPair pair{core::TargetDistribution(p), core::DraftDistribution(q)};
    REQUIRE(pair.columns().size() == 6 * size);
    const std::array<const Row*, 3> laws = {&q, &p, &residual};
    for (std::size_t t = 0; t < laws.size(); ++t) {
      Row mass(size);
      double worst_acceptance = 0;
      for (std::size_t i = 0; i < size; ++i) {
        const std::uint64_t choice = pair.columns()[2 * (t * size + i)];
        const std::uint64_t acceptances = pair.columns()[2 * (t * size + i) + 1];
        const auto alias = static_cast<std::size_t>(choice >> 32);
        const double own = static_cast<double>(choice & 0xffff'ffff) * 0x1p-32;
        mass[i] += own / static_cast<double>(size);
        mass[alias] += (1 - own) / static_cast<double>(size);
        const auto expected = [&](std::size_t x) { return t > 0 || q[x] <= p[x] ? 1 : p[x] / q[x]; };
        const auto deviation = [&](std::size_t x, std::uint64_t stored) {
          return std::abs(static_cast<double>(stored) * 0x1p-31 - expected(x));
        };
        if (own > 0) worst_acceptance = std::max(worst_acceptance, deviation(i, acceptances & 0xffff'ffff));
        worst_acceptance = std::max(worst_acceptance, deviation(alias, acceptances >> 32));
      }
      double distance = 0;
      for (std::size_t i = 0; i < size; ++i) {
        distance += std::abs(mass[i] - (*laws[t])[i]) / 2;
        if ((*laws[t])[i] == 0) CHECK(mass[i] == 0);
      }
      CAPTURE(size, t);
      CHECK(distance <= 0x1p-33 * (t == 2 ? 2 / missing + 1 : 1) + 1e-15);
      // 2^-32 of its own, and what rounding did to p and q: 2^-32 / size of each, which matters for small q.
      CHECK(worst_acceptance <= 1e-6);
    }
  }
}

TEST_CASE("runs count what they say") {
  const SyntheticRounds run = simulate_rounds(uneven_pair(), 5, short_run(2));
  CHECK(run.rounds() == 150 * 70);
  std::int64_t tokens = 0;
  for (const std::int64_t count : run.token_counts) tokens += count;
  CHECK(run.tokens() == tokens);
  CHECK(!run.interrupted);
  const Row law = uneven_law(500, 1);
  for (std::size_t i = 0; i < law.size(); ++i) {
    if (law[i] == 0) CHECK(run.token_counts[i] == 0);
  }
  SyntheticRounds known;
  CHECK(!known.tokens_per_step());
  known.accepted_counts = {1, 0, 2};  // 1, 3 and 3 tokens: mean 7/3, variance 4/3
  CHECK(*known.tokens_per_step() == Approx(7.0 / 3));
  CHECK(*known.standard_error() == Approx(2.0 / 3));
}

TEST_CASE("equal laws accept every draft and disjoint ones none") {
  SyntheticRoundsOptions options = short_run(1);
  const Row left = {0.5, 0.5, 0, 0};
  const Row right = {0, 0, 0.25, 0.75};
  const auto counts = [&options](const Row& p, const Row& q) {
    return simulate_rounds(AliasPair(core::TargetDistribution(p), core::DraftDistribution(q)), 3, options);
  };
  CHECK(counts(left, left).accepted_counts == std::vector<std::int64_t>{0, 0, 0, 150 * 70});
  CHECK(counts(left, right).accepted_counts == std::vector<std::int64_t>{150 * 70, 0, 0, 0});
  CHECK(counts(left, right).token_counts[2] == 0);
}

TEST_CASE("a run ends when its precision is reached, at the same place for any number of threads") {
  SyntheticRoundsOptions options;
  options.sequences = 1'000'000;
  options.rounds_per_sequence = 16;
  options.until_relative_error = 0.002;
  const core::AcceptanceRate rate(0.8);
  const SyntheticRounds one = simulate_rounds(rate, 4, options);
  CHECK(one.precise);
  CHECK(*one.standard_error() <= 0.002 * *one.tokens_per_step());
  CHECK(one.rounds() < 16 * options.sequences);
  options.threads = 2;
  CHECK(simulate_rounds(rate, 4, options).accepted_counts == one.accepted_counts);
  options.until_relative_error = 1e-9;
  options.sequences = 100;
  CHECK(!simulate_rounds(rate, 4, options).precise);
}

TEST_CASE("an interrupted run keeps the sequences that were finished and says so") {
  SyntheticRoundsOptions options = short_run(1);
  options.sequences = 640;
  std::int64_t asked = 0;
  std::int64_t told = 0;
  options.interrupt = [&asked] { return ++asked > 3; };
  options.progress = [&told](const SyntheticRounds& so_far) { told = so_far.rounds(); };
  const SyntheticRounds run = simulate_rounds(uneven_pair(), 4, options);
  CHECK(run.interrupted);
  CHECK(run.rounds() == 3 * 64 * 70);
  CHECK(told == run.rounds());
}

TEST_CASE("synthetic rounds refuse wrong arguments") {
  const Row two = {0.5, 0.5};
  const Row three = {0.5, 0.25, 0.25};
  CHECK_THROWS_AS(AliasPair(core::TargetDistribution(two), core::DraftDistribution(three)), std::invalid_argument);
  const auto refuses = [](std::int64_t gamma, const auto& change) {
    SyntheticRoundsOptions options;
    options.sequences = 1;
    change(options);
    CHECK_THROWS_AS(simulate_rounds(core::AcceptanceRate(0.5), gamma, options), std::domain_error);
  };
  const auto nothing = [](SyntheticRoundsOptions&) {};
  refuses(-1, nothing);
  refuses(33, nothing);
  refuses(2, [](SyntheticRoundsOptions& options) { options.sequences = 0; });
  refuses(2, [](SyntheticRoundsOptions& options) { options.sequences = std::int64_t{1} << 62; });
  refuses(2, [](SyntheticRoundsOptions& options) { options.rounds_per_sequence = 0; });
  refuses(2, [](SyntheticRoundsOptions& options) { options.threads = 0; });
  refuses(2, [](SyntheticRoundsOptions& options) { options.until_relative_error = 0; });
  refuses(2, [](SyntheticRoundsOptions& options) {
    options.until_relative_error = std::numeric_limits<double>::quiet_NaN();
  });
  refuses(2, [](SyntheticRoundsOptions& options) { options.count_tokens = true; });
}
