#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/planning/serving_engine.hpp"

/// Settings that make a serving engine accept drafts at random, for benchmarks whose prompts accept nothing as real
/// ones do.
namespace specdec::planning {

/// The figure by which an engine accepts.
enum class SyntheticForm {
  law,    ///< P(the first j drafts are accepted) for every j
  length  ///< the mean alone: every round accepts one of the two whole numbers next to it
};
/// "law", "length".
std::string_view name_of(SyntheticForm form);

/// An engine's settings, and what it accepts with them.
struct SyntheticSettings {
  Engine engine = Engine::vllm;
  SyntheticForm form = SyntheticForm::law;
  /// Keys of a JSON object (vllm), variables of the environment (sglang, trtllm) or command-line options (llamacpp),
  /// one per line. Empty if the engine cannot be made to.
  std::string text;
  /// P(the first j drafts of a round are all accepted), j = 1 .. gamma, by the numbers as written.
  std::vector<double> survival;
  /// The total variation between accepted drafts per round of the law and of the engine, [0, 1].
  double total_variation = 0;
  /// Points that need attention, one sentence each.
  std::vector<std::string> notes;
};

/// 1 + sum of the survival: tokens per step, the bonus token included, in [1, gamma + 1].
double tokens_per_step(std::span<const double> survival);
/// The standard deviation of accepted drafts per round, >= 0.
double accepted_deviation(std::span<const double> survival);
/// max over sets of rounds' numbers of accepted drafts of the difference of their probabilities, [0, 1]:
///
///   1/2 sum over n = 0 .. gamma of |P(n) - Q(n)|,   P(n) = S(n) - S(n + 1), S(0) = 1, S(gamma + 1) = 0
///
/// @throws std::invalid_argument if the two differ in length
double accepted_total_variation(std::span<const double> p, std::span<const double> q);

/// The settings by which the engine accepts by the law, or by its mean where it takes no more:
///
///   vllm      rejection_sample_method synthetic with synthetic_acceptance_rates, the survival
///   sglang    SGLANG_SIMULATE_ACC_LEN = tokens per step, drawn anew for every round and the same for all requests of
///             it
///   trtllm    TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS = tokens per step - 1
///   llamacpp  --spec-synth-rates, the survival
///
/// Source:   the engines' own descriptions; docs/reference/formats.md#synthetic-acceptance
/// @param survival  P(the first j drafts are all accepted), j = 1 .. gamma, in [0, 1], not rising; at least one
/// @throws std::invalid_argument if survival is empty; std::domain_error if it is not a survival function
SyntheticSettings synthetic_settings(Engine engine, std::span<const double> survival);

}  // namespace specdec::planning
