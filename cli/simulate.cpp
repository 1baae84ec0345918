#include "cli/simulate.hpp"

#include <memory>
#include <optional>
#include <string>

#include "cli/interruption.hpp"
#include "cli/method_options.hpp"
#include "cli/shipped_models.hpp"
#include "render/comparison.hpp"

namespace specdec::cli {
namespace {

struct SimulateOptions {
  MethodOptions shared;
  std::string draft = validation::draft_names().front();
  std::string verifier = validation::verifier_names().front();
  std::string policy = validation::policy_names().front();
  std::optional<std::string> system;

  planner::SimulationQuestion question(const Options& given) const {
    planner::SimulationQuestion asked;
    shared.fill(asked, given);
    if (given.is_given("--draft")) asked.draft = draft;
    if (given.is_given("--verifier")) asked.verifier = verifier;
    if (given.is_given("--policy")) asked.policy = policy;
    asked.system = system;
    return asked;
  }
};

std::function<Report()> set_up_simulation(Options& options) {
  const auto values = std::make_shared<SimulateOptions>();
  options.group("Method");
  options.choice("--draft", values->draft, validation::draft_names(), "who proposes");
  options.choice("--verifier", values->verifier, validation::verifier_names(), "who accepts");
  options.choice("--policy", values->policy, validation::policy_names(), "how far to draft");
  options.choice("--system", values->system, validation::system_names(),
                 "a system of its own, in the place of the three");
  values->shared.declare_source(options);
  values->shared.declare_settings(options);
  options.footer(
      "specdec simulate --verifier block --gamma 8\n"
      "specdec simulate --draft combination --task code --c 0.05\n"
      "specdec simulate --source synthetic --verifier lenient --lenience 0.3 --c 0.1");
  return [values, &options] {
    const Interruption interruption;
    const planner::Simulation simulation =
        planner::simulate(values->question(options), shipped_models(), interruptible("simulating", options.quiet()));
    Report report = report_of(simulation);
    report.text = render::text_of(simulation);
    return report;
  };
}

}  // namespace

Command simulate_command() {
  return {"simulate",
          "Run one draft, verifier and policy, and say what became of it",
          {{"results", "/results"}, {"tasks", "/tasks"}, {"trees", "/trees"}},
          set_up_simulation};
}

}  // namespace specdec::cli
