#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

/// The serving engines, their releases, and what these can do.
namespace specdec::planning {

enum class Engine { vllm, sglang, trtllm, llamacpp };

/// "vllm", "sglang", "trtllm", "llamacpp".
std::string_view name_of(Engine engine);
/// "vLLM", "SGLang", "TensorRT-LLM", "llama.cpp".
std::string_view title_of(Engine engine);
std::optional<Engine> engine_named(std::string_view name);

/// A release, ordered as its numbers are: a candidate before the final one, and that before its post-releases.
struct EngineRelease {
  static constexpr std::int64_t final_candidate = std::numeric_limits<std::int64_t>::max();

  /// Major, minor and micro number; of llama.cpp the build's number alone.
  std::array<std::int64_t, 3> numbers = {};
  std::int64_t candidate = final_candidate;
  std::int64_t post = 0;

  friend bool operator==(const EngineRelease&, const EngineRelease&) = default;
  friend bool operator<(const EngineRelease& a, const EngineRelease& b) {
    return std::tie(a.numbers, a.candidate, a.post) < std::tie(b.numbers, b.candidate, b.post);
  }
};

/// Reads "0.24", "v0.24.0", "1.3.0rc27" or "0.5.12.post1", of llama.cpp "b9134", "v9134" or "9134"; empty for
/// anything else, as for the names of llama.cpp's releases ("v0.5.0"), which do not say their build.
std::optional<EngineRelease> engine_release(Engine engine, std::string_view text);
/// An example of what engine_release() reads.
std::string_view release_example(Engine engine);
/// "vLLM 0.24.0", "llama.cpp b9134".
std::string title_of(Engine engine, const EngineRelease& release);

/// Features in which releases differ.
enum class EngineFeature {
  /// Another, smaller model drafts.
  draft_models,
  /// A model that drafts all tokens in one pass.
  parallel_drafts,
  /// The same with the drafts of DFlash, and of DSpark.
  dflash_drafts,
  dspark_drafts,
  /// Drafting heads on the target's states (EAGLE).
  heads,
  /// The target's own modules for the tokens behind the next one.
  next_token_modules,
  ngrams,
  /// Drafts that are sampled, and accepted with min(1, p / q).
  rejection_sampling,
  /// The draft length by batch; of SGLang of heads and modules alone.
  schedule,
  /// That of heads, modules and parallel drafts, with the names of the newer releases.
  current_names,
  /// The way drafts are sampled has a name of its own (vLLM: draft_sample_method).
  draft_sampling_named,
  /// The name is "probabilistic"; "gumbel" before.
  draft_sampling_probabilistic,
  /// Drafts that are accepted at random, for benchmarks.
  synthetic_acceptance,
  /// The same, keeping the draft's tokens instead of writing one token everywhere.
  synthetic_draft_tokens,
};

enum class Support { no, yes, not_known };

/// Releases with a feature: those before `unknown_from` and its candidates lack it, those from `with` on have it.
struct FeatureReleases {
  EngineRelease unknown_from, with;
};

/// Source:   the engines' source distributions and pull requests; docs/cli.md#releases-of-engines
/// @return empty if every release that was read has it
std::optional<FeatureReleases> releases_with(Engine engine, EngineFeature feature);

/// The oldest and the newest release whose sources were read.
struct ReadReleases {
  EngineRelease oldest, newest;
};
ReadReleases read_releases(Engine engine);

/// Releases above the newest that was read are taken for it; of those below the oldest nothing is known.
Support support(Engine engine, const EngineRelease& release, EngineFeature feature);

}  // namespace specdec::planning
