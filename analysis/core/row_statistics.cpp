#include "analysis/core/row_statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "analysis/core/checks.hpp"
#include "analysis/core/row_kernels.hpp"
#include "analysis/core/staged_row.hpp"
#include "analysis/core/unit_bins.hpp"

namespace specdec::core {
namespace {

using row_kernels::PairSums;
using traces::ElementType;
using traces::Row;
using traces::RowSpace;

void require_pair(std::string_view function, const traces::TargetRow& target, const traces::DraftRow& draft) {
  require_readable(function, target);
  require_readable(function, draft);
  require_same_size(function, "target row", static_cast<std::size_t>(target.vocab), "draft row",
                    static_cast<std::size_t>(draft.vocab));
}

/// True if the kernels can read both rows in place.
bool readable_in_place(const Row& target, const Row& draft) {
  return target.space == RowSpace::probabilities && draft.space == RowSpace::probabilities && target.type == draft.type;
}

bool passes(const Row& row, double sum, bool negative) { return !negative && std::abs(sum - 1) <= sum_tolerance(row); }

/// The fault of a pair that was read in place, if any.
std::optional<RowFault> fault_in_pair(const Row& target, double target_sum, const Row& draft, double draft_sum,
                                      bool negative) {
  if (passes(target, target_sum, negative) && passes(draft, draft_sum, negative)) return std::nullopt;
  if (const auto fault = fault_in_probabilities(target, RowRole::target)) return fault;
  return fault_in_probabilities(draft, RowRole::draft);
}

std::optional<RowFault> stage(const Row& target, const Row& draft, StagedRow& p, StagedRow& q) {
  if (const auto fault = p.stage(target, RowRole::target)) return fault;
  if (const auto fault = q.stage(draft, RowRole::draft)) return fault;
  for (const std::int64_t token : {p.argmax(), q.argmax()}) {
    p.take_out(token);
    q.take_out(token);
  }
  return std::nullopt;
}

/// The tokens that were taken out of a staged pair.
template <class Function>
void for_each_taken_out(const StagedRow& p, const StagedRow& q, Function function) {
  function(p.token(p.argmax()), q.token(p.argmax()));
  if (q.argmax() != p.argmax()) function(p.token(q.argmax()), q.token(q.argmax()));
}

/// p - q, from the complements if those are the smaller numbers.
double difference(const ExactToken& p, const ExactToken& q) {
  const bool near_one = p.probability > 0.5 && q.probability > 0.5;
  return near_one ? q.complement - p.complement : p.probability - q.probability;
}

void take(const PairSums& sums, RowStatistics& out) {
  out.overlap = sums.overlap;
  out.missing_mass = sums.missing;
  out.rejected_mass = sums.rejected;
  out.target_entropy = -sums.target_logs;
  out.acceptance_second_moment = sums.acceptance_squares;
  out.surprisal_second_moment = sums.surprisal_squares;
}

/// Adds one token to all sums.
void add(const ExactToken& p, const ExactToken& q, RowStatistics& out) {
  const double smaller = std::min(p.probability, q.probability);
  const double more = difference(p, q);
  out.overlap += smaller;
  out.missing_mass += std::max(0.0, more);
  out.rejected_mass += std::max(0.0, -more);
  if (p.probability > 0) {
    out.target_entropy -= p.probability * p.logarithm;
    out.acceptance_second_moment += smaller * (smaller / p.probability);
    out.surprisal_second_moment += p.probability * p.logarithm * p.logarithm;
  }
}

/// The lowest token with the largest value, known to lie in the block that begins with `first`.
std::int64_t argmax_of_block(const Row& row, std::size_t first, float largest) {
  auto token = static_cast<std::int64_t>(first);
  while (token + 1 < row.vocab && stored_value(row, token) != double{largest}) ++token;
  return token;
}

void statistics_in_place(const Row& target, const Row& draft, const PairSums& sums, std::int64_t token,
                         RowStatistics& out) {
  take(sums, out);
  out.target_argmax = argmax_of_block(target, sums.target_max_first, sums.target_max);
  out.draft_argmax = argmax_of_block(draft, sums.draft_max_first, sums.draft_max);
  out.target_max = double{sums.target_max};
  out.draft_max = double{sums.draft_max};
  out.target_at_draft_argmax = stored_value(target, out.draft_argmax);
  if (token >= 0) {
    out.target_token_logprob = std::log(stored_value(target, token));
    out.draft_token_logprob = std::log(stored_value(draft, token));
  }
}

void statistics_of_staged(const StagedRow& p, const StagedRow& q, const PairSums& sums, std::int64_t token,
                          RowStatistics& out) {
  take(sums, out);
  out.target_sum = p.sum();
  out.draft_sum = q.sum();
  for_each_taken_out(p, q, [&out](const ExactToken& x, const ExactToken& y) { add(x, y, out); });
  out.target_argmax = p.argmax();
  out.draft_argmax = q.argmax();
  out.target_max = p.token(p.argmax()).probability;
  out.draft_max = q.token(q.argmax()).probability;
  out.target_at_draft_argmax = p.token(q.argmax()).probability;
  if (token >= 0) {
    out.target_token_logprob = p.token(token).logarithm;
    out.draft_token_logprob = q.token(token).logarithm;
  }
}

/// Sums over the tokens that were taken out of a staged pair and contribute to lenience's.
void add_lenient(const ExactToken& p, const ExactToken& q, double lenience, row_kernels::LenienceSums& out) {
  const double more = difference(p, q);
  const double raised = p.probability * (1 / lenience - 1);
  const double lacking = more + (1 - lenience) * q.probability;
  out.accepted += std::min(p.probability / lenience, q.probability);
  out.rejected += std::max(0.0, -more - raised);
  out.excess += std::max(0.0, std::min(-more, raised));
  out.missing += std::max(0.0, lacking);
}

double lenient_distance(const ExactToken& p, const ExactToken& q, double lenience, double kappa) {
  const double more = difference(p, q);
  const double lacking = more + (1 - lenience) * q.probability;
  return lacking > 0 ? std::max(0.0, kappa * lacking - more) : p.probability * (1 / lenience - 1);
}

/// For at most row_kernels::leniences_at_once of them.
void lenience_of_staged(const StagedRow& p, const StagedRow& q, std::span<const double> leniences,
                        std::span<LenienceStatistics> out) {
  constexpr std::size_t most = row_kernels::leniences_at_once;
  std::array<float, most> lenience;
  std::array<float, most> inverse;
  std::array<float, most> kappa{};
  std::array<row_kernels::LenienceSums, most> sums;
  std::array<double, most> distance{};
  lenience.fill(1);
  inverse.fill(1);
  for (std::size_t k = 0; k < leniences.size(); ++k) {
    lenience[k] = static_cast<float>(leniences[k]);
    inverse[k] = static_cast<float>(1 / leniences[k]);
  }
  const auto vocab = static_cast<std::size_t>(p.vocab());
  row_kernels::sum_leniences(p.view(), q.view(), vocab, lenience.data(), inverse.data(), sums.data());
  for (std::size_t k = 0; k < leniences.size(); ++k) {
    for_each_taken_out(p, q, [&](const auto& x, const auto& y) { add_lenient(x, y, leniences[k], sums[k]); });
    kappa[k] = sums[k].missing > 0 ? static_cast<float>(sums[k].rejected / sums[k].missing) : 0;
  }
  row_kernels::sum_lenient_distances(p.view(), q.view(), vocab, lenience.data(), inverse.data(), kappa.data(),
                                     distance.data());
  for (std::size_t k = 0; k < leniences.size(); ++k) {
    for_each_taken_out(p, q, [&](const auto& x, const auto& y) {
      distance[k] += lenient_distance(x, y, leniences[k], double{kappa[k]});
    });
    out[k] = {sums[k].accepted, sums[k].excess, distance[k]};
  }
}

void add(const ExactToken& p, const ExactToken& q, std::span<DraftConfidence> bins) {
  DraftConfidence& bin = bins[unit_bin(q.probability, bins.size())];
  bin.drafted += q.probability;
  bin.confidence += q.probability * q.probability;
  bin.accepted += std::min(p.probability, q.probability);
}

}  // namespace

double sum_tolerance(const Row& row) {
  return row.sum_tolerance > 0 ? row.sum_tolerance : traces::row_sum_tolerance(row.type);
}

std::string found(const RowFault& fault) {
  switch (fault.kind) {
    case RowFault::Kind::not_a_number:
      return fmt::format("NaN at token {}", fault.index);
    case RowFault::Kind::infinite:
      return fmt::format("{} at token {}", fault.value, fault.index);
    case RowFault::Kind::negative:
      return fmt::format("probability {} at token {}", fault.value, fault.index);
    case RowFault::Kind::no_mass:
      return "no token with a probability above 0";
    case RowFault::Kind::sum:
      break;
  }
  return fmt::format("a sum of {}", fault.value);
}

std::string expected(const RowFault& fault) {
  if (fault.kind == RowFault::Kind::sum) return fmt::format("a sum of 1 within {}", fault.tolerance);
  return "a distribution over the vocabulary";
}

struct RowScratch::Buffers {
  StagedRow target;
  StagedRow draft;
  std::vector<std::byte> spread;
  std::vector<row_kernels::ConfidenceBlock> confidences;
};

RowScratch::RowScratch() : buffers_(std::make_unique<Buffers>()) {}
RowScratch::~RowScratch() = default;
RowScratch::RowScratch(RowScratch&&) noexcept = default;
RowScratch& RowScratch::operator=(RowScratch&&) noexcept = default;

std::optional<RowFault> row_statistics(const traces::TargetRow& target, const traces::DraftRow& draft,
                                       std::int64_t token, RowScratch& scratch, RowStatistics& out) {
  require_pair("row_statistics", target, draft);
  require_in("row_statistics", "token", token, std::int64_t{-1}, target.vocab - 1);
  const auto vocab = static_cast<std::size_t>(target.vocab);
  out.target_token_logprob = out.draft_token_logprob = std::numeric_limits<double>::quiet_NaN();
  PairSums sums;
  if (readable_in_place(target, draft)) {
    row_kernels::sum_stored(target.type, target.data, draft.data, vocab, sums);
    out.target_sum = sums.overlap + sums.missing;
    out.draft_sum = sums.overlap + sums.rejected;
    const auto fault = fault_in_pair(target, out.target_sum, draft, out.draft_sum, sums.negative);
    if (!fault) statistics_in_place(target, draft, sums, token, out);
    return fault;
  }
  StagedRow& p = scratch.buffers().target;
  StagedRow& q = scratch.buffers().draft;
  if (const auto fault = stage(target, draft, p, q)) return fault;
  row_kernels::sum_staged(p.view(), q.view(), vocab, sums);
  statistics_of_staged(p, q, sums, token, out);
  return std::nullopt;
}

std::optional<RowFault> lenience_statistics(const traces::TargetRow& target, const traces::DraftRow& draft,
                                            std::span<const double> leniences, RowScratch& scratch,
                                            std::span<LenienceStatistics> out) {
  require_pair("lenience_statistics", target, draft);
  require_same_size("lenience_statistics", "leniences", leniences.size(), "out", out.size());
  for (const double l : leniences) {
    if (0 < l && l <= 1) continue;
    throw std::domain_error(fmt::format("lenience_statistics: lenience is {}, but must be in (0, 1]", l));
  }
  StagedRow& p = scratch.buffers().target;
  StagedRow& q = scratch.buffers().draft;
  if (const auto fault = stage(target, draft, p, q)) return fault;
  for (std::size_t first = 0; first < leniences.size(); first += row_kernels::leniences_at_once) {
    const std::size_t count = std::min(row_kernels::leniences_at_once, leniences.size() - first);
    lenience_of_staged(p, q, leniences.subspan(first, count), out.subspan(first, count));
  }
  return std::nullopt;
}

std::optional<RowFault> draft_confidence(const traces::TargetRow& target, const traces::DraftRow& draft,
                                         RowScratch& scratch, std::span<DraftConfidence> bins) {
  require_pair("draft_confidence", target, draft);
  if (bins.empty()) throw std::invalid_argument("draft_confidence: bins is empty, but must have at least one");
  StagedRow& p = scratch.buffers().target;
  StagedRow& q = scratch.buffers().draft;
  std::vector<row_kernels::ConfidenceBlock>& blocks = scratch.buffers().confidences;
  if (const auto fault = stage(target, draft, p, q)) return fault;
  const auto vocab = static_cast<std::size_t>(target.vocab);
  blocks.resize((vocab + row_kernels::block_tokens - 1) / row_kernels::block_tokens);
  row_kernels::sum_confidences(p.view(), q.view(), vocab, blocks.data());
  std::fill(bins.begin(), bins.end(), DraftConfidence{});
  for_each_taken_out(p, q, [&](const ExactToken& x, const ExactToken& y) { add(x, y, bins); });
  // In a large vocabulary nearly all blocks belong entirely to the first bin: the others hold a likely token.
  constexpr double rounding = 1e-6;
  const double second_bin = (1 - rounding) / static_cast<double>(bins.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (double{blocks[b].largest} < second_bin) {
      bins[0].drafted += blocks[b].drafted;
      bins[0].confidence += blocks[b].confidence;
      bins[0].accepted += blocks[b].accepted;
      continue;
    }
    const std::size_t end = std::min(vocab, (b + 1) * row_kernels::block_tokens);
    for (std::size_t i = b * row_kernels::block_tokens; i < end; ++i) {
      const auto token = static_cast<std::int64_t>(i);
      if (!q.is_zero(token)) add(p.token(token), q.token(token), bins);
    }
  }
  return std::nullopt;
}

std::optional<RowFault> read_probabilities(const Row& row, RowRole role, std::span<double> out) {
  require_readable("read_probabilities", row);
  require_same_size("read_probabilities", "row", static_cast<std::size_t>(row.vocab), "out", out.size());
  double sum = 0;
  return read_row(row, role, out, sum);
}

traces::DraftRow spread_over_vocabulary(const traces::DraftRow& draft, std::span<const std::int32_t> map,
                                        std::int64_t vocab, RowScratch& scratch) {
  require_readable("spread_over_vocabulary", draft);
  require_same_size("spread_over_vocabulary", "map", map.size(), "draft row", static_cast<std::size_t>(draft.vocab));
  const auto size = static_cast<std::size_t>(traces::size_of(draft.type));
  std::vector<std::byte>& spread = scratch.buffers().spread;
  spread.assign(static_cast<std::size_t>(vocab) * size, std::byte{0});
  if (draft.space != RowSpace::probabilities) {
    // -inf: the sign and all bits of the exponent.
    const std::uint32_t bits = draft.type == ElementType::f32   ? 0xff800000U
                               : draft.type == ElementType::f16 ? 0xfc00U
                                                                : 0xff80U;
    for (std::size_t at = 0; at < spread.size(); at += size) std::memcpy(&spread[at], &bits, size);
  }
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (map[i] < 0 || map[i] >= vocab) {
      require_in("spread_over_vocabulary", fmt::format("map[{}]", i), std::int64_t{map[i]}, std::int64_t{0}, vocab - 1);
    }
    std::memcpy(&spread[static_cast<std::size_t>(map[i]) * size], draft.data + i * size, size);
  }
  traces::DraftRow whole = draft;
  whole.vocab = vocab;
  whole.data = spread.data();
  return whole;
}

}  // namespace specdec::core
