#include "analysis/estimate/observing.hpp"

#include <cmath>
#include <vector>

#include "analysis/core/parallel.hpp"

namespace specdec::estimate {

using namespace observing;

namespace {

struct TopKPosition {
  TopKBounds bounds;
  double overlap = unknown;  // as recorded
  ListedDeviations deviations;
};

Interval overlap_of(const TopKPosition& position) {
  return std::isnan(position.overlap) ? position.bounds.overlap : exactly(position.overlap);
}

/// By the lists, or where they hold no token whatever is emitted, by the overlap, if that and the emitted tokens'
/// probabilities were recorded.
void put_acceptance_deviation(const TopKPosition& position, AcceptanceRule rule, bool has_token_logprobs,
                              std::int64_t i, Deviations& to) {
  if (rule == AcceptanceRule::greedy) return;
  const ListedDeviation& listed =
      rule == AcceptanceRule::rejection ? position.deviations.acceptance : position.deviations.first;
  if (!std::isnan(listed.value)) {
    put(to, i, listed.value, listed.variance);
  } else if (rule == AcceptanceRule::rejection && has_token_logprobs) {
    const Interval& a = position.bounds.acceptance;
    if (a.lo == a.hi) put_less_overlap(to, i, a.lo, position.overlap);
  }
}

/// a_t under the rule.
Interval acceptance_of(const TopKBounds& bounds, AcceptanceRule rule, std::int64_t token) {
  if (rule == AcceptanceRule::greedy) return truth_value(bounds.target_argmax == bounds.draft_argmax);
  if (rule == AcceptanceRule::rejection) return bounds.acceptance;
  return token < 0 ? anything : truth_value(token == bounds.draft_argmax);
}

}  // namespace

void Observer::observe_top_k(const PositionSource& source, const PositionBatch& batch, Observations& out) {
  const double tolerance = options_.tolerance.value_or(top_k_tolerance);
  std::vector<TopKPosition> positions(index(batch.size));
  core::for_each_index(batch.size, options_.threads, [&](std::int64_t i, std::int64_t worker) {
    TopKPosition& position = positions[index(i)];
    const TopKPair pair = pair_at(batch, metadata_.vocab_size, i);
    if (const auto fault = workspaces_[index(worker)]->bounder.bounds(pair, tolerance, position.bounds)) {
      throw source.refusal(batch.first + i, fault->role, fault->found, fault->expected);
    }
    if (position.bounds.target_token_probability.hi == 0 && !forgives_impossible_tokens()) {
      throw impossible_token(source, batch, i);
    }
    position.overlap = recorded_overlap(source, batch, i);
    if (pair.token >= 0) position.deviations = workspaces_[index(worker)]->bounder.deviations(pair);
  });

  const AcceptanceRule rule = rule_at_temperature(metadata_, rule_);
  const bool as_sampled = stored_as_sampled(metadata_, options_);
  const std::int64_t n = batch.size;
  for (Bracketed* bracketed : {&out.acceptance, &of_rule(out, AcceptanceRule::greedy)}) bracketed->lower = column(n);
  out.surprisal = out.draft_token_probability = column(n);
  Bracketed& rejection = of_rule(out, AcceptanceRule::rejection);
  Bracketed& greedy_draft = of_rule(out, AcceptanceRule::greedy_draft);
  greedy_draft.lower = column(n);
  if (as_sampled) rejection.lower = out.d_lk.lower = out.draft_top_probability = column(n);
  const bool tested = as_sampled && !batch.token.empty();
  if (tested) out.acceptance_deviation = out.surprisal_deviation = unknown_deviations(n);
  const bool token_logprobs = !batch.target_token_logprob.empty() && !batch.draft_token_logprob.empty();
  for (std::int64_t i = 0; i < n; ++i) {
    const TopKPosition& position = positions[index(i)];
    const TopKBounds& bounds = position.bounds;
    const std::int64_t token = batch.token.empty() ? -1 : batch.token[index(i)];
    const Interval overlap = overlap_of(position);
    put(out.acceptance, i, acceptance_of(bounds, rule, token));
    put(of_rule(out, AcceptanceRule::greedy), i, truth_value(bounds.target_argmax == bounds.draft_argmax));
    if (as_sampled) {
      put(rejection, i, overlap);
      put(out.d_lk, i, {1 - overlap.hi, 1 - overlap.lo});
      out.draft_top_probability[index(i)] = bounds.draft_max;
    }
    if (tested) {
      put_acceptance_deviation(position, rule, token_logprobs, i, out.acceptance_deviation);
      const ListedDeviation& surprisal = position.deviations.surprisal;
      put(out.surprisal_deviation, i, surprisal.value, surprisal.variance);
    }
    // If the sampled p(argmax q) is not recorded, the indicator that the token was the draft's first has the same mean.
    put(greedy_draft, i,
        as_sampled ? bounds.target_at_draft_argmax : acceptance_of(bounds, AcceptanceRule::greedy_draft, token));
    const Interval& p = bounds.target_token_probability;
    const Interval& q = bounds.draft_token_probability;
    if (p.lo == p.hi) out.surprisal[index(i)] = -std::log(p.lo);
    if (q.lo == q.hi) out.draft_token_probability[index(i)] = q.lo;
  }
  if (at_temperature_zero(metadata_)) rejection = of_rule(out, AcceptanceRule::greedy);
  if (as_sampled || rule == AcceptanceRule::greedy) out.mean_acceptance = of_rule(out, rule);
}

}  // namespace specdec::estimate
