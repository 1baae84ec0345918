#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "analysis/core/standardisation.hpp"
#include "sim/generation.hpp"
#include "sim/language_model.hpp"
#include "sim/random.hpp"

/// A draft proposes, a verifier accepts, a policy decides how far to draft.
namespace specdec::sim {

/// Rule for the length of drafts. Pure functions, so that one policy serves any number of runs and threads; empty ones
/// change nothing. sim/policies.hpp has the usual ones.
struct DraftingPolicy {
  /// True if drafting ends here, given the draft's row for the next token, which is then not drawn. It depends on the
  /// prefix alone, so the text keeps its law. At temperature 0 the row is that of temperature 1: a point mass tells no
  /// confidence.
  std::function<bool(std::span<const double> row)> stops_before;
  /// True if drafting ends after a drafted token, given its probability in that row and the product of those of all
  /// tokens of the round. The token is still submitted: dropping it because of its own probability would bias the text.
  std::function<bool(double token_probability, double running_product)> stops_after;
  /// Tokens to draft in the next round, given those of the last one and its outcome; >= 0.
  std::function<std::int64_t(std::int64_t gamma, const Step& last)> next_gamma;
};

/// A request to a draft.
struct DraftRequest {
  /// The prompt and what has been generated.
  std::span<const Token> text;
  /// The most tokens to propose, >= 0.
  std::int64_t limit;
  std::int64_t round;
  const DraftingPolicy& policy;
  const UniformSource& uniforms;
};

/// The tokens of one round, and the law from which each was drawn given those before it: a point mass if there was
/// no randomness. Shape: tokens (n), rows (n, vocab), 0 <= n <= limit.
struct Proposal {
  std::vector<Token> tokens;
  std::vector<double> rows;
};

/// The work of a draft since its text began, the prompt excluded; see Counters.
struct DraftWork {
  std::int64_t calls = 0;
  std::int64_t positions = 0;
  double operations = 0;
};

/// A source of proposed tokens. Under a lossless verifier the text keeps its law whatever is proposed, as long as each
/// token was drawn from its row, using the uniforms (round, slot, draft) of this round.
class Draft {
 public:
  virtual ~Draft() = default;
  virtual std::int64_t vocab_size() const = 0;
  /// Longest text that it can continue, in tokens.
  virtual std::int64_t max_length() const { return std::numeric_limits<std::int64_t>::max(); }
  /// Resets the draft and reads the prompt, which has at least one token.
  virtual void begin(std::span<const Token>) {}
  /// Overwrites the proposal with tokens that may follow the text; fewer than the limit, or none, if it has no more
  /// to propose or the policy stops it.
  virtual void propose(const DraftRequest& request, Proposal& proposal) = 0;
  /// Discards everything beyond the first `length` tokens, which are the text and the accepted drafts.
  virtual void keep(std::int64_t) {}
  virtual DraftWork work() const { return {}; }
};

/// Rule by which a model's row is turned into a proposed token.
enum class Proposing {
  sampled,  ///< a token of the row; the law is the row
  greedy    ///< the most probable token, the lowest in a tie; the law is a point mass. The default of most engines
};

/// Builds a proposal row by row, as every draft with distributions does.
class RowProposer {
 public:
  /// Empties the proposal. All arguments must outlive the object.
  RowProposer(const DraftRequest& request, std::int64_t vocab_size, const core::Standardisation& standardisation,
              Proposing proposing, Proposal& proposal);

  /// True if another token is wanted.
  bool wants_more() const { return static_cast<std::int64_t>(proposal_.tokens.size()) < request_.limit; }
  /// The buffer for the next token's distribution, at temperature 1. Shape: (vocab_size). Valid until the next call.
  std::span<double> next_row();
  /// Standardises that row and draws from it, draft i by the uniform (round, i, draft), unless the policy stops before;
  /// false if drafting ends before or after it.
  bool propose();

 private:
  const DraftRequest& request_;
  std::size_t vocab_size_;
  const core::Standardisation& standardisation_;
  Proposing proposing_;
  Proposal& proposal_;
  double product_ = 1;
};

/// A language model that proposes token after token, one call each. Non-owning.
///
/// Draft i of a round is sampled by the uniform (round, i, draft). The first call of a round includes the tokens of the
/// text that the model lacks. A row at which the policy stops before drawing has cost a call, too.
class ModelDraft final : public Draft {
 public:
  /// @throws std::domain_error if a field of `standardisation` is out of range
  ModelDraft(LanguageModel& model, const core::Standardisation& standardisation,
             Proposing proposing = Proposing::sampled);

  std::int64_t vocab_size() const override { return model_.vocab_size(); }
  std::int64_t max_length() const override { return model_.max_length(); }
  void begin(std::span<const Token> prompt) override;
  void propose(const DraftRequest& request, Proposal& proposal) override;
  void keep(std::int64_t length) override;
  DraftWork work() const override;

 private:
  LanguageModel& model_;
  core::Standardisation standardisation_;
  Proposing proposing_;
  std::int64_t calls_ = 0;
  std::int64_t positions_ = 0;
};

/// One draft, and another one for the rounds in which the first has nothing to propose: for instance n-grams of the
/// context first, then a model. Non-owning.
class FallbackDraft final : public Draft {
 public:
  /// @throws std::invalid_argument if the vocabularies differ in size
  FallbackDraft(Draft& first, Draft& otherwise);

  std::int64_t vocab_size() const override { return first_.vocab_size(); }
  std::int64_t max_length() const override;
  void begin(std::span<const Token> prompt) override;
  void propose(const DraftRequest& request, Proposal& proposal) override;
  void keep(std::int64_t length) override;
  DraftWork work() const override;

 private:
  Draft& first_;
  Draft& otherwise_;
};

/// Proposes what followed an earlier occurrence of the text's end: of the longest suffix of the text, of `shortest` to
/// `longest` tokens, that also occurs earlier, the latest occurrence, and the tokens after it, as far as there are
/// any. Proposes nothing if no suffix occurs earlier. Prompt lookup, or copying from the context.
///
/// No randomness and no model: the rows are point masses, no policy stops it, and its work is 0.
/// Time: O(length longest) per round.
///
/// Source:   Saxena 2023, "Prompt lookup decoding"; docs/reference/methods.md#prompt-lookup
class LookupDraft final : public Draft {
 public:
  /// @param shortest  fewest tokens that must match, >= 1
  /// @param longest   most tokens that are compared, >= shortest
  /// @throws std::domain_error if a parameter is out of range
  LookupDraft(std::int64_t vocab_size, std::int64_t shortest, std::int64_t longest);

  std::int64_t vocab_size() const override { return vocab_size_; }
  void propose(const DraftRequest& request, Proposal& proposal) override;

 private:
  std::int64_t vocab_size_;
  std::int64_t shortest_;
  std::int64_t longest_;
};

}  // namespace specdec::sim
