#pragma once

#include <optional>
#include <vector>

#include "analysis/planning/published.hpp"
#include "analysis/planning/published_acceptance.hpp"

/// Consequences of the paper's measured speeds (Table 2). Rows keep pointers to published_acceptances(), which live as
/// long as the program.
namespace specdec::planning {

/// A number and its extremes over all inputs that round to the printed ones.
struct RoundedNumber {
  double value;
  double lowest;
  double highest;
};

/// A measured speed beside Theorem 3.8 at the printed alpha, gamma and c, and the values that would make the two equal,
/// each with all other inputs as printed. With E the expected tokens of a step and S the measured speed:
///
///   verify factor  v(gamma + 1) = E / S - c gamma           (an overhead of v - 1 target steps is the same)
///   draft cost     c = (E / S - 1) / gamma
///   alpha          root of E = S (1 + c gamma)
///
/// Source:   docs/theory.md#published-acceptance
struct Table2Row {
  const PublishedAcceptance* setting;
  Comparison speed;
  /// measured / computed - 1
  RoundedNumber error;
  /// Below 1 if no cost of verification explains it: gamma + 1 tokens would be scored faster than one.
  RoundedNumber verify_factor;
  /// Below 0 if no cost of drafting explains it.
  RoundedNumber c;
  /// Empty if S (1 + c gamma) exceeds gamma + 1, the most tokens that a step can yield.
  std::optional<double> alpha;

  /// True if some inputs that round to the printed ones give a verify factor of at least 1.
  bool verification_explains() const { return verify_factor.highest >= 1; }
};
std::vector<Table2Row> table_2();

/// Summary over rows of Table 2.
struct Table2Errors {
  double mean;  ///< mean of the errors
  double root_mean_square;
  double largest;          ///< largest of the absolute errors
  double geometric_ratio;  ///< geometric mean of measured / computed
};
/// @param rows  at least one
Table2Errors errors_of(const std::vector<Table2Row>& rows);

}  // namespace specdec::planning
