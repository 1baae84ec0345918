#pragma once

#include <Eigen/Dense>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>

#include "analysis/cost/fitted_cost.hpp"
#include "analysis/cost/round_cost.hpp"
#include "analysis/cost/round_priors.hpp"

namespace specdec::cost {

// A header of the library's own sources; it is not installed.

enum Term : std::size_t {
  iteration,
  sequence,
  context_token,
  speculative_round,
  sequence_of_round,
  draft_pass,
  drafted_token,
  verified_token,
  experts,
  prompt_token,
  knee,
  expert_tokens
};

constexpr Eigen::Index terms_of_a_round = static_cast<Eigen::Index>(cost_terms);
/// Logarithms: of the iteration's seconds, of the other seconds' shares of it, and of 1 / knee and 1 / expert_tokens.
using LogTerms = Eigen::Matrix<double, terms_of_a_round, 1>;
/// Seconds by term; those of the knee and of expert_tokens are 0, being part of the iteration and of the experts.
using TermSeconds = std::array<double, cost_terms>;

/// Shares by which batches and contexts may differ and still be compared.
inline constexpr double same_point = 0.05;
inline bool same(double a, double b) { return std::abs(a - b) <= same_point * std::max(a, b); }

/// Where a round is priced.
struct Place {
  double gamma = 0, batch = 1, context = 0;
  /// Prompt tokens of other requests, per round.
  double prompt_tokens = 0;
  /// Sequences that a pass of the draft but the first goes on with, and positions verified of each sequence.
  double width = 1, verified = 1;

  Place() = default;
  Place(double its_gamma, double its_batch, double its_context, double prompts = 0,
        const std::optional<DraftTree>& tree = std::nullopt)
      : gamma(its_gamma),
        batch(its_batch),
        context(its_context),
        prompt_tokens(prompts),
        width(tree ? static_cast<double>(tree->top_k) : 1),
        verified(tree ? static_cast<double>(tree->verified) : its_gamma + 1) {}

  bool drafts() const { return gamma > 0; }
  double tokens() const { return verified * batch; }
  bool is_same_tree(const Place& other) const {
    return width > 1 && gamma == other.gamma && width == other.width && verified == other.verified;
  }
};

/// @param run          with its context
/// @param mean_drafts  as in FitOptions; may be empty
Place place_of(const ObservedRound& run, const std::function<double(double gamma)>& mean_drafts);

/// Where two places are in the distances over which the residual changes.
using Coordinates = Eigen::Matrix<double, 5, 1>;
Coordinates coordinates_of(const Place& place);

/// The residual's standard deviation; and that of the logarithm of what a tree's rounds take beyond all terms, at every
/// batch alike: masks and the choice of nodes.
inline constexpr double residual_size = 0.07, tree_size = 0.1;

/// Covariance of the residual at two places.
double covariance(const Place& a, const Place& b);

/// The tokens of a pass beyond which llama.cpp multiplies quantised weights by another kernel, and the standard
/// deviation of the logarithm of what that changes.
///
/// Source:   ggml-cuda/mmvq.cu, ggml-vulkan.cpp and ggml-metal-ops.cpp of August 2026; docs/theory.md#cost-of-a-round
inline constexpr double kernel_width = 8, kernel_step = 0.4;

/// The law of a round's time given its terms.
struct RoundLaw {
  DraftKind kind = DraftKind::model;
  bool knows_contexts = false;
  /// Whether kernels change beyond kernel_width.
  bool has_kernel_step = false;

  /// kernel_step where the kernel is the other one, else 0.
  double step(const Place& at) const { return has_kernel_step && at.tokens() > kernel_width ? kernel_step : 0; }
  /// What each term's seconds are multiplied by; 0 for those of the iteration, the experts and their two counts.
  TermSeconds amounts(const Place& at) const;
  TermSeconds seconds(const LogTerms& log_terms, const Place& at) const;
  RoundTime time(const LogTerms& log_terms, const Place& at) const;
};

/// The priors of the terms' logarithms in one family of servers; that of the iteration is nearly flat about `seconds`.
struct TermPriors {
  LogTerms means, spreads;
};
TermPriors priors_of(const RoundPrior& family, double log_seconds);

}  // namespace specdec::cost
