#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/core/exact_sum.hpp"
#include "analysis/estimate/observations.hpp"

namespace specdec::estimate {

/// |z| above this gives a warning. Under the normal law a text of the target's own exceeds it once in 15,800 tests, and
/// one of the two tests does so once in 7,900 recordings.
inline constexpr double text_source_warning = 4;

/// Below these summed variances the normal law is too inaccurate in its tails, and there is no z. The first is that of
/// a hundred fair coins; surprisals of rare tokens are larger, so the second threshold is higher, in nats^2.
inline constexpr double least_acceptance_variance = 25;
inline constexpr double least_surprisal_variance = 400;

/// Rows are compared with the tokens beside theirs from this summed variance on, in nats^2. It is lower than that of a
/// warning: inexact tails of the law may hide a shift there, but what a shift takes besides lets none be invented.
inline constexpr double least_neighbour_variance = 25;
/// Where no variance is left, as at temperature 0, from this many positions on.
inline constexpr std::int64_t least_neighbours = 8;
/// The share of impossible tokens up to which rows may still be those of their tokens.
inline constexpr double most_impossible = 0.1;

/// The message for rows that pass with the neighbouring token.
inline constexpr std::string_view rows_of_next_token =
    "the rows fit the tokens behind their own: row t of a model's logits says what follows token t, so that "
    "logits[:-1] belong to token[1:]";
inline constexpr std::string_view rows_of_previous_token =
    "the rows fit the tokens before their own: the rows lie one position too late, so that row t + 1 belongs to "
    "token t";

/// The mean of q / p is told where its standard error is at most this.
inline constexpr double told_ratio_error = 0.02;

/// One deviation of the text from what the target would emit.
struct MartingaleTest {
  /// Sum of deviations over the root of the summed variances; empty if those are too small for the normal law.
  std::optional<double> z;
  std::int64_t positions = 0;
  double variance = 0;

  double standard_error() const { return std::sqrt(variance) / static_cast<double>(positions); }
};

/// Deviations that have mean 0 given the past, and their variances given it.
struct MartingaleSums {
  core::ExactSum deviation;
  core::ExactSum variance;
  std::int64_t positions = 0;

  void add(double a_deviation, double a_variance);
  void merge(const MartingaleSums& other);
  MartingaleTest test(double least_variance) const;

  template <class Archive>
  void exchange(Archive& archive) {
    archive(deviation, variance, positions);
  }
};

/// The test of surprisals for rows and tokens of the text: their own, or those beside them.
struct SurprisalFit {
  MartingaleSums sums;          ///< over the tokens that are possible
  std::int64_t impossible = 0;  ///< tokens of probability 0

  /// Leaves out what is unknown.
  /// @param deviation  -log p(x) - H(p), infinite where p(x) = 0
  /// @param variance   Var(log p)
  void add(double deviation, double variance);
  void merge(const SurprisalFit& other);

  /// True if every token is possible and |z| is at most the warning level, where the variance suffices for a z; or if
  /// no variance is left, and least_neighbours are possible.
  bool passes() const;
  /// True if |z| of the possible tokens is beyond the warning level, or more than most_impossible are not possible. Few
  /// impossible tokens alone say nothing of the other rows.
  bool fails() const;

  template <class Archive>
  void exchange(Archive& archive) {
    archive(sums, impossible);
  }
};

/// Whose rows they are: 1 if they fit the tokens behind their own, -1 those before; empty unless their own tokens fail
/// and those pass. A shift is named falsely only where their own tokens fail, by chance once in 15,800 texts, and those
/// of a neighbour fit besides; a shift that is there is missed once in 15,800, as far as the normal law holds.
std::optional<std::int64_t> rows_shifted_by(const SurprisalFit& own, const SurprisalFit& previous,
                                            const SurprisalFit& next);

/// The message for this shift, 1 or -1.
std::string_view about_shift(std::int64_t rows_shifted_by);

/// Tests whether the text was sampled from the target.
struct TextSourceResult {
  MartingaleTest acceptance;  ///< z1 = sum (a_t - E[a_t | prefix]) / sqrt(sum Var(a_t | prefix))
  MartingaleTest surprisal;   ///< z2 = sum (-log p_t(x_t) - H(p_t)) / sqrt(sum Var(log p_t | prefix))
  /// Of numbers of the emitted tokens alone, r_t = q_t(x_t) / p_t(x_t): sum (r_t - 1) over the root of the summed
  /// squares, and the same of the roots of r_t.
  MartingaleTest ratio, root;
  /// If the tests reject: see estimate::rows_shifted_by.
  std::optional<std::int64_t> rows_shifted_by;

  /// True if acceptance or surprisal is beyond the warning level, or the root above it.
  bool suspicious() const;
  /// Of q / p over the emitted tokens; empty unless its standard error is small.
  std::optional<double> mean_ratio() const;
  /// The warning for the reader, including whether moving the rows by one position would help.
  std::string warning() const;
};

/// The tests, in one pass. If x_t is distributed by p_t given everything before it, the sums of acceptance and
/// surprisal are martingales with at most these conditional variances (exactly these but where an overlap stands for
/// its row), whatever the models and however autocorrelated the text: for many positions their z is standard normal, or
/// narrower. Comparing the intervals of the two estimates of alpha is far less sensitive. The sum of ratios has mean 0,
/// or below it if the target leaves out tokens that the draft has, as by top-p; that of their roots has a mean of at
/// most 0 and a bounded variance.
///
/// Source:   docs/theory.md#was-the-text-sampled-from-the-target
/// Assumes:  which positions are known does not depend on the tokens emitted there; others are left out.
class TextSourceAccumulator {
 public:
  /// @param task  only the positions of this task, if given
  void add(const Observations& observations, const std::optional<std::int32_t>& task = {});
  void merge(const TextSourceAccumulator& other);
  TextSourceResult result() const;

  template <class Archive>
  void exchange(Archive& archive) {
    archive(acceptance_, ratio_, root_, surprisal_, previous_, next_);
  }

 private:
  MartingaleSums acceptance_, ratio_, root_;
  SurprisalFit surprisal_, previous_, next_;
};

}  // namespace specdec::estimate
