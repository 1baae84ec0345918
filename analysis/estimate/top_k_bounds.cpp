#include "analysis/estimate/top_k_bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <utility>

namespace specdec::estimate {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Interval acceptance(const Interval& p, const Interval& q) {
  const double lowest = p.hi > 0 ? std::min(1.0, q.lo / p.hi) : (q.lo > 0 ? 1 : 0);
  const double highest = p.lo > 0 ? std::min(1.0, q.hi / p.lo) : (q.hi > 0 ? 1 : 0);
  return {lowest, highest};
}

/// The mass that may be missing from a list of all tokens of positive probability, by rounding.
constexpr double whole_list = 1e-6;

/// The (width - 1)th probability of a list: the engine's own tokens, whether or not the emitted one is appended, are
/// those down to it. Infinity if the list is shorter.
template <class Entry>
double next_to_least(const std::vector<Entry>& entries, std::ptrdiff_t width) {
  if (width < 2 || std::ssize(entries) < width - 1) return infinity;
  std::vector<double> own;
  for (const Entry& entry : entries) own.push_back(entry.own);
  std::nth_element(own.begin(), own.begin() + (width - 2), own.end(), std::greater<>());
  return own[static_cast<std::size_t>(width - 2)];
}

/// Sums over the outcomes of a function of the emitted token.
struct OutcomeSums {
  double mean = 0, square = 0;

  void add(double probability, double value) {
    mean += probability * value;
    square += probability * value * value;
  }
  ListedDeviation of(double value) const { return {value - mean, std::max(0.0, square - mean * mean)}; }
};

}  // namespace

double probability_of_logprob(double logprob) {
  // With the arguments in this order NaN stays NaN.
  return means_zero(logprob) ? 0 : std::min(std::exp(logprob), 1.0);
}

TopKPair pair_at(const traces::PositionBatch& batch, std::optional<std::int64_t> vocab, std::int64_t i) {
  const auto at = static_cast<std::size_t>(i);
  const auto row = [at](auto values, std::int64_t k) {
    const auto width = static_cast<std::size_t>(k);
    return values.empty() ? values : values.subspan(at * width, width);
  };
  const auto list = [&](const traces::TopK& of, std::int64_t other_k) {
    return TopKList{row(of.ids, of.k), row(of.logprobs, of.k), of.tail_logprob.empty() ? none : of.tail_logprob[at],
                    row(of.at_other, other_k)};
  };
  const auto first_of = [at](std::span<const float> column, std::int64_t width) {
    return column.empty() ? none : column[at * static_cast<std::size_t>(width)];
  };
  return {list(batch.target_top_k, batch.draft_top_k.k),
          list(batch.draft_top_k, batch.target_top_k.k),
          vocab,
          batch.token.empty() ? -1 : batch.token[at],
          first_of(batch.target_token_logprob, 1),
          first_of(batch.draft_token_logprob, batch.depths)};
}

const TopKBounder::Entry* TopKBounder::List::find(std::int64_t id) const {
  const auto at = std::lower_bound(entries.begin(), entries.end(), id,
                                   [](const Entry& entry, std::int64_t wanted) { return entry.id < wanted; });
  return at != entries.end() && at->id == id ? &*at : nullptr;
}

const TopKBounder::Entry* TopKBounder::List::find_sure(std::int64_t id) const {
  const Entry* const entry = find(id);
  return entry != nullptr && is_sure(*entry) ? entry : nullptr;
}

std::optional<TopKFault> TopKBounder::read(const TopKPair& pair, traces::Role role, double tolerance, List& out) {
  const TopKList& list = role == traces::Role::target ? pair.target : pair.draft;
  const std::span<const float> of_other = role == traces::Role::target ? pair.draft.at_other : pair.target.at_other;
  out = {std::move(out.entries), 0, infinity, -1, 0, infinity};
  out.entries.clear();
  double sum = 0;
  for (std::size_t i = 0; i < list.ids.size(); ++i) {
    const double logprob = list.logprobs[i];
    if (list.ids[i] < 0) continue;
    if (!(logprob <= tolerance))
      return TopKFault{role, fmt::format("{} as log-probability {} of its list", logprob, i), "at most 0"};
    const double probability = probability_of_logprob(logprob);
    sum += probability;
    out.entries.push_back({list.ids[i], probability, of_other.empty() ? none : probability_of_logprob(of_other[i])});
    if (list.ids[i] != pair.token) out.largest_outside = std::min(out.largest_outside, probability);
    if (probability > out.max || (probability == out.max && list.ids[i] < out.argmax) || out.argmax < 0) {
      out.max = probability;
      out.argmax = list.ids[i];
    }
  }
  const bool tail_known = !std::isnan(list.tail_logprob);
  const double total = tail_known ? sum + probability_of_logprob(list.tail_logprob) : sum;
  if (!(total <= 1 + tolerance) || (tail_known && total < 1 - tolerance)) {
    return TopKFault{role, fmt::format("a sum of {}{}", total, tail_known ? " with its tail" : ""),
                     fmt::format("{} within {}", tail_known ? "1" : "at most 1", tolerance)};
  }
  out.tail = tail_known ? probability_of_logprob(list.tail_logprob) : std::max(0.0, 1 - sum);
  std::sort(out.entries.begin(), out.entries.end(), [](const Entry& a, const Entry& b) { return a.id < b.id; });
  const auto twice = std::adjacent_find(out.entries.begin(), out.entries.end(),
                                        [](const Entry& a, const Entry& b) { return a.id == b.id; });
  if (twice != out.entries.end()) {
    return TopKFault{role, fmt::format("a list with token {} twice", twice->id), "a list of different tokens"};
  }
  out.largest_outside = std::min(out.largest_outside, out.tail);
  out.sure_above = sum >= 1 - whole_list ? -1 : next_to_least(out.entries, std::ssize(list.ids));
  return std::nullopt;
}

std::optional<TopKFault> TopKBounder::bounds(const TopKPair& pair, double tolerance, TopKBounds& out) {
  if (auto fault = read(pair, traces::Role::target, tolerance, target_)) return fault;
  if (auto fault = read(pair, traces::Role::draft, tolerance, draft_)) return fault;

  /// Tokens of one list that the other lacks: those otherwise known, and the most that the other can have on the rest.
  struct Alone {
    double matched = 0;
    double known_of_other = 0;
    double room = 0;
    std::int64_t count = 0;
  };
  const auto alone = [](const List& list, const List& other) {
    Alone result;
    for (const Entry& entry : list.entries) {
      if (other.find(entry.id) != nullptr) continue;
      ++result.count;
      if (std::isnan(entry.other)) {
        result.room += std::min(entry.own, other.largest_outside);
      } else {
        result.matched += std::min(entry.own, entry.other);
        result.known_of_other += entry.other;
      }
    }
    return result;
  };
  const Alone target = alone(target_, draft_);
  const Alone draft = alone(draft_, target_);
  double matched = target.matched + draft.matched;
  for (const Entry& entry : target_.entries) {
    if (const Entry* same = draft_.find(entry.id)) matched += std::min(entry.own, same->own);
  }
  const double target_tail = std::max(0.0, target_.tail - draft.known_of_other);
  const double draft_tail = std::max(0.0, draft_.tail - target.known_of_other);
  const double u = std::min(draft_tail, target.room);
  const double v = std::min(target_tail, draft.room);
  double most = std::min(target_tail + u, draft_tail + v);
  if (pair.vocab) {
    const auto listed = static_cast<std::int64_t>(target_.entries.size()) + draft.count;
    const auto elsewhere = static_cast<double>(std::max<std::int64_t>(0, *pair.vocab - listed));
    most = std::min(most, u + v + elsewhere * std::min(target_.largest_outside, draft_.largest_outside));
  }
  out.overlap = {std::min(1.0, matched), std::min(1.0, matched + most)};

  const auto probability = [](std::int64_t token, const List& own, const List& other, double tail) -> Interval {
    if (const Entry* entry = own.find(token)) return exactly(entry->own);
    const Entry* entry = other.find(token);
    if (entry != nullptr && !std::isnan(entry->other)) return exactly(entry->other);
    return {0, std::min(own.largest_outside, tail)};
  };
  const auto of_token = [&](double recorded, const List& own, const List& other, double tail) -> Interval {
    if (!std::isnan(recorded)) return exactly(probability_of_logprob(recorded));
    if (pair.token < 0) return {0, 1};
    return probability(pair.token, own, other, tail);
  };
  out.target_token_probability = of_token(pair.target_token_logprob, target_, draft_, target_tail);
  out.draft_token_probability = of_token(pair.draft_token_logprob, draft_, target_, draft_tail);
  out.acceptance = acceptance(out.target_token_probability, out.draft_token_probability);
  out.target_argmax = target_.argmax;
  out.draft_argmax = draft_.argmax;
  out.draft_max = draft_.max;
  out.target_at_draft_argmax = probability(draft_.argmax, target_, draft_, target_tail);
  return std::nullopt;
}

ListedDeviations TopKBounder::deviations(const TopKPair& pair) const {
  OutcomeSums acceptance, surprisal;
  double accepted = 0, outside = 1;
  bool in_both = false;
  const auto add_pair = [&](std::int64_t id, double p, double q) {
    if (std::isnan(p) || std::isnan(q) || !(p > 0)) return;
    in_both = true;
    acceptance.add(p, std::min(1.0, q / p));
    if (id == pair.token) accepted = std::min(1.0, q / p);
  };
  for (const Entry& entry : target_.entries) {
    if (!target_.is_sure(entry) || !(entry.own > 0)) continue;
    const Entry* const same = draft_.find_sure(entry.id);
    add_pair(entry.id, entry.own, same != nullptr ? same->own : entry.other);
    surprisal.add(entry.own, -std::log(entry.own));
    outside -= entry.own;
  }
  for (const Entry& entry : draft_.entries) {
    if (draft_.is_sure(entry) && target_.find_sure(entry.id) == nullptr) add_pair(entry.id, entry.other, entry.own);
  }
  ListedDeviations result;
  if (in_both) result.acceptance = acceptance.of(accepted);
  const Entry* const emitted = target_.find_sure(pair.token);
  if (outside > 0) surprisal.add(outside, -std::log(outside));
  if (outside < 1 && (emitted != nullptr || outside > 0)) {
    result.surprisal = surprisal.of(-std::log(emitted != nullptr ? emitted->own : outside));
  }
  const Entry* const first = draft_.find(draft_.argmax);
  if (first == nullptr) return result;
  const Entry* const by_target = target_.find_sure(draft_.argmax);
  const double p = by_target != nullptr ? by_target->own : first->other;
  if (!std::isnan(p)) result.first = {(pair.token == draft_.argmax ? 1 : 0) - p, p * (1 - p)};
  return result;
}

}  // namespace specdec::estimate
