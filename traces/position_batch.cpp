#include "traces/position_batch.hpp"

namespace specdec::traces {

std::string_view name_of(Tier tier) {
  switch (tier) {
    case Tier::full:
      return "full";
    case Tier::top_k:
      return "topk";
    case Tier::scalar:
      return "scalar";
    case Tier::accepted_length:
      break;
  }
  return "accepted_length";
}

double row_sum_tolerance(ElementType type) {
  if (type == ElementType::f16) return 2e-3;
  if (type == ElementType::bf16) return 1e-2;
  return 1e-5;
}

}  // namespace specdec::traces
