#include "cli/validate.hpp"

#include "cli/files.hpp"
#include "cli/given_options.hpp"
#include "cli/progress.hpp"
#include "cli/sampling_options.hpp"
#include "cli/shipped_models.hpp"
#include "cli/shown_text.hpp"
#include "cli/terminal.hpp"
#include "cli/usage_error.hpp"
#include "cli/validate_output.hpp"
#include "cli/values.hpp"
#include "sim/decoding.hpp"
#include "sim/validation/validate.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <thread>

namespace specdec::cli {

using namespace render;
namespace {

struct ValidateOptions {
  planner::CheckpointPair::Paths paths;
  std::optional<std::string> tasks;
  std::string temperature = "0,1";
  std::string gamma = "2,4,8";
  SamplingCuts cuts;
  std::int64_t tokens = validation::Options{}.tokens;
  std::int64_t max_new_tokens = validation::Options{}.max_new_tokens;
  std::int64_t timed_prompts = validation::Options{}.timed_prompts;
  std::int64_t seed = 1;
  std::int64_t threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);
  bool show = false;
  std::optional<std::string> prompt;
  std::int64_t show_tokens = 48;
};

/// @param option  that gives the tokens, which hold the drafts and `beside` more
std::vector<std::int64_t> gammas(const std::string& list, std::string_view option, std::int64_t tokens,
                                 std::int64_t beside) {
  std::vector<std::int64_t> values;
  for (const std::string& part : listed("--gamma", list)) values.push_back(parse_integer("--gamma", part, 1, 1024));
  const std::int64_t largest = *std::max_element(values.begin(), values.end());
  if (largest + beside > tokens) {
    refuse(option, fmt::format("{}", tokens),
           fmt::format("at least {}, for the drafts of --gamma {}{}", largest + beside, list,
                       beside > 0 ? " and the token behind them" : ""));
  }
  return values;
}

std::vector<double> temperatures(const std::string& list) {
  std::vector<double> values;
  for (const std::string& part : listed("--temperature", list))
    values.push_back(parse_number("--temperature", part, {.lo = 0, .hi = 1000}));
  return values;
}

ShownText one_empty_step() {
  ShownText shown;
  shown.text.steps.emplace_back();
  shown.steps.emplace_back();
  return shown;
}

Report run_validation(const ValidateOptions& options, bool quiet) {
  validation::Options run;
  run.temperatures = temperatures(options.temperature);
  run.gammas = gammas(options.gamma, "--max-new-tokens", options.max_new_tokens, 1);
  run.tokens = options.tokens;
  run.max_new_tokens = options.max_new_tokens;
  run.sampling = options.cuts.at(1);
  run.timed_prompts = options.timed_prompts;
  run.seed = static_cast<std::uint64_t>(options.seed);
  run.threads = options.threads;
  const planner::CheckpointPair pair(options.paths, shipped_models());
  const planner::CheckpointPair::Prompts prompts =
      pair.prompts(listed("--tasks", options.tasks), pair.longest_prompt(options.max_new_tokens));
  const validation::Report found =
      validation::validate(pair.models(), prompts.kept, run, progress_line("validating", quiet));

  Report report;
  report.json = validation_json(found);
  report.rows_of_empty["steps"] = steps_json(one_empty_step()).front();
  report.files = facts_of(pair.files());
  report.assumptions = pair.assumptions();
  report.spoken = spoken(found);
  report.exit_code = found.passed ? success : check_failed;
  if (found.tests < found.planned_tests)
    report.warnings.push_back(
        {"tests_without_data", fmt::format("{} of {} tests had too few tokens and were not made; "
                                           "--tokens sets their number",
                                           found.planned_tests - found.tests, found.planned_tests)});
  if (options.timed_prompts == 0)
    report.warnings.push_back({"not_timed", "c, verify_factor, overhead and speedup need --timed-prompts above 0"});
  prompts.warn_of_cut(report.warnings);
  return report;
}

Report show_figure(const ValidateOptions& options) {
  ShownTextOptions show;
  show.paths = options.paths;
  show.tasks = options.tasks;
  show.prompt = options.prompt;
  show.temperature = temperatures(options.temperature).back();
  show.gamma = gammas(options.gamma, "--show-tokens", options.show_tokens, 0).back();
  show.cuts = options.cuts;
  show.tokens = options.show_tokens;
  show.tokens_option = "--show-tokens";
  show.seed = options.seed;
  show.threads = options.threads;
  ShownText shown = decode_shown_text(show);

  const bool colour = is_colour_terminal();
  Report report;
  report.json = empty_validation_json();
  report.json["show"] = {{"prompt", visible(shown.prompt)},
                         {"temperature", show.temperature},
                         {"gamma", show.gamma},
                         {"tokens", shown.text.counters.tokens}};
  report.json["steps"] = steps_json(shown);
  report.warnings.push_back({"not_validated", "--show draws one text and tests nothing"});
  report.spoken.note = fmt::format("{}\n\n{}\n{} tokens by {} runs of the target, gamma = {}, temperature {}.\n{}\n",
                            visible(shown.prompt), figure_of_steps(shown.steps, colour), shown.text.counters.tokens,
                            shown.text.counters.steps, show.gamma, show.temperature, figure_legend(colour));
  report.files = std::move(shown.files);
  report.assumptions = std::move(shown.assumptions);
  return report;
}

void require_one_question(const ValidateOptions& values, const Options& options) {
  const auto refuse_each = [&](std::initializer_list<const char*> names, std::string_view why) {
    for (const char* const name : names) refuse_given({{name, options.is_given(name)}}, why);
  };
  if (!values.show) return refuse_each({"--prompt", "--show-tokens"}, "goes with --show only");
  refuse_each({"--tokens", "--max-new-tokens", "--timed-prompts"}, "--show draws one text and tests nothing");
  if (values.prompt) refuse_each({"--tasks"}, "--prompt is the text to continue");
  // Models of the user's own need prompts beside them.
  if (values.prompt && !values.paths.target) refuse_each({"--prompts"}, "--prompt is the text to continue");
}

std::function<Report()> setup(Options& options) {
  const auto values = std::make_shared<ValidateOptions>();
  options.group("Models and prompts");
  options.text("--target", values->paths.target, "DIR",
               "folder of the target's checkpoint (default: the shipped pair)");
  options.text("--draft", values->paths.draft, "DIR",
               "folder of the draft's, of that vocabulary or with a d2t; or n-gram tables: unigram or bigram for the "
               "shipped ones, unigram:FILE or bigram:FILE for others");
  options.text("--prompts", values->paths.prompts, "FILE",
               "JSON lines: \"task\", and \"text\" (with tokenizer.model beside the target) or \"tokens\"; or a .txt, "
               "one text a line");
  options.group("What to run");
  options.text("--tasks,--task", values->tasks, "LIST", "tasks of the prompts, separated by commas (default: all)");
  options.text("--temperature", values->temperature, "LIST", "temperatures, 0 for greedy decoding");
  options.text("-k,--gamma,--num-speculative-tokens", values->gamma, "LIST", "drafted tokens per step");
  values->cuts.declare(options);
  options.integer("--tokens", values->tokens, {.lo = 1, .hi = 1'000'000'000},
                  "tokens per configuration, rounded up to whole sequences");
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
    require_one_question(*values, options);
    if (values->show) return show_figure(*values);
    return run_validation(*values, options.quiet());
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
