#pragma once

#include <memory>
#include <span>
#include <vector>

#include "analysis/worlds/speeds.hpp"

/// What a run is worth before it is made.
namespace specdec::worlds {

/// The choices that a run may improve: one at each of several tables of the same worlds.
class RunValues {
 public:
  /// @param speedups  over plain decoding, the first option, at least one table
  /// @param min_gain  as in ChoiceOptions
  /// @throws std::invalid_argument if there is no table, or their worlds differ in number
  RunValues(std::span<const Table> speedups, double min_gain);
  ~RunValues();
  RunValues(RunValues&&) noexcept;

  /// The expected regret of the best choices that can be made now, a mean over the tables. All worlds count alike.
  double regret() const;

  /// The expected regret that a run saves: with L the losses of the options in a world and y what the run measures
  /// there,
  ///
  ///   regret - mean over worlds of L(option of least f(y)),   f(y) = E[L | y]
  ///
  /// where f is the regression of L on y, its squares and products, by least squares over the worlds. That needs no
  /// world near an outcome, as weighting worlds by it would.
  ///
  /// Source:   Strong, Oakley and Brennan 2014 (expected value of sample information by regression); docs/theory.md#the-next-run
  /// Shape:    outcomes (figures, worlds): what a run measures in each world, its noise included
  /// @return >= 0
  double saved_by(const std::vector<std::vector<double>>& outcomes) const;

 private:
  struct Losses;
  std::unique_ptr<const Losses> losses_;
};

}  // namespace specdec::worlds
