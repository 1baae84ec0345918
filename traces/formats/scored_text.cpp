#include "traces/formats/scored_text.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace specdec::traces {

std::int32_t ScoredText::number_of_text(std::string_view text) {
  const auto [found, added] = numbers_.try_emplace(text, static_cast<std::int32_t>(texts.size()));
  if (added) texts.push_back(text);
  return found->second;
}

std::int32_t ScoredText::number_of(std::string_view text) const {
  const auto found = numbers_.find(text);
  return found == numbers_.end() ? -1 : found->second;
}

void ScoredText::list_text(std::string_view text, float listed_logprob) {
  std::int32_t number = number_of_text(text);
  const std::size_t begin = ends_.empty() ? 0 : ends_.back();
  const auto same = [number](const Entry& entry) { return entry.id == number; };
  if (std::any_of(entries_.begin() + static_cast<std::ptrdiff_t>(begin), entries_.end(), same)) {
    number = static_cast<std::int32_t>(texts.size());
    texts.push_back(text);
  }
  list(number, listed_logprob);
}

void ScoredText::end_position(std::int32_t token_id, std::optional<float> token_logprob, std::int32_t token_rank) {
  token.push_back(token_id);
  if (token_logprob) logprob.push_back(*token_logprob);
  rank.push_back(token_rank);
  ends_.push_back(entries_.size());
}

void ScoredText::keep(std::int64_t first, std::int64_t length) {
  const auto cut = [first, length](auto& column) {
    if (column.empty()) return;
    column.erase(column.begin() + first + length, column.end());
    column.erase(column.begin(), column.begin() + first);
  };
  const std::size_t begin = first == 0 ? 0 : ends_[static_cast<std::size_t>(first) - 1];
  cut(token);
  cut(logprob);
  cut(rank);
  cut(ends_);
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(begin));
  for (std::size_t& end : ends_) end -= begin;
  entries_.resize(ends_.empty() ? 0 : ends_.back());
}

std::span<ScoredText::Entry> ScoredText::entries_of(std::size_t position) {
  const std::size_t begin = position == 0 ? 0 : ends_[position - 1];
  return std::span(entries_).subspan(begin, ends_[position] - begin);
}

std::size_t ScoredText::longest_sure_list(Lists lists) {
  std::size_t shortest = std::numeric_limits<std::size_t>::max();
  std::size_t longest = 0;
  std::size_t surest = shortest;
  bool all_hold_emitted = true;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const auto entries = entries_of(i);
    shortest = std::min(shortest, entries.size());
    longest = std::max(longest, entries.size());
    if (entries.empty()) return 0;
    const bool last = entries.back().id == token[i];
    const bool sure = !last || rank[i] == static_cast<std::int32_t>(entries.size());
    surest = std::min(surest, sure ? entries.size() : entries.size() - 1);
    all_hold_emitted = all_hold_emitted && std::any_of(entries.begin(), entries.end(),
                                                       [&](const Entry& entry) { return entry.id == token[i]; });
  }
  // Lists of two lengths: the longer ones have the emitted token appended. Lists without it hold nothing else.
  const bool appended = lists == Lists::perhaps_emitted_too && all_hold_emitted && shortest == longest;
  return token.empty() ? 0 : appended ? surest : shortest;
}

std::optional<std::int64_t> ScoredText::finish(Lists lists) {
  const auto more_probable = [](const Entry& a, const Entry& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.rank < b.rank;
  };
  for (std::size_t i = 0; i < token.size(); ++i) {
    const auto entries = entries_of(i);
    if (!std::is_sorted(entries.begin(), entries.end(), more_probable)) {
      std::stable_sort(entries.begin(), entries.end(), more_probable);
    }
  }
  const std::size_t length = longest_sure_list(lists);
  k = static_cast<std::int64_t>(length);
  if (length == 0) return std::nullopt;
  ids.resize(token.size() * length);
  logprobs.resize(ids.size());
  tail.resize(token.size());
  constexpr double tolerance = 1e-3;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const auto entries = entries_of(i).first(length);
    double mass = 0;
    std::int32_t place = 0;
    for (std::size_t j = 0; j < length; ++j) {
      ids[i * length + j] = entries[j].id;
      logprobs[i * length + j] = entries[j].logprob;
      mass += std::exp(static_cast<double>(entries[j].logprob));
      if (entries[j].id == token[i] && place == 0) place = static_cast<std::int32_t>(j) + 1;
    }
    if (!(mass <= 1 + tolerance)) return static_cast<std::int64_t>(i);
    tail[i] = static_cast<float>(std::log(std::max(0.0, 1 - mass)));
    if (rank[i] == 0 && token[i] >= 0) rank[i] = place > 0 ? place : static_cast<std::int32_t>(length) + 1;
  }
  return std::nullopt;
}

}  // namespace specdec::traces
