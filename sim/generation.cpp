#include "sim/generation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "analysis/core/checks.hpp"

namespace specdec::sim {
namespace {

void add(std::vector<std::int64_t>& into, const std::vector<std::int64_t>& from) {
  into.resize(std::max(into.size(), from.size()));
  for (std::size_t j = 0; j < from.size(); ++j) into[j] += from[j];
}

}  // namespace

void Counters::merge(const Counters& other) {
  for (const auto count : counts()) this->*count += other.*count;
  add(drafted_at, other.drafted_at);
  add(accepted_at, other.accepted_at);
  operations += other.operations;
}

void Generation::begin_step(const Step& step, std::int64_t depth) {
  counters.steps += 1;
  counters.drafted += step.drafted;
  counters.accepted += step.accepted;
  counters.drafted_at.resize(std::max(counters.drafted_at.size(), static_cast<std::size_t>(depth)));
  counters.accepted_at.resize(counters.drafted_at.size());
  for (std::size_t j = 0; j < static_cast<std::size_t>(depth); ++j) counters.drafted_at[j] += 1;
  for (std::size_t j = 0; j < static_cast<std::size_t>(step.accepted); ++j) counters.accepted_at[j] += 1;
  steps.push_back(step);
}

void Generation::emit(Token token, const std::optional<Token>& end_token) {
  tokens.push_back(token);
  steps.back().emitted += 1;
  counters.tokens += 1;
  ended = token == end_token;
}

void require_room_for_text(std::string_view function, std::int64_t max_length, std::span<const Token> prompt,
                           std::int64_t max_new_tokens) {
  const auto length = static_cast<std::int64_t>(prompt.size());
  core::require_in(function, "prompt length", length, 1, max_length);
  core::require_in(function, "max_new_tokens", max_new_tokens, 0, max_length - length + 1);
}

void require_one_vocabulary(std::string_view function, std::int64_t target_vocab, std::int64_t draft_vocab) {
  if (target_vocab == draft_vocab) return;
  throw std::invalid_argument(fmt::format("{}: the target's vocabulary has {} tokens, but the draft's has {}", function,
                                          target_vocab, draft_vocab));
}

}  // namespace specdec::sim
