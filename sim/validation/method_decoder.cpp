#include "sim/validation/method_decoder.hpp"

#include <chrono>

#include "sim/validation/method_timing.hpp"

namespace specdec::validation {

void RoundSums::add(const RoundSums& other) {
  accepted.add(other.accepted);
  judged += other.judged;
  distance += other.distance;
}

void RoundSums::book(double acceptance, bool stayed, double its_distance) {
  accepted.add({acceptance, stayed ? 1.0 : 0.0, acceptance * (1 - acceptance)});
  judged += 1;
  distance += its_distance;
}

MethodContext::MethodContext(const MethodSource& source, const MethodSettings& settings)
    : source_(source), settings_(settings), clock_(settings.timed ? std::make_shared<MethodClock>() : nullptr) {
  if (source.alpha || source.recording) return;
  const sim::OwnedModel target = source.models.target(1);
  vocab_size_ = target->vocab_size();
  target_operations_ = target->operations_per_token();
  draft_operations_ = source.models.draft(1)->operations_per_token();
}

sim::DecodingOptions MethodContext::decoding() const {
  sim::DecodingOptions options;
  options.max_new_tokens = settings_.max_new_tokens;
  options.end_token = settings_.end_token;
  options.standardisation = standardisation();
  return options;
}

void MethodContext::outside_the_clock(const std::function<void()>& work) const {
  const auto start = std::chrono::steady_clock::now();
  work();
  if (clock_) clock_->exclude(seconds_since(start));
}

std::optional<double> MethodContext::operations_ratio() const {
  return target_operations_ > 0 ? std::optional(draft_operations_ / target_operations_) : std::nullopt;
}

MethodRun MethodContext::run_of(sim::Generation text, const RoundSums& rounds, const DraftBench* bench) const {
  MethodRun run{std::move(text.counters), rounds};
  const DraftUse use = bench != nullptr && bench->use ? bench->use(run.counters) : DraftUse{};
  run.weight_reads = static_cast<double>(run.counters.target_calls) + operations_ratio().value_or(0) * use.model_calls +
                     use.other_calls;
  if (settings_.cost) run.cost = cost_of(text.steps, static_cast<double>(run.counters.draft_calls), use);
  run.text = std::move(text.tokens);
  return run;
}

double MethodContext::cost_of(std::span<const sim::Step> steps, double draft_calls, const DraftUse& use) const {
  const core::StepCost& cost = *settings_.cost;
  const core::StepCost without_drafts{0, cost.overhead, cost.verification};
  const double ratio = operations_ratio().value_or(0);
  const double per_operations = ratio > 0 ? cost.c / ratio : 1;
  const double others =
      settings_.c_of_every_call && use.other_calls > 0 ? cost.c * draft_calls : per_operations * use.other_calls;
  double sum = cost.c * use.model_calls + others;
  for (const sim::Step& step : steps) sum += without_drafts(step.drafted);
  return sum;
}

}  // namespace specdec::validation
