#include "cli/commands.hpp"

#include "cli/files.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/plan_options.hpp"
#include "cli/planned.hpp"
#include "cli/usage_error.hpp"
#include "planner/synthetic.hpp"
#include "render/synthetic.hpp"

namespace specdec::cli {
namespace {

void declare_synthetic(Options& options, PlanOptions& o) {
  declare_acceptance(options, o);
  options.text("--model", o.model, "NAME", "target model, where --counters hold several");
  options.group("Benchmark");
  options.integer("-k,--gamma,--num-speculative-tokens", o.question.gamma, {1, planner::largest_synthetic_gamma},
                  "drafted tokens per step");
  declare_emit(options, o.question.emit, "settings of this engine [all]");
  options.footer(
      "Examples:\n"
      "  specdec synthetic --alpha 0.8 --gamma 4\n"
      "  specdec synthetic --counters requests.jsonl --gamma 3 --emit vllm");
}

Report run_synthetic(const PlanOptions& given, const Options& options) {
  PlanOptions o = given;
  o.progress = progress_line("reading", options.quiet());
  if (o.by && !o.mix)
    throw UsageError("--by is given, but needs --mix beside it: an engine accepts by one law at every context");
  require_consistent_acceptance(o);
  if (!o.question.gamma) throw UsageError("--gamma is missing: the drafted tokens per step of the benchmark");
  planner::SyntheticQuestion question;
  question.gamma = *o.question.gamma;
  question.emit = o.question.emit;
  const planner::Synthetic answer = planner::synthetic(acceptance_of(o, {question.gamma}), question);
  Report report = report_on(answer, render::json_of(answer), render::spoken(answer));
  report.files = facts_of_each(answer.files);
  return report;
}

}  // namespace

Command synthetic_command() {
  return {"synthetic",
          "Settings that make an engine accept as real traffic does, for benchmarks of random prompts",
          {{"settings", "/settings"}, {"law", "/law"}},
          setup_of<PlanOptions>(run_synthetic, declare_synthetic)};
}

}  // namespace specdec::cli
