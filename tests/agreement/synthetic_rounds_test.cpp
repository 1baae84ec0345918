// Do synthetic rounds follow the laws? Chi-square tests at a false-alarm rate of 1e-6 each, over random seeds; the
// seeds are fixed. Tokens of one round are independent given that they are reached, so Pearson's test holds for them.

#include <array>
#include <cmath>
#include <vector>

#include "analysis/core/kernels.hpp"
#include "analysis/theory/tokens.hpp"
#include "sim/random.hpp"
#include "sim/synthetic_rounds.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/chi_square.hpp"
#include "tests/support/exact_laws.hpp"

using namespace specdec::sim;
namespace core = specdec::core;
namespace theory = specdec::theory;
using specdec::test_support::chi_square_p_value;
using specdec::test_support::tokens_law;
using Row = std::vector<double>;
using Counts = std::vector<std::int64_t>;

namespace {

constexpr double false_alarm_rate = 1e-6;

/// A Zipf law over 300 tokens, three of them impossible, and a draft that errs by up to a factor of e in either
/// direction.
struct ZipfLaws {
  Row p = Row(300);
  Row q = Row(300);
  ZipfLaws() {
    double sum_p = 0;
    double sum_q = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      p[i] = i % 100 == 50 ? 0 : 1 / (2 + static_cast<double>(i));
      q[i] = std::exp(std::sin(static_cast<double>(7 * i))) / (2 + static_cast<double>(i));
      sum_p += p[i];
      sum_q += q[i];
    }
    for (double& x : p) x /= sum_p;
    for (double& x : q) x /= sum_q;
  }
};

SyntheticRoundsOptions counted(std::int64_t sequences) {
  SyntheticRoundsOptions options;
  options.sequences = sequences;
  options.rounds_per_sequence = 1000;
  options.seed = 99;
  options.count_tokens = true;
  return options;
}

/// The same rounds one after the other, from the documented layout and the tables alone.
/// @param reuse  the broken twin: the residual is drawn by the words that rejected the draft
SyntheticRounds one_by_one(const AliasPair& pair, std::int64_t gamma, const SyntheticRoundsOptions& options,
                           bool reuse = false) {
  const auto vocab = static_cast<std::uint64_t>(pair.vocab_size());
  SyntheticRounds counts;
  counts.accepted_counts.resize(static_cast<std::size_t>(gamma) + 1);
  counts.token_counts.resize(vocab);
  std::array<std::uint32_t, 4> words;
  const auto draw = [&](std::int64_t sequence, std::int64_t round, std::int64_t slot, Purpose purpose) {
    words = RandomStream(options.seed, static_cast<std::uint64_t>(sequence)).words(round, slot, purpose);
  };
  struct Choice {
    std::size_t token;
    double acceptance;
  };
  const auto choose = [&](std::uint64_t table, std::uint64_t high, std::uint64_t low) -> Choice {
    const std::uint64_t scaled = high * vocab + (low * vocab >> 32);
    const std::uint64_t column = scaled >> 32;
    const std::uint64_t choice = pair.columns()[2 * (table * vocab + column)];
    const std::uint64_t acceptances = pair.columns()[2 * (table * vocab + column) + 1];
    const bool own = (scaled & 0xffff'ffff) < (choice & 0xffff'ffff);
    return {static_cast<std::size_t>(own ? column : choice >> 32),
            static_cast<double>(own ? acceptances & 0xffff'ffff : acceptances >> 32) * 0x1p-31};
  };
  for (std::int64_t sequence = 0; sequence < options.sequences; ++sequence) {
    for (std::int64_t round = 0; round < options.rounds_per_sequence; ++round) {
      std::int64_t slot = 0;
      bool rejected = false;
      while (slot < gamma && !rejected) {
        draw(sequence, round, slot, Purpose::draft);
        const Choice drafted = choose(0, words[1], words[0]);
        rejected = words[2] / 2 * 0x1p-31 >= drafted.acceptance;
        if (rejected) continue;
        ++counts.token_counts[drafted.token];
        ++slot;
      }
      if (!rejected || !reuse) draw(sequence, round, slot, rejected ? Purpose::residual : Purpose::bonus);
      const bool reused = rejected && reuse;
      const Choice own = choose(rejected ? 2 : 1, words[reused ? 2 : 1], words[reused ? 3 : 0]);
      ++counts.token_counts[own.token];
      ++counts.accepted_counts[static_cast<std::size_t>(slot)];
    }
  }
  return counts;
}

double accepted_p_value(const SyntheticRounds& run, const core::AcceptanceRate& rate) {
  return chi_square_p_value(run.accepted_counts, tokens_law(rate, std::ssize(run.accepted_counts) - 1));
}

}  // namespace

TEST_CASE("synthetic rounds emit the target's law and accept as the closed form says") {
  const ZipfLaws laws;
  const core::TargetDistribution p(laws.p);
  const core::DraftDistribution q(laws.q);
  const AliasPair pair(p, q);
  const core::AcceptanceRate rate = core::acceptance_rate(p, q);
  for (const std::int64_t gamma : {0, 1, 5, 32}) {
    const SyntheticRounds run = simulate_rounds(pair, gamma, counted(1000));
    CAPTURE(rate.alpha(), gamma);
    CHECK(chi_square_p_value(run.token_counts, laws.p) > false_alarm_rate);
    CHECK(accepted_p_value(run, rate) > false_alarm_rate);
    CHECK(*run.standard_error() * *run.standard_error() * 1e6 ==
          Approx(theory::tokens_variance(rate, gamma)).epsilon(0.02));
    // Neither fits another law.
    CHECK(chi_square_p_value(run.token_counts, laws.q) < false_alarm_rate);
    if (gamma > 0) CHECK(accepted_p_value(run, core::AcceptanceRate(rate.alpha() - 0.01)) < false_alarm_rate);
  }
}

TEST_CASE("rounds at one rate accept as the closed form says") {
  SyntheticRoundsOptions options = counted(1000);
  options.count_tokens = false;
  // Not a multiple of the words of a block, and more than are drawn at once.
  options.rounds_per_sequence = 4099;
  for (const double alpha : {0.0, 0.35, 0.72, 0.99, 1.0}) {
    for (const std::int64_t gamma : {0, 1, 5, 32}) {
      const core::AcceptanceRate rate(alpha);
      const SyntheticRounds run = simulate_rounds(rate, gamma, options);
      CAPTURE(alpha, gamma);
      CHECK(run.rounds() == 1000 * 4099);
      CHECK(accepted_p_value(run, rate) > false_alarm_rate);
    }
  }
}

TEST_CASE("rounds count what the documented layout and the tables give") {
  const ZipfLaws laws;
  const AliasPair pair{core::TargetDistribution(laws.p), core::DraftDistribution(laws.q)};
  for (const std::int64_t gamma : {0, 4}) {
    const SyntheticRounds lanes = simulate_rounds(pair, gamma, counted(70));
    const SyntheticRounds single = one_by_one(pair, gamma, counted(70));
    CHECK(lanes.accepted_counts == single.accepted_counts);
    CHECK(lanes.token_counts == single.token_counts);
  }
}

TEST_CASE("a residual drawn by the uniform that rejected the draft is caught") {
  const ZipfLaws laws;
  const AliasPair pair{core::TargetDistribution(laws.p), core::DraftDistribution(laws.q)};
  CHECK(chi_square_p_value(one_by_one(pair, 5, counted(300)).token_counts, laws.p) > false_alarm_rate);
  CHECK(chi_square_p_value(one_by_one(pair, 5, counted(300), true).token_counts, laws.p) < false_alarm_rate);
}
