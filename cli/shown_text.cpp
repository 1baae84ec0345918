#include "cli/shown_text.hpp"

#include <fmt/format.h>

#include "cli/files.hpp"
#include "cli/shipped_models.hpp"
#include "cli/values.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using nlohmann::ordered_json;
using sim::Token;

std::vector<Token> shown_prompt(const ShownTextOptions& options, const planner::CheckpointPair& pair) {
  const std::int64_t longest = pair.longest_prompt(options.tokens, options.tokens_option);
  if (!options.prompt) return pair.prompts(listed("--tasks", options.tasks), longest).kept.front().tokens;
  std::vector<Token> tokens = pair.tokenizer().encode(*options.prompt, true);
  const auto length = static_cast<std::int64_t>(tokens.size());
  if (length < 1 || length > longest)
    refuse("--prompt", fmt::format("{} tokens long", length), fmt::format("1 to {} tokens long", longest));
  return tokens;
}

std::vector<FigureStep> figure_steps(const sim::Generation& text, const sim::Tokenizer& tokenizer) {
  std::vector<FigureStep> steps;
  auto token = text.tokens.begin();
  for (const sim::Step& step : text.steps) {
    FigureStep& drawn = steps.emplace_back();
    for (std::int64_t j = 0; j < step.accepted; ++j) drawn.accepted += tokenizer.piece(*token++);
    if (step.rejected >= 0) drawn.rejected = tokenizer.piece(step.rejected);
    drawn.extra = tokenizer.piece(*token++);
  }
  return steps;
}

}  // namespace

ShownText decode_shown_text(const ShownTextOptions& options) {
  const planner::CheckpointPair pair(options.paths, shipped_models());
  const sim::Tokenizer& tokenizer = pair.tokenizer();
  const std::vector<Token> prompt = shown_prompt(options, pair);
  const sim::OwnedModel target = pair.models().target(options.threads);
  const sim::OwnedModel draft = pair.models().draft(options.threads);
  sim::DecodingOptions decoding;
  decoding.gamma = options.gamma;
  decoding.max_new_tokens = options.tokens;
  decoding.standardisation = options.cuts.at(options.temperature);
  const sim::RandomStream stream(static_cast<std::uint64_t>(options.seed), 0);
  ShownText shown;
  shown.prompt = tokenizer.decode(prompt);
  shown.text = sim::decode_speculatively(target.ref(), draft.ref(), prompt, decoding, stream);
  shown.steps = figure_steps(shown.text, tokenizer);
  shown.files = facts_of(pair.files());
  shown.assumptions = pair.assumptions();
  return shown;
}

ordered_json steps_json(const ShownText& shown) {
  ordered_json list = ordered_json::array();
  for (std::size_t i = 0; i < shown.steps.size(); ++i) {
    const sim::Step& step = shown.text.steps[i];
    const FigureStep& drawn = shown.steps[i];
    list.push_back({{"drafted", step.drafted},
                    {"accepted", step.accepted},
                    {"accepted_text", visible(drawn.accepted)},
                    {"rejected_text", step.rejected >= 0 ? ordered_json(visible(drawn.rejected)) : ordered_json()},
                    {"target_text", visible(drawn.extra)}});
  }
  return list;
}

}  // namespace specdec::cli
