#include "analysis/estimate/adaptive_drafting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"
#include "analysis/theory/known_acceptance.hpp"

namespace specdec::estimate {
namespace {

/// Positions handed to the policies at once.
constexpr std::size_t chunk = 1 << 16;
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t chosen = 0;
constexpr std::size_t judged = 1;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

void require_probabilities(std::string_view name, std::span<const double> values, std::int64_t first) {
  const auto bad = std::find_if_not(values.begin(), values.end(), [](double x) { return 0 <= x && x <= 1; });
  if (bad == values.end()) return;
  core::require_in("AdaptiveDrafting::add", fmt::format("{} at position {}", name, first + (bad - values.begin())),
                   *bad, 0, 1);
}

/// Steps by the number of their drafts, at the two ends of what is known.
struct Drafts {
  std::vector<double> fewest;
  std::vector<double> most;

  explicit Drafts(std::int64_t max_gamma) : fewest(size(max_gamma) + 1), most(size(max_gamma) + 1) {}
};

double total(const std::vector<double>& steps, const core::StepCost& cost) {
  double sum = 0;
  for (std::size_t drafts = 0; drafts < steps.size(); ++drafts)
    sum += steps[drafts] * cost(static_cast<std::int64_t>(drafts));
  return sum;
}

double drafts_per_step(const std::vector<double>& steps) {
  double drafts = 0;
  for (std::size_t d = 0; d < steps.size(); ++d) drafts += static_cast<double>(d) * steps[d];
  return drafts / std::accumulate(steps.begin(), steps.end(), 0.0);
}

/// More drafts than needed may even be cheaper where v(n) falls: the interval is sorted.
Interval speedups(const Drafts& drafts, double tokens, const core::StepCost& cost) {
  const double a = tokens / total(drafts.most, cost);
  const double b = tokens / total(drafts.fewest, cost);
  return {std::min(a, b), std::max(a, b)};
}

}  // namespace

/// One confidence and threshold, followed through the recording. Starts s are kept in arrays over the recent places:
/// reach[s] is the probability that a step started at s and that all its drafts so far were accepted.
class AdaptiveDrafting::Policy {
 public:
  Policy(Confidence confidence, double threshold, std::int64_t max_gamma)
      : confidence_(confidence),
        threshold_(threshold),
        max_gamma_(size(max_gamma)),
        drafts_{Drafts(max_gamma), Drafts(max_gamma)},
        reach_(2 * max_gamma_ + rows),
        rejected_(reach_.size()),
        product_(reach_.size()) {
    begin_sequence();
  }

  Confidence confidence() const { return confidence_; }
  double threshold() const { return threshold_; }
  const Drafts& drafts(std::size_t half) const { return drafts_[half]; }

  void follow(std::span<const double> acceptance, std::span<const double> probability,
              std::span<const std::uint8_t> half, std::span<const std::uint8_t> last) {
    for (std::size_t i = 0; i < acceptance.size(); ++i) {
      if (last[i] == 0) {
        draft(acceptance[i], probability[i], drafts_[half[i]]);
      } else {
        end_sequence(drafts_[half[i]]);
      }
    }
  }

 private:
  static constexpr std::size_t rows = 1024;

  void begin_sequence() {
    oldest_ = now_ = 0;
    bonus_ = 0;
    start(1);
  }

  void start(double probability) {
    reach_[now_] = probability;
    rejected_[now_] = 0;
    product_[now_] = 1;
  }

  // The draft at the place now_, which is not the last one of its sequence.
  void draft(double accept, double probability, Drafts& drafts) {
    double rejections = 0;
    for (std::size_t s = oldest_; s <= now_; ++s) {
      const double rejected = reach_[s] * (1 - accept);
      drafts.fewest[now_ - s + 1] += rejected;
      rejected_[s] += rejected;
      rejections += rejected;
      reach_[s] *= accept;
      product_[s] *= probability;
    }
    const double next_start = rejections + bonus_;
    bonus_ = 0;
    while (oldest_ <= now_ && stops(now_ - oldest_ + 1, probability, product_[oldest_])) {
      drafts.fewest[now_ - oldest_ + 1] += reach_[oldest_];
      drafts.most[now_ - oldest_ + 1] += reach_[oldest_];
      bonus_ += reach_[oldest_];
      ++oldest_;
    }
    // What started so long ago could have drafted up to the limit before the sequence ends.
    if (now_ >= max_gamma_) drafts.most[max_gamma_] += rejected_[now_ - max_gamma_];
    if (++now_ == reach_.size()) make_room();
    start(next_start);
  }

  // Products fall with every factor, so that the oldest start is the first to stop.
  bool stops(std::size_t drafted, double probability, double product) const {
    return drafted == max_gamma_ || (confidence_ == Confidence::token ? probability : product) < threshold_;
  }

  // The last place is the target's own, whatever a step had drafted until then.
  void end_sequence(Drafts& drafts) {
    for (std::size_t s = oldest_; s <= now_; ++s) {
      drafts.fewest[now_ - s] += reach_[s];
      drafts.most[now_ - s] += reach_[s];
    }
    // Starts older than that were counted at their limit already.
    const std::size_t recent = std::max(max_gamma_, now_) - max_gamma_;
    for (std::size_t s = recent; s <= now_; ++s) drafts.most[std::min(max_gamma_, now_ - s)] += rejected_[s];
    begin_sequence();
  }

  void make_room() {
    const std::size_t shift = now_ - max_gamma_;
    for (std::vector<double>* column : {&reach_, &rejected_, &product_})
      std::copy(column->begin() + static_cast<std::ptrdiff_t>(shift), column->end(), column->begin());
    now_ -= shift;
    oldest_ -= shift;
  }

  Confidence confidence_;
  double threshold_;
  std::size_t max_gamma_;
  std::array<Drafts, 2> drafts_;  // by half
  std::vector<double> reach_;
  std::vector<double> rejected_;
  std::vector<double> product_;
  std::size_t oldest_ = 0;  // the first start that may still draft
  std::size_t now_ = 0;
  double bonus_ = 0;  // P(the token at now_ is the target's after a step stopped)
};

AdaptiveDrafting::AdaptiveDrafting(AdaptiveOptions options) : options_(std::move(options)) {
  core::require_in("AdaptiveDrafting", "max_gamma", options_.max_gamma, 1, theory::largest_replayed_gamma);
  core::require_in("AdaptiveDrafting", "threads", options_.threads, 1, 1024);
  core::require_in("AdaptiveDrafting", "longest_program", options_.longest_program, 0, largest);
  for (std::int64_t d = 0; d <= options_.max_gamma; ++d) options_.cost(d);  // refuses a cost that is none
  double below = 0;
  for (const double threshold : options_.thresholds) {
    core::require_in("AdaptiveDrafting", "a threshold", threshold, std::nextafter(below, 2.0), 1);
    below = threshold;
  }
  for (const Confidence confidence : {Confidence::token, Confidence::running_product})
    for (const double threshold : options_.thresholds)
      policies_.push_back(std::make_unique<Policy>(confidence, threshold, options_.max_gamma));
}

AdaptiveDrafting::AdaptiveDrafting(AdaptiveDrafting&&) noexcept = default;
AdaptiveDrafting::~AdaptiveDrafting() = default;

void AdaptiveDrafting::add(const DraftedColumns& columns) {
  const std::size_t n = columns.sequence.size();
  core::require_same_size("AdaptiveDrafting::add", "acceptance", columns.acceptance.size(), "sequence", n);
  core::require_same_size("AdaptiveDrafting::add", "draft_token_probability", columns.draft_token_probability.size(),
                          "sequence", n);
  if (!columns.task.empty())
    core::require_same_size("AdaptiveDrafting::add", "task", columns.task.size(), "sequence", n);
  require_probabilities("acceptance", columns.acceptance, positions_);
  require_probabilities("draft_token_probability", columns.draft_token_probability, positions_);
  for (std::size_t i = 0; i < n; ++i) {
    if (current_ && columns.sequence[i] < *current_) {
      throw std::invalid_argument(fmt::format(
          "AdaptiveDrafting::add: sequence {} comes after {}, but numbers must rise", columns.sequence[i], *current_));
    }
    if (columns.sequence[i] != current_) {
      if (current_) end_sequence();
      begin_sequence(columns.sequence[i], columns.task.empty() ? -1 : columns.task[i]);
    }
    acceptance_.push_back(columns.acceptance[i]);
    probability_.push_back(columns.draft_token_probability[i]);
    half_of_.push_back(static_cast<std::uint8_t>(half_));
    last_.push_back(0);
    if (++length_ <= options_.longest_program) sequence_.push_back(columns.acceptance[i]);
    // The last position waits: whether its sequence goes on is not known yet.
    if (acceptance_.size() > chunk) flush();
  }
  positions_ += static_cast<std::int64_t>(n);
}

void AdaptiveDrafting::begin_sequence(std::int64_t number, std::int32_t task) {
  current_ = number;
  half_ = halves_.next(task);
}

void AdaptiveDrafting::end_sequence() {
  last_.back() = 1;
  tokens_[half_] += static_cast<double>(length_);
  const bool only_one = halves_.sequences()[chosen] + halves_.sequences()[judged] == 1;
  if (length_ > options_.longest_program) {
    ++programs_[half_].left_out;
  } else if (half_ == judged || only_one) {
    finished_positions_ += sequence_.size();
    finished_.push_back({half_, std::move(sequence_)});
    if (finished_positions_ >= chunk) solve_programs();
  }
  sequence_ = {};
  length_ = 0;
}

void AdaptiveDrafting::flush() {
  const std::size_t n = acceptance_.size() - (last_.back() == 0 ? 1 : 0);
  core::for_each_index(static_cast<std::int64_t>(policies_.size()), options_.threads,
                       [&](std::int64_t i, std::int64_t) {
                         policies_[size(i)]->follow(std::span(acceptance_).first(n), std::span(probability_).first(n),
                                                    std::span(half_of_).first(n), std::span(last_).first(n));
                       });
  const auto drop = static_cast<std::ptrdiff_t>(n);
  acceptance_.erase(acceptance_.begin(), acceptance_.begin() + drop);
  probability_.erase(probability_.begin(), probability_.begin() + drop);
  half_of_.erase(half_of_.begin(), half_of_.begin() + drop);
  last_.erase(last_.begin(), last_.begin() + drop);
}

void AdaptiveDrafting::solve_programs() {
  std::vector<double> costs(finished_.size());
  core::for_each_index(static_cast<std::int64_t>(costs.size()), options_.threads, [&](std::int64_t i, std::int64_t) {
    costs[size(i)] = theory::known_acceptance_cost(finished_[size(i)].acceptance, options_.max_gamma, options_.cost);
  });
  for (std::size_t i = 0; i < costs.size(); ++i) {
    Programs& programs = programs_[finished_[i].half];
    programs.cost.add(costs[i]);
    programs.tokens += static_cast<double>(finished_[i].acceptance.size());
    ++programs.sequences;
  }
  finished_.clear();
  finished_positions_ = 0;
}

void AdaptiveDrafting::finish() {
  if (!current_) return;
  end_sequence();
  current_.reset();
  flush();
  solve_programs();
}

AdaptiveReport AdaptiveDrafting::report(const std::array<theory::ReplayedRounds, 2>& halves) const {
  core::require_in("AdaptiveDrafting::report", "max_gamma of the replay", halves[0].max_gamma(), options_.max_gamma,
                   largest);
  AdaptiveReport report;
  const std::array<std::int64_t, 2>& sequences = halves_.sequences();
  if (sequences[chosen] == 0) return report;
  const bool only_one = sequences[judged] == 0;
  const std::size_t seen = only_one ? chosen : judged;
  report.chosen_on = only_one ? 0 : sequences[chosen];
  report.judged_on = sequences[seen];
  const Programs& programs = programs_[seen];
  if (programs.sequences > 0)
    report.known_acceptance = Bound{programs.tokens / programs.cost.value(), programs.sequences, programs.left_out};
  if (programs.left_out > 0) {
    report.notes.push_back(
        fmt::format("{} of {} sequences have more than {} tokens and are not in the program that knows the "
                    "acceptances, which bounds the others alone",
                    programs.left_out, report.judged_on, options_.longest_program));
  }
  report.outcome_oracle =
      Bound{tokens_[seen] / theory::outcome_oracle_cost(halves[seen], options_.max_gamma, options_.cost),
            report.judged_on, 0};
  if (only_one) {
    report.notes.push_back("one sequence: no policy can be chosen on one half and judged on the other");
    return report;
  }

  JudgedGamma fixed;
  for (std::int64_t gamma = 1; gamma <= options_.max_gamma; ++gamma)
    if (halves[chosen].cost(gamma, options_.cost) < halves[chosen].cost(fixed.gamma, options_.cost))
      fixed.gamma = gamma;
  fixed.speedup = tokens_[judged] / halves[judged].cost(fixed.gamma, options_.cost);
  report.fixed = fixed;

  for (const Confidence confidence : {Confidence::token, Confidence::running_product}) {
    const Policy* best = nullptr;
    double best_speedup = 0;
    for (const auto& policy : policies_) {
      if (policy->confidence() != confidence) continue;
      const double speedup = speedups(policy->drafts(chosen), tokens_[chosen], options_.cost).lo;
      if (best == nullptr || speedup > best_speedup) best = policy.get(), best_speedup = speedup;
    }
    if (best == nullptr) continue;
    const Drafts& drafts = best->drafts(judged);
    const double steps = std::accumulate(drafts.fewest.begin(), drafts.fewest.end(), 0.0);
    auto& result = confidence == Confidence::token ? report.token : report.running_product;
    const bool at_grid_edge =
        best->threshold() == options_.thresholds.front() || best->threshold() == options_.thresholds.back();
    result = JudgedThreshold{confidence,
                             best->threshold(),
                             at_grid_edge,
                             tokens_[judged] / steps,
                             speedups(drafts, tokens_[judged], options_.cost),
                             Interval{drafts_per_step(drafts.fewest), drafts_per_step(drafts.most)}};
  }
  return report;
}

}  // namespace specdec::estimate
