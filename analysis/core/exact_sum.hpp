#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace specdec::core {

/// A sum of doubles that depends on neither order nor partition: 128-bit fixed point in steps of 2^-64.
///
/// Terms below 2^-11 each lose the part finer than a step, independently of the other terms; larger ones are exact.
/// The sum itself must stay below 2^63. Accuracy: absolute error < n 2^-64 for n terms, and one rounding of value()
class ExactSum {
 public:
  /// @param term  |term| < 2^62
  /// @throws std::domain_error if it is larger or NaN
  void add(double term) {
    const auto bits = std::bit_cast<std::uint64_t>(term);
    const auto exponent = static_cast<int>((bits >> 52U) & 0x7ffU);
    if (exponent == 0) return;  // zero, or far below a step
    const int shift = exponent - 1075 + 64;
    if (shift > 73) throw std::domain_error("ExactSum::add: the term is 2^62 or more, or NaN, but must be below");
    Fixed magnitude = static_cast<Fixed>((bits & ((std::uint64_t{1} << 52U) - 1)) | (std::uint64_t{1} << 52U));
    if (shift >= 0) {
      magnitude <<= shift;
    } else {
      magnitude = shift > -53 ? magnitude >> -shift : 0;
    }
    steps_ += bits >> 63U ? -magnitude : magnitude;
  }
  void add(const ExactSum& other) { steps_ += other.steps_; }

  /// The sum, rounded once.
  double value() const { return std::ldexp(static_cast<double>(steps_), -64); }

  friend bool operator==(const ExactSum&, const ExactSum&) = default;

  template <class Archive>
  void exchange(Archive& archive) {
    auto low = static_cast<std::uint64_t>(steps_);
    auto high = static_cast<std::int64_t>(steps_ >> 64U);
    archive(low, high);
    // Sums stay far below what 128 bits hold, so that many can be merged.
    archive.require(-(std::int64_t{1} << 60) <= high && high < std::int64_t{1} << 60);
    steps_ = static_cast<Fixed>(high) * (static_cast<Fixed>(1) << 64U) + low;
  }

 private:
  __extension__ using Fixed = __int128;

  Fixed steps_ = 0;
};

}  // namespace specdec::core
