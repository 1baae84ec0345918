// Beam search with a draft as a method: what is counted beside plain search, and what independence makes of its rounds.

#include "sim/validation/beam_system.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/random.hpp"
#include "sim/table_models.hpp"
#include "sim/validation/compare.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using validation::BeamRounds;

namespace {

/// Prompts of 30 rounds of up to 4 steps, of which a step that is judged is kept with probability 0.6; in a `sticky`
/// round all later steps go as the first one does.
std::vector<BeamRounds> drawn_prompts(std::uint64_t seed, bool sticky) {
  std::vector<BeamRounds> prompts(50);
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    const sim::RandomStream stream(seed, p);
    BeamRounds& sums = prompts[p];
    sums.drafted_at.assign(4, 0);
    for (std::int64_t r = 0; r < 30; ++r) {
      // Every fifth round is shorter, as at the end of a text.
      const std::int64_t gamma = r % 5 == 0 ? 2 : 4;
      std::int64_t kept = 0;
      for (std::int64_t slot = 0; slot < gamma && stream.uniform(r, sticky ? 0 : slot, sim::Purpose::test) < 0.6;
           ++slot)
        ++kept;
      for (std::int64_t j = 0; j < gamma; ++j) sums.drafted_at[static_cast<std::size_t>(j)] += 1;
      sums.rounds += 1;
      sums.steps += kept + 1;
      sums.kept += static_cast<double>(kept);
      sums.judged += static_cast<double>(kept + (kept < gamma ? 1 : 0));
    }
  }
  return prompts;
}

/// A target whose rows depend on how often it was asked: every 64th is another.
class ForgetfulModel {
 public:
  explicit ForgetfulModel(sim::ContextTableModel model) : model_(std::move(model)) {}
  std::int64_t vocab_size() const { return model_.vocab_size(); }
  std::int64_t max_length() const { return model_.max_length(); }
  std::int64_t length() const { return model_.length(); }
  double operations_per_token() const { return 1; }
  void score(std::span<const sim::Token> block, std::span<double> rows) {
    model_.score(block, rows);
    if (!rows.empty() && ++asked_ % 64 == 0) std::reverse(rows.begin(), rows.end());
  }
  void roll_back(std::int64_t length) { model_.roll_back(length); }

 private:
  sim::ContextTableModel model_;
  std::int64_t asked_ = 0;
};

validation::MethodResult searched(const validation::MethodSource& source, const validation::MethodSettings& settings) {
  const validation::Method method = *validation::method_named("beam");
  return validation::compare({source, settings}, std::span(&method, 1)).results.front();
}

}  // namespace

TEST_CASE("independent steps are Eq. (1) at the kept share, each round with its own gamma") {
  // 3 of 4 judged steps were kept; two rounds of gamma 2 and one of gamma 1.
  const std::vector<BeamRounds> prompts{{.rounds = 2, .steps = 5, .judged = 3, .kept = 3, .drafted_at = {2, 1}},
                                        {.rounds = 1, .steps = 1, .judged = 1, .kept = 0, .drafted_at = {1, 1}}};
  const double a = 0.75;
  CHECK(validation::independent_beams(prompts).steps_per_round == Approx((3 + 3 * a + 2 * a * a) / 3));
  CHECK_FALSE(validation::independent_beams(std::span(prompts).first(1)).deviation_standard_errors);
}

// The squares of 400 normal z have mean 1 and standard error 0.07; a right standard error fails below once in 10^5. The
// seeds are fixed.
TEST_CASE("the deviation from independence is normal where steps are independent, and far off where they stick") {
  double squares = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const double z = *validation::independent_beams(drawn_prompts(seed, false)).deviation_standard_errors;
    squares += z * z / 400;
  }
  CHECK(std::abs(squares - 1) < 0.32);
  CHECK(std::abs(*validation::independent_beams(drawn_prompts(1, true)).deviation_standard_errors) > 10);
}

TEST_CASE("drafted beams are those of plain search, which is what they are priced by") {
  const validation::MethodSource source = validation::synthetic_source(8, 0.5, 3);
  validation::MethodSettings settings;
  settings.gamma = 3;
  settings.tokens = 16 * 64;
  settings.beams = 2;
  settings.draft_beams = 3;
  settings.cost = core::StepCost{.c = 0.1, .overhead = 0.05, .verification = core::VerificationCost::constant(1.5)};
  const validation::MethodResult r = searched(source, settings);
  CHECK(r.different_beams == 0);
  CHECK_FALSE(r.total_variation_per_token);
  CHECK_FALSE(r.operations_factor);
  CHECK(r.counters.accepted > 100);
  CHECK(r.counters.tokens == 16 * 64);
  // Plain search scores one prefix in its first step and two in each other; a round at least two, the overhead being
  // that of rounds that draft, which are all but those of the last step.
  const double plain = 16 * (1 + 63 * 1.5);
  const auto rounds = static_cast<double>(r.counters.steps);
  const auto drafting = static_cast<double>(r.counters.drafted_at.front());
  const double cost = 1.5 * rounds + 0.05 * drafting + 0.1 * static_cast<double>(r.counters.draft_calls);
  CHECK(r.speedup->value == Approx(plain / cost).epsilon(1e-12));
  settings.draft_beams = 1;
  CHECK_THROWS_WITH(searched(source, settings), Catch::Contains("draft_beams is 1, but must be in [2, "));
}

TEST_CASE("a target whose rows depend on more than the prefix is found out") {
  validation::MethodSource source = validation::synthetic_source(8, 0.5, 3);
  source.models.target = [pair = sim::synthetic_bigram_pair(8, 0.5, 3)](std::int64_t) {
    return sim::OwnedModel(ForgetfulModel(pair.target));
  };
  validation::MethodSettings settings;
  settings.tokens = 16 * 64;
  CHECK(*searched(source, settings).different_beams > 8);
}
