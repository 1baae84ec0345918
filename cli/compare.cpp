#include "cli/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "cli/method_options.hpp"
#include "cli/method_output.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"

namespace specdec::cli {
namespace {

struct CompareOptions {
  MethodOptions shared;
  std::vector<std::string> methods;

  std::vector<validation::Method> chosen(const validation::MethodContext& context) const {
    if (methods.empty()) return known_methods(context);
    std::vector<validation::Method> list;
    for (const std::string& name : methods) {
      const std::optional<validation::Method> method = validation::method_named(name);
      if (!method)
        refuse(
            "METHOD", name,
            fmt::format("a draft, a verifier and a policy joined by +, each at most once: one of {}; of {}; of {}; or "
                        "one of {}",
                        fmt::join(validation::draft_names(), ", "), fmt::join(validation::verifier_names(), ", "),
                        fmt::join(validation::policy_names(), ", "), fmt::join(validation::system_names(), ", ")));
      if (const std::string lack = lacking(*method, context); !lack.empty())
        throw UsageError(fmt::format("{}: {}", name, lack));
      if (std::find(list.begin(), list.end(), *method) != list.end()) refuse("METHOD", name, "given once");
      list.push_back(*method);
    }
    return list;
  }
};

std::function<Report()> set_up_comparison(Options& options) {
  const auto values = std::make_shared<CompareOptions>();
  values->shared.declare_source(options);
  values->shared.declare_settings(options);
  options.arguments("METHOD", values->methods,
                    "DRAFT+VERIFIER+POLICY, of which one is enough: block, copy+algorithm1 (default: all)",
                    Options::Least::none);
  options.footer(
      "specdec compare\n"
      "specdec compare algorithm1 block greedy-draft --gamma 8 --temperature 0.7\n"
      "specdec compare copy+algorithm1 combination+heuristic --task code --c 0.05");
  return [values, &options] {
    MethodRuns runs = run_methods(values->shared, options, "comparing",
                                  [&](const validation::MethodContext& context) { return values->chosen(context); });
    runs.report.json = methods_json(runs);
    runs.report.rows_of_empty = rows_of_empty_tables(runs);
    runs.report.text = comparison_text(runs);
    return runs.report;
  };
}

}  // namespace

Command compare_command() {
  return {"compare",
          "Run several methods on the same prompts and random numbers, one line for each",
          {{"results", "/results"}, {"tasks", "/tasks"}, {"trees", "/trees"}},
          set_up_comparison};
}

}  // namespace specdec::cli
