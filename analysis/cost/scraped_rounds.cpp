#include "analysis/cost/scraped_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace specdec::cost {

ScrapedRound scraped_round(const traces::ServingCounts& window, double usual_error) {
  const traces::RoundTimes& times = *window.round_times;
  const double all = times.count;
  if (!(times.seconds > 0)) {
    throw window.refusal("vllm:inter_token_latency_seconds_sum", fmt::format("{}", times.seconds),
                         fmt::format("above 0 where {} times were counted", all));
  }
  if (!(times.iterations > 0)) {
    throw window.refusal("vllm:iteration_tokens_total_count", fmt::format("{}", times.iterations),
                         fmt::format("above 0 where {} times were counted", all));
  }
  ScrapedRound scraped;
  ObservedRound& round = scraped.round;
  round.name = window.place();
  round.batch = std::max(1.0, all / times.iterations);
  const double rounds = window.rounds.value_or(0);
  if (rounds > 0) {
    if (!window.drafted) throw window.refusal("vllm:spec_decode_num_draft_tokens_total", "missing", "given");
    round.gamma = *window.drafted / std::max(all, rounds);
  }
  const double high = times.seconds / all;
  const double late = std::min(all - 1, times.first_tokens * round.batch);
  const std::vector<traces::TimesBetween> buckets = times.buckets();
  double shortest = 0, left = all - late;
  for (const traces::TimesBetween& bucket : buckets) {
    const double taken = std::min(left, bucket.count);
    shortest += taken * bucket.low;
    left -= taken;
  }
  double without_longest = times.seconds;
  left = late;
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend() && left > 0; ++bucket) {
    const double taken = std::min(left, bucket->count);
    without_longest -= taken * bucket->high;
    left -= taken;
  }
  const double low = std::max(shortest, without_longest) / (all - late);
  if (!(low > 0)) {
    throw window.refusal("vllm:inter_token_latency_seconds_bucket",
                         fmt::format("up to {} outputs in iterations with prompts", late),
                         "fewer, so that the buckets tell how long a round without prompts takes: scrape a server with "
                         "longer answers or fewer requests");
  }
  scraped.seconds = {std::min(low, high), high};
  const double width = std::log(scraped.seconds.hi / scraped.seconds.lo);
  round.seconds = std::sqrt(scraped.seconds.lo * scraped.seconds.hi);
  round.weight = usual_error * usual_error / (usual_error * usual_error + width * width / 12);
  return scraped;
}

std::function<Range(const RoundPoint&)> open_factors(std::vector<ScrapedRound> rounds) {
  return [windows = std::move(rounds)](const RoundPoint& point) {
    double weights = 0, widths = 0;
    for (const ScrapedRound& window : windows) {
      if ((window.round.gamma > 0) != (point.gamma > 0)) continue;
      const double distance = std::log(point.batch / window.round.batch);
      // Never 0, however far all windows are.
      const double weight = window.round.weight * std::max(1e-100, std::exp(-distance * distance / 2));
      weights += weight;
      widths += weight * std::log(window.seconds.hi / window.seconds.lo);
    }
    const double most = weights > 0 ? std::exp(widths / weights / 2) : 1;
    return Range{1 / most, most};
  };
}

}  // namespace specdec::cost
