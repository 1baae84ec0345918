#include "sim/serving/serving_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

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
  ServingRun(const ServingQuestion& question, RequestRounds& rounds, const RunOptions& options)
      : question_(question),
        requests_(question.requests),
        outcomes_(requests_.size()),
        rounds_(rounds),
        measures_(question, options.finds_gaps),
        state_(question, outcomes_),
        scheduler_(question, rounds, outcomes_, state_),
        now_(question.clients ? 0 : requests_.front().arrival_seconds) {
    if (options.decoding == Decoding::in_step && DecodingInStep::suits(question, EngineState::most_running(question)))
      state_.in_step.emplace(question, measures_.counted_requests(), rounds);
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
    std::int64_t tokens = 0, gaps = 0;
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
    measures_.pass(began_, now_, state_.iteration.decoding);
    queue_.take_arrivals(now_);
  }

  void put_out_tokens() {
    PutOut all;
    for (Index i = 0; i < running_.size(); ++i) {
      if (running_[i].scheduled > 0) put_out(i, all);
    }
    if (state_.in_step) put_out_in_step(all);
    measures_.add_gaps(now_ - began_, all.gaps);
    measures_.put_out(all.tokens);
    if (all.some_end) end_requests();
    if (state_.in_step && question_.clients) queue_.take_arrivals(now_);
  }

  /// Puts out the tokens of a running request for the positions that were scheduled.
  void put_out(Index i, PutOut& all) {
    const std::int64_t positions = running_[i].scheduled;
    if (running_[i].prompt_left > 0) {
      running_[i].computed += positions;
      running_[i].prompt_left -= positions;
      if (running_[i].prompt_left > 0) return;
      if (running_[i].put_out++ == 0) {
        note_first_token(i);
      } else {
        all.gaps += note_output(i);
      }
      ++all.tokens;
    } else {
      const std::int64_t accepted = positions > 1 ? rounds_.accepted(running_[i], positions - 1) : 0;
      const std::int64_t emitted = std::min(accepted + 1, running_[i].wanted - running_[i].put_out);
      running_[i].fully_accepted = accepted > 0 && accepted == state_.iteration.gamma;
      if (question_.engine.verification_budget) state_.draft_budget.count(i, positions - 1, accepted);
      running_[i].computed += emitted;
      running_[i].put_out += emitted;
      all.gaps += note_output(i);
      all.tokens += emitted;
    }
    all.some_end = all.some_end || running_[i].put_out == running_[i].wanted || state_.in_step;
  }

  void put_out_in_step(PutOut& all) {
    all.gaps += state_.in_step->counted();
    all.tokens += state_.in_step->pass([this](std::size_t request, std::int64_t blocks) {
      end_request(request, requests_[request].output_tokens, blocks);
    });
  }

  double since_sent(std::size_t request) const { return now_ - queue_.arrival_of(request) + question_.outside_seconds; }

  void note_first_token(Index i) {
    const std::size_t request = running_[i].request;
    outcomes_[request].first_token_seconds = since_sent(request);
    running_[i].last_output = now_;
  }

  /// 1 if a counted request's gap is the length of this iteration; another length is noted at once.
  std::int64_t note_output(Index i) {
    const double last = std::exchange(running_[i].last_output, now_);
    if (!measures_.counted_requests().contains(running_[i].request)) return 0;
    if (last == began_) return 1;
    measures_.add_gaps(now_ - last, 1);
    return 0;
  }

  /// Those that have put out all, and, where rounds go in step, those that go on in step.
  void end_requests() {
    Index kept = 0;
    for (Index i = 0; i < running_.size(); ++i) {
      if (running_[i].put_out == running_[i].wanted) {
        end_request(running_[i].request, running_[i].put_out, running_[i].slots / state_.blocks.tokens_per_block());
      } else if (state_.in_step && running_[i].prompt_left == 0) {
        state_.in_step->begin(running_[i].request);
      } else {
        if (kept != i) move(i, kept);
        ++kept;
      }
    }
    running_.resize(kept);
    if (question_.clients) queue_.take_arrivals(now_);
  }

  void move(Index from, Index to) {
    running_[to] = running_[from];
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
    measures_.fill(result, now_);
    return result;
  }

  const ServingQuestion& question_;
  const std::vector<SimulatedRequest>& requests_;
  /// [request]
  std::vector<ServedRequest> outcomes_;
  RequestRounds& rounds_;
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

ServingResult run_serving(const ServingQuestion& question, RequestRounds& rounds, const RunOptions& options) {
  return ServingRun(question, rounds, options).run();
}

}  // namespace specdec::sim
