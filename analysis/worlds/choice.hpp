#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "analysis/worlds/speeds.hpp"

/// The choice of least expected regret, and how sure it is.
namespace specdec::worlds {

/// How sure it is that drafts gain what is asked for, by the share of worlds in which they do.
enum class Certainty {
  sure,      ///< in at least 95%
  likely,    ///< in at least 75%
  open,      ///< between
  unlikely,  ///< in less than 25%
  no,        ///< in less than 5%
};

/// "sure", "likely", "open", "unlikely", "no".
std::string_view name_of(Certainty certainty);
/// @param share  [0, 1]
Certainty certainty_of(double share);

/// Regrets that differ by no more than this are alike: the smallest that was measured is taken, else the smallest.
inline constexpr double alike_regrets = 0.0025;

struct ChoiceOptions {
  /// Plain decoding, the first option, counts as this much faster than it is, >= 0.
  double min_gain = 0.05;
  /// [option]: lies within what was measured; none does if empty.
  std::vector<bool> measured = {};
};

struct Choice {
  /// The option to take.
  std::size_t option = 0;
  /// The best of the options that draft; 0 if there is none.
  std::size_t drafting = 0;
  /// [option]: expected regret,
  ///
  ///   1/worlds sum over worlds of 1 - s(option) / max over options of s,   s(0) = 1 + min_gain,
  ///
  /// of the alternative where it is largest, [0, 1].
  std::vector<double> regrets;
  /// The share of worlds in which `drafting` is at least 1 + min_gain times as fast as plain decoding.
  double share = 0;

  /// Takes another option.
  void take(std::size_t other, const Table& speedups, double min_gain);

  double regret() const { return regrets[option]; }
  Certainty certainty() const { return certainty_of(share); }
};

/// Expected regrets as Choice::regrets.
std::vector<double> regrets_of(const Table& speedups, double min_gain);

/// The option of least expected regret. Of those within alike_regrets of the least the smallest that was measured, else
/// the smallest; where nothing is uncertain the fastest itself, unless it is the last option.
/// @param speedups  over plain decoding, the first option
/// @throws std::invalid_argument if there are no options, or sizes differ
Choice choose(const Table& speedups, const ChoiceOptions& options);

}  // namespace specdec::worlds
