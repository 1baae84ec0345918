#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "analysis/core/row_statistics.hpp"
#include "analysis/core/standardisation.hpp"
#include "analysis/estimate/observe.hpp"
#include "analysis/estimate/top_k_bounds.hpp"

/// Code shared by the observers of the tiers.
namespace specdec::estimate::observing {

using traces::AcceptanceRule;
using traces::LogprobSpace;
using traces::PositionBatch;
using traces::PositionSource;
using traces::Role;
using traces::Tier;
using traces::TraceMetadata;

inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

inline std::vector<double> column(std::int64_t size) { return std::vector<double>(index(size), unknown); }

inline bool sampled_as_is(const TraceMetadata& metadata) { return sampling_of(metadata).changes_nothing(); }

inline bool at_temperature_zero(const TraceMetadata& metadata) { return metadata.temperature == 0.0; }

/// True if the stored numbers belong to the distributions that were sampled from.
inline bool stored_as_sampled(const TraceMetadata& metadata, const ObserveOptions& options) {
  return options.assume_processed || sampled_as_is(metadata) || metadata.logprob_space == LogprobSpace::processed;
}

/// At temperature 0 both distributions put all mass on their argmax, and rejection compares these.
inline AcceptanceRule rule_at_temperature(const TraceMetadata& metadata, AcceptanceRule rule) {
  return rule == AcceptanceRule::rejection && at_temperature_zero(metadata) ? AcceptanceRule::greedy : rule;
}

/// Lenience compares first tokens at temperature 0 under every rule: there greedy drafting proposes no other token.
inline AcceptanceRule rule_of_lenience(const TraceMetadata& metadata, AcceptanceRule rule) {
  return at_temperature_zero(metadata) ? AcceptanceRule::greedy : rule;
}

/// Writes an entry; the first inexact one turns the column into a bracket.
inline void put(Bracketed& to, std::int64_t i, const Interval& value) {
  to.lower[index(i)] = value.lo;
  if (to.upper.empty()) {
    if (value.lo == value.hi || (std::isnan(value.lo) && std::isnan(value.hi))) return;
    to.upper = to.lower;
  }
  to.upper[index(i)] = value.hi;
}

inline Deviations unknown_deviations(std::int64_t size) { return {column(size), column(size)}; }

inline void put(Deviations& to, std::int64_t i, double value, double variance) {
  to.value[index(i)] = value;
  to.variance[index(i)] = variance;
}

/// a_t less a recorded overlap. What lies in [0, 1] and has mean m has at most the variance m (1 - m).
inline void put_less_overlap(Deviations& to, std::int64_t i, double acceptance, double overlap) {
  put(to, i, acceptance - overlap, overlap * (1 - overlap));
}

inline Interval truth_value(bool value) { return exactly(value ? 1 : 0); }

inline constexpr Interval anything{0, 1};

/// min(1, q / p); 1 if p = 0 < q, 0 if both are 0.
inline double acceptance_of_logprobs(double target, double draft) {
  if (means_zero(target)) return means_zero(draft) ? 0 : 1;
  return means_zero(draft) ? 0 : std::exp(std::min(0.0, draft - target));
}

inline Bracketed& of_rule(Observations& out, AcceptanceRule rule) {
  return out.by_rule[static_cast<std::size_t>(rule)];
}

/// A recorded overlap; NaN if there is none.
inline double recorded_overlap(const PositionSource& source, const PositionBatch& batch, std::int64_t i) {
  if (batch.overlap.empty()) return unknown;
  const double overlap = batch.overlap[index(i)];
  constexpr double rounding = 1e-2;
  if (overlap < -rounding || overlap > 1 + rounding) {
    throw source.refusal(batch.first + i, Role::target, fmt::format("an overlap of {}", overlap),
                         "an overlap in [0, 1], or NaN where it is unknown");
  }
  return std::clamp(overlap, 0.0, 1.0);
}

inline double recorded_logprob(const PositionSource& source, const PositionBatch& batch, std::int64_t i, Role role,
                               double logprob) {
  constexpr double rounding = 1e-2;
  if (logprob <= rounding) return std::min(logprob, 0.0);
  throw source.refusal(batch.first + i, role, fmt::format("a log-probability of {}", logprob),
                       "a log-probability of at most 0");
}

/// The token `step` places after position i, or before it if `step` is negative; -1 if it is unknown or lies in
/// another sequence or batch.
inline std::int64_t token_beside(const PositionBatch& batch, std::int64_t i, std::int64_t step) {
  const std::int64_t other = i + step;
  if (batch.token.empty() || other < 0 || other >= batch.size) return -1;
  return batch.sequence[index(other)] == batch.sequence[index(i)] ? batch.token[index(other)] : -1;
}

/// @param remark  appended to the "expected" part
inline traces::FileError impossible_token(const PositionSource& source, const PositionBatch& batch, std::int64_t i,
                                          const std::string& remark = {}) {
  const std::string token =
      batch.token.empty() ? "the emitted token" : fmt::format("the emitted token {}", batch.token[index(i)]);
  return source.refusal(
      batch.first + i, Role::target, fmt::format("giving {} probability 0", token),
      "giving it more, or the recording's path \"other\" where the text is not the target's" + remark);
}

}  // namespace specdec::estimate::observing

namespace specdec::estimate {

/// Working memory of one thread.
struct Observer::Workspace {
  /// A reshaped row, as natural logarithms in single precision: no value that a double holds underflows.
  struct Reshaped {
    std::vector<double> probabilities;
    std::vector<float> logprobs;
  };
  core::RowScratch scratch;
  Reshaped target, draft;
  core::RowStatistics statistics;
  std::vector<core::LenienceStatistics> lenience;
  std::vector<double> target_probabilities, draft_probabilities;
  std::vector<core::DraftConfidence> by_confidence;
  bool lenience_tells = false;
  TopKBounder bounder;
  double largest_sum_error = 0;
};

}  // namespace specdec::estimate
