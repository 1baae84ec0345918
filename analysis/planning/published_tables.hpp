#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/planning/published.hpp"
#include "analysis/planning/published_acceptance.hpp"

/// What follows from the paper's measured speeds (Table 2) and acceptance rates (Tables 3 and 5). Rows keep pointers to
/// published_acceptances(), which live as long as the program.
namespace specdec::planning {

/// A number and its extremes over all inputs that round to the printed ones.
struct RoundedNumber {
  double value;
  double lowest;
  double highest;
};

/// A measured speed beside Theorem 3.8 at the printed alpha, gamma and c, and what would make the two equal, each with
/// all other inputs as printed. With E the expected tokens of a step and S the measured speed:
///
///   verify factor  v(gamma + 1) = E / S - c gamma           (an overhead of v - 1 target steps is the same)
///   draft cost     c = (E / S - 1) / gamma
///   alpha          root of E = S (1 + c gamma)
///
/// Source:   docs/theory.md#published-acceptance
struct Table2Row {
  const PublishedAcceptance* setting;
  Comparison speed;
  /// measured / computed - 1.
  RoundedNumber error;
  /// Below 1 where no cost of verification explains it: gamma + 1 tokens would be scored faster than one.
  RoundedNumber verify_factor;
  /// Below 0 where no cost of drafting explains it.
  RoundedNumber c;
  /// Nothing where S (1 + c gamma) is more than the gamma + 1 tokens that a step yields at most.
  std::optional<double> alpha;

  /// Some inputs that round to the printed ones go with a verify factor of at least 1.
  bool verification_explains() const { return verify_factor.highest >= 1; }
};
std::vector<Table2Row> table_2();

/// Over rows of Table 2.
struct Table2Errors {
  double mean;  ///< of the errors
  double root_mean_square;
  double largest;          ///< of the absolute errors
  double geometric_ratio;  ///< geometric mean of measured / computed
};
/// @param rows  at least one
Table2Errors errors_of(const std::vector<Table2Row>& rows);

/// The speedup asked for where a draft is said to pay.
inline constexpr double published_min_gain = 0.05;

/// What a rate is worth: at c = 0, where drafts cost nothing, and at others.
///
/// Source:   Leviathan et al. 2023, Sections 3.5 and 3.6
struct Table3Row {
  const PublishedAcceptance* setting;
  /// At c = 0 and gamma 3, as Section 3.6 has it for the bigram, and its limit 1 / (1 - alpha) for ever more drafts.
  double speedup_at_gamma_3;
  RoundedNumber limit;
  /// Below which some gamma is faster than plain decoding: alpha.
  double break_even_c;
  /// Up to which some gamma is 1 + published_min_gain times as fast: max over gamma of (E / 1.05 - 1) / gamma; nothing
  /// where none is at any c.
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

/// A target and a draft on one task at temperature 0 and 1.
struct TemperaturePair {
  const PublishedAcceptance* argmax;
  const PublishedAcceptance* standard;
  /// argmax - standard.
  RoundedNumber difference;
};
std::vector<TemperaturePair> temperature_pairs();

/// A rate at a lenience, and what lenience gains at the draft's own c: 0.015 for T5-small (Appendix A.5), Table 4's for
/// T5-base, 0 for n-grams, whose speedup is its limit; of the shipped pair 0.05 for the draft.
struct Table5Row {
  const PublishedAcceptance* setting;
  double c;
  /// Nothing at c = 0.
  std::optional<std::int64_t> gamma;
  double speedup;
  /// speedup / that at lenience 1.
  double gain;
  /// l alpha_l = E[sum min(p, l q)], concave in l, 0 at 0: a check of the four rates against each other.
  double scaled_alpha;
  /// That it lies on or above the straight line between its neighbours, 0 included, for some rates that round to the
  /// printed ones; nothing at lenience 1, which has no neighbour above, and where the rule is the argmax's.
  std::optional<bool> is_concave;
};
std::vector<Table5Row> table_5();

}  // namespace specdec::planning
