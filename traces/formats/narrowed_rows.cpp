#include "traces/formats/narrowed_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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

}  // namespace specdec::traces
