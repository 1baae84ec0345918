#include "analysis/estimate/text_ends.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/theory/streaming_replay.hpp"
#include "analysis/theory/tokens.hpp"
#include "tests/support/catch.hpp"

namespace specdec::estimate {
namespace {

/// Texts of these acceptances, each as often as asked for.
ReplayReport report_of(const std::vector<std::vector<double>>& texts, std::int64_t times, std::optional<double> c,
                       std::int64_t max_gamma = 16) {
  std::vector<double> acceptance;
  std::vector<std::int64_t> sequence;
  for (std::int64_t i = 0; i < times * std::ssize(texts); ++i) {
    for (const double a : texts[static_cast<std::size_t>(i % std::ssize(texts))]) {
      acceptance.push_back(a);
      sequence.push_back(i);
    }
  }
  ReplayEstimateOptions options;
  options.replay = {.max_gamma = max_gamma, .by_position = true};
  if (c) options.cost = core::StepCost{.c = *c};
  ReplayEstimates estimates(options);
  estimates.add({acceptance, PositionLabels{sequence, {}}});
  estimates.finish();
  return estimates.report();
}

/// Texts of one draft each of whose tokens is accepted with a rate of its own text, about the same on average.
struct RandomRecording {
  std::vector<RunUnit> units;
  ReplayReport report;
};

RandomRecording random_recording(std::int64_t texts, std::size_t tokens, double mean, std::int64_t gamma,
                                 std::mt19937& generator) {
  std::normal_distribution<double> spread(0, 0.1);
  RandomRecording recording;
  std::vector<std::vector<double>> acceptances;
  theory::StreamingReplay replay({.max_gamma = gamma, .by_position = true});
  for (std::int64_t i = 0; i < texts; ++i) {
    const double rate = std::clamp(mean + spread(generator), 0.01, 0.99);
    std::bernoulli_distribution sure(rate);
    std::vector<double> acceptance;
    for (std::size_t t = 0; t < tokens; ++t) acceptance.push_back(sure(generator) ? (1 + rate) / 2 : rate / 2);
    replay.add(acceptance);
    const double rounds = replay.finish_sequence().steps(gamma);
    recording.units.push_back({.rounds = rounds, .accepted = static_cast<double>(tokens) - rounds});
    acceptances.push_back(std::move(acceptance));
  }
  recording.report = report_of(acceptances, 1, {}, gamma);
  return recording;
}

std::vector<double> same(double a, std::size_t tokens) { return std::vector<double>(tokens, a); }

bool mentions(const std::optional<Note>& note, const std::string& words) {
  return note && note->message.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("without their ends texts of one acceptance yield what Eq. 1 says, however short they are") {
  for (const double a : {0.0, 0.3, 0.9, 1.0}) {
    const ReplayReport report = report_of({same(a, 24)}, 3, 0.05);
    for (const GammaReplay& row : report.gammas) {
      CAPTURE(a, row.gamma);
      REQUIRE(row.unended_tokens_per_step);
      CHECK(*row.unended_tokens_per_step ==
            Approx(theory::expected_tokens(core::AcceptanceRate(a), row.gamma)).epsilon(1e-12));
    }
  }
}

TEST_CASE("gammas that no text is long enough to look at have no figure without ends") {
  const ReplayReport report = report_of({same(0.9, 4)}, 3, 0.05, 6);
  CHECK(report.gammas[3].unended_tokens_per_step);
  CHECK_FALSE(report.gammas[4].unended_tokens_per_step);
  CHECK(*report.gammas[0].share_past_end == 0);
  // With gamma 3 only the first step of a text has four tokens left.
  CHECK(*report.gammas[3].share_past_end == Approx(1 - report.gammas[3].tokens_per_step.value / 4));
}

TEST_CASE("texts whose ends take more than two parts in a hundred are warned of, with what they would give without") {
  // (1 - 0.9^14) / 0.1 / 1.65 = 4.67 by Eq. 1 and Theorem 3.8, the largest over gamma.
  const ReplayReport brief = report_of({same(0.9, 24)}, 20, 0.05);
  const auto note = short_texts(brief);
  REQUIRE(note);
  CHECK(note->code == "short_texts");
  CHECK(mentions(note, "texts are short, 24 tokens on average: "));
  CHECK(mentions(note, "gamma 13 would give 4.67x, not 3.9"));
  CHECK_FALSE(short_texts(report_of({same(0.9, 3600)}, 2, 0.05)));
  CHECK_FALSE(short_texts(report_of({same(0.5, 300)}, 5, 0.05)));
}

TEST_CASE("a best gamma that is as long as the texts is warned of although nothing was rejected") {
  const ReplayReport report = report_of({same(1, 30)}, 20, 0.5, 32);
  REQUIRE(report.optimum->gamma == 29);
  CHECK(mentions(short_texts(report), "a step of gamma 29 covers the mean length of texts, 30 tokens"));
}

TEST_CASE("texts that end before drafting gains are told to hide what it would give") {
  const ReplayReport report = report_of({same(0.9, 2), same(0.9, 1), same(0.9, 1)}, 10, 0.4);
  REQUIRE(report.optimum->gamma == 0);
  CHECK(mentions(short_texts(report), "gamma 1 would give 1.36x, not plain decoding"));
}

TEST_CASE("without a cost short texts are told by what their ends take of the usual gammas") {
  CHECK(mentions(short_texts(report_of({same(0.9, 24)}, 20, {})), "tokens per step would be"));
  CHECK_FALSE(short_texts(report_of({same(0.9, 3600)}, 2, {})));
}

// A test at 5% that is right decides in 22 or more of 200 repeats once in 2,000.
TEST_CASE("texts of one acceptance and other lengths are told apart no more often than by chance", "[long]") {
  std::mt19937 generator(3);
  int told = 0, told_without_guard = 0, told_of_other_drafts = 0;
  constexpr std::int64_t gamma = 4;
  for (int repeat = 0; repeat < 200; ++repeat) {
    const RandomRecording brief = random_recording(150, 20, 0.7, gamma, generator);
    const RandomRecording usual = random_recording(150, 200, 0.7, gamma, generator);
    const RandomRecording better = random_recording(150, 200, 0.8, gamma, generator);
    const auto decided = [&](const RandomRecording& other) {
      const Difference tokens = run_difference(brief.units, other.units).tokens;
      return tokens.tells() && !ends_in_difference(brief.report, other.report, gamma, tokens).may_be_all;
    };
    told += decided(usual) ? 1 : 0;
    told_without_guard += run_difference(brief.units, usual.units).tokens.tells() ? 1 : 0;
    told_of_other_drafts += decided(better) ? 1 : 0;
  }
  CAPTURE(told, told_without_guard, told_of_other_drafts);
  CHECK(told < 22);
  CHECK(told_without_guard > 100);
  CHECK(told_of_other_drafts > 190);
}

TEST_CASE("the ends of texts are told by what the two recordings would differ by without them") {
  const ReplayReport brief = report_of({same(0.8, 10)}, 20, {}), usual = report_of({same(0.8, 400)}, 20, {});
  const auto difference = [](const ReplayReport& a, const ReplayReport& b) {
    const double value = b.gammas[4].tokens_per_step.value - a.gammas[4].tokens_per_step.value;
    return Difference{value, Interval{value - 0.01, value + 0.01}, 1e-9};
  };
  // Eq. 1 of both is the same, whatever the lengths.
  const EndsInDifference alike = ends_in_difference(brief, usual, 4, difference(brief, usual));
  CHECK(*alike.unended == Approx(0).margin(1e-9));
  CHECK(alike.may_be_all);
  CHECK(alike.matter);
  CHECK(alike.mean_length_b == 400);
  const ReplayReport other = report_of({same(0.9, 400)}, 20, {});
  const EndsInDifference apart = ends_in_difference(usual, other, 4, difference(usual, other));
  CHECK(*apart.unended == Approx(theory::expected_tokens(core::AcceptanceRate(0.9), 4) -
                                 theory::expected_tokens(core::AcceptanceRate(0.8), 4)));
  CHECK_FALSE(apart.may_be_all);
  CHECK_FALSE(apart.matter);
  // Texts of three tokens look at no fourth draft.
  const ReplayReport three = report_of({same(0.8, 3)}, 20, {});
  CHECK(ends_in_difference(three, usual, 4, difference(three, usual)).may_be_all);
  CHECK_FALSE(ends_in_difference(three, three, 4, difference(three, three)).matter);
}

TEST_CASE("intervals of tokens per step end at the longest text") {
  // Few rejections: Eq. 1 at the ends of Wilson's interval is part of the interval.
  const ReplayReport report = report_of({{0.9, 0.8, 1.0}, {1.0, 0.7, 0.9}}, 5, 0.05, 8);
  for (const GammaReplay& row : report.gammas) {
    CAPTURE(row.gamma);
    REQUIRE(row.tokens_per_step.ci95);
    CHECK(row.tokens_per_step.ci95->hi <= 3);
    CHECK(row.tokens_per_step.ci95->hi >= row.tokens_per_step.value);
  }
}

TEST_CASE("no interval of tokens per step reaches above what the texts' lengths allow") {
  for (const std::vector<std::size_t>& lengths : {std::vector<std::size_t>{40}, {40, 17}, {3, 5}}) {
    std::vector<std::vector<double>> texts;
    for (const std::size_t length : lengths) texts.push_back(same(1, length));
    const ReplayReport report = report_of(texts, 10, 0.05, 8);
    for (const GammaReplay& row : report.gammas) {
      double most = 0;
      for (const std::size_t length : lengths) {
        double steps = 0;  // full ones, one after the other
        for (std::size_t left = length; left > 0; ++steps)
          left -= std::min(left, static_cast<std::size_t>(row.gamma) + 1);
        most = std::max(most, static_cast<double>(length) / steps);
      }
      CAPTURE(lengths, row.gamma);
      REQUIRE(row.tokens_per_step.ci95);
      CHECK(row.tokens_per_step.ci95->hi <= most * (1 + 1e-12));
      CHECK(row.tokens_per_step.ci95->lo <= row.tokens_per_step.value);
      // None of 400 tokens was rejected, which leaves room for some.
      if (row.gamma > 0) CHECK(row.tokens_per_step.ci95->lo < row.tokens_per_step.ci95->hi);
    }
  }
}

TEST_CASE("where acceptance is a bracket, short texts are warned of at both of its ends") {
  const ReplayReport low = report_of({same(0.6, 24)}, 20, 0.05), high = report_of({same(0.9, 24)}, 20, 0.05);
  const auto note = short_texts(low, high);
  CHECK(mentions(note, "at the upper ends of the brackets; at the lower ends gamma"));
  CHECK(mentions(note, fmt::format("{:.2f}x", high.optimum->speedup)));
  CHECK(mentions(note, fmt::format("{:.2f}x", low.optimum->speedup)));
}

TEST_CASE("texts of one token say nothing of drafts, and no gamma is the best") {
  const ReplayReport report = report_of({same(0.7, 1)}, 5, 0.05);
  CHECK_FALSE(report.looks_at_drafts());
  CHECK_FALSE(report.optimum);
  CHECK_FALSE(report.gammas[3].tokens_per_step.ci95);
  CHECK_FALSE(short_texts(report));
  CHECK(mentions(no_draft_looked_at(report), "record texts that are longer"));
  CHECK_FALSE(no_draft_looked_at(report_of({same(0.7, 2)}, 5, 0.05)));
}

}  // namespace specdec::estimate
