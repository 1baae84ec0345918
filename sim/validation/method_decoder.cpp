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
  vocab_size_ = target.ref().vocab_size();
  target_operations_ = target.ref().operations_per_token();
  draft_operations_ = source.models.draft(1).ref().operations_per_token();
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
  if (clock_) clock_->exclude(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

void MethodContext::price(MethodRun& run, std::span<const sim::Step> steps, const DraftUse& use) const {
  const double ratio = target_operations_ > 0 ? draft_operations_ / target_operations_ : 0;
  run.weight_reads = static_cast<double>(run.counters.target_calls) + ratio * use.model_calls + use.other_calls;
  if (!settings_.cost) return;
  const core::StepCost& cost = *settings_.cost;
  const core::StepCost without_drafts{0, cost.overhead, cost.verification};
  const double per_operations = ratio > 0 ? cost.c / ratio : 1;
  const double others = settings_.c_of_every_call && use.other_calls > 0
                            ? cost.c * static_cast<double>(run.counters.draft_calls)
                            : per_operations * use.other_calls;
  run.cost = cost.c * use.model_calls + others;
  for (const sim::Step& step : steps) run.cost += without_drafts(step.drafted);
}

}  // namespace specdec::validation
