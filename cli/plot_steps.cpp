#include "cli/plot_steps.hpp"

#include <fmt/format.h>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/files.hpp"
#include "cli/given_options.hpp"
#include "cli/sampling_options.hpp"
#include "cli/shipped_models.hpp"
#include "cli/terminal.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "planner/methods/checkpoint_pair.hpp"
#include "render/step_figure.hpp"
#include "render/text.hpp"
#include "sim/decoding.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using nlohmann::ordered_json;

/// The text to decode for Figure 1, and the settings for it.
struct ShownTextOptions {
  planner::CheckpointPair::Paths paths;
  std::optional<std::string> tasks;
  std::optional<std::string> prompt;  ///< the first one of the tasks where missing
  double temperature = 1;
  std::int64_t gamma = 4;
  SamplingCuts cuts;
  std::int64_t tokens = 48;
  std::int64_t seed = 1;
};

/// One text as Algorithm 1 decoded it.
struct ShownText {
  std::string prompt;
  sim::Generation text;
  std::vector<FigureStep> steps;  ///< as text, one for each of the text's
  std::vector<ordered_json> files;
  std::vector<Assumption> assumptions;
};

std::vector<sim::Token> shown_prompt(const ShownTextOptions& options, const planner::CheckpointPair& pair) {
  const std::int64_t longest = pair.longest_prompt(options.tokens, "--tokens");
  if (!options.prompt) return pair.prompts(listed("--tasks", options.tasks), longest).kept.front().tokens;
  std::vector<sim::Token> tokens = pair.tokenizer().encode(*options.prompt, true);
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

/// @throws UsageError, traces::FileError
ShownText decode_shown_text(const ShownTextOptions& options) {
  const planner::CheckpointPair pair(options.paths, shipped_models());
  const sim::Tokenizer& tokenizer = pair.tokenizer();
  const std::vector<sim::Token> prompt = shown_prompt(options, pair);
  const sim::OwnedModel target = pair.models().target(1);
  const sim::OwnedModel draft = pair.models().draft(1);
  sim::DecodingOptions decoding;
  decoding.gamma = options.gamma;
  decoding.max_new_tokens = options.tokens;
  decoding.standardisation = options.cuts.at(options.temperature);
  const sim::RandomStream stream(static_cast<std::uint64_t>(options.seed), 0);
  ShownText shown;
  shown.prompt = tokenizer.decode(prompt);
  shown.text = sim::decode_speculatively(*target, *draft, prompt, decoding, stream);
  shown.steps = figure_steps(shown.text, tokenizer);
  shown.files = facts_of(pair.files());
  shown.assumptions = pair.assumptions();
  return shown;
}

/// {"drafted", "accepted", "accepted_text", "rejected_text", "target_text"} of each step.
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

void declare(Options& options, ShownTextOptions& o) {
  options.group("Figure");
  options.text("--target", o.paths.target, "DIR", "folder of the target's checkpoint (default: the shipped pair)");
  options.text("--draft", o.paths.draft, "DIR", "folder of the draft's, or n-gram tables: unigram or bigram");
  options.text("--prompts", o.paths.prompts, "FILE", "JSON lines or a .txt, as validate takes them");
  options.text("--tasks,--task", o.tasks, "LIST", "tasks of the prompts, whose first one is continued");
  options.text("--prompt", o.prompt, "TEXT", "text to continue");
  options.integer("-k,--gamma,--num-speculative-tokens", o.gamma, {.lo = 1, .hi = 1024}, "drafted tokens per step");
  options.number("--temperature", o.temperature, {.lo = 0, .hi = 1000}, "0 for greedy decoding");
  o.cuts.declare(options);
  options.integer("--tokens", o.tokens, {.lo = 2, .hi = 1'000'000}, "tokens to decode");
  options.integer("--seed", o.seed, {.hi = unbounded}, "seed of all random numbers");
}

std::string summary_of(const ShownTextOptions& o, const ShownText& shown) {
  return fmt::format("{} tokens by {} runs of the target, gamma = {}, temperature {}", shown.text.counters.tokens,
                     shown.text.counters.steps, o.gamma, brief(o.temperature));
}

Report plot_steps(const ShownTextOptions& o, const Options& options) {
  const ordered_json given = options.effective();
  // Models of the user's own need prompts beside them.
  const bool prompts = options.is_given("--prompts") && !o.paths.target;
  if (o.prompt)
    refuse_given({{"--prompts", prompts}, {"--tasks", options.is_given("--tasks")}},
                 "--prompt is the text to continue");
  if (o.gamma >= o.tokens)
    throw UsageError(fmt::format("--gamma is {}, but must be below --tokens {}", o.gamma, o.tokens));
  const bool draws = !given.at("output").is_null() && given.at("output").get<std::string>().ends_with(".html");
  if (!given.at("output").is_null() && !draws && given.at("format") == "table")
    refuse("--output", given.at("output").get<std::string>(),
           "a file that ends in .html, or with --format json or csv any other");
  ShownText shown = decode_shown_text(o);
  Report report;
  report.json = {
      {"prompt", visible(shown.prompt)}, {"tokens", shown.text.counters.tokens}, {"steps", steps_json(shown)}};
  const std::string summary = summary_of(o, shown);
  if (draws) report.file = steps_page(shown.prompt, shown.steps, summary, options.command_line());
  const bool colour = is_colour_terminal();
  report.spoken.note =
      draws ? fmt::format("{}: {}.\n", visible(given.at("output").get<std::string>()), summary)
            : fmt::format("{}\n\n{}\n{}.\n{}\n\nAs a page: specdec plot steps --output steps.html\n",
                          visible(shown.prompt), figure_of_steps(shown.steps, colour), summary, figure_legend(colour));
  report.files = std::move(shown.files);
  report.assumptions = std::move(shown.assumptions);
  return report;
}

}  // namespace

Command plot_steps_command() {
  return {.name = std::string("plot ") + steps_figure_name,
          .summary = steps_figure_summary,
          .tables = {{"steps", "/steps"}},
          .setup = setup_of<ShownTextOptions>(plot_steps, declare)};
}

}  // namespace specdec::cli
