#include "sim/serving/serving_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "sim/serving/drawn_acceptance.hpp"
#include "sim/serving/engine_state.hpp"
#include "sim/serving/iteration_scheduler.hpp"
#include "sim/serving/run_measures.hpp"

namespace specdec::sim {
namespace {

/// Share of an iteration's length: a double for so many seconds that its error exceeds this has too few digits left.
constexpr double clock_error = 1e-4;

/// A run from iteration to iteration: its clock, and what requests put out.
class ServingRun {
 public:
  ServingRun(const ServingQuestion& question, const RunOptions& options)
      : question_(question),
        requests_(question.requests),
        outcomes_(requests_.size()),
        acceptance_(question, options.shared ? options.shared->draws : nullptr),
        measures_(question, options.finds_gaps),
        state_(question, outcomes_),
        scheduler_(question, acceptance_, outcomes_, state_),
        now_(question.clients ? 0 : requests_.front().arrival_seconds) {
    if (options.decoding == Decoding::in_step && DecodingInStep::suits(question, running_.request.size())) {
      state_.in_step.emplace(question, measures_.counted_requests(), acceptance_,
                             options.shared ? options.shared->rounds : nullptr);
    }
  }

  ServingResult run() {
    queue_.take_arrivals(now_);
    while (served_ < requests_.size()) {
      if (state_.count_in_system() == 0) {
        now_ = queue_.next_arrival();
        queue_.take_arrivals(now_);
      }
      scheduler_.schedule(now_);
      // If all running requests gave up their blocks, waiting ones are admitted now.
      if (state_.iteration.batch == 0) continue;
      pass_time();
      put_out_tokens();
    }
    return result();
  }

 private:
  using Index = std::size_t;

  /// Tokens of an iteration; outputs of counted requests whose gap is its length; whether requests may end.
  struct PutOut {
    std::int64_t tokens = 0, round_tokens = 0;
    std::int64_t gaps = 0;
    bool some_end = false;
  };

  /// The iteration takes place, and arrivals during it wait.
  void pass_time() {
    const double duration = question_.cost->seconds(state_.iteration.work);
    if (!(0 < duration && duration <= std::numeric_limits<double>::max())) {
      throw std::domain_error(fmt::format(
          "simulate_serving: the cost of an iteration is {} seconds, but must be finite and above 0", duration));
    }
    began_ = now_;
    now_ = began_ + duration;
    if (!(std::abs(now_ - began_ - duration) <= clock_error * duration)) {
      throw std::domain_error(fmt::format(
          "simulate_serving: requests are too far apart to time them: {:.4g} seconds after 0 the clock cannot "
          "tell an iteration of {:.4g} seconds",
          began_, duration));
    }
    measures_.pass(began_, now_, duration, {state_.iteration.decoding, queue_.waiting(), state_.count_in_system()});
    const std::size_t before = queue_.arrived();
    queue_.take_arrivals(now_);
    for (std::size_t i = before; i < queue_.arrived(); ++i) measures_.arrive(queue_.arrival_of(i), now_);
  }

  void put_out_tokens() {
    PutOut all;
    for (Index i = 0; i < running_.size; ++i) {
      if (running_.scheduled[i] > 0) put_out(i, all);
    }
    if (state_.in_step) put_out_in_step(all);
    measures_.add_gaps(now_ - began_, all.gaps);
    measures_.put_out({.round_tokens = all.round_tokens,
                       .tokens = all.tokens,
                       .rounds = state_.iteration.decoding,
                       .verified = state_.iteration.verified});
    if (all.some_end) end_requests();
    if (state_.in_step && question_.clients) queue_.take_arrivals(now_);
  }

  /// Puts out the tokens of a running request for the positions that were scheduled.
  void put_out(Index i, PutOut& all) {
    const std::int64_t positions = running_.scheduled[i];
    if (running_.prompt_left[i] > 0) {
      running_.computed[i] += positions;
      running_.prompt_left[i] -= positions;
      if (running_.prompt_left[i] > 0) return;
      if (running_.put_out[i]++ == 0) {
        note_first_token(i);
      } else {
        all.gaps += note_output(i);
      }
      ++all.tokens;
    } else {
      const std::int64_t accepted = positions > 1 ? acceptance_.accepted(running_, i, positions - 1) : 0;
      const std::int64_t emitted = std::min(accepted + 1, running_.wanted[i] - running_.put_out[i]);
      running_.fully_accepted[i] = accepted > 0 && accepted == state_.iteration.gamma;
      if (question_.engine.verification_budget) state_.draft_budget.count(i, positions - 1, accepted);
      running_.computed[i] += emitted;
      running_.put_out[i] += emitted;
      all.gaps += note_output(i);
      all.tokens += emitted;
      all.round_tokens += emitted;
    }
    all.some_end = all.some_end || running_.put_out[i] == running_.wanted[i] || state_.in_step;
  }

  void put_out_in_step(PutOut& all) {
    all.gaps += state_.in_step->counted();
    const std::int64_t emitted = state_.in_step->pass([this](std::size_t request, std::int64_t blocks) {
      end_request(request, requests_[request].output_tokens, blocks);
    });
    all.tokens += emitted;
    all.round_tokens += emitted;
  }

  double since_sent(std::size_t request) const { return now_ - queue_.arrival_of(request) + question_.outside_seconds; }

  void note_first_token(Index i) {
    const std::size_t request = running_.request[i];
    outcomes_[request].first_token_seconds = since_sent(request);
    running_.last_output[i] = now_;
  }

  /// 1 if a counted request's gap is the length of this iteration; another length is noted at once.
  std::int64_t note_output(Index i) {
    const double last = std::exchange(running_.last_output[i], now_);
    if (!measures_.counted_requests().contains(running_.request[i])) return 0;
    if (last == began_) return 1;
    measures_.add_gaps(now_ - last, 1);
    return 0;
  }

  /// Those that have put out all, and, where rounds go in step, those that go on in step.
  void end_requests() {
    Index kept = 0;
    for (Index i = 0; i < running_.size; ++i) {
      if (running_.put_out[i] == running_.wanted[i]) {
        end_request(running_.request[i], running_.put_out[i], running_.slots[i] / state_.blocks.tokens_per_block());
      } else if (state_.in_step && running_.prompt_left[i] == 0) {
        state_.in_step->begin(running_.request[i]);
      } else {
        if (kept != i) move(i, kept);
        ++kept;
      }
    }
    running_.size = kept;
    if (question_.clients) queue_.take_arrivals(now_);
  }

  void move(Index from, Index to) {
    running_.move(from, to);
    if (question_.engine.verification_budget) state_.draft_budget.move(from, to);
  }

  void end_request(std::size_t request, std::int64_t put_out, std::int64_t blocks) {
    ServedRequest& served = outcomes_[request];
    served.output_tokens = put_out;
    served.last_token_seconds = since_sent(request);
    if (question_.clients) send_next();
    state_.let_go(request, blocks);
    ++served_;
  }

  /// A client whose request has ended sends the next one.
  void send_next() {
    const double arrival = now_ + question_.outside_seconds;
    if (const auto request = queue_.send(arrival)) measures_.send(*request, arrival);
  }

  ServingResult result() {
    ServingResult result;
    result.requests = std::move(outcomes_);
    for (const ServedRequest& request : result.requests) result.preemptions += request.preemptions;
    result.peak_blocks = state_.blocks.peak();
    measures_.fill(result, now_, question_.outside_seconds);
    return result;
  }

  const ServingQuestion& question_;
  const std::vector<SimulatedRequest>& requests_;
  /// [request]
  std::vector<ServedRequest> outcomes_;
  DrawnAcceptance acceptance_;
  RunMeasures measures_;
  EngineState state_;
  RequestQueue& queue_ = state_.queue;
  RunningRequests& running_ = state_.running;
  IterationScheduler scheduler_;
  std::size_t served_ = 0;
  double now_;
  /// When the current iteration began.
  double began_ = 0;
};

}  // namespace

ServingResult run_serving(const ServingQuestion& question, const RunOptions& options) {
  return ServingRun(question, options).run();
}

}  // namespace specdec::sim
