#include "cli/analyze.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "analysis/theory/streaming_replay.hpp"
#include "cli/acceptance_options.hpp"
#include "cli/files.hpp"
#include "cli/interruption.hpp"
#include "cli/shard_options.hpp"
#include "cli/step_cost_options.hpp"
#include "cli/trace_input.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "planner/recordings/recording_parts.hpp"
#include "planner/recordings/recording_summary.hpp"
#include "planner/traffic_mix.hpp"
#include "render/analysis.hpp"

namespace specdec::cli {
namespace {

using planning::SweepSetting;

std::string usual_leniences() { return fmt::format("{}", fmt::join(planner::usual_leniences, ",")); }

struct AnalyzeOptions {
  TraceInput input;
  ShareOptions share;
  AcceptanceOptions acceptance;
  std::optional<double> row_tolerance;
  StepCostOptions cost;
  std::string gamma = "1:16";
  std::string lenience = usual_leniences();
  std::string standardise = "auto";
  std::optional<std::string> by;
  std::int64_t threads = default_threads();
};

void declare(Options& options, AnalyzeOptions& o) {
  options.group("Acceptance");
  o.acceptance.declare(options);
  options.number("--row-tolerance", o.row_tolerance, {0.0, 1.0, true}, "how far from 1 a row may sum [by its type]");
  options.text("--by", o.by, "LABEL[:N1,N2,...]",
               "groups: the recording's tasks, or context:N1,N2,...,\nranges of the place in a text [task]");
  o.cost.declare(options, "[no speedups]");
  options.group("Questions");
  options.text("-k,--gamma,--num-speculative-tokens", o.gamma, "LIST", "gammas to show: 1:16 or 2,4,8");
  options.text("--lenience", o.lenience, "LIST", "leniences l in (0, 1], or none; whole rows only");
  options.text("--standardise,--standardize", o.standardise, "LIST",
               "other ways to sample: auto, none, or for instance\n"
               "\"temperature=0.7,top_p=0.9;draft:temperature=0.5\"; target:\nor draft: alone; whole rows only");
  options.integer("--threads", o.threads, {.lo = 1, .hi = 1024}, "threads; results do not depend on them");
  options.footer(
      "Examples:\n"
      "  specdec analyze trace.safetensors\n"
      "  specdec analyze --target target.jsonl --draft draft.jsonl --c 0.05\n"
      "  specdec analyze shards/ --acceptance greedy-draft --c 0.05 --format json\n"
      "  specdec analyze shards/ --shard 3/8 --part parts/");
  options.shown_first({"--target", "--draft", "--c", "--gamma", "--acceptance", "--by", "--lenience", "--standardise",
                       "--shard", "--part", "--format", "--table"});
  o.share.declare(options, "analyse share I of N of the sequences alone,\nfor specdec merge");
  o.input.declare(options);
}

/// "1:16" or "2,4,8", rising.
std::vector<std::int64_t> gammas_of(const std::string& list) {
  constexpr std::string_view option = "--gamma";
  const auto ends = split(list, ':');
  std::vector<std::int64_t> gammas;
  if (ends.size() == 2) {
    const std::int64_t first = parse_integer(option, ends[0], 1, theory::largest_replayed_gamma);
    const std::int64_t last = parse_integer(option, ends[1], 1, theory::largest_replayed_gamma);
    if (last < first) refuse(option, list, "FIRST:LAST with FIRST <= LAST");
    for (std::int64_t gamma = first; gamma <= last; ++gamma) gammas.push_back(gamma);
    return gammas;
  }
  return rising_integers(option, list, 1, theory::largest_replayed_gamma);
}

std::vector<double> leniences_of(const std::string& list) {
  std::vector<double> values;
  if (list == "none") return values;
  for (const std::string& part : listed("--lenience", list))
    values.push_back(parse_number("--lenience", part, {0.0, 1.0, true}));
  return values;
}

/// "draft:temperature=0.7,top_p=0.9".
SweepSetting setting_of(std::string_view text) {
  constexpr std::string_view option = "--standardise";
  constexpr std::string_view expected =
      "temperature=T, top_k=K, top_p=P, min_p=M and temperature_last=true, separated by commas, behind target: or "
      "draft: where one alone is meant";
  SweepSetting setting;
  const auto parts = split(text, ':');
  if (parts.size() > 2) refuse(option, text, expected);
  if (parts.size() == 2 && parts[0] != "target" && parts[0] != "draft") refuse(option, text, expected);
  if (parts.size() == 2) {
    setting.applies = parts[0] == "target" ? SweepSetting::Applies::target : SweepSetting::Applies::draft;
  }
  std::set<std::string> keys;
  for (const std::string_view part : split(parts.back(), ',')) {
    const auto pair = split(part, '=');
    if (pair.size() != 2) refuse(option, text, expected);
    std::string key(pair[0]);
    std::replace(key.begin(), key.end(), '-', '_');
    if (!keys.insert(key).second) refuse(option, text, fmt::format("each key once; {} is there twice", key));
    core::Standardisation& s = setting.standardisation;
    if (pair[0] == "temperature") {
      s.temperature = parse_number("temperature in --standardise", pair[1], {0.0, 1000.0});
    } else if (pair[0] == "top_k" || pair[0] == "top-k") {
      s.top_k = parse_integer("top_k in --standardise", pair[1], 0, 1'000'000'000);
    } else if (pair[0] == "top_p" || pair[0] == "top-p") {
      s.top_p = parse_number("top_p in --standardise", pair[1], {0.0, 1.0, true});
    } else if (pair[0] == "min_p" || pair[0] == "min-p") {
      s.min_p = parse_number("min_p in --standardise", pair[1], {0.0, 1.0});
    } else if (pair[0] == "temperature_last" && (pair[1] == "true" || pair[1] == "false")) {
      s.temperature_last = pair[1] == "true";
    } else {
      refuse(option, text, expected);
    }
  }
  return setting;
}

std::vector<SweepSetting> sweep_of(std::string_view list) {
  std::vector<SweepSetting> sweep;
  for (const std::string_view part : split(list, ';')) sweep.push_back(setting_of(part));
  return sweep;
}

planner::AnalysisQuestion question_of(const AnalyzeOptions& o) {
  planner::AnalysisQuestion question;
  question.rules = o.acceptance.rules();
  question.row_tolerance = o.row_tolerance;
  if (o.by) question.by = planner::label_groups(*o.by);
  question.cost = o.cost.times();
  question.gamma = gammas_of(o.gamma);
  if (o.lenience != usual_leniences()) question.lenience = leniences_of(o.lenience);
  if (o.standardise == "none") {
    question.standardise.emplace();
  } else if (o.standardise != "auto") {
    question.standardise = sweep_of(o.standardise);
  }
  question.threads = o.threads;
  return question;
}

/// Keys of options that do not decide the answer.
const std::set<std::string> other_options = {"threads", "target", "draft", "traces"};

/// Report of a run with a share of the sequences, whose results are in its part.
Report report_of_part(const planner::RecordingSummary& summary, const traces::Shard& shard, const std::string& file) {
  return share_report("analyze", shard, file, {{"sequences", summary.sequences()}, {"positions", summary.positions()}},
                      fmt::format("{} sequences, {} positions", summary.sequences(), summary.positions()));
}

Report run(const AnalyzeOptions& o, const Options& options) {
  const planner::AnalysisQuestion question = question_of(o);
  const ChosenShare own_share = o.share.chosen(o.input.recording().files);
  const std::string& part = own_share.part;
  // A part says all that there is of a share, so that a run that writes one ends at Ctrl-C without it.
  std::optional<Interruption> interruption;
  if (part.empty()) interruption.emplace();
  planner::RecordingSummary summary = planner::RecordingSummary::of(o.input.recording(), own_share.own, question,
                                                                    interruptible("analysing", options.quiet()));
  if (!part.empty()) {
    require_no_input("--part", part, summary.files());
    planner::save_part(part, summary,
                       part_origin("analyze", options, other_options, own_share.own,
                                   o.input.shared_facts(summary.files(), own_share.own)));
  }
  if (own_share.is_share) return report_of_part(summary, own_share.own, part);
  const std::vector<std::filesystem::path> files(summary.files().begin(), summary.files().end());
  Report report = report_of_analysis(summary.answer());
  o.input.add_files(files, report);
  return report;
}

}  // namespace

std::vector<CsvTable> tables_of_analysis() {
  return {{"gammas", "/gammas"},
          {"positions", "/position_acceptance"},
          {"lenience", "/lenience"},
          {"standardisation", "/standardisation"},
          {"tasks", "/tasks"},
          {"calibration", "/calibration"},
          {"adaptive", "/adaptive/policies"}};
}

Report report_of_analysis(const planner::Analysis& answer) {
  Report report = report_on(answer, render::json_of(answer), render::spoken(answer));
  report.rows_of_empty = render::rows_of_empty_analysis();
  return report;
}

Command analyze_command() {
  return {"analyze", "What a recording says: acceptance with its interval, and the best gamma by exact replay",
          tables_of_analysis(), setup_of<AnalyzeOptions>(run, declare)};
}

}  // namespace specdec::cli
