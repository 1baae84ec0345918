#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace specdec::core {

/// A validated, non-owning view of next-token probabilities. The row stays as stored: it is checked, not
/// rescaled. Only its two roles below can be constructed, so that target and draft cannot be swapped silently.
class Distribution {
 public:
  /// Shape: (vocab), entries >= 0, sum within the tolerance of 1.
  std::span<const double> probabilities() const { return probabilities_; }
  /// Number of tokens in the vocabulary, >= 1.
  std::size_t size() const { return probabilities_.size(); }
  double operator[](std::size_t token) const { return probabilities_[token]; }

 protected:
  Distribution(std::string_view role, std::span<const double> probabilities, double tolerance);

 private:
  std::span<const double> probabilities_;
};

/// The target model's distribution (p in the paper; other papers call it q).
class TargetDistribution : public Distribution {
 public:
  /// @param probabilities  viewed, not copied; must outlive the view
  /// @param tolerance      largest accepted |sum - 1|, dimensionless, [0, 1]; see traces::row_sum_tolerance
  /// @throws std::invalid_argument if the row is empty
  /// @throws std::domain_error naming the position and the value if an entry is NaN, negative or above 1 + tolerance;
  ///         naming the sum and the tolerance if the row is not normalised
  explicit TargetDistribution(std::span<const double> probabilities, double tolerance = 1e-5)
      : Distribution("target distribution", probabilities, tolerance) {}
};

/// The draft model's distribution (q in the paper). Checked like TargetDistribution.
class DraftDistribution : public Distribution {
 public:
  explicit DraftDistribution(std::span<const double> probabilities, double tolerance = 1e-5)
      : Distribution("draft distribution", probabilities, tolerance) {}
};

}  // namespace specdec::core
