#include "analysis/estimate/observing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/core/distribution.hpp"
#include "analysis/core/parallel.hpp"
#include "analysis/core/staged_row.hpp"
#include "analysis/core/unit_bins.hpp"
#include "analysis/estimate/text_source_tests.hpp"
#include "analysis/theory/lenience.hpp"
#include "analysis/theory/rejection_sampling.hpp"

namespace specdec::estimate {

using namespace observing;

namespace {

/// The row as the text was sampled from it; the row itself if nothing is reshaped.
template <class RowOfRole>
RowOfRole reshaped(const RowOfRole& row, const core::Standardisation& how, core::RowRole role,
                   std::vector<double>& probabilities, std::vector<float>& logprobs,
                   std::optional<core::RowFault>& fault) {
  if (how.changes_nothing()) return row;
  probabilities.resize(index(row.vocab));
  fault = core::read_probabilities(row, role, probabilities);
  if (fault) return row;
  core::standardise(probabilities, how);
  logprobs.resize(probabilities.size());
  std::transform(probabilities.begin(), probabilities.end(), logprobs.begin(), [](double p) {
    return p > 0 ? static_cast<float>(std::log(p)) : -std::numeric_limits<float>::infinity();
  });
  RowOfRole result = row;
  result.space = traces::RowSpace::log_probabilities;
  result.type = traces::ElementType::f32;
  result.data = reinterpret_cast<const std::byte*>(logprobs.data());
  return result;
}

traces::FileError error_of(const core::RowFault& fault, const PositionSource& source, const PositionBatch& batch,
                           std::int64_t i) {
  return source.refusal(batch.first + i, fault.role == core::RowRole::target ? Role::target : Role::draft,
                        core::found(fault), core::expected(fault));
}

/// -log p(token) under a row that gives `known` the surprisal `known_surprisal`; NaN for no token, and if the
/// normaliser of logits cannot be derived from the known one.
double surprisal_under(const traces::TargetRow& row, std::int64_t token, std::int64_t known, double known_surprisal) {
  if (token < 0) return unknown;
  const double value = core::stored_value(row, token);
  if (row.space == traces::RowSpace::probabilities) return -std::log(value);
  if (row.space == traces::RowSpace::log_probabilities) {
    return means_zero(value) ? std::numeric_limits<double>::infinity() : -value;
  }
  return known < 0 || !std::isfinite(known_surprisal) ? unknown
                                                      : known_surprisal + (core::stored_value(row, known) - value);
}

/// The deviation of a token's surprisal under p from its mean, and its variance.
void add_token(const std::vector<double>& p, std::int64_t token, SurprisalFit& fit) {
  if (token < 0) return;
  double entropy = 0, square = 0;
  for (const double value : p) {
    if (value <= 0) continue;
    const double logprob = std::log(value);
    entropy -= value * logprob;
    square += value * logprob * logprob;
  }
  fit.add(-std::log(p[index(token)]) - entropy, std::max(0.0, square - entropy * entropy));
}

/// The neighbours to which the batch's first rows belong rather than to their own tokens, in words; empty if there are
/// none. Reads on until the variance suffices for a warning.
std::optional<std::string> shift_that_fits(const PositionBatch& batch, const core::Standardisation& how) {
  constexpr std::int64_t fewest_rows = 256;
  SurprisalFit own, previous, next;
  const auto undecided = [&] {
    const double variance = own.sums.variance.value();
    return variance > 0 && variance < least_surprisal_variance;
  };
  std::vector<double> p;
  for (std::int64_t i = 0; i < batch.size && (i < fewest_rows || undecided()); ++i) {
    const traces::TargetRow row = batch.target_rows[i];
    p.resize(index(row.vocab));
    if (core::read_probabilities(row, core::RowRole::target, p)) return std::nullopt;
    core::standardise(p, how);
    add_token(p, token_beside(batch, i, 0), own);
    add_token(p, token_beside(batch, i, -1), previous);
    add_token(p, token_beside(batch, i, 1), next);
  }
  const auto shift = rows_shifted_by(own, previous, next);
  return shift ? std::optional(std::string(about_shift(*shift))) : std::nullopt;
}

void allocate_full(Observations& out, bool tokens, std::size_t leniences) {
  const std::int64_t n = out.size;
  for (Bracketed& rule : out.by_rule) rule.lower = column(n);
  for (Bracketed* bracketed : {&out.mean_acceptance, &out.d_lk}) bracketed->lower = column(n);
  out.target_entropy = out.draft_top_probability = column(n);
  if (tokens) {
    out.acceptance.lower = column(n);
    for (Deviations* deviations : {&out.acceptance_deviation, &out.surprisal_deviation})
      *deviations = unknown_deviations(n);
    out.surprisal = column(n);
    out.surprisal_of_previous = out.surprisal_of_next = column(n);
    out.draft_token_probability = column(n);
  }
  for (auto* table : {&out.lenient_acceptance, &out.lenient_distance_strict, &out.lenient_distance_lenient}) {
    table->assign(leniences, column(n));
  }
}

double acceptance_variance(const core::RowStatistics& s, AcceptanceRule rule) {
  if (rule == AcceptanceRule::greedy) return 0;
  if (rule == AcceptanceRule::greedy_draft) return s.target_at_draft_argmax * (1 - s.target_at_draft_argmax);
  return std::max(0.0, s.acceptance_second_moment - s.overlap * s.overlap);
}

/// a_t under any rule from the statistics of the rows.
double acceptance_of(const core::RowStatistics& s, AcceptanceRule rule, std::int64_t token) {
  if (rule == AcceptanceRule::greedy) return s.target_argmax == s.draft_argmax ? 1 : 0;
  if (rule == AcceptanceRule::greedy_draft) return token == s.draft_argmax ? 1 : 0;
  return acceptance_of_logprobs(s.target_token_logprob, s.draft_token_logprob);
}

void store(const core::RowStatistics& s, AcceptanceRule rule, std::int64_t token, std::int64_t position,
           Observations& out) {
  const std::size_t i = index(position);
  of_rule(out, AcceptanceRule::rejection).lower[i] = std::min(1.0, s.overlap);
  of_rule(out, AcceptanceRule::greedy_draft).lower[i] = std::min(1.0, s.target_at_draft_argmax);
  of_rule(out, AcceptanceRule::greedy).lower[i] = s.target_argmax == s.draft_argmax ? 1 : 0;
  out.mean_acceptance.lower[i] = of_rule(out, rule).lower[i];
  out.d_lk.lower[i] = (s.missing_mass + s.rejected_mass) / 2;
  out.target_entropy[i] = s.target_entropy;
  out.draft_top_probability[i] = s.draft_max;
  if (token < 0) return;
  out.acceptance.lower[i] = acceptance_of(s, rule, token);
  put(out.acceptance_deviation, position, out.acceptance.lower[i] - out.mean_acceptance.lower[i],
      acceptance_variance(s, rule));
  out.surprisal[i] = -s.target_token_logprob;
  put(out.surprisal_deviation, position, out.surprisal[i] - s.target_entropy,
      std::max(0.0, s.surprisal_second_moment - s.target_entropy * s.target_entropy));
  out.draft_token_probability[i] = std::exp(s.draft_token_logprob);
}

/// The only token that greedy drafting proposes.
void confidence_of_argmax(const core::RowStatistics& s, AcceptanceRule rule, std::span<core::DraftConfidence> bins) {
  std::fill(bins.begin(), bins.end(), core::DraftConfidence{});
  const bool same = s.target_argmax == s.draft_argmax;
  bins[core::unit_bin(s.draft_max, bins.size())] = {
      1, s.draft_max, rule == AcceptanceRule::greedy ? (same ? 1.0 : 0.0) : s.target_at_draft_argmax};
}

/// For a single proposed token: it is accepted with probability min(1, p / l), and both residuals are p without it.
core::LenienceStatistics lenience_of_proposal(double probability, double lenience) {
  const double accepted = std::min(1.0, probability / lenience);
  return {accepted, accepted - probability, accepted - probability};
}

/// For a comparison of the target's first token with the draft's, by the rows before that was chosen.
core::LenienceStatistics lenience_of_argmax(const core::TargetDistribution& p, const core::RowStatistics& s,
                                            double lenience) {
  const bool accepted = theory::argmax_lenient_accepts(p, static_cast<std::size_t>(s.draft_argmax), lenience);
  const double distance = accepted && s.draft_argmax != s.target_argmax ? 1 : 0;
  return {accepted ? 1.0 : 0.0, distance, distance};
}

std::optional<core::RowFault> read_pair(const traces::TargetRow& target, const traces::DraftRow& draft,
                                        std::vector<double>& p, std::vector<double>& q) {
  p.resize(index(target.vocab));
  q.resize(index(draft.vocab));
  if (const auto fault = core::read_probabilities(target, core::RowRole::target, p)) return fault;
  return core::read_probabilities(draft, core::RowRole::draft, q);
}

/// The distance of the stored sums from 1; logits have none.
double sum_error(const core::RowStatistics& s, const traces::Row& target, const traces::Row& draft) {
  const auto of = [](double sum, const traces::Row& row) {
    return row.space == traces::RowSpace::logits ? 0 : std::abs(sum - 1);
  };
  return std::max(of(s.target_sum, target), of(s.draft_sum, draft));
}

/// True if a stored number of F16 is 0 or -0.
bool is_half_zero(const std::byte* number) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, number, sizeof bits);
  return (bits & 0x7FFFU) == 0;
}

}  // namespace

bool Observer::may_have_underflowed(const traces::TargetRow& row, std::int64_t token) const {
  const core::Standardisation sampling = sampling_of(metadata_);
  const bool whole = sampling.temperature > 0 && sampling.top_k == 0 && sampling.top_p == 1 && sampling.min_p == 0;
  return whole && row.space == traces::RowSpace::probabilities && row.type == traces::ElementType::f16 &&
         is_half_zero(row.data + token * traces::size_of(row.type));
}

std::optional<core::RowFault> Observer::observe_lenience(const traces::TargetRow& stored,
                                                         const traces::TargetRow& target, const traces::DraftRow& draft,
                                                         Workspace& work) const {
  const std::vector<double>& leniences = options_.lenience;
  work.lenience.resize(leniences.size());
  const AcceptanceRule rule = rule_of_lenience(metadata_, rule_);
  if (rule == AcceptanceRule::rejection) {
    return core::lenience_statistics(target, draft, leniences, work.scratch, work.lenience);
  }
  const core::RowStatistics& s = work.statistics;
  if (rule == AcceptanceRule::greedy_draft) {
    std::transform(leniences.begin(), leniences.end(), work.lenience.begin(),
                   [&](double l) { return lenience_of_proposal(std::min(1.0, s.target_at_draft_argmax), l); });
    return std::nullopt;
  }
  work.target_probabilities.resize(index(stored.vocab));
  if (const auto fault = core::read_probabilities(stored, core::RowRole::target, work.target_probabilities)) {
    return fault;
  }
  const core::TargetDistribution p(work.target_probabilities, core::sum_tolerance(stored));
  std::transform(leniences.begin(), leniences.end(), work.lenience.begin(),
                 [&](double l) { return lenience_of_argmax(p, s, l); });
  work.lenience_tells |= p[index(s.target_argmax)] < 1;
  return std::nullopt;
}

void Observer::observe_row(const PositionSource& source, const PositionBatch& batch, std::int64_t i, Workspace& work,
                           Observations& out) const {
  std::optional<core::RowFault> fault;
  const auto require_sound = [&] {
    if (fault) throw error_of(*fault, source, batch, i);
  };
  traces::TargetRow target = batch.target_rows[i];
  traces::DraftRow draft = batch.draft_rows[i];
  if (options_.tolerance) target.sum_tolerance = draft.sum_tolerance = *options_.tolerance;
  const traces::TargetRow stored = target;
  const traces::DraftRow stored_draft = draft;
  target = reshaped(target, target_, core::RowRole::target, work.target.probabilities, work.target.logprobs, fault);
  require_sound();
  draft = reshaped(draft, draft_, core::RowRole::draft, work.draft.probabilities, work.draft.logprobs, fault);
  require_sound();
  if (!batch.draft_vocab_map.empty()) {
    draft = core::spread_over_vocabulary(draft, batch.draft_vocab_map, target.vocab, work.scratch);
  }
  const std::int64_t token = batch.token.empty() ? -1 : batch.token[index(i)];
  fault = core::row_statistics(target, draft, token, work.scratch, work.statistics);
  require_sound();
  const bool impossible = token >= 0 && std::isinf(work.statistics.target_token_logprob);
  if (impossible && !forgives_impossible_tokens() && !may_have_underflowed(batch.target_rows[i], token)) {
    const auto shift = shift_that_fits(batch, target_);
    throw impossible_token(source, batch, i, shift ? "; " + *shift : "");
  }
  if (draft_.temperature == 0) {
    // The data that a policy sees of a draft that takes its first token.
    work.draft_probabilities.resize(index(stored_draft.vocab));
    fault = core::read_probabilities(stored_draft, core::RowRole::draft, work.draft_probabilities);
    require_sound();
    work.statistics.draft_max = *std::max_element(work.draft_probabilities.begin(), work.draft_probabilities.end());
  }
  store(work.statistics, rule_, token, i, out);
  if (!batch.token.empty()) {
    const double own = -work.statistics.target_token_logprob;
    out.surprisal_of_previous[index(i)] = surprisal_under(target, token_beside(batch, i, -1), token, own);
    out.surprisal_of_next[index(i)] = surprisal_under(target, token_beside(batch, i, 1), token, own);
  }
  work.largest_sum_error = std::max(work.largest_sum_error, sum_error(work.statistics, target, draft));

  if (!out.by_confidence.empty()) {
    work.by_confidence.resize(out.by_confidence.size());
    if (!proposes_one_token()) {
      fault = core::draft_confidence(target, draft, work.scratch, work.by_confidence);
      require_sound();
    } else {
      confidence_of_argmax(work.statistics, rule_at_temperature(metadata_, rule_), work.by_confidence);
    }
    for (std::size_t b = 0; b < out.by_confidence.size(); ++b) out.by_confidence[b][index(i)] = work.by_confidence[b];
  }
  if (options_.rejection_sampling) {
    fault = read_pair(target, draft, work.target_probabilities, work.draft_probabilities);
    require_sound();
    const core::TargetDistribution p(work.target_probabilities, core::sum_tolerance(target));
    const core::DraftDistribution q(work.draft_probabilities, core::sum_tolerance(draft));
    out.rejection_sampling_acceptance[index(i)] = std::min(1.0, theory::rejection_sampling_acceptance(p, q));
  }
  if (options_.lenience.empty()) return;
  fault = observe_lenience(stored, target, draft, work);
  require_sound();
  for (std::size_t l = 0; l < work.lenience.size(); ++l) {
    out.lenient_acceptance[l][index(i)] = work.lenience[l].alpha;
    out.lenient_distance_strict[l][index(i)] = work.lenience[l].distance_strict;
    out.lenient_distance_lenient[l][index(i)] = work.lenience[l].distance_lenient;
  }
}

void Observer::observe_full(const PositionSource& source, const PositionBatch& batch, Observations& out) {
  allocate_full(out, !batch.token.empty(), options_.lenience.size());
  if (options_.rejection_sampling) out.rejection_sampling_acceptance = column(batch.size);
  out.by_confidence.assign(index(options_.confidence_bins), std::vector<core::DraftConfidence>(index(batch.size)));
  core::for_each_index(batch.size, options_.threads, [&](std::int64_t i, std::int64_t worker) {
    observe_row(source, batch, i, *workspaces_[index(worker)], out);
  });
  if (batch.token.empty()) return;
  for (std::int64_t i = 0; i < batch.size; ++i) {
    const bool underflowed = std::isinf(out.surprisal[index(i)]) && !forgives_impossible_tokens();
    if (underflowed) {
      ++found_.underflowed;
      out.surprisal[index(i)] = out.surprisal_deviation.value[index(i)] = unknown;
    }
    if (batch.token[index(i)] < 0 || (underflowed && rule_ == AcceptanceRule::rejection)) {
      put(out.acceptance, i, anything);
      put(out.acceptance_deviation, i, unknown, unknown);
    }
  }
}

}  // namespace specdec::estimate
