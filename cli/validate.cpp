#include "cli/commands.hpp"

#include "cli/files.hpp"
#include "cli/progress.hpp"
#include "cli/sampling_options.hpp"
#include "cli/shipped_models.hpp"
#include "cli/validate_output.hpp"
#include "cli/values.hpp"
#include "planner/methods/checkpoint_pair.hpp"
#include "sim/validation/validate.hpp"

#include <fmt/format.h>
#include <algorithm>

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
  std::int64_t threads = default_threads();
};

std::vector<std::int64_t> gammas(const ValidateOptions& options) {
  std::vector<std::int64_t> values;
  for (const std::string& part : listed("--gamma", options.gamma))
    values.push_back(parse_integer("--gamma", part, 1, 1024));
  const std::int64_t largest = *std::max_element(values.begin(), values.end());
  if (largest >= options.max_new_tokens) {
    refuse(
        "--max-new-tokens", fmt::format("{}", options.max_new_tokens),
        fmt::format("at least {}, for the drafts of --gamma {} and the token behind them", largest + 1, options.gamma));
  }
  return values;
}

std::vector<double> temperatures(const std::string& list) {
  std::vector<double> values;
  for (const std::string& part : listed("--temperature", list))
    values.push_back(parse_number("--temperature", part, {.lo = 0, .hi = 1000}));
  return values;
}

Report run_validation(const ValidateOptions& options, const Options& given) {
  validation::Options run;
  run.temperatures = temperatures(options.temperature);
  run.gammas = gammas(options);
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
      validation::validate(pair.models(), prompts.kept, run, progress_line("validating", given.quiet()));

  Report report;
  report.json = validation_json(found);
  report.files = facts_of(pair.files());
  report.assumptions = pair.assumptions();
  report.spoken = spoken(found);
  report.exit_code = found.passed ? success : check_failed;
  if (found.tests < found.planned_tests)
    report.warnings.push_back(
        {"tests_without_data", fmt::format("{} of {} tests had too few tokens and were not made; "
                                           "--tokens sets their number",
                                           found.planned_tests - found.tests, found.planned_tests)});
  prompts.warn_of_cut(report.warnings);
  return report;
}

void declare_validation(Options& options, ValidateOptions& values) {
  options.group("Models and prompts");
  options.text("--target", values.paths.target, "DIR", "folder of the target's checkpoint (default: the shipped pair)");
  options.text("--draft", values.paths.draft, "DIR",
               "folder of the draft's, of that vocabulary or with a d2t; or n-gram tables: unigram or bigram for the "
               "shipped ones, unigram:FILE or bigram:FILE for others");
  options.text("--prompts", values.paths.prompts, "FILE",
               "JSON lines: \"task\", and \"text\" (with tokenizer.model beside the target) or \"tokens\"; or a .txt, "
               "one text a line");
  options.group("What to run");
  options.text("--tasks,--task", values.tasks, "LIST", "tasks of the prompts, separated by commas (default: all)");
  options.text("--temperature", values.temperature, "LIST", "temperatures, 0 for greedy decoding");
  options.text("-k,--gamma,--num-speculative-tokens", values.gamma, "LIST", "drafted tokens per step");
  values.cuts.declare(options);
  options.integer("--tokens", values.tokens, {.lo = 1, .hi = 1'000'000'000},
                  "tokens per configuration, rounded up to whole sequences");
  options.integer("--max-new-tokens", values.max_new_tokens, {.lo = 2, .hi = 1'000'000}, "tokens per sequence");
  options.integer("--timed-prompts", values.timed_prompts, {.lo = 0, .hi = 1'000'000},
                  "prompts per configuration that are decoded for the clock; 0 measures no time");
  options.integer("--seed", values.seed, {.hi = unbounded}, "seed of all random numbers");
  options.integer("--threads", values.threads, {.lo = 1, .hi = 1024},
                  "sequences at a time; threads of a model while the clock runs");
  options.footer(
      "specdec validate\n"
      "specdec validate --target big --draft small --prompts prompts.jsonl --gamma 3,5");
}

}  // namespace

Command validate_command() {
  return {"validate",
          "Run Algorithm 1 on a pair of transformers and hold it against theory",
          {{"configurations", "/configurations"}, {"checks", "/checks"}, {"distribution-tests", "/distribution_tests"}},
          setup_of<ValidateOptions>(run_validation, declare_validation)};
}

}  // namespace specdec::cli
