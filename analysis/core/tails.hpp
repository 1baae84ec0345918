#pragma once

/// Tails of the laws that tests and intervals need.
namespace specdec::core {

/// P(Z > z) of a standard normal Z.
double normal_tail(double z);
/// P(T > t) of Student's law.
/// @param degrees_of_freedom  > 0
double t_tail(double t, double degrees_of_freedom);
/// The half-width of a 95% interval in standard errors: the 0.975 quantile of Student's law.
double t_half_width_95(double degrees_of_freedom);

}  // namespace specdec::core
