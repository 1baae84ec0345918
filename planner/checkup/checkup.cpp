#include "planner/checkup/checkup.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "analysis/core/normal_interval.hpp"
#include "analysis/core/tails.hpp"
#include "analysis/cost/observed_rounds.hpp"
#include "analysis/estimate/observe.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "planner/checkup/count_checks.hpp"
#include "planner/checkup/run_checks.hpp"
#include "planner/distinct_files.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"
#include "planner/recordings/analysis.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/formats/timing_table.hpp"
#include "traces/open_trace.hpp"
#include "traces/serving/counts_formats.hpp"
#include "traces/serving/read_serving_counts.hpp"
#include "traces/unpaired_file.hpp"

namespace specdec::planner {
namespace {

using nlohmann::json;
using traces::FileError;
using traces::ServingCounts;

/// A warning of a reader or an estimate that says something of the file's health.
struct KnownWarning {
  std::string_view code;
  Severity severity;
  std::string_view remedy;
};

constexpr std::array known_warnings = {
    KnownWarning{
        "text_not_from_target", Severity::error,
        "record the target's own samples, at the temperature and with the template that are written down, and row "
        "t beside the token that it is the distribution of"},
    KnownWarning{"alphas_disagree", Severity::warning,
                 "hold the sampling settings and the template of both models against each other"},
    KnownWarning{"greedy_of_sampled_text", Severity::warning,
                 "record at temperature 0, or ask for the rule that the server follows"},
    KnownWarning{"not_greedy_text", Severity::warning, "record greedy text again, or write down its temperature"},
    KnownWarning{"logit_bias", Severity::warning, "record without ignore_eos"},
    KnownWarning{"sampling_not_stated", Severity::warning,
                 "write down the temperature and logprob_space, or keep generation_settings in the answers"},
    KnownWarning{"metadata_differs", Severity::warning, "record all files with the same models and settings"},
    KnownWarning{"row_sums", Severity::note, "write rows with more digits, or whole"},
    KnownWarning{"no_accepted_drafts", Severity::error, "check that speculation was on and the draft was loaded"},
    KnownWarning{"percent_taken_as_fraction", Severity::warning, "write the rate in per cent, as the benchmark does"},
    KnownWarning{"counts_disagree", Severity::error,
                 "scrape all series at once: counts by position do not belong to the totals"},
    KnownWarning{"gamma_differs", Severity::warning, "leave --at out, or give the files of that gamma"},
    KnownWarning{"run_given_twice", Severity::note, "give each run once"},
    KnownWarning{"request_given_twice", Severity::warning, "give each request once"},
    KnownWarning{"request_ids_repeat", Severity::warning,
                 "count each request once: keep the answer that was served, or give answers of their own ids"},
    KnownWarning{"counter_reset", Severity::warning, "take both scrapes without a restart between them"},
    KnownWarning{"queried_at_different_times", Severity::warning, "ask for all series in one query"},
    KnownWarning{"figures_contradict", Severity::warning,
                 "plan from the figure that you can check against the engine's log, and say it: --acceptance-length"},
    KnownWarning{"mixed_units", Severity::warning, "give totals, windows, requests or runs, and not several of them"},
    KnownWarning{"mixed_rules", Severity::warning, "count servers with one acceptance rule at a time"},
    KnownWarning{"mixed_shapes", Severity::warning, "count chains and trees apart"},
    KnownWarning{
        "mean_without_counts", Severity::note,
        "count rounds: two scrapes of the counters of verification, such as sglang:spec_verify_calls_total, or "
        "the answers themselves"},
    KnownWarning{"truncated_line", Severity::note, "copy the file when nobody writes to it"},
};

std::optional<Finding> finding_of(const Note& note, const std::string& file) {
  const auto known = std::find_if(known_warnings.begin(), known_warnings.end(),
                                  [&](const KnownWarning& warning) { return warning.code == note.code; });
  if (known == known_warnings.end()) return std::nullopt;
  return Finding{note.code,
                 known->severity,
                 note.message,
                 {{file, 0, note.code, std::nullopt, note.message}},
                 std::string(known->remedy)};
}

Evidence evidence_of(const FileError& error) {
  const FileError::Location where = error.location();
  const bool is_line = where.kind == FileError::Location::Kind::line;
  return {error.path().string(), is_line ? where.number : 0, error.field(), traces::number_in<double>(error.found()),
          error.found()};
}

/// A file of a known format that is not what the format promises.
Finding finding_of(const FileError& error) {
  Evidence evidence = evidence_of(error);
  const auto speaks_of = [](const std::string& text, const char* word) { return text.find(word) != std::string::npos; };
  const bool is_rate = speaks_of(error.field(), "rate") || speaks_of(error.field(), "acceptance");
  // A figure may be followed by its place, or by what it seems to be.
  const auto figure =
      traces::number_in<double>(std::string_view(error.found()).substr(0, error.found().find_first_of(" ,")));
  const bool too_large = figure && 1 < *figure && *figure <= 100;
  if (is_rate && too_large && speaks_of(error.expected(), "fraction")) {
    evidence.value = figure;
    return {"percentages_as_shares",
            Severity::error,
            error.what(),
            {evidence},
            "divide by 100: the format holds shares in [0, 1]"};
  }
  return {"refused",
          Severity::error,
          error.what(),
          {evidence},
          "mend or leave out what is named; nothing else of this file was used"};
}

/// An engine's settings for speculation.
struct EngineSettings {
  std::string file;
  std::optional<std::int64_t> gamma;
  std::string rejection_method;
};

/// A JSON object with the keys of vLLM's speculative_config or of SGLang's arguments, or one that holds such a
/// speculative_config; empty for anything else.
std::optional<EngineSettings> settings_of(const traces::FileHead& head) {
  if (head.folder || head.json().empty() || std::ssize(head.bytes) < head.size) return std::nullopt;
  json document = json::parse(head.json(), nullptr, false);
  if (!document.is_object()) return std::nullopt;
  if (document.contains("speculative_config")) document = json(document["speculative_config"]);
  if (!document.is_object()) return std::nullopt;
  EngineSettings settings{head.path.string(), {}, {}};
  for (const char* const key : {"num_speculative_tokens", "speculative_num_steps"}) {
    if (document.contains(key) && document[key].is_number_integer()) settings.gamma = document[key].get<std::int64_t>();
  }
  const auto method = document.find("rejection_sample_method");
  if (method != document.end() && method->is_string()) settings.rejection_method = method->get<std::string>();
  if (!settings.gamma && settings.rejection_method.empty()) return std::nullopt;
  return settings;
}

/// Whether a file is a table of timed passes, which is read to its end: llama-bench's, or one of one's own.
bool holds_times(const std::string& file) {
  try {
    return !traces::read_timing_table(file).passes.empty();
  } catch (const FileError&) {
    return false;
  }
}

void check_settings(const EngineSettings& settings, const std::vector<estimate::ServingSummary>& summaries,
                    Suspicions& suspicions) {
  if (settings.rejection_method == "synthetic") {
    suspicions.add({"synthetic_acceptance",
                    Severity::warning,
                    fmt::format("{}: drafts are accepted by a given law and not by the target", settings.file),
                    {{settings.file, 0, "rejection_sample_method", std::nullopt, settings.rejection_method}},
                    "for benchmarks of time alone; never serve texts by it"});
  }
  for (const estimate::ServingSummary& s : summaries) {
    if (!settings.gamma || !s.gamma || s.gamma == settings.gamma) continue;
    suspicions.add({"gamma_not_as_configured",
                    Severity::warning,
                    fmt::format("{} drafts {} tokens a round, but {} counted {}", settings.file, *settings.gamma,
                                s.files.empty() ? "the server" : s.files.front(), *s.gamma),
                    {{settings.file, 0, "num_speculative_tokens", static_cast<double>(*settings.gamma)},
                     {s.files.empty() ? "" : s.files.front(), 0, "gamma", static_cast<double>(*s.gamma)}},
                    "start the server with this configuration, or count the server that has it"});
  }
}

/// Reads and holds everything of one question.
class Examination {
 public:
  explicit Examination(const CheckupQuestion& question) : question_(question), suspicions_(checkup_false_alarm_rate) {}

  Checkup run() {
    sort_files();
    for (std::size_t i = 1; i < files_.size(); ++i) check_copies(files_[i].file, i);
    read_counts();
    summarise();
    check_acceptances();
    check_all_runs();
    for (const std::string& file : recordings_) check_recording({{file}, {}}, file);
    if (question_.pair) check_recording(*question_.pair, question_.pair->how.target.string());
    check_rules();
    if (question_.draft_times) check_draft_times(*question_.draft_times, suspicions_);
    for (const EngineSettings& settings : settings_) check_settings(settings, summaries_, suspicions_);
    return {files_, suspicions_.findings(), suspicions_.tests(), suspicions_.looked_for()};
  }

 private:
  void sort_files() {
    for (const std::string& file : question_.files) {
      const traces::FileHead head = traces::FileHead::of(file);
      CheckedFile& checked = files_.emplace_back(CheckedFile{file, {}});
      if (traces::recognised_counts(head)) {
        checked.kind = "counts";
        counted_.emplace_back(file);
      }
      if (checked.kind.empty() && traces::recognised_trace(head)) {
        checked.kind = "recording";
        recordings_.push_back(file);
      }
      if (!checked.kind.empty()) continue;
      const std::optional<EngineSettings> settings = settings_of(head);
      if (!settings && holds_times(file)) {
        checked.kind = "times";
        continue;
      }
      if (!settings) {
        head.refuse_format(
            "counts of a server, a benchmark's result, a recording, times of passes or an engine's configuration: "
            "docs/reference/formats.md",
            traces::tables_of_counts);
      }
      checked.kind = "configuration";
      settings_.push_back(*settings);
    }
  }

  /// The first of so many files that holds the same.
  void check_copies(const std::string& copy, std::size_t before) {
    const auto end = files_.begin() + static_cast<std::ptrdiff_t>(before);
    const auto first =
        std::find_if(files_.begin(), end, [&](const CheckedFile& checked) { return same_bytes(checked.file, copy); });
    if (first == end) return;
    // Two scrapes of an idle server are alike, and the differences between them count nothing twice.
    if (traces::prometheus_text_format().recognises(traces::FileHead::of(copy))) return;
    const auto bytes = static_cast<double>(std::filesystem::file_size(copy));
    suspicions_.add({"same_content",
                     Severity::warning,
                     fmt::format("{} holds the same bytes as {}: what it says counts twice, and intervals come out "
                                 "too narrow",
                                 copy, first->file),
                     {{first->file, 0, "bytes", bytes}, {copy, 0, "bytes", bytes}},
                     "give each file once"});
  }

  /// Files that are refused are left out, and the others read again, since scrapes are read together.
  void read_counts() {
    while (!counted_.empty()) {
      counts_.clear();
      std::vector<Note> notes;
      traces::CountsSink sink;
      sink.take = [&](const ServingCounts& unit) {
        counts_.push_back(unit);
        if (unit.draft_method.empty() && question_.draft_kind)
          counts_.back().draft_method = cost::name_of(*question_.draft_kind);
      };
      sink.warn = [&](const Note& note) { notes.push_back(note); };
      sink.plain_windows = true;
      try {
        traces::read_serving_counts(counted_, sink);
        add_notes(notes, counted_.size() == 1 ? counted_.front().string() : "");
        return;
      } catch (const FileError& error) {
        suspicions_.add(finding_of(error));
        const auto refused = std::find(counted_.begin(), counted_.end(), error.path());
        if (refused == counted_.end()) throw;
        counted_.erase(refused);
      }
    }
    counts_.clear();
  }

  void add_notes(const std::vector<Note>& notes, const std::string& file) {
    for (const Note& note : notes) {
      if (auto finding = finding_of(note, file)) suspicions_.add(std::move(*finding));
    }
  }

  void summarise() {
    estimate::ServingSummaries by_file({{"file"}, question_.gamma, false}), of_all({{}, question_.gamma, false});
    for (const ServingCounts& unit : counts_) {
      try {
        by_file.add(unit);
        of_all.add(unit);
      } catch (const FileError& error) {
        suspicions_.add(finding_of(error));
      }
    }
    summaries_ = by_file.summaries();
    for (estimate::ServingSummary& summary : of_all.summaries()) {
      if (summary.files.size() < 2) continue;
      summary.files = {fmt::format("{}", fmt::join(summary.files, " and "))};
      check_trends(summary, suspicions_);
    }
  }

  void check_acceptances() {
    for (const estimate::ServingSummary& summary : summaries_) {
      add_notes(summary.warnings, summary.files.empty() ? "" : summary.files.front());
      check_acceptance(summary, suspicions_);
      check_trends(summary, suspicions_);
    }
    check_worst_unit(counts_, suspicions_);
    check_means(counts_, suspicions_);
    check_ends(counts_, suspicions_);
    check_start(counts_, suspicions_);
  }

  void check_all_runs() {
    std::vector<ServingCounts> runs;
    std::map<std::filesystem::path, std::vector<ServingCounts>> answers;
    for (const ServingCounts& unit : counts_) {
      if (!unit.bench) continue;
      if (unit.unit == traces::CountUnit::request) {
        answers[unit.file].push_back(unit);
      } else {
        runs.push_back(unit);
      }
    }
    for (const auto& [file, of_file] : answers) {
      // Answers that were decoded together have no time of their own.
      const bool one_slot = std::all_of(of_file.begin(), of_file.end(), [&, &first = of_file.front()](const auto& one) {
        return one.label("slot") == first.label("slot");
      });
      if (one_slot) runs.push_back(cost::run_of_answers(of_file));
    }
    check_runs(runs, suspicions_);
    check_logs(counts_, suspicions_);
  }

  void check_recording(const RecordingFiles& files, const std::string& name) {
    AnalysisQuestion asked;
    asked.threads = question_.threads;
    try {
      const Analysis analysis = analyze(files, asked);
      add_notes(analysis.warnings, name);
      recorded_.emplace_back(name, analysis.recording);
    } catch (const traces::UnpairedFile&) {
      throw;
    } catch (const FileError& error) {
      suspicions_.add(finding_of(error));
    } catch (const estimate::RuleUndefined& reason) {
      suspicions_.add({"rule_undefined",
                       Severity::warning,
                       reason.what(),
                       {{name, 0, "acceptance", std::nullopt, reason.what()}},
                       "ask for a rule that the recording has the figures of"});
    }
  }

  /// Counts that fit another rule than the one by which a recording beside them was read.
  void check_rules() {
    for (const auto& [name, recording] : recorded_) {
      for (const estimate::ServingSummary& s : summaries_) check_rule(name, recording, s);
    }
  }

  void check_rule(const std::string& name, const planning::TraceAnalysis& recording,
                  const estimate::ServingSummary& s) {
    if (!s.alpha_hat || !s.alpha_hat->value || !s.alpha_hat->ci95) return;
    const auto place = static_cast<std::size_t>(recording.rule);
    const auto& claimed = recording.alpha_by_rule.at(place);
    if (!claimed || !claimed->value || !claimed->ci95) return;
    const auto z_of = [&](const estimate::AcceptanceEstimate& alpha) {
      // Rounds start behind rejections: a rate over rounds lies lower than one over tokens by a little.
      constexpr double weighting = 0.03;
      const double a = alpha.ci95->hi - alpha.ci95->lo, b = s.alpha_hat->ci95->hi - s.alpha_hat->ci95->lo;
      const double error = core::half_of_both(a, b) / (2 * core::normal_half_width_95);
      const double distance = std::max(0.0, std::abs(*alpha.value - *s.alpha_hat->value) - weighting);
      return error > 0 ? distance / error : distance > 0 ? INFINITY : 0.0;
    };
    const double z = z_of(*claimed);
    const double p = 2 * core::normal_tail(std::min(z, 30.0));
    std::optional<std::size_t> better;
    for (std::size_t rule = 0; rule < recording.alpha_by_rule.size(); ++rule) {
      const auto& other = recording.alpha_by_rule.at(rule);
      if (rule == place || !other || !other->value || !other->ci95) continue;
      if (z_of(*other) < core::normal_half_width_95) better = rule;
    }
    // A rule stated by the server itself needs no fit: prompts or sampling may differ, too.
    if (s.rule && *s.rule != recording.rule) better = static_cast<std::size_t>(*s.rule);
    const std::string file = s.files.empty() ? "" : s.files.front();
    const auto fitting = static_cast<traces::AcceptanceRule>(better.value_or(place));
    const auto& expected = recording.alpha_by_rule.at(static_cast<std::size_t>(fitting));
    const std::string its_rate = expected && expected->value ? ", " + brief(*expected->value) : "";
    suspicions_.test(
        better ? std::min(p, 1.0) : 1,
        {"rule_mistaken",
         Severity::warning,
         fmt::format("{} accepts at a rate of {}, which is not that of {} in {}, {}: {} {}{}", file,
                     brief(*s.alpha_hat->value), traces::name_of(recording.rule), name, brief(*claimed->value),
                     s.rule == fitting ? "its server goes by" : "it is that of", traces::name_of(fitting), its_rate),
         {{file, 0, "alpha_hat", *s.alpha_hat->value}, {name, 0, "alpha", *claimed->value}},
         fmt::format("read the recording by the rule of the server: --acceptance {}", traces::name_of(fitting))});
  }

  const CheckupQuestion& question_;
  Suspicions suspicions_;
  std::vector<CheckedFile> files_;
  std::vector<std::filesystem::path> counted_;
  std::vector<std::string> recordings_;
  std::vector<EngineSettings> settings_;
  std::vector<ServingCounts> counts_;
  std::vector<estimate::ServingSummary> summaries_;
  std::vector<std::pair<std::string, planning::TraceAnalysis>> recorded_;
};

}  // namespace

std::int64_t Checkup::count(Severity severity) const {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.severity == severity; });
}

Checkup check_up(const CheckupQuestion& question) {
  if (question.files.empty() && !question.pair && !question.draft_times) {
    throw QuestionError("SOURCE is missing: counters, logs, benchmark results, recordings or configurations");
  }
  require_distinct("SOURCE", std::vector<std::filesystem::path>(question.files.begin(), question.files.end()));
  return Examination(question).run();
}

}  // namespace specdec::planner
