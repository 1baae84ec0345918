#include "sim/synthetic_rounds.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>

#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"
#include "sim/random.hpp"

namespace specdec::sim {
namespace {

/// Sequences that one thread takes at a time.
constexpr std::int64_t sequences_per_chunk = 64;
constexpr std::int64_t max_synthetic_gamma = 32;
/// 2^32 times a probability of an alias table's column; 2^31 times an acceptance probability.
constexpr double column_unit = 0x1p32, acceptance_unit = 0x1p31;
constexpr std::uint32_t sure = std::uint32_t{1} << 31;

/// Weights in units of 2^-32 / n of their total, with n their number: integers whose sum is exactly n 2^32.
/// The rounding remainder goes to the largest one, which is at least 2^32 and so can absorb it.
std::vector<std::uint64_t> in_units(const std::vector<double>& weights) {
  long double total = 0;
  for (const double w : weights) total += w;
  const long double scale = static_cast<long double>(weights.size()) * column_unit / total;
  std::vector<std::uint64_t> units;
  std::uint64_t sum = 0;
  for (const double w : weights) {
    units.push_back(static_cast<std::uint64_t>(std::roundl(w * scale)));
    sum += units.back();
  }
  *std::max_element(units.begin(), units.end()) += (static_cast<std::uint64_t>(weights.size()) << 32) - sum;
  return units;
}

/// A column of an alias table: its own token below the threshold, the alias from there on.
struct AliasColumn {
  std::uint32_t threshold = 0;
  std::uint32_t alias = 0;
};

/// Exact: units sum to their number times 2^32.
std::vector<AliasColumn> alias_table(std::vector<std::uint64_t> units) {
  constexpr std::uint64_t whole = std::uint64_t{1} << 32;
  std::vector<std::size_t> poor, rich;
  std::vector<AliasColumn> columns(units.size());
  for (std::size_t i = 0; i < units.size(); ++i) {
    columns[i].alias = static_cast<std::uint32_t>(i);
    if (units[i] < whole) poor.push_back(i);
    if (units[i] > whole) rich.push_back(i);
  }
  while (!poor.empty()) {
    // Integers: as long as one column lacks something another one has it.
    const std::size_t i = poor.back();
    const std::size_t donor = rich.back();
    poor.pop_back();
    columns[i] = {static_cast<std::uint32_t>(units[i]), static_cast<std::uint32_t>(donor)};
    units[donor] -= whole - units[i];
    if (units[donor] > whole) continue;
    rich.pop_back();
    if (units[donor] < whole) poor.push_back(donor);
  }
  return columns;
}

using RandomWords = std::array<std::uint32_t, 4>;

struct AliasChoice {
  std::size_t token;
  std::uint64_t acceptance;
};

/// By words 0 and 1 of a block, from the table of q, p or the residual.
AliasChoice chosen(const AliasPair& pair, std::uint64_t table, const RandomWords& words) {
  const auto vocab = static_cast<std::uint64_t>(pair.vocab_size());
  // vocab times the 64 random bits: column, then 32 bits of its fraction.
  const std::uint64_t scaled = words[1] * vocab + (words[0] * vocab >> 32);
  const std::uint64_t column = scaled >> 32;
  const std::uint64_t choice = pair.columns()[2 * (table * vocab + column)];
  const std::uint64_t acceptances = pair.columns()[2 * (table * vocab + column) + 1];
  const bool own = (scaled & 0xffff'ffff) < (choice & 0xffff'ffff);
  return {static_cast<std::size_t>(own ? column : choice >> 32), own ? acceptances & 0xffff'ffff : acceptances >> 32};
}

std::vector<double> entries(const core::Distribution& row) {
  return {row.probabilities().begin(), row.probabilities().end()};
}

void require_options(const SyntheticRoundsOptions& options, std::int64_t gamma) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  core::require_in("simulate_rounds", "gamma", gamma, 0, max_synthetic_gamma);
  core::require_in("simulate_rounds", "rounds_per_sequence", options.rounds_per_sequence, 1, std::int64_t{1} << 24);
  // Keeps tokens below 2^63.
  core::require_in("simulate_rounds", "sequences", options.sequences, 1,
                   most / (options.rounds_per_sequence * (max_synthetic_gamma + 1)));
  core::require_in("simulate_rounds", "threads", options.threads, 1, 1024);
  if (options.until_relative_error) {
    core::require_in("simulate_rounds", "until_relative_error", *options.until_relative_error,
                     std::numeric_limits<double>::min(), std::numeric_limits<double>::max());
  }
}

void add_to(std::vector<std::int64_t>& sums, const std::vector<std::int64_t>& counts) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += counts[i];
}

/// The counts of one thread.
struct WorkerCounts {
  std::vector<std::int64_t> accepted;
  std::vector<std::int64_t> tokens;
};

/// Counts the rounds of a sequence.
using CountSequence = std::function<void(const RandomStream& stream, WorkerCounts& counts)>;

SyntheticRounds simulate_chunks(const SyntheticRoundsOptions& options, const WorkerCounts& empty,
                                const CountSequence& count_sequence) {
  const std::int64_t chunks = (options.sequences - 1) / sequences_per_chunk + 1;
  std::vector<WorkerCounts> workers(static_cast<std::size_t>(std::min(options.threads, chunks)), empty);
  std::atomic<bool> interrupted = false;
  SyntheticRounds result;
  for (std::int64_t done = 0; done < chunks && !interrupted && !result.precise;) {
    const std::int64_t portion = std::min(chunks - done, std::clamp<std::int64_t>(done / 8, 16, 256));
    core::for_each_index(portion, options.threads, [&](std::int64_t i, std::int64_t worker) {
      if (!interrupted && options.interrupt && options.interrupt()) interrupted = true;
      if (interrupted || !options.shard.holds(done + i)) return;
      const std::int64_t first = (done + i) * sequences_per_chunk;
      for (std::int64_t s = first; s < std::min(first + sequences_per_chunk, options.sequences); ++s)
        count_sequence(RandomStream(options.seed, static_cast<std::uint64_t>(s)),
                       workers[static_cast<std::size_t>(worker)]);
    });
    done += portion;
    result.accepted_counts.assign(empty.accepted.size(), 0);
    for (const WorkerCounts& worker : workers) add_to(result.accepted_counts, worker.accepted);
    if (const auto error = result.standard_error(); error && options.until_relative_error) {
      result.precise = *error <= *options.until_relative_error * *result.tokens_per_step();
    }
    if (options.progress) options.progress(result);
  }
  result.interrupted = interrupted;
  result.token_counts.assign(empty.tokens.size(), 0);
  for (const WorkerCounts& worker : workers) add_to(result.token_counts, worker.tokens);
  return result;
}

}  // namespace

AliasPair::AliasPair(const core::TargetDistribution& p, const core::DraftDistribution& q)
    : vocab_size_(static_cast<std::int64_t>(p.size())) {
  core::require_same_size("AliasPair", "target", p.size(), "draft", q.size());
  core::require_in("AliasPair", "vocab_size", vocab_size_, 1, max_vocab);
  const std::vector<std::uint64_t> target = in_units(entries(p));
  const std::vector<std::uint64_t> draft = in_units(entries(q));
  std::vector<double> missing(target.size());
  std::vector<std::uint32_t> acceptance(target.size(), sure);
  bool rejects = false;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] > draft[i]) missing[i] = static_cast<double>(target[i] - draft[i]);
    if (target[i] >= draft[i]) continue;
    rejects = true;
    const double ratio = static_cast<double>(target[i]) / static_cast<double>(draft[i]);
    acceptance[i] = static_cast<std::uint32_t>(std::round(ratio * acceptance_unit));
  }
  const auto append = [this](const std::vector<AliasColumn>& table, auto acceptance_of) {
    for (std::size_t i = 0; i < table.size(); ++i) {
      columns_.push_back(table[i].threshold | std::uint64_t{table[i].alias} << 32);
      columns_.push_back(acceptance_of(i) | std::uint64_t{acceptance_of(table[i].alias)} << 32);
    }
  };
  const auto always = [](std::size_t) { return sure; };
  columns_.reserve(6 * target.size());
  append(alias_table(draft), [&acceptance](std::size_t i) { return acceptance[i]; });
  append(alias_table(target), always);
  // Two equal laws reject nothing; their third table is never read.
  append(alias_table(rejects ? in_units(missing) : target), always);
}

std::int64_t SyntheticRounds::rounds() const {
  std::int64_t sum = 0;
  for (const std::int64_t count : accepted_counts) sum += count;
  return sum;
}

std::int64_t SyntheticRounds::tokens() const {
  std::int64_t sum = 0;
  for (std::size_t n = 0; n < accepted_counts.size(); ++n) sum += static_cast<std::int64_t>(n + 1) * accepted_counts[n];
  return sum;
}

std::optional<double> SyntheticRounds::tokens_per_step() const {
  const std::int64_t n = rounds();
  if (n == 0) return std::nullopt;
  return static_cast<double>(tokens()) / static_cast<double>(n);
}

std::optional<double> SyntheticRounds::standard_error() const {
  const auto n = static_cast<double>(rounds());
  if (n < 2) return std::nullopt;
  const double mean = *tokens_per_step();
  double squares = 0;
  for (std::size_t i = 0; i < accepted_counts.size(); ++i) {
    const double deviation = static_cast<double>(i + 1) - mean;
    squares += static_cast<double>(accepted_counts[i]) * deviation * deviation;
  }
  return std::sqrt(squares / (n - 1) / n);
}

SyntheticRounds simulate_rounds(const AliasPair& pair, std::int64_t gamma, const SyntheticRoundsOptions& options) {
  require_options(options, gamma);
  WorkerCounts empty;
  empty.accepted.resize(static_cast<std::size_t>(gamma) + 1);
  if (options.count_tokens) empty.tokens.resize(static_cast<std::size_t>(pair.vocab_size()));
  return simulate_chunks(options, empty, [&](const RandomStream& stream, WorkerCounts& counts) {
    const auto emit = [&](std::size_t token) {
      if (options.count_tokens) ++counts.tokens[token];
    };
    for (std::int64_t round = 0; round < options.rounds_per_sequence; ++round) {
      std::int64_t accepted = 0;
      bool rejected = false;
      while (accepted < gamma) {
        const RandomWords words = stream.words(round, accepted, Purpose::draft);
        const AliasChoice drafted = chosen(pair, 0, words);
        rejected = words[2] / 2 >= drafted.acceptance;
        if (rejected) break;
        emit(drafted.token);
        ++accepted;
      }
      emit(chosen(pair, rejected ? 2 : 1, stream.words(round, accepted, rejected ? Purpose::residual : Purpose::bonus))
               .token);
      ++counts.accepted[static_cast<std::size_t>(accepted)];
    }
  });
}

SyntheticRounds simulate_rounds(const core::AcceptanceRate& alpha, std::int64_t gamma,
                                const SyntheticRoundsOptions& options) {
  require_options(options, gamma);
  core::require_in("simulate_rounds", "count_tokens", std::int64_t{options.count_tokens}, 0, 0);
  std::vector<std::uint32_t> thresholds;
  for (std::int64_t n = 1; n <= gamma; ++n) {
    thresholds.push_back(static_cast<std::uint32_t>(std::round(alpha.power(n) * acceptance_unit)));
  }
  WorkerCounts empty;
  empty.accepted.resize(static_cast<std::size_t>(gamma) + 1);
  return simulate_chunks(options, empty, [&](const RandomStream& stream, WorkerCounts& counts) {
    RandomWords words = {};
    for (std::int64_t round = 0; round < options.rounds_per_sequence; ++round) {
      if (round % 4 == 0) words = stream.words(round / 4, 0, Purpose::acceptance);
      const std::uint32_t half = words[static_cast<std::size_t>(round % 4)] / 2;
      std::size_t accepted = 0;
      while (accepted < thresholds.size() && half < thresholds[accepted]) ++accepted;
      ++counts.accepted[accepted];
    }
  });
}

}  // namespace specdec::sim
