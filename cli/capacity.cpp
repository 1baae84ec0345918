#include "cli/capacity.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "cli/capacity_question.hpp"
#include "cli/interruption.hpp"
#include "render/capacity.hpp"

namespace specdec::cli {
namespace {

Report run(const CapacityOptions& o, bool quiet) {
  const AskedCapacity asked = asked_capacity(o);
  const Interruption interruption;
  const planner::Capacity capacity =
      planner::capacity(asked.acceptance, asked.cost, asked.question, interruptible("simulating", quiet));
  Report report;
  report.json = render::json_of(capacity);
  report.rows_of_empty["frontier"] = report.json["without_speculation"];
  report.rows_of_empty["layouts"] = render::row_of_layout();
  report.rows_of_empty["layout-frontier"] = render::row_of_layout_point();
  report.spoken = render::spoken(capacity);
  report.files = file_facts_of(asked, capacity);
  report.assumptions = capacity.assumptions;
  report.warnings = capacity.warnings;
  report.presets = capacity.presets;
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
          [](Options& options) {
            const auto chosen = std::make_shared<CapacityOptions>();
            chosen->threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);
            declare(options, *chosen);
            return std::function<Report()>([chosen, &options] { return run(*chosen, options.quiet()); });
          }};
}

}  // namespace specdec::cli
