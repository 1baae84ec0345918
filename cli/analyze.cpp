#include "cli/analyze.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "cli/analyze_answer.hpp"
#include "cli/progress.hpp"
#include "cli/usage_error.hpp"
#include "planner/sources/recording_files.hpp"
#include "render/text.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using planning::SweepSetting;

/// Bins of the draft's probability in which its calibration is told.
constexpr std::int64_t confidence_bins = 10;
/// Recordings whose files hold more are not swept through temperatures unless asked to.
constexpr std::uintmax_t swept_without_asking_bytes = 64'000'000;
constexpr char default_sweep[] = "temperature=0;temperature=0.5;temperature=0.7;temperature=1;draft:temperature=0.7";

void declare(Options& options, AnalyzeOptions& o) {
  options.group("Acceptance");
  o.acceptance.declare(options);
  options.number("--row-tolerance", o.row_tolerance, {0.0, 1.0, true}, "how far from 1 a row may sum [by its type]");
  options.flag("--fixed-task-mix", o.fixed_task_mix, "the numbers of sequences by task were chosen: stratify by task");
  o.cost.declare(options, "[no speedups]");
  options.group("Questions");
  options.text("-k,--gamma,--num-speculative-tokens", o.gamma, "LIST", "gammas to show: 1:16 or 2,4,8");
  options.text("--lenience", o.lenience, "LIST", "leniences l in (0, 1], or none; whole rows only");
  options.text("--standardise,--standardize", o.standardise, "LIST",
               "other ways to sample: auto, none, or for instance\n"
               "\"temperature=0.7,top_p=0.9;draft:temperature=0.5\"; target:\nor draft: alone; whole rows only");
  options.integer("--samples", o.samples, {.lo = 0, .hi = 1'000'000}, "runs of the Monte Carlo replay; 0 for none");
  options.integer("--seed", o.seed, {}, "seed of all random numbers");
  options.integer("--threads", o.threads, {.lo = 1, .hi = 1024}, "threads; results do not depend on them");
  options.footer(
      "Examples:\n"
      "  specdec analyze trace.safetensors\n"
      "  specdec analyze --target target.jsonl --draft draft.jsonl --c 0.05\n"
      "  specdec analyze shards/ --acceptance greedy-draft --c 0.05 --format json");
}

/// "1:16" or "2,4,8", rising.
std::vector<std::int64_t> gammas_of(const std::string& list) {
  constexpr std::string_view option = "--gamma";
  const auto ends = split(list, ':');
  std::vector<std::int64_t> gammas;
  if (ends.size() == 2) {
    const std::int64_t first = parse_integer(option, ends[0], 1, theory::largest_replayed_gamma);
    const std::int64_t last = parse_integer(option, ends[1], first, theory::largest_replayed_gamma);
    for (std::int64_t gamma = first; gamma <= last; ++gamma) gammas.push_back(gamma);
    return gammas;
  }
  for (const std::string_view part : split(list, ',')) {
    const std::int64_t above = gammas.empty() ? 1 : gammas.back() + 1;
    gammas.push_back(parse_integer(option, part, above, theory::largest_replayed_gamma));
  }
  return gammas;
}

std::vector<double> leniences_of(const std::string& list) {
  std::vector<double> values;
  if (list == "none") return values;
  for (const std::string_view part : split(list, ',')) {
    values.push_back(parse_number("--lenience", part, {0.0, 1.0, true}));
  }
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
  for (const std::string_view part : split(parts.back(), ',')) {
    const auto pair = split(part, '=');
    if (pair.size() != 2) refuse(option, text, expected);
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

bool is_small(const traces::PositionSource& source) {
  std::uintmax_t bytes = 0;
  for (const std::filesystem::path& file : source.files()) bytes += std::filesystem::file_size(file);
  return bytes <= swept_without_asking_bytes;
}

planning::TraceAnalysisOptions analysis_options(const AnalyzeOptions& o) {
  if (o.samples == 1) refuse("--samples", "1", "0 or an integer from 2 on");
  planning::TraceAnalysisOptions options;
  options.observe.rule = o.acceptance.rule();
  options.observe.assume_processed = o.acceptance.assume_processed;
  options.observe.tolerance = o.row_tolerance;
  options.observe.lenience = leniences_of(o.lenience);
  options.observe.threads = o.threads;
  options.observe.confidence_bins = confidence_bins;
  options.max_gamma = gammas_of(o.gamma).back();
  options.cost = o.cost.cost();
  if (o.standardise != "auto" && o.standardise != "none") options.sweep = sweep_of(o.standardise);
  options.force_replay = o.acceptance.force_replay;
  options.mix = o.fixed_task_mix ? estimate::TaskMix::fixed : estimate::TaskMix::random;
  options.seed = static_cast<std::uint64_t>(o.seed);
  return options;
}

/// What only whole rows answer is asked of other recordings only where the user does.
void suit_to(const traces::PositionBatch& first, const traces::PositionSource& source, const AnalyzeOptions& o,
             planning::TraceAnalysisOptions& options) {
  const bool whole_rows = first.tier == traces::Tier::full;
  if (!whole_rows && o.lenience == AnalyzeOptions{}.lenience) options.observe.lenience.clear();
  if (whole_rows && o.standardise == "auto" && is_small(source)) options.sweep = sweep_of(default_sweep);
}

/// The pass over the recording, by everyone who follows it.
AnalyzeAnswer analysed(traces::PositionSource& source, const AnalyzeOptions& o, planning::TraceAnalysisOptions options,
                       const Progress& progress) {
  AnalyzeAnswer answer{o, {}, gammas_of(o.gamma), options.cost, {}, {}, {}};
  std::optional<planning::TraceAnalyzer> analyzer;
  std::optional<sim::MonteCarloReplay> simulation, of_upper_ends;
  if (o.samples > 0) simulation.emplace(answer.gammas, o.samples, options.seed, o.threads);
  traces::PositionBatch batch;
  while (source.read(batch)) {
    if (!analyzer) {
      suit_to(batch, source, o, options);
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
    planner::tell_of_reading(progress, source, batch);
  }
  if (!analyzer) throw UsageError("the recording holds no position");
  answer.metadata = source.metadata();
  answer.analysis = analyzer->finish(answer.metadata.task_names);
  if (answer.analysis.replay) {
    if (simulation) answer.monte_carlo = simulation->result();
    if (of_upper_ends) answer.monte_carlo_upper = of_upper_ends->result();
  }
  return answer;
}

std::vector<Assumption> assumptions_of(const AnalyzeAnswer& a) {
  const AnalyzeOptions& o = a.options;
  std::vector<Assumption> assumptions = o.acceptance.assumptions(a.metadata, a.analysis.rule);
  if (a.cost) {
    for (const Assumption& assumption : o.cost.times().assumptions()) assumptions.push_back(assumption);
    assumptions.push_back({"steps at the ends of texts", "charged in full, as if the texts went on", "default"});
  }
  return assumptions;
}

bool disjoint(const estimate::Interval& a, const estimate::Interval& b) { return a.hi < b.lo || b.hi < a.lo; }

std::vector<Note> warnings_of(const AnalyzeAnswer& a) {
  const planning::TraceAnalysis& t = a.analysis;
  std::vector<Note> warnings;
  const auto warn = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message)});
  };
  const auto explain_null = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message), true});
  };
  append(warnings, a.options.cost.times().warnings());
  if (t.text_source.suspicious()) {
    warn("text_not_from_target", t.text_source.warning());
  }
  if (t.alpha && t.alpha_emitted && t.alpha->positions == t.alpha_emitted->positions && t.alpha->ci95 &&
      t.alpha_emitted->ci95 && disjoint(*t.alpha->ci95, *t.alpha_emitted->ci95)) {
    warn("alphas_disagree",
         "alpha from the distributions and alpha from the emitted tokens differ by more than their intervals: the text "
         "is not the target's own, or was sampled otherwise than recorded");
  }
  if (const estimate::AcceptanceEstimate* const alpha = t.best_alpha()) {
    for (const std::string& note : alpha->notes) warn("alpha_interval", note);
    if (!alpha->value) {
      explain_null("bracketed",
                   "the recording determines acceptance within brackets only, so that figures which rest "
                   "on it are brackets too");
    }
  } else {
    warn("no_alpha", "nothing in the recording says how likely its positions accept a draft");
  }
  if (!t.alpha) explain_null("no_mean_acceptance", "the mean acceptance at each prefix was not recorded");
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
    warn("optimum_at_limit",
         fmt::format("the best gamma is the largest one replayed, {}; --gamma 1:{} looks further", a.gammas.back(),
                     std::min<std::int64_t>(2 * a.gammas.back(), theory::largest_replayed_gamma)));
  }
  for (std::size_t i = 0; i < a.monte_carlo.size(); ++i) {
    const auto z = monte_carlo_z(a, i);
    if (z && std::abs(*z) > monte_carlo_alarm) {
      warn("monte_carlo_disagrees", fmt::format("at gamma {} the simulated replay lies {:.1f} standard errors from the "
                                                "exact one",
                                                a.gammas[i], *z));
    }
  }
  append(warnings, t.notes);
  return warnings;
}

}  // namespace

AnalysisReport analysis_report(const AnalyzeOptions& options, bool quiet) {
  const planning::TraceAnalysisOptions how = analysis_options(options);
  const auto source = options.input.open();
  AnalyzeAnswer answer = analysed(*source, options, how, progress_line("analysing", quiet));
  AnalysisReport analysis;
  Report& report = analysis.report;
  report.json = json_of(answer);
  report.rows_of_empty = rows_of_empty_analysis();
  report.text = text_of(answer);
  report.assumptions = assumptions_of(answer);
  report.warnings = warnings_of(answer);
  options.input.describe(*source, report);
  analysis.words = words_of(answer);
  analysis.analysis = std::move(answer.analysis);
  return analysis;
}

std::optional<double> monte_carlo_z(const AnalyzeAnswer& answer, std::size_t row) {
  std::optional<double> farthest;
  const auto compare = [&](const std::vector<sim::MonteCarloTokens>& simulated, const estimate::ReplayReport& exact) {
    if (row >= simulated.size() || simulated[row].standard_error == 0) return;
    const estimate::Estimate& tokens = exact.gammas[static_cast<std::size_t>(answer.gammas[row])].tokens_per_step;
    const double z = (simulated[row].tokens_per_step - tokens.value) / simulated[row].standard_error;
    if (!farthest || std::abs(z) > std::abs(*farthest)) farthest = z;
  };
  if (!answer.analysis.replay) return farthest;
  compare(answer.monte_carlo, answer.analysis.replay->lower);
  compare(answer.monte_carlo_upper, answer.analysis.replay->highest());
  return farthest;
}

Command analyze_command() {
  return {
      "analyze",
      "What a recording says: acceptance, its sureness, and the best gamma by exact replay",
      {{"gammas", "/gammas"},
       {"positions", "/position_acceptance"},
       {"lenience", "/lenience"},
       {"standardisation", "/standardisation"},
       {"tasks", "/tasks"},
       {"beta_histogram", "/beta_histogram"},
       {"autocorrelation", "/autocorrelation"},
       {"calibration", "/calibration"},
       {"adaptive", "/adaptive/policies"}},
      [](Options& options) {
        const auto chosen = std::make_shared<AnalyzeOptions>();
        chosen->threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);
        declare(options, *chosen);
        chosen->input.declare(options);
        return std::function<Report()>([chosen, &options] { return analysis_report(*chosen, options.quiet()).report; });
      }};
}

}  // namespace specdec::cli
