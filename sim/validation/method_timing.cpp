#include "sim/validation/method_timing.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/core/quantile.hpp"
#include "analysis/theory/walltime.hpp"
#include "sim/decoding.hpp"

namespace specdec::validation {
namespace {

using Clock = std::chrono::steady_clock;

/// Fewer calls of a size tell no v(n).
constexpr std::size_t least_calls = 3;

bool reads_prompt(const TimedModel::Call& call) { return call.rows == 0; }

/// Of the calls that read a prompt, or of the others.
double sum_of(std::span<const TimedModel::Call> calls, bool of_prompts) {
  double sum = 0;
  for (const TimedModel::Call& call : calls) sum += reads_prompt(call) == of_prompts ? call.seconds : 0.0;
  return sum;
}

template <class Take>
double median_over(std::span<const RunTimes> times, const Take& take) {
  std::vector<double> values;
  for (const RunTimes& run : times) take(run, values);
  return values.empty() ? 0 : core::quantile(values, 0.5);
}

RunTimes time_plain(sim::LanguageModel& target, std::span<const sim::Token> prompt,
                    const sim::DecodingOptions& decoding, const sim::UniformSource& uniforms) {
  TimedModel timed(target);
  const Clock::time_point start = Clock::now();
  const sim::Generation text = sim::decode_autoregressively(timed, prompt, decoding, uniforms);
  const double seconds = seconds_since(start) - sum_of(timed.calls(), true);
  const auto tokens = static_cast<double>(text.tokens.size());
  RunTimes times;
  times.plain_seconds = seconds / tokens;
  times.sampling_seconds = (seconds - sum_of(timed.calls(), false)) / tokens;
  for (const TimedModel::Call& call : timed.calls())
    if (!reads_prompt(call)) times.plain_calls.push_back(call.seconds);
  return times;
}

}  // namespace

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void TimedModel::score(std::span<const sim::Token> block, std::span<double> rows) {
  const Clock::time_point start = Clock::now();
  model_.score(block, rows);
  calls_.push_back({static_cast<std::int64_t>(block.size()), static_cast<std::int64_t>(rows.size()) / vocab_size(),
                    seconds_since(start)});
}

/// Times what is proposed.
class MethodClock::TimedDraft final : public sim::Draft {
 public:
  explicit TimedDraft(std::shared_ptr<sim::Draft> draft) : draft_(std::move(draft)) {}

  std::int64_t vocab_size() const override { return draft_->vocab_size(); }
  std::int64_t max_length() const override { return draft_->max_length(); }
  void begin(std::span<const sim::Token> prompt) override {
    const Clock::time_point start = Clock::now();
    draft_->begin(prompt);
    prompt_seconds = seconds_since(start);
    proposing_seconds = 0;
  }
  void propose(const sim::DraftRequest& request, sim::Proposal& proposal) override {
    const Clock::time_point start = Clock::now();
    draft_->propose(request, proposal);
    proposing_seconds += seconds_since(start);
  }
  void keep(std::int64_t length) override { draft_->keep(length); }
  sim::DraftWork work() const override { return draft_->work(); }

  double prompt_seconds = 0;
  double proposing_seconds = 0;

 private:
  std::shared_ptr<sim::Draft> draft_;
};

DraftBench MethodClock::timed(DraftBench bench) {
  inner_.push_back(bench);
  target_ = std::make_shared<TimedModel>(*bench.target);
  draft_ = std::make_shared<TimedDraft>(bench.draft);
  bench.target = target_;
  bench.draft = draft_;
  return bench;
}

void MethodClock::finish(double total, RunTimes& times) {
  times.seconds = total - std::exchange(excluded_, 0);
  if (!target_) return;
  times.calls.assign(target_->calls().begin(), target_->calls().end());
  times.drafting_seconds = draft_->proposing_seconds;
  times.seconds -= sum_of(times.calls, true) + draft_->prompt_seconds;
  target_->forget_calls();
  times.rest_seconds = (times.seconds - sum_of(times.calls, false) - draft_->proposing_seconds) /
                       static_cast<double>(times.counters.steps);
}

RunTimes time_in_turn(sim::LanguageModel& target, std::span<const sim::Token> prompt,
                      const sim::DecodingOptions& decoding, const sim::UniformSource& uniforms, MethodClock& clock,
                      const std::function<sim::Counters()>& decode) {
  RunTimes times = time_plain(target, prompt, decoding, uniforms);
  const Clock::time_point start = Clock::now();
  times.counters = decode();
  clock.finish(seconds_since(start), times);
  return times;
}

MethodTiming timing_of(std::span<const RunTimes> times, std::int64_t gamma, std::optional<double> alpha,
                       double expected_tokens_per_step) {
  MethodTiming timing;
  const double sampling =
      median_over(times, [](const RunTimes& run, auto& values) { values.push_back(run.sampling_seconds); });
  const double plain = sampling + median_over(times, [](const RunTimes& run, auto& values) {
                         values.insert(values.end(), run.plain_calls.begin(), run.plain_calls.end());
                       });
  timing.plain_step_seconds = plain;
  const double rest = median_over(times, [](const RunTimes& run, auto& values) { values.push_back(run.rest_seconds); });
  timing.overhead = std::max(0.0, rest - sampling) / plain;

  std::map<std::int64_t, std::vector<double>> calls;
  sim::Counters counters;
  double plain_seconds = 0;
  double seconds = 0;
  double drafting_seconds = 0;
  for (const RunTimes& run : times) {
    counters.merge(run.counters);
    for (const TimedModel::Call& call : run.calls)
      if (!reads_prompt(call)) calls[call.tokens].push_back(call.seconds);
    plain_seconds += run.plain_seconds / static_cast<double>(times.size());
    seconds += run.seconds;
    drafting_seconds += run.drafting_seconds;
  }
  timing.c = counters.drafted > 0 ? drafting_seconds / static_cast<double>(counters.drafted) / plain : 0;
  double cost = drafting_seconds / plain + timing.overhead * static_cast<double>(counters.steps);
  for (const auto& [n, its] : calls) {
    const double factor = n == 1 ? 1 : (core::quantile(its, 0.5) + sampling) / plain;
    if (n > 1 && its.size() >= least_calls) timing.verification.push_back({n, factor});
    cost += factor * static_cast<double>(its.size());
  }
  const auto tokens = static_cast<double>(counters.tokens);
  timing.measured = plain_seconds / (seconds / tokens);
  timing.expected = expected_tokens_per_step * static_cast<double>(counters.steps) / cost;
  if (alpha && 10 * counters.drafted >= 9 * gamma * counters.steps)
    timing.theorem = theory::walltime_improvement(core::AcceptanceRate(*alpha), gamma, timing.c);
  return timing;
}

}  // namespace specdec::validation
