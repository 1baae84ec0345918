#include "sim/synthetic_round_kernels.hpp"

#include "sim/random.hpp"

// Highway compiles this file once per instruction set and picks one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/synthetic_round_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "sim/philox_lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace specdec::sim::kernels::HWY_NAMESPACE {
namespace {

void write_words(std::uint64_t key, std::uint64_t low, std::uint32_t first, std::uint32_t c3, std::uint32_t* words,
                 std::size_t blocks) {
  const PhiloxKeys keys(key);
  const std::size_t lanes = hn::Lanes(wide);
  HWY_ALIGN std::uint64_t halves[2 * hn::MaxLanes(wide)];
  for (std::size_t i = 0; i < blocks; i += lanes) {
    Wide w0 = hn::Set(wide, low);
    Wide w1 = hn::Set(wide, low >> 32);
    Wide w2 = hn::Iota(wide, first + i);
    Wide w3 = hn::Set(wide, c3);
    philox(keys, w0, w1, w2, w3);
    hn::Store(hn::Or(low_word(w0), hn::ShiftLeft<32>(w1)), wide, halves);
    hn::Store(hn::Or(low_word(w2), hn::ShiftLeft<32>(w3)), wide, halves + lanes);
    const std::size_t count = HWY_MIN(lanes, blocks - i);
    for (std::size_t lane = 0; lane < count; ++lane) {
      for (std::size_t j = 0; j < 4; ++j) {
        words[4 * (i + lane) + j] =
            static_cast<std::uint32_t>(halves[lane + (j / 2) * lanes] >> (32 * (j % 2)) & 0xffff'ffffU);
      }
    }
  }
}

std::int64_t count_words_below(const std::uint32_t* words, std::size_t n, std::uint32_t threshold) {
  const hn::ScalableTag<std::int32_t> narrow;
  const hn::RebindToUnsigned<decltype(narrow)> unsigned_narrow;
  const std::size_t lanes = hn::Lanes(narrow);
  if (threshold == 0) return 0;
  // Signed, so that half a word and the threshold minus one can be compared directly.
  const auto last = hn::Set(narrow, static_cast<std::int32_t>(threshold - 1));
  auto above = hn::Zero(narrow);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto half = hn::BitCast(narrow, hn::ShiftRight<1>(hn::LoadU(unsigned_narrow, words + i)));
    above = hn::Sub(above, hn::VecFromMask(narrow, hn::Gt(half, last)));
  }
  std::int64_t below = static_cast<std::int64_t>(i) - hn::GetLane(hn::SumOfLanes(narrow, above));
  for (; i < n; ++i) below += words[i] / 2 < threshold;
  return below;
}

constexpr std::size_t width = static_cast<std::size_t>(sequences_per_chunk);
// Counts of rounds by accepted drafts, and one place for lanes that end no round.
constexpr std::size_t histogram_size = static_cast<std::size_t>(max_synthetic_gamma) + 2;

/// The state of each sequence: the counter's round, its slot with the purpose, and the next table.
struct AliasLanes {
  HWY_ALIGN std::uint64_t sequence[width];
  HWY_ALIGN std::uint64_t round[width];
  HWY_ALIGN std::uint64_t slot[width];
  HWY_ALIGN std::uint64_t table[width];
};

/// Before the first round, which begins at the slot and the table; lanes without a sequence have no round left.
AliasLanes lanes_before(const AliasRounds& run, std::uint64_t first_slot, std::uint64_t first_table) {
  AliasLanes at;
  for (std::size_t i = 0; i < width; ++i) {
    at.sequence[i] = run.first_sequence + i;
    at.round[i] = i < run.sequences ? 0 : run.rounds;
    at.slot[i] = first_slot;
    at.table[i] = first_table;
  }
  return at;
}

template <bool count_tokens>
void advance_chunk(const AliasRounds& run, std::int64_t* accepted_counts, std::int64_t* token_counts) {
  constexpr auto residual = std::uint64_t{static_cast<std::uint32_t>(Purpose::residual)} << 28;
  constexpr auto bonus = std::uint64_t{static_cast<std::uint32_t>(Purpose::bonus)} << 28;
  const PhiloxKeys keys(run.seed);
  const std::size_t lanes = hn::Lanes(wide);
  const hn::RebindToSigned<decltype(wide)> index;

  const bool drafts = run.gamma > 0;
  AliasLanes at = lanes_before(run, drafts ? 0 : bonus, drafts ? 0 : run.vocab);
  std::uint64_t histograms[width * histogram_size] = {};
  HWY_ALIGN std::uint64_t ended_at[hn::MaxLanes(wide)];
  HWY_ALIGN std::uint64_t emitted_token[hn::MaxLanes(wide)];

  const Wide one = hn::Set(wide, 1);
  const Wide zero = hn::Zero(wide);
  const Wide vocab = hn::Set(wide, run.vocab);
  const Wide gamma = hn::Set(wide, run.gamma);
  const Wide full = hn::Set(wide, run.gamma | bonus);
  const Wide residual_bits = hn::Set(wide, residual);
  const Wide residual_table = hn::Set(wide, 2 * run.vocab);
  const Wide slot_bits = hn::Set(wide, 0x0fff'ffffU);
  const Wide first_slot = hn::Set(wide, drafts ? 0 : bonus);
  const Wide first_table = hn::Set(wide, drafts ? 0 : run.vocab);
  const Wide rounds = hn::Set(wide, run.rounds);
  const Wide nowhere = hn::Set(wide, run.gamma + 1);

  for (bool any = true; any;) {
    any = false;
    for (std::size_t group = 0; group < width; group += lanes) {
      const Wide round = hn::Load(wide, at.round + group);
      const auto active = less(round, rounds);
      if (hn::AllFalse(wide, active)) continue;
      any = true;
      const Wide sequence = hn::Load(wide, at.sequence + group);
      const Wide slot = hn::Load(wide, at.slot + group);
      const Wide table = hn::Load(wide, at.table + group);
      Wide w0 = sequence;
      Wide w1 = high_word(sequence);
      Wide w2 = round;
      Wide w3 = slot;
      philox(keys, w0, w1, w2, w3);

      // vocab times the 64 random bits: column, then 32 bits of its fraction.
      const Wide scaled = hn::Add(product(w1, vocab), high_word(product(w0, vocab)));
      const Wide column = high_word(scaled);
      const auto at_column = hn::BitCast(index, hn::ShiftLeft<1>(hn::Add(column, table)));
      const Wide choice = hn::GatherIndex(wide, run.columns, at_column);
      const Wide acceptances = hn::GatherIndex(wide, run.columns + 1, at_column);
      const auto own = less(low_word(scaled), low_word(choice));
      const Wide acceptance = hn::IfThenElse(own, low_word(acceptances), high_word(acceptances));
      const auto accepted = less(hn::ShiftRight<1>(low_word(w2)), acceptance);

      // A corrected or added token ends its round; it is always accepted.
      const auto drafted = hn::Eq(table, zero);
      const Wide next = hn::Add(slot, one);
      const auto all_accepted = hn::Eq(next, gamma);
      const Wide slot_accepted = hn::IfThenElse(all_accepted, full, next);
      const Wide table_accepted = hn::IfThenElseZero(all_accepted, vocab);
      const Wide slot_drafted = hn::IfThenElse(accepted, slot_accepted, hn::Or(slot, residual_bits));
      const Wide table_drafted = hn::IfThenElse(accepted, table_accepted, residual_table);
      hn::Store(hn::IfThenElse(drafted, slot_drafted, first_slot), wide, at.slot + group);
      hn::Store(hn::IfThenElse(drafted, table_drafted, first_table), wide, at.table + group);
      hn::Store(hn::IfThenElse(drafted, round, hn::Add(round, one)), wide, at.round + group);

      const Wide counted = hn::IfThenElse(drafted, nowhere, hn::And(slot, slot_bits));
      hn::Store(hn::IfThenElse(active, counted, nowhere), wide, ended_at);
      for (std::size_t lane = 0; lane < lanes; ++lane) ++histograms[lane * histogram_size + ended_at[lane]];
      if constexpr (count_tokens) {
        const Wide token = hn::IfThenElse(own, column, high_word(choice));
        hn::Store(hn::IfThenElse(hn::And(accepted, active), token, vocab), wide, emitted_token);
        for (std::size_t lane = 0; lane < lanes; ++lane) ++token_counts[emitted_token[lane]];
      }
    }
  }
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    for (std::uint64_t n = 0; n <= run.gamma; ++n) {
      accepted_counts[n] += static_cast<std::int64_t>(histograms[lane * histogram_size + n]);
    }
  }
}

void advance_counting_rounds(const AliasRounds& run, std::int64_t* accepted_counts) {
  advance_chunk<false>(run, accepted_counts, nullptr);
}

void advance_counting_tokens(const AliasRounds& run, std::int64_t* accepted_counts, std::int64_t* token_counts) {
  advance_chunk<true>(run, accepted_counts, token_counts);
}

}  // namespace
}  // namespace specdec::sim::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace specdec::sim::kernels {

HWY_EXPORT(write_words);
HWY_EXPORT(count_words_below);
HWY_EXPORT(advance_counting_rounds);
HWY_EXPORT(advance_counting_tokens);

void philox_words(std::uint64_t key, std::uint64_t low, std::uint32_t first, std::uint32_t c3,
                  std::span<std::uint32_t> words) {
  HWY_DYNAMIC_DISPATCH(write_words)(key, low, first, c3, words.data(), words.size() / 4);
}

std::int64_t count_below(std::span<const std::uint32_t> words, std::uint32_t threshold) {
  return HWY_DYNAMIC_DISPATCH(count_words_below)(words.data(), words.size(), threshold);
}

void run_alias_rounds(const AliasRounds& run, std::span<std::int64_t> accepted_counts,
                      std::span<std::int64_t> token_counts) {
  if (token_counts.empty()) {
    HWY_DYNAMIC_DISPATCH(advance_counting_rounds)(run, accepted_counts.data());
  } else {
    HWY_DYNAMIC_DISPATCH(advance_counting_tokens)(run, accepted_counts.data(), token_counts.data());
  }
}

}  // namespace specdec::sim::kernels
#endif
