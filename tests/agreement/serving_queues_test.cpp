// Does the serving simulation wait as long as queueing theory says where it is one of its queues? Means are told by
// Student's t over independent replications, laws by chi-square over requests far apart; a sound simulation is refused
// with probability 1e-6 per comparison over random seeds. The seeds are fixed. Each comparison has a twin that serves a
// little differently and must be refused.

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <functional>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/theory/tokens.hpp"
#include "sim/random.hpp"
#include "sim/serving/serving_simulation.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/chi_square.hpp"
#include "tests/support/priced_iterations.hpp"

using namespace specdec::sim;
using specdec::cost::Iteration;
using specdec::test_support::chi_square_p_value;
using specdec::test_support::priced;

namespace {

constexpr double false_alarm_rate = 1e-6;
constexpr std::int64_t replications = 24;

double uniform(std::int64_t replication, std::size_t request, std::int64_t slot) {
  return RandomStream(5, static_cast<std::uint64_t>(replication))
      .uniform(static_cast<std::int64_t>(request), slot, Purpose::test);
}
double exponential(std::int64_t replication, std::size_t request, std::int64_t slot) {
  return -std::log1p(-uniform(replication, request, slot));
}
/// On 1, 2, ...
std::int64_t geometric(double mean, std::int64_t replication, std::size_t request, std::int64_t slot) {
  return 1 + static_cast<std::int64_t>(exponential(replication, request, slot) / -std::log1p(-1 / mean));
}

using Lengths = std::function<void(SimulatedRequest&, std::int64_t replication, std::size_t request)>;

/// One request at a time, and Poisson arrivals.
ServingQuestion single_server(std::int64_t replication, std::size_t requests, double rate, const Lengths& lengths) {
  ServingQuestion question;
  double time = 0;
  for (std::size_t i = 0; i < requests; ++i) {
    time += exponential(replication, i, 0) / rate;
    question.requests.push_back({time, 1, 1});
    lengths(question.requests.back(), replication, i);
  }
  question.engine.max_num_seqs = 1;
  question.engine.max_num_batched_tokens = std::int64_t{1} << 40;
  question.engine.cache_blocks = std::int64_t{1} << 30;
  question.cost = priced(1);
  return question;
}

/// p-value of the means of the replications having this mean.
double p_value_of_mean(const std::vector<double>& means, double expected) {
  const auto n = static_cast<double>(means.size());
  double mean = 0;
  for (const double value : means) mean += value / n;
  double variance = 0;
  for (const double value : means) variance += (value - mean) * (value - mean) / (n - 1);
  const double t = std::abs(mean - expected) / std::sqrt(variance / n);
  return 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(n - 1), t));
}

/// P value of the mean time in the system of requests with these lengths and iterations of these times.
double p_value_of_time(double rate, double expected, const Lengths& lengths,
                       const std::function<double(const Iteration&)>& price, std::size_t requests = 10000) {
  std::vector<double> means;
  for (std::int64_t replication = 0; replication < replications; ++replication) {
    ServingQuestion question = single_server(replication, requests, rate, lengths);
    question.cost = priced(price);
    const ServingResult run = simulate_serving(question);
    double sum = 0;
    for (std::size_t i = run.first_counted; i < run.first_counted + run.counted_requests; ++i)
      sum += run.requests[i].last_token_seconds;
    means.push_back(sum / static_cast<double>(run.counted_requests));
  }
  return p_value_of_mean(means, expected);
}

}  // namespace

TEST_CASE("requests of one iteration each wait as Pollaczek and Khinchine say of M/D/1") {
  const auto one_token = [](SimulatedRequest&, std::int64_t, std::size_t) {};
  const double rate = 0.7;
  const double expected = 1 + rate / (2 * (1 - rate));
  CHECK(p_value_of_time(rate, expected, one_token, [](const Iteration&) { return 1.0; }) > false_alarm_rate);
  CHECK(p_value_of_time(rate, expected, one_token, [](const Iteration&) { return 1.03; }) < false_alarm_rate);
}

TEST_CASE("requests of geometrically many iterations wait as Pollaczek and Khinchine say, which is nearly M/M/1") {
  constexpr double mean = 50;
  constexpr double rate = 0.6 / mean;
  // E[S^2] of the geometric law; for steps of time 0 at the same mean it would be 2 mean^2.
  constexpr double second = 2 * mean * mean - mean;
  constexpr double expected = mean + rate * second / (2 * (1 - rate * mean));
  const Lengths geometric_outputs = [](SimulatedRequest& request, std::int64_t replication, std::size_t i) {
    request.output_tokens = geometric(mean, replication, i, 1);
  };
  const auto one = [](const Iteration&) { return 1.0; };
  CHECK(p_value_of_time(rate, expected, geometric_outputs, one, 4000) > false_alarm_rate);
  // A mean that forgets one token of each request.
  const Lengths shorter = [](SimulatedRequest& request, std::int64_t replication, std::size_t i) {
    request.output_tokens = std::max<std::int64_t>(1, geometric(mean, replication, i, 1) * 9 / 10);
  };
  CHECK(p_value_of_time(rate, expected, shorter, one, 4000) < false_alarm_rate);
}

TEST_CASE("the time in the system of M/M/1 is exponential") {
  // Service is one iteration over a geometrically long prompt: exponential up to a millionth.
  constexpr double rate = 0.3;
  constexpr std::size_t distance = 50;
  const auto p_value = [](const Lengths& lengths) {
    std::vector<std::int64_t> counts(20);
    for (std::int64_t replication = 0; replication < 4; ++replication) {
      ServingQuestion question = single_server(replication, 100000, rate, lengths);
      question.cost = priced([](const Iteration& iteration) { return 1e-6 * iteration.prompt_tokens; });
      const ServingResult result = simulate_serving(question);
      for (std::size_t i = 1000; i < result.requests.size(); i += distance) {
        const double cell = -20 * std::expm1(-(1 - rate) * result.requests[i].last_token_seconds);
        ++counts[std::min<std::size_t>(19, static_cast<std::size_t>(cell))];
      }
    }
    return chi_square_p_value(counts, std::vector<double>(20, 0.05));
  };
  const Lengths exponential_service = [](SimulatedRequest& request, std::int64_t replication, std::size_t i) {
    request.prompt_tokens = geometric(1e6, replication, i, 1);
  };
  CHECK(p_value(exponential_service) > false_alarm_rate);
  // Two phases of half the length each.
  const Lengths erlang_service = [](SimulatedRequest& request, std::int64_t replication, std::size_t i) {
    request.prompt_tokens = geometric(5e5, replication, i, 1) + geometric(5e5, replication, i, 2);
  };
  CHECK(p_value(erlang_service) < false_alarm_rate);
}

TEST_CASE("rounds put out as many tokens as the closed form says, for requests of two kinds") {
  const std::vector<double> alphas = {0.85, 0.4};
  constexpr std::int64_t gamma = 4;
  constexpr std::int64_t tokens = 1001;
  constexpr int requests = 400;
  // Rounds for each token after the first. The last round is cut, which adds less than a round to a request.
  std::vector<double> rounds_per_token;
  for (std::int64_t replication = 0; replication < replications; ++replication) {
    ServingQuestion question;
    for (int i = 0; i < requests; ++i) question.requests.push_back({0, 1, tokens});
    question.engine.schedule = {{1, gamma}};
    question.engine.cache_blocks = 1 << 20;
    question.engine.max_num_seqs = requests;
    for (const double alpha : alphas) question.acceptance.push_back({{alpha}});
    question.cost = priced(1);
    question.seed = static_cast<std::uint64_t>(replication);
    double rounds = 0;
    for (const ServedRequest& request : simulate_serving(question).requests) rounds += request.last_token_seconds - 1;
    rounds_per_token.push_back(rounds / (requests * static_cast<double>(tokens - 1)));
  }
  const auto expected = [&](std::int64_t drafts) {
    double sum = 0;
    for (const double alpha : alphas) {
      sum += 0.5 / specdec::theory::expected_tokens(specdec::core::AcceptanceRate(alpha), drafts);
    }
    return sum;
  };
  CHECK(p_value_of_mean(rounds_per_token, expected(gamma)) > false_alarm_rate);
  CHECK(p_value_of_mean(rounds_per_token, expected(gamma - 1)) < false_alarm_rate);
}
