#include "cli/sweep.hpp"

#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>

#include "cli/files.hpp"
#include "cli/interruption.hpp"
#include "cli/shard_options.hpp"
#include "cli/sweep_points.hpp"
#include "cli/values.hpp"
#include "render/sweep.hpp"
#include "render/version.hpp"
#include "traces/formats/streams.hpp"

namespace specdec::cli {
namespace {

struct SweepOptions {
  std::string file;
  std::optional<std::string> cache;
  std::int64_t threads = default_threads();
  ShareOptions share;
};

void declare(Options& options, SweepOptions& o) {
  options.argument("FILE", o.file, "the question, in the form of --config; a list of values\nstands for each of them");
  options.group("Run");
  options.text("--cache", o.cache, "FOLDER",
               "keep each answer there, and take those that are there\nalready; an ended run goes on where it was");
  options.integer("--threads", o.threads, {.lo = 1, .hi = 1024}, "points at a time; results do not depend on them");
  o.share.declare(options, "answer share I of N of the points alone,\nfor specdec merge");
  options.footer(
      "Examples:\n"
      "  specdec sweep deployments.toml --cache answers --format csv --output table.csv\n"
      "  specdec sweep deployments.toml --shard 3/8 --part parts/");
}

Report run(const SweepOptions& o, const Options& options) {
  SweepPoints asked = sweep_points(o.file, traces::small_file(o.file));
  std::vector<std::string> files = {o.file};
  files.insert(files.end(), asked.files.begin(), asked.files.end());
  const ChosenShare own_share = o.share.chosen(files);
  planner::SweepSettings settings{std::string(render::version()), {}, asked.uncertain, own_share.own, o.threads};
  if (o.cache) settings.cache = *o.cache;
  // A part says all that there is of a share, so that a run that writes one ends at Ctrl-C without it.
  std::optional<Interruption> interruption;
  if (own_share.part.empty()) interruption.emplace();
  planner::Sweep answered =
      planner::sweep(asked.command, std::move(asked.points), settings, interruptible("answering", options.quiet()));
  const std::vector<nlohmann::ordered_json> facts = facts_of(files);
  if (!own_share.part.empty()) {
    planner::save_part(own_share.part, answered,
                       part_origin("sweep", options, {"file", "cache", "threads"}, own_share.own, facts));
  }
  if (own_share.is_share) {
    const std::size_t points = answered.answers.size();
    return share_report("sweep", own_share.own, own_share.part, {{"points", points}}, fmt::format("{} points", points));
  }
  Report report = report_of_sweep(std::move(answered));
  report.files = facts;
  return report;
}

}  // namespace

std::vector<CsvTable> tables_of_sweep() { return {{"points", "/rows"}}; }

Report report_of_sweep(planner::Sweep sweep) {
  Report report;
  std::vector<nlohmann::ordered_json> rows = sweep.take_rows();
  report.spoken = render::spoken(sweep, rows);
  report.json = render::json_of(sweep, std::move(rows));
  report.assumptions = sweep.shared_assumptions();
  report.warnings = sweep.all_warnings();
  report.tables = tables_of_sweep();
  report.rows_of_empty["points"] = render::row_of_every_column(sweep);
  report.exit_code = sweep.unpriced() < std::ssize(sweep.answers) ? success : check_failed;
  return report;
}

Command sweep_command() {
  return {"sweep", "Many plans or capacities at once: every combination of models, devices, drafts and loads",
          tables_of_sweep(), setup_of<SweepOptions>(run, declare)};
}

}  // namespace specdec::cli
