#include "sim/drafts/hierarchical.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"

namespace specdec::sim {

HierarchicalDraft::HierarchicalDraft(LanguageModel& middle, Draft& inner, std::int64_t inner_gamma,
                                     const core::Standardisation& standardisation, Verifier verifier)
    : middle_(middle),
      inner_(inner),
      inner_gamma_(inner_gamma),
      standardisation_(standardisation),
      verifier_(std::move(verifier)) {
  if (middle.vocab_size() != inner.vocab_size())
    throw std::invalid_argument(
        fmt::format("HierarchicalDraft: the middle model's vocabulary has {} tokens, but the inner draft's has {}",
                    middle.vocab_size(), inner.vocab_size()));
  core::require_in("HierarchicalDraft", "inner_gamma", inner_gamma, 0, std::numeric_limits<std::int64_t>::max());
  core::require_valid(standardisation);
}

std::int64_t HierarchicalDraft::max_length() const { return std::min(middle_.max_length(), inner_.max_length()); }

void HierarchicalDraft::begin(std::span<const Token> prompt) {
  calls_ = positions_ = 0;
  middle_.roll_back(0);
  if (prompt.size() > 1) middle_.score(prompt.first(prompt.size() - 1), {});
  inner_.begin(prompt);
}

void HierarchicalDraft::propose(const DraftRequest& request, Proposal& proposal) {
  const auto vocab = static_cast<std::size_t>(vocab_size());
  const InnerUniforms uniforms(request.uniforms, request.round);
  const auto proposed = [&proposal] { return static_cast<std::int64_t>(proposal.tokens.size()); };
  proposal.tokens.clear();
  proposal.rows.clear();
  text_.assign(request.text.begin(), request.text.end());
  double product = 1;
  bool goes_on = true;
  for (std::int64_t round = 0; goes_on && proposed() < request.limit; ++round) {
    const Verdict verdict = run_inner_round(uniforms, round, request.limit - proposed());
    for (std::size_t i = 0; goes_on && i <= static_cast<std::size_t>(verdict.accepted); ++i) {
      const std::span<const double> row = std::span<const double>(rows_).subspan(i * vocab, vocab);
      if (request.policy.stops_before && request.policy.stops_before(row)) {
        goes_on = false;
        break;
      }
      const bool accepted = static_cast<std::int64_t>(i) < verdict.accepted;
      const Token token = accepted ? inner_proposal_.tokens[i] : verdict.extra;
      text_.push_back(token);
      proposal.tokens.push_back(token);
      proposal.rows.insert(proposal.rows.end(), row.begin(), row.end());
      const double probability = row[static_cast<std::size_t>(token)];
      product *= probability;
      goes_on = !(request.policy.stops_after && request.policy.stops_after(probability, product));
    }
  }
}

/// Stores the middle model's rows after the text and each inner draft in rows_.
Verdict HierarchicalDraft::run_inner_round(const UniformSource& uniforms, std::int64_t round, std::int64_t wanted) {
  static const DraftingPolicy none;
  const auto vocab = static_cast<std::size_t>(vocab_size());
  const std::int64_t limit = std::min(inner_gamma_, wanted - 1);
  inner_.propose({text_, limit, round, none, uniforms}, inner_proposal_);
  const auto drafted = static_cast<std::int64_t>(inner_proposal_.tokens.size());
  core::require_in("HierarchicalDraft", "inner draft's tokens", drafted, 0, limit);

  block_.assign(text_.begin() + static_cast<std::ptrdiff_t>(middle_.length()), text_.end());
  block_.insert(block_.end(), inner_proposal_.tokens.begin(), inner_proposal_.tokens.end());
  rows_.resize(static_cast<std::size_t>(drafted + 1) * vocab);
  middle_.score(block_, rows_);
  calls_ += 1;
  positions_ += static_cast<std::int64_t>(block_.size());
  for (std::size_t i = 0; i * vocab < rows_.size(); ++i)
    core::standardise(std::span(rows_).subspan(i * vocab, vocab), standardisation_);

  const Verdict verdict = verifier_({rows_, inner_proposal_.rows, inner_proposal_.tokens}, uniforms, round);
  keep(static_cast<std::int64_t>(text_.size()) + verdict.accepted);
  return verdict;
}

void HierarchicalDraft::keep(std::int64_t length) {
  middle_.roll_back(std::min(length, middle_.length()));
  inner_.keep(length);
}

DraftWork HierarchicalDraft::middle_work() const {
  return {calls_, positions_, middle_.operations_per_token() * static_cast<double>(positions_)};
}

DraftWork HierarchicalDraft::work() const {
  const DraftWork a = middle_work();
  const DraftWork b = inner_work();
  return {a.calls + b.calls, a.positions + b.positions, a.operations + b.operations};
}

}  // namespace specdec::sim
