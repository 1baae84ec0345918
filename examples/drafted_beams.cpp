// Beam search with a draft on a pair of checkpoints: how often the target's beams are among the draft's, what a round
// makes of it, and what theory says of that.
//
// usage: example_drafted_beams MODELS [PROMPTS [TOKENS]]
//   MODELS    a folder with target/, draft/ and prompts.jsonl, as sim/models
//   PROMPTS   how many of its prompts, evenly from the file [24]
//   TOKENS    steps of each search [32]
// prints one line per pair of widths: the share of judged steps that were kept, steps per round and those of Eq. (1) at
// that share, prefixes that the target scores over those of plain search, and the speedup at c = the ratio of
// operations times u / w; exits with 1 if a beam or a score differs from plain search

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/theory/other_systems.hpp"
#include "sim/beam_search.hpp"
#include "sim/transformer/checkpoint.hpp"
#include "sim/transformer/tokenizer.hpp"
#include "sim/transformer/transformer.hpp"
#include "traces/formats/prompts.hpp"

namespace {

namespace fs = std::filesystem;
using namespace specdec;
using Prompts = std::vector<std::vector<sim::Token>>;

/// The first tokens of prompts that stand evenly in the file.
Prompts some_prompts(const fs::path& models, std::size_t count) {
  const auto tokenizer = sim::Tokenizer::load(models / "target/tokenizer.model");
  const std::vector<traces::Prompt> all = traces::read_prompts(models / "prompts.jsonl");
  Prompts prompts;
  for (std::size_t i = 0; i < std::min(count, all.size()); ++i) {
    prompts.push_back(tokenizer.encode(all[i * all.size() / count].text, true));
    prompts.back().resize(std::min<std::size_t>(prompts.back().size(), 48));
  }
  return prompts;
}

int run(const fs::path& models, std::size_t prompt_count, std::int64_t tokens) {
  sim::Transformer target(sim::load_checkpoint(models / "target"));
  sim::Transformer draft(sim::load_checkpoint(models / "draft"));
  const Prompts prompts = some_prompts(models, prompt_count);
  const double c_hat = draft.operations_per_token() / target.operations_per_token();
  constexpr std::int64_t gamma = 3;
  constexpr std::int64_t widths[][2] = {{1, 1}, {2, 2}, {2, 4}, {2, 8}, {4, 4}, {4, 8}, {4, 16}};
  std::int64_t different = 0;
  std::printf(" w   u  kept  steps/round  closed  evaluations  speedup\n");
  for (const auto& [w, u] : widths) {
    const sim::BeamSearchOptions options{.width = w, .max_new_tokens = tokens};
    sim::Counters plain, drafted;
    for (const std::vector<sim::Token>& prompt : prompts) {
      const sim::BeamSearch expected = search_beams(target, prompt, options);
      const sim::BeamSearch found = search_beams_speculatively(target, draft, prompt, options, {u, gamma});
      different += found.beams != expected.beams;
      plain.merge(expected.counters);
      drafted.merge(found.counters);
    }
    // A step is judged if those before it were kept.
    std::int64_t judged = 0;
    for (std::size_t j = 0; j < drafted.drafted_at.size(); ++j)
      judged += j == 0 ? drafted.drafted_at[0] : std::min(drafted.accepted_at[j - 1], drafted.drafted_at[j]);
    const double kept = static_cast<double>(drafted.accepted) / static_cast<double>(judged);
    const double c = c_hat * static_cast<double>(u) / static_cast<double>(w);
    const theory::SpeculativeBeams closed = theory::speculative_beams(core::AcceptanceRate(kept), w, u, gamma, c);
    const double steps = static_cast<double>(drafted.tokens) / static_cast<double>(drafted.steps);
    const double evaluations =
        static_cast<double>(drafted.target_positions) / static_cast<double>(plain.target_positions);
    std::printf("%2d  %2d  %.2f  %11.2f  %6.2f  %11.2f  %7.2f\n", static_cast<int>(w), static_cast<int>(u), kept, steps,
                closed.tokens, evaluations, steps / (1 + c * static_cast<double>(gamma)));
  }
  std::printf("%s\n", different == 0 ? "all beams are those of plain search" : "SOME BEAMS DIFFER FROM PLAIN SEARCH");
  return different == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count < 2 || count > 4) throw std::invalid_argument("usage: example_drafted_beams MODELS [PROMPTS [TOKENS]]");
    const int prompts = count > 2 ? std::stoi(arguments[2]) : 24;
    const int tokens = count > 3 ? std::stoi(arguments[3]) : 32;
    if (prompts < 1 || tokens < 1) throw std::invalid_argument("PROMPTS and TOKENS must be positive");
    return run(arguments[1], static_cast<std::size_t>(prompts), tokens);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "example_drafted_beams: %s\n", error.what());
    return 2;
  }
}
