#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/planning/published.hpp"
#include "analysis/planning/published_acceptance.hpp"

/// Consequences of the paper's measured speeds (Table 2) and acceptance rates (Tables 3 and 5). Rows keep pointers to
/// published_acceptances(), which live as long as the program.
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

/// The speedup that drafts must gain to be said to pay.
inline constexpr double published_min_gain = 0.05;

/// The value of a rate: at c = 0, where drafts cost nothing, and at other costs.
///
/// Source:   Leviathan et al. 2023, Sections 3.5 and 3.6
struct Table3Row {
  const PublishedAcceptance* setting;
  /// At c = 0 and gamma 3, as in Section 3.6 for the bigram, and its limit 1 / (1 - alpha) as gamma grows.
  double speedup_at_gamma_3;
  RoundedNumber limit;
  /// The c below which some gamma is faster than plain decoding: alpha.
  double break_even_c;
  /// The largest c at which some gamma is 1 + published_min_gain times as fast: max over gamma of (E / 1.05 - 1) /
  /// gamma; empty if there is none.
  std::optional<double> largest_c;
};
std::vector<Table3Row> table_3();

/// The best gamma of a rate of Table 3 at one c > 0.
struct Table3Cost {
  const PublishedAcceptance* setting;
  double c;
  std::int64_t gamma;
  double speedup;
  bool pays() const { return speedup >= 1 + published_min_gain; }
};
std::vector<Table3Cost> table_3_costs();

/// A target and a draft on one task at temperatures 0 and 1.
struct TemperaturePair {
  const PublishedAcceptance* argmax;
  const PublishedAcceptance* standard;
  /// argmax - standard.
  RoundedNumber difference;
};
std::vector<TemperaturePair> temperature_pairs();

/// A rate at a lenience, and the gain from lenience at the draft's own c: 0.015 for T5-small (Appendix A.5), Table 4's
/// for T5-base, 0 for n-grams, whose speedup is its limit; for the shipped pair 0.05 for the draft.
struct Table5Row {
  const PublishedAcceptance* setting;
  double c;
  /// Empty at c = 0.
  std::optional<std::int64_t> gamma;
  double speedup;
  /// speedup / speedup at lenience 1
  double gain;
  /// l alpha_l = E[sum min(p, l q)], concave in l, 0 at 0: a check of the four rates against each other.
  double scaled_alpha;
  /// True if it lies on or above the straight line between its neighbours, 0 included, for some rates that round to the
  /// printed ones; empty at lenience 1, which has no neighbour above, and for the argmax rule.
  std::optional<bool> is_concave;
};
std::vector<Table5Row> table_5();

}  // namespace specdec::planning
