#include "traces/formats/half_float.hpp"

#include <cmath>
#include <cstdint>

#include "tests/support/catch.hpp"

using specdec::traces::float_from_bf16;
using specdec::traces::float_from_f16;

// IEEE 754: value = (-1)^s 2^(e - bias) (1 + m/2^p), 2^(1 - bias) (m/2^p) where e = 0; computed here from the fields.
namespace {

double value_by_fields(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const double sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1 : 1;
  const int exponent = static_cast<int>((bits >> mantissa_bits) & ((1U << exponent_bits) - 1));
  const double fraction = std::ldexp(static_cast<double>(bits & ((1U << mantissa_bits) - 1)), -mantissa_bits);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction == 0 ? sign * INFINITY : NAN;
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias) : sign * std::ldexp(1 + fraction, exponent - bias);
}

bool same(float found, double expected) {
  if (std::isnan(expected)) return std::isnan(found);
  return double{found} == expected && std::signbit(found) == std::signbit(expected);
}

}  // namespace

TEST_CASE("every f16 bit pattern has the value that its fields say") {
  bool all = true;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    all = all && same(float_from_f16(static_cast<std::uint16_t>(bits)), value_by_fields(bits, 5, 10));
  }
  CHECK(all);
}

TEST_CASE("every bf16 bit pattern has the value that its fields say") {
  bool all = true;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    all = all && same(float_from_bf16(static_cast<std::uint16_t>(bits)), value_by_fields(bits, 8, 7));
  }
  CHECK(all);
}
