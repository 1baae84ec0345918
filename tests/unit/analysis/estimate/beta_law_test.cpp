#include "analysis/estimate/beta_law.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

using namespace specdec::estimate;

namespace {

std::vector<double> random_values(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<> uniform;
  std::vector<double> values(n);
  for (double& value : values) value = std::sqrt(uniform(generator));
  return values;
}

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double none = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("quantiles of the sketch are within its error of those of the sorted values") {
  std::vector<double> values = random_values(5000, 1);
  UnitIntervalSketch sketch;
  for (const double value : values) sketch.add(value);
  std::sort(values.begin(), values.end());
  for (const double probability : {0.0, 0.001, 0.01, 0.25, 0.5, 0.75, 0.99, 0.9999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::max(1.0, std::ceil(probability * 5000)));
    CHECK(std::abs(*sketch.quantile(probability) - values[rank - 1]) <= UnitIntervalSketch::quantile_error);
  }
  for (const double x : {0.0, 0.125, 0.5, 0.75, 1.0}) {
    const auto below = std::lower_bound(values.begin(), values.end(), x) - values.begin();
    CHECK(*sketch.share_below(x) == Approx(static_cast<double>(below) / 5000));
  }
  CHECK(sketch.histogram(4)[0] + sketch.histogram(4)[1] ==
        std::lower_bound(values.begin(), values.end(), .5) - values.begin());
}

TEST_CASE("mass at the ends comes back as the ends") {
  UnitIntervalSketch sketch;
  CHECK_FALSE(sketch.quantile(0.5));
  for (const double value : {0.0, 0.0, 1.0, 1.0 + 1e-9}) sketch.add(value);
  CHECK(*sketch.quantile(0.25) == 0);
  CHECK(*sketch.quantile(0.75) == 1);
  CHECK(*sketch.share_below(1) == 0.5);
  CHECK_THROWS_AS(sketch.quantile(1.5), std::domain_error);
}

TEST_CASE("autocorrelations are those of pairs within a sequence") {
  std::mt19937_64 generator(3);
  std::uniform_real_distribution<> uniform;
  Autocorrelation streaming(3);
  std::vector<std::vector<double>> sequences(40);
  std::int64_t number = 0;
  for (auto& sequence : sequences) {
    bool easy = true;
    for (std::size_t t = 0; t < 5 + generator() % 50; ++t) {
      sequence.push_back(easy ? 0.9 : 0.3);
      streaming.add(number, sequence.back());
      easy = uniform(generator) < (easy ? 0.9 : 0.2);
    }
    ++number;
  }
  double sum = 0, square = 0, count = 0;
  for (const auto& sequence : sequences) {
    for (const double x : sequence) sum += x, square += x * x, count += 1;
  }
  const double mean = sum / count;
  for (std::size_t lag = 1; lag <= 3; ++lag) {
    double products = 0, pairs = 0;
    for (const auto& sequence : sequences) {
      for (std::size_t t = lag; t < sequence.size(); ++t, ++pairs) {
        products += (sequence[t] - mean) * (sequence[t - lag] - mean);
      }
    }
    CHECK(*streaming.values()[lag - 1] == Approx(products / pairs / (square / count - mean * mean)).epsilon(1e-9));
  }
}

TEST_CASE("autocorrelations of long sequences with and without gaps are those of their pairs one by one") {
  // Lengths about those of the blocks in which values are taken together, and sequences shorter than the lags.
  std::vector<std::vector<double>> sequences;
  for (const std::size_t length : {1, 3, 1023, 1024, 1025, 1030, 5000}) {
    std::vector<double>& values = sequences.emplace_back(random_values(length, length));
    for (std::size_t t = 1; t < length; ++t) values[t] = (values[t] + 2 * values[t - 1]) / 3;
  }
  sequences.push_back(sequences.back());
  for (std::size_t t = 1000; t < 3000; t += 17) sequences.back()[t] = none;
  const std::size_t lags = 7;
  Autocorrelation forwards(lags), backwards(lags);
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (const double x : sequences[s]) forwards.add(static_cast<std::int64_t>(s), x);
    const std::size_t other = sequences.size() - 1 - s;
    for (const double x : sequences[other]) backwards.add(static_cast<std::int64_t>(other), x);
  }
  long double sum = 0, square = 0, count = 0;
  for (const auto& sequence : sequences) {
    for (const double x : sequence) {
      if (!std::isnan(x)) sum += x, square += static_cast<long double>(x) * x, count += 1;
    }
  }
  const long double mean = sum / count;
  for (std::size_t lag = 1; lag <= lags; ++lag) {
    long double products = 0;
    std::int64_t pairs = 0;
    for (const auto& sequence : sequences) {
      for (std::size_t t = lag; t < sequence.size(); ++t) {
        if (std::isnan(sequence[t]) || std::isnan(sequence[t - lag])) continue;
        products += (sequence[t] - mean) * (sequence[t - lag] - mean);
        ++pairs;
      }
    }
    CHECK(forwards.pairs()[lag - 1] == pairs);
    const auto expected = static_cast<double>(products / pairs / (square / count - mean * mean));
    CHECK(*forwards.values()[lag - 1] == Approx(expected).epsilon(1e-12));
  }
  CHECK(forwards.values() == backwards.values());
}

TEST_CASE("a constant column has no autocorrelation, and holes pair with nothing") {
  Autocorrelation constant(2);
  for (int i = 0; i < 10; ++i) constant.add(0, 0.3);
  CHECK_FALSE(constant.values()[0]);
  Autocorrelation holes(2);
  for (const double x : {0.1, none, 0.9, none, 0.2, none, 0.8}) holes.add(0, x);
  CHECK_FALSE(holes.values()[0]);
  CHECK(*holes.values()[1] < 0);
}

TEST_CASE("divergences are means over finite positions beside the share of infinite ones") {
  Observations seen;
  seen.kl_target_draft = {1, 2, infinite, none};
  seen.d_lk.lower = {0.1, 0.3};
  seen.d_lk.upper = {0.2, 0.4};
  BetaLawAccumulator law;
  law.add(seen);
  const BetaSummary summary = law.summary();
  CHECK(*summary.kl_target_draft.value == 1.5);
  CHECK(summary.kl_target_draft.positions == 3);
  CHECK(summary.kl_target_draft.infinite_share == Approx(1.0 / 3));
  CHECK_FALSE(summary.kl_draft_target.value);
  CHECK(summary.d_lk->lo == Approx(0.2));
  CHECK(summary.d_lk->hi == Approx(0.3));
  CHECK(summary.quantiles.empty());
}

TEST_CASE("brackets give bounds of quantiles and shares, and no autocorrelation") {
  Observations seen;
  const std::vector<std::int64_t> sequence{0, 0, 0, 0};
  seen.sequence = sequence;
  seen.mean_acceptance.lower = {0.1, 0.3, 0.5, 0.7};
  seen.mean_acceptance.upper = {0.2, 0.4, 0.6, 0.8};
  BetaLawAccumulator law({{0.5}, {0.375}, 4, 2});
  law.add(seen);
  const BetaSummary summary = law.summary();
  CHECK(summary.quantiles[0].bounds.lo == Approx(0.3).margin(1e-4));
  CHECK(summary.quantiles[0].bounds.hi == Approx(0.4).margin(1e-4));
  CHECK(summary.below[0].bounds.lo == 0.25);
  CHECK(summary.below[0].bounds.hi == 0.5);
  CHECK(summary.autocorrelation.empty());
  CHECK(summary.histogram_lower == std::vector<std::int64_t>{1, 1, 2, 0});
}

TEST_CASE("histograms by task sum to the whole, and pairs are counted behind each autocorrelation") {
  const std::vector<double> values = random_values(600, 9);
  std::vector<std::int64_t> sequence(600);
  std::vector<std::int32_t> task(600);
  for (std::size_t i = 0; i < 600; ++i) {
    sequence[i] = static_cast<std::int64_t>(i / 20);
    task[i] = static_cast<std::int32_t>(i / 20 % 3) - 1;
  }
  Observations seen;
  seen.sequence = sequence;
  seen.task = task;
  seen.mean_acceptance.lower = values;
  BetaLawAccumulator law;
  law.add(seen);
  const BetaSummary summary = law.summary();
  REQUIRE(summary.histogram_by_task.size() == 3);
  for (std::size_t bin = 0; bin < summary.histogram_lower.size(); ++bin) {
    std::int64_t sum = 0;
    for (const auto& of_task : summary.histogram_by_task) sum += of_task.second.lower[bin];
    CHECK(sum == summary.histogram_lower[bin]);
    std::int64_t counted = 0;
    for (std::size_t i = 0; i < 600; ++i) {
      counted += task[i] == 1 && static_cast<std::size_t>(values[i] * 16) == bin ? 1 : 0;
    }
    CHECK(summary.histogram_by_task.at(1).lower[bin] == counted);
  }
  CHECK(summary.autocorrelation_pairs[0] == 30 * 19);
  CHECK(summary.autocorrelation_pairs[15] == 30 * 4);
}
