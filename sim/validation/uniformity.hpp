#pragma once

#include <span>

#include "sim/language_model.hpp"

namespace specdec::validation {

/// Randomised probability integral transform of an emitted token, the tokens ordered by q/p.
///
///   sum { p(y) : q(y)/p(y) < q(x)/p(x), or equal and y < x } + u p(x)
///
/// Uniform on [0, 1] whatever p and q are if x was drawn from p and u independently of everything else. In this
/// order a wrong acceptance or correction shifts mass from one end to the other.
///
/// Source:   docs/validation.md#the-distribution-test
/// Shape:    both (vocab), rows sum to 1
/// @param token  x, with p(x) > 0
/// @param u      [0, 1)
/// @return a number in [0, 1]
double transform_by_ratio(std::span<const double> target, std::span<const double> draft, sim::Token token, double u);

/// The same with the tokens ordered by p, the most probable first; detects errors unrelated to q.
double transform_by_probability(std::span<const double> target, sim::Token token, double u);

/// The largest distance of an empirical distribution function from the uniform law's (Kolmogorov's two-sided D).
///
/// @param values  numbers in [0, 1], at least one; they are sorted in place
double kolmogorov_distance(std::span<double> values);

/// An upper bound on P(D >= distance) for n independent uniform values: p = min(1, 2 exp(-2 n D^2)).
///
/// Source:   Massart 1990 (the Dvoretzky-Kiefer-Wolfowitz inequality with its best constant)
/// Assumes:  nothing beyond independence: it holds for every n, so a test at level p has at most that false-alarm rate.
/// @param distance  D, [0, 1]
/// @param n         values, >= 1
/// @throws std::domain_error if an argument is outside its range
/// Accuracy: never below the exact probability, and where that is under 1e-2 and D <= 0.6 above it by at most a factor
///           exp(D + n D^4 / 2) (the test's tolerance): 8% at n = 1,000 and 2% at n = 10,000 for p = 1e-6
double kolmogorov_p_value(double distance, std::int64_t n);

/// P(|Z| >= |z|) of a standard normal Z. Relative error <= 1e-14.
double two_sided_normal_p_value(double z);

}  // namespace specdec::validation
