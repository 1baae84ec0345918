#include "sim/random.hpp"

#include <array>
#include <set>

#include "tests/support/catch.hpp"

using namespace specdec::sim;

// Expected words: kat_vectors of Random123 1.14, the philox4x32 lines with 10 rounds.
TEST_CASE("the stream is Philox4x32-10 in the documented counter layout") {
  const auto from_words = [](std::uint64_t w0, std::uint64_t w1) {
    return static_cast<double>((w1 << 32 | w0) >> 11) / 9007199254740992.0;
  };
  CHECK(RandomStream(0, 0).uniform(0, 0, Purpose::draft) == from_words(0x6627e8d5, 0xe169c58d));
  CHECK(RandomStream(~0ULL, ~0ULL).uniform(RandomStream::max_round, RandomStream::max_slot, Purpose{15}) ==
        from_words(0x408f276d, 0x41c83b0e));
  CHECK(RandomStream(0x299f31d0'a4093822, 0x85a308d3'243f6a88).uniform(0x13198a2e, 0x03707344, Purpose::draft) ==
        from_words(0xd16cfe09, 0x94fdcceb));
  CHECK(RandomStream(0x299f31d0'a4093822, 0x85a308d3'243f6a88).words(0x13198a2e, 0x03707344, Purpose::draft) ==
        std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("each of seed, sequence, round, slot and purpose leads to other uniforms") {
  std::set<double> seen;
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    for (std::uint64_t sequence = 0; sequence < 3; ++sequence)
      for (std::int64_t round = 0; round < 5; ++round)
        for (std::int64_t slot = 0; slot < 5; ++slot)
          for (std::uint32_t purpose = 0; purpose < 7; ++purpose)
            seen.insert(RandomStream(seed, sequence).uniform(round, slot, Purpose{purpose}));
  // 1575 numbers of 53 bits: two agree with probability 1.4e-10.
  CHECK(seen.size() == 3 * 3 * 5 * 5 * 7);
  CHECK(*seen.begin() >= 0);
  CHECK(*seen.rbegin() < 1);
}

TEST_CASE("rounds and slots outside the counter's fields are refused") {
  const RandomStream stream(1, 2);
  CHECK_NOTHROW(stream.uniform(RandomStream::max_round, RandomStream::max_slot, Purpose::test));
  CHECK_THROWS_AS(stream.uniform(RandomStream::max_round + 1, 0, Purpose::test), std::domain_error);
  CHECK_THROWS_AS(stream.uniform(0, RandomStream::max_slot + 1, Purpose::test), std::domain_error);
  CHECK_THROWS_AS(stream.uniform(-1, 0, Purpose::test), std::domain_error);
  CHECK_THROWS_AS(stream.uniform(0, -1, Purpose::test), std::domain_error);
}
