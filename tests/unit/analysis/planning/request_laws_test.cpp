#include "analysis/planning/request_laws.hpp"

#include <cmath>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

using namespace specdec;
using planning::ConditionalRates;
using planning::RequestRate;

namespace {

/// Conditional rates of a mixture, by summing survivals.
ConditionalRates mixed(const std::vector<ConditionalRates>& laws, const std::vector<RequestRate>& requests,
                       std::size_t positions) {
  std::vector<double> alive;
  for (const RequestRate& request : requests) alive.push_back(request.weight);
  ConditionalRates rates;
  for (std::size_t j = 0; j < positions; ++j) {
    double before = 0, after = 0;
    for (std::size_t i = 0; i < laws.size(); ++i) {
      before += alive[i];
      alive[i] *= laws[i][j];
      after += alive[i];
    }
    rates.push_back(after / before);
  }
  return rates;
}

}  // namespace

TEST_CASE("the parts of a Beta law keep its mean exactly and its spread nearly") {
  for (const double mean : {0.1, 0.5, 0.8, 0.97}) {
    for (const double spread : {0.001, 0.05, 0.15}) {
      double sum = 0, squares = 0;
      const auto rates = planning::beta_rates(mean, spread, 3, 2000);
      for (const RequestRate& request : rates) {
        sum += request.rate;
        squares += (request.rate - mean) * (request.rate - mean);
        const double tokens = 1 + request.rate + std::pow(request.rate, 2) + std::pow(request.rate, 3);
        CHECK(request.weight == Approx(1 / tokens).epsilon(1e-12));
      }
      CHECK(sum / 2000 == Approx(mean).margin(1e-12));
      CHECK(std::sqrt(squares / 2000) == Approx(spread).epsilon(0.003));
    }
  }
  CHECK_THROWS_AS(planning::beta_rates(0.8, 0.4, 3), std::domain_error);
  CHECK_THROWS_AS(planning::beta_rates(1.0, 0.1, 3), std::domain_error);
  CHECK_THROWS_AS(planning::beta_rates(0.8, 0.0, 3), std::domain_error);
}

TEST_CASE("two kinds of requests that explain the pooled rates keep their own rates at every position") {
  const std::vector<RequestRate> requests = {{0.9, 0, 3}, {0.4, 0, 1}};
  const std::vector<ConditionalRates> constant = {ConditionalRates(6, 0.9), ConditionalRates(6, 0.4)};
  const auto laws = planning::laws_by_request(requests, mixed(constant, requests, 6));
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 6; ++j) CHECK(laws[i][j] == Approx(constant[i][j]).margin(1e-9));
  }
}

TEST_CASE("whatever the requests are, together they have the pooled rates, and better ones are better everywhere") {
  const std::vector<RequestRate> requests = {{0, 0.01, 5}, {0.55, 0.002, 2}, {0.7, 0, 1}, {1, 0.0001, 9}};
  const ConditionalRates pooled = {0.8, 0.7, 0.75, 0.2, 0.9};
  const auto laws = planning::laws_by_request(requests, pooled);
  const ConditionalRates together = mixed(laws, requests, pooled.size());
  for (std::size_t j = 0; j < pooled.size(); ++j) {
    CHECK(together[j] == Approx(pooled[j]).margin(1e-9));
    for (std::size_t i = 1; i < laws.size(); ++i) CHECK(laws[i][j] > laws[i - 1][j]);
  }
  for (const ConditionalRates& law : planning::laws_by_request(requests, std::vector<double>{1, 0, 0.5})) {
    CHECK(law[0] == 1);
    CHECK(law[1] == 0);
  }
}

TEST_CASE("what sampling explains is no difference between requests") {
  // Sample variance of 0.4 and 0.6: 0.02.
  CHECK(planning::variance_between(std::vector<RequestRate>{{0.4, 0, 1}, {0.6, 0, 1}}) == Approx(0.02));
  CHECK(planning::variance_between(std::vector<RequestRate>{{0.4, 0.005, 1}, {0.6, 0.005, 1}}) == Approx(0.015));
  CHECK(planning::variance_between(std::vector<RequestRate>{{0.4, 0.03, 1}, {0.6, 0.03, 1}}) == 0);
  CHECK(planning::variance_between(std::vector<RequestRate>{{0.4, 0.03, 1}}) == 0);
  CHECK_THROWS_AS(planning::variance_between({}), std::invalid_argument);

  const std::vector<RequestRate> noise = {{0.4, 0.03, 1}, {0.6, 0.03, 1}};
  for (const ConditionalRates& law : planning::laws_by_request(noise, std::vector<double>{0.8, 0.3})) {
    CHECK(law[0] == Approx(0.8).margin(1e-9));
    CHECK(law[1] == Approx(0.3).margin(1e-9));
  }
}

TEST_CASE("the conditional rates behind tokens per step are those of their differences") {
  const ConditionalRates rates = planning::conditionals_of(std::vector<double>{1, 1.8, 2.2, 2.6, 2.6});
  const ConditionalRates expected = {0.8, 0.5, 1, 0};
  REQUIRE(rates.size() == 4);
  for (std::size_t j = 0; j < 4; ++j) CHECK(rates[j] == Approx(expected[j]).margin(1e-12));
}

TEST_CASE("the counts of a request give its rate, those of a server none") {
  traces::ServingCounts counts;
  counts.engine = "vllm";
  counts.unit = traces::CountUnit::request;
  counts.shape = traces::DraftShape::chain;
  counts.gamma = 2;
  // 10 rounds: 3 accept nothing, 2 one draft, 5 both. Looked at 10 + 7 drafts, of which 7 + 5 were accepted.
  counts.rounds = 10;
  counts.drafted = 20;
  counts.accepted = 12;
  counts.rounds_by_accepted = {3, 2, 5};
  const auto rate = planning::rate_of_request(counts, std::nullopt);
  REQUIRE(rate);
  CHECK(rate->rate == Approx(12.0 / 17));
  CHECK(rate->error_variance == Approx(12.0 / 17 * 5 / 17 / 17));
  CHECK(rate->weight == 10);
  counts.unit = traces::CountUnit::total;
  CHECK_FALSE(planning::rate_of_request(counts, std::nullopt));
}

TEST_CASE("each sequence of a recording has the mean acceptance of its known positions") {
  const std::vector<std::int64_t> sequence = {0, 0, 0, 1, 2, 2};
  estimate::Observations seen;
  seen.sequence = sequence;
  seen.mean_acceptance.lower = {0.2, 0.4, 0.6, std::nan(""), 0.5, 0.5};
  seen.mean_acceptance.upper = {0.4, 0.6, 0.8, std::nan(""), 0.5, 0.5};
  planning::SequenceRates rates;
  rates.add(seen);
  const auto found = rates.rates();
  REQUIRE(found.size() == 2);
  CHECK(found[0].rate == Approx(0.5));
  CHECK(found[0].error_variance == Approx(0.04 / 3));
  CHECK(found[0].weight == 3);
  CHECK(found[1].rate == 0.5);
  CHECK(found[1].error_variance == 0);
}

TEST_CASE("the variance of rates that differ by little keeps its digits") {
  const std::vector<std::int64_t> sequence(1000);
  estimate::Observations seen;
  seen.sequence = sequence;
  for (std::size_t i = 0; i < sequence.size(); ++i)
    seen.mean_acceptance.lower.push_back(i % 2 == 0 ? 0.75 : 0.75 + 1e-9);
  planning::SequenceRates rates;
  rates.add(seen);
  CHECK(rates.rates().front().error_variance == Approx(0.25e-18 / 999).epsilon(1e-6));
}
