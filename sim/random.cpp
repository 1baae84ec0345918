#include "sim/random.hpp"

#include <Random123/philox.h>

#include "analysis/core/checks.hpp"

namespace specdec::sim {
namespace {

std::uint32_t low_half(std::uint64_t x) { return static_cast<std::uint32_t>(x & 0xffff'ffff); }
std::uint32_t high_half(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

}  // namespace

std::array<std::uint32_t, 4> RandomStream::words(std::int64_t round, std::int64_t slot, Purpose purpose) const {
  core::require_in("RandomStream::uniform", "round", round, 0, max_round);
  core::require_in("RandomStream::uniform", "slot", slot, 0, max_slot);
  const r123::Philox4x32::key_type key = {{low_half(seed_), high_half(seed_)}};
  const r123::Philox4x32::ctr_type counter = {
      {low_half(sequence_), high_half(sequence_), static_cast<std::uint32_t>(round),
       static_cast<std::uint32_t>(slot) | static_cast<std::uint32_t>(purpose) << 28}};
  const r123::Philox4x32::ctr_type words = r123::Philox4x32()(counter, key);
  return {words[0], words[1], words[2], words[3]};
}

double RandomStream::uniform(std::int64_t round, std::int64_t slot, Purpose purpose) const {
  const std::array<std::uint32_t, 4> words = this->words(round, slot, purpose);
  const std::uint64_t bits = std::uint64_t{words[1]} << 32 | words[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

double InnerUniforms::uniform(std::int64_t round, std::int64_t slot, Purpose purpose) const {
  core::require_in("InnerUniforms::uniform", "round", round, 0, most - 1);
  core::require_in("InnerUniforms::uniform", "slot", slot, 0, most - 1);
  return outer_.uniform(outer_round_, outer_slot(round, slot), outer_purpose(purpose));
}

Purpose InnerUniforms::outer_purpose(Purpose purpose) {
  const auto number = static_cast<std::int64_t>(purpose);
  core::require_in("InnerUniforms::uniform", "purpose", number, 0, static_cast<std::int64_t>(Purpose::bonus));
  return static_cast<Purpose>(number + static_cast<std::int64_t>(Purpose::inner_draft));
}

}  // namespace specdec::sim
