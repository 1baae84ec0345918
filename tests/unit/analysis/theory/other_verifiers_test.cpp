// Block verification and typical acceptance, held against exact enumeration.
#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <vector>

#include "analysis/core/kernels.hpp"
#include "analysis/theory/block_verification.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/typical_acceptance.hpp"
#include "tests/properties/random_cases.hpp"
#include "tests/support/block_tokens.hpp"
#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

using core::DraftDistribution;
using core::TargetDistribution;
using Tokens = std::vector<std::int64_t>;
using Row = std::vector<double>;

const Row p1 = {0.5, 0.3, 0.2};
const Row q1 = {0.2, 0.3, 0.5};
const Row p2 = {0.6, 0.25, 0.10, 0.05};
const Row q2 = {0.3, 0.3, 0.25, 0.15};

Approx exactly(double value) { return Approx(value).epsilon(1e-13).margin(1e-15); }

BlockAcceptance block_of_first_pair(const Tokens& drafts) {
  Row target;
  Row draft;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    target.insert(target.end(), p1.begin(), p1.end());
    draft.insert(draft.end(), q1.begin(), q1.end());
  }
  return block_acceptance(target, draft, 3, drafts);
}

double block_tokens(const Row& p, const Row& q, std::int64_t gamma) {
  return block_expected_tokens(TargetDistribution(p), DraftDistribution(q), gamma);
}

// Two models whose next-token laws depend on the whole prefix: one row per prefix of fewer than `length` tokens.
struct PrefixModels {
  std::size_t vocab;
  std::vector<Row> target;
  std::vector<Row> draft;

  std::size_t index(const Tokens& prefix) const {
    std::size_t index = 0;
    for (const std::int64_t x : prefix) index = index * vocab + static_cast<std::size_t>(x) + 1;
    return index;
  }
  double probability(const std::vector<Row>& model, const Tokens& tokens) const {
    double probability = 1;
    Tokens prefix;
    for (const std::int64_t x : tokens) {
      probability *= model[index(prefix)][static_cast<std::size_t>(x)];
      prefix.push_back(x);
    }
    return probability;
  }
};

PrefixModels random_models(test_support::RandomCases& cases, std::size_t vocab, std::size_t length) {
  PrefixModels models{vocab, {}, {}};
  std::size_t prefixes = 0;
  for (std::size_t i = 0; i <= length; ++i) prefixes = prefixes * vocab + 1;
  for (std::size_t i = 0; i < prefixes; ++i) {
    models.target.push_back(cases.row(vocab));
    models.draft.push_back(cases.row(vocab));
  }
  return models;
}

void each_text(std::size_t vocab, std::size_t length, const std::function<void(const Tokens&)>& visit,
               const Tokens& prefix = {}) {
  if (prefix.size() == length) return visit(prefix);
  for (std::size_t x = 0; x < vocab; ++x) {
    Tokens longer = prefix;
    longer.push_back(static_cast<std::int64_t>(x));
    each_text(vocab, length, visit, longer);
  }
}

/// norm(max(0, prefix p - q)), the law of the token behind a block that ends there; p if that is nothing.
Row residual_behind(const Row& p, const Row& q, double prefix) {
  Row residual;
  double sum = 0;
  for (std::size_t x = 0; x < p.size(); ++x) sum += residual.emplace_back(std::max(0.0, prefix * p[x] - q[x]));
  if (sum == 0) return p;
  for (double& value : residual) value /= sum;
  return residual;
}

// One step over every block of drafts, continued by the target: law of texts by index, and the expected tokens.
struct SteppedBlocks {
  std::vector<double> law;
  double tokens = 0;
};
SteppedBlocks step_blocks(const PrefixModels& models, std::size_t gamma) {
  SteppedBlocks result{std::vector<double>(models.target.size() * models.vocab + 1, 0.0)};
  each_text(models.vocab, gamma, [&](const Tokens& drafts) {
    const double drafted = models.probability(models.draft, drafts);
    if (drafted == 0) return;
    Row target;
    Row draft;
    for (std::size_t i = 0; i < gamma; ++i) {
      const std::size_t row = models.index(Tokens(drafts.begin(), drafts.begin() + static_cast<std::ptrdiff_t>(i)));
      target.insert(target.end(), models.target[row].begin(), models.target[row].end());
      draft.insert(draft.end(), models.draft[row].begin(), models.draft[row].end());
    }
    const BlockAcceptance block = block_acceptance(target, draft, models.vocab, drafts);
    const std::vector<double> accepted = accepted_drafts_law(block);
    for (std::size_t tau = 0; tau <= gamma; ++tau) {
      if (accepted[tau] == 0) continue;
      result.tokens += drafted * accepted[tau] * static_cast<double>(tau + 1);
      const Tokens kept(drafts.begin(), drafts.begin() + static_cast<std::ptrdiff_t>(tau));
      const std::size_t row = models.index(kept);
      Row next = models.target[row];
      if (tau < gamma) next = residual_behind(next, models.draft[row], tau == 0 ? 1 : block.prefix[tau - 1]);
      each_text(models.vocab, gamma + 1 - tau, [&](const Tokens& rest) {
        Tokens text = kept;
        text.insert(text.end(), rest.begin(), rest.end());
        double probability = next[static_cast<std::size_t>(rest[0])];
        Tokens prefix = kept;
        for (std::size_t i = 1; i < rest.size(); ++i) {
          prefix.push_back(rest[i - 1]);
          probability *= models.target[models.index(prefix)][static_cast<std::size_t>(rest[i])];
        }
        result.law[models.index(text)] += drafted * accepted[tau] * probability;
      });
    }
  });
  return result;
}

}  // namespace

TEST_CASE("block verification makes the tokens that exact enumeration says") {
  const double first[] = {1, 1.7, 2.25, 2.695, 3.0635, 3.37305, 3.635965};
  for (std::int64_t gamma = 0; gamma <= 6; ++gamma) CHECK(block_tokens(p1, q1, gamma) == exactly(first[gamma]));
  CHECK(block_tokens(p2, q2, 1) == exactly(1.7));
  CHECK(block_tokens(p2, q2, 2) == exactly(2.25));
  CHECK(block_tokens(p2, q2, 3) == exactly(2.6995));
  CHECK(block_tokens(p2, q2, 4) == exactly(3.077075));
  CHECK(block_tokens({1.0 / 3, 2.0 / 3}, {2.0 / 3, 1.0 / 3}, 2) == exactly(1 + 11.0 / 9));
}

TEST_CASE("blocks pass the tests that were worked out by hand") {
  const BlockAcceptance rescued = block_of_first_pair({2, 0});
  CHECK(rescued.prefix[0] == exactly(0.4));
  CHECK(rescued.prefix[1] == 1);
  CHECK(rescued.pass == Row{0, 1});
  CHECK(accepted_drafts_law(rescued) == Row{0, 0, 1});
  const BlockAcceptance poor = block_of_first_pair({2, 2});
  CHECK(poor.prefix[1] == exactly(0.16));
  CHECK(poor.pass[0] == 0);
  CHECK(poor.pass[1] == exactly(0.16));
  const BlockAcceptance good = block_of_first_pair({0, 2});
  CHECK(good.pass[0] == 1);
  CHECK(good.prefix[1] == exactly(0.4));
}

TEST_CASE("a block that the target knows as well as the draft is accepted whole") {
  const BlockAcceptance block = block_acceptance(Row{0.5, 0.5, 0.25, 0.75}, Row{0.5, 0.5, 0.25, 0.75}, 2, Tokens{0, 1});
  CHECK(block.pass == Row{1, 1});
}

TEST_CASE("block verification keeps the law of the target and makes no fewer tokens than verification by token") {
  test_support::RandomCases cases(21);
  for (int i = 0; i < 28; ++i) {
    const auto gamma = static_cast<std::size_t>(1 + cases.below(3));
    const PrefixModels models = random_models(cases, gamma < 3 ? 3 : 2, gamma);
    const SteppedBlocks blocks = step_blocks(models, gamma);
    INFO("case " << i << ", gamma " << gamma);
    each_text(models.vocab, gamma + 1, [&](const Tokens& text) {
      CHECK(blocks.law[models.index(text)] == Approx(models.probability(models.target, text)).margin(1e-14));
    });
    double by_token = 1;
    double bound = 1;
    for (std::size_t length = 1; length <= gamma; ++length) {
      each_text(models.vocab, length, [&](const Tokens& text) {
        double token = 1;
        Tokens prefix;
        for (const std::int64_t x : text) {
          const std::size_t row = models.index(prefix);
          token *=
              std::min(models.target[row][static_cast<std::size_t>(x)], models.draft[row][static_cast<std::size_t>(x)]);
          prefix.push_back(x);
        }
        by_token += token;
        bound += std::min(models.probability(models.target, text), models.probability(models.draft, text));
      });
    }
    CHECK(blocks.tokens >= by_token - 1e-13);
    CHECK(blocks.tokens <= bound + 1e-13);
    const double alike = block_tokens(models.target[0], models.draft[0], static_cast<std::int64_t>(gamma));
    CHECK(alike >= expected_tokens(
                       core::acceptance_rate(TargetDistribution(models.target[0]), DraftDistribution(models.draft[0])),
                       static_cast<std::int64_t>(gamma)) -
                       1e-13);
  }
}

TEST_CASE("blocks that cannot have been drafted are refused") {
  CHECK_THROWS_AS(block_acceptance(p1, q1, 3, {}), std::invalid_argument);
  CHECK_THROWS_AS(block_acceptance({}, {}, 3, {}), std::invalid_argument);
  CHECK_THROWS_AS(block_acceptance(p1, q1, 3, Tokens{3}), std::domain_error);
  CHECK_THROWS_AS(block_acceptance(p1, Row{0, 0.5, 0.5}, 3, Tokens{0}), std::domain_error);
  CHECK_THROWS_AS(block_tokens(p1, q1, 65), std::domain_error);
  CHECK_THROWS_AS(block_tokens(p1, q1, -1), std::domain_error);
}

TEST_CASE("typical acceptance lowers its threshold where the target is unsure") {
  const TypicalRule rule = {0.09, 0.3};
  const Row sure = {0.9, 0.05, 0.05};
  const Row unsure(25, 0.04);
  CHECK(entropy_nats(TargetDistribution(sure)) == Approx(0.3943976914).epsilon(1e-9));
  CHECK(entropy_nats(TargetDistribution(unsure)) == exactly(std::log(25.0)));
  CHECK(typical_threshold(TargetDistribution(sure), rule) == 0.09);
  CHECK(typical_threshold(TargetDistribution(unsure), rule) == exactly(0.012));
  const Row draft = {0.6, 0.3, 0.1};
  CHECK(typical_acceptance(TargetDistribution(sure), DraftDistribution(draft), rule).alpha() == exactly(0.6));
  const Row output = typical_output(TargetDistribution(sure), DraftDistribution(draft), rule);
  CHECK(output[0] == exactly(0.96));
  CHECK(output[1] == exactly(0.02));
  CHECK(typical_distance(TargetDistribution(sure), DraftDistribution(draft), rule) == exactly(0.06));
  CHECK(typical_acceptance(TargetDistribution(unsure), DraftDistribution(unsure), rule).rejection() == 0);
  CHECK(typical_distance(TargetDistribution(unsure), DraftDistribution(unsure), rule) == 0);
}

TEST_CASE("typical acceptance always keeps the most probable token and its law is one") {
  test_support::RandomCases cases(22);
  for (int i = 0; i < 50; ++i) {
    const Row target = cases.row(8);
    const Row draft = cases.row(8);
    const TypicalRule rule = {cases.uniform(), 0.99 * cases.uniform()};
    const TargetDistribution p(target);
    CHECK(typical_threshold(p, rule) < *std::max_element(target.begin(), target.end()));
    double sum = 0;
    for (const double value : typical_output(p, DraftDistribution(draft), rule)) sum += value;
    CHECK(sum == exactly(1));
  }
  CHECK_THROWS_AS(typical_threshold(TargetDistribution(p1), {-0.1, 0.3}), std::domain_error);
  CHECK_THROWS_AS(typical_threshold(TargetDistribution(p1), {0.1, 1.5}), std::domain_error);
  CHECK_THROWS_AS(typical_acceptance(TargetDistribution(p1), DraftDistribution(q2), {}), std::invalid_argument);
}

}  // namespace specdec::theory
