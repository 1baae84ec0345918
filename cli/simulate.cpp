#include "cli/simulate.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <set>
#include <string>

#include "cli/files.hpp"
#include "cli/interruption.hpp"
#include "cli/method_options.hpp"
#include "cli/shard_options.hpp"
#include "cli/shipped_models.hpp"
#include "planner/methods/simulation_parts.hpp"
#include "render/comparison.hpp"

namespace specdec::cli {
namespace {

struct SimulateOptions {
  MethodOptions shared;
  std::string draft = validation::draft_names().front();
  std::string verifier = validation::verifier_names().front();
  std::string policy = validation::policy_names().front();
  ShareOptions share;

  planner::SimulationQuestion question(const Options& given) const {
    planner::SimulationQuestion asked{shared.asked(given)};
    if (given.is_given("--draft")) asked.draft = draft;
    if (given.is_given("--verifier")) asked.verifier = verifier;
    if (given.is_given("--policy")) asked.policy = policy;
    return asked;
  }
};

void declare_question(Options& options, SimulateOptions* values) {
  options.group("Method");
  options.choice("--draft", values->draft, validation::draft_names(), "who proposes");
  options.choice("--verifier", values->verifier, validation::verifier_names(), "who accepts");
  options.choice("--policy", values->policy, validation::policy_names(), "how far to draft");
  values->shared.declare_source(options);
  values->shared.declare_settings(options);
}

Report report_of_simulation(const planner::Simulation& simulation) {
  return report_of(simulation, render::spoken(simulation));
}

/// Runs a share and writes what it gave; without --shard the whole is answered, too.
Report run_share(const SimulateOptions& values, const Options& options) {
  const planner::SimulationQuestion question = values.question(options);
  const ChosenShare own_share = values.share.chosen({});
  validation::MethodShare found;
  const planner::Simulation answer = planner::simulate_share(
      question, shipped_models(), own_share.own, found, interruptible("simulating", options.quiet()));
  require_no_input("--part", own_share.part, answer.files);
  std::vector<std::string> given = options.given();
  const std::set<std::string> of_run = {"shard", "part", "format", "table", "output", "quiet", "explain"};
  std::erase_if(given, [&](const std::string& key) { return of_run.count(key) > 0; });
  planner::save_part(own_share.part, found, given,
                     part_origin("simulate", options, {"threads"}, own_share.own, facts_of(answer.files)));
  if (!own_share.is_share) return report_of_simulation(answer);
  std::int64_t tokens = 0;
  for (const auto& [sequence, run] : found.runs) tokens += run.counters.tokens;
  if (!answer.results.empty()) tokens = answer.tokens;
  return share_report("simulate", own_share.own, own_share.part, {{"sequences", found.runs.size()}, {"tokens", tokens}},
                      fmt::format("{} tokens", tokens));
}

void declare_simulation(Options& options, SimulateOptions& values) {
  declare_question(options, &values);
  values.share.declare(options, "run share I of N of the sequences alone,\nfor specdec merge");
  options.footer(
      "specdec simulate --verifier block --gamma 8\n"
      "specdec simulate --draft combination --task code --c 0.05\n"
      "specdec simulate --tokens 1000000 --shard 3/8 --part parts/\n"
      "specdec simulate --source synthetic --verifier lenient --lenience 0.3 --c 0.1");
}

Report run_simulation(const SimulateOptions& values, const Options& options) {
  if (values.share.is_given()) return run_share(values, options);
  const Interruption interruption;
  return report_of_simulation(
      planner::simulate(values.question(options), shipped_models(), interruptible("simulating", options.quiet())));
}

std::vector<std::string> texts_of(const nlohmann::ordered_json& value) {
  std::vector<std::string> texts;
  for (const nlohmann::ordered_json& one : value.is_array() ? value : nlohmann::ordered_json::array({value}))
    texts.push_back(one.is_string() ? one.get<std::string>() : one.dump());
  return texts;
}

}  // namespace

Report report_of_simulation_parts(const planner::PartSet& set) {
  SimulateOptions values;
  DefaultOptions options;
  declare_question(options.get(), &values);
  const nlohmann::ordered_json given = planner::given_options(set);
  OptionValues asked;
  for (const auto& [key, value] : given.items()) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', '-');
    asked.emplace_back(name, texts_of(value));
  }
  options.give(asked);
  return report_of_simulation(planner::merge_simulation(set, values.question(options.get()), shipped_models()));
}

std::vector<CsvTable> tables_of_simulation() {
  return {{"results", "/results"}, {"tasks", "/tasks"}, {"trees", "/trees"}};
}

Command simulate_command() {
  return {"simulate", "Run one draft, verifier and policy, and say what became of it", tables_of_simulation(),
          setup_of<SimulateOptions>(run_simulation, declare_simulation)};
}

}  // namespace specdec::cli
