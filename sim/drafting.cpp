#include "sim/drafting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "sim/sampling.hpp"

namespace specdec::sim {
namespace {

constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

void make_point_mass(std::span<double> row, Token token) {
  std::ranges::fill(row, 0.0);
  row[static_cast<std::size_t>(token)] = 1;
}

/// The number of tokens before `end` that equal those at the end of the text, at most `longest`.
std::int64_t match_length(std::span<const Token> text, std::int64_t end, std::int64_t longest) {
  std::int64_t length = 0;
  while (length < std::min(end, longest) && text[static_cast<std::size_t>(end - 1 - length)] ==
                                                text[static_cast<std::size_t>(length_of(text) - 1 - length)])
    ++length;
  return length;
}

}  // namespace

RowProposer::RowProposer(const DraftRequest& request, std::int64_t vocab_size,
                         const core::Standardisation& standardisation, Proposing proposing, Proposal& proposal)
    : request_(request),
      vocab_size_(static_cast<std::size_t>(vocab_size)),
      standardisation_(standardisation),
      proposing_(standardisation.temperature == 0 ? Proposing::greedy : proposing),
      proposal_(proposal) {
  proposal.tokens.clear();
  proposal.rows.clear();
  proposal.rows.reserve(static_cast<std::size_t>(request.limit) * vocab_size_);
}

std::span<double> RowProposer::next_row() {
  proposal_.rows.resize((proposal_.tokens.size() + 1) * vocab_size_);
  return std::span(proposal_.rows).last(vocab_size_);
}

bool RowProposer::propose() {
  const std::span<double> row = std::span(proposal_.rows).last(vocab_size_);
  if (standardisation_.temperature > 0) core::standardise(row, standardisation_);
  if (request_.policy.stops_before && request_.policy.stops_before(row)) {
    proposal_.rows.resize(proposal_.tokens.size() * vocab_size_);
    return false;
  }
  const std::int64_t slot = length_of(proposal_.tokens);
  const Token token = proposing_ == Proposing::greedy
                          ? static_cast<Token>(core::argmax(row))
                          : sample(row, request_.uniforms.uniform(request_.round, slot, Purpose::draft));
  const double probability = row[static_cast<std::size_t>(token)];
  product_ *= probability;
  if (proposing_ == Proposing::greedy) make_point_mass(row, token);
  proposal_.tokens.push_back(token);
  return !(request_.policy.stops_after && request_.policy.stops_after(probability, product_));
}

ModelDraft::ModelDraft(LanguageModel& model, const core::Standardisation& standardisation, Proposing proposing)
    : model_(model), standardisation_(standardisation), proposing_(proposing) {
  require_valid(standardisation);
}

void ModelDraft::begin(std::span<const Token> prompt) {
  calls_ = positions_ = 0;
  model_.roll_back(0);
  if (prompt.size() > 1) model_.score(prompt.first(prompt.size() - 1), {});
}

void ModelDraft::propose(const DraftRequest& request, Proposal& proposal) {
  RowProposer rows(request, vocab_size(), standardisation_, proposing_, proposal);
  std::span<const Token> unread = request.text.subspan(static_cast<std::size_t>(model_.length()));
  while (rows.wants_more()) {
    model_.score(unread, rows.next_row());
    calls_ += 1;
    positions_ += length_of(unread);
    if (!rows.propose()) break;
    unread = std::span(proposal.tokens).last(1);
  }
}

void ModelDraft::keep(std::int64_t length) { model_.roll_back(std::min(length, model_.length())); }

DraftWork ModelDraft::work() const {
  return {calls_, positions_, model_.operations_per_token() * static_cast<double>(positions_)};
}

FallbackDraft::FallbackDraft(Draft& first, Draft& otherwise) : first_(first), otherwise_(otherwise) {
  if (first.vocab_size() != otherwise.vocab_size())
    throw std::invalid_argument(
        fmt::format("FallbackDraft: the first draft's vocabulary has {} tokens, but the other's has {}",
                    first.vocab_size(), otherwise.vocab_size()));
}

std::int64_t FallbackDraft::max_length() const { return std::min(first_.max_length(), otherwise_.max_length()); }

void FallbackDraft::begin(std::span<const Token> prompt) {
  first_.begin(prompt);
  otherwise_.begin(prompt);
}

void FallbackDraft::propose(const DraftRequest& request, Proposal& proposal) {
  first_.propose(request, proposal);
  if (proposal.tokens.empty()) otherwise_.propose(request, proposal);
}

void FallbackDraft::keep(std::int64_t length) {
  first_.keep(length);
  otherwise_.keep(length);
}

DraftWork FallbackDraft::work() const {
  const DraftWork a = first_.work();
  const DraftWork b = otherwise_.work();
  return {a.calls + b.calls, a.positions + b.positions, a.operations + b.operations};
}

LookupDraft::LookupDraft(std::int64_t vocab_size, std::int64_t shortest, std::int64_t longest)
    : vocab_size_(vocab_size), shortest_(shortest), longest_(longest) {
  core::require_in("LookupDraft", "vocab_size", vocab_size, 1, std::numeric_limits<Token>::max());
  core::require_in("LookupDraft", "shortest", shortest, 1, unbounded);
  core::require_in("LookupDraft", "longest", longest, shortest, unbounded);
}

void LookupDraft::propose(const DraftRequest& request, Proposal& proposal) {
  std::int64_t continuation = length_of(request.text);
  std::int64_t longest_match = shortest_ - 1;
  for (std::int64_t end = length_of(request.text) - 1; end > 0 && longest_match < longest_; --end) {
    const std::int64_t length = match_length(request.text, end, longest_);
    if (length <= longest_match) continue;
    longest_match = length;
    continuation = end;
  }
  const std::span<const Token> copied = request.text.subspan(static_cast<std::size_t>(continuation));
  const std::size_t count = std::min(copied.size(), static_cast<std::size_t>(request.limit));
  proposal.tokens.assign(copied.begin(), copied.begin() + static_cast<std::ptrdiff_t>(count));
  const auto vocab = static_cast<std::size_t>(vocab_size_);
  proposal.rows.resize(count * vocab);
  for (std::size_t i = 0; i < count; ++i) {
    core::require_in("LookupDraft", "token of the text", std::int64_t{proposal.tokens[i]}, 0, vocab_size_ - 1);
    make_point_mass(std::span(proposal.rows).subspan(i * vocab, vocab), proposal.tokens[i]);
  }
}

}  // namespace specdec::sim
