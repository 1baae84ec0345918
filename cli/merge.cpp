#include "cli/commands.hpp"

#include <string>
#include <utility>
#include <vector>

#include "cli/analyze.hpp"
#include "cli/files.hpp"
#include "cli/simulate.hpp"
#include "cli/sweep.hpp"
#include "planner/parts/part_files.hpp"
#include "planner/recordings/recording_parts.hpp"
#include "planner/sweeps/sweep.hpp"
#include "render/version.hpp"

namespace specdec::cli {
namespace {

struct PartsToMerge {
  std::vector<std::string> parts;
  bool partial = false;

  void declare(Options& options) {
    options.flag("--partial", partial, "answer from the parts that are there");
    options.footer(
        "Examples:\n"
        "  specdec merge parts/\n"
        "  specdec merge 1-of-2.part 2-of-2.part --format json");
    options.arguments("PART", parts, "what --part wrote; a folder: all *.part in it");
  }
};

Report report_of_analysis_parts(const planner::PartSet& set) {
  Report report = report_of_analysis(planner::merge_parts(set));
  append(report.warnings, set.notes);
  if (set.options.value("target", nlohmann::ordered_json()).is_null()) append(report.warnings, same_content(set.files));
  return report;
}

Report report_of_parts(const planner::PartSet& set) {
  if (set.command == "sweep") return report_of_sweep(planner::merge_sweep(set));
  if (set.command == "simulate") return report_of_simulation_parts(set);
  if (set.command == "analyze") return report_of_analysis_parts(set);
  planner::refuse_part(set.parts.front().path, "command", set.command, "analyze, simulate or sweep");
}

Report run(const PartsToMerge& o, const Options&) {
  const planner::PartSet set = planner::read_parts(o.parts, std::string(render::version()), o.partial);
  Report report = report_of_parts(set);
  report.schema = set.command;
  if (report.tables.empty()) report.tables = set.command == "simulate" ? tables_of_simulation() : tables_of_analysis();
  report.earlier_inputs = set.options;
  report.files = set.files;
  return report;
}

std::vector<CsvTable> tables_of_merges() {
  std::vector<CsvTable> tables = tables_of_analysis();
  for (CsvTable& table : tables_of_simulation()) {
    // That of analyze has the same name and place.
    if (table.name != "tasks") tables.push_back(std::move(table));
  }
  for (CsvTable& table : tables_of_sweep()) tables.push_back(std::move(table));
  return tables;
}

}  // namespace

Command merge_command() {
  return {"merge", "The answer of analyze, simulate or sweep from the parts of several runs, as if one had done all",
          tables_of_merges(), setup_of<PartsToMerge>(run)};
}

}  // namespace specdec::cli
