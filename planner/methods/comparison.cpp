#include "planner/methods/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "planner/methods/method_parameters.hpp"
#include "planner/methods/method_settings.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

using validation::Method;
using validation::MethodContext;
using validation::MethodResult;

/// The stated cost, with the ratio of operations as c where none is stated; empty if there is neither.
std::optional<core::StepCost> cost_of(const StepTimes& times, const MethodContext& context, MethodRuns& runs) {
  const std::optional<double> c = times.c ? times.c : context.operations_ratio();
  if (!c) {
    if (times.verify_factor) throw QuestionError("--verify-factor is given, but needs --c beside it");
    if (times.overhead) throw QuestionError("--overhead is given, but needs --c beside it");
    return std::nullopt;
  }
  runs.assumptions.push_back({"c", *c, times.c ? "user" : "default"});
  append_new(runs.assumptions, times.assumptions());
  append(runs.warnings, times.warnings());
  return times.with_c(*c);
}

/// Says why there is no speedup, if there is none.
void warn_of_no_cost(const MethodContext& context, const std::vector<Method>& methods, MethodRuns& runs) {
  if (context.settings().cost) return;
  const bool some_use_it = std::ranges::any_of(
      methods, [&](const Method& method) { return uses(method, context, &validation::ParametersUsed::cost); });
  if (some_use_it) {
    runs.warnings.push_back({"no_cost", "the speedup needs --c, since the source tells no operations"});
  } else if (context.source().recording) {
    runs.warnings.push_back({"no_cost",
                             "there is no speedup: a recording does not tell how far the method drafts behind a "
                             "rejected token",
                             true});
  }
}

void warn_of_deviations(MethodRuns& runs) {
  // A right sampler is further away once in 150,000 rows.
  constexpr double much = 4.5;
  for (const MethodResult& r : runs.results)
    if (std::abs(r.deviation_standard_errors.value_or(0)) > much)
      runs.warnings.push_back(
          {"deviates",
           fmt::format("{}{}: accepted drafts are {:.1f} standard errors from the closed form", name_of(r.method),
                       r.task.empty() ? "" : " on " + r.task, *r.deviation_standard_errors)});
}

void warn_of_what_is_missing(const validation::MethodSource& source, MethodRuns& runs) {
  if (runs.results.empty()) return;
  const MethodResult& first = runs.results.front();
  const auto prompts = static_cast<std::int64_t>(source.prompts.size());
  if (const std::int64_t sequences = first.sequences; sequences < prompts)
    runs.warnings.push_back(
        {"prompts_left_out", fmt::format("--tokens asks for {} sequence{}, so that the last {} of {} prompts, and "
                                         "perhaps tasks, were left out",
                                         sequences, sequences == 1 ? "" : "s", prompts - sequences, prompts)});
  if (!first.operations_factor)
    runs.warnings.push_back(
        {"no_operations",
         source.recording ? "a recording tells no operations" : "models of tables compute no operations", true});
}

/// Runs methods and gives their results.
using RunMethods = std::function<validation::ComparedMethods(const MethodContext&, const std::vector<Method>&)>;

RunMethods until_interrupted(const core::RunHooks& hooks) {
  return [&hooks](const MethodContext& context, const std::vector<Method>& methods) {
    validation::ComparedMethods compared = validation::compare(context, methods, hooks);
    if (compared.results.empty()) throw QuestionError("interrupted before a sequence was finished");
    return compared;
  };
}

void take_results(validation::ComparedMethods compared, const std::vector<Method>& methods, MethodRuns& runs) {
  runs.results = std::move(compared.results);
  runs.partial = compared.interrupted;
  append(runs.warnings, compared.notes);
  runs.tokens = compared.tokens;
  runs.seconds = compared.seconds;
  if (compared.interrupted) {
    const auto rows = std::ranges::count(runs.results, std::string(), &MethodResult::task);
    runs.warnings.push_back(
        {"partial", fmt::format("interrupted: {} of {} methods were begun, and {} is cut off", rows, methods.size(),
                                name_of(methods[static_cast<std::size_t>(rows) - 1]))});
    return;
  }
  for (const Method& method : compared.imprecise)
    runs.warnings.push_back(
        {"imprecise", fmt::format("{}: --tokens were used up before --until-error was reached", name_of(method))});
}

/// @throws QuestionError if there is no method, or one lacks something
std::vector<Method> possible(const std::vector<NamedMethod>& asked, const MethodContext& context) {
  if (asked.empty()) throw QuestionError("algorithm1: " + lacking({}, context));
  std::vector<Method> methods;
  for (const auto& [name, method] : asked) {
    if (const std::string lack = lacking(method, context); !lack.empty())
      throw QuestionError(fmt::format("{}: {}", name, lack));
    methods.push_back(method);
  }
  return methods;
}

/// @param methods     those to run, for a source
/// @param by_options  see require_used
MethodRuns run_methods(const MethodQuestion& question, const std::filesystem::path& shipped_models,
                       const RunMethods& run, bool by_options,
                       const std::function<std::vector<NamedMethod>(const MethodContext&)>& methods) {
  require_ranges(question);
  require_source(question);
  const AskedSource asked = read_source(question, shipped_models);
  validation::MethodSettings settings = settings_of(question);
  MethodRuns runs;
  static_cast<Provenance&>(runs) = asked;
  const MethodContext context(asked.source, settings);
  settings.cost = cost_of(question.cost, context, runs);
  // The c that is stated for one method is that of its own draft.
  settings.c_of_every_call = by_options && question.cost.c.has_value();
  if (settings.cost && !settings.c_of_every_call && context.draft_operations() > 0)
    runs.assumptions.push_back(
        {"c of other models' calls", "c times the weights they read over the draft model's", "default"});
  const std::vector<Method> chosen = possible(methods(context), context);
  require_used(question, chosen, context, by_options);
  warn_of_no_cost(context, chosen, runs);
  runs.trees = validation::planned_trees(chosen, settings);
  take_results(run(context, chosen), chosen, runs);
  warn_of_deviations(runs);
  warn_of_what_is_missing(asked.source, runs);
  return runs;
}

Method method_of(const SimulationQuestion& question) {
  require_word("--draft", question.draft, validation::draft_names());
  require_word("--verifier", question.verifier, validation::verifier_names());
  require_word("--policy", question.policy, validation::policy_names());
  if (question.policy == "batch" && !question.schedule)
    throw QuestionError("--policy batch needs --schedule beside it, the gammas by batch");
  const std::string parts = question.draft.value_or(validation::draft_names().front()) + "+" +
                            question.verifier.value_or(validation::verifier_names().front()) + "+" +
                            question.policy.value_or(validation::policy_names().front());
  return *validation::method_named(parts);
}

Simulation run_simulation(const SimulationQuestion& question, const std::filesystem::path& shipped_models,
                          const RunMethods& run) {
  const Method method = method_of(question);
  return {run_methods(question, shipped_models, run, true, [&](const MethodContext&) {
    return std::vector<NamedMethod>{{name_of(method), method}};
  })};
}

/// @throws QuestionError if the sequences of a source cannot be shared out
void require_shared(const MethodContext& context) {
  if (context.source().recording)
    throw QuestionError("--shard is given, but --source trace replays a recording, which analyze --shard shares out");
  if (context.settings().timed)
    throw QuestionError("--shard is given, but --timed times the texts of one machine, one after the other");
  if (context.settings().until_relative_error)
    throw QuestionError("--shard is given, but must not be beside --until-error: no share knows the error of all");
}

}  // namespace

Comparison compare(const ComparisonQuestion& question, const std::filesystem::path& shipped_models,
                   const core::RunHooks& hooks) {
  return {run_methods(question, shipped_models, until_interrupted(hooks), false, [&](const MethodContext& context) {
    std::vector<NamedMethod> methods = question.methods;
    if (methods.empty())
      for (const Method& known : validation::known_methods(context)) methods.push_back({name_of(known), known});
    return methods;
  })};
}

Simulation simulate(const SimulationQuestion& question, const std::filesystem::path& shipped_models,
                    const core::RunHooks& hooks) {
  return run_simulation(question, shipped_models, until_interrupted(hooks));
}

Simulation simulate_share(const SimulationQuestion& question, const std::filesystem::path& shipped_models,
                          const traces::Shard& shard, validation::MethodShare& found, const core::RunHooks& hooks) {
  return run_simulation(question, shipped_models,
                        [&](const MethodContext& context, const std::vector<Method>& methods) {
                          require_shared(context);
                          found = validation::run_share(methods.front(), context, shard, hooks);
                          if (hooks.interrupted()) throw QuestionError("interrupted before the share was finished");
                          return validation::results_of(methods.front(), context, found);
                        });
}

Simulation simulation_of_shares(const SimulationQuestion& question, const std::filesystem::path& shipped_models,
                                const validation::MethodShare& found) {
  return run_simulation(question, shipped_models,
                        [&](const MethodContext& context, const std::vector<Method>& methods) {
                          return validation::results_of(methods.front(), context, found);
                        });
}

}  // namespace specdec::planner
