#include "planner/recordings/analysis.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "analysis/estimate/text_ends.hpp"
#include "analysis/theory/streaming_replay.hpp"
#include "planner/question_error.hpp"
#include "planner/recordings/analysis_answer.hpp"
#include "planner/recordings/recording_summary.hpp"

namespace specdec::planner {
namespace {

constexpr std::int64_t usual_last_gamma = 16;

std::vector<std::int64_t> gammas_of(const AnalysisQuestion& question) {
  std::vector<std::int64_t> gammas = question.gamma;
  for (std::int64_t gamma = 1; question.gamma.empty() && gamma <= usual_last_gamma; ++gamma) gammas.push_back(gamma);
  std::int64_t least = 1;
  for (const std::int64_t gamma : gammas) {
    if (gamma < least || gamma > theory::largest_replayed_gamma) {
      refuse("--gamma", fmt::format("{}", gamma),
             fmt::format("an integer in [{}, {}]", least, theory::largest_replayed_gamma));
    }
    least = gamma + 1;
  }
  return gammas;
}

std::optional<core::StepCost> cost_of(const StepTimes& times) {
  if (times.c) return times.with_c(*times.c);
  if (times.verify_factor) throw QuestionError("--verify-factor is given, but needs --c beside it");
  if (times.overhead) throw QuestionError("--overhead is given, but needs --c beside it");
  return std::nullopt;
}

std::vector<Note> warnings_of(const Analysis& a) {
  const planning::TraceAnalysis& t = a.recording;
  std::vector<Note> warnings;
  const auto warn = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message)});
  };
  const auto explain_null = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message), true});
  };
  if (a.partial) {
    warn("partial",
         fmt::format("interrupted: what is said is of the first {} positions, in {} texts, the last of which may "
                     "be cut off",
                     t.positions, t.sequences));
  }
  append(warnings, a.question.cost.warnings());
  append(warnings, t.notes);
  if (a.question.by.label == "context") {
    warnings.push_back({"texts_cut",
                        "texts are cut at the places of --by: what is said of all of them is of the stretches, whose "
                        "ends cut drafts short as the ends of texts do; without --by it is of the texts"});
  }
  if (const estimate::AcceptanceEstimate* const alpha = t.best_alpha()) {
    if (!alpha->value) {
      const Note note = planning::acceptance_in_brackets();
      explain_null(note.code, note.message);
    }
  } else {
    warn("no_alpha", "nothing in the recording says how likely its positions accept a draft");
  }
  if (!t.alpha && t.alpha_emitted) {
    warn(
        "no_mean_acceptance",
        "the mean acceptance at each prefix was not recorded: alpha is that of the emitted tokens alone, alpha_emitted "
        "in JSON");
  } else if (!t.alpha) {
    explain_null("no_mean_acceptance", "the mean acceptance at each prefix was not recorded");
  }
  if (t.calibration.empty() && t.calibration_by_top.empty()) {
    explain_null("no_calibration",
                 "calibration is empty: acceptance by the draft's probabilities needs whole rows, or the largest one "
                 "of each");
  }
  if (!a.cost) explain_null("no_cost", "speedups, the optimal gamma and adaptive drafting need --c");
  if (t.replay && t.replay->lower.optimum && t.replay->lower.optimum->at_limit && !t.replay->upper) {
    warn(
        "optimum_at_limit",
        t.longest_draft
            ? fmt::format("the best gamma is the longest draft that the recording tells of, {}; longer ones may be "
                          "faster",
                          *t.longest_draft)
            : fmt::format("the best gamma is the largest one replayed, {}; --gamma 1:{} looks further", a.gammas.back(),
                          std::min<std::int64_t>(2 * a.gammas.back(), theory::largest_replayed_gamma)));
  }
  if (t.replay) {
    if (const auto note = estimate::no_draft_looked_at(t.replay->lower)) explain_null(note->code, note->message);
    if (const auto note = estimate::short_texts(t.replay->lower, t.replay->upper)) warnings.push_back(*note);
  }
  return warnings;
}

}  // namespace

Analysis empty_answer(const AnalysisQuestion& question) {
  require_in("--row-tolerance", question.row_tolerance, {.hi = 1, .lo_open = true});
  require_in("--threads", question.threads, {.lo = 1, .hi = 1024});
  Analysis answer;
  answer.question = question;
  answer.gammas = gammas_of(question);
  answer.cost = cost_of(question.cost);
  return answer;
}

void complete(Analysis& answer, const std::vector<Note>& notes_of_reader) {
  const AnalysisQuestion& question = answer.question;
  answer.assumptions = question.rules.assumptions(answer.metadata, answer.recording.rule);
  if (answer.cost) {
    append_new(answer.assumptions, question.cost.assumptions());
    answer.assumptions.push_back(charge_of_text_ends());
  }
  answer.warnings = warnings_of(answer);
  append(answer.warnings, notes_of_reader);
}

Analysis analyze(traces::PositionSource& source, const AnalysisQuestion& question, const core::RunHooks& hooks) {
  return RecordingSummary::of(source, question, hooks).answer();
}

Analysis analyze(const RecordingFiles& recording, const AnalysisQuestion& question, const core::RunHooks& hooks) {
  return RecordingSummary::of(recording, {}, question, hooks).answer();
}

}  // namespace specdec::planner
