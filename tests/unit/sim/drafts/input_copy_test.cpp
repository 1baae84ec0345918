#include "sim/drafts/input_copy.hpp"

#include <algorithm>
#include <vector>

#include "sim/decoding.hpp"
#include "sim/table_models.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exact_uniforms.hpp"
#include "tests/support/random_models.hpp"

using namespace specdec::sim;
using namespace specdec::test_support;

namespace {

InputCopyDraft copies_of(std::int64_t vocab, const Tokens& input, std::int64_t shortest = 1) {
  return {vocab, [input](std::span<const Token>) { return input; }, shortest};
}

/// The tokens proposed after these outputs, one round each.
Tokens proposed(InputCopyDraft& draft, const std::vector<Tokens>& rounds, std::int64_t limit) {
  const RandomStream stream(0, 0);
  const DraftingPolicy policy;
  Tokens text{0, 0};
  draft.begin(text);
  Proposal proposal;
  draft.propose({text, limit, 0, policy, stream}, proposal);
  std::int64_t round = 1;
  for (const Tokens& more : rounds) {
    text.insert(text.end(), more.begin(), more.end());
    draft.propose({text, limit, round++, policy, stream}, proposal);
  }
  const auto vocab = static_cast<std::size_t>(draft.vocab_size());
  CHECK(proposal.rows.size() == vocab * proposal.tokens.size());
  for (std::size_t i = 0; i < proposal.tokens.size(); ++i)
    CHECK(proposal.rows[vocab * i + static_cast<std::size_t>(proposal.tokens[i])] == 1);
  return proposal.tokens;
}

}  // namespace

TEST_CASE("an input is proposed from its beginning, and from behind what the output has copied") {
  InputCopyDraft draft = copies_of(20, {5, 6, 7, 8, 6, 9});
  CHECK(proposed(draft, {}, 3) == Tokens{5, 6, 7});
  CHECK(proposed(draft, {{5, 6}}, 9) == Tokens{7, 8, 6, 9});
  CHECK(draft.place() == 2);
  CHECK(proposed(draft, {{5, 6}, {7, 8, 6}}, 9) == Tokens{9});
  CHECK(proposed(draft, {{5, 6, 7, 8, 6, 9}}, 9).empty());
  CHECK(draft.place() == 6);
  CHECK(proposed(draft, {}, 0).empty());
}

TEST_CASE("after an edit the place is found by the longest suffix, the one behind it if there are several") {
  const Tokens input{5, 6, 7, 8, 6, 9, 7, 8, 10};
  InputCopyDraft draft = copies_of(20, input);
  CHECK(proposed(draft, {{5, 11}}, 9).empty());
  CHECK_FALSE(draft.place());
  // An insertion: 6 stands in the input twice, both times behind the 6 that was expected or at it.
  CHECK(proposed(draft, {{5, 11}, {6}}, 9) == Tokens{7, 8, 6, 9, 7, 8, 10});
  // Substitutions: of 6 by 11, and of the 9 by 11, after which 7 is the second one.
  CHECK(proposed(draft, {{5, 11}, {7, 8}}, 9) == Tokens{6, 9, 7, 8, 10});
  CHECK(proposed(draft, {{5, 6, 7, 8, 6, 11}, {7}}, 9) == Tokens{8, 10});
  // The longest agreement decides wherever it stands; the first 7 8 is preceded by 6.
  CHECK(proposed(draft, {{5, 6, 7, 8, 6, 11}, {6}, {7, 8}}, 3) == Tokens{6, 9, 7});
  // Twice, but not behind the place; once, before it.
  CHECK(proposed(draft, {{5, 6, 7, 8, 6, 9, 7, 8, 10}, {7}}, 9).empty());
  CHECK(proposed(draft, {{5, 6, 7, 8, 6, 9, 7, 8, 10}, {9}}, 9) == Tokens{7, 8, 10});
  // The prompt, two tokens 0, is no output.
  InputCopyDraft zeros = copies_of(20, {0, 0, 1, 2});
  CHECK(proposed(zeros, {{3}}, 9).empty());
  InputCopyDraft longer = copies_of(20, {5, 6, 7, 8}, 2);
  CHECK(proposed(longer, {{11, 6}}, 9).empty());
  CHECK(proposed(longer, {{11, 6}, {7}}, 9) == Tokens{8});
}

TEST_CASE("whatever the input, the text keeps the target's law") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    for (const Tokens& input : {Tokens{0, 1, 1, 0}, Tokens{1, 0, 0, 0, 1}, Tokens{}}) {
      ContextTableModel target = random_pair(2, 3, Likeness::independent, seed).target;
      InputCopyDraft draft = copies_of(2, input);
      ExactUniforms uniforms;
      DecodingOptions options;
      options.gamma = 3;
      options.max_new_tokens = 5;
      options.verifier = cutting(verify_tokens, algorithm_one, uniforms);
      const ExactLaw law =
          exact_law(uniforms, [&] { return decode_with_draft(target, draft, enumerated_prompt, options, uniforms); });
      CHECK(law.distance_from(target) <= 1e-12);
    }
  }
}

TEST_CASE("an input belongs to its prompt, and bad ones are refused") {
  InputCopyDraft reversed(10, [](std::span<const Token> prompt) { return Tokens(prompt.rbegin(), prompt.rend()); });
  const RandomStream stream(0, 0);
  const DraftingPolicy policy;
  Proposal proposal;
  for (const Tokens& text : {Tokens{1, 2, 3}, Tokens{4, 5}}) {
    reversed.begin(text);
    reversed.propose({text, 9, 0, policy, stream}, proposal);
    CHECK(proposal.tokens == Tokens(text.rbegin(), text.rend()));
  }
  CHECK_THROWS_AS(reversed.begin(Tokens{10}), std::domain_error);
  CHECK_THROWS_AS(copies_of(10, {}, 0), std::domain_error);
  CHECK_THROWS_AS(copies_of(0, {}), std::domain_error);
  CHECK(reversed.work().calls == 0);
}
