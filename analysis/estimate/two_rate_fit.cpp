#include "analysis/estimate/two_rate_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/theory/tokens.hpp"

namespace specdec::estimate {
namespace {

using Parameters = std::array<double, 3>;  // high, low, share_high

constexpr double edge = 1e-9;
/// Twice the gain in log-likelihood that two rates must achieve.
constexpr double least_gain = 1e-3;
constexpr int most_cycles = 1000;
constexpr double converged = 1e-11;

double at(const std::vector<double>& values, std::size_t n) { return n < values.size() ? values[n] : 0; }

std::size_t length(const RoundEnds& ends) { return std::max(ends.rejected.size(), ends.completed.size()); }

double log_likelihood(const RoundEnds& ends, const Parameters& p) {
  double high = p[2];
  double low = 1 - p[2];
  double sum = 0;
  for (std::size_t n = 0; n < length(ends); ++n) {
    const double rejected = at(ends.rejected, n);
    const double completed = at(ends.completed, n);
    if (rejected > 0) sum += rejected * std::log(high * (1 - p[0]) + low * (1 - p[1]));
    if (completed > 0) sum += completed * std::log(high + low);
    high *= p[0];
    low *= p[1];
  }
  return sum;
}

/// One step of expectation maximisation: every round is divided between the rates by the likelihood each gives it.
Parameters em_step(const RoundEnds& ends, const Parameters& p) {
  double high = p[2];
  double low = 1 - p[2];
  double rounds = 0;
  double of_high = 0;
  std::array<double, 2> accepted{}, rejections{};
  for (std::size_t n = 0; n < length(ends); ++n) {
    const auto drafts = static_cast<double>(n);
    const double rejected = at(ends.rejected, n);
    if (rejected > 0) {
      const double h = high * (1 - p[0]);
      const double l = low * (1 - p[1]);
      const double mine = h + l > 0 ? rejected * h / (h + l) : rejected / 2;
      accepted[0] += drafts * mine;
      accepted[1] += drafts * (rejected - mine);
      rejections[0] += mine;
      rejections[1] += rejected - mine;
      of_high += mine;
      rounds += rejected;
    }
    const double completed = at(ends.completed, n);
    if (completed > 0) {
      const double mine = high + low > 0 ? completed * high / (high + low) : completed / 2;
      accepted[0] += drafts * mine;
      accepted[1] += drafts * (completed - mine);
      of_high += mine;
      rounds += completed;
    }
    high *= p[0];
    low *= p[1];
  }
  const auto rate = [&](std::size_t i, double otherwise) {
    const double trials = accepted[i] + rejections[i];
    return trials > 0 ? accepted[i] / trials : otherwise;
  };
  return {rate(0, p[0]), rate(1, p[1]), of_high / rounds};
}

double distance(const Parameters& a, const Parameters& b) {
  return std::max({std::abs(a[0] - b[0]), std::abs(a[1] - b[1]), std::abs(a[2] - b[2])});
}

/// Expectation maximisation with squared extrapolation (Varadhan and Roland 2008, scheme S3).
Parameters maximise(const RoundEnds& ends, Parameters p) {
  double likelihood = log_likelihood(ends, p);
  for (int cycle = 0; cycle < most_cycles; ++cycle) {
    const Parameters once = em_step(ends, p);
    const Parameters twice = em_step(ends, once);
    double r2 = 0;
    double v2 = 0;
    Parameters r{}, v{};
    for (std::size_t i = 0; i < 3; ++i) {
      r[i] = once[i] - p[i];
      v[i] = twice[i] - once[i] - r[i];
      r2 += r[i] * r[i];
      v2 += v[i] * v[i];
    }
    Parameters next = twice;
    if (v2 > 0) {
      const double step = -std::max(1.0, std::sqrt(r2 / v2));
      Parameters leap{};
      for (std::size_t i = 0; i < 3; ++i) {
        leap[i] = std::clamp(p[i] - 2 * step * r[i] + step * step * v[i], edge, 1 - edge);
      }
      leap = em_step(ends, leap);
      const double after = log_likelihood(ends, leap);
      if (after >= likelihood) {
        next = leap;
        likelihood = after;
      } else {
        likelihood = log_likelihood(ends, next);
      }
    } else {
      likelihood = log_likelihood(ends, next);
    }
    const double moved = distance(next, p);
    p = next;
    if (moved < converged) break;
  }
  return p;
}

/// The rate for which a vanishing share of rounds would increase the likelihood fastest, if at all: the
/// gradient over mixtures at one rate alpha is sum counts P(end | rate) / P(end | alpha) - rounds.
std::optional<double> better_rate(const RoundEnds& ends, double alpha) {
  constexpr int cells = 64;
  std::optional<double> best;
  double rounds = 0;
  for (std::size_t n = 0; n < length(ends); ++n) rounds += at(ends.rejected, n) + at(ends.completed, n);
  double steepest = 1e-9 * rounds;
  for (int cell = 0; cell <= cells; ++cell) {
    const double rate = static_cast<double>(cell) / cells;
    double ratio = 1;
    double gradient = -rounds;
    for (std::size_t n = 0; n < length(ends); ++n) {
      gradient += at(ends.rejected, n) * ratio * (1 - rate) / (1 - alpha) + at(ends.completed, n) * ratio;
      ratio *= rate / alpha;
    }
    if (gradient > steepest) {
      steepest = gradient;
      best = rate;
    }
  }
  return best;
}

/// From the survivals of two positions alone.
std::optional<RoundMixture> two_points(double once, double twice) {
  const double variance = twice - once * once;
  if (!(variance > 1e-12)) return std::nullopt;
  const double deviation = std::sqrt(variance);
  if (once + deviation > 1) {
    const double low = std::clamp((1 - twice) / (1 - once) - 1, 0.0, once);
    return RoundMixture{1, low, (once - low) / (1 - low)};
  }
  if (once - deviation < 0) {
    const double high = twice / once;
    return RoundMixture{high, 0, once / high};
  }
  return RoundMixture{once + deviation, once - deviation, 0.5};
}

}  // namespace

std::optional<double> one_rate(const RoundEnds& ends) {
  double accepted = 0;
  double rejections = 0;
  for (std::size_t n = 0; n < length(ends); ++n) {
    accepted += static_cast<double>(n) * (at(ends.rejected, n) + at(ends.completed, n));
    rejections += at(ends.rejected, n);
  }
  if (!(accepted + rejections > 0)) return std::nullopt;
  return accepted / (accepted + rejections);
}

std::optional<RoundMixture> two_rates(const RoundEnds& ends) {
  const std::optional<double> alpha = one_rate(ends);
  if (!alpha || !(0 < *alpha && *alpha < 1)) return std::nullopt;
  double first = 0;
  double second = 0;
  double first_accepted = 0;
  bool third = false;
  for (std::size_t n = 0; n < length(ends); ++n) {
    const double rejected = at(ends.rejected, n);
    const double completed = at(ends.completed, n);
    first += rejected + (n >= 1 ? completed : 0);
    if (n >= 1) first_accepted += rejected + completed;
    if (n >= 2) second += rejected + completed;
    third = third || (n >= 2 && rejected > 0) || (n >= 3 && completed > 0);
  }
  if (!third) {
    const double looked_at_second = second + at(ends.rejected, 1);
    if (!(first > 0) || !(looked_at_second > 0)) return std::nullopt;
    const double once = first_accepted / first;
    return two_points(once, once * second / looked_at_second);
  }
  const std::optional<double> other = better_rate(ends, *alpha);
  if (!other) return std::nullopt;
  const double aside = std::clamp(*other, edge, 1 - edge);
  // The likelihood may have two maxima: one with a rate far from alpha, one with rates on both sides.
  Parameters fitted = maximise(ends, {std::max(aside, *alpha), std::min(aside, *alpha), aside > *alpha ? 0.1 : 0.9});
  const Parameters both_sides = maximise(ends, {(1 + *alpha) / 2, *alpha / 2, 0.5});
  if (log_likelihood(ends, both_sides) > log_likelihood(ends, fitted)) fitted = both_sides;
  const double gain = log_likelihood(ends, fitted) - log_likelihood(ends, {*alpha, *alpha, 1});
  if (!(2 * gain > least_gain)) return std::nullopt;
  if (fitted[0] >= fitted[1]) return RoundMixture{fitted[0], fitted[1], fitted[2]};
  return RoundMixture{fitted[1], fitted[0], 1 - fitted[2]};
}

theory::TwoRates rates_of_tokens(const RoundMixture& rounds, std::span<const double> share_by_drafted) {
  const auto tokens_per_round = [&](double rate) {
    double tokens = 0;
    for (std::size_t drafted = 0; drafted < share_by_drafted.size(); ++drafted) {
      tokens += share_by_drafted[drafted] * theory::expected_tokens(core::AcceptanceRate(std::clamp(rate, 0.0, 1.0)),
                                                                    static_cast<std::int64_t>(drafted));
    }
    return tokens;
  };
  const double high = rounds.share_high * tokens_per_round(rounds.high);
  const double low = (1 - rounds.share_high) * tokens_per_round(rounds.low);
  return {rounds.high, rounds.low, high / (high + low)};
}

}  // namespace specdec::estimate
