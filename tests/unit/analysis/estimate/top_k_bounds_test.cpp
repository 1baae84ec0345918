#include "analysis/estimate/top_k_bounds.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/recorded_pair.hpp"

using namespace specdec;
using estimate::Interval;
using estimate::TopKBounder;
using estimate::TopKBounds;
using estimate::TopKList;
using estimate::TopKPair;
using tests::recorded_pair;
using tests::RecordedPair;

namespace {

/// A list cut from a row, in no special order, with what it says at the other's tokens.
struct Cut {
  std::vector<std::int32_t> ids;
  std::vector<float> logprobs, at_other;
  double tail = 0;

  Cut(std::span<const float> row, std::size_t k) : ids(row.size()) {
    std::iota(ids.begin(), ids.end(), 0);
    std::stable_sort(ids.begin(), ids.end(), [&](std::int32_t a, std::int32_t b) { return row[at(a)] > row[at(b)]; });
    double outside = 0;
    for (std::size_t i = k; i < ids.size(); ++i) outside += row[at(ids[i])];
    ids.resize(k);
    std::reverse(ids.begin(), ids.end());
    for (const std::int32_t x : ids) logprobs.push_back(std::log(row[at(x)]));
    tail = std::log(outside);
  }
  void gather(std::span<const float> row, const std::vector<std::int32_t>& others) {
    for (const std::int32_t x : others) at_other.push_back(std::log(row[at(x)]));
  }
  TopKList list(bool tail_known, bool gathered) const {
    return {ids, logprobs, tail_known ? tail : std::numeric_limits<double>::quiet_NaN(),
            gathered ? std::span(at_other) : std::span<const float>()};
  }
  static std::size_t at(std::int32_t x) { return static_cast<std::size_t>(x); }
};

struct Truth {
  double overlap = 0, acceptance = 0, at_draft_argmax = 0;
};

Truth truth_of(std::span<const float> p, std::span<const float> q, std::size_t token) {
  Truth truth;
  for (std::size_t x = 0; x < p.size(); ++x) truth.overlap += std::min<double>(p[x], q[x]);
  truth.acceptance = std::min(1.0, static_cast<double>(q[token]) / p[token]);
  truth.at_draft_argmax = p[static_cast<std::size_t>(std::max_element(q.begin(), q.end()) - q.begin())];
  return truth;
}

bool inside(const Interval& interval, double value) {
  return interval.lo - 2e-6 <= value && value <= interval.hi + 2e-6;
}

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("the truth is always inside the bounds, more knowledge never widens them, and the whole row leaves nothing") {
  const RecordedPair pair = recorded_pair(40, 300, 10, 1);
  TopKBounder bounder;
  double widths[2] = {0, 0};
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    const auto p = pair.target_row(i);
    const auto q = pair.draft_row(i);
    const auto token = static_cast<std::size_t>(pair.token[static_cast<std::size_t>(i)]);
    const Truth truth = truth_of(p, q, token);
    for (const std::size_t k : {1UL, 3UL, 10UL, 40UL}) {
      Cut target(p, k);
      Cut draft(q, std::max<std::size_t>(1, k - k / 4));
      target.gather(p, draft.ids);
      draft.gather(q, target.ids);
      double last_width = 2;
      for (const bool gathered : {false, true}) {
        for (const bool tail_known : {false, true}) {
          for (const bool vocab_known : {false, true}) {
            TopKPair lists{target.list(tail_known, gathered),
                           draft.list(tail_known, gathered),
                           {},
                           static_cast<std::int64_t>(token),
                           unknown,
                           unknown};
            if (vocab_known) lists.vocab = 40;
            TopKBounds bounds;
            REQUIRE_FALSE(bounder.bounds(lists, 1e-5, bounds));
            CHECK(inside(bounds.overlap, truth.overlap));
            CHECK(inside(bounds.acceptance, truth.acceptance));
            CHECK(inside(bounds.target_at_draft_argmax, truth.at_draft_argmax));
            CHECK(inside(bounds.target_token_probability, p[token]));
            CHECK(inside(bounds.draft_token_probability, q[token]));
            if (vocab_known && tail_known) {
              const double width = bounds.overlap.hi - bounds.overlap.lo;
              CHECK(width <= last_width + 1e-6);
              last_width = width;
              if (k == 10) widths[gathered] += width / static_cast<double>(pair.positions);
            }
          }
        }
      }
      if (k < 40) continue;
      TopKBounds whole;
      const Cut all(q, 40);
      REQUIRE_FALSE(bounder.bounds(
          {target.list(true, false), all.list(true, false), 40, static_cast<std::int64_t>(token), unknown, unknown},
          1e-5, whole));
      CHECK(whole.overlap.lo == Approx(truth.overlap).margin(2e-6));
      CHECK(whole.overlap.hi == Approx(truth.overlap).margin(2e-6));
      CHECK(whole.acceptance.lo == Approx(truth.acceptance).margin(2e-6));
    }
  }
  CHECK(widths[1] < widths[0]);
}

TEST_CASE("the bounds of a pair by hand") {
  // p = (.5, .3, .1, .1), q = (.2, .5, .15, .15); lists of one.
  const std::vector<std::int32_t> p_ids{0};
  const std::vector<std::int32_t> q_ids{1};
  const std::vector<float> half{std::log(0.5F)};
  const double tail = std::log(0.5);
  TopKBounds bounds;
  TopKPair lists{{p_ids, half, tail, {}}, {q_ids, half, tail, {}}, 4, 2, unknown, unknown};
  REQUIRE_FALSE(TopKBounder().bounds(lists, 1e-5, bounds));
  // Nothing is surely matched; q may put .5 on token 0 and p .5 on token 1, and nothing is left for the others.
  CHECK(bounds.overlap.lo == 0);
  CHECK(bounds.overlap.hi == Approx(1));
  const std::vector<float> p_at{std::log(0.3F)};
  const std::vector<float> q_at{std::log(0.2F)};
  lists.target.at_other = p_at;
  lists.draft.at_other = q_at;
  REQUIRE_FALSE(TopKBounder().bounds(lists, 1e-5, bounds));
  // .2 + .3 are matched, tails of .2 and .3 are left.
  CHECK(bounds.overlap.lo == Approx(0.5));
  CHECK(bounds.overlap.hi == Approx(0.7));
  CHECK(bounds.target_token_probability.hi == Approx(0.2));
  CHECK(bounds.target_at_draft_argmax.lo == Approx(0.3));
  CHECK(bounds.draft_argmax == 1);
}

TEST_CASE("the emitted token, which engines append to their lists, does not bound the others") {
  // p = (.4, .3, .2, .1): the two best and the emitted token 3, as vLLM lists them.
  const std::vector<std::int32_t> ids{0, 1, 3};
  const std::vector<float> logprobs{std::log(0.4F), std::log(0.3F), std::log(0.1F)};
  const std::vector<std::int32_t> other{2};
  const std::vector<float> sure{0.0F};
  TopKBounds bounds;
  const TopKPair lists{{ids, logprobs, unknown, {}}, {other, sure, unknown, {}}, 4, 3, unknown, unknown};
  REQUIRE_FALSE(TopKBounder().bounds(lists, 1e-5, bounds));
  CHECK(inside(bounds.overlap, 0.2));
}

TEST_CASE("recorded log-probabilities of the token go before the lists") {
  const std::vector<std::int32_t> ids{0};
  const std::vector<float> logprobs{std::log(0.5F)};
  TopKBounds bounds;
  const TopKPair lists{{ids, logprobs, unknown, {}}, {ids, logprobs, unknown, {}}, {}, 5, std::log(0.2), std::log(0.1)};
  REQUIRE_FALSE(TopKBounder().bounds(lists, 1e-5, bounds));
  CHECK(bounds.acceptance.lo == Approx(0.5));
  CHECK(bounds.acceptance.hi == Approx(0.5));
}

TEST_CASE("lists that are none of a distribution are faults") {
  const std::vector<std::int32_t> ids{0, 1};
  const std::vector<float> good{std::log(0.5F), std::log(0.4F)};
  const auto fault = [&](const std::vector<std::int32_t>& some_ids, const std::vector<float>& logprobs, double tail) {
    TopKBounds bounds;
    return TopKBounder().bounds({{ids, good, unknown, {}}, {some_ids, logprobs, tail, {}}, {}, -1, unknown, unknown},
                                1e-5, bounds);
  };
  CHECK_FALSE(fault(ids, good, unknown));
  CHECK_FALSE(fault(ids, good, std::log(0.1)));
  CHECK_FALSE(fault({0, -1}, {std::log(0.5F), -std::numeric_limits<float>::infinity()}, std::log(0.5)));
  CHECK(fault(ids, good, std::log(0.2))->role == traces::Role::draft);
  CHECK(fault(ids, good, std::log(0.05)));
  CHECK(fault(ids, {std::log(0.7F), std::log(0.4F)}, unknown));
  CHECK(fault(ids, {0.3F, std::log(0.1F)}, unknown));
  CHECK(fault(ids, {std::numeric_limits<float>::quiet_NaN(), std::log(0.1F)}, unknown));
  CHECK(fault({1, 1}, good, unknown));
}

namespace {

/// The k most probable tokens, as an engine writes them: with the emitted token behind them if it is none of them.
struct EngineList {
  std::vector<std::int32_t> ids;
  std::vector<float> logprobs;

  EngineList(std::span<const float> row, std::size_t k, std::int32_t emitted) {
    const Cut top(row, k);
    ids = top.ids;
    if (std::find(ids.begin(), ids.end(), emitted) == ids.end()) ids.push_back(emitted);
    for (const std::int32_t x : ids) logprobs.push_back(std::log(row[Cut::at(x)]));
    if (ids.size() == k) ids.push_back(-1), logprobs.push_back(-std::numeric_limits<float>::infinity());
  }
};

}  // namespace

// A list that took the emitted token for one of its own would have a mean that is not 0.
TEST_CASE("what lists tell of the emitted token has mean 0 and its variance, whether or not that token is appended") {
  const RecordedPair pair = recorded_pair(12, 50, 10, 3);
  TopKBounder bounder;
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    for (const bool appended : {true, false}) {
      struct Moments {
        double mean = 0, square = 0, variance = 0;
      };
      std::array<Moments, 3> moments = {};
      for (std::int32_t x = 0; x < 12; ++x) {
        const auto p = pair.target_row(i), q = pair.draft_row(i);
        const Cut whole(p, 5), draft(q, 5);
        const EngineList of_target(p, 5, x), of_draft(q, 5, x);
        const TopKPair lists{
            appended ? TopKList{of_target.ids, of_target.logprobs, unknown, {}} : whole.list(false, false),
            appended ? TopKList{of_draft.ids, of_draft.logprobs, unknown, {}} : draft.list(false, false),
            {},
            x,
            unknown,
            unknown};
        TopKBounds bounds;
        REQUIRE_FALSE(bounder.bounds(lists, 1e-5, bounds));
        const estimate::ListedDeviations told = bounder.deviations(lists);
        const double probability = p[Cut::at(x)];
        const std::array<estimate::ListedDeviation, 3> all = {told.acceptance, told.surprisal, told.first};
        for (std::size_t k = 0; k < all.size(); ++k) {
          if (std::isnan(all[k].value)) continue;
          moments[k].mean += probability * all[k].value;
          moments[k].square += probability * all[k].value * all[k].value;
          moments[k].variance += probability * all[k].variance;
        }
      }
      for (const Moments& m : moments) {
        CHECK(m.mean == Approx(0).margin(1e-5));
        CHECK(m.square == Approx(m.variance).margin(1e-5));
      }
      CHECK(moments[1].variance > 0.01);
    }
  }
}
