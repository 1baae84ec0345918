#include "sim/serving/iteration_scheduler.hpp"

#include <algorithm>

namespace specdec::sim {

void IterationScheduler::schedule(double now) {
  if (state_.in_step && !stays_in_step()) {
    // From now on every sequence is taken by itself.
    state_.in_step->move_to(running_, state_.queue.admitted(), blocks_, now);
    state_.in_step.reset();
  }
  const std::int64_t gamma =
      gamma_at(engine_.schedule, static_cast<double>(std::max<std::int64_t>(1, iteration_.batch)));
  iteration_ = {.work = {.gamma = gamma}, .gamma = gamma, .budget = engine_.max_num_batched_tokens};
  const std::size_t given_up_before = state_.queue.given_up().size();
  const bool prompts_alone = engine_.prefill_first && has_prompts();
  if (state_.in_step) {
    iteration_.take_those_in_step(*state_.in_step);
    blocks_.take(state_.in_step->round().blocks());
  }
  schedule_running(prompts_alone);
  if (state_.queue.given_up().size() == given_up_before) admit();
  if (iteration_.decoding > 0)
    iteration_.work.full_accepts =
        static_cast<double>(iteration_.fully_accepted) / static_cast<double>(iteration_.decoding);
}

/// Whether the coming iteration has positions and blocks for all that decode and the prompt that is being computed.
bool IterationScheduler::stays_in_step() const {
  const std::int64_t positions = static_cast<std::int64_t>(state_.in_step->size()) * (largest_gamma_ + 1);
  if (positions > engine_.max_num_batched_tokens) return false;
  std::int64_t blocks = state_.in_step->round().blocks();
  for (Index i = 0; i < running_.size(); ++i)
    blocks += blocks_wanted(i, std::min(running_[i].prompt_left, engine_.max_num_batched_tokens - positions));
  return blocks <= blocks_.free();
}

/// In order of arrival, as far as positions and blocks go.
void IterationScheduler::schedule_running(bool prompts_alone) {
  const bool budgeted = engine_.verification_budget && iteration_.gamma > 0 && !prompts_alone;
  if (budgeted) choose_verified();
  Index i = 0;
  for (; i < running_.size() && iteration_.budget > 0; ++i) {
    const std::int64_t prompt = running_[i].prompt_left;
    if (prompts_alone && prompt == 0) {
      running_[i].scheduled = 0;
      continue;
    }
    const std::int64_t wanted = prompt > 0 ? prompt : budgeted ? running_[i].scheduled : iteration_.gamma + 1;
    const std::int64_t positions = std::min(wanted, iteration_.budget);
    if (!make_room(i, blocks_wanted(i, positions))) break;
    take(i, positions, wanted);
  }
  for (; i < running_.size(); ++i) running_[i].scheduled = 0;
}

/// The positions that each request that decodes is to take, into those scheduled.
void IterationScheduler::choose_verified() {
  std::vector<Index> deciding;
  cost::Iteration rounds;
  rounds.gamma = iteration_.gamma;
  for (Index i = 0; i < running_.size(); ++i) {
    if (running_[i].prompt_left > 0) continue;
    deciding.push_back(i);
    rounds.context_tokens += static_cast<double>(running_[i].computed);
  }
  if (deciding.empty()) return;
  rounds.sequences = static_cast<double>(deciding.size());
  std::vector<double> seconds;
  for (std::int64_t drafts = 0; drafts <= iteration_.gamma; ++drafts) {
    rounds.verified = static_cast<double>(drafts) * rounds.sequences;
    seconds.push_back(question_.cost->seconds(rounds));
  }
  const std::vector<std::int64_t> verified = state_.draft_budget.verified(deciding, iteration_.gamma, seconds);
  for (Index d = 0; d < deciding.size(); ++d) running_[deciding[d]].scheduled = verified[d] + 1;
  iteration_.work.verified = 0;
}

/// Blocks beside its own that a running request needs for so many positions.
std::int64_t IterationScheduler::blocks_wanted(Index i, std::int64_t positions) const {
  const std::int64_t needed = running_[i].computed + positions + largest_gamma_;
  return needed <= running_[i].slots ? 0 : blocks_.blocks_for(needed) - running_[i].slots / blocks_.tokens_per_block();
}

/// Gives a running request blocks, taking those of the last ones if there are not enough; false if it had to give up
/// its own.
bool IterationScheduler::make_room(Index i, std::int64_t wanted) {
  if (wanted == 0) return true;
  while (wanted > blocks_.free()) {
    give_up_last();
    if (running_.size() == i) return false;
  }
  blocks_.take(wanted);
  running_[i].slots += wanted * blocks_.tokens_per_block();
  return true;
}

void IterationScheduler::give_up_last() {
  const RunningRequest last = running_.back();
  running_.pop_back();
  state_.let_go(last.request, last.slots / blocks_.tokens_per_block());
  outcomes_[last.request].output_tokens = last.put_out;
  ++outcomes_[last.request].preemptions;
  state_.queue.give_up({last.request, last.last_output});
}

/// Adds positions of a running request to the iteration, of those that it wants.
void IterationScheduler::take(Index i, std::int64_t positions, std::int64_t wanted) {
  running_[i].scheduled = positions;
  if (running_[i].prompt_left > 0) {
    iteration_.take_prompt(positions, running_[i].computed);
  } else {
    iteration_.take_round(positions, wanted, running_[i].computed, running_[i].fully_accepted);
  }
}

IterationScheduler::Admission IterationScheduler::next_admission() const {
  Admission next;
  const std::vector<GivenUp>& given_up = state_.queue.given_up();
  const bool again = !given_up.empty();
  next.request = again ? given_up.back().request : state_.queue.admitted();
  next.last_output = again ? given_up.back().last_output : 0;
  next.put_out = outcomes_[next.request].output_tokens;
  next.tokens = requests_[next.request].prompt_tokens + next.put_out;
  next.found = found_in_cache(requests_[next.request], again);
  next.positions = std::min(next.tokens - next.found, iteration_.budget);
  next.blocks = blocks_.blocks_for(next.found + next.positions + largest_gamma_);
  // Where rounds wait for a prompt they free no block meanwhile: what it takes to the end must be there.
  const std::int64_t ahead = engine_.prefill_first ? largest_gamma_ : 0;
  next.of_others = state_.prefixes.blocks_of_others(next.request);
  next.fits = std::max(next.blocks, blocks_.blocks_for(next.tokens + ahead)) - next.of_others <= blocks_.free();
  return next;
}

bool IterationScheduler::may_admit() const {
  return state_.queue.waiting() > 0 && iteration_.budget > 0 &&
         state_.count_running() < static_cast<std::size_t>(engine_.max_num_seqs);
}

/// Whether a prompt is being computed, or one that waits finds room.
bool IterationScheduler::has_prompts() const {
  for (Index i = 0; i < running_.size(); ++i) {
    if (running_[i].prompt_left > 0) return true;
  }
  return may_admit() && next_admission().fits;
}

void IterationScheduler::admit() {
  while (may_admit()) {
    const Admission next = next_admission();
    if (!next.fits) break;
    state_.queue.admit();
    begin(next);
  }
}

void IterationScheduler::begin(const Admission& admitted) {
  const Index i = running_.size();
  running_.push_back({.request = admitted.request,
                      .law = rounds_.law_of(admitted.request),
                      .computed = admitted.found,
                      .prompt_left = admitted.tokens - admitted.found,
                      .put_out = admitted.put_out,
                      .wanted = requests_[admitted.request].output_tokens,
                      .slots = admitted.blocks * blocks_.tokens_per_block(),
                      .last_output = admitted.last_output});
  if (engine_.verification_budget) state_.draft_budget.forget(i);
  blocks_.take(admitted.blocks - admitted.of_others);
  state_.prefixes.hold(admitted.request);
  take(i, admitted.positions, admitted.positions);
}

std::int64_t IterationScheduler::found_in_cache(const SimulatedRequest& asked, bool again) const {
  if (engine_.decode_only && !again) return asked.prompt_tokens - 1;
  return found_tokens(engine_, asked);
}

}  // namespace specdec::sim
