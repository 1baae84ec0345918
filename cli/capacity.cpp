#include "cli/commands.hpp"

#include "cli/capacity_question.hpp"
#include "cli/files.hpp"
#include "cli/interruption.hpp"
#include "cli/values.hpp"
#include "render/capacity.hpp"

namespace specdec::cli {
namespace {

void declare_all(Options& options, CapacityOptions& o) {
  o.question.threads = default_threads();
  declare(options, o);
}

Report run(const CapacityOptions& o, const Options& options) {
  const AskedCapacity asked = asked_capacity(o);
  const Interruption interruption;
  const planner::Capacity capacity =
      planner::capacity(asked.acceptance, asked.cost, asked.question, interruptible("simulating", options.quiet()));
  Report report = report_on(capacity, render::json_of(capacity), render::spoken(capacity));
  report.rows_of_empty["frontier"] = report.json["without_speculation"];
  report.rows_of_empty["layouts"] = render::row_of_layout();
  report.rows_of_empty["layout-frontier"] = render::row_of_layout_point();
  report.files = facts_of_each(files_of(asked, capacity));
  report.exit_code = capacity.answer().recommended && !capacity.exceeds_gpus ? success : check_failed;
  return report;
}

}  // namespace

Command capacity_command() {
  return {"capacity",
          "How much load a deployment takes, and how many GPUs a load needs",
          {{"scenarios", "/scenarios"},
           {"schedules", "/scenarios/*/schedule", {"name", "max_num_seqs"}},
           {"frontier", "/frontier"},
           {"layouts", "/layouts/tried"},
           {"layout-frontier", "/layouts/frontier"}},
          setup_of<CapacityOptions>(run, declare_all)};
}

}  // namespace specdec::cli
