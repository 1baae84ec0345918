#include "traces/position_batch.hpp"

#include <array>

namespace specdec::traces {

std::string_view name_of(Tier tier) {
  constexpr std::array<std::string_view, 4> names = {"full", "topk", "scalar", "accepted_length"};
  return names.at(static_cast<std::size_t>(tier));
}

double row_sum_tolerance(ElementType type) {
  if (type == ElementType::f16) return 2e-3;
  if (type == ElementType::bf16) return 1e-2;
  return 1e-5;
}

}  // namespace specdec::traces
