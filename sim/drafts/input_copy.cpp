#include "sim/drafts/input_copy.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "analysis/core/checks.hpp"

namespace specdec::sim {
namespace {

constexpr std::int64_t no_bound = std::numeric_limits<std::int64_t>::max();

/// The number of tokens at the ends of both that agree.
std::int64_t common_suffix(std::span<const Token> a, std::span<const Token> b) {
  const auto differ = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  return differ.first - a.rbegin();
}

}  // namespace

InputCopyDraft::InputCopyDraft(std::int64_t vocab_size, InputOf input_of, std::int64_t shortest)
    : vocab_size_(vocab_size), input_of_(std::move(input_of)), shortest_(shortest) {
  core::require_in("InputCopyDraft", "vocab_size", vocab_size, 1, std::numeric_limits<Token>::max());
  core::require_in("InputCopyDraft", "shortest", shortest, 1, no_bound);
}

void InputCopyDraft::begin(std::span<const Token> prompt) {
  input_ = input_of_(prompt);
  for (const Token token : input_)
    core::require_in("InputCopyDraft", "token of the input", std::int64_t{token}, 0, vocab_size_ - 1);
  seen_ = prompt_length_ = prompt.size();
  place_ = known_ = 0;
}

void InputCopyDraft::propose(const DraftRequest& request, Proposal& proposal) {
  const auto size = static_cast<std::int64_t>(input_.size());
  for (; seen_ < request.text.size() && place_; ++seen_) {
    known_ = *place_;
    const bool expected = known_ < size && input_[static_cast<std::size_t>(known_)] == request.text[seen_];
    place_ = expected ? std::optional(known_ + 1) : std::nullopt;
  }
  if (!place_) place_ = find(request.text.subspan(prompt_length_));
  seen_ = request.text.size();

  const std::span<const Token> rest =
      std::span<const Token>(input_).subspan(static_cast<std::size_t>(place_.value_or(size)));
  const std::size_t count = std::min(rest.size(), static_cast<std::size_t>(request.limit));
  proposal.tokens.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count));
  const auto vocab = static_cast<std::size_t>(vocab_size_);
  proposal.rows.assign(count * vocab, 0.0);
  for (std::size_t i = 0; i < count; ++i) proposal.rows[i * vocab + static_cast<std::size_t>(rest[i])] = 1;
}

std::optional<std::int64_t> InputCopyDraft::find(std::span<const Token> output) const {
  std::int64_t longest = shortest_ - 1;
  std::optional<std::int64_t> once;
  std::optional<std::int64_t> behind;
  for (std::int64_t end = 1; end <= static_cast<std::int64_t>(input_.size()); ++end) {
    const std::int64_t length = common_suffix(std::span(input_).first(static_cast<std::size_t>(end)), output);
    if (length < longest || length < shortest_) continue;
    once = length > longest ? std::optional(end) : std::nullopt;
    if (length > longest) behind = std::nullopt;
    if (!behind && end > known_) behind = end;
    longest = length;
  }
  return once ? once : behind;
}

}  // namespace specdec::sim
