#include "sim/serving/serving_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "sim/serving/draft_budget.hpp"

namespace specdec::sim {
namespace {

/// Share of an iteration's length: a double for so many seconds that its error exceeds this has too few digits left.
constexpr double clock_error = 1e-4;

/// The time span that the run counts.
class CountedTime {
 public:
  CountedTime(double begin, double end) : begin_(begin), end_(end) {}

  double begin() const { return begin_; }
  double end() const { return end_; }
  void begin_at(double time) { begin_ = time; }
  void end_at(double time) { end_ = time; }
  /// The counted seconds of a stretch of time.
  double seconds_of(double from, double to) const { return std::max(0.0, std::min(to, end_) - std::max(from, begin_)); }
  bool counts(double time) const { return begin_ < time && time <= end_; }

 private:
  double begin_;
  double end_;
};

/// How often each length of a gap occurred; lengths that agree in their first 15 bits are one.
class GapHistogram {
 public:
  void add(double seconds, std::int64_t count) {
    counts_[std::bit_cast<std::uint64_t>(seconds) >> dropped_bits] += count;
  }

  std::vector<GapCount> sorted() const {
    std::vector<GapCount> gaps;
    for (const auto& [key, count] : counts_) {
      const std::uint64_t middle = key << dropped_bits | std::uint64_t{1} << (dropped_bits - 1);
      gaps.push_back({std::bit_cast<double>(middle), count});
    }
    std::sort(gaps.begin(), gaps.end(), [](const GapCount& a, const GapCount& b) { return a.seconds < b.seconds; });
    return gaps;
  }

 private:
  static constexpr unsigned dropped_bits = 38;
  std::unordered_map<std::uint64_t, std::int64_t> counts_;
};

/// Running requests, in order of arrival, one array per property; never longer than the size it was made for.
struct RunningRequests {
  explicit RunningRequests(std::size_t most)
      : request(most),
        law(most),
        computed(most),
        prompt_left(most),
        put_out(most),
        wanted(most),
        slots(most),
        scheduled(most),
        last_output(most),
        fully_accepted(most) {}

  std::size_t size = 0;
  std::vector<std::size_t> request;
  /// The stretch of its law that holds at its context, or one before it.
  std::vector<std::size_t> law;
  /// Tokens in its cache, and those to come before it emits its next token; 0 if it decodes.
  std::vector<std::int64_t> computed, prompt_left;
  /// Tokens that it has emitted, and that were requested.
  std::vector<std::int64_t> put_out, wanted;
  /// Tokens that its blocks can hold.
  std::vector<std::int64_t> slots;
  /// Positions in the current iteration.
  std::vector<std::int64_t> scheduled;
  /// When it last emitted tokens.
  std::vector<double> last_output;
  /// 1 if its last round was fully accepted.
  std::vector<std::uint8_t> fully_accepted;

  void move(std::size_t from, std::size_t to) {
    request[to] = request[from];
    law[to] = law[from];
    computed[to] = computed[from];
    prompt_left[to] = prompt_left[from];
    put_out[to] = put_out[from];
    wanted[to] = wanted[from];
    slots[to] = slots[from];
    scheduled[to] = scheduled[from];
    last_output[to] = last_output[from];
    fully_accepted[to] = fully_accepted[from];
  }
};

std::size_t first_counted_of(const ServingQuestion& question) {
  return static_cast<std::size_t>(question.warm_up_share * static_cast<double>(question.requests.size()));
}

CountedTime counted_time_of(const ServingQuestion& question) {
  const std::size_t first = first_counted_of(question);
  constexpr double unknown = std::numeric_limits<double>::infinity();
  if (question.clients) {
    const auto clients = static_cast<std::size_t>(*question.clients);
    const bool from_the_start = first < clients || question.requests.size() - first <= clients;
    return {from_the_start ? 0 : unknown, unknown};
  }
  const double begin = question.requests[first].arrival_seconds;
  const double end = question.requests[question.requests.size() - 1 - first].arrival_seconds;
  if (begin < end) return {begin, end};
  return {question.requests.front().arrival_seconds, unknown};
}

class ServingRun {
 public:
  ServingRun(const ServingQuestion& question, const RunOptions& options)
      : question_(question),
        engine_(question.engine),
        requests_(question.requests),
        options_(options),
        checks_(options.checks == InvariantChecks::yes),
        counted_time_(counted_time_of(question)),
        largest_gamma_(largest_gamma_of(engine_)),
        laws_(question.acceptance, largest_gamma_),
        running_(std::min(requests_.size(), static_cast<std::size_t>(engine_.max_num_seqs))),
        draft_budget_(largest_gamma_, engine_.verification_budget ? running_.request.size() : 0),
        free_blocks_(engine_.cache_blocks),
        now_(question.clients ? 0 : requests_.front().arrival_seconds) {
    send_first();
    result_.first_counted = first_counted_of(question);
    result_.counted_requests = requests_.size() - 2 * result_.first_counted;
    if (!options.shared) own_draws_.emplace(requests_, question.seed, 0);
    if (options.decoding == Decoding::in_step && may_go_in_step()) begin_in_step();
  }

  ServingResult run() {
    take_arrivals();
    while (served_ < requests_.size()) {
      if (in_system() == 0) {
        now_ = arrival_of(arrived_);
        take_arrivals();
      }
      if (in_step_ && !stays_in_step()) leave_step();
      schedule();
      if (checks_) check_iteration();
      if (batch_ == 0) continue;  // all running requests gave up their blocks: waiting ones are admitted now
      pass_time();
      put_out_tokens();
    }
    finish();
    return std::move(result_);
  }

 private:
  using Index = std::size_t;

  /// A request that gave up its blocks.
  struct GivenUp {
    std::size_t request = 0;
    double last_output = 0;
  };

  double& arrival_of(std::size_t request) { return result_.requests[request].arrival_seconds; }
  double arrival_of(std::size_t request) const { return result_.requests[request].arrival_seconds; }

  /// Those that do not wait for another one's end.
  void send_first() {
    result_.requests.resize(requests_.size());
    sent_ = requests_.size();
    if (question_.clients) {
      sent_ = std::min(sent_, static_cast<std::size_t>(*question_.clients));
      return;
    }
    for (std::size_t i = 0; i < sent_; ++i) arrival_of(i) = requests_[i].arrival_seconds;
  }

  /// A client whose request has ended sends the next one.
  void send_next() {
    if (sent_ == requests_.size()) return;
    const double arrival = now_ + question_.outside_seconds;
    const std::size_t first = result_.first_counted;
    if (sent_ == first) counted_time_.begin_at(arrival);
    if (sent_ == requests_.size() - 1 - first && arrival > counted_time_.begin()) counted_time_.end_at(arrival);
    arrival_of(sent_++) = arrival;
  }

  std::size_t waiting() const { return arrived_ - next_ + given_up_.size(); }
  /// Sequences that are in step, and all that run.
  std::size_t in_step() const { return in_step_ ? in_step_->size() : 0; }
  std::size_t running() const { return running_.size + in_step(); }
  std::size_t in_system() const { return waiting() + running(); }

  RequestDraws& draws() { return options_.shared ? *options_.shared->draws : *own_draws_; }
  RequestRounds& rounds() { return options_.shared ? *options_.shared->rounds : *own_rounds_; }

  /// Whether rounds of a request depend on nothing else, and sums of them have room.
  bool may_go_in_step() const {
    constexpr std::int64_t most_rounds = 1 << 20;
    const bool one_gamma = std::all_of(engine_.schedule.begin(), engine_.schedule.end(),
                                       [this](const GammaFrom& stretch) { return stretch.gamma == largest_gamma_; });
    return one_gamma && !engine_.prefill_first && !engine_.verification_budget &&
           running_.request.size() <= RoundSum::most_sequences && longest_output() <= most_rounds;
  }

  std::int64_t longest_output() const {
    std::int64_t longest = 0;
    for (const SimulatedRequest& request : requests_) longest = std::max(longest, request.output_tokens);
    return longest;
  }

  void begin_in_step() {
    in_step_.emplace(requests_.size(), static_cast<std::size_t>(longest_output()));
    if (!options_.shared)
      own_rounds_.emplace(requests_, question_.acceptance, largest_gamma_, engine_.block_size, *own_draws_, 0);
  }

  /// Whether the coming iteration has positions and blocks for all that decode and the prompt that is being computed.
  bool stays_in_step() const {
    const std::int64_t positions = static_cast<std::int64_t>(in_step_->size()) * (largest_gamma_ + 1);
    if (positions > engine_.max_num_batched_tokens) return false;
    std::int64_t blocks = in_step_->round().blocks();
    for (Index i = 0; i < running_.size; ++i)
      blocks += blocks_wanted(i, std::min(running_.prompt_left[i], engine_.max_num_batched_tokens - positions));
    return blocks <= free_blocks_;
  }

  /// From now on every sequence is taken by itself.
  void leave_step() {
    const SequencesInStep decoding = std::move(*in_step_);
    in_step_.reset();
    // Prompts came last.
    for (Index i = running_.size; i-- > 0;) running_.move(i, decoding.size() + i);
    running_.size += decoding.size();
    Index place = 0;
    for (std::size_t request = 0; request < next_; ++request) {
      if (const auto since = decoding.rounds_of(request)) continue_alone(request, *since, place++);
    }
  }

  /// A sequence that was in step so many rounds.
  void continue_alone(std::size_t request, std::size_t since, Index place) {
    const SimulatedRequest& asked = requests_[request];
    std::int64_t emitted = 0, blocks = blocks_for(asked.prompt_tokens + largest_gamma_);
    const std::span<const RoundSum> all = rounds().of(request);
    for (const RoundSum& round : all.first(since)) {
      emitted += round.emitted();
      blocks += round.blocks();
    }
    running_.request[place] = request;
    running_.computed[place] = asked.prompt_tokens + emitted;
    running_.prompt_left[place] = 0;
    running_.put_out[place] = 1 + emitted;
    running_.wanted[place] = asked.output_tokens;
    running_.slots[place] = blocks * engine_.block_size;
    running_.scheduled[place] = 0;
    running_.last_output[place] = now_;
    running_.fully_accepted[place] = all[since].following_full_accepts() > 0;
    running_.law[place] = law_of(request);
  }

  std::int64_t blocks_for(std::int64_t tokens) const { return (tokens + engine_.block_size - 1) / engine_.block_size; }

  std::int64_t gamma_at(std::int64_t batch) const {
    std::int64_t gamma = engine_.schedule.front().gamma;
    for (const GammaFrom& stretch : engine_.schedule) {
      if (stretch.batch_low > batch) break;
      gamma = stretch.gamma;
    }
    return gamma;
  }

  void take_arrivals() {
    while (arrived_ < sent_ && arrival_of(arrived_) <= now_) ++arrived_;
  }

  void schedule() {
    gamma_ = gamma_at(std::max<std::int64_t>(1, batch_));
    batch_ = 0;
    budget_ = engine_.max_num_batched_tokens;
    iteration_ = {};
    iteration_.gamma = gamma_;
    decoding_ = 0;
    fully_accepted_ = 0;
    verified_ = 0;
    const std::size_t given_up_before = given_up_.size();
    const bool prompts_alone = engine_.prefill_first && has_prompts();
    if (in_step_) take_those_in_step();
    const bool budgeted = engine_.verification_budget && gamma_ > 0 && !prompts_alone;
    if (budgeted) choose_verified();
    std::size_t i = 0;
    for (; i < running_.size && budget_ > 0; ++i) {
      const std::int64_t prompt = running_.prompt_left[i];
      if (prompts_alone && prompt == 0) {
        running_.scheduled[i] = 0;
        continue;
      }
      const std::int64_t wanted = prompt > 0 ? prompt : budgeted ? running_.scheduled[i] : gamma_ + 1;
      const std::int64_t positions = std::min(wanted, budget_);
      if (!make_room(i, blocks_wanted(i, positions))) break;
      take(i, positions, wanted);
    }
    for (; i < running_.size; ++i) running_.scheduled[i] = 0;
    if (given_up_.size() == given_up_before) admit();
    if (decoding_ > 0) iteration_.full_accepts = static_cast<double>(fully_accepted_) / static_cast<double>(decoding_);
  }

  /// Blocks beside its own that a running request needs for so many positions.
  std::int64_t blocks_wanted(Index i, std::int64_t positions) const {
    const std::int64_t needed = running_.computed[i] + positions + largest_gamma_;
    return needed <= running_.slots[i] ? 0 : blocks_for(needed) - running_.slots[i] / engine_.block_size;
  }

  /// Gives a running request blocks, taking those of the last ones if there are not enough; false if it had to give up
  /// its own.
  bool make_room(Index i, std::int64_t wanted) {
    if (wanted == 0) return true;
    while (wanted > free_blocks_) {
      give_up_last();
      if (running_.size == i) return false;
    }
    hold(i, wanted);
    return true;
  }

  void take_those_in_step() {
    const RoundSum& round = in_step_->round();
    const auto count = static_cast<std::int64_t>(in_step_->size());
    batch_ = decoding_ = count;
    budget_ -= count * (gamma_ + 1);
    free_blocks_ -= round.blocks();
    result_.peak_blocks = std::max(result_.peak_blocks, engine_.cache_blocks - free_blocks_);
    iteration_.sequences = static_cast<double>(count);
    iteration_.context_tokens = static_cast<double>(context_in_step_);
    fully_accepted_ = round.following_full_accepts();
    verified_ = count * gamma_;
  }

  void hold(Index i, std::int64_t blocks) {
    free_blocks_ -= blocks;
    running_.slots[i] += blocks * engine_.block_size;
    result_.peak_blocks = std::max(result_.peak_blocks, engine_.cache_blocks - free_blocks_);
  }

  void give_up_last() {
    const Index last = --running_.size;
    const std::size_t request = running_.request[last];
    free_blocks_ += running_.slots[last] / engine_.block_size;
    result_.requests[request].output_tokens = running_.put_out[last];
    ++result_.requests[request].preemptions;
    ++result_.preemptions;
    given_up_.push_back({request, running_.last_output[last]});
  }

  /// The positions that each request that decodes is to take, into running_.scheduled.
  void choose_verified() {
    std::vector<Index> deciding;
    cost::Iteration rounds;
    rounds.gamma = gamma_;
    for (Index i = 0; i < running_.size; ++i) {
      if (running_.prompt_left[i] > 0) continue;
      deciding.push_back(i);
      rounds.context_tokens += static_cast<double>(running_.computed[i]);
    }
    if (deciding.empty()) return;
    rounds.sequences = static_cast<double>(deciding.size());
    std::vector<double> seconds;
    for (std::int64_t drafts = 0; drafts <= gamma_; ++drafts) {
      rounds.verified = static_cast<double>(drafts) * rounds.sequences;
      seconds.push_back(question_.cost->seconds(rounds));
    }
    const std::vector<std::int64_t> verified = draft_budget_.verified(deciding, gamma_, seconds);
    for (Index d = 0; d < deciding.size(); ++d) running_.scheduled[deciding[d]] = verified[d] + 1;
    iteration_.verified = 0;
  }

  /// Adds positions of a running request to the iteration, of those that it wants.
  void take(Index i, std::int64_t positions, std::int64_t wanted) {
    running_.scheduled[i] = positions;
    budget_ -= positions;
    ++batch_;
    const auto count = static_cast<double>(positions);
    const auto context = static_cast<double>(running_.computed[i]);
    if (running_.prompt_left[i] > 0) {
      iteration_.prompt_tokens += count;
      iteration_.prompts += 1;
      iteration_.prompt_pairs += count * context + count * (count + 1) / 2;
    } else {
      // A round that was cut to the rest of the budget is a fraction of a sequence.
      const double share = positions == wanted ? 1 : count / static_cast<double>(wanted);
      iteration_.sequences += share;
      if (iteration_.verified) *iteration_.verified += share * static_cast<double>(wanted - 1);
      verified_ += positions - 1;
      iteration_.context_tokens += context;
      fully_accepted_ += running_.fully_accepted[i];
      ++decoding_;
    }
  }

  /// What admitting the next waiting request takes.
  struct Admission {
    bool again = false;
    std::size_t request = 0;
    std::int64_t put_out = 0, tokens = 0, found = 0, positions = 0, blocks = 0;
    bool fits = false;
  };

  Admission next_admission() const {
    Admission next;
    next.again = !given_up_.empty();
    next.request = next.again ? given_up_.back().request : next_;
    next.put_out = result_.requests[next.request].output_tokens;
    next.tokens = requests_[next.request].prompt_tokens + next.put_out;
    next.found = found_in_cache(requests_[next.request], next.again);
    next.positions = std::min(next.tokens - next.found, budget_);
    next.blocks = blocks_for(next.found + next.positions + largest_gamma_);
    // Where rounds wait for a prompt they free no block meanwhile: what it takes to the end must be there.
    const std::int64_t ahead = engine_.prefill_first ? largest_gamma_ : 0;
    next.fits = std::max(next.blocks, blocks_for(next.tokens + ahead)) <= free_blocks_;
    return next;
  }

  bool may_admit() const {
    return waiting() > 0 && budget_ > 0 && running() < static_cast<std::size_t>(engine_.max_num_seqs);
  }

  /// Whether a prompt is being computed, or one that waits finds room.
  bool has_prompts() const {
    for (Index i = 0; i < running_.size; ++i) {
      if (running_.prompt_left[i] > 0) return true;
    }
    return may_admit() && next_admission().fits;
  }

  void admit() {
    while (may_admit()) {
      const auto [again, request, put_out, tokens, found, positions, blocks, fits] = next_admission();
      if (!fits) break;
      const SimulatedRequest& asked = requests_[request];
      const double last_output = again ? given_up_.back().last_output : 0;
      if (again) {
        given_up_.pop_back();
      } else {
        ++next_;
      }
      const Index i = running_.size++;
      running_.request[i] = request;
      running_.law[i] = law_of(request);
      running_.computed[i] = found;
      running_.prompt_left[i] = tokens - found;
      running_.put_out[i] = put_out;
      running_.wanted[i] = asked.output_tokens;
      running_.slots[i] = 0;
      running_.last_output[i] = last_output;
      running_.fully_accepted[i] = 0;
      if (engine_.verification_budget) draft_budget_.forget(i);
      hold(i, blocks);
      take(i, positions, positions);
    }
  }

  std::int64_t found_in_cache(const SimulatedRequest& asked, bool again) const {
    if (engine_.decode_only && !again) return asked.prompt_tokens - 1;
    const auto found =
        static_cast<std::int64_t>(engine_.prefix_cache_hit_rate * static_cast<double>(asked.prompt_tokens));
    return std::min(found, asked.prompt_tokens - 1);
  }

  std::size_t law_of(std::size_t request) { return largest_gamma_ == 0 ? 0 : laws_.stretch_of(draws().law(request)); }

  /// The iteration takes place, and arrivals during it wait.
  void pass_time() {
    const double duration = question_.cost->seconds(iteration_);
    if (!(0 < duration && duration <= std::numeric_limits<double>::max())) {
      throw std::domain_error(fmt::format(
          "simulate_serving: the cost of an iteration is {} seconds, but must be finite and above 0", duration));
    }
    const double from = now_;
    began_ = from;
    now_ = from + duration;
    if (!(std::abs(now_ - from - duration) <= clock_error * duration)) {
      throw std::domain_error(fmt::format(
          "simulate_serving: requests are too far apart to time them: {:.4g} seconds after 0 the clock cannot "
          "tell an iteration of {:.4g} seconds",
          from, duration));
    }
    const double counted = counted_time_.seconds_of(from, now_);
    const auto waited = static_cast<double>(waiting());
    const auto served = static_cast<double>(in_system());
    decoding_time_ += static_cast<double>(decoding_) * counted;
    busy_time_ += counted;
    waiting_time_ += waited * counted;
    system_time_ += served * counted;
    result_.request_seconds += served * duration;
    const std::size_t before = arrived_;
    take_arrivals();
    for (std::size_t i = before; i < arrived_; ++i) {
      const double arrival = arrival_of(i);
      waiting_time_ += counted_time_.seconds_of(arrival, now_);
      system_time_ += counted_time_.seconds_of(arrival, now_);
      result_.request_seconds += now_ - arrival;
    }
    ++result_.iterations;
    counts_ = counted_time_.counts(now_);
    if (counts_) {
      ++counted_iterations_;
      iteration_time_ += duration;
    }
  }

  void put_out_tokens() {
    std::int64_t tokens = 0;
    std::int64_t round_tokens = 0;
    std::int64_t gaps_of_iteration = 0;
    bool some_end = false;
    for (Index i = 0; i < running_.size; ++i) {
      const std::int64_t positions = running_.scheduled[i];
      if (positions == 0) continue;
      if (running_.prompt_left[i] > 0) {
        running_.computed[i] += positions;
        running_.prompt_left[i] -= positions;
        if (running_.prompt_left[i] > 0) continue;
        if (running_.put_out[i]++ == 0) {
          note_first_token(i);
        } else {
          gaps_of_iteration += note_output(i);
        }
        ++tokens;
      } else {
        const std::int64_t accepted = positions > 1 ? accepted_drafts(i, positions - 1) : 0;
        const std::int64_t emitted = std::min(accepted + 1, running_.wanted[i] - running_.put_out[i]);
        running_.fully_accepted[i] = accepted > 0 && accepted == gamma_;
        if (engine_.verification_budget) draft_budget_.count(i, positions - 1, accepted);
        running_.computed[i] += emitted;
        running_.put_out[i] += emitted;
        gaps_of_iteration += note_output(i);
        tokens += emitted;
        round_tokens += emitted;
      }
      some_end = some_end || running_.put_out[i] == running_.wanted[i] || in_step_;
    }
    if (in_step_) {
      gaps_of_iteration += counted_in_step_;
      const std::int64_t emitted = put_out_in_step();
      tokens += emitted;
      round_tokens += emitted;
    }
    if (options_.finds_gaps && gaps_of_iteration > 0) gaps_.add(now_ - began_, gaps_of_iteration);
    tokens_ += tokens;
    if (counts_) {
      counted_tokens_ += tokens;
      counted_round_tokens_ += round_tokens;
      counted_rounds_ += decoding_;
      counted_verified_ += verified_;
    }
    if (some_end) end_requests();
    if (in_step_ && question_.clients) take_arrivals();
  }

  std::int64_t accepted_drafts(Index i, std::int64_t drafts) {
    const double u = draws().acceptance(running_.request[i], running_.put_out[i]);
    return laws_.accepted(running_.law[i], running_.computed[i], u, drafts);
  }

  void note_first_token(Index i) {
    const std::size_t request = running_.request[i];
    result_.requests[request].first_token_seconds = since_sent(request);
    running_.last_output[i] = now_;
  }

  double since_sent(std::size_t request) const { return now_ - arrival_of(request) + question_.outside_seconds; }

  bool is_counted(std::size_t request) const { return request - result_.first_counted < result_.counted_requests; }

  /// 1 if a counted request's gap is the length of this iteration; another length is noted at once.
  std::int64_t note_output(Index i) {
    const double last = running_.last_output[i];
    running_.last_output[i] = now_;
    if (!is_counted(running_.request[i])) return 0;
    if (last == began_) return 1;
    if (options_.finds_gaps) gaps_.add(now_ - last, 1);
    return 0;
  }

  /// The rounds of the sequences in step; returns their tokens.
  std::int64_t put_out_in_step() {
    const std::int64_t emitted = in_step_->round().emitted();
    context_in_step_ += emitted;
    in_step_->pass([this](std::size_t request) {
      const SimulatedRequest& asked = requests_[request];
      context_in_step_ -= asked.prompt_tokens + asked.output_tokens - 1;
      counted_in_step_ -= is_counted(request) ? 1 : 0;
      end_request(request, asked.output_tokens, rounds().last_blocks(request));
    });
    return emitted;
  }

  /// A prompt is computed, and its rounds follow.
  void join_those_in_step(std::size_t request) {
    context_in_step_ += requests_[request].prompt_tokens;
    counted_in_step_ += is_counted(request) ? 1 : 0;
    in_step_->begin(request, rounds().of(request));
  }

  void end_request(std::size_t request, std::int64_t put_out, std::int64_t blocks) {
    ServedRequest& served = result_.requests[request];
    served.output_tokens = put_out;
    served.last_token_seconds = since_sent(request);
    if (question_.clients) send_next();
    free_blocks_ += blocks;
    ++served_;
  }

  void move(Index from, Index to) {
    running_.move(from, to);
    if (engine_.verification_budget) draft_budget_.move(from, to);
  }

  void end_requests() {
    Index kept = 0;
    for (Index i = 0; i < running_.size; ++i) {
      const bool ends = running_.put_out[i] == running_.wanted[i];
      if (!ends && !(in_step_ && running_.prompt_left[i] == 0)) {
        if (kept != i) move(i, kept);
        ++kept;
        continue;
      }
      if (!ends) {
        join_those_in_step(running_.request[i]);
        continue;
      }
      if (checks_) check_ended(i);
      end_request(running_.request[i], running_.put_out[i], running_.slots[i] / engine_.block_size);
    }
    running_.size = kept;
    if (question_.clients) take_arrivals();
  }

  void finish() {
    const double length = std::min(counted_time_.end(), now_) - counted_time_.begin();
    result_.counted_seconds = length;
    result_.output_tokens_per_second = static_cast<double>(counted_tokens_) / length;
    result_.mean_batch = decoding_time_ / length;
    result_.mean_waiting = waiting_time_ / length;
    result_.mean_in_system = system_time_ / length;
    result_.busy_share = busy_time_ / length;
    if (counted_iterations_ > 0) {
      result_.mean_iteration_seconds = iteration_time_ / static_cast<double>(counted_iterations_);
    }
    if (counted_rounds_ > 0) {
      result_.tokens_per_step = static_cast<double>(counted_round_tokens_) / static_cast<double>(counted_rounds_);
      result_.verified_per_step = static_cast<double>(counted_verified_) / static_cast<double>(counted_rounds_);
    }
    result_.backlog_at_end = backlog_before(requests_.size() - 1);
    result_.backlog_at_middle = backlog_before(requests_.size() / 2);
    result_.seconds = now_;
    result_.gaps = gaps_.sorted();
    if (checks_) check_end();
  }

  std::int64_t backlog_before(std::size_t request) const {
    const double time = arrival_of(request);
    std::int64_t backlog = 0;
    for (std::size_t i = 0; i < request; ++i) {
      if (arrival_of(i) + result_.requests[i].last_token_seconds - question_.outside_seconds > time) ++backlog;
    }
    return backlog;
  }

  // Checks of invariants.

  void require(bool holds, std::string_view what) const {
    if (holds) return;
    throw std::logic_error(
        fmt::format("simulate_serving: {} at {} seconds, after {} iterations", what, now_, result_.iterations));
  }

  void check_iteration() {
    require(now_ >= checked_at_, "time goes back");
    checked_at_ = now_;
    std::int64_t held = in_step_ ? blocks_in_step() : 0;
    std::int64_t positions = static_cast<std::int64_t>(in_step()) * (gamma_ + 1);
    std::size_t scheduled = in_step();
    for (Index i = 0; i < running_.size; ++i) {
      const SimulatedRequest& asked = requests_[running_.request[i]];
      held += running_.slots[i] / engine_.block_size;
      positions += running_.scheduled[i];
      scheduled += running_.scheduled[i] > 0 ? 1 : 0;
      require(running_.slots[i] % engine_.block_size == 0 &&
                  running_.computed[i] + running_.scheduled[i] <= running_.slots[i],
              "a request's blocks are too few for its tokens");
      const std::int64_t known = running_.prompt_left[i] > 0 ? 0 : 1;
      require(running_.computed[i] + running_.prompt_left[i] + known == asked.prompt_tokens + running_.put_out[i],
              "a request's tokens are lost");
      require(running_.put_out[i] < running_.wanted[i], "a request runs on after its end");
      require(i == 0 || running_.request[i - 1] < running_.request[i], "requests that run are out of order");
    }
    require(free_blocks_ >= 0 && held + free_blocks_ == engine_.cache_blocks, "blocks are lost");
    require(positions <= engine_.max_num_batched_tokens && budget_ == engine_.max_num_batched_tokens - positions,
            "the budget of positions is exceeded");
    require(scheduled == static_cast<std::size_t>(batch_), "the batch is miscounted");
    require(running() <= static_cast<std::size_t>(engine_.max_num_seqs), "more requests run than may");
    const std::size_t last = running_.size == 0 ? 0 : running_.request[running_.size - 1] + 1;
    for (std::size_t i = 0; i < given_up_.size(); ++i) {
      const std::size_t above = i == 0 ? next_ : given_up_[i - 1].request;
      require(last <= given_up_[i].request && given_up_[i].request < above,
              "requests that were given up are out of order");
    }
    require(last <= next_ && next_ <= arrived_ && running() + given_up_.size() + served_ == next_,
            "a request is lost or served twice");
  }

  /// Of each sequence in step by itself, whose tokens add up to the context.
  std::int64_t blocks_in_step() {
    std::int64_t blocks = 0, context = 0, counted = 0;
    for (std::size_t request = 0; request < next_; ++request) {
      const std::optional<std::size_t> since = in_step_->rounds_of(request);
      if (!since) continue;
      std::int64_t tokens = requests_[request].prompt_tokens;
      for (const RoundSum& round : rounds().of(request).first(*since)) tokens += round.emitted();
      blocks += blocks_for(tokens + 2 * gamma_ + 1);
      context += tokens;
      counted += is_counted(request) ? 1 : 0;
    }
    require(context == context_in_step_ && counted == counted_in_step_, "sequences are out of step");
    return blocks;
  }

  void check_ended(Index i) const {
    const SimulatedRequest& asked = requests_[running_.request[i]];
    require(running_.computed[i] == asked.prompt_tokens + asked.output_tokens - 1,
            "an ended request's tokens are lost");
    require(result_.requests[running_.request[i]].last_token_seconds == 0, "a request is served twice");
  }

  void check_end() const {
    std::int64_t tokens = 0;
    double seconds = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const ServedRequest& served = result_.requests[i];
      tokens += served.output_tokens;
      seconds += served.last_token_seconds - question_.outside_seconds;
      require(served.output_tokens == requests_[i].output_tokens,
              "a request got another number of tokens than it asked for");
      require(0 <= served.first_token_seconds && served.first_token_seconds <= served.last_token_seconds,
              "a request's times are out of order");
    }
    require(tokens == tokens_, "tokens are lost");
    require(free_blocks_ == engine_.cache_blocks, "blocks are held by nobody");
    const auto count = static_cast<double>(requests_.size());
    require(std::abs(seconds - result_.request_seconds) <= 1e-9 * seconds + 1e-12 * count * now_,
            "Little's law does not hold");
  }

  const ServingQuestion& question_;
  const ServingEngine& engine_;
  const std::vector<SimulatedRequest>& requests_;
  const RunOptions options_;
  const bool checks_;
  CountedTime counted_time_;
  const std::int64_t largest_gamma_;
  AcceptanceLaws laws_;
  std::optional<RequestDraws> own_draws_;
  std::optional<RequestRounds> own_rounds_;
  ServingResult result_;

  /// All requests that run, or, while sequences are in step, those whose prompts are being computed.
  RunningRequests running_;
  std::optional<SequencesInStep> in_step_;
  /// Tokens in the caches of sequences in step, and how many of these count.
  std::int64_t context_in_step_ = 0, counted_in_step_ = 0;
  DraftBudget draft_budget_;
  /// Preempted requests that wait; the last one is the first to be admitted.
  std::vector<GivenUp> given_up_;
  /// Requests before these were sent, have arrived and have been admitted once; how many were served.
  std::size_t sent_ = 0, arrived_ = 0, next_ = 0, served_ = 0;
  std::int64_t free_blocks_;
  double now_;
  GapHistogram gaps_;

  // The current iteration, which began then.
  double began_ = 0;
  cost::Iteration iteration_;
  std::int64_t gamma_ = 0;
  /// Positions left in it.
  std::int64_t budget_ = 0;
  /// Requests in it, those of them that decode, and of these those whose previous round was fully accepted.
  std::int64_t batch_ = 0, decoding_ = 0;
  std::int64_t fully_accepted_ = 0;
  /// Drafts that are verified in it.
  std::int64_t verified_ = 0;
  bool counts_ = false;

  // Sums over the counted time.
  double decoding_time_ = 0, waiting_time_ = 0, system_time_ = 0, busy_time_ = 0, iteration_time_ = 0;
  std::int64_t counted_tokens_ = 0, counted_round_tokens_ = 0, counted_rounds_ = 0, counted_verified_ = 0,
               counted_iterations_ = 0;
  std::int64_t tokens_ = 0;
  double checked_at_ = 0;
};

}  // namespace

ServingResult run_serving(const ServingQuestion& question, const RunOptions& options) {
  return ServingRun(question, options).run();
}

}  // namespace specdec::sim
