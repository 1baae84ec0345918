#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/decoding.hpp"
#include "sim/model_factory.hpp"
#include "sim/validation/report.hpp"

namespace specdec::validation {

/// The decoder under test; sim::decode_speculatively, or a wrong one that must be detected.
using Decoder = std::function<sim::Generation(sim::LanguageModel& target, sim::LanguageModel& draft,
                                              std::span<const sim::Token> prompt, const sim::DecodingOptions& options,
                                              const sim::UniformSource& uniforms)>;

/// The runs: every task of the prompts with every temperature and every gamma.
struct Options {
  std::vector<double> temperatures{0, 1};
  std::vector<std::int64_t> gammas{2, 4, 8};
  /// Tokens per configuration, rounded up to whole sequences; at temperature 0 at most one sequence per prompt.
  std::int64_t tokens = 8'192;
  std::int64_t max_new_tokens = 128;
  /// Sampling of both models; its temperature is replaced by each of `temperatures`.
  core::Standardisation sampling = {};
  /// Prompts per configuration that are decoded for timing, plainly and speculatively; 0 measures no time.
  std::int64_t timed_prompts = 3;
  std::uint64_t seed = 1;
  /// Sequences decoded together; for timing, threads of each model.
  std::int64_t threads = 1;
  Decoder decoder = sim::decode_speculatively;
};

/// Receives the share of work done, in [0, 1].
using Progress = std::function<void(double share)>;

/// The false-alarm rate of a whole run, divided among its tests.
inline constexpr double run_level = 5e-4;
/// Slots with fewer tokens than this are not tested.
inline constexpr std::int64_t least_tokens = 100;
/// Deviations with a smaller variance than this (in units of one step, draft or token squared) are not tested.
inline constexpr double least_variance = 25;

/// Runs the decoder and compares it with theory, see docs/validation.md. Everything except the timing is a function of
/// models, prompts and options without `threads`, bit for bit.
///
/// @param prompts  at least one; each has at least one token and fits the models with max_new_tokens after it
/// @throws std::invalid_argument if the models' vocabularies differ or there is no prompt
/// @throws std::domain_error if an option is out of range; anything that the models throw
Report validate(const sim::ModelPair& models, std::span<const sim::Prompt> prompts, const Options& options,
                const Progress& progress = {});

}  // namespace specdec::validation
