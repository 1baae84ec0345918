#pragma once

#include <bit>
#include <cstdint>

namespace specdec::traces {

/// The value of an IEEE 754 binary16 bit pattern; exact, including subnormals, infinities and NaN.
constexpr float float_from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffU) << 13U;
  if (magnitude >= 0x0f800000U) return std::bit_cast<float>(sign | 0x7f800000U | magnitude);
  // The exponent's bias goes from 15 to 127 by a multiplication, which also normalises subnormals.
  const float value = std::bit_cast<float>(magnitude) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

/// The value of a bfloat16 bit pattern, the upper half of a binary32; exact.
constexpr float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

}  // namespace specdec::traces
