#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/figures/figure_kind.hpp"
#include "cli/files.hpp"
#include "cli/interruption.hpp"
#include "cli/method_options.hpp"
#include "cli/shipped_models.hpp"
#include "render/figures/method_chart.hpp"

namespace specdec::cli {
namespace {

/// Shown where none is named: those that draft one chain by the draft model.
const std::vector<std::string> usual_methods = {"algorithm1", "block", "greedy-draft", "lenient", "typical"};
/// Tokens of each method and of a text, where no numbers are given: a few seconds, over all prompts that are shipped.
constexpr std::int64_t usual_tokens = 2304, usual_text = 32;

struct MethodFigureOptions {
  MethodOptions shared;
  std::vector<std::string> methods;
};

Chart chart_from(const MethodFigureOptions& chosen, const Options& options) {
  planner::ComparisonQuestion question;
  chosen.shared.fill(question, options);
  const bool makes_texts = question.source != "trace";
  if (makes_texts && !question.tokens && !question.until_error && !question.max_new_tokens) {
    question.tokens = usual_tokens;
    question.max_new_tokens = usual_text;
  }
  // Without named methods, a recording shows all that it can.
  if (makes_texts || !chosen.methods.empty())
    question.methods = planner::methods_named("METHOD", chosen.methods.empty() ? usual_methods : chosen.methods);
  const Interruption interruption;
  const planner::Comparison comparison =
      planner::compare(question, shipped_models(), {.progress = {}, .interrupt = Interruption::requested});
  Chart chart = render::methods_chart(comparison);
  chart.files = facts_of(comparison.files);
  return chart;
}

std::function<Chart()> set_up_methods(Options& options) {
  const auto chosen = std::make_shared<MethodFigureOptions>();
  chosen->shared.declare_source(options);
  chosen->shared.declare_settings(options);
  options.arguments("METHOD", chosen->methods, "as of specdec compare (default: five that draft one chain)",
                    Options::Least::none);
  return [chosen, &options] { return chart_from(*chosen, options); };
}

}  // namespace

std::vector<FigureKind> method_figures() {
  return {{"methods", "tokens per step and speedup of ways to draft and to verify, run on the same prompts",
           set_up_methods}};
}

}  // namespace specdec::cli
