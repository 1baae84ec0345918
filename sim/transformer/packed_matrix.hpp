#pragma once

#include <cstddef>
#include <span>

#include "sim/transformer/aligned.hpp"
#include "sim/transformer/kernels.hpp"

namespace specdec::sim {

/// A weight matrix [rows, depth], stored once in the order in which products read it: panels of 32 rows (the last
/// may have 16), within a panel depth by depth. The memory is the owner's: all matrices of a model are contiguous.
class PackedMatrix {
 public:
  /// Floats of memory for a matrix of that shape.
  static std::size_t floats(std::size_t rows, std::size_t depth) { return round_up(rows, line_floats) * depth; }

  PackedMatrix() = default;
  /// `memory` must start on a cache line and hold 0.
  PackedMatrix(std::size_t rows, std::size_t depth, float* memory)
      : rows_(rows), depth_(depth), padded_rows_(round_up(rows, line_floats)), data_(memory) {}

  std::size_t rows() const { return rows_; }
  std::size_t depth() const { return depth_; }
  /// Floats that a product writes per token.
  std::size_t padded_rows() const { return padded_rows_; }

  /// Writes columns [0, values.size()) of row r.
  void set_row(std::size_t r, std::span<const float> values) {
    for (std::size_t k = 0; k < values.size(); ++k) at(r, k) = values[k];
  }
  /// Writes row r, which is a row of another matrix of this depth.
  void copy_row(std::size_t r, const PackedMatrix& other, std::size_t row) {
    for (std::size_t k = 0; k < depth_; ++k) at(r, k) = other.data_[other.place(row, k)];
  }
  /// Writes rows [0, values.size()) of column k.
  void set_column(std::size_t k, std::span<const float> values) {
    for (std::size_t r = 0; r < values.size(); ++r) at(r, k) = values[r];
  }

  Panels panels() const {
    const std::size_t last_stride = padded_rows_ % panel_rows == 0 ? panel_rows : line_floats;
    return {data_, panel_rows * depth_, panel_rows, last_stride, padded_rows_, depth_};
  }

 private:
  float& at(std::size_t r, std::size_t k) { return data_[place(r, k)]; }

  std::size_t place(std::size_t r, std::size_t k) const {
    const std::size_t first = r / panel_rows * panel_rows;
    const std::size_t stride = first + panel_rows <= padded_rows_ ? panel_rows : line_floats;
    return first * depth_ + k * stride + (r - first);
  }

  std::size_t rows_ = 0;
  std::size_t depth_ = 0;
  std::size_t padded_rows_ = 0;
  float* data_ = nullptr;
};

}  // namespace specdec::sim
