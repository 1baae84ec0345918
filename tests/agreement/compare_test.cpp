// Do the methods make the tokens that theory gives them? On a pair whose rows are the same at every prefix, where
// closed forms of a whole run exist beside those of single positions that the comparison itself uses.

#include <cmath>

#include "analysis/core/kernels.hpp"
#include "analysis/theory/block_verification.hpp"
#include "analysis/theory/lenience.hpp"
#include "analysis/theory/multi_draft.hpp"
#include "analysis/theory/rejection_sampling.hpp"
#include "analysis/theory/token_trees.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/typical_acceptance.hpp"
#include "sim/table_models.hpp"
#include "sim/validation/compare.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using validation::MethodResult;

namespace {

const std::vector<double> target{0.5, 0.3, 0.15, 0.05};
const std::vector<double> draft{0.2, 0.35, 0.3, 0.15};

// Texts so long that their ends do not show; 20 sequences of one prompt.
MethodResult run_on_fixed_pair(const std::string& name) {
  const sim::TablePair pair = sim::fixed_pair(target, draft);
  validation::MethodSource source;
  source.models.target = [&](std::int64_t) { return sim::OwnedModel(pair.target); };
  source.models.draft = [&](std::int64_t) { return sim::OwnedModel(pair.draft); };
  source.prompts = {{"fixed", {0}}};
  validation::MethodSettings settings;
  settings.gamma = 4;
  settings.tokens = 81'920;
  settings.max_new_tokens = 4'096;
  const validation::Method method = *validation::method_named(name);
  return validation::compare({source, settings}, std::span(&method, 1), {}).front();
}

}  // namespace

// 2.3 half-widths are 4.8 standard errors of 20 sequences: a right method fails one run in 10,000; the seed is fixed.
TEST_CASE(
    "tokens per step are those of Eq. (1) at each rule's acceptance, and of the closed forms of blocks and trees") {
  const core::TargetDistribution p(target);
  const core::DraftDistribution q(draft);
  const auto at = [](double alpha) { return theory::expected_tokens(core::AcceptanceRate(alpha), 4); };
  const std::vector<std::pair<std::string, double>> expected{
      {"algorithm1", at(core::overlap(p, q))},
      {"greedy-draft", at(target[1])},
      {"block", theory::block_expected_tokens(p, q, 4)},
      {"matching", at(theory::matching_acceptance(p, q))},
      {"rejection", at(theory::rejection_sampling_acceptance(p, q))},
      {"lenient", theory::expected_tokens(theory::lenient_acceptance(p, q, 0.5), 4)},
      {"lenient-residual", theory::expected_tokens(theory::lenient_acceptance(p, q, 0.5), 4)},
      {"typical", theory::expected_tokens(theory::typical_acceptance(p, q, {}), 4)},
      {"recursive", theory::chains_expected_tokens(p, q, 3, 4)},
      {"tree",
       theory::full_tree(theory::recursive_rejection(p, q, 2, theory::Replacement::without).acceptance().alpha(), 2, 3)
           .expected_tokens},
      {"static-tree", theory::full_tree(target[1] + target[2], 2, 3).expected_tokens}};
  for (const auto& [verifier, tokens] : expected) {
    const MethodResult result = run_on_fixed_pair(verifier);
    INFO(name_of(result.method));
    const double half_width = (result.tokens_per_step.ci95->hi - result.tokens_per_step.ci95->lo) / 2;
    CHECK(std::abs(result.tokens_per_step.value - tokens) < 2.3 * half_width);
    REQUIRE(result.deviation_standard_errors);
    CHECK(std::abs(*result.deviation_standard_errors) < 4.5);
  }
}

TEST_CASE("the distance of lenient text is that of a drafted token times the share of such tokens") {
  const core::TargetDistribution p(target);
  const core::DraftDistribution q(draft);
  const double drafted = 1 - theory::exact_token_fraction(theory::lenient_acceptance(p, q, 0.5), 4);
  for (const auto& [verifier, residual] : {std::pair{"lenient", theory::LenientResidual::strict},
                                           std::pair{"lenient-residual", theory::LenientResidual::lenient}}) {
    const double expected = theory::lenient_distance(p, q, 0.5, residual) * drafted;
    CHECK(run_on_fixed_pair(verifier).total_variation_per_token == Approx(expected).epsilon(0.01));
  }
  CHECK(run_on_fixed_pair("block").total_variation_per_token == 0);
}

TEST_CASE("names of methods read back, in any order of their parts") {
  const validation::MethodSource source = validation::synthetic_source(8, 1, 1);
  const validation::MethodSettings settings;
  for (const validation::Method& method : validation::known_methods({source, settings}))
    CHECK(validation::method_named(name_of(method)) == method);
  CHECK(validation::method_named("heuristic+block+copy") == validation::method_named("copy+block+heuristic"));
  for (const char* wrong : {"", "block+", "block+lenient", "none"}) CHECK_FALSE(validation::method_named(wrong));
}
