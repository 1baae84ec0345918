#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sim/transformer/aligned.hpp"
#include "sim/transformer/kernels.hpp"

namespace specdec::sim {

/// A weight matrix [rows, depth], stored once in the order in which products read it: panels of 32 rows (the last
/// may have 16), within a panel depth by depth. The memory is the owner's: all matrices of a model are contiguous.
class PackedMatrix {
 public:
  using ElementType = traces::ElementType;

  /// Bytes of memory for a matrix of that shape and of elements f32, f16 or bf16: whole cache lines.
  static std::size_t bytes(std::size_t rows, std::size_t depth, ElementType type) {
    return round_up(round_up(rows, line_floats) * depth * size_of(type), line_bytes);
  }

  PackedMatrix() = default;
  /// `memory` must start on a cache line and hold 0.
  PackedMatrix(std::size_t rows, std::size_t depth, ElementType type, std::byte* memory)
      : rows_(rows), depth_(depth), padded_rows_(round_up(rows, line_floats)), type_(type), data_(memory) {}

  std::size_t rows() const { return rows_; }
  std::size_t depth() const { return depth_; }
  ElementType type() const { return type_; }
  /// Floats that a product writes per token.
  std::size_t padded_rows() const { return padded_rows_; }

  /// Writes row r from depth elements of this type.
  void set_row(std::size_t r, const std::byte* elements) {
    for (std::size_t k = 0; k < depth_; ++k) copy(elements + k * size(), at(r, k));
  }
  /// Writes row r, which is a row of another matrix of this depth and type.
  void copy_row(std::size_t r, const PackedMatrix& other, std::size_t row) {
    for (std::size_t k = 0; k < depth_; ++k) copy(other.at(row, k), at(r, k));
  }
  /// Writes column k from as many elements of this type as there are rows.
  void set_column(std::size_t k, const std::byte* elements) {
    for (std::size_t r = 0; r < rows_; ++r) copy(elements + r * size(), at(r, k));
  }

  Panels panels() const {
    const std::size_t last_stride = padded_rows_ % panel_rows == 0 ? panel_rows : line_floats;
    return {data_, type_, panel_rows * depth_, panel_rows, last_stride, padded_rows_, depth_};
  }

 private:
  static std::size_t size_of(ElementType type) {
    return type == ElementType::f32 ? sizeof(float) : sizeof(std::uint16_t);
  }
  std::size_t size() const { return size_of(type_); }

  void copy(const std::byte* from, std::byte* to) const {
    if (type_ == ElementType::f32) {
      std::memcpy(to, from, sizeof(float));
    } else {
      std::memcpy(to, from, sizeof(std::uint16_t));
    }
  }

  std::byte* at(std::size_t r, std::size_t k) const {
    const std::size_t first = r / panel_rows * panel_rows;
    const std::size_t stride = first + panel_rows <= padded_rows_ ? panel_rows : line_floats;
    return data_ + (first * depth_ + k * stride + (r - first)) * size();
  }

  std::size_t rows_ = 0;
  std::size_t depth_ = 0;
  std::size_t padded_rows_ = 0;
  ElementType type_ = ElementType::f32;
  std::byte* data_ = nullptr;
};

}  // namespace specdec::sim
