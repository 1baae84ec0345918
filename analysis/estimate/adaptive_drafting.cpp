#include "analysis/estimate/adaptive_drafting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"
#include "analysis/estimate/cluster_ratio.hpp"

namespace specdec::estimate {
namespace {

/// Number of positions whose policies are evaluated together.
constexpr std::size_t chunk = 1 << 16;
constexpr std::size_t chosen = 0;
constexpr std::size_t judged_half = 1;

std::size_t index_of(std::int64_t n) { return static_cast<std::size_t>(n); }

void require_probabilities(std::string_view name, std::span<const double> values, std::int64_t first) {
  const auto bad = std::find_if_not(values.begin(), values.end(), [](double x) { return 0 <= x && x <= 1; });
  if (bad == values.end()) return;
  core::require_in("AdaptiveDrafting::add", fmt::format("{} at position {}", name, first + (bad - values.begin())),
                   *bad, 0, 1);
}

/// The limits up to max_gamma, which stands for all above it.
std::vector<std::int64_t> limits_up_to(std::int64_t max_gamma, const std::vector<std::int64_t>& limits) {
  std::vector<std::int64_t> result;
  std::int64_t below = 0;
  for (const std::int64_t limit : limits) {
    core::require_in("AdaptiveDrafting", "a limit", limit, below + 1, core::largest_integer);
    below = limit;
    if (result.empty() || result.back() < max_gamma) result.push_back(std::min(limit, max_gamma));
  }
  return result;
}

void append(std::vector<double>& to, std::span<const double> values) {
  to.insert(to.end(), values.begin(), values.end());
}

template <std::size_t count>
void add_to(std::array<core::ExactSum, count>& sums, const std::array<core::ExactSum, count>& terms) {
  for (std::size_t i = 0; i < count; ++i) sums[i].add(terms[i]);
}

template <std::size_t count>
double sum(const std::array<core::ExactSum, count>& groups) {
  core::ExactSum sum;
  for (const core::ExactSum& group : groups) sum.add(group);
  return sum.value();
}

}  // namespace

ThresholdVerdict verdict_of(const JudgedThreshold& judged) {
  if (!judged.gain_ci95) return ThresholdVerdict::cannot_tell;
  if (judged.gain_ci95->lo > 0) return ThresholdVerdict::gains;
  return judged.gain_ci95->hi < 0 ? ThresholdVerdict::loses : ThresholdVerdict::cannot_tell;
}

AdaptiveDrafting::AdaptiveDrafting(AdaptiveOptions options) : options_(std::move(options)) {
  core::require_in("AdaptiveDrafting", "max_gamma", options_.max_gamma, 1, theory::largest_replayed_gamma);
  core::require_in("AdaptiveDrafting", "threads", options_.threads, 1, 1024);
  core::require_in("AdaptiveDrafting", "longest_sequence", options_.longest_sequence, 0, core::largest_integer);
  for (std::int64_t d = 0; d <= options_.max_gamma; ++d) prices_.of.push_back(options_.cost(d));
  double below = 0;
  for (const double threshold : options_.thresholds) {
    core::require_in("AdaptiveDrafting", "a threshold", threshold, std::nextafter(below, 2.0), 1);
    below = threshold;
  }
  const std::vector<std::int64_t> of_step = limits_up_to(options_.max_gamma, options_.limits);
  for (std::size_t h = 0; h < options_.thresholds.size(); ++h) {
    for (const std::int64_t limit : of_step) {
      Policy& policy = policies_.emplace_back();
      policy.threshold = h;
      policy.limit = limit;
    }
  }
  prices_.beyond.resize(index_of(options_.max_gamma) + 1);
  for (std::size_t limit = 1; limit < prices_.beyond.size(); ++limit) {
    prices_.beyond[limit].resize(limit);
    Interval range = exactly(prices_.of[limit]);
    for (std::size_t d = limit; d-- > 0;) {
      range = hull(range, exactly(prices_.of[d + 1]));
      prices_.beyond[limit][d] = range;
    }
  }
  fixed_cost_.resize(index_of(options_.max_gamma) + 1);
}

void AdaptiveDrafting::add(const DraftedColumns& columns) {
  const PositionLabels& labels = columns.labels;
  const std::size_t n = labels.size();
  const auto require_length = [&](std::string_view name, std::size_t length) {
    core::require_same_size("AdaptiveDrafting::add", name, length, "sequence", n);
  };
  require_length("acceptance", columns.acceptance.size());
  require_probabilities("acceptance", columns.acceptance, positions_);
  if (columns.accepted_probability.empty()) confidence_known_ = false;
  if (confidence_known_) {
    require_length("accepted_probability", columns.accepted_probability.size());
    require_probabilities("accepted_probability", columns.accepted_probability, positions_);
    core::require_same_size("AdaptiveDrafting::add", "rejected_below", columns.rejected_below.size(), "thresholds",
                            options_.thresholds.size());
    for (const std::vector<double>& below : columns.rejected_below) {
      require_length("rejected_below", below.size());
      require_probabilities("rejected_below", below, positions_);
    }
  }
  const auto same_sequence = [&](std::size_t a, std::size_t b) { return labels.sequence[a] == labels.sequence[b]; };
  for (std::size_t begin = 0, end = 0; begin < n; begin = end) {
    while (end < n && same_sequence(begin, end)) ++end;
    if (labels.sequence[begin] != current_) {
      if (current_) end_sequence();
      begin_sequence(labels, begin);
    }
    const std::size_t count = end - begin;
    length_ += static_cast<std::int64_t>(count);
    if (length_ > options_.longest_sequence) continue;
    append(text_.acceptance, columns.acceptance.subspan(begin, count));
    if (!confidence_known_) continue;
    append(text_.probability, columns.accepted_probability.subspan(begin, count));
    text_.rejected_below.resize(options_.thresholds.size());
    for (std::size_t h = 0; h < text_.rejected_below.size(); ++h) {
      append(text_.rejected_below[h], std::span(columns.rejected_below[h]).subspan(begin, count));
    }
  }
  positions_ += static_cast<std::int64_t>(n);
}

void AdaptiveDrafting::begin_sequence(const PositionLabels& labels, std::size_t at) {
  current_ = labels.sequence[at];
  const std::uint64_t cluster = labels.cluster(at);
  text_.half = half_of(cluster);
  text_.group = (cluster >> 1U) % groups;
  ++sequences_[text_.half];
}

void AdaptiveDrafting::end_sequence() {
  const std::size_t half = text_.half;
  tokens_[half] += static_cast<double>(length_);
  if (length_ > options_.longest_sequence) {
    ++left_out_[half];
  } else {
    tokens_of_policies_[half] += static_cast<double>(length_);
    finished_positions_ += text_.acceptance.size();
    finished_.push_back(std::move(text_));
    if (finished_positions_ >= chunk) evaluate();
  }
  text_ = {};
  length_ = 0;
}

/// One threshold over one text: the law of its steps, computed forward over the starts of those that still draft.
void AdaptiveDrafting::follow(const Text& text, Policy& policy) const {
  const double threshold = options_.thresholds[policy.threshold];
  const std::vector<double>& rejected_below = text.rejected_below[policy.threshold];
  const std::size_t length = text.acceptance.size();
  const std::size_t limit = index_of(policy.limit);
  double fewest = 0, most = 0;
  double steps = 0, drafted_fewest = 0, drafted_most = 0;
  const auto end_steps = [&](double ended, std::size_t cheapest, std::size_t dearest) {
    steps += ended;
    drafted_fewest += ended * static_cast<double>(cheapest);
    drafted_most += ended * static_cast<double>(dearest);
  };
  const auto stop = [&](double stopped, std::size_t drafts) {
    fewest += stopped * prices_.of[drafts];
    most += stopped * prices_.of[drafts];
    end_steps(stopped, drafts, drafts);
  };
  // P(a step starts at s and all its drafts so far were accepted), a ring over the last `limit` places.
  std::vector<double> reach(limit + 1);
  const auto of = [&](std::size_t s) -> double& { return reach[s % (limit + 1)]; };
  of(0) = 1;
  double bonus = 0;  // P(the token here is the target's after a step that stopped)
  for (std::size_t t = 0, oldest = 0; t < length; ++t) {
    if (t + 1 == length) {
      for (std::size_t s = oldest; s <= t; ++s) stop(of(s), t - s);
      break;
    }
    double rejections = 0;
    for (std::size_t s = oldest; s <= t; ++s) {
      const std::size_t drafted = t - s + 1;
      const std::size_t room = std::min(limit, length - 1 - s);
      const double rejected = of(s) * (1 - text.acceptance[t]);
      const double goes_on = drafted < room ? rejected * (1 - rejected_below[t]) : 0;
      stop(rejected - goes_on, drafted);
      if (goes_on > 0) {
        const Interval& range = prices_.beyond[room][drafted];
        fewest += goes_on * range.lo;
        most += goes_on * range.hi;
        end_steps(goes_on, drafted + 1, room);
      }
      rejections += rejected;
      of(s) *= text.acceptance[t];
    }
    double stopped = 0;
    const bool trips = text.probability[t] < threshold;
    while (oldest <= t && (trips || t - oldest + 1 == limit)) {
      stop(of(oldest), t - oldest + 1);
      stopped += of(oldest++);
    }
    of(t + 1) = rejections + bonus;
    bonus = stopped;
  }
  if (text.half == chosen) {
    policy.chosen_most.add(most);
    return;
  }
  policy.fewest[text.group].add(fewest);
  policy.most[text.group].add(most);
  policy.steps.add(steps);
  policy.drafted_fewest.add(drafted_fewest);
  policy.drafted_most.add(drafted_most);
}

void AdaptiveDrafting::evaluate() {
  if (confidence_known_) {
    core::for_each_index(std::ssize(policies_), options_.threads, [&](std::int64_t i, std::int64_t) {
      for (const Text& text : finished_) follow(text, policies_[index_of(i)]);
    });
    theory::StreamingReplay replay({.max_gamma = options_.max_gamma});
    for (const Text& text : finished_) {
      if (text.half != judged_half) continue;
      replay.add(text.acceptance);
      const theory::ReplayedRounds& rounds = replay.finish_sequence();
      for (std::int64_t gamma = 0; gamma <= options_.max_gamma; ++gamma) {
        fixed_cost_[index_of(gamma)][text.group].add(rounds.cost(gamma, options_.cost));
      }
    }
  }
  finished_.clear();
  finished_positions_ = 0;
}

void AdaptiveDrafting::finish() {
  if (!current_) return;
  end_sequence();
  current_.reset();
  evaluate();
}

void AdaptiveDrafting::Policy::merge(const Policy& other) {
  chosen_most.add(other.chosen_most);
  add_to(fewest, other.fewest);
  add_to(most, other.most);
  steps.add(other.steps);
  drafted_fewest.add(other.drafted_fewest);
  drafted_most.add(other.drafted_most);
}

void AdaptiveDrafting::merge(const AdaptiveDrafting& other) {
  for (std::size_t i = 0; i < policies_.size(); ++i) policies_[i].merge(other.policies_[i]);
  for (std::size_t gamma = 0; gamma < fixed_cost_.size(); ++gamma) add_to(fixed_cost_[gamma], other.fixed_cost_[gamma]);
  confidence_known_ = confidence_known_ && other.confidence_known_;
  positions_ += other.positions_;
  for (std::size_t half = 0; half < left_out_.size(); ++half) {
    sequences_[half] += other.sequences_[half];
    tokens_[half] += other.tokens_[half];
    tokens_of_policies_[half] += other.tokens_of_policies_[half];
    left_out_[half] += other.left_out_[half];
  }
}

JudgedThreshold AdaptiveDrafting::judged(const Policy& policy, std::int64_t fixed_gamma) const {
  const std::array<core::ExactSum, groups>& fixed = fixed_cost_[index_of(fixed_gamma)];
  const double tokens = tokens_of_policies_[judged_half];
  const double threshold = options_.thresholds[policy.threshold];
  JudgedThreshold result;
  result.threshold = threshold;
  result.at_grid_edge = threshold == options_.thresholds.front() || threshold == options_.thresholds.back();
  result.limit = policy.limit;
  const double steps = policy.steps.value();
  result.tokens_per_step = tokens / steps;
  result.speedup = {tokens / sum(policy.most), tokens / sum(policy.fewest)};
  result.drafted_per_step = {policy.drafted_fewest.value() / steps, policy.drafted_most.value() / steps};
  result.gain = {sum(fixed) / sum(policy.most) - 1, sum(fixed) / sum(policy.fewest) - 1};
  result.groups = std::count_if(policy.most.begin(), policy.most.end(),
                                [](const core::ExactSum& cost) { return cost.value() > 0; });
  if (result.groups < fewest_judged) return result;
  const auto interval = [&](const std::array<core::ExactSum, groups>& cost) -> std::optional<Interval> {
    std::vector<RatioTerm> terms;
    for (std::size_t g = 0; g < groups; ++g) {
      if (cost[g].value() > 0) terms.push_back({fixed[g].value(), cost[g].value()});
    }
    const auto error = standard_error(terms);
    if (!error) return std::nullopt;
    return t_interval(sum(fixed) / sum(cost) - 1, *error);
  };
  const auto low = interval(policy.most);
  const auto high = interval(policy.fewest);
  if (low && high) result.gain_ci95 = hull(*low, *high);
  return result;
}

AdaptiveReport AdaptiveDrafting::report(const std::array<theory::ReplayedRounds, 2>& halves) const {
  core::require_in("AdaptiveDrafting::report", "max_gamma of the replay", halves[0].max_gamma(), options_.max_gamma,
                   core::largest_integer);
  AdaptiveReport report;
  if (sequences_[chosen] + sequences_[judged_half] == 0) return report;
  const bool only_one = sequences_[chosen] == 0 || sequences_[judged_half] == 0;
  const std::size_t seen = sequences_[judged_half] > 0 ? judged_half : chosen;
  report.chosen_on = only_one ? 0 : sequences_[chosen];
  report.judged_on = sequences_[seen];
  if (left_out_[seen] > 0) {
    report.notes.push_back(
        fmt::format("{} of {} sequences have more than {} tokens; thresholds are over the others alone",
                    left_out_[seen], report.judged_on, options_.longest_sequence));
  }
  if (only_one) {
    report.notes.push_back(
        report.judged_on == 1
            ? "one sequence: no policy can be chosen on one half and judged on the other"
            : fmt::format("all {} sequences are in one half: no policy can be chosen on one and judged on the other",
                          report.judged_on));
    return report;
  }

  JudgedGamma fixed;
  for (std::int64_t gamma = 1; gamma <= options_.max_gamma; ++gamma)
    if (halves[chosen].cost(gamma, options_.cost) < halves[chosen].cost(fixed.gamma, options_.cost))
      fixed.gamma = gamma;
  fixed.speedup = tokens_[judged_half] / halves[judged_half].cost(fixed.gamma, options_.cost);
  report.fixed = fixed;
  const bool both_halves = tokens_of_policies_[chosen] > 0 && tokens_of_policies_[judged_half] > 0;
  if (!confidence_known_ || !both_halves || policies_.empty()) return report;
  const auto best = std::min_element(policies_.begin(), policies_.end(), [](const Policy& a, const Policy& b) {
    return a.chosen_most.value() < b.chosen_most.value();
  });
  report.threshold = judged(*best, fixed.gamma);
  return report;
}

}  // namespace specdec::estimate
