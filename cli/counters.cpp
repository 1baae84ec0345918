#include "cli/commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include "cli/counters_answer.hpp"
#include "cli/files.hpp"
#include "cli/progress.hpp"
#include "cli/usage_error.hpp"
#include "planner/distinct_files.hpp"
#include "planner/lookup_drafts.hpp"
#include "planner/number_text.hpp"
#include "planner/sources/seen_labels.hpp"
#include "planner/traffic_mix.hpp"
#include "render/text.hpp"
#include "traces/open_trace.hpp"
#include "traces/serving/read_serving_counts.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using traces::ServingCounts;

void declare(Options& options, CountersOptions& o) {
  options.group("Counts");
  options.text("--by", o.by, "LABEL[:B1,B2,...]",
               "a group for each value of this label besides the model's name,\n"
               "or for each range of numbers between bounds; \"file\" for each file");
  options.integer("-k,--gamma,--num-speculative-tokens,--at", o.gamma, {1, largest_counted_gamma},
                  "gamma at which was counted, where the counts do not say it;\n--at in every command");
  options.text("--tree", o.tree, "DEPTH,TOKENS",
               "drafts were trees: their depth, and the positions that the\n"
               "target verifies a round, the root included");
  options.flag("--skip-unreadable", o.skip_unreadable, "leave out files that cannot be read, with a warning each");
  o.scrape.declare(options);
  options.group("Other gammas");
  options.integer("--max-gamma", o.max_gamma, {1, 256}, "largest gamma to show");
  options.footer(
      "Examples:\n"
      "  curl -s http://localhost:8000/metrics | specdec counters -\n"
      "  specdec counters before.prom after.prom\n"
      "  specdec counters requests.jsonl --by category --format json\n"
      "Formats: docs/reference/formats.md.");
  options.arguments("SOURCE", o.sources,
                    "files in any format that docs/reference/formats.md lists; - is standard input",
                    Options::Least::none);
}

/// The tree of drafts that the user states.
struct Tree {
  std::int64_t depth;
  double tokens;
};

std::optional<Tree> tree_of(const CountersOptions& o) {
  if (!o.tree) return std::nullopt;
  if (o.gamma) throw UsageError("--tree is given beside --at, but a tree has its own depth: --tree DEPTH,TOKENS");
  const auto parts = split(*o.tree, ',');
  if (parts.size() != 2) refuse("--tree", *o.tree, "DEPTH,TOKENS: its depth, and the positions verified a round");
  const std::int64_t depth = parse_integer("depth in --tree", parts[0], 1, largest_counted_gamma);
  const std::int64_t tokens = parse_integer("tokens in --tree", parts[1], depth + 1, 1'000'000);
  return Tree{depth, static_cast<double>(tokens)};
}

/// The counts with what the user adds to them.
ServingCounts as_stated(ServingCounts counts, const Tree& tree) {
  const auto contradicts = [&](const char* field, const std::string& found, const std::string& stated) {
    throw counts.refusal(field, found, stated);
  };
  if (counts.shape == traces::DraftShape::chain) contradicts("the shape of drafts", "chain", "a tree, as --tree says");
  counts.shape = traces::DraftShape::tree;
  if (counts.gamma && *counts.gamma != tree.depth) {
    contradicts("depth", fmt::format("{}", *counts.gamma), fmt::format("{}, as --tree says", tree.depth));
  }
  counts.gamma = tree.depth;
  if (!counts.verified_per_round) counts.verified_per_round = static_cast<std::int64_t>(tree.tokens);
  return counts;
}

CountersGroup group_of(estimate::ServingSummary summary, const CountersOptions& o) {
  CountersGroup group{std::move(summary), {}, {}, {}};
  try {
    const estimate::MeasuredAcceptance measured(group.summary);
    group.method = measured.method();
    for (std::int64_t gamma = 1; gamma <= o.max_gamma; ++gamma) {
      group.gammas.push_back({gamma, measured.tokens_per_step(gamma), measured.measured_gamma() == gamma});
    }
  } catch (const std::domain_error& reason) {
    const std::string_view what = reason.what();
    group.no_gammas = what.substr(what.starts_with("MeasuredAcceptance: ") ? what.find(' ') + 1 : 0);
    group.gammas.clear();
  }
  return group;
}

/// Adds counts as the options state them.
traces::CountsSink sink_into(estimate::ServingSummaries& summaries, const std::optional<Tree>& tree) {
  traces::CountsSink sink;
  sink.take = [&summaries, tree](const ServingCounts& counts) {
    tree ? summaries.add(as_stated(counts, *tree)) : summaries.add(counts);
  };
  sink.warn = [](const Note& /*warning*/) {};
  return sink;
}

estimate::LabelGroups groups_of(const CountersOptions& o) {
  return o.by ? planner::label_groups(*o.by) : estimate::LabelGroups{};
}

/// The files that can be read and summed up alone; each other one leaves a warning.
std::vector<std::filesystem::path> readable_files(const std::vector<std::filesystem::path>& files,
                                                  const CountersOptions& o, const std::optional<Tree>& tree,
                                                  std::vector<Note>& notes) {
  std::vector<std::filesystem::path> readable;
  for (const std::filesystem::path& file : files) {
    try {
      estimate::ServingSummaries alone({groups_of(o), o.gamma, tree.has_value()});
      traces::read_serving_counts(std::span(&file, 1), sink_into(alone, tree));
      readable.push_back(file);
    } catch (const traces::FileError& reason) {
      notes.push_back({"file_left_out", fmt::format("left out: {}", reason.what())});
    }
  }
  if (readable.empty()) throw UsageError(fmt::format("no SOURCE can be read; {}", notes.front().message));
  return readable;
}

/// Steps of engines that tell how many of them drafted.
class DraftingSteps {
 public:
  void add(const ServingCounts& counts) {
    const auto steps = traces::steps_of(counts);
    if (!steps || !(counts.rounds.value_or(0) > 0) || !counts.accepted) return;
    steps_ += *steps;
    rounds_ += *counts.rounds;
    accepted_ += *counts.accepted;
  }
  /// Says ("steps_without_drafts") that many of them did not.
  std::optional<Note> note() const {
    if (!(rounds_ < planner::drafts_in_every_step * steps_)) return std::nullopt;
    return Note{std::string(planner::steps_without_drafts),
                fmt::format("{} of the steps drafted, as where drafts are looked up or at times switched off: what is "
                            "printed is of these, and all steps put out {:.4g} tokens each",
                            planner::percent(rounds_ / steps_), 1 + accepted_ / steps_)};
  }

 private:
  double steps_ = 0, rounds_ = 0, accepted_ = 0;
};

CountersAnswer summarised(const CountersOptions& o) {
  if (o.sources.empty() && !o.scrape.url)
    throw UsageError("SOURCE is missing: files of counts, - for standard input, or --scrape");
  std::vector<std::filesystem::path> files(o.sources.begin(), o.sources.end());
  planner::require_distinct("SOURCE", files);
  const std::optional<Tree> tree = tree_of(o);
  const estimate::LabelGroups by = groups_of(o);
  estimate::ServingSummaries summaries({by, o.gamma, tree.has_value()});
  CountersAnswer answer{o, {}, {}};
  if (o.scrape.url) {
    const std::vector<std::string> scrapes = scraped(o.scrape, answer.notes);
    files.insert(files.end(), scrapes.begin(), scrapes.end());
  }
  if (o.skip_unreadable) files = readable_files(files, o, tree, answer.notes);
  for (const std::filesystem::path& file : files) answer.read.push_back(file.string());
  traces::CountsSink sink = sink_into(summaries, tree);
  planner::SeenLabels labels(by);
  DraftingSteps steps;
  sink.take = [&, add = sink.take](const ServingCounts& counts) {
    labels.add(counts);
    steps.add(counts);
    add(counts);
  };
  sink.warn = [&](const Note& warning) { answer.notes.push_back(warning); };
  traces::read_serving_counts(files, sink);
  labels.require("--by");
  if (const auto note = steps.note()) answer.notes.push_back(*note);
  for (estimate::ServingSummary& summary : summaries.summaries()) {
    answer.groups.push_back(group_of(std::move(summary), o));
  }
  if (answer.groups.empty()) {
    throw UsageError(fmt::format("{} {} no rounds of speculative decoding", fmt::join(answer.read, ", "),
                                 answer.read.size() == 1 ? "holds" : "hold"));
  }
  return answer;
}

std::vector<Assumption> assumptions_of(const CountersAnswer& a) {
  const CountersOptions& o = a.options;
  std::vector<Assumption> assumptions;
  if (o.gamma) assumptions.push_back({"gamma", *o.gamma, "user"});
  if (o.tree) assumptions.push_back({"tree", *o.tree, "user"});
  return assumptions;
}

/// Warnings of one code that groups give; of more there is the number.
constexpr std::size_t most_of_one_code = 3;

/// "a, b", or "a, b, c and 5 more".
std::string some_of(const std::vector<std::string>& titles) {
  constexpr std::size_t shown = 3;
  if (titles.size() <= shown + 1) return fmt::format("{}", fmt::join(titles, "; "));
  return fmt::format("{} and {} more", fmt::join(titles.begin(), titles.begin() + shown, "; "), titles.size() - shown);
}

std::vector<Note> warnings_of(const CountersAnswer& a) {
  std::vector<Note> warnings;
  std::set<std::pair<std::string, std::string>> said;
  const auto warn = [&](const std::string& code, const std::string& message) {
    if (said.emplace(code, message).second) warnings.push_back({code, message});
  };
  for (const Note& note : a.notes) warn(note.code, note.message);
  // Groups that are warned of alike share one warning.
  std::vector<std::pair<Note, std::vector<std::string>>> shared;
  const auto of_group = [&](const std::string& code, const std::string& message, const std::string& title) {
    const auto alike = std::find_if(shared.begin(), shared.end(), [&](const auto& entry) {
      return entry.first.code == code && entry.first.message == message;
    });
    if (alike != shared.end()) return alike->second.push_back(title);
    shared.push_back({{code, message}, {title}});
  };
  for (const CountersGroup& group : a.groups) {
    const std::string title = title_of(group.summary);
    for (const Note& warning : group.summary.warnings) of_group(warning.code, warning.message, title);
    if (!group.no_gammas.empty()) of_group("no_gammas", group.no_gammas, title);
  }
  std::map<std::string, std::size_t> times, left_out;
  for (const auto& [warning, titles] : shared) {
    if (++times[warning.code] > most_of_one_code) {
      left_out[warning.code] += titles.size();
      continue;
    }
    const bool all = titles.size() == a.groups.size();
    warn(warning.code, all ? warning.message : fmt::format("{}: {}", some_of(titles), warning.message));
  }
  for (const auto& [code, groups] : left_out) warn(code, fmt::format("the same in {} more groups", groups));
  return warnings;
}

Report run(const CountersOptions& chosen, const Options& options) {
  require_consistent(chosen.scrape);
  CountersOptions o = chosen;
  o.scrape.progress = progress_line("scraping", options.quiet());
  const CountersAnswer answer = summarised(o);
  Report report;
  report.json = json_of(answer);
  report.rows_of_empty = rows_of_empty_counts();
  report.spoken = spoken(answer);
  report.assumptions = assumptions_of(answer);
  report.warnings = warnings_of(answer);
  for (const std::string& source : answer.read) report.files.push_back(file_facts("SOURCE", source));
  append(report.warnings, same_content(report.files));
  return report;
}

}  // namespace

Command counters_command() {
  return {"counters",
          "What servers counted: acceptance with its interval, and tokens per step of other gammas",
          {{"groups", "/groups"},
           {"positions", "/groups/*/positions", {"model_name", "group"}},
           {"histogram", "/groups/*/histogram", {"model_name", "group"}},
           {"gammas", "/groups/*/gammas", {"model_name", "group"}}},
          setup_of<CountersOptions>(run, declare)};
}

}  // namespace specdec::cli
