#include "analysis/cost/round_law.hpp"

#include <numbers>

namespace specdec::cost {
namespace {

using Eigen::Index;

/// The usual size of a term: its median share of the iteration (of the last two the inverse tokens), and the standard
/// deviation of its logarithm over servers. Those of a speculative round and of a draft are each family's own.
///
/// Fitted with the laws below to the published rounds that docs/validation.md#rounds-that-others-published names as
/// developed on, for the best density of what was left out. The tokens that meet experts are those of published
/// mixtures: their experts over those that a token takes, 4 to 51. A prompt's token costs what one beyond the knee
/// does.
constexpr std::array<LogNormal, cost_terms> usual_terms = {{{1, 10},
                                                            {0.0016, 1.4},
                                                            {2.7e-6, 1.2},
                                                            {},
                                                            {0.001, 1.5},
                                                            {},
                                                            {0.0014, 1.2},
                                                            {0.0011, 1.5},
                                                            {0.03, 2},
                                                            {0.0018, 1},
                                                            {0.0018, 0.9},
                                                            {0.05, 0.8}}};
/// The distances over which the residual changes.
constexpr double batch_length = 1.4, gamma_length = 0.9, context_length = 1, least_context = 500;

double cubed(double x) { return x * x * x; }

}  // namespace

Place place_of(const ObservedRound& run, const std::function<double(double gamma)>& mean_drafts) {
  const bool may_be_shorter = mean_drafts && run.gamma > 0 && !run.tree;
  return {may_be_shorter ? mean_drafts(run.gamma) : run.gamma, run.batch, *run.context, run.prompt_tokens, run.tree};
}

// Of chains |ln((gamma + 1) / (gamma' + 1))|; trees are as far as depth and verified tokens are, and their width.
Coordinates coordinates_of(const Place& place) {
  Coordinates at;
  at << std::log(place.batch) / batch_length, std::log(place.gamma + 1) / (std::numbers::sqrt2 * gamma_length),
      std::log(place.verified) / (std::numbers::sqrt2 * gamma_length), std::log(place.width) / gamma_length,
      std::log(place.context + least_context) / context_length;
  return at;
}

double covariance(const Place& a, const Place& b) {
  if (a.drafts() != b.drafts()) return 0;
  const double of_tree = a.is_same_tree(b) ? tree_size * tree_size : 0;
  return of_tree +
         residual_size * residual_size * std::exp(-0.5 * (coordinates_of(a) - coordinates_of(b)).squaredNorm());
}

TermSeconds RoundLaw::amounts(const Place& at) const {
  const double passes = draft_passes(kind, at.gamma);
  const double drafted = passes == 0 ? 0 : (passes - 1) * at.width + longest_draft_pass(kind, at.gamma);
  const double drafts = at.drafts() ? 1 : 0;
  TermSeconds amounts{};
  amounts[sequence] = at.batch;
  amounts[context_token] = knows_contexts ? at.batch * at.context : 0;
  amounts[speculative_round] = drafts;
  amounts[sequence_of_round] = drafts * at.batch;
  amounts[draft_pass] = at.gamma;
  amounts[drafted_token] = drafted * at.batch;
  amounts[verified_token] = at.tokens();
  amounts[prompt_token] = at.prompt_tokens;
  return amounts;
}

TermSeconds RoundLaw::seconds(const LogTerms& log_terms, const Place& at) const {
  TermSeconds seconds = amounts(at);
  const double scale = std::exp(log_terms[iteration]);
  seconds[iteration] = scale * std::cbrt(1 + cubed(at.tokens() * std::exp(log_terms[knee])));
  seconds[experts] = -std::expm1(-at.tokens() * std::exp(log_terms[expert_tokens]));
  for (std::size_t j = 1; j < knee; ++j)
    if (seconds[j] != 0) seconds[j] *= scale * std::exp(log_terms[static_cast<Index>(j)]);
  return seconds;
}

RoundTime RoundLaw::time(const LogTerms& log_terms, const Place& at) const {
  const TermSeconds parts = seconds(log_terms, at);
  RoundTime time{.target = parts[iteration] + parts[sequence] + parts[context_token] + parts[verified_token] +
                           parts[experts] + parts[prompt_token],
                 .draft = parts[drafted_token],
                 .overhead = parts[speculative_round] + parts[sequence_of_round]};
  (looks_up(kind) ? time.target : time.draft) += parts[draft_pass];
  return time;
}

TermPriors priors_of(const RoundPrior& family, double log_seconds) {
  TermPriors priors;
  for (std::size_t j = 0; j < cost_terms; ++j) {
    const LogNormal& usual = j == speculative_round ? family.fixed
                             : j == draft_pass      ? family.per_draft
                                                    : usual_terms[j];
    priors.means[static_cast<Index>(j)] = std::log(usual.median);
    priors.spreads[static_cast<Index>(j)] = usual.spread;
  }
  priors.means[iteration] = log_seconds;
  return priors;
}

}  // namespace specdec::cost
