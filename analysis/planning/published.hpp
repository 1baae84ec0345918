#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

/// The figures that the paper prints, recomputed from the inputs printed with them.
/// "The paper" is Leviathan, Kalman, Matias: Fast Inference from Transformers via Speculative Decoding, ICML 2023.
namespace specdec::planning {

/// The relation of a printed figure to the values that follow from the printed inputs.
enum class Agreement {
  at_printed_inputs,      ///< rounds to the printed figure
  within_input_rounding,  ///< does so for some inputs that round to the printed ones
  cannot_follow,          ///< does so for no such inputs
};

struct Comparison {
  double printed;
  double half_unit;  ///< half a unit of the last printed digit
  double computed;   ///< from the printed inputs
  double lowest;     ///< over all inputs that round to the printed ones
  double highest;
  Agreement agreement;

  bool agrees() const { return agreement != Agreement::cannot_follow; }
};

/// A printed number: the values from value - half_unit to value + half_unit round to it.
struct Printed {
  double value;
  double half_unit = 0;  ///< 0 for a number that was chosen, not rounded
};

/// Compares a printed figure with computed ones. A rounding tie counts as agreement either way.
/// @throws std::domain_error unless lowest <= computed <= highest
Comparison compare(const Printed& printed, double computed, double lowest, double highest);

/// Table 1: alpha and gamma are chosen, c = c_hat = 0.
struct Table1Row {
  double alpha;
  std::int64_t gamma;
  Comparison operations;
  Comparison speed;
};
std::vector<Table1Row> table_1();

/// Table 4, column EXP: alpha and c are rounded to two digits. The speedup grows with alpha and falls with c, so its
/// extremes lie at corners.
struct Table4Row {
  std::string_view task;
  std::string_view draft_model;
  int temperature;
  std::int64_t gamma;
  double alpha;
  double c;
  Comparison speedup;
  std::int64_t best_gamma;  ///< at the printed inputs
  double best_speedup;
};
std::vector<Table4Row> table_4();

/// Section 3.6: the bigram model with alpha about 0.2, gamma 3, c = 0.
struct BigramFigure {
  double alpha;
  std::int64_t gamma;
  double c;
  Comparison speedup;
  double limit;  ///< the speedup for gamma -> infinity
};
BigramFigure bigram_figure();

/// Appendix A.5: T5-small on translation.
struct LenienceRow {
  double lenience;
  double alpha;
  double c;
  /// The printed gamma; empty if the paper prints none.
  std::optional<std::int64_t> printed_gamma;
  /// The gamma at which `speedup` was computed: the printed one, or the best one over all gammas.
  std::int64_t gamma;
  Comparison speedup;
};
std::vector<LenienceRow> stochastic_lenience();
std::vector<LenienceRow> argmax_lenience();

}  // namespace specdec::planning
