#include "analysis/estimate/tier_conversion.hpp"

#include <cmath>
#include <stdexcept>

#include "analysis/estimate/observe.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/recorded_pair.hpp"

using namespace specdec;
using estimate::ConversionOptions;
using estimate::convert;
using estimate::Observations;
using tests::recorded_pair;
using tests::RecordedPair;
using traces::AcceptanceRule;
using traces::OwnedBatch;
using traces::PositionBatch;
using traces::Tier;

namespace {

Observations observe(const PositionBatch& batch, AcceptanceRule rule = AcceptanceRule::rejection) {
  estimate::ObserveOptions options;
  options.rule = rule;
  return estimate::Observer({}, options).observe(tests::MemorySource(), batch);
}

ConversionOptions to(Tier tier, std::int64_t k = 6) { return {tier, k, 2}; }

void check_equal(const std::vector<double>& a, const std::vector<double>& b, double margin = 1e-6) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(margin));
}

}  // namespace

TEST_CASE("what is converted to scalars says the same about acceptance as the full rows") {
  const RecordedPair pair = recorded_pair(15, 60, 20, 21);
  const OwnedBatch scalars = convert(pair.full(), to(Tier::scalar));
  CHECK(scalars.view().tier == Tier::scalar);
  CHECK(scalars.view().target_rows.empty());
  check_equal(observe(scalars.view()).acceptance.lower, observe(pair.full()).acceptance.lower);
  check_equal(observe(scalars.view()).mean_acceptance.lower, observe(pair.full()).mean_acceptance.lower);
  const auto rule = AcceptanceRule::greedy_draft;
  check_equal(observe(scalars.view(), rule).acceptance.lower, observe(pair.full(), rule).acceptance.lower);
}

TEST_CASE("what is converted to top-k lists keeps overlap and the token's probabilities exactly") {
  const RecordedPair pair = recorded_pair(15, 60, 20, 22);
  const OwnedBatch lists = convert(pair.full(), to(Tier::top_k));
  const Observations seen = observe(lists.view());
  CHECK(lists.view().target_top_k.k == 6);
  CHECK(seen.mean_acceptance.exact());
  CHECK(seen.acceptance.exact());
  check_equal(seen.mean_acceptance.lower, observe(pair.full()).mean_acceptance.lower);
  check_equal(seen.acceptance.lower, observe(pair.full()).acceptance.lower);
  PositionBatch without = lists.view();
  without.overlap = {};
  const Observations bracket = observe(without);
  CHECK_FALSE(bracket.mean_acceptance.exact());
  for (std::size_t i = 0; i < seen.mean_acceptance.lower.size(); ++i) {
    CHECK(bracket.mean_acceptance.lower[i] <= seen.mean_acceptance.lower[i] + 1e-6);
    CHECK(seen.mean_acceptance.lower[i] <= bracket.mean_acceptance.upper[i] + 1e-6);
  }
  const OwnedBatch whole = convert(pair.full(), to(Tier::top_k, 100));
  CHECK(whole.view().target_top_k.k == 15);
}

TEST_CASE("two steps down give what one step gives") {
  const RecordedPair pair = recorded_pair(15, 60, 20, 23);
  const OwnedBatch lists = convert(pair.full(), to(Tier::top_k));
  const OwnedBatch two_steps = convert(lists.view(), to(Tier::scalar));
  const OwnedBatch one_step = convert(pair.full(), to(Tier::scalar));
  CHECK(two_steps.target_token_logprob == one_step.target_token_logprob);
  CHECK(two_steps.draft_token_logprob == one_step.draft_token_logprob);
  CHECK(two_steps.overlap == one_step.overlap);
  CHECK(two_steps.draft_token_rank == one_step.draft_token_rank);
  CHECK(two_steps.target_top_k.k == 0);
}

TEST_CASE("lists alone give scalars where they hold the token, and are refused where they do not") {
  const RecordedPair pair = recorded_pair(15, 60, 20, 24);
  const OwnedBatch lists = convert(pair.full(), to(Tier::top_k, 15));
  PositionBatch bare = lists.view();
  bare.target_token_logprob = bare.draft_token_logprob = bare.overlap = {};
  bare.target_token_rank = bare.draft_token_rank = {};
  const OwnedBatch scalars = convert(bare, to(Tier::scalar));
  check_equal(observe(scalars.view()).acceptance.lower, observe(pair.full()).acceptance.lower);
  for (std::size_t i = 0; i < scalars.overlap.size(); ++i) {
    CHECK((std::isnan(scalars.overlap[i]) || scalars.overlap[i] == Approx(lists.overlap[i]).margin(1e-6)));
  }
  CHECK(scalars.target_token_rank == lists.target_token_rank);
  const OwnedBatch short_lists = convert(pair.full(), to(Tier::top_k, 1));
  bare = short_lists.view();
  bare.target_token_logprob = bare.draft_token_logprob = {};
  CHECK_THROWS_WITH(convert(bare, to(Tier::scalar)), Catch::Contains("emitted token"));
}

TEST_CASE("a draft of a reduced vocabulary is converted in the target's tokens") {
  const RecordedPair pair = recorded_pair(9, 30, 10, 25);
  const RecordedPair reduced = recorded_pair(4, 30, 10, 26);
  const std::vector<std::int32_t> map{7, 1, 4, 0};
  PositionBatch batch = pair.full();
  batch.draft_rows = reduced.full().draft_rows;
  batch.draft_vocab_map = map;
  const OwnedBatch lists = convert(batch, to(Tier::top_k, 4));
  check_equal(observe(lists.view()).mean_acceptance.lower, observe(batch).mean_acceptance.lower);
  CHECK(lists.view().draft_vocab_map.empty());
}

TEST_CASE("a tier that holds more than the recording is refused, and so are rows that are no distributions") {
  RecordedPair pair = recorded_pair(5, 10, 10, 27);
  const OwnedBatch scalars = convert(pair.full(), to(Tier::scalar));
  CHECK_THROWS_AS(convert(scalars.view(), to(Tier::top_k)), std::domain_error);
  CHECK_THROWS_AS(convert(pair.full(), to(Tier::full)), std::domain_error);
  CHECK_THROWS_AS(convert(pair.full(), to(Tier::top_k, 0)), std::domain_error);
  CHECK(convert(scalars.view(), to(Tier::scalar)).overlap == scalars.overlap);
  pair.target[5 * 3] += 0.1F;
  CHECK_THROWS_WITH(convert(pair.full(), to(Tier::scalar)), Catch::Contains("position 3"));
}
