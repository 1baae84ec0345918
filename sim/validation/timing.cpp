#include "sim/validation/timing.hpp"

#include <algorithm>

#include "analysis/core/quantile.hpp"
#include "sim/validation/method_timing.hpp"

namespace specdec::validation {
namespace {

using Clock = std::chrono::steady_clock;

double median(const std::vector<double>& values) { return core::quantile(values, 0.5); }

bool reads_prompt(const TimedModel::Call& call) { return call.rows == 0; }

void collect(const TimedModel& model, std::int64_t tokens, std::vector<double>& seconds) {
  for (const TimedModel::Call& call : model.calls())
    if (!reads_prompt(call) && call.tokens == tokens) seconds.push_back(call.seconds);
}

}  // namespace

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double prompt_seconds(std::span<const TimedModel::Call> calls) {
  double sum = 0;
  for (const TimedModel::Call& call : calls) sum += reads_prompt(call) ? call.seconds : 0.0;
  return sum;
}

double scoring_seconds(std::span<const TimedModel::Call> calls) {
  double sum = 0;
  for (const TimedModel::Call& call : calls) sum += reads_prompt(call) ? 0.0 : call.seconds;
  return sum;
}

void TimedModel::score(std::span<const sim::Token> block, std::span<double> rows) {
  const Clock::time_point start = Clock::now();
  model_.score(block, rows);
  calls_.push_back({static_cast<std::int64_t>(block.size()), static_cast<std::int64_t>(rows.size()) / vocab_size(),
                    seconds_since(start)});
}

Timing measure_timing(const sim::ModelPair& models, std::int64_t threads,
                      std::span<const std::span<const sim::Token>> prompts, const sim::DecodingOptions& decoding,
                      std::uint64_t seed, std::uint64_t first_sequence) {
  const sim::OwnedModel target = models.target(threads);
  const sim::OwnedModel draft = models.draft(threads);
  std::vector<double> plain_calls;
  std::vector<double> plain_overheads;
  std::vector<double> draft_calls;
  std::vector<double> verify_calls;
  std::vector<double> overheads;
  std::vector<double> speedups;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const sim::RandomStream plain_stream(seed, first_sequence + 2 * i);
    const RunTimes plain = time_plain(*target, prompts[i], decoding, plain_stream);
    plain_overheads.push_back(plain.sampling_seconds);
    plain_calls.insert(plain_calls.end(), plain.plain_calls.begin(), plain.plain_calls.end());

    const sim::RandomStream stream(seed, first_sequence + 2 * i + 1);
    TimedModel timed_target(*target);
    TimedModel timed_draft(*draft);
    const Clock::time_point start = Clock::now();
    const sim::Generation fast = sim::decode_speculatively(timed_target, timed_draft, prompts[i], decoding, stream);
    const double total = seconds_since(start);
    const double fast_seconds = total - prompt_seconds(timed_target.calls()) - prompt_seconds(timed_draft.calls());
    overheads.push_back((fast_seconds - scoring_seconds(timed_target.calls()) - scoring_seconds(timed_draft.calls())) /
                        static_cast<double>(fast.counters.steps));
    collect(timed_draft, 1, draft_calls);
    collect(timed_target, decoding.gamma + 1, verify_calls);
    speedups.push_back(plain.plain_seconds / (fast_seconds / static_cast<double>(fast.tokens.size())));
  }
  Timing timing;
  timing.sampling_seconds = median(plain_overheads);
  timing.target_step_seconds = median(plain_calls) + timing.sampling_seconds;
  timing.draft_step_seconds = median(draft_calls) + timing.sampling_seconds;
  timing.verify_seconds = median(verify_calls) + timing.sampling_seconds;
  const double samplings = static_cast<double>(decoding.gamma + 1) * timing.sampling_seconds;
  timing.overhead_seconds = std::max(0.0, median(overheads) - samplings);
  timing.speedup = median(speedups);
  return timing;
}

}  // namespace specdec::validation
