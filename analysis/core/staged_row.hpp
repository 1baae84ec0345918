#pragma once

#include <hwy/aligned_allocator.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/core/row_kernels.hpp"
#include "analysis/core/row_statistics.hpp"

/// Rows on their way from the file to row_statistics.hpp, which callers should use instead.
namespace specdec::core {

/// @throws std::invalid_argument unless the row has tokens and is stored in F32, F16 or BF16
void require_readable(std::string_view function, const traces::Row& row);

/// The stored number of one token, exact.
double stored_value(const traces::Row& row, std::int64_t token);

/// True if a logarithm stands for probability 0.
bool is_floor(double logarithm);

/// Checks every entry, in double: returns the fault that a vector pass has noticed, or null if that was mistaken.
std::optional<RowFault> fault_in_probabilities(const traces::Row& row, RowRole role);

/// The row as probabilities in double. Shape: out (vocab)
/// @param sum  set to what RowStatistics reports as the row's sum
std::optional<RowFault> read_row(const traces::Row& row, RowRole role, std::span<double> out, double& sum);

/// One token of a staged row, in double. Both `probability` and `complement`, 1 - probability, keep their digits.
struct ExactToken {
  double probability = 0;
  double complement = 1;
  double logarithm = 0;
};

/// A row as probabilities in working memory, in the form that the kernels take, whatever its stored type.
class StagedRow {
 public:
  std::optional<RowFault> stage(const traces::Row& row, RowRole role);

  row_kernels::StagedRow view() const { return {values_.get(), scale_.data(), scale_low_.data()}; }
  std::int64_t vocab() const { return row_.vocab; }
  /// The sum as in RowStatistics.
  double sum() const { return sum_; }
  /// The most probable token, the lowest in a tie.
  std::int64_t argmax() const { return argmax_; }
  /// The token's probability from the stored row, whether or not it was taken out.
  ExactToken token(std::int64_t token) const;

  /// Gives a token probability 0 for the kernels: heavy tokens are added in double, where a close pair of
  /// peaks keeps its digits.
  void take_out(std::int64_t token) { values_[static_cast<std::size_t>(token)] = 0; }
  bool is_zero(std::int64_t token) const { return values_[static_cast<std::size_t>(token)] == 0; }

 private:
  void reserve();
  void set_scale(std::size_t block, double scale);
  bool stage_exponentials();
  std::optional<RowFault> stage_in_double(RowRole role);

  traces::Row row_;
  hwy::AlignedFreeUniquePtr<float[]> values_;
  std::size_t capacity_ = 0;
  std::vector<float> scale_;
  std::vector<float> scale_low_;
  std::vector<row_kernels::ExponentialBlock> blocks_;
  std::vector<double> probabilities_;
  double sum_ = 0;
  double log_total_ = 0;
  std::int64_t argmax_ = 0;
  ExactToken largest_;
};

}  // namespace specdec::core
