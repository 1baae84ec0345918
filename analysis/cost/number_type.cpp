#include <algorithm>
#include <array>

#include "analysis/cost/hardware_spec.hpp"

namespace specdec::cost {
namespace {

struct NumberTypeEntry {
  NumberType type;
  std::string_view name;
  double bits;
};
constexpr std::array<NumberTypeEntry, 8> number_types = {{{NumberType::fp32, "fp32", 32},
                                                          {NumberType::fp16, "fp16", 16},
                                                          {NumberType::bf16, "bf16", 16},
                                                          {NumberType::fp8, "fp8", 8},
                                                          {NumberType::int8, "int8", 8},
                                                          {NumberType::int4, "int4", 4 + 16.0 / 128},
                                                          {NumberType::nvfp4, "nvfp4", 4 + 8.0 / 16},
                                                          {NumberType::mxfp4, "mxfp4", 4 + 8.0 / 32}}};

const NumberTypeEntry& entry_of(NumberType type) { return number_types.at(static_cast<std::size_t>(type)); }

}  // namespace

std::string_view name_of(NumberType type) { return entry_of(type).name; }

std::optional<NumberType> number_type_named(std::string_view name) {
  const auto* found = std::find_if(number_types.begin(), number_types.end(),
                                   [&](const NumberTypeEntry& entry) { return entry.name == name; });
  if (found == number_types.end()) return std::nullopt;
  return found->type;
}

double stored_bits(NumberType type) { return entry_of(type).bits; }

}  // namespace specdec::cost
