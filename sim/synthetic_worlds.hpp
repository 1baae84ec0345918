#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/language_model.hpp"
#include "sim/synthetic_traces.hpp"
#include "traces/position_batch.hpp"

namespace specdec::sim {

/// The pairs of rows from which a full synthetic recording takes its positions.
class SyntheticWorld {
 public:
  /// @param number  the world's, so that several worlds of one seed differ
  /// @throws as synthetic_trace
  SyntheticWorld(const LogitNoiseLaw& law, std::uint64_t seed, std::uint64_t number, std::int64_t threads);
  SyntheticWorld(const DirichletLaw& law, std::uint64_t seed, std::uint64_t number, std::int64_t threads);

  std::int64_t vocab() const { return vocab_; }
  std::int64_t contexts() const { return contexts_; }
  traces::RowSpace space() const { return space_; }
  std::span<const float> target_row(std::int64_t context) const { return row(target_, context); }
  std::span<const float> draft_row(std::int64_t context) const { return row(draft_, context); }
  /// The mean of the pairs' betas, computed from the rows as stored.
  double alpha() const { return alpha_; }

  /// A token of the target's row. @param u  a uniform number, [0, 1)
  Token sample(std::int64_t context, double u) const;

 private:
  SyntheticWorld(const PairWorld& law, traces::RowSpace space);

  std::span<const float> row(const std::vector<float>& rows, std::int64_t context) const {
    return std::span(rows).subspan(static_cast<std::size_t>(context * vocab_), static_cast<std::size_t>(vocab_));
  }
  void accumulate(std::int64_t context);

  std::int64_t vocab_;
  std::int64_t contexts_;
  traces::RowSpace space_;
  double alpha_ = 0;
  std::vector<float> target_;
  std::vector<float> draft_;
  /// Cumulative sums of the target's probabilities, up to a factor.
  std::vector<double> cumulative_;
};

}  // namespace specdec::sim
