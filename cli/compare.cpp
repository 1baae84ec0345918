#include "cli/commands.hpp"

#include <string>
#include <vector>

#include "cli/interruption.hpp"
#include "cli/method_options.hpp"
#include "cli/shipped_models.hpp"
#include "render/comparison.hpp"

namespace specdec::cli {
namespace {

struct CompareOptions {
  MethodOptions shared;
  std::vector<std::string> methods;
};

void declare_comparison(Options& options, CompareOptions& values) {
  values.shared.declare_source(options);
  values.shared.declare_settings(options);
  options.arguments("METHOD", values.methods,
                    "DRAFT+VERIFIER+POLICY, of which one is enough: block, copy+algorithm1 (default: all)",
                    Options::Least::none);
  options.footer(
      "specdec compare\n"
      "specdec compare algorithm1 block greedy-draft --gamma 8 --temperature 0.7\n"
      "specdec compare copy+algorithm1 combination+heuristic --task code --c 0.05");
}

Report run_comparison(const CompareOptions& values, const Options& options) {
  planner::ComparisonQuestion question{values.shared.asked(options)};
  question.methods = planner::methods_named("METHOD", values.methods);
  const Interruption interruption;
  const planner::Comparison comparison =
      planner::compare(question, shipped_models(), interruptible("comparing", options.quiet()));
  return report_of(comparison, render::spoken(comparison));
}

}  // namespace

Command compare_command() {
  return {"compare",
          "Run several methods on the same prompts and random numbers, one line for each",
          {{"results", "/results"}, {"tasks", "/tasks"}, {"trees", "/trees"}},
          setup_of<CompareOptions>(run_comparison, declare_comparison)};
}

}  // namespace specdec::cli
