#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/core/compensated_sum.hpp"
#include "analysis/core/exact_sum.hpp"
#include "analysis/core/state_archive.hpp"
#include "analysis/core/step_cost.hpp"

namespace specdec::theory {

/// Expected totals of the steps over one or more texts, for every gamma from 0 to max_gamma. A step with
/// `remaining` tokens to go drafts min(gamma, remaining - 1): it never goes beyond the end of a text.
class ReplayedRounds {
 public:
  /// @param max_gamma  >= 0
  explicit ReplayedRounds(std::int64_t max_gamma = 0);

  std::int64_t max_gamma() const { return max_gamma_; }
  std::int64_t sequences() const { return sequences_; }
  std::int64_t tokens() const { return tokens_; }

  /// Expected steps. Every `gamma` below is in [0, max_gamma]; another one throws std::domain_error.
  double steps(std::int64_t gamma) const;
  /// Expected drafted tokens.
  double drafted(std::int64_t gamma) const;
  /// Expected steps that draft exactly d tokens, d in [0, gamma].
  double steps_drafting(std::int64_t gamma, std::int64_t d) const;
  /// Expected cost of all steps, in units of one plain target step: the sum over d of steps_drafting cost(d).
  double cost(std::int64_t gamma, const core::StepCost& cost) const;

  /// The expected sum over all steps of of_drafted[d], with d the step's drafted tokens. Shape: of_drafted (gamma + 1
  /// or more)
  double sum_over_steps(std::int64_t gamma, std::span<const double> of_drafted) const;

  /// Expected steps whose first j drafts were all accepted, j in [1, gamma].
  /// 0 throughout unless ReplayOptions::by_position.
  double accepted(std::int64_t gamma, std::int64_t j) const;
  /// Expected steps in which draft j was examined: it was drafted and those before it were accepted.
  double examined(std::int64_t gamma, std::int64_t j) const;

  /// Memory of one object.
  static std::size_t bytes(std::int64_t max_gamma);

 private:
  friend class StreamingReplay;
  friend class ReplayedTotal;
  std::size_t place(std::int64_t gamma, std::int64_t j) const;

  std::int64_t max_gamma_;
  std::int64_t sequences_ = 0;
  std::int64_t tokens_ = 0;
  std::vector<double> steps_;     // (gamma)
  std::vector<double> partial_;   // (gamma, d) for d < gamma; triangles, gamma (gamma - 1) / 2 + j - 1
  std::vector<double> accepted_;  // (gamma, j)
  std::vector<double> examined_;
};

/// Rounds of many texts, identical to the last bit whatever the order in which they are added.
class ReplayedTotal {
 public:
  /// @param max_gamma  >= 0
  explicit ReplayedTotal(std::int64_t max_gamma);

  /// @throws std::invalid_argument if max_gamma differs
  ReplayedTotal& operator+=(const ReplayedRounds& rounds);
  ReplayedTotal& operator+=(const ReplayedTotal& other);

  ReplayedRounds value() const;

  template <class Archive>
  void exchange(Archive& archive) {
    archive(rounds_.sequences_, rounds_.tokens_, core::fixed_length(steps_), core::fixed_length(partial_),
            core::fixed_length(accepted_), core::fixed_length(examined_));
    archive.require(rounds_.sequences_ >= 0 && rounds_.tokens_ >= 0);
  }

 private:
  ReplayedRounds rounds_;  // for its counts and sizes
  std::vector<core::ExactSum> steps_, partial_, accepted_, examined_;
};

struct ReplayOptions {
  /// All gammas from 0 to max_gamma are replayed; [0, largest_replayed_gamma].
  std::int64_t max_gamma = 16;
  /// Columns of the acceptance: depth j + 1 of a round uses column min(j, depths - 1), so that beyond the recorded
  /// depth the last column is repeated. 1 if acceptance does not depend on the depth.
  std::int64_t depths = 1;
  /// Also count acceptance by draft position: O(max_gamma^2) per token.
  bool by_position = false;
};

inline constexpr std::int64_t largest_replayed_gamma = 512;

/// The exact law of replay.hpp's steps, computed forward over texts of any length that arrive piece by piece, for all
/// gammas at once. Only the last gamma places of the text are kept.
///
///   u(t) = P(a step starts at t) = 1 - a_(t-1) (1 - b(t-1)),   u(0) = 1
///   b(t) = P(the token at t is the target's after gamma accepted drafts) = u(t - gamma) a_(t-gamma) ... a_(t-1)
///   E[steps] = sum_t u(t);   a step from t drafts min(gamma, T - t - 1)
///
/// With depth-dependent acceptance a_(t,j), W_j(t) = a_(t-j,1) a_(t-j+1,2) ... a_(t-1,j):
///
///   u(t) = 1 - sum_{j=1..gamma} u(t - j) W_j(t)
///
/// Source:   docs/theory.md#streaming-replay
/// Assumes:  the draft depends on the prefix (and the depth) alone; verification is lossless, token by token.
/// Time:     O(max_gamma) per token, O(max_gamma^2) with depths > 1 or by_position
/// Accuracy: relative error <= 1e-12. The result does not depend on how the text is cut into pieces.
class StreamingReplay {
 public:
  /// @throws std::domain_error if max_gamma or depths is outside its range
  explicit StreamingReplay(const ReplayOptions& options);

  /// Adds the next positions of the current text.
  /// Shape: (positions, depths), row-major, each in [0, 1]
  /// @throws std::invalid_argument if the size is not a whole number of positions
  /// @throws std::domain_error naming the position in the text if an entry is NaN or outside [0, 1]; nothing was added
  void add(std::span<const double> acceptance);

  /// Ends the text. The result is valid until the next call; the next add() begins a new text.
  const ReplayedRounds& finish_sequence();

  /// Number of positions after which steps_so_far is brought up to date.
  static constexpr std::int64_t block = 64;
  /// Positions of the current text that steps_so_far covers, a multiple of `block`.
  std::int64_t covered() const { return covered_; }
  /// Expected steps that start at the covered positions of the current text.
  double steps_so_far(std::int64_t gamma) const;

  /// Memory of one object.
  static std::size_t bytes(const ReplayOptions& options);

 private:
  void reset();
  void make_room();
  void process(std::size_t count);
  void advance_by_depth(std::size_t begin, std::size_t count);

  ReplayOptions options_;
  std::size_t history_;   // places kept before the block
  std::size_t capacity_;  // places of a row, history included
  std::size_t filled_;    // where the next position is stored
  std::size_t done_;      // positions before this place are processed
  std::int64_t covered_ = 0;
  std::int64_t length_ = 0;         // length of the current text
  std::vector<double> acceptance_;  // (depths, capacity)
  std::vector<double> products_;    // W_j, (max_gamma + 2, capacity)
  std::vector<double> starts_;      // u, (max_gamma + 1, capacity)
  std::vector<core::CompensatedSum> steps_;
  std::vector<core::CompensatedSum> accepted_;  // triangle as in ReplayedRounds
  ReplayedRounds result_;
};

}  // namespace specdec::theory
