#include "cli/simulate.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/method_options.hpp"
#include "cli/method_output.hpp"
#include "cli/usage_error.hpp"

namespace specdec::cli {
namespace {

struct SimulateOptions {
  MethodOptions shared;
  std::string draft = validation::draft_names().front();
  std::string verifier = validation::verifier_names().front();
  std::string policy = validation::policy_names().front();
  std::optional<std::string> system;

  void require_one_method(const Options& given) const {
    const auto refuse_beside_system = [&](const char* option, const std::string& chosen) {
      if (system && given.is_given(option))
        throw UsageError(fmt::format("{} {} does not go with --system {}", option, chosen, *system));
    };
    refuse_beside_system("--draft", draft);
    refuse_beside_system("--verifier", verifier);
    refuse_beside_system("--policy", policy);
    if (system == "blockwise" && shared.settings.temperature != 0)
      throw UsageError("--system blockwise needs --temperature 0 beside it: its text is the greedy one");
    if (!system && policy == "batch" && !shared.schedule)
      throw UsageError("--policy batch needs --schedule beside it, the gammas by batch");
  }

  std::vector<validation::Method> method(const validation::MethodContext& context) const {
    const validation::Method method = *validation::method_named(system.value_or(draft + "+" + verifier + "+" + policy));
    if (const std::string lack = lacking(method, context); !lack.empty())
      throw UsageError(fmt::format("{}: {}", name_of(method), lack));
    return {method};
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
    values->require_one_method(options);
    MethodRuns runs = run_methods(values->shared, options, "simulating",
                                  [&](const validation::MethodContext& context) { return values->method(context); });
    runs.report.json = methods_json(runs);
    runs.report.rows_of_empty = rows_of_empty_tables(runs);
    runs.report.text = simulation_text(runs);
    return runs.report;
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
