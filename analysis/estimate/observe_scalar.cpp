#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "analysis/core/token_acceptance.hpp"
#include "analysis/estimate/observing.hpp"

namespace specdec::estimate {

using namespace observing;

namespace {

/// a_t under the greedy rules from the ranks of the emitted token, 1 = argmax, 0 if unknown.
Interval greedy_draft_acceptance(std::int32_t draft_rank) {
  return draft_rank == 0 ? anything : truth_value(draft_rank == 1);
}

Interval greedy_acceptance(std::int32_t target_rank, std::int32_t draft_rank, bool temperature_zero) {
  if (target_rank == 1) return greedy_draft_acceptance(draft_rank);
  if (target_rank == 0 || draft_rank == 0) return anything;
  // The token is the argmax of one or of neither: equal maxima elsewhere are possible unless the text is greedy.
  return draft_rank == 1 || temperature_zero ? truth_value(false) : anything;
}

/// Throws unless the columns that the rule needs are present.
void require_columns(const PositionBatch& batch, AcceptanceRule rule, bool temperature_zero) {
  const bool logprobs = !batch.target_token_logprob.empty() && !batch.draft_token_logprob.empty();
  if (rule == AcceptanceRule::rejection && !logprobs) {
    throw RuleUndefined("acceptance by rejection needs p.token_logprob and q.token_logprob, and one is missing");
  }
  if (rule == AcceptanceRule::greedy_draft && batch.draft_token_rank.empty()) {
    throw RuleUndefined(
        "acceptance by greedy-draft needs to know whether the emitted token is the draft's first; record q.token_rank "
        "(vLLM: the field rank of prompt_logprobs)");
  }
  if (rule == AcceptanceRule::greedy && (batch.target_token_rank.empty() || batch.draft_token_rank.empty())) {
    throw RuleUndefined(fmt::format(
        "{} is judged by ranks; record p.token_rank and q.token_rank (vLLM: the field rank of prompt_logprobs)",
        temperature_zero ? "text of temperature 0" : "acceptance by greedy"));
  }
}

double draft_logprob(const PositionSource& source, const PositionBatch& batch, std::int64_t i, std::int64_t depth) {
  return recorded_logprob(source, batch, i, Role::draft, batch.draft_token_logprob[index(i * batch.depths + depth)]);
}

/// p = 0 in the arithmetic of core::token_acceptance: above even a q of 0, below all others.
float above_impossible(double logprob) {
  return means_zero(logprob) ? std::numeric_limits<float>::lowest() : static_cast<float>(logprob);
}

/// q = 0 in that arithmetic.
float or_impossible(double logprob) {
  return means_zero(logprob) ? -std::numeric_limits<float>::infinity() : static_cast<float>(logprob);
}

/// a_t of rejection at every draft depth; 0 if the sequence is too short for a depth.
std::vector<double> acceptance_by_logprobs(const PositionSource& source, const PositionBatch& batch,
                                           const std::vector<double>& surprisal) {
  std::vector<float> target(index(batch.size * batch.depths));
  std::vector<float> draft(target.size(), -std::numeric_limits<float>::infinity());
  for (std::int64_t i = 0; i < batch.size; ++i) {
    const std::int64_t possible = std::min(batch.depths, batch.place[index(i)] + 1);
    for (std::int64_t depth = 0; depth < possible; ++depth) {
      target[index(i * batch.depths + depth)] = above_impossible(-surprisal[index(i)]);
      draft[index(i * batch.depths + depth)] = or_impossible(draft_logprob(source, batch, i, depth));
    }
  }
  std::vector<double> acceptance(target.size());
  core::token_acceptance(target, draft, acceptance);
  return acceptance;
}

/// The first depth's acceptances.
std::vector<double> at_first_depth(const std::vector<double>& acceptance, const PositionBatch& batch) {
  if (batch.depths == 1) return acceptance;
  std::vector<double> first(index(batch.size));
  for (std::int64_t i = 0; i < batch.size; ++i) first[index(i)] = acceptance[index(i * batch.depths)];
  return first;
}

}  // namespace

void Observer::observe_logprobs(const PositionSource& source, const PositionBatch& batch, Observations& out) const {
  out.surprisal = column(batch.size);
  out.draft_token_probability = column(batch.size);
  const std::vector<float> certain(index(batch.size));
  std::vector<float> draft(index(batch.size));
  for (std::int64_t i = 0; i < batch.size; ++i) {
    const double p = recorded_logprob(source, batch, i, Role::target, batch.target_token_logprob[index(i)]);
    if (means_zero(p) && !forgives_impossible_tokens()) throw impossible_token(source, batch, i);
    out.surprisal[index(i)] = -p;
    draft[index(i)] = or_impossible(draft_logprob(source, batch, i, 0));
  }
  // q = min(1, q / 1).
  core::token_acceptance(certain, draft, out.draft_token_probability);
}

void Observer::observe_ranks(const PositionBatch& batch, Observations& out) {
  const bool temperature_zero = at_temperature_zero(metadata_);
  const bool both = !batch.target_token_rank.empty();
  Bracketed& greedy_draft = of_rule(out, AcceptanceRule::greedy_draft);
  Bracketed& greedy = of_rule(out, AcceptanceRule::greedy);
  greedy_draft.lower = column(batch.size);
  if (both) greedy.lower = column(batch.size);
  for (std::int64_t i = 0; i < batch.size; ++i) {
    const std::int32_t draft_rank = batch.draft_token_rank[index(i)];
    put(greedy_draft, i, greedy_draft_acceptance(draft_rank));
    if (!both) continue;
    const std::int32_t target_rank = batch.target_token_rank[index(i)];
    put(greedy, i, greedy_acceptance(target_rank, draft_rank, temperature_zero));
    if (temperature_zero && target_rank > 1) ++found_.not_greedy;
  }
}

void Observer::observe_scalar(const PositionSource& source, const PositionBatch& batch, Observations& out) {
  const bool temperature_zero = at_temperature_zero(metadata_);
  const AcceptanceRule rule = rule_at_temperature(metadata_, rule_);
  require_columns(batch, rule, temperature_zero);
  const bool has_logprobs = !batch.target_token_logprob.empty() && !batch.draft_token_logprob.empty();
  const bool as_sampled = stored_as_sampled(metadata_, options_) && !temperature_zero;
  if (has_logprobs) observe_logprobs(source, batch, out);
  if (!batch.draft_token_rank.empty()) observe_ranks(batch, out);

  std::vector<double> by_depth;
  if (has_logprobs && (as_sampled || rule == AcceptanceRule::rejection))
    by_depth = acceptance_by_logprobs(source, batch, out.surprisal);
  Bracketed& rejection = of_rule(out, AcceptanceRule::rejection);
  if (as_sampled && !batch.overlap.empty()) {
    rejection.lower = column(batch.size);
    out.d_lk.lower = column(batch.size);
    for (std::int64_t i = 0; i < batch.size; ++i) {
      rejection.lower[index(i)] = recorded_overlap(source, batch, i);
      out.d_lk.lower[index(i)] = 1 - rejection.lower[index(i)];
    }
  } else if (as_sampled && has_logprobs) {
    rejection.lower = at_first_depth(by_depth, batch);
  } else if (temperature_zero) {
    rejection = of_rule(out, AcceptanceRule::greedy);
  }

  if (rule == AcceptanceRule::rejection) {
    out.depths = batch.depths;
    out.acceptance.lower = std::move(by_depth);
    if (batch.overlap.empty()) return;
    out.mean_acceptance = rejection;
    out.acceptance_deviation = unknown_deviations(batch.size);
    for (std::int64_t i = 0; i < batch.size; ++i) {
      put_less_overlap(out.acceptance_deviation, i, out.acceptance.lower[index(i * batch.depths)],
                       rejection.lower[index(i)]);
    }
  } else {
    out.acceptance = of_rule(out, rule);
    if (rule == AcceptanceRule::greedy) out.mean_acceptance = out.acceptance;
  }
}

}  // namespace specdec::estimate
