#include "analysis/estimate/lookup_curve.hpp"

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

using namespace specdec;
using core::LookupLaw;
using estimate::LookupCurve;

namespace {

/// Each proposed draft is accepted with one rate; ends of the interval by other ones.
class OneRate final : public estimate::AcceptanceCurve {
 public:
  explicit OneRate(double rate, double low = 0, double high = 1) : rate_(rate), low_(low), high_(high) {}
  estimate::TokensPerStep tokens_per_step(std::int64_t gamma) const override {
    const auto tokens = [&](double rate) {
      double sum = 1;
      for (std::int64_t k = 1; k <= gamma; ++k) sum += std::pow(rate, k);
      return sum;
    };
    const estimate::Interval range = {tokens(low_), tokens(high_)};
    return {tokens(rate_), range, std::pow(rate_, gamma), false};
  }

 private:
  double rate_, low_, high_;
};

LookupCurve curve_of(double rate, const LookupLaw& law) { return LookupCurve(std::make_shared<OneRate>(rate), law); }

/// Tokens of a round by enumeration: a miss, or a hit of each length that is drafted, and in it each outcome of the
/// drafts.
double enumerated_tokens(double rate, const LookupLaw& law, std::int64_t gamma) {
  double tokens = 1 - law.hit_rate;
  double longer = 1;
  for (std::int64_t length = 1; length <= gamma; ++length) {
    const double stops = length == gamma || !law.mean_length ? 1 : 1 / *law.mean_length;
    const bool is_possible = law.mean_length || length == gamma;
    const double probability = is_possible ? longer * stops : 0;
    if (is_possible) longer *= 1 - stops;
    double of_length = 0;
    for (std::int64_t accepted = 0; accepted <= length; ++accepted) {
      const double fails = accepted == length ? 1 : 1 - rate;
      of_length += std::pow(rate, accepted) * fails * static_cast<double>(accepted + 1);
    }
    tokens += law.hit_rate * probability * of_length;
  }
  return tokens;
}

/// Mean tokens of simulated rounds, and its standard error.
struct Simulated {
  double tokens = 0, drafted = 0, error = 0;
};

Simulated simulated(double rate, const LookupLaw& law, std::int64_t gamma, bool misses_draft = false) {
  constexpr int rounds = 200'000;
  std::mt19937_64 bits(11);
  std::uniform_real_distribution<double> uniform;
  double sum = 0, squares = 0, drafted = 0;
  for (int i = 0; i < rounds; ++i) {
    const bool hit = uniform(bits) < law.hit_rate;
    std::int64_t length = 0;
    if (hit || misses_draft) {
      length = 1;
      while (length < gamma && uniform(bits) < 1 - 1 / *law.mean_length) ++length;
    }
    std::int64_t accepted = 0;
    while (accepted < length && uniform(bits) < rate) ++accepted;
    drafted += static_cast<double>(length);
    sum += static_cast<double>(accepted + 1);
    squares += static_cast<double>((accepted + 1) * (accepted + 1));
  }
  const double mean = sum / rounds;
  return {mean, drafted / rounds, std::sqrt((squares / rounds - mean * mean) / rounds)};
}

}  // namespace

TEST_CASE("tokens per step of looked-up drafts are those of every outcome, by enumeration", "[lookup]") {
  for (const double rate : {0.0, 0.4, 0.9, 1.0}) {
    for (const double hits : {0.0, 0.3, 1.0}) {
      for (const std::optional<double> mean : {std::optional<double>(), std::optional(1.0), std::optional(3.5)}) {
        for (std::int64_t gamma = 1; gamma <= 8; ++gamma) {
          const LookupLaw law{hits, mean};
          const LookupCurve curve = curve_of(rate, law);
          CHECK(curve.tokens_per_step(gamma).value == Approx(enumerated_tokens(rate, law, gamma)).epsilon(1e-13));
          const std::vector<double> survival = curve.survival(gamma);
          CHECK(1 + std::accumulate(survival.begin(), survival.end(), 0.0) ==
                Approx(curve.tokens_per_step(gamma).value).epsilon(1e-13));
        }
      }
    }
  }
}

TEST_CASE("simulated lookups make the tokens and drafts of the formula, and those that always hit do not", "[lookup]") {
  // 4 standard errors: a right formula fails once in 16,000; the seed is fixed.
  const LookupLaw law{0.35, 6.0};
  const Simulated found = simulated(0.8, law, 10);
  const double tokens = curve_of(0.8, law).tokens_per_step(10).value;
  CHECK(std::abs(found.tokens - tokens) < 4 * found.error);
  CHECK(found.drafted == Approx(law.mean_drafted(10)).epsilon(0.02));
  const Simulated broken = simulated(0.8, law, 10, true);
  CHECK(std::abs(broken.tokens - tokens) > 4 * broken.error);
}

TEST_CASE("a lookup that always finds enough leaves an acceptance as it was", "[lookup]") {
  const OneRate rate(0.7, 0.6, 0.8);
  const LookupCurve curve(std::make_shared<OneRate>(rate), {});
  for (std::int64_t gamma = 0; gamma <= 5; ++gamma) {
    CHECK(curve.tokens_per_step(gamma).value == Approx(rate.tokens_per_step(gamma).value).epsilon(1e-14));
    CHECK(curve.tokens_per_step(gamma).ci95.lo == Approx(rate.tokens_per_step(gamma).ci95.lo).epsilon(1e-14));
    CHECK(curve.tokens_per_step(gamma).full_accepts == Approx(rate.tokens_per_step(gamma).full_accepts));
  }
}

TEST_CASE("a hit rate counted at one gamma leaves the copied text as it is at the others", "[lookup]") {
  // Of 4,410 tokens 2,520 are copied, gamma + 1 in a round, and each of the others takes a round.
  constexpr double copied = 2520, written = 1890;
  const auto hits = [&](std::int64_t gamma) { return copied / static_cast<double>(gamma + 1); };
  const double counted = (copied + written) / (hits(4) + written);
  const LookupLaw law{hits(4) / (hits(4) + written), {}, LookupLaw::Counted{4, counted}};
  const auto all_accepted = std::make_shared<OneRate>(1, 1, 1);
  const LookupCurve curve(all_accepted, law), same_rate(all_accepted, {law.hit_rate, {}, {}});
  const estimate::TokenWorlds worlds = curve.draw(3, {1, 1});
  for (const std::int64_t gamma : {1, 2, 3, 4, 6, 8, 12}) {
    const double tokens = (copied + written) / (hits(gamma) + written);
    CHECK(curve.tokens_per_step(gamma).value == Approx(tokens).epsilon(1e-12));
    CHECK(curve.tokens_per_step(gamma).ci95.hi == Approx(tokens).epsilon(1e-12));
    CHECK(curve.tokens_per_step(gamma).full_accepts == Approx(hits(gamma) / (hits(gamma) + written)).epsilon(1e-12));
    CHECK(law.hit_rate_at(static_cast<double>(gamma)) == Approx(hits(gamma) / (hits(gamma) + written)).epsilon(1e-12));
    if (gamma <= 3) CHECK(worlds.tokens[static_cast<std::size_t>(gamma)][0] == Approx(tokens).epsilon(1e-12));
    if (gamma >= 8) CHECK(same_rate.tokens_per_step(gamma).value > 1.1 * tokens);
  }
  const LookupLaw nowhere{0.5, {}, LookupLaw::Counted{0, 1}};
  CHECK_THROWS_AS(LookupCurve(all_accepted, nowhere), std::domain_error);
}

TEST_CASE("where nobody knows how many lookups find something, figures are of all, and say so", "[lookup]") {
  const auto rate = std::make_shared<OneRate>(0.7, 0.6, 0.8);
  const estimate::UnknownLookups unknown(rate);
  for (const std::int64_t gamma : {0, 1, 4, 9}) {
    CHECK(unknown.tokens_per_step(gamma).value == rate->tokens_per_step(gamma).value);
    CHECK(unknown.survival(gamma) == rate->survival(gamma));
  }
  CHECK_THROWS_AS(estimate::UnknownLookups(nullptr), std::invalid_argument);
}

TEST_CASE("a curve that holds some misses and lengths has others in their place", "[lookup]") {
  const LookupLaw counted{0.35, 6.0}, other{0.6, 3.0};
  const auto with_misses = std::make_shared<LookupCurve>(std::make_shared<OneRate>(0.8, 0.7, 0.9), counted);
  const LookupCurve moved(with_misses, other, counted), same(with_misses, counted, counted);
  const LookupCurve direct(std::make_shared<OneRate>(0.8, 0.7, 0.9), other);
  for (std::int64_t gamma = 0; gamma <= 8; ++gamma) {
    CHECK(moved.tokens_per_step(gamma).value == Approx(direct.tokens_per_step(gamma).value).epsilon(1e-12));
    CHECK(same.tokens_per_step(gamma).value == Approx(with_misses->tokens_per_step(gamma).value).epsilon(1e-12));
    CHECK(moved.tokens_per_step(gamma).full_accepts == Approx(direct.tokens_per_step(gamma).full_accepts));
  }
  // More hits than can be: no draft is accepted more often than always.
  const LookupCurve most(std::make_shared<OneRate>(0.9, 0.8, 1), {1, {}}, {0.35, {}});
  CHECK(most.tokens_per_step(4).value == 5);
  CHECK(most.tokens_per_step(4).ci95.hi == 5);
  CHECK_THROWS_AS(LookupCurve(with_misses, other, {0, {}}), std::domain_error);
}

TEST_CASE("intervals of looked-up drafts hold the value and no more than a step's tokens", "[lookup]") {
  const LookupCurve curve(std::make_shared<OneRate>(0.7, 0.6, 0.8), {0.4, 3.0});
  const estimate::TokensPerStep tokens = curve.tokens_per_step(4);
  CHECK(tokens.ci95.lo < tokens.value);
  CHECK(tokens.value < tokens.ci95.hi);
  CHECK(tokens.full_accepts == Approx(0.4 * std::pow(2.0 / 3, 3) * std::pow(0.7, 4)));
  CHECK(curve_of(0, {0.5, 2.0}).tokens_per_step(3).value == 1);
}

TEST_CASE("lookups refuse a law that is none", "[lookup]") {
  CHECK_THROWS_AS(curve_of(0.5, {1.2}), std::domain_error);
  CHECK_THROWS_AS(curve_of(0.5, {0.5, 0.9}), std::domain_error);
  CHECK_THROWS_AS(LookupCurve(nullptr, {}), std::invalid_argument);
}

TEST_CASE("a counted law drafts as much as was counted, and fills gamma where that is all", "[lookup]") {
  for (const double mean : {1.3, 2.0, 6.0, 40.0}) {
    for (const std::int64_t gamma : {2, 5, 16}) {
      const LookupLaw law{0.3, mean};
      const double drafted = law.mean_drafted(static_cast<double>(gamma));
      const LookupLaw counted = LookupLaw::counted(0.3, drafted / law.hit_rate, gamma);
      REQUIRE(counted.mean_length);
      CHECK(*counted.mean_length == Approx(mean).epsilon(1e-8));
      CHECK(counted.mean_drafted(static_cast<double>(gamma)) == Approx(drafted).epsilon(1e-8));
    }
  }
  CHECK_FALSE(LookupLaw::counted(0.3, 5, 5).mean_length);
  CHECK(LookupLaw::counted(0.3, 1, 5).mean_length == 1);
  CHECK(LookupLaw::counted(0.3, 1, 5).hit_rate == 0.3);
  CHECK_THROWS_AS(LookupLaw::counted(1.1, 2, 5), std::domain_error);
  CHECK_THROWS_AS(LookupLaw::counted(0.3, 2, 0), std::domain_error);
}
