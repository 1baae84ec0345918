#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "analysis/core/exact_sum.hpp"
#include "analysis/core/state_archive.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/observations.hpp"

namespace specdec::estimate {

/// The law of numbers in [0, 1] in fixed memory: counts in `cells` equal cells, with 1 itself counted separately.
/// A quantile is off by at most quantile_error; the counts do not depend on the order of the numbers.
class UnitIntervalSketch {
 public:
  static constexpr std::int64_t cells = 16384;
  static constexpr double quantile_error = 1.0 / cells;

  /// @param value  [0, 1]; values beyond the ends by rounding are clamped
  void add(double value);
  std::int64_t count() const { return count_; }
  /// The smallest x with at least the share `probability` at or below it, up to quantile_error; 0 if that is in the
  /// first cell.
  /// @return empty if there are no numbers
  std::optional<double> quantile(double probability) const;
  /// The share below x, counted in whole cells: exact if x is a multiple of 1 / cells.
  std::optional<double> share_below(double x) const;
  /// Counts in `bins` equal bins; bins divides cells.
  std::vector<std::int64_t> histogram(std::int64_t bins) const;
  void merge(const UnitIntervalSketch& other);

  template <class Archive>
  void exchange(Archive& archive) {
    archive(core::fixed_length(counts_), count_);
    std::int64_t left = count_;
    for (const std::int64_t in_cell : counts_) {
      archive.require(0 <= in_cell && in_cell <= left);
      left -= in_cell;
    }
    archive.require(left == 0);
  }

 private:
  std::vector<std::int64_t> counts_ = std::vector<std::int64_t>(cells + 1);
  std::int64_t count_ = 0;
};

/// Autocorrelation of a column within each sequence, for a number of lags; streaming. Blocks of a sequence are summed
/// in one order, their sums exactly, so that results do not depend on the order of the sequences.
class Autocorrelation {
 public:
  explicit Autocorrelation(std::int64_t lags);
  /// Adds the next value of the current sequence, in [0, 1]; NaN leaves a gap.
  void add(std::int64_t sequence, double value);
  /// Adds the sequences of another object with as many lags, none of which is in this one.
  void merge(Autocorrelation other);

  /// Ends the open sequence.
  template <class Archive>
  void exchange(Archive& archive) {
    end_sequence();
    archive(core::fixed_length(pairs_), count_, sum_, squares_);
  }

  /// rho_1, ..., rho_lags; empty if there are fewer than two pairs or the column is constant.
  std::vector<std::optional<double>> values() const;
  /// The number of pairs behind each value.
  std::vector<std::int64_t> pairs() const;

 private:
  /// Sums over all pairs (x, y) at one lag.
  struct Pairs {
    std::int64_t count = 0;
    core::ExactSum sums;  // sums of x + y
    core::ExactSum products;

    template <class Archive>
    void exchange(Archive& archive) {
      archive(count, sums, products);
    }
  };
  void end_sequence();
  void end_block();
  void add_known();
  void add_with_gaps();
  Autocorrelation ended() const;

  std::vector<Pairs> pairs_;
  std::vector<double> block_;  // the last `lags` values before the block, fewer at a sequence's begin, then the block
  std::size_t before_ = 0;     // number of them before the block
  std::int64_t sequence_ = -1;
  std::int64_t count_ = 0;
  core::ExactSum sum_, squares_;
};

/// The mean of a column over its finite entries.
struct ColumnMean {
  std::optional<double> value;
  std::int64_t positions = 0;
  /// Share of infinite entries, which the mean leaves out.
  double infinite_share = 0;
};

/// The figures of the summary; empty for columns that the recording lacks.
struct BetaSummary {
  struct Quantile {
    double probability = 0;
    /// The quantiles of the brackets' ends; equal if the positions are exact.
    Interval bounds;
  };
  struct Share {
    double threshold = 0;
    Interval bounds;
  };
  /// The number of positions in equal bins of [0, 1], for the lower and the upper ends.
  struct Histogram {
    std::vector<std::int64_t> lower, upper;

    template <class Archive>
    void exchange(Archive& archive) {
      archive(lower, upper);
    }
  };
  std::int64_t positions = 0;
  std::vector<Quantile> quantiles;
  /// Counts of the lower and of the upper ends in equal bins of [0, 1].
  std::vector<std::int64_t> histogram_lower, histogram_upper;
  /// The same by task id, -1 for positions without one; they sum to the whole. Empty if the recording has no tasks.
  std::map<std::int32_t, Histogram> histogram_by_task;
  std::vector<Share> below;
  /// Autocorrelation of mean acceptance, lags 1, 2, ...; empty for brackets.
  std::vector<std::optional<double>> autocorrelation;
  /// The pairs of positions behind each.
  std::vector<std::int64_t> autocorrelation_pairs;
  std::optional<Interval> d_lk;
  ColumnMean kl_target_draft, kl_draft_target, target_entropy, draft_entropy, top1_agreement;
};

struct BetaLawOptions {
  std::vector<double> probabilities{0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99};
  std::vector<double> thresholds{0.1, 0.25, 0.5, 0.75, 0.9};
  std::int64_t bins = 16;
  std::int64_t lags = 16;
};

/// The law of mean acceptance over the positions of a recording, in one pass and fixed memory.
///
/// Source:   docs/theory.md#the-law-of-beta
class BetaLawAccumulator {
 public:
  explicit BetaLawAccumulator(BetaLawOptions options = {});
  void add(const Observations& observations);
  /// Adds the texts of another object with the same options, none of which is in this one.
  void merge(const BetaLawAccumulator& other);

  /// Ends the open text.
  template <class Archive>
  void exchange(Archive& archive) {
    archive(lower_, upper_, by_task_, autocorrelation_, bracketed_, d_lk_lower_, d_lk_upper_, kl_target_draft_,
            kl_draft_target_, target_entropy_, draft_entropy_, top1_agreement_);
    const auto bins = static_cast<std::size_t>(options_.bins);
    for (const auto& [task, histogram] : by_task_)
      archive.require(histogram.lower.size() == bins && histogram.upper.size() == bins);
  }

  BetaSummary summary() const;

 private:
  struct Column {
    core::ExactSum sum;
    std::int64_t finite = 0, infinite = 0;
    void add(std::span<const double> values);
    void add(const Column& other);
    ColumnMean mean() const;

    template <class Archive>
    void exchange(Archive& archive) {
      archive(sum, finite, infinite);
    }
  };
  void add_acceptance(const Observations& observations);

  BetaLawOptions options_;
  UnitIntervalSketch lower_, upper_;
  std::map<std::int32_t, BetaSummary::Histogram> by_task_;
  Autocorrelation autocorrelation_;
  bool bracketed_ = false;
  Column d_lk_lower_, d_lk_upper_, kl_target_draft_, kl_draft_target_, target_entropy_, draft_entropy_, top1_agreement_;
};

}  // namespace specdec::estimate
