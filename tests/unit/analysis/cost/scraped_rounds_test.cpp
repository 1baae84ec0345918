#include "analysis/cost/scraped_rounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using traces::RoundTimes;
using traces::ServingCounts;

namespace {

constexpr double no_edge = std::numeric_limits<double>::infinity();
const std::vector<double> edges = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, no_edge};

RoundTimes histogram_of(const std::vector<double>& times, double iterations, double first_tokens) {
  RoundTimes result;
  result.count = static_cast<double>(times.size());
  result.seconds = std::accumulate(times.begin(), times.end(), 0.0);
  result.iterations = iterations;
  result.first_tokens = first_tokens;
  for (const double edge : edges) {
    result.up_to[edge] =
        static_cast<double>(std::count_if(times.begin(), times.end(), [&](double t) { return t <= edge; }));
  }
  return result;
}

ServingCounts window_of(RoundTimes times) {
  ServingCounts window;
  window.file = "after.prom";
  window.line = 7;
  window.engine = "vllm";
  window.round_times = std::move(times);
  return window;
}

}  // namespace

TEST_CASE("rounds without prompts take what the buckets leave open, whatever the server did") {
  // Holds always, not with a probability: no seed may break it.
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937_64 source(seed);
    const auto uniform = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(source); };
    const int batch = 1 + static_cast<int>(seed % 12);
    const double round = uniform(0.004, 0.06), prompt = uniform(0.0, 0.05), share = uniform(0.0, 0.05);
    std::vector<double> times;
    double without = 0, plain_iterations = 0, iterations = 0, first_tokens = 0;
    for (; iterations < 400; ++iterations) {
      const bool reads = iterations > 0 && uniform(0, 1) < share;
      const double took = round * uniform(0.95, 1.05) + (reads ? prompt + 0.1 * round : 0);
      times.insert(times.end(), static_cast<std::size_t>(batch), took);
      if (reads) {
        ++first_tokens;
      } else {
        without += took;
        ++plain_iterations;
      }
    }
    const cost::ScrapedRound scraped = cost::scraped_round(window_of(histogram_of(times, iterations, first_tokens)));
    INFO(seed);
    CHECK(scraped.round.batch == batch);
    CHECK(scraped.seconds.lo <= without / plain_iterations * (1 + 1e-12));
    CHECK(scraped.seconds.hi >= without / plain_iterations * (1 - 1e-12));
    CHECK(scraped.round.seconds >= scraped.seconds.lo * (1 - 1e-12));
    CHECK(scraped.round.seconds <= scraped.seconds.hi * (1 + 1e-12));

    // The bounds again, from every time moved to the edges of its bucket.
    std::sort(times.begin(), times.end());
    const auto late = static_cast<std::size_t>(std::min(iterations * batch - 1, first_tokens * batch));
    double shortest = 0, longest = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
      const auto above = std::lower_bound(edges.begin(), edges.end(), times[i]);
      if (i < times.size() - late) {
        shortest += above == edges.begin() ? 0 : *std::prev(above);
      } else {
        longest += *above;
      }
    }
    const double sum = std::accumulate(times.begin(), times.end(), 0.0);
    const double low = std::max(shortest, sum - longest) / static_cast<double>(times.size() - late);
    CHECK(scraped.seconds.lo == Approx(std::min(low, sum / static_cast<double>(times.size()))).epsilon(1e-9));
    const double width = std::log(scraped.seconds.hi / scraped.seconds.lo);
    CHECK(scraped.round.weight == Approx(0.0004 / (0.0004 + width * width / 12)).epsilon(1e-12));
  }
}

TEST_CASE("without prompts the mean between two scrapes is exact") {
  const cost::ScrapedRound scraped = cost::scraped_round(window_of(histogram_of({0.004, 0.006, 0.03}, 3, 0)));
  CHECK(scraped.seconds.lo == scraped.seconds.hi);
  CHECK(scraped.round.seconds == Approx(0.04 / 3).epsilon(1e-15));
  CHECK(scraped.round.weight == 1);
  CHECK(scraped.round.gamma == 0);
}

TEST_CASE("a server that drafted has the mean gamma of its outputs") {
  ServingCounts window = window_of(histogram_of(std::vector<double>(100, 0.02), 50, 0));
  window.rounds = 100;
  window.drafted = 400;
  CHECK(cost::scraped_round(window).round.gamma == 4);
  window.rounds = 50;
  window.drafted = 200;
  CHECK(cost::scraped_round(window).round.gamma == 2);
  window.drafted.reset();
  CHECK_THROWS_WITH(cost::scraped_round(window), Contains("vllm:spec_decode_num_draft_tokens_total is missing"));
}

TEST_CASE("times that tell nothing of rounds are refused by series") {
  RoundTimes times = histogram_of({0.004, 0.005, 0.006, 0.007}, 4, 3);
  CHECK_THROWS_WITH(cost::scraped_round(window_of(times)),
                    Contains("vllm:inter_token_latency_seconds_bucket is up to 3"));
  times.iterations = 0;
  CHECK_THROWS_WITH(cost::scraped_round(window_of(times)),
                    Contains("vllm:iteration_tokens_total_count is 0, but must be above 0"));
  times.seconds = 0;
  CHECK_THROWS_WITH(cost::scraped_round(window_of(times)),
                    Contains("after.prom:7: vllm:inter_token_latency_seconds_sum is 0"));
}
