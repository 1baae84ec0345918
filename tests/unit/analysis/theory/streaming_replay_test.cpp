#include "analysis/theory/streaming_replay.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "analysis/theory/replay.hpp"
#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

using Text = std::vector<double>;

/// Texts whose acceptances are uniform, certain, impossible or close to certain.
Text random_text(std::size_t length, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  Text text(length);
  for (double& a : text) {
    const double kind = uniform(generator);
    a = kind < 0.1 ? 0.0 : kind < 0.3 ? 1.0 : kind < 0.4 ? 1 - 1e-9 * uniform(generator) : uniform(generator);
  }
  return text;
}

/// The expected sum over the steps from t on of value(drafts of the step, accepted drafts, examined drafts), from the
/// definition, backwards. accept(t, depth), depth from 0.
template <class Accept, class Value>
double expected_sum(std::size_t length, std::int64_t gamma, Accept accept, Value value) {
  std::vector<double> from(length + 1, 0.0);
  for (std::size_t t = length; t-- > 0;) {
    const std::size_t drafts = std::min(static_cast<std::size_t>(gamma), length - t - 1);
    double reach = 1;
    for (std::size_t k = 0; k < drafts; ++k) {
      from[t] += reach * (1 - accept(t + k, k)) * (value(drafts, k, k + 1) + from[t + k + 1]);
      reach *= accept(t + k, k);
    }
    from[t] += reach * (value(drafts, drafts, drafts) + from[t + drafts + 1]);
  }
  return from[0];
}

ReplayedRounds replay(std::span<const double> text, const ReplayOptions& options) {
  StreamingReplay stream(options);
  stream.add(text);
  return stream.finish_sequence();
}

void require_same(const ReplayedRounds& a, const ReplayedRounds& b) {
  for (std::int64_t gamma = 0; gamma <= a.max_gamma(); ++gamma) {
    REQUIRE(a.steps(gamma) == b.steps(gamma));
    for (std::int64_t d = 0; d <= gamma; ++d) REQUIRE(a.steps_drafting(gamma, d) == b.steps_drafting(gamma, d));
    for (std::int64_t j = 1; j <= gamma; ++j) {
      REQUIRE(a.accepted(gamma, j) == b.accepted(gamma, j));
      REQUIRE(a.examined(gamma, j) == b.examined(gamma, j));
    }
  }
}

const Text example = {0.9, 0.3, 0.5, 0.8, 0.2, 0.7};

}  // namespace

TEST_CASE("streamed steps equal exact rational values") {
  const ReplayedRounds rounds = replay(example, {.max_gamma = 7});
  const double expected[] = {6, 4.0554, 3.503, 3.4104};
  for (std::int64_t gamma = 0; gamma <= 3; ++gamma)
    CHECK(rounds.steps(gamma) == Approx(expected[gamma]).epsilon(1e-15));
  CHECK(rounds.steps(6) == Approx(3.3).epsilon(1e-15));
  CHECK(rounds.steps(7) == Approx(3.3).epsilon(1e-15));
}

TEST_CASE("streamed steps equal the backward recursion for every gamma and length") {
  for (const std::size_t length : {0U, 1U, 2U, 5U, 63U, 64U, 65U, 200U, 1100U, 2500U}) {
    const Text text = random_text(length, static_cast<unsigned>(length));
    const ReplayedRounds rounds = replay(text, {.max_gamma = 20});
    CHECK(rounds.tokens() == static_cast<std::int64_t>(length));
    for (std::int64_t gamma = 0; gamma <= 20; ++gamma) {
      CAPTURE(length, gamma);
      CHECK(rounds.steps(gamma) == Approx(replay_steps(text, gamma).expected).epsilon(1e-13));
    }
  }
}

TEST_CASE("drafted tokens, costs and acceptances by position equal their definition, the end of the text included") {
  const std::vector<core::VerificationCost::Point> points = {{1, 1.0}, {3, 1.1}, {5, 1.9}};
  const core::StepCost cost{.c = 0.07, .overhead = 0.02, .verification = core::VerificationCost::table(points)};
  for (const std::size_t length : {1U, 2U, 4U, 9U, 70U, 300U}) {
    const Text text = random_text(length, 100 + static_cast<unsigned>(length));
    const auto accept = [&](std::size_t t, std::size_t) { return text[t]; };
    const ReplayedRounds rounds = replay(text, {.max_gamma = 9, .by_position = true});
    for (std::int64_t gamma = 0; gamma <= 9; ++gamma) {
      CAPTURE(length, gamma);
      const auto sum = [&](auto value) { return expected_sum(length, gamma, accept, value); };
      using Count = std::size_t;
      CHECK(rounds.drafted(gamma) ==
            Approx(sum([](Count drafts, Count, Count) { return static_cast<double>(drafts); })).epsilon(1e-12));
      CHECK(rounds.cost(gamma, cost) == Approx(sum([&](Count drafts, Count, Count) {
                                          return cost(static_cast<std::int64_t>(drafts));
                                        })).epsilon(1e-12));
      double accepted = 0;
      for (std::int64_t j = 1; j <= gamma; ++j) {
        const auto position = static_cast<Count>(j);
        CHECK(
            rounds.accepted(gamma, j) ==
            Approx(sum([=](Count, Count n, Count) { return n >= position ? 1.0 : 0.0; })).epsilon(1e-12).margin(1e-13));
        CHECK(
            rounds.examined(gamma, j) ==
            Approx(sum([=](Count, Count, Count n) { return n >= position ? 1.0 : 0.0; })).epsilon(1e-12).margin(1e-13));
        accepted += rounds.accepted(gamma, j);
      }
      // Every token is an accepted draft or the one that ends its step.
      CHECK(accepted + rounds.steps(gamma) == Approx(static_cast<double>(length)).epsilon(1e-12));
    }
  }
}

TEST_CASE("acceptance that depends on the depth is replayed by depth, the last column held beyond it") {
  for (const std::int64_t depths : {2, 3, 5}) {
    constexpr std::size_t length = 150;
    const auto columns = static_cast<std::size_t>(depths);
    const Text text = random_text(length * columns, static_cast<unsigned>(depths));
    const auto accept = [&](std::size_t t, std::size_t depth) {
      return text[t * columns + std::min(depth, columns - 1)];
    };
    const ReplayedRounds rounds = replay(text, {.max_gamma = 8, .depths = depths, .by_position = true});
    for (std::int64_t gamma = 0; gamma <= 8; ++gamma) {
      CAPTURE(depths, gamma);
      const auto sum = [&](auto value) { return expected_sum(length, gamma, accept, value); };
      using Count = std::size_t;
      CHECK(rounds.steps(gamma) == Approx(sum([](Count, Count, Count) { return 1.0; })).epsilon(1e-12));
      CHECK(rounds.drafted(gamma) ==
            Approx(sum([](Count drafts, Count, Count) { return static_cast<double>(drafts); })).epsilon(1e-12));
      for (std::int64_t j = 1; j <= gamma; ++j) {
        const auto position = static_cast<Count>(j);
        CHECK(
            rounds.examined(gamma, j) ==
            Approx(sum([=](Count, Count, Count n) { return n >= position ? 1.0 : 0.0; })).epsilon(1e-12).margin(1e-13));
      }
    }
  }
}

TEST_CASE("columns that are all alike give what one column gives") {
  const Text text = random_text(500, 3);
  Text twice;
  for (const double a : text) twice.insert(twice.end(), {a, a});
  const ReplayedRounds one = replay(text, {.max_gamma = 16});
  const ReplayedRounds two = replay(twice, {.max_gamma = 16, .depths = 2});
  for (std::int64_t gamma = 0; gamma <= 16; ++gamma) CHECK(two.steps(gamma) == Approx(one.steps(gamma)).epsilon(1e-13));
}

TEST_CASE("the result does not depend on how a text is cut into pieces, nor on the texts before it") {
  const Text text = random_text(1500, 8);
  const ReplayOptions options{.max_gamma = 12, .by_position = true};
  const ReplayedRounds whole = replay(text, options);
  StreamingReplay stream(options);
  stream.add(random_text(1111, 9));
  stream.finish_sequence();
  std::mt19937 generator(4);
  for (std::size_t next = 0; next < text.size();) {
    const std::size_t count = std::min<std::size_t>(generator() % 100, text.size() - next);
    stream.add(std::span(text).subspan(next, count));
    next += count;
  }
  require_same(stream.finish_sequence(), whole);
}

TEST_CASE("several texts add up") {
  const Text first = random_text(77, 1);
  const Text second = random_text(300, 2);
  ReplayedTotal total(4);
  total += replay(first, {.max_gamma = 4});
  total += replay(second, {.max_gamma = 4});
  const ReplayedRounds both = total.value();
  CHECK(both.sequences() == 2);
  CHECK(both.tokens() == 377);
  CHECK(both.steps(3) == Approx(replay_steps(first, 3).expected + replay_steps(second, 3).expected).epsilon(1e-13));
  CHECK_THROWS_AS(total += ReplayedRounds(5), std::invalid_argument);
  ReplayedTotal reverse(4);
  reverse += replay(second, {.max_gamma = 4});
  ReplayedTotal other(4);
  other += replay(first, {.max_gamma = 4});
  reverse += other;
  CHECK(reverse.value().steps(3) == both.steps(3));
  CHECK(reverse.value().steps_drafting(4, 2) == both.steps_drafting(4, 2));
}

TEST_CASE("steps so far are those that start at the positions covered") {
  const Text text = random_text(400, 5);
  StreamingReplay stream({.max_gamma = 3});
  stream.add(std::span(text).first(200));
  CHECK(stream.covered() == 192);
  // Replaying a text that ends there counts the same starts.
  CHECK(stream.steps_so_far(3) == Approx(replay_steps(std::span(text).first(192), 3).expected).epsilon(1e-13));
}

TEST_CASE("a million certain tokens take the fewest steps") {
  const Text text(1'000'000, 1.0);
  const ReplayedRounds one = replay(text, {.max_gamma = 16});
  for (std::int64_t gamma = 0; gamma <= 16; ++gamma)
    CHECK(one.steps(gamma) == std::ceil(1'000'000.0 / static_cast<double>(gamma + 1)));
}

TEST_CASE("streaming replay refuses what it cannot mean, and adds nothing then") {
  StreamingReplay stream({.max_gamma = 2});
  stream.add(std::vector{0.5, 0.25});
  const std::vector<double> bad = {0.5, std::numeric_limits<double>::quiet_NaN()};
  CHECK_THROWS_WITH(stream.add(bad), "StreamingReplay::add: acceptance at position 3 is nan, but must be in [0, 1]");
  CHECK(stream.finish_sequence().tokens() == 2);
  CHECK_THROWS_WITH(StreamingReplay({.max_gamma = -1}), "StreamingReplay: max_gamma is -1, but must be in [0, 512]");
  CHECK_THROWS_AS(StreamingReplay({.depths = 0}), std::domain_error);
  StreamingReplay pairs({.depths = 2});
  CHECK_THROWS_WITH(pairs.add(std::vector{0.5, 0.5, 0.5}),
                    "StreamingReplay::add: 3 entries are no whole number of positions of 2");
  CHECK_THROWS_AS(ReplayedRounds(2).steps(3), std::domain_error);
}

}  // namespace specdec::theory
