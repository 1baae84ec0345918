#include "traces/serving/serving_counts.hpp"

namespace specdec::traces {

std::string_view ServingCounts::label(std::string_view name) const {
  for (const CountLabel& label : labels) {
    if (label.name == name) return label.value;
  }
  return {};
}

}  // namespace specdec::traces
