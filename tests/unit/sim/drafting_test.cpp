// Drafts of every kind and policies inside the production decoder, over all ways a run can go
// (tests/support/exact_uniforms.hpp): whatever is proposed, the text's law is the target's.

#include "sim/drafting.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "sim/decoding.hpp"
#include "sim/ngram_model.hpp"
#include "sim/policies.hpp"
#include "sim/verifiers/baselines.hpp"
#include "sim/verifiers/block_verification.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exact_uniforms.hpp"
#include "tests/support/random_models.hpp"

using namespace specdec::sim;
using namespace specdec::test_support;
using Row = std::vector<double>;

namespace {

/// Changes what another draft proposes.
class AlteredDraft final : public Draft {
 public:
  AlteredDraft(Draft& draft, std::function<void(const DraftRequest&, Proposal&)> alter)
      : draft_(draft), alter_(std::move(alter)) {}
  std::int64_t vocab_size() const override { return draft_.vocab_size(); }
  std::int64_t max_length() const override { return draft_.max_length(); }
  void begin(std::span<const Token> prompt) override { draft_.begin(prompt); }
  void propose(const DraftRequest& request, Proposal& proposal) override {
    draft_.propose(request, proposal);
    alter_(request, proposal);
  }
  void keep(std::int64_t length) override { draft_.keep(length); }
  DraftWork work() const override { return draft_.work(); }

 private:
  Draft& draft_;
  std::function<void(const DraftRequest&, Proposal&)> alter_;
};

struct Setting {
  const char* name;
  Proposing proposing = Proposing::sampled;
  DraftingPolicy policy = {};
  bool looks_up_first = false;
  std::int64_t gamma = 3;
};

std::vector<Setting> settings() {
  return {{"sampled"},
          {"greedy", Proposing::greedy},
          {"look-up, else sampled", Proposing::sampled, {}, true},
          {"look-up, else greedy", Proposing::greedy, {}, true},
          {"threshold", Proposing::sampled, threshold_policy(0.4)},
          {"threshold on the product", Proposing::sampled, threshold_policy(0, 0.3)},
          {"threshold, greedy", Proposing::greedy, threshold_policy(0.6, 0.3)},
          {"confidence", Proposing::sampled, confidence_policy(0.6)},
          {"feedback", Proposing::sampled, feedback_policy(), false, 1},
          {"feedback, look-up", Proposing::greedy, feedback_policy(), true, 1}};
}

ExactLaw law_with(const TablePair& pair, const Setting& setting, const CutRule& rule, std::int64_t tokens,
                  const std::function<void(const DraftRequest&, Proposal&)>& alter = {}) {
  ContextTableModel target = pair.target;
  ContextTableModel model = pair.draft;
  ExactUniforms uniforms;
  CuttingModel cutting_model(model, uniforms);
  ModelDraft model_draft(cutting_model, {}, setting.proposing);
  LookupDraft lookup(target.vocab_size(), 1, 3);
  FallbackDraft fallback(lookup, model_draft);
  Draft& proposer = setting.looks_up_first ? static_cast<Draft&>(fallback) : model_draft;
  AlteredDraft altered(proposer, alter);
  Draft& draft = alter ? static_cast<Draft&>(altered) : proposer;
  DecodingOptions options;
  options.gamma = setting.gamma;
  options.max_new_tokens = tokens;
  options.policy = setting.policy;
  options.verifier = cutting(rule.verifier, rule.formulas, uniforms);
  return exact_law(uniforms, [&] { return decode_with_draft(target, draft, enumerated_prompt, options, uniforms); });
}

const CutRule token_rule{"token", verify_tokens, algorithm_one};

DraftRequest request_for(const Tokens& text, std::int64_t limit, const DraftingPolicy& policy,
                         const UniformSource& uniforms) {
  return {text, limit, 0, policy, uniforms};
}

}  // namespace

TEST_CASE("whatever drafts and how far, the text keeps the target's law, by tokens and by blocks") {
  const CutRule block{"block", verify_block, block_rule};
  for (const Setting& setting : settings()) {
    for (const CutRule& rule : {token_rule, block}) {
      for (const Likeness likeness : {Likeness::independent, Likeness::equal, Likeness::disjoint}) {
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
          for (const std::int64_t vocab : {2, 3}) {
            CAPTURE(setting.name, rule.name, likeness, seed, vocab);
            const TablePair pair = random_pair(vocab, 3, likeness, seed);
            CHECK(law_with(pair, setting, rule, vocab == 2 ? 5 : 3).distance_from(pair.target) <= 1e-12);
          }
        }
      }
    }
  }
}

TEST_CASE("wrong twins of drafts and policies do not keep the law", "[long]") {
  const TablePair pair = fixed_pair({0.5, 0.3, 0.2}, {0.2, 0.3, 0.5});
  SECTION("a greedy draft whose verifier is told that it was sampled") {
    const auto tell_row = [&](const DraftRequest&, Proposal& proposal) {
      const std::span<const double> row = pair.draft.row(enumerated_prompt);
      for (std::size_t i = 0; i < proposal.rows.size(); ++i) proposal.rows[i] = row[i % row.size()];
    };
    CHECK(law_with(pair, {"greedy", Proposing::greedy}, token_rule, 3, tell_row).distance_from(pair.target) > 1e-3);
  }
  SECTION("a policy that drops the token that tripped it; with one draft its law is known") {
    const Setting setting{"threshold", Proposing::sampled, threshold_policy(0.25), false, 1};
    const auto drop = [](const DraftRequest&, Proposal& proposal) {
      if (proposal.tokens.empty() || proposal.rows[static_cast<std::size_t>(proposal.tokens.back())] >= 0.25) return;
      proposal.tokens.pop_back();
      proposal.rows.resize(proposal.rows.size() - 3);
    };
    const ExactLaw law = law_with(pair, setting, token_rule, 2, drop);
    Row first(3);
    for (const auto& [text, probability] : law.texts) first[static_cast<std::size_t>(text.front())] += probability;
    CHECK(first[0] == Approx(2.0 / 5).epsilon(1e-12));
    CHECK(first[1] == Approx(9.0 / 25).epsilon(1e-12));
    CHECK(first[2] == Approx(6.0 / 25).epsilon(1e-12));
    CHECK(law_with(pair, setting, token_rule, 2).distance_from(pair.target) <= 1e-12);
  }
}

TEST_CASE("a greedy draft is accepted with the target's probability of it") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const TablePair pair = random_pair(3, 2, Likeness::independent, seed);
    const std::span<const double> q = pair.draft.row(enumerated_prompt);
    const auto proposed = static_cast<std::size_t>(std::max_element(q.begin(), q.end()) - q.begin());
    const double beta = pair.target.row(enumerated_prompt)[proposed];
    CHECK(law_with(pair, {"greedy", Proposing::greedy, {}, false, 1}, token_rule, 2).accepted == Approx(beta));
    // A point mass leaves Algorithm 1 no more than token matching.
    ContextTableModel target = pair.target;
    ContextTableModel model = pair.draft;
    ModelDraft draft(model, {}, Proposing::greedy);
    DecodingOptions options;
    options.gamma = 2;
    options.max_new_tokens = 30;
    const Generation run = decode_with_draft(target, draft, enumerated_prompt, options, RandomStream(seed, 0));
    CHECK(run.counters.drafted == run.counters.draft_calls);
  }
}

TEST_CASE("at temperature 0 a policy sees how sure the draft is, not the point mass that it proposes") {
  const TablePair pair = synthetic_bigram_pair(8, 0.5, 3);
  const RandomStream stream(0, 0);
  ContextTableModel model = pair.draft;
  const auto proposed = [&](const DraftingPolicy& policy, Token last) {
    ModelDraft draft(model, {.temperature = 0});
    Proposal proposal;
    draft.begin(Tokens{last});
    draft.propose(request_for({last}, 6, policy, stream), proposal);
    return proposal;
  };
  for (Token last = 0; last < 8; ++last) {
    const Tokens all = proposed({}, last).tokens;
    REQUIRE(all.size() == 6);
    Tokens text{last};
    std::vector<double> sureness;
    for (const Token token : all) {
      sureness.push_back(pair.draft.row(text)[static_cast<std::size_t>(token)]);
      text.push_back(token);
    }
    for (const double least : {0.3, 0.5, 0.7}) {
      CAPTURE(last, least);
      const auto unsure = static_cast<std::size_t>(std::ranges::find_if(sureness, [&](double p) { return p < least; }) -
                                                   sureness.begin());
      const Proposal after = proposed(threshold_policy(least), last);
      CHECK(after.tokens.size() == std::min<std::size_t>(unsure + 1, 6));
      CHECK(after.rows[static_cast<std::size_t>(all.front())] == 1);
      CHECK(proposed(confidence_policy(least), last).tokens.size() == unsure);
    }
  }
}

TEST_CASE("a look-up copies what followed the longest and latest earlier match, as far as the text goes") {
  const RandomStream stream(0, 0);
  const DraftingPolicy policy;
  const auto proposed = [&](const Tokens& text, std::int64_t limit, std::int64_t shortest, std::int64_t longest) {
    LookupDraft lookup(10, shortest, longest);
    Proposal proposal;
    lookup.propose(request_for(text, limit, policy, stream), proposal);
    CHECK(proposal.rows.size() == 10 * proposal.tokens.size());
    for (std::size_t i = 0; i < proposal.tokens.size(); ++i)
      CHECK(proposal.rows[10 * i + static_cast<std::size_t>(proposal.tokens[i])] == 1);
    return proposal.tokens;
  };
  CHECK(proposed({1, 2, 3, 9, 2, 3, 7, 1, 2, 3}, 9, 1, 5) == Tokens{9, 2, 3, 7, 1, 2, 3});  // 1 2 3 before 2 3
  CHECK(proposed({1, 2, 3, 9, 2, 3, 7, 1, 2, 3}, 2, 1, 2) == Tokens{7, 1});                 // 2 3, the later one
  CHECK(proposed({4, 4, 4}, 5, 1, 9) == Tokens{4});
  CHECK(proposed({1, 2, 3}, 5, 1, 9).empty());
  CHECK(proposed({3, 5, 3}, 5, 2, 9).empty());
  CHECK(proposed({3, 5, 3}, 0, 1, 9).empty());
  CHECK(proposed({3}, 5, 1, 9).empty());
  CHECK_THROWS_AS(LookupDraft(10, 0, 3), std::domain_error);
  CHECK_THROWS_AS(LookupDraft(10, 3, 2), std::domain_error);
  CHECK_THROWS_AS(proposed({10, 10}, 1, 1, 1), std::domain_error);
}

TEST_CASE("a round without proposals is a step of the target alone, and a fallback's model reads on where it stopped") {
  TablePair pair = synthetic_bigram_pair(8, 0.5, 3);
  LookupDraft lookup(8, 2, 4);
  ModelDraft model(pair.draft, {});
  FallbackDraft draft(lookup, model);
  DecodingOptions options;
  options.gamma = 4;
  options.max_new_tokens = 200;
  const Generation run = decode_with_draft(pair.target, draft, Tokens{1, 2}, options, RandomStream(1, 0));
  const Counters& c = run.counters;
  CHECK(c.tokens == 200);
  CHECK(c.tokens == c.accepted + c.steps);
  CHECK(c.target_positions == c.drafted + c.steps);
  // Looked up tokens cost no call; the model reads them once it is asked again.
  CHECK(c.draft_calls > 0);
  CHECK(c.draft_calls < c.drafted);
  CHECK(c.draft_positions <= c.drafted + c.steps);
  const Generation alone = decode_with_draft(pair.target, lookup, Tokens{1, 2}, options, RandomStream(1, 0));
  CHECK(alone.counters.draft_calls == 0);
  std::int64_t empty_rounds = 0;
  for (const Step& step : alone.steps) empty_rounds += step.drafted == 0;
  CHECK(empty_rounds > 1);

  ContextTableModel wider = uniform_model(9);
  ModelDraft wider_draft(wider, {});
  CHECK_THROWS_AS(FallbackDraft(lookup, wider_draft), std::invalid_argument);
  CHECK_THROWS_WITH(decode_with_draft(pair.target, wider_draft, Tokens{1}, options, RandomStream(1, 0)),
                    "decode_with_draft: the target's vocabulary has 8 tokens, but the draft's has 9");
  AlteredDraft eager(lookup, [](const DraftRequest& request, Proposal& proposal) {
    proposal.tokens.assign(static_cast<std::size_t>(request.limit) + 1, 0);
  });
  CHECK_THROWS_WITH(decode_with_draft(pair.target, eager, Tokens{1}, options, RandomStream(1, 0)),
                    "decode_with_draft: proposed tokens is 5, but must be in [0, 4]");
}

TEST_CASE("policies draft as far as they say") {
  // 0 -> 1 -> 2 -> 0 with falling confidence.
  ContextTableModel model(3, 1, {0.05, 0.9, 0.05, 0.1, 0.1, 0.8, 0.5, 0.25, 0.25});
  ModelDraft draft(model, {}, Proposing::greedy);
  const RandomStream stream(0, 0);
  const auto drafted = [&](const DraftingPolicy& policy) {
    draft.begin(Tokens{0});
    Proposal proposal;
    draft.propose(request_for({0}, 8, policy, stream), proposal);
    return proposal.tokens;
  };
  CHECK(drafted({}).size() == 8);
  CHECK(drafted(threshold_policy(0.6)) == Tokens{1, 2, 0});
  CHECK(drafted(threshold_policy(0, 0.75)) == Tokens{1, 2});
  CHECK(drafted(confidence_policy(0.6)) == Tokens{1, 2});
  CHECK(draft.work().calls == 3);
  CHECK(drafted(confidence_policy(0.95)).empty());
  CHECK(drafted(threshold_policy(0)).size() == 8);
  CHECK_THROWS_AS(threshold_policy(1.1), std::domain_error);
  CHECK_THROWS_AS(threshold_policy(0, -1), std::domain_error);
  CHECK_THROWS_AS(confidence_policy(2), std::domain_error);

  const DraftingPolicy feedback = feedback_policy();
  CHECK(feedback.next_gamma(5, Step{5, 5, 6, -1}) == 7);
  CHECK(feedback.next_gamma(5, Step{5, 4, 5, 0}) == 4);
  CHECK(feedback.next_gamma(1, Step{1, 0, 1, 0}) == 1);
  CHECK(feedback.next_gamma(5, Step{2, 2, 3, -1}) == 7);
  TablePair same = synthetic_bigram_pair(6, 0, 1);
  DecodingOptions options;
  options.gamma = 1;
  options.max_new_tokens = 20;
  options.policy = feedback;
  std::vector<std::int64_t> lengths;
  for (const Step& step : decode_speculatively(same.target, same.draft, Tokens{0}, options, stream).steps)
    lengths.push_back(step.drafted);
  CHECK(lengths == std::vector<std::int64_t>{1, 3, 5, 7});
}

TEST_CASE("an n-gram model interpolates discounted counts of every order down to the uniform distribution") {
  const std::vector<Tokens> texts = {{0, 1, 2, 0, 1, 1, 0, 1, 2}, {2, 2, 0, 1}, {}};
  // By counting again for each probability that is asked for.
  const auto count = [&](const Tokens& gram) {
    double n = 0;
    for (const Tokens& text : texts)
      for (std::size_t i = 0; i + gram.size() <= text.size(); ++i)
        n += std::equal(gram.begin(), gram.end(), text.begin() + static_cast<std::ptrdiff_t>(i));
    return n;
  };
  constexpr double discount = 0.6;
  const std::function<double(Tokens, Token)> probability = [&](Tokens context, Token x) -> double {
    double total = 0;
    double kinds = 0;
    for (const Token y : {0, 1, 2, 3}) {
      Tokens gram = context;
      gram.push_back(y);
      total += count(gram);
      kinds += count(gram) > 0;
    }
    const double below = context.empty() ? 0.25 : probability(Tokens(context.begin() + 1, context.end()), x);
    if (total == 0) return below;
    context.push_back(x);
    return (std::max(0.0, count(context) - discount) + discount * kinds * below) / total;
  };
  for (const std::int64_t order : {1, 2, 3, 4}) {
    NgramModel model(4, texts, order, discount);
    for (const Tokens& prefix : {Tokens{0}, Tokens{3}, Tokens{0, 1}, Tokens{1, 1, 0}, Tokens{3, 2, 0, 1}}) {
      Row row(4);
      model.roll_back(0);
      model.score(prefix, row);
      const auto length = std::min(prefix.size(), static_cast<std::size_t>(order) - 1);
      for (const Token x : {0, 1, 2, 3})
        CHECK(row[static_cast<std::size_t>(x)] ==
              Approx(probability(Tokens(prefix.end() - static_cast<std::ptrdiff_t>(length), prefix.end()), x)));
      CHECK(row[0] + row[1] + row[2] + row[3] == Approx(1).epsilon(1e-14));
    }
  }
  NgramModel untrained(4, {}, 3, discount);
  Row row(4);
  untrained.score(Tokens{0, 1}, row);
  CHECK(row == Row{0.25, 0.25, 0.25, 0.25});
  CHECK_THROWS_AS(NgramModel(2, texts, 2, 0.5), std::domain_error);
  CHECK_THROWS_AS(NgramModel(4, texts, 0, 0.5), std::domain_error);
  CHECK_THROWS_AS(NgramModel(4, texts, 2, 1.5), std::domain_error);
}
