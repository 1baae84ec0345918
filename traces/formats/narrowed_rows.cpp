#include "traces/formats/narrowed_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "traces/formats/half_float.hpp"
#include "traces/formats/little_endian.hpp"

namespace specdec::traces {

void narrow_rows(std::span<const std::byte> from, RowSpace space, std::size_t vocab, std::vector<float>& to) {
  to.resize(from.size() / sizeof(double));
  for (std::size_t begin = 0; begin < to.size(); begin += vocab) {
    const auto value = [&](std::size_t i) { return load<double>(from.data() + i * sizeof(double)); };
    double shift = 0;
    if (space == RowSpace::logits) {
      double largest = -std::numeric_limits<double>::infinity();
      for (std::size_t i = begin; i < begin + vocab; ++i) largest = std::max(largest, value(i));
      if (std::isfinite(largest)) shift = largest;
    }
    for (std::size_t i = begin; i < begin + vocab; ++i) to[i] = static_cast<float>(value(i) - shift);
  }
}

void show_rows(std::span<const std::byte> bytes, ElementType type, RowSpace space, std::int64_t vocab,
               std::vector<float>& narrowed, Rows& rows) {
  rows.space = space;
  rows.vocab = vocab;
  rows.type = type;
  rows.bytes = bytes;
  if (type != ElementType::f64) return;
  narrow_rows(bytes, space, static_cast<std::size_t>(vocab), narrowed);
  rows.type = ElementType::f32;
  rows.bytes = std::as_bytes(std::span(narrowed));
}

double number_at(ElementType type, const std::byte* from) {
  switch (type) {
    case ElementType::f64:
      return load<double>(from);
    case ElementType::f16:
      return float_from_f16(load<std::uint16_t>(from));
    case ElementType::bf16:
      return float_from_bf16(load<std::uint16_t>(from));
    default:
      return load<float>(from);
  }
}

}  // namespace specdec::traces
