#include "analysis/estimate/typed_acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "analysis/theory/acceptance_inversion.hpp"
#include "analysis/theory/tokens.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using estimate::TypedAcceptance;
using estimate::TypedLength;
using theory::expected_tokens;

namespace {

/// 1 + r + r (r q) + r (r q) (r q^2) + ...
double falling_tokens(double rate, double ratio, std::int64_t gamma) {
  double tokens = 1, alive = 1;
  for (std::int64_t j = 0; j < gamma; ++j, rate *= ratio) tokens += alive *= std::min(1.0, rate);
  return tokens;
}

struct Hull {
  double lo, hi;
};

Hull readings_at(const TypedAcceptance& typed, std::int64_t gamma) {
  const double value = expected_tokens(typed.profile, gamma);
  Hull hull{value, value};
  for (const core::AcceptanceProfile& profile : typed.readings) {
    hull.lo = std::min(hull.lo, expected_tokens(profile, gamma));
    hull.hi = std::max(hull.hi, expected_tokens(profile, gamma));
  }
  return hull;
}

Hull interval_at(const TypedAcceptance& typed, std::int64_t gamma) {
  const double value = expected_tokens(typed.profile, gamma);
  Hull hull{value, value};
  for (const core::AcceptanceProfile& profile : typed.ci95) {
    hull.lo = std::min(hull.lo, expected_tokens(profile, gamma));
    hull.hi = std::max(hull.hi, expected_tokens(profile, gamma));
  }
  return hull;
}

std::vector<TypedLength> by_gamma(const std::vector<double>& tokens, double half_unit = 0.005) {
  std::vector<TypedLength> lengths;
  for (const double length : tokens) {
    lengths.push_back({static_cast<std::int64_t>(lengths.size()) + 1, length, half_unit});
  }
  return lengths;
}

TypedAcceptance one(std::int64_t gamma, double tokens, double half_unit = 0.005) {
  return estimate::typed_lengths(std::vector<TypedLength>{{gamma, tokens, half_unit}});
}

/// The first of rates that fall by the ratio and give so many tokens at three drafts.
double first_rate(double tokens, double ratio) {
  double lo = 0, hi = 3;
  for (int i = 0; i < 60; ++i) {
    const double middle = (lo + hi) / 2;
    (falling_tokens(middle, ratio, 3) < tokens ? lo : hi) = middle;
  }
  return hi;
}

/// The ratio that carries the tokens at three drafts to those at the last one.
double fitted_ratio(const std::vector<double>& lengths) {
  double best = 0, least = 1e9;
  for (int step = 0; step <= 110; ++step) {
    const double ratio = 0.5 + 0.005 * step, first = first_rate(lengths[2], ratio);
    const double tokens = falling_tokens(first, ratio, static_cast<std::int64_t>(lengths.size()));
    if (std::abs(tokens - lengths.back()) >= least) continue;
    least = std::abs(tokens - lengths.back());
    best = ratio;
  }
  return best;
}

/// Tokens per step by K = 1, 2, ...: SemiAnalysisAI/InferenceX, golden_al_distribution (SPEED-Bench, coding),
/// dsv4_dspark_probabilistic, dsv4_0813_dspark_probabilistic, minimaxm3_eagle3 and minimaxm3_eagle3_gqa, each thinking
/// on and off, and DeepSeek-V4-Pro's MTP; vllm-project/vllm pull request 32628, EAGLE-3 and its parallel kin at K = 8.
const std::vector<std::vector<double>> published = {{1.86, 2.55, 3.08, 3.43, 3.74, 3.82, 3.86, 3.75},
                                                    {1.93, 2.76, 3.47, 4.10, 4.52, 4.87, 4.94, 4.94},
                                                    {1.84, 2.51, 3.01, 3.36, 3.61, 3.77, 3.73, 3.47},
                                                    {1.94, 2.81, 3.58, 4.17, 4.74, 5.12, 5.24, 4.95},
                                                    {1.78, 2.38, 2.83, 3.11, 3.35, 3.45, 3.53, 3.74},
                                                    {1.84, 2.52, 2.93, 3.41, 3.59, 3.57, 3.85, 4.06},
                                                    {1.79, 2.39, 2.78, 3.02, 3.21, 3.30, 3.52, 3.51},
                                                    {1.83, 2.46, 2.97, 3.29, 3.72, 3.76, 3.75, 3.93},
                                                    {1.79, 2.27, 2.49, 2.54, 2.55},
                                                    {1.92, 2.61, 2.97, 3.00, 3.10},
                                                    {1.63, 2.01, 2.24, 2.38, 2.47, 2.52, 2.55, 2.57},
                                                    {1.71, 2.20, 2.52, 2.73, 2.87, 2.96, 3.01, 3.04}};

/// Copied from the text: vllm-project/vllm pull request 24344, n-grams looked up in edited code, accepted in .81, .74,
/// .70, .68, .66 of the rounds.
const std::vector<double> looked_up = {1.81, 2.55, 3.25, 3.93, 4.59};

}  // namespace

TEST_CASE("a typed length is met at its gamma, and its rates fall by the usual ratio from draft to draft") {
  const TypedAcceptance typed = one(3, 2.92);
  CHECK(typed.measured_at == 3);
  CHECK(typed.monotone);
  CHECK_FALSE(typed.falsified);
  CHECK(typed.ci95.empty());
  CHECK(typed.rate == theory::alpha_from_acceptance_length(2.92, 3));
  CHECK(expected_tokens(typed.profile, 3) == Approx(2.92).epsilon(1e-12));
  const double first = typed.profile.survival(1);
  for (std::int64_t gamma = 1; gamma <= 20; ++gamma) {
    CHECK(expected_tokens(typed.profile, gamma) == Approx(falling_tokens(first, 0.95, gamma)).epsilon(1e-12));
  }
  // At the length itself the readings are its rounding; elsewhere, they are those of 0.7 and of 1.1.
  CHECK(readings_at(typed, 3).lo == Approx(2.915).epsilon(1e-9));
  CHECK(readings_at(typed, 3).hi == Approx(2.925).epsilon(1e-9));
  const double rising = first_rate(2.925, 1.1);
  CHECK(readings_at(typed, 8).hi == Approx(falling_tokens(rising, 1.1, 8)).epsilon(1e-9));
  CHECK(readings_at(typed, 8).lo < 3.06);
  CHECK(readings_at(typed, 1).lo == Approx(1 + first_rate(2.915, 1.1)).epsilon(1e-9));
  CHECK(typed.measured_from == 3);
  CHECK(readings_at(one(3, 2.92, 0), 3).hi == Approx(2.92).epsilon(1e-12));
}

TEST_CASE("the published lengths that the ratios come from lie within the readings of three drafts, not by one rate") {
  int cells = 0, held = 0, held_by_one_rate = 0;
  for (const std::vector<double>& lengths : published) {
    const TypedAcceptance typed = one(3, lengths[2]);
    for (std::size_t k = 3; k < lengths.size(); ++k) {
      const auto gamma = static_cast<std::int64_t>(k) + 1;
      const Hull hull = readings_at(typed, gamma);
      ++cells;
      held += hull.lo <= lengths[k] + 0.005 && lengths[k] - 0.005 <= hull.hi ? 1 : 0;
      const double by_one_rate = expected_tokens(typed.rate, gamma);
      held_by_one_rate += std::abs(by_one_rate - lengths[k]) <= 0.03 * lengths[k] ? 1 : 0;
    }
  }
  CHECK(cells == 54);
  CHECK(held == 53);
  CHECK(held_by_one_rate == 15);
}

TEST_CASE("the readings of a published curve by the ratios of the others hold nearly as many of its lengths") {
  std::vector<double> ratios;
  for (const std::vector<double>& lengths : published) ratios.push_back(fitted_ratio(lengths));
  int held = 0;
  for (std::size_t left_out = 0; left_out < published.size(); ++left_out) {
    std::vector<double> others = ratios;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    const auto [steepest, flattest] = std::minmax_element(others.begin(), others.end());
    const std::vector<double>& lengths = published[left_out];
    const double low = first_rate(lengths[2] - 0.005, *steepest), high = first_rate(lengths[2] + 0.005, *flattest);
    for (std::size_t k = 3; k < lengths.size(); ++k) {
      const auto gamma = static_cast<std::int64_t>(k) + 1;
      held += falling_tokens(low, *steepest, gamma) <= lengths[k] + 0.005 &&
                      lengths[k] - 0.005 <= falling_tokens(high, *flattest, gamma)
                  ? 1
                  : 0;
    }
  }
  CHECK(held == 49);
}

TEST_CASE("the usual ratio is the median of those that carry published lengths from three drafts to the longest") {
  std::vector<double> ratios;
  for (const std::vector<double>& lengths : published) ratios.push_back(fitted_ratio(lengths));
  std::sort(ratios.begin(), ratios.end());
  CHECK((ratios[5] + ratios[6]) / 2 == Approx(estimate::published_depth_ratios.usual).margin(0.01));
  CHECK(ratios.front() == Approx(estimate::published_depth_ratios.steepest).margin(0.015));
  CHECK(ratios.back() <= 1 + 1e-9);
}

TEST_CASE("rates that rise with the depth lie within the readings of three drafts") {
  // From traces/samples/serving: given that all before are accepted, .701, .733, .752, .762.
  const std::vector<double> sample = {1.701, 2.216, 2.603, 2.898};
  for (const std::vector<double>& lengths : {looked_up, sample}) {
    const TypedAcceptance typed = one(3, lengths[2]);
    for (std::size_t k = 1; k < lengths.size(); ++k) {
      const auto gamma = static_cast<std::int64_t>(k) + 1;
      const Hull hull = readings_at(typed, gamma);
      CHECK(hull.lo <= lengths[k] + 0.005);
      CHECK(lengths[k] - 0.005 <= hull.hi);
    }
  }
}

TEST_CASE("several lengths go on with the ratio at which their own rates fall") {
  std::vector<double> tokens;
  for (std::int64_t gamma = 1; gamma <= 6; ++gamma) tokens.push_back(falling_tokens(0.85, 0.9, gamma));
  const TypedAcceptance typed = estimate::typed_lengths(by_gamma(tokens, 0));
  REQUIRE(typed.ratio_beyond);
  CHECK(*typed.ratio_beyond == Approx(0.9).margin(1e-9));
  for (std::int64_t gamma = 1; gamma <= 12; ++gamma) {
    CHECK(expected_tokens(typed.profile, gamma) == Approx(falling_tokens(0.85, 0.9, gamma)).epsilon(1e-9));
    CHECK(readings_at(typed, gamma).hi >= expected_tokens(typed.profile, gamma) * (1 - 1e-12));
  }
  CHECK(readings_at(typed, 6).lo == Approx(tokens[5]).epsilon(1e-9));
  CHECK(readings_at(typed, 12).lo < expected_tokens(typed.profile, 12));
  // Two figures tell no ratio.
  const TypedAcceptance two = estimate::typed_lengths(std::vector<TypedLength>{{3, 2.9, 0.05}, {5, 3.5, 0.05}});
  CHECK(*two.ratio_beyond == estimate::published_depth_ratios.usual);
  CHECK_FALSE(two.ratio_fitted);
}

TEST_CASE(
    "between figures rates may fall as they may beyond, so that more figures are no surer of what none of them says") {
  // A law whose rates fall by one ratio is held between figures, which are exact here, to 1e-5 of a token.
  for (const double rate : {0.6, 0.75, 0.9}) {
    for (const double ratio : {0.75, 0.85, 0.95, 1.0}) {
      for (const std::vector<std::int64_t>& gammas : {std::vector<std::int64_t>{3, 5}, {2, 6}, {4, 8}, {1, 4, 8}}) {
        std::vector<TypedLength> lengths;
        for (const std::int64_t gamma : gammas) lengths.push_back({gamma, falling_tokens(rate, ratio, gamma), 0});
        const TypedAcceptance typed = estimate::typed_lengths(lengths);
        for (std::int64_t gamma = 1; gamma <= gammas.back(); ++gamma) {
          INFO(rate << " " << ratio << " " << gammas.front() << " " << gamma);
          const double truth = falling_tokens(rate, ratio, gamma);
          const Hull hull = readings_at(typed, gamma);
          CHECK(hull.lo <= truth + 1e-5);
          CHECK(truth - 1e-5 <= hull.hi);
        }
      }
    }
  }
  // A figure stays within its rounding.
  const TypedAcceptance two = estimate::typed_lengths(std::vector<TypedLength>{{3, 2.9, 0.005}, {5, 3.4, 0.005}});
  CHECK(readings_at(two, 1).hi - readings_at(two, 1).lo > 0.03);
  CHECK(readings_at(two, 5).hi - readings_at(two, 5).lo == Approx(0.01).epsilon(1e-6));
  CHECK(readings_at(two, 3).hi - readings_at(two, 3).lo < 0.02);
  // With a figure at each length there is nothing between them: two beyond the last, and two ends of each.
  CHECK(estimate::typed_lengths(by_gamma({1.8, 2.4, 2.8})).readings.size() == 8);
}

TEST_CASE("a ratio that was fitted is known as such even where it is the published median") {
  std::vector<double> tokens;
  for (std::int64_t gamma = 1; gamma <= 4; ++gamma) tokens.push_back(falling_tokens(0.85, 0.95, gamma));
  const TypedAcceptance fitted = estimate::typed_lengths(by_gamma(tokens, 0));
  CHECK(*fitted.ratio_beyond == estimate::published_depth_ratios.usual);
  CHECK(fitted.ratio_fitted);
  CHECK_FALSE(one(3, 2.9).ratio_fitted);
}

TEST_CASE("lengths that differ from a survival function by their rounding alone go on") {
  const TypedAcceptance typed = estimate::typed_lengths(by_gamma({1.84, 2.50, 2.95, 3.28, 3.55, 3.78, 3.91, 4.06}));
  CHECK(typed.monotone);
  CHECK(typed.ratio_beyond);
  CHECK(expected_tokens(typed.profile, 9) > expected_tokens(typed.profile, 8));
  CHECK_FALSE(estimate::typed_lengths(by_gamma({1.84, 2.51, 3.01, 3.36, 3.61, 3.77, 3.73, 3.47})).monotone);
}

TEST_CASE("lengths of no survival function are met as nearly as one can, and ranges hold what was typed") {
  const std::vector<TypedLength> lengths = {{3, 2.9, 0.05}, {5, 2.95, 0.005}, {7, 4.1, 0.05}};
  const TypedAcceptance typed = estimate::typed_lengths(lengths);
  CHECK_FALSE(typed.monotone);
  // The middle one is to lie above the mean of the others: (2.9 + 4.1) / 2 - 0.05 - m <= 2.95 + 0.005 + m.
  CHECK(typed.misfit == Approx(0.2475).epsilon(1e-9));
  for (const TypedLength& length : lengths) {
    const double fitted = expected_tokens(typed.profile, length.gamma);
    CHECK(std::abs(fitted - length.tokens_per_step) <= length.half_unit + typed.misfit + 1e-9);
    CHECK(readings_at(typed, length.gamma).lo <= length.tokens_per_step - length.half_unit + 1e-9);
    CHECK(readings_at(typed, length.gamma).hi >= length.tokens_per_step + length.half_unit - 1e-9);
  }
  CHECK(estimate::typed_lengths(by_gamma({1.84, 2.51, 3.01})).misfit == 0);
}

TEST_CASE("one rate is falsified by lengths that it does not give within rounding and sampling, and by no others") {
  std::vector<double> constant;
  for (std::int64_t gamma = 1; gamma <= 8; ++gamma) {
    constant.push_back(std::round(100 * falling_tokens(0.8, 1, gamma)) / 100);
  }
  CHECK_FALSE(estimate::typed_lengths(by_gamma(constant)).falsified);
  const std::vector<TypedLength> falling = by_gamma({1.86, 2.55, 3.08, 3.43, 3.74});
  const auto falsified = estimate::typed_lengths(falling).falsified;
  REQUIRE(falsified);
  CHECK(falsified->first_gamma == 1);
  CHECK(falsified->second_gamma == 5);
  CHECK(falsified->first_rate == Approx(0.86));
  CHECK(falsified->second_rate == Approx(theory::alpha_from_acceptance_length(3.74, 5).alpha()));
  CHECK_FALSE(estimate::typed_lengths(falling, 100).falsified);
  CHECK(estimate::typed_lengths(falling, 1e6).falsified);
}

TEST_CASE("rounds give a typed length the interval of its mean, with the design effect in it") {
  // At one draft the accepted ones are binomial: the ends e solve (p - e)^2 = z^2 e (1 - e) / (rounds / 3).
  const double z = 1.959964, rounds = 400;
  for (const double p : {0.0, 0.01, 0.7, 1.0}) {
    const TypedAcceptance typed = estimate::typed_lengths(std::vector<TypedLength>{{1, 1 + p, 0}}, rounds);
    REQUIRE(typed.ci95.size() == 2);
    const double low = expected_tokens(typed.ci95[0], 1) - 1, high = expected_tokens(typed.ci95[1], 1) - 1;
    for (const double end : {low, high}) {
      CHECK((p - end) * (p - end) == Approx(z * z * end * (1 - end) * 3 / rounds).epsilon(1e-5).margin(1e-9));
    }
    CHECK(high - low > 0.02);
    CHECK(low <= p + 1e-12);
    CHECK(high >= p - 1e-12);
  }
}

TEST_CASE("few rounds in which nothing or all was accepted leave room, the more the fewer they are") {
  const auto ends = [](const TypedAcceptance& typed) {
    REQUIRE_FALSE(typed.ci95.empty());
    return interval_at(typed, typed.measured_at);
  };
  const double z2 = 1.959964 * 1.959964;
  const Hull nothing = ends(estimate::typed_lengths(std::vector<TypedLength>{{1, 1, 0.005}}, 10));
  CHECK(nothing.lo == Approx(1));
  CHECK(nothing.hi == Approx(1 + z2 / (10.0 / 3 + z2)).epsilon(1e-6));
  for (const std::int64_t gamma : {1, 2, 5}) {
    double width = static_cast<double>(gamma) + 1;
    for (const double rounds : {2, 10, 100, 10000}) {
      const auto most = static_cast<double>(gamma) + 1;
      const Hull none = ends(estimate::typed_lengths(std::vector<TypedLength>{{gamma, 1, 0}}, rounds));
      const Hull all = ends(estimate::typed_lengths(std::vector<TypedLength>{{gamma, most, 0}}, rounds));
      CHECK(none.lo == Approx(1));
      CHECK(all.hi == Approx(most));
      CHECK(none.hi > 1);
      CHECK(all.lo < most);
      CHECK(std::max(none.hi - 1, most - all.lo) < width);
      width = std::max(none.hi - 1, most - all.lo);
    }
    // A figure just beside the end has no other interval.
    const auto high_end = [&](double tokens) {
      return ends(estimate::typed_lengths(std::vector<TypedLength>{{gamma, tokens, 0}}, 100)).hi;
    };
    CHECK(high_end(1) == Approx(high_end(1 + 1e-6)).epsilon(1e-3));
  }
  const auto by_length = estimate::typed_lengths(by_gamma({2, 3, 4}, 0), 10);
  CHECK(ends(by_length).lo < 3.5);
  const std::vector<estimate::TypedRate> all = {{1, 0}, {1, 0}}, none = {{0, 0}, {0, 0}};
  const std::vector<estimate::TypedRate> differing = {{1, 0}, {0.8, 0}};
  CHECK(ends(estimate::typed_positions(all, false, 10)).lo < 2.7);
  CHECK(ends(estimate::typed_positions(none, true, 10)).hi > 1.2);
  CHECK(estimate::typed_positions(differing, true).falsified);
  CHECK_FALSE(estimate::typed_positions(differing, true, 10).falsified);
  CHECK(estimate::typed_positions(differing, true, 1000).falsified);
  const auto wide = estimate::typed_lengths(std::vector<TypedLength>{{4, 4.6, 0}}, 2);
  CHECK(expected_tokens(wide.ci95[1], 4) <= 5);
}

TEST_CASE("conditional rates are rounded together, and their tokens by more than by the sum of it") {
  const auto tokens = [](const std::vector<double>& rates) {
    double sum = 1, alive = 1;
    for (const double rate : rates) sum += alive *= rate;
    return sum;
  };
  const auto readings = [](const std::vector<double>& rates, double half, bool conditional) {
    std::vector<estimate::TypedRate> typed;
    for (const double rate : rates) typed.push_back({rate, half});
    return readings_at(estimate::typed_positions(typed, conditional), static_cast<std::int64_t>(rates.size()));
  };
  const Hull high = readings({0.9, 0.9, 0.9}, 0.005, true);
  CHECK(high.hi - 3.439 == Approx(0.026243).epsilon(1e-4));
  CHECK(high.hi - 3.439 == Approx(3.439 - high.lo).epsilon(1e-6));
  // Every mixture of rates moved up or down lies within; one moved alone goes less far.
  const std::vector<double> rates = {0.8, 0.97, 0.6, 0.75};
  const Hull hull = readings(rates, 0.05, true);
  for (unsigned ups = 0; ups < 16; ++ups) {
    std::vector<double> moved = rates, alone = rates;
    for (unsigned j = 0; j < 4; ++j) moved[j] = std::min(1.0, rates[j] + ((ups >> j & 1U) != 0 ? 0.05 : -0.05));
    CHECK(tokens(moved) <= hull.hi + 1e-9);
    CHECK(tokens(moved) >= hull.lo - 1e-9);
    alone[ups % 4] -= 0.05;
    CHECK(tokens(alone) > hull.lo);
  }
  // Survival rates add up.
  CHECK(readings({0.9, 0.8, 0.7}, 0.005, false).hi == Approx(3.415).epsilon(1e-9));
}

TEST_CASE("rates by position are read as their lengths are, and their rounding is no growth") {
  const std::vector<estimate::TypedRate> rates = {{0.71, 0.005}, {0.49, 0.005}, {0.32, 0.005}, {0.21, 0.005}};
  const TypedAcceptance typed = estimate::typed_positions(rates, false, 5000);
  CHECK(typed.monotone);
  CHECK(typed.measured_at == 4);
  CHECK(expected_tokens(typed.profile, 4) == Approx(1 + 0.71 + 0.49 + 0.32 + 0.21));
  CHECK(typed.rate.alpha() == Approx(1.73 / (1 + 0.71 + 0.49 + 0.32)));
  CHECK_FALSE(typed.ci95.empty());
  const std::vector<estimate::TypedRate> conditional = {{0.71, 0.005}, {0.69, 0.005}, {0.65, 0.005}, {0.66, 0.005}};
  CHECK(estimate::typed_positions(conditional, true).profile.survival(2) == Approx(0.71 * 0.69));
  CHECK(estimate::typed_positions(std::vector<estimate::TypedRate>{{0.5, 0.05}, {0.55, 0.05}}, false).monotone);
  CHECK_FALSE(estimate::typed_positions(std::vector<estimate::TypedRate>{{0.5, 0.005}, {0.55, 0.005}}, false).monotone);
  CHECK(estimate::typed_positions(std::vector<estimate::TypedRate>{{0.9, 0.005}, {0.5, 0.005}}, false).falsified);
}

TEST_CASE("each of several figures has the interval of its own mean, not a share of the last one's") {
  constexpr double z = 1.959964, rounds = 1e6;
  const std::vector<double> survival = {0.8, 0.6, 0.45};
  const std::vector<estimate::TypedRate> unconditional = {{0.8, 0}, {0.6, 0}, {0.45, 0}};
  const std::vector<estimate::TypedRate> conditional = {{0.8, 0}, {0.75, 0}, {0.75, 0}};
  for (const TypedAcceptance& typed : {estimate::typed_lengths(by_gamma({1.8, 2.4, 2.85}, 0), rounds),
                                       estimate::typed_positions(unconditional, false, rounds),
                                       estimate::typed_positions(conditional, true, rounds)}) {
    double mean = 0, squares = 0;
    for (std::int64_t gamma = 1; gamma <= 3; ++gamma) {
      mean += survival[static_cast<std::size_t>(gamma) - 1];
      squares += static_cast<double>(2 * gamma - 1) * survival[static_cast<std::size_t>(gamma) - 1];
      const double half = z * std::sqrt(3 * (squares - mean * mean) / rounds);
      const Hull hull = interval_at(typed, gamma);
      INFO(gamma);
      CHECK(1 + mean - hull.lo == Approx(half).epsilon(0.005));
      CHECK(hull.hi - 1 - mean == Approx(half).epsilon(0.005));
    }
  }
  // The first of several figures is known as it is alone, of however few rounds.
  for (const double few : {1.0, 5.0, 50.0, 500.0}) {
    const std::vector<double> rates = {0.7, 0.05, 0.04};
    double tokens = 1;
    std::vector<double> lengths;
    for (const double rate : rates) lengths.push_back(tokens += rate);
    const TypedAcceptance several = estimate::typed_lengths(by_gamma(lengths, 0), few);
    const Hull alone = interval_at(estimate::typed_lengths(by_gamma({lengths[0]}, 0), few), 1);
    CHECK(interval_at(several, 1).lo <= alone.lo + 1e-5);
    CHECK(interval_at(several, 1).hi >= alone.hi - 1e-5);
  }
}

TEST_CASE("each of several figures has the range of its own rounding") {
  const TypedAcceptance lengths = estimate::typed_lengths(by_gamma({1.8, 2.4, 2.9}, 0.05));
  const std::vector<estimate::TypedRate> rates = {{0.8, 0.05}, {0.6, 0.05}, {0.5, 0.05}};
  const TypedAcceptance positions = estimate::typed_positions(rates, false);
  const TypedAcceptance conditional = estimate::typed_positions(rates, true);
  const std::vector<double> tokens = {1.8, 2.4, 2.9}, sums = {0.05, 0.1, 0.15};
  const std::vector<double> low = {1.75, 1.75 + 0.75 * 0.55}, high = {1.85, 1.85 + 0.85 * 0.65};
  for (std::int64_t gamma = 1; gamma <= 3; ++gamma) {
    const auto k = static_cast<std::size_t>(gamma) - 1;
    INFO(gamma);
    CHECK(readings_at(lengths, gamma).lo == Approx(tokens[k] - 0.05).epsilon(1e-6));
    CHECK(readings_at(lengths, gamma).hi == Approx(tokens[k] + 0.05).epsilon(1e-6));
    CHECK(readings_at(positions, gamma).lo == Approx(tokens[k] - sums[k]).epsilon(1e-6));
    CHECK(readings_at(positions, gamma).hi == Approx(tokens[k] + sums[k]).epsilon(1e-6));
    if (gamma == 3) continue;
    CHECK(readings_at(conditional, gamma).lo <= low[k] + 1e-9);
    CHECK(readings_at(conditional, gamma).hi >= high[k] - 1e-9);
  }
}

TEST_CASE("lengths that only rounding makes legal move no further than they have to, and those in order not at all") {
  const TypedAcceptance falling = estimate::typed_lengths(by_gamma({1.8, 2.4, 2.3}, 0.05));
  CHECK(falling.monotone);
  CHECK(expected_tokens(falling.profile, 1) == Approx(1.8).epsilon(1e-7));
  CHECK(expected_tokens(falling.profile, 2) == Approx(2.35).epsilon(1e-7));
  CHECK(expected_tokens(falling.profile, 3) == Approx(2.35).epsilon(1e-7));
  CHECK(readings_at(falling, 1).lo <= 1.75 + 1e-7);
  CHECK(readings_at(falling, 1).hi >= 1.85 - 1e-7);

  const std::vector<TypedLength> finer = {{1, 1.8, 0.05}, {2, 2.4, 0.05}, {3, 2.39, 0.005}};
  const TypedAcceptance nearly = estimate::typed_lengths(finer);
  CHECK(expected_tokens(nearly.profile, 1) == Approx(1.8).epsilon(1e-7));
  // Each is missed by 2/11 of its half unit.
  CHECK(expected_tokens(nearly.profile, 2) == Approx(2.39 + 0.01 / 11).epsilon(1e-7));
  CHECK(expected_tokens(nearly.profile, 3) == Approx(2.39 + 0.01 / 11).epsilon(1e-7));
  CHECK(readings_at(nearly, 1).lo <= 1.75 + 1e-7);
  CHECK(readings_at(nearly, 1).hi >= 1.85 - 1e-7);
  CHECK(readings_at(nearly, 2).lo <= 2.35 + 1e-7);
  CHECK(readings_at(nearly, 2).hi >= 2.395 - 1e-7);
}

TEST_CASE("where all drafts are accepted there is no rate to go on with") {
  CHECK_FALSE(one(3, 4).ratio_beyond);
  CHECK(one(3, 4).profile.measured_positions() == 0);
  CHECK_FALSE(estimate::typed_lengths(by_gamma({2, 3, 4}, 0)).ratio_beyond);
  CHECK(one(5, 1).profile.survival(1) == Approx(0).margin(1e-12));
}

TEST_CASE("typed figures outside their ranges are refused") {
  CHECK_THROWS_AS(estimate::typed_lengths({}), std::invalid_argument);
  CHECK_THROWS_AS(estimate::typed_positions({}, false), std::invalid_argument);
  CHECK_THROWS_AS(one(3, 4.5), std::domain_error);
  CHECK_THROWS_AS(one(3, 2.5, -1), std::domain_error);
  CHECK_THROWS_AS(estimate::typed_lengths(by_gamma({1.5}), 0.5), std::domain_error);
  CHECK_THROWS_AS(estimate::typed_positions(std::vector<estimate::TypedRate>{{1.5, 0}}, false), std::domain_error);
}

TEST_CASE("lengths with intervals of their own have these at their gammas") {
  const std::vector<TypedLength> lengths = {{3, 2.7, 0}, {7, 3.5, 0}};
  const std::vector<estimate::Interval> ci95 = {{1.7, 3.6}, {1.8, 6.0}};
  const TypedAcceptance typed = estimate::typed_lengths_within(lengths, ci95);
  for (std::size_t k = 0; k < lengths.size(); ++k) {
    double lo = lengths[k].tokens_per_step, hi = lo;
    for (const core::AcceptanceProfile& end : typed.ci95) {
      lo = std::min(lo, theory::expected_tokens(end, lengths[k].gamma));
      hi = std::max(hi, theory::expected_tokens(end, lengths[k].gamma));
    }
    CHECK(lo == Approx(ci95[k].lo));
    CHECK(hi == Approx(ci95[k].hi));
  }
  CHECK_THROWS_AS(estimate::typed_lengths_within(lengths, std::vector<estimate::Interval>{{1.7, 3.6}}),
                  std::invalid_argument);
  CHECK_THROWS_AS(estimate::typed_lengths_within(lengths, std::vector<estimate::Interval>{{2.8, 3.6}, {1.8, 6}}),
                  std::domain_error);
}
