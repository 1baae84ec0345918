#include "cli/method_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <thread>
#include <utility>

#include "cli/files.hpp"
#include "cli/interruption.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/progress.hpp"
#include "cli/trace_input.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "sim/validation/independent_rounds.hpp"

namespace specdec::cli {
namespace {

constexpr std::int64_t default_vocab = 64;
constexpr double default_noise = 1;
constexpr double largest_tree = 1024;
constexpr std::int64_t largest_bigram_vocab = 4096;
/// Where a precision ends the run.
constexpr std::int64_t most_tokens = 1'000'000'000'000;

/// What the laws of a synthetic source are: the user's word, else what the other options leave.
std::string laws_of(const MethodOptions& options) {
  if (options.laws) return *options.laws;
  if (options.alpha) return "iid";
  return options.vocab.value_or(default_vocab) > largest_bigram_vocab ? "fixed" : "bigram";
}

/// Refuses what belongs to another source or other laws than those that were chosen, or left to the default.
void require_source(const MethodOptions& options, const Options& given) {
  const auto refuse_with = [&](const char* choice, const std::string& chosen, bool fits,
                               std::initializer_list<const char*> names) {
    for (const char* const name : names)
      if (!fits && given.is_given(name))
        throw UsageError(fmt::format("{} does not go with {} {}", name, choice, chosen));
  };
  const bool synthetic = options.source == "synthetic";
  const bool recorded = options.source == "trace";
  refuse_with("--source", options.source, options.source == "pair",
              {"--target", "--draft-model", "--prompts", "--tasks", "--ngram-text", "--eagle-head", "--parallel-heads",
               "--exits"});
  const auto require_source_of = [&](const std::string& source, std::initializer_list<const char*> names) {
    for (const char* const name : names)
      if (given.is_given(name) && !given.is_given("--source"))
        throw UsageError(fmt::format("{} needs --source {}", name, source));
    refuse_with("--source", options.source, options.source == source, names);
  };
  require_source_of("synthetic", {"--vocab", "--noise", "--laws", "--alpha"});
  require_source_of("trace", {"--trace"});
  refuse_with("--source", options.source, !recorded,
              {"--tokens", "--until-error", "--temperature", "--max-new-tokens"});
  if (recorded && !options.trace) throw UsageError("--source trace needs --trace, a recording");
  if (!synthetic) return;
  const std::string laws = laws_of(options);
  if (laws == "iid" && !options.alpha) throw UsageError("--laws iid needs --alpha, the acceptance of every draft");
  refuse_with("--laws", laws, laws == "iid", {"--alpha"});
  refuse_with("--laws", laws, laws != "iid", {"--vocab", "--noise", "--temperature"});
  if (laws == "bigram" && options.vocab > largest_bigram_vocab)
    refuse("--vocab", fmt::format("{}", *options.vocab),
           fmt::format("at most {} for --laws bigram", largest_bigram_vocab));
}

/// "--verifier lenient, typical; --policy threshold", in `compare` without dashes: what looks at a parameter, at most 6
/// of a kind. Policies only where a method has one that could be another.
std::string other_users(bool validation::ParametersUsed::*parameter, const std::vector<validation::Method>& methods,
                        bool by_options) {
  constexpr std::size_t most_named = 6;
  std::string text;
  const auto add = [&](const char* kind, std::vector<std::string> names) {
    if (names.empty()) return;
    const std::size_t more = names.size() - std::min(names.size(), most_named);
    names.resize(names.size() - more);
    text += fmt::format("{}{}{} {}", text.empty() ? "" : "; ", by_options ? "--" : "", kind, fmt::join(names, ", "));
    if (more > 0) text += fmt::format(" and {} more", more);
  };
  const validation::ParameterUsers users = validation::users_of(parameter);
  const auto is_tree = [](const validation::Method& method) {
    return method.verifier != nullptr && method.verifier->tree != nullptr;
  };
  add("draft", users.drafts);
  add("verifier", users.verifiers);
  if (!std::ranges::all_of(methods, is_tree)) add("policy", users.policies);
  add("system", users.systems);
  return text;
}

/// Refuses a temperature that the methods' text does not have; true where it is the one that it has.
bool is_of_greedy_text(const std::vector<validation::Method>& methods, double temperature) {
  const auto greedy = std::ranges::find_if(methods, [](const validation::Method& method) {
    return method.verifier != nullptr && method.verifier->greedy_text;
  });
  if (greedy == methods.end()) return false;
  if (temperature == 0) return true;
  throw UsageError(fmt::format("--temperature is {}, but must be 0: the text of {} is that of temperature 0",
                               temperature, name_of(*greedy)));
}

/// Refuses what none of the methods looks at.
void require_used(const MethodOptions& options, const Options& given, const std::vector<validation::Method>& methods,
                  const validation::MethodContext& context) {
  using validation::ParametersUsed;
  constexpr std::pair<const char*, bool ParametersUsed::*> parameters[] = {
      {"--gamma", &ParametersUsed::gamma},
      {"--temperature", &ParametersUsed::temperature},
      {"--lenience", &ParametersUsed::lenience},
      {"--epsilon", &ParametersUsed::epsilon},
      {"--delta", &ParametersUsed::delta},
      {"--threshold", &ParametersUsed::threshold},
      {"--most-drafts", &ParametersUsed::most_drafts},
      {"--schedule", &ParametersUsed::schedule},
      {"--batch", &ParametersUsed::schedule},
      {"--drafts", &ParametersUsed::drafts},
      {"--tree", &ParametersUsed::tree},
      {"--tree-nodes", &ParametersUsed::tree_nodes},
      {"--tree-acceptance", &ParametersUsed::tree_acceptance},
      {"--ngram-order", &ParametersUsed::ngram_order},
      {"--ngram-text", &ParametersUsed::texts},
      {"--exit-layer", &ParametersUsed::exit_layer},
      {"--exit-response", &ParametersUsed::exit_response},
      {"--exit-saturation", &ParametersUsed::exit_saturation},
      {"--inner-gamma", &ParametersUsed::inner_gamma},
      {"--edit-share", &ParametersUsed::edit_share},
      {"--beams", &ParametersUsed::beams},
      {"--draft-beams", &ParametersUsed::draft_beams},
      {"--c", &ParametersUsed::cost},
      {"--verify-factor", &ParametersUsed::cost},
      {"--overhead", &ParametersUsed::cost},
      {"--draft-model", &ParametersUsed::draft_model},
      {"--eagle-head", &ParametersUsed::eagle_head},
      {"--parallel-heads", &ParametersUsed::parallel_heads},
      {"--exits", &ParametersUsed::exits},
  };
  std::vector<std::string> names;
  for (const validation::Method& method : methods) names.push_back(name_of(method));
  for (const auto& [option, parameter] : parameters) {
    // A target of the user's own needs a draft model beside it, whoever drafts.
    if (!given.is_given(option) || (parameter == &ParametersUsed::draft_model && options.paths.target)) continue;
    bool used = false;
    for (const validation::Method& method : methods) used = used || uses(method, context, parameter);
    if (!used && parameter == &ParametersUsed::cost && context.source().recording)
      throw UsageError(fmt::format("{} is given, but a recording does not tell how far {} {} behind a rejected token",
                                   option, fmt::join(names, ", "), names.size() == 1 ? "drafts" : "draft"));
    if (used || (parameter == &ParametersUsed::temperature && is_of_greedy_text(methods, options.settings.temperature)))
      continue;
    throw UsageError(fmt::format("{} is given, but {} {} not use it; what does: {}", option, fmt::join(names, ", "),
                                 names.size() == 1 ? "does" : "do",
                                 other_users(parameter, methods, given.effective().contains("verifier"))));
  }
  const auto in_rounds = [&](const validation::Method& method) { return runs_in_rounds(method, context); };
  if (given.is_given("--max-new-tokens") && std::ranges::all_of(methods, in_rounds))
    throw UsageError(fmt::format("--max-new-tokens is given, but {} {} in rounds without texts on --laws {}",
                                 fmt::join(names, ", "), names.size() == 1 ? "runs" : "run", laws_of(options)));
}

validation::MethodSource pair_source(const MethodOptions& options, Report& report) {
  CheckpointPair pair(options.paths);
  const CheckpointPair::Prompts prompts =
      pair.prompts(listed("--tasks", options.tasks), pair.longest_prompt(options.settings.max_new_tokens));
  const CheckpointPair::Heads heads = pair.read_heads(options.heads);
  report.assumptions = pair.assumptions();
  report.files = pair.files();
  prompts.warn_of_cut(report);
  validation::MethodSource source;
  source.models = pair.models();
  source.target_weights = pair.target_weights();
  source.draft_weights = pair.draft_weights();
  source.eagle_head = heads.eagle_head;
  source.parallel_heads = heads.parallel_heads;
  source.exits = heads.exits;
  source.prompts = prompts.kept;
  if (options.ngram_text) {
    source.texts = pair.texts(*options.ngram_text);
    report.files.push_back(file_facts("--ngram-text", *options.ngram_text));
  } else {
    for (const sim::Prompt& prompt : source.prompts) source.texts.push_back(prompt.tokens);
  }
  if (!options.paths.target) {
    source.unigram = CheckpointPair::table_model("unigram");
    source.bigram = CheckpointPair::table_model("bigram");
  }
  return source;
}

validation::MethodSource source_of(const MethodOptions& options, Report& report) {
  if (options.source == "pair") return pair_source(options, report);
  if (options.source == "trace") {
    report.assumptions = {
        {"trace", *options.trace, "user"},
        {"steps at the ends of texts", "drafting and charged for only what the text has left", "default"}};
    report.files.push_back(file_facts("--trace", *options.trace));
    validation::MethodSource source;
    source.recording = [files = std::vector<std::filesystem::path>{*options.trace}] {
      return traces::open_trace(files);
    };
    return source;
  }
  const std::string laws = laws_of(options);
  report.assumptions = {{"laws", laws, options.laws ? "user" : "default"}};
  if (laws == "iid") {
    report.assumptions.push_back({"alpha", *options.alpha, "user"});
    validation::MethodSource source;
    source.alpha = core::AcceptanceRate(*options.alpha);
    return source;
  }
  const std::int64_t vocab = options.vocab.value_or(default_vocab);
  const double noise = options.noise.value_or(default_noise);
  report.assumptions.push_back({"vocab", vocab, options.vocab ? "user" : "default"});
  report.assumptions.push_back({"noise", noise, options.noise ? "user" : "default"});
  const auto seed = static_cast<std::uint64_t>(options.seed);
  return laws == "fixed" ? validation::fixed_source(vocab, noise, seed)
                         : validation::synthetic_source(vocab, noise, seed);
}

/// The user's trees into the settings.
void set_trees(const MethodOptions& options, validation::MethodSettings& settings) {
  const auto sides = split(options.tree, 'x');
  if (sides.size() != 2) refuse("--tree", options.tree, "CxD, C children of every node and D levels");
  settings.tree_children = parse_integer("C in --tree", sides[0], 1, 64);
  settings.tree_depth = parse_integer("D in --tree", sides[1], 1, 64);
  double nodes = 1;
  for (std::int64_t level = 0; level < settings.tree_depth; ++level)
    nodes = nodes * static_cast<double>(settings.tree_children) + 1;
  if (nodes > largest_tree) refuse("--tree", options.tree, fmt::format("of {:.0f} nodes at most", largest_tree));
  if (!options.tree_acceptance) return;
  settings.tree_acceptance.clear();
  double rest = 1;
  double least = 1;
  for (const std::string_view part : split(*options.tree_acceptance, ',')) {
    const double rate = parse_number("--tree-acceptance", part, {.lo = 0, .hi = 1});
    rest -= rate;
    if (rate > least || rest < -1e-9)
      refuse("--tree-acceptance", *options.tree_acceptance, "probabilities that do not rise, of sum 1 at most");
    least = rate;
    settings.tree_acceptance.push_back(rate);
  }
}

void set_beams(const MethodOptions& options, validation::MethodSettings& settings) {
  settings.draft_beams = options.draft_beams.value_or(2 * settings.beams);
  if (settings.draft_beams < settings.beams)
    refuse("--draft-beams", fmt::format("{}", settings.draft_beams),
           fmt::format("at least --beams, {}", settings.beams));
}

void set_schedule(const MethodOptions& options, validation::MethodSettings& settings) {
  if (!options.schedule) {
    if (options.batch) throw UsageError("--batch is given, but needs --schedule beside it");
    return;
  }
  settings.batch = options.batch.value_or(1);
  const std::vector<planning::ScheduleStretch> schedule = parse_schedule(*options.schedule);
  for (const planning::ScheduleStretch& stretch : schedule)
    settings.schedule.push_back({stretch.batch_low, stretch.gamma});
  if (settings.batch > schedule.back().batch_high)
    refuse("--batch", fmt::format("{}", settings.batch),
           fmt::format("at most {}, where --schedule ends", schedule.back().batch_high));
}

/// The user's cost, else the ratio of operations as c, else nothing, with a warning.
std::optional<core::StepCost> cost_of(const MethodOptions& options, const validation::MethodContext& context,
                                      Report& report) {
  std::optional<core::StepCost> cost = options.cost.cost();
  const char* chosen_by = "user";
  if (!cost) {
    chosen_by = "default";
    if (const std::optional<double> ratio = validation::operations_ratio(context))
      cost = options.cost.times().with_c(*ratio);
  }
  if (!cost) {
    report.warnings.push_back({"no_cost", "the speedup needs --c, since the source tells no operations"});
    return cost;
  }
  report.assumptions.push_back({"c", cost->c, chosen_by});
  for (const Assumption& assumption : options.cost.times().assumptions()) report.assumptions.push_back(assumption);
  append(report.warnings, options.cost.times().warnings());
  return cost;
}

void warn_of_deviations(const std::vector<validation::MethodResult>& results, Report& report) {
  // A right sampler is further away once in 150,000 rows.
  constexpr double much = 4.5;
  for (const validation::MethodResult& r : results)
    // Of beams the closed form assumes what steps are not, independent.
    if (r.method.keeps() != validation::Keeps::beams && std::abs(r.deviation_standard_errors.value_or(0)) > much)
      report.warnings.push_back(
          {"deviates",
           fmt::format("{}{}: accepted drafts are {:.1f} standard errors from the closed form", name_of(r.method),
                       r.task.empty() ? "" : " on " + r.task, *r.deviation_standard_errors)});
}

void warn_of_other_beams(const std::vector<validation::MethodResult>& results, Report& report) {
  for (const validation::MethodResult& r : results)
    if (r.task.empty() && r.different_beams.value_or(0) > 0)
      report.warnings.push_back(
          {"beams_differ",
           fmt::format("{}: in {} of {} sequences the beams are not those of plain search, as they must "
                       "be; the target's rows depend on more than the prefix",
                       name_of(r.method), *r.different_beams, r.sequences)});
}

/// Runs the methods; Ctrl-C ends that early, and the report says so.
void run_until_interrupted(const validation::MethodContext& context, const std::vector<validation::Method>& methods,
                           const Progress& progress, MethodRuns& runs) {
  const Interruption interruption;
  validation::ComparedMethods compared = validation::compare(context, methods, {progress, Interruption::requested});
  if (compared.results.empty()) throw UsageError("interrupted before a sequence was finished");
  runs.results = std::move(compared.results);
  runs.partial = compared.interrupted;
  append(runs.report.warnings, compared.notes);
  runs.tokens = compared.tokens;
  runs.seconds = compared.seconds;
  if (compared.interrupted) {
    const auto rows = std::ranges::count(runs.results, std::string(), &validation::MethodResult::task);
    runs.report.warnings.push_back(
        {"partial", fmt::format("interrupted: {} of {} methods were begun, and {} is cut off", rows, methods.size(),
                                name_of(methods[static_cast<std::size_t>(rows) - 1]))});
    return;
  }
  for (const validation::Method& method : compared.imprecise)
    runs.report.warnings.push_back(
        {"imprecise", fmt::format("{}: --tokens were used up before --until-error was reached", name_of(method))});
}

}  // namespace

MethodOptions::MethodOptions() {
  paths.draft_option = "--draft-model";
  settings.threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);
}

void MethodOptions::declare_source(Options& options) {
  options.group("Source");
  options.choice("--source", source, {"pair", "synthetic", "trace"},
                 "a pair of models and prompts, a random table pair, or a recording");
  options.text("--target", paths.target, "DIR", "folder of the target's checkpoint (default: the shipped pair)");
  options.text("--draft-model", paths.draft, "DIR",
               "folder of the draft model's, with the same vocabulary, or n-gram tables");
  options.text("--prompts", paths.prompts, "FILE", "JSON lines or a .txt, as for specdec validate");
  options.text("--tasks,--task", tasks, "LIST", "tasks of the prompts, separated by commas (default: all)");
  options.text("--ngram-text", ngram_text, "FILE",
               "texts that n-grams are counted in, as --prompts (default: the prompts themselves)");
  options.text("--eagle-head", heads.eagle_head, "FILE",
               "head trained on the target, of the draft eagle (default: the shipped target's)");
  options.text("--parallel-heads", heads.parallel_heads, "FILE", "heads trained on it, of parallel and blockwise");
  options.text("--exits", heads.exits, "FILE", "exits trained on it, of early-exit, calm and calm-saturation");
  options.choice("--laws", laws, {"bigram", "fixed", "iid"},
                 "of a synthetic source: by the token before, the same everywhere, or acceptances alone\n"
                 "[iid with --alpha, fixed above 4096 tokens, else bigram]");
  options.integer("--vocab", vocab, {.lo = 2, .hi = std::int64_t{1} << 20}, "tokens of the synthetic vocabulary [64]");
  options.number("--noise", noise, {.lo = 0, .hi = 100}, "of the synthetic draft, in logits; 0 is the target [1]");
  options.text("--trace", trace, "FILE",
               "the recording that methods are replayed over, in any format of specdec replay");
  options.number("--alpha", alpha, {.lo = 0, .hi = 1}, "acceptance of every draft, for --laws iid");
}

void MethodOptions::declare_settings(Options& options) {
  options.group("Parameters");
  options.integer("-k,--gamma,--num-speculative-tokens", settings.gamma, {.lo = 1, .hi = 1024},
                  "drafted tokens per step, the first one's under the policy heuristic");
  options.number("--temperature", settings.temperature, {.lo = 0, .hi = 1000}, "of both models, 0 for greedy decoding");
  options.number("--lenience", settings.lenience, {.lo = 0, .hi = 1, .lo_open = true}, "l of the lenient verifiers");
  options.number("--epsilon", settings.epsilon, {.lo = 0, .hi = 1}, "of typical acceptance");
  options.number("--delta", settings.delta, {.lo = 0, .hi = 1}, "of typical acceptance");
  options.number("--threshold", settings.threshold, {.lo = 0, .hi = 1}, "of threshold, product and confidence");
  options.integer("--most-drafts", settings.most_drafts, {.lo = 1, .hi = 1024},
                  "drafted tokens per step at most of oracle and known-beta");
  options.text("--schedule", schedule, "LOW-HIGH:GAMMA,...", "gammas by batch, of the policy batch");
  options.integer("--batch,--concurrency", batch, {.lo = 1}, "the batch that it looks up [1]");
  options.integer("--beams", settings.beams, {.lo = 1, .hi = 1024}, "w of beam: the texts that it keeps");
  options.integer("--draft-beams", draft_beams, {.lo = 1, .hi = 1 << 20},
                  "u of it: those that its draft keeps, at least w [2 w]");
  options.integer("--drafts", settings.drafts, {.lo = 1, .hi = 64}, "chains of recursive and k-sequential");
  options.text("--tree", tree, "CxD", "C children of every node, D levels: of tree and static-tree");
  options.integer("--tree-nodes", settings.tree_nodes, {.lo = 2, .hi = 1024},
                  "of optimal-tree, and at most of best-tree; the root is one");
  options.text("--tree-acceptance", tree_acceptance, "A,B,...",
               "how often the child of each rank is the accepted one: what trees are planned\nfor, and these two "
               "made for [the shipped pair's]");
  options.integer("--ngram-order", settings.ngram_order, {.lo = 1, .hi = 64},
                  "tokens of the n-grams, and of the longest suffix that copy looks up");
  options.integer("--exit-layer", settings.exit_layer, {.lo = 1, .hi = 1024}, "blocks of the draft early-exit");
  options.number("--exit-response", settings.exit_response, {.lo = 0, .hi = 1}, "threshold of calm");
  options.number("--exit-saturation", settings.exit_saturation, {.lo = 0, .hi = 1}, "threshold of calm-saturation");
  options.integer("--inner-gamma", settings.inner_gamma, {.lo = 0, .hi = 1024},
                  "tokens that hierarchical's inner draft proposes at a time");
  options.number("--edit-share", settings.edit_share, {.lo = 0, .hi = 1},
                 "of the tokens of input-copy's input, how many are replaced");
  options.group("What to run");
  options.integer("--tokens", tokens, {.lo = 1, .hi = most_tokens},
                  "tokens per method, rounded up to whole sequences; 1e9 is understood\n[4608; with --until-error "
                  "what it takes]");
  options.number("--until-error", settings.until_relative_error, {.lo = 0, .hi = 1, .lo_open = true},
                 "end a method where tokens per step are known to this share of them (half of the 95% interval)");
  options.integer("--max-new-tokens", settings.max_new_tokens, {.lo = 2, .hi = 1'000'000}, "tokens per sequence");
  options.integer("--seed", seed, {}, "seed of all random numbers");
  options.integer("--threads", settings.threads, {.lo = 1, .hi = 1024}, "sequences at a time");
  cost.declare(options, "[ratio of operations]");
}

MethodRuns run_methods(
    const MethodOptions& options, const Options& given, const std::string& doing,
    const std::function<std::vector<validation::Method>(const validation::MethodContext&)>& methods) {
  require_source(options, given);
  MethodRuns runs;
  const validation::MethodSource source = source_of(options, runs.report);
  validation::MethodSettings settings = options.settings;
  settings.seed = static_cast<std::uint64_t>(options.seed);
  if (options.tokens || settings.until_relative_error) settings.tokens = options.tokens.value_or(most_tokens);
  set_trees(options, settings);
  set_schedule(options, settings);
  set_beams(options, settings);
  const validation::MethodContext context(source, settings);
  settings.cost = cost_of(options, context, runs.report);
  const std::vector<validation::Method> chosen = methods(context);
  if (chosen.empty()) throw UsageError("algorithm1: " + lacking({}, context));
  require_used(options, given, chosen, context);
  runs.trees = validation::planned_trees(chosen, settings);
  run_until_interrupted(context, chosen, progress_line(doing, given.quiet()), runs);
  warn_of_deviations(runs.results, runs.report);
  warn_of_other_beams(runs.results, runs.report);
  const auto prompts = static_cast<std::int64_t>(source.prompts.size());
  if (const std::int64_t sequences = runs.results.front().sequences; sequences < prompts)
    runs.report.warnings.push_back(
        {"prompts_left_out", fmt::format("--tokens asks for {} sequence{}, so that the last {} of {} prompts, and "
                                         "perhaps tasks, were left out",
                                         sequences, sequences == 1 ? "" : "s", prompts - sequences, prompts)});
  if (!runs.results.front().operations_factor)
    runs.report.warnings.push_back(
        {"no_operations",
         source.recording ? "a recording tells no operations" : "models of tables compute no operations", true});
  return runs;
}

}  // namespace specdec::cli
