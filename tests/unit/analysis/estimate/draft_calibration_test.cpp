#include "analysis/estimate/draft_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "analysis/estimate/observe.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/recorded_pair.hpp"

using namespace specdec;
using tests::MemorySource;
using tests::RecordedPair;

namespace {

estimate::DraftCalibration calibrated(const RecordedPair& pair, std::int64_t bins, traces::AcceptanceRule rule) {
  estimate::ObserveOptions options;
  options.rule = rule;
  options.confidence_bins = bins;
  MemorySource source({}, {});
  estimate::Observer observer({}, options);
  estimate::DraftCalibration calibration(bins);
  calibration.add(observer.observe(source, pair.full()));
  CHECK(calibration.positions() == pair.positions);
  return calibration;
}

std::vector<estimate::CalibratedBin> calibration_of(const RecordedPair& pair, std::int64_t bins,
                                                    traces::AcceptanceRule rule = traces::AcceptanceRule::rejection) {
  return calibrated(pair, bins, rule).by_token();
}

}  // namespace

TEST_CASE("tokens drawn from the draft are accepted as calibration says, bin by bin") {
  const RecordedPair pair = tests::recorded_pair(12, 60, 6, 31);
  const auto bins = calibration_of(pair, 5);
  REQUIRE(bins.size() == 5);
  // Algorithm 1's own coin: y from q, accepted where a uniform number is below p(y) / q(y).
  std::mt19937_64 generator(77);
  std::uniform_real_distribution<> uniform;
  std::vector<double> drafted(5), accepted(5), confidence(5);
  constexpr int rounds = 2000;
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    const auto p = pair.target_row(i);
    const auto q = pair.draft_row(i);
    std::discrete_distribution<std::size_t> law(q.begin(), q.end());
    for (int round = 0; round < rounds; ++round) {
      const std::size_t y = law(generator);
      const auto bin = static_cast<std::size_t>(std::min(q[y] * 5.0, 4.0));
      drafted[bin] += 1;
      confidence[bin] += q[y];
      accepted[bin] += uniform(generator) * q[y] < p[y] ? 1 : 0;
    }
  }
  // 10 comparisons at 4.5 standard errors: a false alarm in 15,000 seeds.
  for (std::size_t b = 0; b < 5; ++b) {
    REQUIRE(bins[b].acceptance);
    const double n = drafted[b];
    CHECK(bins[b].drafted == Approx(n / rounds).margin(4.5 * std::sqrt(60.0 / 4 / rounds)));
    const double rate = bins[b].acceptance->value;
    CHECK(accepted[b] / n == Approx(rate).margin(4.5 * std::sqrt(rate * (1 - rate) / n)));
    CHECK(confidence[b] / n == Approx(*bins[b].confidence).margin(0.2 * 4.5 / std::sqrt(n)));
    CHECK(bins[b].lo <= *bins[b].confidence);
    CHECK(*bins[b].confidence <= bins[b].hi);
    CHECK(bins[b].acceptance->ci95->lo < rate);
    CHECK(rate < bins[b].acceptance->ci95->hi);
  }
}

TEST_CASE("over one bin calibration is the mean of beta, and greedy drafts fall into their argmax's bin") {
  const RecordedPair pair = tests::recorded_pair(12, 60, 60, 32);
  double beta = 0, agreed = 0, top = 0;
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    const auto p = pair.target_row(i);
    const auto q = pair.draft_row(i);
    for (std::size_t x = 0; x < p.size(); ++x) beta += std::min(p[x], q[x]);
    const auto first = std::max_element(q.begin(), q.end());
    agreed += p[static_cast<std::size_t>(first - q.begin())];
    top += *first;
  }
  const auto one = calibration_of(pair, 1);
  CHECK(one[0].drafted == Approx(60).epsilon(1e-6));
  CHECK(one[0].acceptance->value == Approx(beta / 60).epsilon(1e-6));
  CHECK(one[0].acceptance->method.find("batch means") == 0);
  const auto greedy = calibration_of(pair, 1, traces::AcceptanceRule::greedy_draft);
  CHECK(greedy[0].acceptance->value == Approx(agreed / 60).epsilon(1e-6));
  CHECK(*greedy[0].confidence == Approx(top / 60).epsilon(1e-6));
  for (const auto& bin : calibration_of(pair, 100)) CHECK(bin.acceptance.has_value() == (bin.drafted > 0));
}

TEST_CASE("by the draft's largest probability the mean acceptance of the positions counts") {
  const RecordedPair pair = tests::recorded_pair(12, 300, 20, 33);
  std::vector<double> positions(4), top(4), beta(4);
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    const auto p = pair.target_row(i);
    const auto q = pair.draft_row(i);
    const double largest = *std::max_element(q.begin(), q.end());
    const auto bin = static_cast<std::size_t>(std::min(largest * 4, 3.0));
    positions[bin] += 1;
    top[bin] += largest;
    for (std::size_t x = 0; x < p.size(); ++x) beta[bin] += std::min(p[x], q[x]);
  }
  const auto bins = calibrated(pair, 4, traces::AcceptanceRule::rejection).by_top();
  REQUIRE(bins.size() == 4);
  int told = 0;
  for (std::size_t b = 0; b < 4; ++b) {
    CHECK(static_cast<double>(bins[b].positions) == positions[b]);
    CHECK(bins[b].drafted == positions[b]);
    CHECK(bins[b].acceptance.has_value() == (positions[b] > 0));
    if (!bins[b].acceptance) continue;
    ++told;
    CHECK(*bins[b].confidence == Approx(top[b] / positions[b]).epsilon(1e-6));
    CHECK(bins[b].acceptance->value == Approx(beta[b] / positions[b]).epsilon(1e-6));
    if (bins[b].acceptance->ci95) CHECK(bins[b].acceptance->ci95->hi <= 1);
  }
  CHECK(told >= 2);
  // Where one token is drafted, the largest probability is the drafted token's.
  const auto greedy = calibrated(pair, 4, traces::AcceptanceRule::greedy_draft);
  for (std::size_t b = 0; b < 4; ++b) {
    const auto one = greedy.by_top()[b];
    const auto other = greedy.by_token()[b];
    CHECK(one.positions == other.positions);
    if (one.acceptance) CHECK(one.acceptance->value == Approx(other.acceptance->value).epsilon(1e-12));
  }
}

TEST_CASE("another number of bins is refused, and without rows there is nothing") {
  estimate::DraftCalibration calibration(2);
  const std::vector<std::int64_t> sequence{0};
  estimate::Observations seen;
  calibration.add(seen);
  CHECK(calibration.by_token().empty());
  CHECK(calibration.by_top().empty());
  seen.size = 1;
  seen.sequence = sequence;
  seen.by_confidence = {{{0.5, 0.2, 0.1}}, {{0.5, 0.4, 0.3}}};
  calibration.add(seen);
  CHECK_FALSE(calibration.by_token()[0].acceptance->ci95);
  seen.by_confidence.pop_back();
  CHECK_THROWS_AS(calibration.add(seen), std::invalid_argument);
}
