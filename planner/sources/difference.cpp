#include "planner/difference.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/estimate/observe.hpp"
#include "analysis/estimate/text_ends.hpp"
#include "analysis/planning/replay_columns.hpp"
#include "analysis/planning/trace_analysis.hpp"
#include "analysis/theory/streaming_replay.hpp"
#include "planner/assumption.hpp"
#include "planner/distinct_files.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"
#include "planner/sources/recording_files.hpp"
#include "traces/formats/recording_formats.hpp"
#include "traces/serving/read_serving_counts.hpp"

namespace specdec::planner {
namespace {

using estimate::RunUnit;
using traces::AcceptanceRule;
using traces::CountUnit;
using traces::ServingCounts;

/// One side as it was read.
struct ReadRun {
  ComparedRun about;
  std::vector<RunUnit> units;
  /// Clients of a benchmark's runs.
  std::set<double> loads = {};
  /// Of counts that tell their steps: the same by step.
  std::vector<RunUnit> by_step = {};
  /// Of a recording.
  std::optional<planning::TraceAnalysis> recording = {};
  /// Of counts: the share of steps that drafted; empty if they do not tell.
  std::optional<double> drafting_share = {};
  /// True for counts of vLLM whose drafts are shorter than gamma and that do not tell the steps without one, as where
  /// drafts are looked up.
  bool may_look_up = false;
};

/// The only value, or empty.
template <class Value>
std::optional<Value> only(const std::set<Value>& values) {
  return values.size() == 1 ? std::optional(*values.begin()) : std::nullopt;
}

/// A mean over rounds that nothing counts, as over so many: SGLang's log interval at one request.
ServingCounts with_rounds(ServingCounts counts) {
  constexpr double rounds_of_a_mean = 40;
  if (counts.rounds || !counts.tokens_per_round) return counts;
  counts.rounds = rounds_of_a_mean;
  counts.accepted = rounds_of_a_mean * (*counts.tokens_per_round - 1);
  counts.tokens_per_round.reset();
  counts.from_rates = true;
  return counts;
}

ReadRun counted_run(const ComparedFiles& files, const DifferenceQuestion& question, std::vector<Note>& warnings) {
  ReadRun run;
  run.about = {files.file, "counts", {}, {}, {}};
  const estimate::LabelGroups by = question.by.label.empty() ? estimate::LabelGroups{"category", {}} : question.by;
  std::set<CountUnit> kinds;
  std::set<std::optional<AcceptanceRule>> rules;
  std::set<std::optional<std::int64_t>> gammas;
  std::set<std::string> models;
  double rounds = 0, steps = 0, drafted = 0, longest = 0;
  bool tells_steps = true, of_vllm = true;
  traces::CountsSink sink;
  sink.take = [&](const ServingCounts& read) {
    const ServingCounts counts = with_rounds(read);
    rounds += counts.rounds.value_or(0);
    const std::optional<double> its_steps = traces::steps_of(counts);
    steps += its_steps.value_or(0);
    tells_steps = tells_steps && its_steps;
    if (its_steps) {
      const auto step = estimate::run_unit(traces::counted_by_step(counts, question.gamma), question.gamma, by);
      if (step) run.by_step.push_back(*step);
    }
    const auto unit = estimate::run_unit(counts, question.gamma, by);
    if (!unit) return;
    run.units.push_back(*unit);
    if (counts.unit == CountUnit::run && counts.bench && counts.bench->max_concurrency) {
      run.loads.insert(*counts.bench->max_concurrency);
      run.units.back().prompt = fmt::format("{} clients", *counts.bench->max_concurrency);
    }
    of_vllm = of_vllm && counts.engine == "vllm";
    drafted += counts.drafted.value_or(0);
    longest += counts.rounds.value_or(0) * static_cast<double>(longest_draft_of(counts, question.gamma).value_or(0));
    kinds.insert(counts.unit);
    rules.insert(counts.rule);
    gammas.insert(counts.gamma ? counts.gamma : question.gamma);
    models.insert(std::string(counts.label("model_name")));
  };
  sink.warn = [&](const Note& note) { warnings.push_back(note); };
  const std::filesystem::path path(files.file);
  traces::read_serving_counts({&path, 1}, sink);
  if (run.units.empty()) {
    throw QuestionError(
        fmt::format("{} counts no rounds of speculative decoding with their accepted drafts", files.file));
  }
  if (models.size() > 1) {
    warnings.push_back(
        {"several_models", fmt::format("{} counts {} models, which are taken as one run", files.file, models.size())});
  }
  // Repeats of one load are runs of their own.
  if (run.loads.size() < run.units.size())
    for (RunUnit& unit : run.units)
      if (!run.loads.empty()) unit.prompt.clear();
  constexpr double full = 0.95;
  if (tells_steps && steps > 0) run.drafting_share = std::min(1.0, rounds / steps);
  run.may_look_up = of_vllm && !run.drafting_share && drafted > 0 && drafted < full * longest;
  const auto kind = only(kinds);
  run.about.unit = kind ? std::string(name_of(*kind)) : "unit";
  run.about.rule = only(rules).value_or(std::nullopt);
  run.about.gamma = only(gammas).value_or(std::nullopt);
  if (kind == CountUnit::window) {
    run.units = estimate::joined_windows(std::move(run.units));
    run.by_step = estimate::joined_windows(std::move(run.by_step));
  }
  return run;
}

std::unique_ptr<traces::PositionSource> opened(const ComparedFiles& files) {
  RecordingFiles recording;
  recording.files = {files.file};
  recording.how.draft_array = files.draft_array.value_or("");
  auto source = open_recording(recording);
  if (source->metadata().path == traces::TextSource::other) {
    throw QuestionError(fmt::format(
        "{} cannot be compared: its text is not the target's own (path is other), and only such a text tells what "
        "drafts gain",
        files.file));
  }
  return source;
}

/// Replays a recording text by text.
class TextReplay {
 public:
  /// @param by_sequence  texts without a prompt are told by their number
  TextReplay(std::vector<std::string> task_names, std::int64_t depths, std::int64_t gamma, bool by_sequence)
      : task_names_(std::move(task_names)), by_sequence_(by_sequence), gamma_(gamma), stream_({gamma, depths, true}) {}

  void add(const estimate::PositionLabels& labels, const planning::ReplayColumns& columns) {
    const std::size_t depths = static_cast<std::size_t>(columns.depths());
    for (std::size_t begin = 0; begin < labels.size();) {
      std::size_t end = begin + 1;
      while (end < labels.size() && labels.sequence[end] == labels.sequence[begin]) ++end;
      if (sequence_ != labels.sequence[begin]) {
        finish();
        start(labels, begin);
      }
      stream_.add(columns.lower().subspan(begin * depths, (end - begin) * depths));
      begin = end;
    }
  }
  std::vector<RunUnit> units() {
    finish();
    return std::move(units_);
  }

 private:
  void start(const estimate::PositionLabels& labels, std::size_t i) {
    sequence_ = labels.sequence[i];
    RunUnit unit;
    if (labels.has_prompt(i)) {
      unit.prompt = fmt::format("prompt {}", labels.prompt[i]);
    } else if (by_sequence_) {
      unit.prompt = fmt::format("text {}", labels.sequence[i]);
    }
    unit.group = traces::task_name(task_names_, labels.task_of(i));
    units_.push_back(std::move(unit));
  }
  void finish() {
    if (!sequence_) return;
    sequence_.reset();
    const theory::ReplayedRounds& rounds = stream_.finish_sequence();
    RunUnit& unit = units_.back();
    unit.rounds = rounds.steps(gamma_);
    for (std::int64_t j = 1; j <= gamma_; ++j) unit.survived.push_back(rounds.accepted(gamma_, j));
    for (const double survived : unit.survived) unit.accepted += survived;
    if (!(unit.rounds > 0)) units_.pop_back();
  }

  std::vector<std::string> task_names_;
  bool by_sequence_;
  std::int64_t gamma_;
  theory::StreamingReplay stream_;
  std::optional<std::int64_t> sequence_;
  std::vector<RunUnit> units_;
};

planning::TraceAnalysisOptions analysis_at(std::int64_t gamma, std::optional<AcceptanceRule> rule) {
  planning::TraceAnalysisOptions how;
  how.observe.rule = rule;
  how.observe.lenience.clear();
  how.max_gamma = gamma;
  how.judges_drafting = false;
  return how;
}

/// @throws QuestionError if the batch is not known exactly
const planning::ReplayColumns& exact_columns(const planning::TraceAnalyzer& analyzer,
                                             const traces::PositionBatch& batch, const std::string& file) {
  const planning::ReplayColumns* const columns = analyzer.replayed();
  if (columns != nullptr && columns->exact()) return *columns;
  throw QuestionError(fmt::format("{} cannot be compared: {}", file,
                                  columns != nullptr ? "it knows acceptance within bounds alone"
                                                     : planning::nothing_of_acceptance(planning::lacks_tokens(batch))));
}

/// @param rule  empty: the recording's own
ReadRun replayed_run(const ComparedFiles& files, const DifferenceQuestion& question,
                     std::optional<AcceptanceRule> rule) {
  if (!question.gamma) {
    throw QuestionError(fmt::format("--gamma is missing: {} is a recording, which is replayed at a gamma", files.file));
  }
  if (!question.by.label.empty() && question.by.label != "task") {
    refuse("--by", question.by.label, fmt::format("task: {} is a recording", files.file));
  }
  const auto source = opened(files);
  const std::int64_t gamma = *question.gamma;
  planning::TraceAnalyzer analyzer(source->metadata(), source->depths(), analysis_at(gamma, rule));
  std::optional<TextReplay> replay;
  // Accepted lengths are of one rule, others are what any rule accepts.
  bool rule_known = source->metadata().acceptance.has_value();
  traces::PositionBatch batch;
  while (source->read(batch)) {
    rule_known = rule_known || batch.tier != traces::Tier::accepted_length;
    const estimate::Observations& seen = analyzer.add(*source, batch);
    const planning::ReplayColumns& columns = exact_columns(analyzer, batch, files.file);
    if (!replay) {
      replay.emplace(source->metadata().task_names, columns.depths(), gamma, question.a.file == question.b.file);
    }
    replay->add(seen.labels(), columns);
    tell_of_reading(question.progress, *source, batch);
  }
  if (!replay) throw QuestionError(fmt::format("{} holds no text", files.file));
  require_drafted(analyzer.replayed()->longest_draft(), gamma, files.file);
  ReadRun run;
  run.recording = analyzer.finish(source->metadata().task_names);
  std::vector<Note>& notes = run.recording->notes;
  append(notes, source->notes());
  if (const auto note = estimate::short_texts(run.recording->replay->highest())) notes.push_back(*note);
  run.about = {files.file, "recording", "text", rule_known ? std::optional(run.recording->rule) : std::nullopt, gamma};
  run.units = replay->units();
  return run;
}

/// Position traces, which are counts too, are replayed, at any gamma and under the guards of recordings.
bool is_counts(const std::string& file) {
  const traces::FileHead head = traces::FileHead::of(file);
  return !head.folder && traces::recognised_counts(head) && !traces::is_position_traces(head.json());
}

ReadRun read_run(const ComparedFiles& files, const DifferenceQuestion& question, std::vector<Note>& warnings) {
  if (is_counts(files.file)) {
    if (files.draft_array) {
      throw QuestionError(fmt::format("--draft-array is given, but {} is no recording", files.file));
    }
    return counted_run(files, question, warnings);
  }
  return replayed_run(files, question, {});
}

/// Adds the counts of a run's units under another rule.
void take_other_rule(const ComparedFiles& files, const DifferenceQuestion& question, AcceptanceRule rule,
                     std::vector<RunUnit>& units) {
  const ReadRun other = replayed_run(files, question, rule);
  for (std::size_t i = 0; i < units.size(); ++i) {
    units[i].other_rule = {other.units[i].accepted, other.units[i].rounds};
  }
}

void compare_rules(const DifferenceQuestion& question, ReadRun& a, ReadRun& b, std::vector<Note>& warnings) {
  const auto& rule_a = a.about.rule;
  const auto& rule_b = b.about.rule;
  const auto warn = [&](const std::string& why) { warnings.push_back({"rules_differ", why}); };
  if (!rule_a || !rule_b) {
    warnings.push_back(
        {"rule_unknown", fmt::format("{} not say by which rule drafts were accepted: a difference of rules "
                                     "is part of what is shown",
                                     rule_a   ? b.about.file + " does"
                                     : rule_b ? a.about.file + " does"
                                              : "the files do")});
    return;
  }
  if (rule_a == rule_b) return;
  const std::string differ = fmt::format("{} accepted by {}, {} by {}", a.about.file, traces::name_of(*rule_a),
                                         b.about.file, traces::name_of(*rule_b));
  if (a.about.kind != "recording" || b.about.kind != "recording") {
    return warn(differ + ": counts do not tell what of the difference is the rule's");
  }
  try {
    take_other_rule(question.a, question, *rule_b, a.units);
    take_other_rule(question.b, question, *rule_a, b.units);
    warn(differ + ": the rule's part is shown");
  } catch (const estimate::RuleUndefined& reason) {
    for (ReadRun* run : {&a, &b}) {
      for (RunUnit& unit : run->units) unit.other_rule.reset();
    }
    warn(fmt::format("{}: what of the difference is the rule's is not told, since {}", differ, reason.what()));
  }
}

/// Whether B counts on from where A stopped, as a later scrape of the same server does.
bool counts_on(const ReadRun& a, const ReadRun& b) {
  if (a.about.kind != "counts" || b.about.kind != "counts" || a.about.unit != "total" || b.about.unit != "total")
    return false;
  bool found = false;
  traces::CountsSink sink;
  sink.take = [&](const ServingCounts& counts) { found = found || counts.between_scrapes; };
  const std::array<std::filesystem::path, 2> both = {a.about.file, b.about.file};
  try {
    traces::read_serving_counts(both, sink);
  } catch (const traces::FileError&) {
    return false;
  }
  return found;
}

void warn_of_runs(const ReadRun& a, const ReadRun& b, const estimate::RunDifference& found,
                  std::vector<Note>& warnings) {
  if (a.about.gamma && b.about.gamma && a.about.gamma != b.about.gamma) {
    warnings.push_back(
        {"gammas_differ", fmt::format("{} drafts {} tokens a step, {} drafts {}: what is accepted behind "
                                      "the shorter draft is part of the difference",
                                      a.about.file, *a.about.gamma, b.about.file, *b.about.gamma)});
  }
  const bool is_later = counts_on(a, b);
  if (is_later || counts_on(b, a)) {
    const std::string &before = is_later ? a.about.file : b.about.file, &after = is_later ? b.about.file : a.about.file;
    warnings.push_back({std::string(later_scrape),
                        fmt::format("{} goes on from the counts of {}: if both are of one server, the rounds between "
                                    "them are what `specdec counters {} {}` counts",
                                    after, before, before, after)});
  }
  for (const auto& [run, clusters] : {std::pair(&a, found.clusters_a), std::pair(&b, found.clusters_b)}) {
    if (clusters > 1) continue;
    warnings.push_back(
        {"one_cluster", fmt::format("{} gives one sum, which says nothing of how requests vary: figures of "
                                    "each request, or windows of time, give intervals",
                                    run->about.file)});
  }
}

/// Times of benchmarks with other numbers of clients say nothing of the runs.
void compare_loads(const ReadRun& a, const ReadRun& b, RunsDifference& answer) {
  if (!answer.difference.time || a.loads.empty() || b.loads.empty() || a.loads == b.loads) return;
  answer.difference.time.reset();
  answer.warnings.push_back(
      {"loads_differ", fmt::format("{} ran with {} clients, {} with {}: times are compared at equal loads alone",
                                   a.about.file, fmt::join(a.loads, ", "), b.about.file, fmt::join(b.loads, ", "))});
}

bool lacks_prompts(const ReadRun& run) {
  return run.recording && std::ranges::any_of(run.units, [](const RunUnit& unit) { return unit.prompt.empty(); });
}

/// Texts of the same prompts differ by less than others.
void warn_of_pairs(const ReadRun& a, const ReadRun& b, const RunsDifference& answer, std::vector<Note>& warnings) {
  const bool of_a = lacks_prompts(a), of_b = lacks_prompts(b);
  if (answer.tells() || !(of_a || of_b)) return;
  warnings.push_back(
      {"prompts_not_paired",
       fmt::format("{} not say which texts continue one prompt (column prompt): if both runs had the same prompts, "
                   "the column pairs their texts, and fewer tell a difference",
                   of_a && of_b ? "A and B do"
                   : of_a       ? "A does"
                                : "B does")});
}

/// "code, chat"; "none" without labels.
std::string groups_of(const ReadRun& run) {
  std::vector<std::string> names;
  for (const RunUnit& unit : run.units) {
    if (!unit.group.empty()) append_new(names, std::vector{unit.group});
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// Without a group in common a change of the mix and one of acceptance are the same.
void warn_of_groups(const ReadRun& a, const ReadRun& b, const RunsDifference& answer, std::vector<Note>& warnings) {
  const std::string of_a = groups_of(a), of_b = groups_of(b);
  if (answer.difference.mix || of_a == of_b) return;
  warnings.push_back(
      {"groups_not_shared",
       fmt::format("the runs have no group in common ({} in {}, {} in {}): what is of the mix and what of "
                   "acceptance in a group cannot be told",
                   of_a, a.about.file, of_b, b.about.file)});
}

/// Shares of steps that drafted are alike up to this difference.
constexpr double alike_shares = 0.05;

/// Counts of rounds leave out the steps without a draft, of which a run that looks drafts up has many: where both tell
/// them, steps take the place of rounds.
void take_steps(ReadRun& a, ReadRun& b, std::vector<Note>& warnings) {
  if (!a.drafting_share || !b.drafting_share) return;
  if (std::min(*a.drafting_share, *b.drafting_share) >= 1 - alike_shares) return;
  warnings.push_back(
      {"steps_without_drafts", fmt::format("A drafted in {} of its steps, B in {}: tokens are those of all steps",
                                           percent(*a.drafting_share), percent(*b.drafting_share))});
  for (ReadRun* run : {&a, &b}) {
    run->units = std::move(run->by_step);
    run->drafting_share = 1;
  }
}

std::string undecided_by_steps(const ReadRun& a, const ReadRun& b) {
  const double of_a = a.drafting_share.value_or(1), of_b = b.drafting_share.value_or(1);
  if (a.may_look_up || b.may_look_up)
    return "drafts are shorter than gamma, as where they are looked up, and it is not told how many steps had none; "
           "these are the tokens of the steps that drafted (scrapes with inter_token_latency_seconds tell)";
  if (std::abs(of_a - of_b) <= alike_shares) return "";
  const auto share = [](const ReadRun& run) {
    return run.drafting_share ? percent(*run.drafting_share) : std::string("an unknown share");
  };
  return fmt::format("A drafted in {} of its steps, B in {}, and these are the tokens of the steps that drafted",
                     share(a), share(b));
}

bool holds(const ReadRun& run, const Note& note) {
  return run.recording && std::ranges::any_of(run.recording->notes, [&](const Note& own) {
           return own.code == note.code && own.message == note.message;
         });
}

Note of_side(std::string_view side, Note note) {
  note.message = fmt::format("{}: {}", side, note.message);
  return note;
}

std::string foreign_text(const ReadRun& a, const ReadRun& b) {
  const auto refused = [](const ReadRun& run) { return run.recording && run.recording->replay_refused; };
  const bool of_a = refused(a), of_b = refused(b);
  if (!of_a && !of_b) return "";
  if (of_a && of_b) return "the texts do not look like the target's own, and their replays then mean nothing";
  return fmt::format("the text of {} does not look like the target's own, and its replay then means nothing",
                     of_a ? "A" : "B");
}

/// "the texts hold 10 tokens on average in A and 400 in B, and without their ends B - A would be 0.012".
std::string text_ends(const estimate::EndsInDifference& ends) {
  return fmt::format("the texts hold {:.4g} tokens on average in A and {:.4g} in B, {}", ends.mean_length_a,
                     ends.mean_length_b,
                     ends.unended ? fmt::format("and without their ends B - A would be {:.3f}", *ends.unended)
                                  : "and those of one are too short to look at every draft of a step");
}

/// The notes of both analyses, each with its side: "A: ...", "A and B: ..." where both have it.
std::vector<Note> notes_of(const ReadRun& a, const ReadRun& b) {
  std::vector<Note> notes;
  if (a.recording) {
    for (const Note& note : a.recording->notes) notes.push_back(of_side(holds(b, note) ? "A and B" : "A", note));
  }
  if (b.recording) {
    for (const Note& note : b.recording->notes)
      if (!holds(a, note)) notes.push_back(of_side("B", note));
  }
  return notes;
}

/// Why the difference decides nothing: a text does not look like the target's own, or the ends of the texts may be all
/// of the difference. Empty if nothing speaks against it. Adds a warning ("text_ends_matter") where ends matter.
/// @param gamma   drafts of a step, which both analyses replay
/// @param tokens  the difference of tokens per step
std::string undecided_by(const ReadRun& a, const ReadRun& b, std::int64_t gamma, const estimate::Difference& tokens,
                         std::vector<Note>& warnings) {
  if (std::string reason = foreign_text(a, b); !reason.empty()) return reason;
  if (!a.recording || !b.recording) return "";
  const estimate::EndsInDifference ends =
      estimate::ends_in_difference(a.recording->replay->highest(), b.recording->replay->highest(), gamma, tokens);
  const bool decide = tokens.tells() && ends.may_be_all;
  if (decide || ends.matter) {
    warnings.push_back({"text_ends_matter", fmt::format("a text's end cuts its last step short: {}, not {:.3f}",
                                                        text_ends(ends), tokens.value)});
  }
  return decide ? text_ends(ends) : "";
}

/// Takes what speaks against the difference; more texts would not change that.
void take_limits(const ReadRun& a, const ReadRun& b, RunsDifference& answer) {
  estimate::RunDifference& found = answer.difference;
  answer.undecided = a.recording || b.recording
                         ? undecided_by(a, b, *answer.question.gamma, found.tokens, answer.warnings)
                         : undecided_by_steps(a, b);
  if (answer.undecided.empty()) return;
  found.clusters_to_tell.reset();
  found.detectable.reset();
}

}  // namespace

RunsDifference difference(const DifferenceQuestion& question) {
  if (question.gamma) {
    require_in("--gamma", *question.gamma, {.lo = 1, .hi = static_cast<double>(theory::largest_replayed_gamma)});
  }
  if (question.a.file == question.b.file && question.a.draft_array == question.b.draft_array) {
    throw QuestionError(fmt::format("{} is given twice, with the same draft: nothing differs", question.a.file));
  }
  RunsDifference answer;
  answer.question = question;
  answer.files = {question.a.file, question.b.file};
  try {
    ReadRun a = read_run(question.a, question, answer.warnings), b = read_run(question.b, question, answer.warnings);
    compare_rules(question, a, b, answer.warnings);
    take_steps(a, b, answer.warnings);
    if (question.unpaired) {
      for (ReadRun* run : {&a, &b}) {
        for (RunUnit& unit : run->units) {
          if (!unit.prompt.empty()) unit.prompt = (run == &a ? "a " : "b ") + unit.prompt;
        }
      }
    }
    answer.difference = estimate::run_difference(a.units, b.units);
    compare_loads(a, b, answer);
    if (question.a.file != question.b.file && same_bytes(question.a.file, question.b.file)) {
      answer.warnings.push_back(
          {"same_content", fmt::format("{} holds the same bytes as {}: they are one run, given twice", question.b.file,
                                       question.a.file)});
    }
    append(answer.warnings, notes_of(a, b));
    take_limits(a, b, answer);
    warn_of_pairs(a, b, answer, answer.warnings);
    warn_of_runs(a, b, answer.difference, answer.warnings);
    warn_of_groups(a, b, answer, answer.warnings);
    answer.a = a.about;
    answer.b = b.about;
  } catch (const estimate::RuleUndefined& reason) {
    throw QuestionError(fmt::format("a recording does not tell what its rule accepts: {}", reason.what()));
  }
  return answer;
}

}  // namespace specdec::planner
