#include "cli/validate.hpp"

#include "cli/checkpoint_pair.hpp"
#include "cli/progress.hpp"
#include "cli/step_figure.hpp"
#include "cli/usage_error.hpp"
#include "cli/validate_output.hpp"
#include "cli/values.hpp"
#include "sim/decoding.hpp"
#include "sim/validation/validate.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

namespace specdec::cli {
namespace {

using nlohmann::ordered_json;
using sim::Token;

struct ValidateOptions {
  CheckpointPair::Paths paths;
  std::optional<std::string> tasks;
  std::string temperature = "0,1";
  std::string gamma = "2,4,8";
  std::int64_t top_k = 0;
  double top_p = 1;
  std::int64_t tokens = validation::Options{}.tokens;
  std::int64_t max_new_tokens = validation::Options{}.max_new_tokens;
  std::int64_t timed_prompts = validation::Options{}.timed_prompts;
  std::int64_t seed = 1;
  std::int64_t threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);
  bool show = false;
  std::optional<std::string> prompt;
  std::int64_t show_tokens = 48;
};

std::vector<std::int64_t> gammas(const std::string& list, std::int64_t largest) {
  std::vector<std::int64_t> values;
  for (const std::string& part : listed("--gamma", list))
    values.push_back(parse_integer("--gamma", part, 1, std::min<std::int64_t>(largest, 1024)));
  return values;
}

std::vector<double> temperatures(const std::string& list) {
  std::vector<double> values;
  for (const std::string& part : listed("--temperature", list))
    values.push_back(parse_number("--temperature", part, {.lo = 0, .hi = 1000}));
  return values;
}

Report run_validation(const ValidateOptions& options, bool quiet) {
  validation::Options run;
  run.temperatures = temperatures(options.temperature);
  // A step of gamma drafts and one more token fits into a sequence.
  run.gammas = gammas(options.gamma, options.max_new_tokens - 1);
  run.tokens = options.tokens;
  run.max_new_tokens = options.max_new_tokens;
  run.top_k = options.top_k;
  run.top_p = options.top_p;
  run.timed_prompts = options.timed_prompts;
  run.seed = static_cast<std::uint64_t>(options.seed);
  run.threads = options.threads;
  const CheckpointPair pair(options.paths);
  const CheckpointPair::Prompts prompts =
      pair.prompts(listed("--tasks", options.tasks), pair.longest_prompt(options.max_new_tokens));
  const validation::Report found =
      validation::validate(pair.models(), prompts.kept, run, progress_line("validating", quiet));

  Report report;
  report.json = validation_json(found);
  report.files = pair.files();
  report.assumptions = pair.assumptions();
  report.text = validation_text(found);
  report.exit_code = found.passed ? success : check_failed;
  if (found.tests < found.planned_tests)
    report.warnings.push_back(
        {"tests_without_data", fmt::format("{} of {} tests had too few tokens and were not made; "
                                           "--tokens sets their number",
                                           found.planned_tests - found.tests, found.planned_tests)});
  if (options.timed_prompts == 0)
    report.warnings.push_back({"not_timed", "c, verify_factor, overhead and speedup need --timed-prompts above 0"});
  prompts.warn_of_cut(report);
  return report;
}

std::vector<Token> shown_prompt(const ValidateOptions& options, const CheckpointPair& pair) {
  const std::int64_t longest = pair.longest_prompt(options.show_tokens);
  if (!options.prompt) return pair.prompts(listed("--tasks", options.tasks), longest).kept.front().tokens;
  const std::vector<Token> tokens = pair.tokenizer().encode(*options.prompt, true);
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

ordered_json steps_json(const sim::Generation& text, const std::vector<FigureStep>& steps) {
  ordered_json list = ordered_json::array();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool rejected = text.steps[i].rejected >= 0;
    list.push_back({{"drafted", text.steps[i].drafted},
                    {"accepted", text.steps[i].accepted},
                    {"accepted_text", visible(steps[i].accepted)},
                    {"rejected_text", rejected ? ordered_json(visible(steps[i].rejected)) : ordered_json()},
                    {"target_text", visible(steps[i].extra)}});
  }
  return list;
}

Report show_figure(const ValidateOptions& options) {
  const CheckpointPair pair(options.paths);
  const sim::Tokenizer& tokenizer = pair.tokenizer();
  const std::vector<Token> prompt = shown_prompt(options, pair);
  const sim::OwnedModel target = pair.models().target(options.threads);
  const sim::OwnedModel draft = pair.models().draft(options.threads);
  sim::DecodingOptions decoding;
  decoding.gamma = gammas(options.gamma, options.show_tokens).back();
  decoding.max_new_tokens = options.show_tokens;
  decoding.standardisation = {
      .temperature = temperatures(options.temperature).back(), .top_k = options.top_k, .top_p = options.top_p};
  const sim::RandomStream stream(static_cast<std::uint64_t>(options.seed), 0);
  const sim::Generation text = sim::decode_speculatively(target.ref(), draft.ref(), prompt, decoding, stream);
  const std::vector<FigureStep> steps = figure_steps(text, tokenizer);

  const bool colour = is_colour_terminal();
  Report report;
  report.json = empty_validation_json();
  report.json["show"] = {{"prompt", visible(tokenizer.decode(prompt))},
                         {"temperature", decoding.standardisation.temperature},
                         {"gamma", decoding.gamma},
                         {"tokens", text.counters.tokens}};
  report.json["steps"] = steps_json(text, steps);
  report.warnings.push_back({"not_validated", "--show draws one text and tests nothing"});
  report.files = pair.files();
  report.assumptions = pair.assumptions();
  report.text =
      fmt::format("{}\n\n{}\n{} tokens by {} runs of the target, gamma = {}, temperature {}.\n{}\n",
                  visible(tokenizer.decode(prompt)), figure_of_steps(steps, colour), text.counters.tokens,
                  text.counters.steps, decoding.gamma, decoding.standardisation.temperature, figure_legend(colour));
  return report;
}

std::function<Report()> setup(Options& options) {
  const auto values = std::make_shared<ValidateOptions>();
  options.group("Models and prompts");
  options.text("--target", values->paths.target, "DIR",
               "folder of the target's checkpoint (default: the shipped pair)");
  options.text("--draft", values->paths.draft, "DIR",
               "folder of the draft's, with the same vocabulary; or n-gram tables: unigram or bigram for the shipped "
               "ones, unigram:FILE or bigram:FILE for others");
  options.text("--prompts", values->paths.prompts, "FILE",
               "JSON lines: \"task\", and \"text\" (with tokenizer.model beside the target) or \"tokens\"; or a .txt, "
               "one text a line");
  options.group("What to run");
  options.text("--tasks,--task", values->tasks, "LIST", "tasks of the prompts, separated by commas (default: all)");
  options.text("--temperature", values->temperature, "LIST", "temperatures, 0 for greedy decoding");
  options.text("-k,--gamma,--num-speculative-tokens", values->gamma, "LIST", "drafted tokens per step");
  options.integer("--top-k", values->top_k, {.lo = 0}, "keep the K most probable tokens; 0 keeps all");
  options.number("--top-p", values->top_p, {.lo = 0, .hi = 1, .lo_open = true}, "keep this share of the probability");
  options.integer("--tokens", values->tokens, {.lo = 1, .hi = 1'000'000'000}, "tokens per configuration");
  options.integer("--max-new-tokens", values->max_new_tokens, {.lo = 2, .hi = 1'000'000}, "tokens per sequence");
  options.integer("--timed-prompts", values->timed_prompts, {.lo = 0, .hi = 1'000'000},
                  "prompts per configuration that are decoded for the clock; 0 measures no time");
  options.integer("--seed", values->seed, {}, "seed of all random numbers");
  options.integer("--threads", values->threads, {.lo = 1, .hi = 1024},
                  "sequences at a time; threads of a model while the clock runs");
  options.group("Figure 1");
  options.flag("--show", values->show, "draw the steps over one prompt instead, at the last temperature and gamma");
  options.text("--prompt", values->prompt, "TEXT", "text to continue (default: the first prompt of the tasks)");
  options.integer("--show-tokens", values->show_tokens, {.lo = 1, .hi = 1'000'000}, "tokens to draw");
  options.footer(
      "specdec validate\n"
      "specdec validate --target big --draft small --prompts prompts.jsonl --gamma 3,5\n"
      "specdec validate --show --task code --gamma 5");
  return [values, &options] {
    if (values->prompt && !values->show) throw UsageError("--prompt goes with --show");
    if (values->show) return show_figure(*values);
    return run_validation(*values, options.effective().at("quiet").get<bool>());
  };
}

}  // namespace

Command validate_command() {
  return {"validate",
          "Run Algorithm 1 on a pair of transformers and hold it against theory",
          {{"configurations", "/configurations"},
           {"checks", "/checks"},
           {"distribution-tests", "/distribution_tests"},
           {"steps", "/steps"}},
          setup};
}

}  // namespace specdec::cli
