#include "analysis/planning/replay_columns.hpp"

#include <limits>
#include <vector>

#include "tests/support/catch.hpp"

using specdec::estimate::Observations;
using specdec::planning::ReplayColumns;

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

std::vector<double> copy(std::span<const double> values) { return {values.begin(), values.end()}; }

/// One sequence, or the end of it.
struct Batch {
  std::vector<std::int64_t> sequence, place;
  std::vector<std::int32_t> accepted_length;
  Observations seen;

  explicit Batch(std::vector<std::int64_t> sequences) : sequence(std::move(sequences)), place(sequence.size()) {
    seen.size = std::ssize(sequence);
    seen.sequence = sequence;
    seen.place = place;
  }
};

}  // namespace

TEST_CASE("acceptance that is known at one depth is replayed as it stands") {
  Batch batch({0, 0, 1});
  batch.seen.acceptance.lower = {0.5, 1, 0.25};
  ReplayColumns columns(1);
  REQUIRE(columns.take(batch.seen));
  CHECK(columns.depths() == 1);
  CHECK(columns.exact());
  CHECK(columns.lower().data() == batch.seen.acceptance.lower.data());
}

TEST_CASE("an unknown acceptance is the bracket from 0 to 1") {
  Batch batch({0, 0});
  batch.seen.acceptance.lower = {0.5, unknown};
  ReplayColumns columns(1);
  REQUIRE(columns.take(batch.seen));
  CHECK_FALSE(columns.exact());
  CHECK(copy(columns.lower()) == std::vector<double>{0.5, 0});
  CHECK(copy(columns.highest()) == std::vector<double>{0.5, 1});
}

TEST_CASE("a batch without acceptance cannot be replayed") {
  const Batch batch({0});
  ReplayColumns columns(1);
  CHECK_FALSE(columns.take(batch.seen));
}

TEST_CASE("depths that no round of the text reaches are 0, and missing depths hold the last one") {
  Batch first({0, 0});
  first.seen.depths = 2;
  first.seen.acceptance.lower = {0.5, unknown, 0.75, 0.25};
  ReplayColumns columns(2);
  REQUIRE(columns.take(first.seen));
  CHECK(columns.exact());
  CHECK(copy(columns.lower()) == std::vector<double>{0.5, 0, 0.75, 0.25});
  Batch second({0, 1});
  second.seen.acceptance.lower = {0.125, 1};
  REQUIRE(columns.take(second.seen));
  CHECK(copy(columns.lower()) == std::vector<double>{0.125, 0.125, 1, 0});
}

TEST_CASE("an accepted length says which drafts of the round from there would stand, across batches") {
  // From position 0 three tokens: drafts at 0 and 1 stand, the third does not. From 1: none. From 2: one.
  Batch first({0, 0});
  first.accepted_length = {3, 1};
  first.seen.accepted_length = first.accepted_length;
  ReplayColumns columns(3);
  REQUIRE(columns.take(first.seen));
  CHECK(columns.depths() == 3);
  CHECK(copy(columns.lower()) == std::vector<double>{1, 0, 0, 0, 1, 0});
  Batch second({0, 1});
  second.accepted_length = {2, 2};
  second.seen.accepted_length = second.accepted_length;
  REQUIRE(columns.take(second.seen));
  CHECK(copy(columns.lower()) == std::vector<double>{1, 0, 0, 1, 0, 0});
  CHECK(columns.exact());
}

TEST_CASE("the largest accepted length says how long the drafts were of which anything is known") {
  Batch rates({0, 0});
  rates.seen.acceptance.lower = {0.5, 0.5};
  ReplayColumns of_rates(1);
  REQUIRE(of_rates.take(rates.seen));
  CHECK_FALSE(of_rates.longest_draft());
  Batch lengths({0, 0});
  lengths.accepted_length = {1, 1};
  lengths.seen.accepted_length = lengths.accepted_length;
  ReplayColumns columns(4);
  REQUIRE(columns.take(lengths.seen));
  // A draft that is always rejected was made.
  CHECK(columns.longest_draft() == 1);
  lengths.accepted_length = {2, 3};
  lengths.seen.accepted_length = lengths.accepted_length;
  REQUIRE(columns.take(lengths.seen));
  CHECK(columns.longest_draft() == 2);
}

TEST_CASE("batches of fewer depths hold their last one, whichever batch comes first") {
  Batch shallow({0, 0});
  shallow.seen.acceptance.lower = {0.5, 0.75};
  Batch deep({1, 1});
  deep.seen.depths = 2;
  deep.seen.acceptance.lower = {0.5, 0, 0.75, 0.25};
  for (const bool deep_first : {false, true}) {
    ReplayColumns columns(2);
    if (deep_first) REQUIRE(columns.take(deep.seen));
    REQUIRE(columns.take(shallow.seen));
    CHECK(copy(columns.lower()) == std::vector<double>{0.5, 0, 0.75, 0.75});
    if (!deep_first) REQUIRE(columns.take(deep.seen));
    if (!deep_first) CHECK(copy(columns.lower()) == std::vector<double>{0.5, 0, 0.75, 0.25});
  }
}
