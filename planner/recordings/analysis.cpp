#include "planner/recordings/analysis.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "analysis/core/standardisation.hpp"
#include "analysis/estimate/text_ends.hpp"
#include "analysis/planning/replay_columns.hpp"
#include "analysis/theory/streaming_replay.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

using planning::SweepSetting;

/// Number of bins of the draft's probability in which its calibration is reported.
constexpr std::int64_t confidence_bins = 10;
/// Recordings whose files, or whose rows in memory, are larger are not swept through temperatures unless requested.
constexpr std::uintmax_t swept_without_asking_bytes = 64'000'000;
/// Number of standard errors between a Monte Carlo replay and the exact one above which one of them must be wrong.
constexpr double monte_carlo_alarm = 5;
constexpr std::int64_t usual_last_gamma = 16;

std::vector<SweepSetting> usual_sweep() {
  const auto at = [](SweepSetting::Applies applies, double temperature) {
    SweepSetting setting{applies, {}};
    setting.standardisation.temperature = temperature;
    return setting;
  };
  std::vector<SweepSetting> sweep;
  for (const double temperature : {0.0, 0.5, 0.7, 1.0}) sweep.push_back(at(SweepSetting::Applies::both, temperature));
  sweep.push_back(at(SweepSetting::Applies::draft, 0.7));
  return sweep;
}

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

bool is_small(const traces::PositionBatch& first, const traces::PositionSource& source) {
  std::uintmax_t bytes = 0;
  for (const std::filesystem::path& file : source.files()) bytes += std::filesystem::file_size(file);
  if (source.files().empty()) {
    const std::size_t together = first.target_rows.bytes.size() + first.draft_rows.bytes.size();
    bytes = together / static_cast<std::uintmax_t>(first.size) * static_cast<std::uintmax_t>(*source.positions());
  }
  return bytes <= swept_without_asking_bytes;
}

/// The answer before anything has been read.
Analysis empty_answer(const AnalysisQuestion& question) {
  if (question.samples == 1 || question.samples < 0)
    refuse("--samples", fmt::format("{}", question.samples), "0 or an integer from 2 on");
  Analysis answer;
  answer.question = question;
  answer.gammas = gammas_of(question);
  answer.cost = cost_of(question.cost);
  return answer;
}

planning::TraceAnalysisOptions options_of(const Analysis& answer) {
  const AnalysisQuestion& question = answer.question;
  planning::TraceAnalysisOptions options;
  options.observe.rule = question.rules.acceptance;
  options.observe.assume_processed = question.rules.assume_processed;
  options.observe.tolerance = question.row_tolerance;
  options.observe.lenience =
      question.lenience.value_or(std::vector<double>(usual_leniences.begin(), usual_leniences.end()));
  options.observe.threads = question.threads;
  options.observe.confidence_bins = confidence_bins;
  options.max_gamma = answer.gammas.back();
  options.cost = answer.cost;
  options.sweep = question.standardise.value_or(std::vector<SweepSetting>());
  options.force_replay = question.rules.force_replay;
  options.mix = question.fixed_task_mix ? estimate::TaskMix::fixed : estimate::TaskMix::random;
  options.seed = static_cast<std::uint64_t>(question.seed);
  return options;
}

/// Defaults that need whole rows are dropped for other recordings unless the question sets them.
void suit_to(const traces::PositionBatch& first, const traces::PositionSource& source, const AnalysisQuestion& question,
             planning::TraceAnalysisOptions& options) {
  const bool whole_rows = first.tier == traces::Tier::full;
  if (!whole_rows && !question.lenience) options.observe.lenience.clear();
  if (whole_rows && !question.standardise && is_small(first, source)) options.sweep = usual_sweep();
}

/// Leaves the gammas up to the largest one that the recording tells of.
/// @throws QuestionError if none is left
void leave_out_above(std::int64_t longest, std::vector<std::int64_t>& gammas) {
  if (gammas.front() > longest) {
    refuse("--gamma", fmt::format("{}", gammas.front()),
           fmt::format("at most {}: {}", longest, planning::no_longer_draft(longest)));
  }
  gammas.erase(std::upper_bound(gammas.begin(), gammas.end(), longest), gammas.end());
}

/// The single pass over the recording, for all who follow it.
void read(traces::PositionSource& source, planning::TraceAnalysisOptions options,
          const std::function<void(double share)>& progress, Analysis& answer) {
  const AnalysisQuestion& question = answer.question;
  std::optional<planning::TraceAnalyzer> analyzer;
  std::optional<sim::MonteCarloReplay> simulation, of_upper_ends;
  if (question.samples > 0) simulation.emplace(answer.gammas, question.samples, options.seed, question.threads);
  traces::PositionBatch batch;
  while (source.read(batch)) {
    if (!analyzer) {
      suit_to(batch, source, question, options);
      analyzer.emplace(source.metadata(), options);
    }
    const estimate::Observations& seen = analyzer->add(source, batch);
    const planning::ReplayColumns* const replayed = analyzer->replayed();
    if (replayed && simulation) {
      if (!replayed->exact() && !of_upper_ends) of_upper_ends = simulation;
      simulation->add({seen.sequence, seen.place, replayed->lower(), replayed->depths(), {}});
      if (of_upper_ends) {
        of_upper_ends->add({seen.sequence, seen.place, replayed->highest(), replayed->depths(), {}});
      }
    }
    tell_of_reading(progress, source, batch);
  }
  if (!analyzer) throw QuestionError("the recording holds no position");
  answer.metadata = source.metadata();
  answer.recording = analyzer->finish(answer.metadata.task_names);
  if (const auto longest = answer.recording.longest_draft) leave_out_above(*longest, answer.gammas);
  if (answer.recording.replay) {
    const auto of_shown = [&](const sim::MonteCarloReplay& simulated) {
      std::vector<sim::MonteCarloTokens> tokens = simulated.result();
      tokens.resize(answer.gammas.size());
      return tokens;
    };
    if (simulation) answer.monte_carlo = of_shown(*simulation);
    if (of_upper_ends) answer.monte_carlo_upper = of_shown(*of_upper_ends);
  }
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
  append(warnings, a.question.cost.warnings());
  append(warnings, t.notes);
  if (const estimate::AcceptanceEstimate* const alpha = t.best_alpha()) {
    if (!alpha->value) {
      explain_null("bracketed",
                   "the recording determines acceptance within brackets only, so that figures which rest "
                   "on it are brackets too");
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
  if (t.law.kl_target_draft.infinite_share > 0 || t.law.kl_draft_target.infinite_share > 0) {
    warn("kl_infinite",
         fmt::format("KL is infinite at {} of the positions for (p || q) and {} for (q || p), "
                     "where one of the two misses a token; its means leave these out",
                     percent(t.law.kl_target_draft.infinite_share), percent(t.law.kl_draft_target.infinite_share)));
  }
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
  for (std::size_t i = 0; i < a.monte_carlo.size(); ++i) {
    const auto z = a.monte_carlo_z(i);
    if (z && std::abs(*z) > monte_carlo_alarm) {
      warn("monte_carlo_disagrees", fmt::format("at gamma {} the simulated replay lies {:.1f} standard errors from the "
                                                "exact one",
                                                a.gammas[i], *z));
    }
  }
  if (t.replay && !t.replay->lower.looks_at_drafts()) {
    explain_null("no_draft_looked_at",
                 "every text holds one token, so that no draft was looked at and no gamma is best");
  }
  if (t.replay) {
    if (const auto note = estimate::short_texts(t.replay->highest())) warnings.push_back(*note);
  }
  return warnings;
}

Analysis answered(Analysis answer, traces::PositionSource& source, const std::function<void(double share)>& progress) {
  const AnalysisQuestion& question = answer.question;
  read(source, options_of(answer), progress, answer);
  answer.assumptions = question.rules.assumptions(answer.metadata, answer.recording.rule);
  if (answer.cost) {
    append_new(answer.assumptions, question.cost.assumptions());
    answer.assumptions.push_back(charge_of_text_ends());
  }
  answer.warnings = warnings_of(answer);
  append(answer.warnings, source.notes());
  for (const std::filesystem::path& file : source.files()) answer.files.push_back(file.string());
  return answer;
}

}  // namespace

Analysis analyze(traces::PositionSource& source, const AnalysisQuestion& question,
                 const std::function<void(double share)>& progress) {
  return answered(empty_answer(question), source, progress);
}

Analysis analyze(const RecordingFiles& recording, const AnalysisQuestion& question,
                 const std::function<void(double share)>& progress) {
  Analysis answer = empty_answer(question);
  return answered(std::move(answer), *grouped_recording(open_recording(recording), question.by), progress);
}

std::optional<double> Analysis::monte_carlo_z(std::size_t row) const {
  std::optional<double> farthest;
  const auto compare = [&](const std::vector<sim::MonteCarloTokens>& simulated, const estimate::ReplayReport& exact) {
    if (row >= simulated.size() || simulated[row].standard_error == 0) return;
    const estimate::Estimate& tokens = exact.gammas[static_cast<std::size_t>(gammas[row])].tokens_per_step;
    const double z = (simulated[row].tokens_per_step - tokens.value) / simulated[row].standard_error;
    if (!farthest || std::abs(z) > std::abs(*farthest)) farthest = z;
  };
  if (!recording.replay) return farthest;
  compare(monte_carlo, recording.replay->lower);
  compare(monte_carlo_upper, recording.replay->highest());
  return farthest;
}

}  // namespace specdec::planner
