#pragma once

#include <cstdint>
#include <vector>

#include "analysis/core/normal_interval.hpp"
#include "analysis/estimate/estimate.hpp"
#include "sim/decoding.hpp"
#include "sim/model_factory.hpp"

/// Data for figures of the validation: theory against simulation without dependence on the prefix, and samples of
/// the distribution test.
namespace specdec::validation {

/// A target and a draft law over one vocabulary.
struct LawPair {
  std::vector<double> target, draft;
};

/// Two laws with a given acceptance rate: p falls as 1/(1 + x), and q = p + w (r - p) with r the same law reversed.
///
///   sum min(p, q) = 1 - w TV(p, r),   w = (1 - alpha) / TV(p, r)
///
/// @param alpha  [1 - TV(p, r), 1]; 0.4 is within that from 16 tokens on
/// @param vocab  tokens, [2, 65536]
/// @throws std::domain_error if a value is outside its range
/// Accuracy: the rate is met to 1e-12
LawPair laws_of_rate(double alpha, std::int64_t vocab);

/// Eq. (1) compared with rounds of Algorithm 1 on a fixed pair of laws.
struct TokensCheck {
  double alpha = 0;
  std::int64_t gamma = 0;
  std::int64_t rounds = 0;
  /// Tokens per step.
  double expected = 0, measured = 0;
  /// Standard error of `measured`; rounds are independent.
  double standard_error = 0;
  /// (measured - expected) / standard error
  double deviation() const { return (measured - expected) / standard_error; }
  /// 95% normal interval of `measured`.
  estimate::Interval interval() const {
    const double half = core::normal_half_width_95 * standard_error;
    return {measured - half, measured + half};
  }
};

struct TokensCheckOptions {
  /// (0, 1) each, as for laws_of_rate.
  std::vector<double> alphas = {0.5, 0.7, 0.9};
  /// [1, 32] each.
  std::vector<std::int64_t> gammas = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  /// Rounds of each check, rounded up to whole sequences of 1024; [1, 1e9].
  std::int64_t rounds = 200'000;
  std::int64_t vocab = 256;
  std::uint64_t seed = 1;
  std::int64_t threads = 1;
};

/// Every rate with every gamma, rates in the outer loop; each check has its own random numbers.
/// @throws std::domain_error if a value is outside its range
std::vector<TokensCheck> check_tokens_per_step(const TokensCheckOptions& options);

/// A mistake for the distribution test to catch: Algorithm 1, but a rejected draft is replaced by a token of p instead
/// of norm(max(0, p - q)), so that tokens that the draft overrates occur too often.
sim::Verdict verify_without_subtracting(const sim::DraftedBlock& block, const sim::UniformSource& uniforms,
                                        std::int64_t round);

/// The transforms of emitted tokens, each uniform on [0, 1] and independent of the others for a correct sampler.
struct TransformSample {
  std::vector<double> by_ratio, by_probability;
};

/// Decodes texts, scores them afresh and transforms every emitted token, like validate(). Sequence s continues
/// prompt s mod (number of prompts).
/// @param tokens   rounded up to whole texts of decoding.max_new_tokens, >= 1
/// @param threads  sequences processed together, [1, 1024]; the result does not depend on it
/// @throws std::domain_error, std::invalid_argument as decode_speculatively, or without a prompt
TransformSample sample_transforms(const sim::ModelPair& models, const std::vector<sim::Prompt>& prompts,
                                  const sim::DecodingOptions& decoding, std::int64_t tokens, std::uint64_t seed,
                                  std::int64_t threads);

/// F_n(u) - u, with F_n the share of values at or below u.
struct UniformDeviation {
  /// In increasing order: a regular grid over [0, 1], and both sides of the step with the largest deviation.
  std::vector<double> u, deviation;
};

/// @param values  in [0, 1], at least one; they are sorted in place
/// @param points  grid points, >= 2
UniformDeviation deviation_from_uniform(std::vector<double>& values, std::int64_t points);

}  // namespace specdec::validation
