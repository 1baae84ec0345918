#pragma once

#include <array>
#include <cstdint>

namespace specdec::sim {

/// The purpose of a uniform. The numbers are part of the counter layout and never change.
enum class Purpose : std::uint32_t {
  draft = 0,             ///< the draft's token in a slot of a round
  acceptance = 1,        ///< the test of that token
  residual = 2,          ///< the correction after a rejection
  bonus = 3,             ///< the target's token after every draft was accepted
  target = 4,            ///< the target's token in plain autoregressive decoding
  synthetic = 5,         ///< the entries of synthetic tables
  test = 6,              ///< randomised statistical tests, for instance the probability integral transform
  serving = 7,           ///< accepted drafts of a round of a served request (slot 0), and its law (slot 1)
  inner_draft = 8,       ///< the first four again, for rounds inside a round; see InnerUniforms
  inner_acceptance = 9,  ///< see inner_draft
  inner_residual = 10,   ///< see inner_draft
  inner_bonus = 11       ///< see inner_draft
};

/// The source of randomness for samplers: one number in [0, 1) for each (round, slot, purpose).
class UniformSource {
 public:
  virtual ~UniformSource() = default;
  virtual double uniform(std::int64_t round, std::int64_t slot, Purpose purpose) const = 0;
};

/// Counter-based uniforms: a pure function of (seed, sequence, round, slot, purpose), the same on every machine.
///
///   bits = Philox4x32-10(key, counter);   u = floor((w0 + 2^32 w1) / 2^11) * 2^-53
///
/// key 0, 1: low and high half of the seed. Counter 0, 1: low and high half of the sequence number;
/// counter 2: the round; counter 3: the slot in the low 28 bits, the purpose in the high 4.
/// w0, w1: the first two words of the output. u is a multiple of 2^-53 and never 1.
///
/// Source:   Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3" (Random123)
class RandomStream final : public UniformSource {
 public:
  static constexpr std::int64_t max_round = 0xffff'ffff;
  static constexpr std::int64_t max_slot = 0x0fff'ffff;

  RandomStream(std::uint64_t seed, std::uint64_t sequence) : seed_(seed), sequence_(sequence) {}

  /// @param round    0-based step of the sequence, [0, max_round]
  /// @param slot     0-based position in the round, [0, max_slot]
  /// @return a number in [0, 1)
  /// @throws std::domain_error if round or slot is outside its range
  double uniform(std::int64_t round, std::int64_t slot, Purpose purpose) const override;
  /// All four words of the block.
  /// @throws as uniform
  std::array<std::uint32_t, 4> words(std::int64_t round, std::int64_t slot, Purpose purpose) const;

 private:
  std::uint64_t seed_;
  std::uint64_t sequence_;
};

/// The uniforms of rounds that a draft runs inside one round of another source; that source gives none of them to
/// any other user:
///
///   (inner round r, slot s, purpose) = (outer round, slot 2^14 r + s, the purpose with inner_ before it)
class InnerUniforms final : public UniformSource {
 public:
  /// The largest number of inner rounds per round, and of slots per inner round.
  static constexpr std::int64_t most = 1 << 14;

  /// `outer` must outlive the object.
  InnerUniforms(const UniformSource& outer, std::int64_t outer_round) : outer_(outer), outer_round_(outer_round) {}

  /// @throws std::domain_error if round or slot is outside [0, most - 1], or the purpose is not draft, acceptance,
  ///         residual or bonus: rounds inside an inner round have no numbers of their own
  double uniform(std::int64_t round, std::int64_t slot, Purpose purpose) const override;

  static std::int64_t outer_slot(std::int64_t round, std::int64_t slot) { return most * round + slot; }
  static Purpose outer_purpose(Purpose purpose);

 private:
  const UniformSource& outer_;
  std::int64_t outer_round_;
};

}  // namespace specdec::sim
