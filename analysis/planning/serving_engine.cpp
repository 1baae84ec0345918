#include "analysis/planning/serving_engine.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>

namespace specdec::planning {
namespace {

struct EngineFacts {
  Engine engine;
  std::string_view name, title, example;
  ReadReleases read;
};

constexpr EngineRelease of(std::int64_t major, std::int64_t minor, std::int64_t micro) {
  return {{major, minor, micro}};
}
constexpr EngineRelease candidate_of(std::int64_t major, std::int64_t minor, std::int64_t candidate) {
  return {{major, minor, 0}, candidate};
}
constexpr EngineRelease build_of(std::int64_t number) { return {{number, 0, 0}}; }

constexpr std::array<EngineFacts, 4> engines = {
    {{Engine::vllm, "vllm", "vLLM", "0.24.0", {of(0, 12, 0), of(0, 33, 0)}},
     {Engine::sglang, "sglang", "SGLang", "0.5.14", {of(0, 4, 6), of(0, 5, 23)}},
     {Engine::trtllm, "trtllm", "TensorRT-LLM", "1.3.0rc27", {of(1, 0, 0), candidate_of(1, 4, 1)}},
     {Engine::llamacpp, "llamacpp", "llama.cpp", "b9134", {build_of(6714), build_of(11480)}}}};

const EngineFacts& facts_of(Engine engine) { return engines[static_cast<std::size_t>(engine)]; }

struct FeatureFacts {
  Engine engine;
  EngineFeature feature;
  FeatureReleases releases;
};

/// A feature that none of the releases read before has, and the given one has.
constexpr FeatureReleases since(const EngineRelease& release) { return {release, release}; }

using F = EngineFeature;
constexpr FeatureFacts features[] = {
    {Engine::vllm, F::draft_models, {of(0, 15, 0), of(0, 16, 0)}},
    {Engine::vllm, F::parallel_drafts, {of(0, 15, 0), of(0, 16, 0)}},
    {Engine::vllm, F::dflash_drafts, since(of(0, 20, 0))},
    {Engine::vllm, F::dspark_drafts, since(of(0, 25, 0))},
    {Engine::vllm, F::rejection_sampling, since(of(0, 18, 0))},
    {Engine::vllm, F::draft_sampling_named, since(of(0, 21, 0))},
    {Engine::vllm, F::draft_sampling_probabilistic, since(of(0, 22, 0))},
    {Engine::vllm, F::schedule, since(of(0, 24, 0))},
    {Engine::vllm, F::synthetic_acceptance, since(of(0, 20, 0))},
    {Engine::sglang, F::draft_models, since(of(0, 5, 2))},
    {Engine::sglang, F::ngrams, since(of(0, 5, 3))},
    {Engine::sglang, F::parallel_drafts, since(of(0, 5, 11))},
    {Engine::sglang, F::dflash_drafts, since(of(0, 5, 11))},
    {Engine::sglang, F::dspark_drafts, since(of(0, 5, 16))},
    {Engine::sglang, F::rejection_sampling, since(of(0, 5, 14))},
    {Engine::sglang, F::schedule, since(of(0, 5, 14))},
    {Engine::sglang, F::synthetic_draft_tokens, since(of(0, 5, 15))},
    {Engine::trtllm, F::parallel_drafts, {of(1, 0, 0), candidate_of(1, 3, 27)}},
    {Engine::trtllm, F::dflash_drafts, {of(1, 0, 0), candidate_of(1, 3, 27)}},
    {Engine::trtllm, F::rejection_sampling, {of(1, 0, 0), candidate_of(1, 3, 27)}},
    {Engine::trtllm, F::schedule, {of(1, 1, 0), of(1, 2, 0)}},
    {Engine::trtllm, F::current_names, {candidate_of(1, 3, 0), candidate_of(1, 3, 27)}},
    {Engine::trtllm, F::synthetic_acceptance, {of(1, 0, 0), candidate_of(1, 3, 27)}},
    {Engine::llamacpp, F::current_names, {build_of(8888), build_of(9134)}},
    {Engine::llamacpp, F::ngrams, {build_of(8888), build_of(9134)}},
    {Engine::llamacpp, F::next_token_modules, {build_of(9173), build_of(9198)}},
    {Engine::llamacpp, F::heads, {build_of(9556), build_of(9621)}},
    {Engine::llamacpp, F::parallel_drafts, {build_of(9556), build_of(10734)}},
    {Engine::llamacpp, F::dflash_drafts, {build_of(9556), build_of(10734)}},
    {Engine::llamacpp, F::dspark_drafts, {build_of(9556), build_of(10734)}},
    {Engine::llamacpp, F::synthetic_acceptance, {build_of(10198), build_of(10734)}},
};

/// Takes a number from the front of the text.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.front() == '-') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<EngineRelease> build_number(std::string_view text) {
  if (!take(text, "b")) take(text, "v");
  const auto number = take_number(text);
  return number && text.empty() ? std::optional(build_of(*number)) : std::nullopt;
}

}  // namespace

std::string_view name_of(Engine engine) { return facts_of(engine).name; }
std::string_view title_of(Engine engine) { return facts_of(engine).title; }
std::string_view release_example(Engine engine) { return facts_of(engine).example; }
ReadReleases read_releases(Engine engine) { return facts_of(engine).read; }

std::optional<Engine> engine_named(std::string_view name) {
  const auto found = std::find_if(engines.begin(), engines.end(), [&](const auto& one) { return one.name == name; });
  return found == engines.end() ? std::nullopt : std::optional(found->engine);
}

std::optional<EngineRelease> engine_release(Engine engine, std::string_view text) {
  if (engine == Engine::llamacpp) return build_number(text);
  EngineRelease release;
  take(text, "v");
  for (std::size_t i = 0; i < release.numbers.size(); ++i) {
    if (i > 0 && !take(text, ".")) {
      if (i == 1) return std::nullopt;
      break;
    }
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    release.numbers[i] = *number;
  }
  std::int64_t* last = take(text, "rc") ? &release.candidate : take(text, ".post") ? &release.post : nullptr;
  if (last != nullptr) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    *last = *number;
  }
  return text.empty() ? std::optional(release) : std::nullopt;
}

std::string title_of(Engine engine, const EngineRelease& release) {
  const std::string_view title = title_of(engine);
  if (engine == Engine::llamacpp) return fmt::format("{} b{}", title, release.numbers[0]);
  std::string text = fmt::format("{} {}.{}.{}", title, release.numbers[0], release.numbers[1], release.numbers[2]);
  if (release.candidate != EngineRelease::final_candidate) text += fmt::format("rc{}", release.candidate);
  if (release.post > 0) text += fmt::format(".post{}", release.post);
  return text;
}

std::optional<FeatureReleases> releases_with(Engine engine, EngineFeature feature) {
  for (const FeatureFacts& facts : features) {
    if (facts.engine == engine && facts.feature == feature) return facts.releases;
  }
  return std::nullopt;
}

Support support(Engine engine, const EngineRelease& release, EngineFeature feature) {
  const auto releases = releases_with(engine, feature);
  if (release < read_releases(engine).oldest) return Support::not_known;
  if (!releases || !(release < releases->with)) return Support::yes;
  EngineRelease first_unknown = releases->unknown_from;
  first_unknown.candidate = std::min<std::int64_t>(first_unknown.candidate, 0);
  return release < first_unknown ? Support::no : Support::not_known;
}

}  // namespace specdec::planning
