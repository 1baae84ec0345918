#include "analysis/planning/trace_analysis.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/planning/best_gamma.hpp"
#include "analysis/planning/recording_replay.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::planning {
namespace {

using estimate::AcceptanceEstimate;
using estimate::Observations;
using traces::Tier;

/// The rate of positions that are known exactly; empty if there are none.
std::optional<estimate::Estimate> exact_rate(const estimate::RateAccumulator& rate) {
  const auto estimate = rate.overall();
  if (!estimate || !estimate->value) return std::nullopt;
  return estimate::Estimate{*estimate->value, estimate->ci95, estimate->method};
}

/// One of several leniences: its columns of the observations.
struct LenienceMeans {
  estimate::RateAccumulator alpha, strict, lenient;

  void merge(const LenienceMeans& other) {
    alpha.merge(other.alpha);
    strict.merge(other.strict);
    lenient.merge(other.lenient);
  }

  template <class Archive>
  void exchange(Archive& archive) {
    archive(alpha, strict, lenient);
  }
};

/// The pair with other sampling settings.
struct Sweep {
  SweepSetting setting;
  estimate::Observer observer;
  estimate::AcceptanceAccumulator acceptance;
};

Sweep sweep_of(const SweepSetting& setting, const traces::TraceMetadata& metadata,
               const TraceAnalysisOptions& options) {
  // The text is not sampled from the reshaped target, so tokens that it would never emit are not an error.
  traces::TraceMetadata elsewhere = metadata;
  elsewhere.path = traces::TextSource::other;
  estimate::ObserveOptions observe = options.observe;
  observe.lenience.clear();
  // Greedy acceptance of text at temperature 0 is rejection of point masses; at another temperature it is not.
  if (!observe.rule && metadata.acceptance == traces::AcceptanceRule::greedy &&
      estimate::sampling_of(metadata).temperature == 0) {
    observe.rule = traces::AcceptanceRule::rejection;
  }
  if (setting.applies != SweepSetting::Applies::draft) observe.target = setting.standardisation;
  if (setting.applies != SweepSetting::Applies::target) observe.draft = setting.standardisation;
  return {setting, estimate::Observer(std::move(elsewhere), std::move(observe)), {}};
}

/// Empty if nothing was seen.
std::optional<SweepRow> row_of(const Sweep& sweep, const TraceAnalysisOptions& options) {
  const auto alpha = sweep.acceptance.from_mean_acceptance();
  if (!alpha) return std::nullopt;
  SweepRow row{sweep.setting, *alpha, {}, {}};
  if (options.cost && alpha->value) {
    const theory::OptimalGamma best =
        best_gamma(core::AcceptanceRate(*alpha->value), {*options.cost, options.max_gamma});
    row.gamma = best.gamma;
    row.speedup = best.speedup;
  }
  return row;
}

std::vector<IidRow> iid_rows(const AlphaEnds& alpha, const TraceAnalysisOptions& options) {
  std::vector<IidRow> rows;
  for (std::int64_t gamma = 1; gamma <= options.max_gamma; ++gamma) {
    IidRow row{gamma, {}, {}};
    if (alpha.lower && alpha.lower == alpha.upper) {
      // Rows as stored may sum to a little more than 1.
      row.tokens_per_step = theory::expected_tokens(core::AcceptanceRate(std::min(*alpha.lower, 1.0)), gamma);
      if (options.cost) row.speedup = *row.tokens_per_step / (*options.cost)(gamma);
    }
    rows.push_back(row);
  }
  return rows;
}

template <class Key>
void add_counts(std::map<Key, std::int64_t>& counts, const std::map<Key, std::int64_t>& more) {
  for (const auto& [key, count] : more) counts[key] += count;
}

/// Rows kept after temperature, top-k, top-p or min-p cannot be sampled with other settings.
bool is_reshaped(const traces::TraceMetadata& metadata, const estimate::ObserveOptions& observe) {
  return (observe.assume_processed || metadata.logprob_space == traces::LogprobSpace::processed) &&
         !estimate::sampling_of(metadata).changes_nothing();
}

/// True if the numbers are known to be of the law that was sampled from, or how to get from one to the other is.
bool states_sampling(const traces::TraceMetadata& metadata, const estimate::ObserveOptions& observe) {
  return metadata.temperature || observe.assume_processed || metadata.logprob_space == traces::LogprobSpace::processed;
}

/// Notes on what the estimates of alpha say of each other and of their intervals.
void note_alphas(const TraceAnalysis& result, std::vector<Note>& notes) {
  const auto disjoint = [](const auto& a, const auto& b) { return a->hi < b->lo || b->hi < a->lo; };
  if (result.alpha && result.alpha_emitted && result.alpha->positions == result.alpha_emitted->positions &&
      result.alpha->ci95 && result.alpha_emitted->ci95 && disjoint(result.alpha->ci95, result.alpha_emitted->ci95)) {
    notes.push_back({"alphas_disagree",
                     "alpha from the distributions and alpha from the emitted tokens differ by more than their "
                     "intervals: the text is not the target's own, or was sampled otherwise than recorded"});
  }
  if (const AcceptanceEstimate* const alpha = result.best_alpha()) {
    for (const std::string& note : alpha->notes) notes.push_back({"alpha_interval", note});
  }
}

/// Notes that numbers of the tokens alone are taken for those of the law that the text was sampled from, where nothing
/// shows that they are.
void note_unstated_sampling(const TraceAnalysis& result, std::vector<Note>& notes) {
  const estimate::TextSourceResult& tests = result.text_source;
  const bool is_tested = tests.acceptance.positions > 0 || tests.surprisal.positions > 0;
  if (is_tested || tests.suspicious() || result.rule != traces::AcceptanceRule::rejection ||
      result.tiers.count(Tier::scalar) == 0)
    return;
  std::string of_ratio;
  if (const auto ratio = tests.mean_ratio())
    of_ratio =
        fmt::format(" (q / p of its tokens is {:.2f} in the mean, and 1 for what it was sampled by, uncut)", *ratio);
  notes.push_back({"sampling_not_stated",
                   "the recording does not say at what temperature its text was sampled" + of_ratio +
                       ": its log-probabilities are taken for those that were sampled from; raw ones of a text at "
                       "another temperature than 1, of a greedy one, or in base 10 give another acceptance"});
}

void note_part_of_positions(const TraceAnalysis& result, std::vector<Note>& notes) {
  if (!result.alpha || result.alpha->positions == result.positions) return;
  notes.push_back({"alpha_of_part", fmt::format("alpha from the distributions is that of {} of {} positions: "
                                                "the others have neither rows nor a recorded overlap",
                                                result.alpha->positions, result.positions)});
}

/// Notes from the clusters of the best alpha that concern all intervals.
void note_clusters(const TraceAnalysis& result, std::vector<Note>& notes) {
  const AcceptanceEstimate* const alpha = result.best_alpha();
  if (alpha == nullptr) return;
  if (const auto note = few_clusters(*alpha)) notes.push_back(*note);
  if (alpha->texts_without_prompt > 0 && alpha->clusters > 1 && alpha->ci95) {
    notes.push_back(texts_taken_as_independent(alpha->texts_without_prompt, alpha->sequences));
  }
  if (alpha->length_dependence && alpha->length_dependence->significant()) {
    const estimate::LengthDependence& dependence = *alpha->length_dependence;
    notes.push_back(
        {"length_dependence",
         fmt::format(
             "{} twice as long have an alpha that is {:.3f} {} (95% {:.3f} to {:.3f}; p = {:.2g}): alpha and "
             "speedups hang on the mix of lengths, and intervals may cover less than 95% (one recording in {:g} "
             "without such a dependence seems to have it)",
             alpha->prompts ? "prompts whose texts are" : "texts", std::abs(dependence.per_doubling.value),
             dependence.per_doubling.value > 0 ? "higher" : "lower", dependence.per_doubling.ci95->lo,
             dependence.per_doubling.ci95->hi, dependence.p_value, 1 / estimate::length_dependence_level)});
  }
}

}  // namespace

std::optional<Note> few_clusters(const estimate::AcceptanceEstimate& alpha) {
  if (!alpha.few_clusters()) return std::nullopt;
  return Note{
      "few_clusters",
      fmt::format("the intervals rest on {} {}, which by their lengths are worth {:.1f} of equal length and leave "
                  "{:.1f} degrees of freedom; below {} and {} intervals may cover less than 95%",
                  alpha.clusters, alpha.prompts ? "prompts" : "sequences", alpha.effective_clusters,
                  *alpha.degrees_of_freedom, estimate::few_sequences, estimate::few_sequences - 1)};
}

Note acceptance_in_brackets() {
  return {
      "bracketed",
      "the recording determines acceptance within brackets only, so that figures which rest on it are brackets too; "
      "the overlap of each pair of rows (column overlap), or more tokens of each row, would narrow or close them"};
}

Note texts_taken_as_independent(std::int64_t without_prompt, std::int64_t texts) {
  return {"prompts_unknown",
          without_prompt == texts
              ? "the recording does not say which texts continue one prompt (column prompt): intervals take texts as "
                "independent, and are too narrow where several continue one"
              : fmt::format("the recording does not say which prompts {} of its {} texts continue (column prompt): "
                            "intervals take these as independent, and are too narrow where several continue one",
                            without_prompt, texts)};
}

std::string_view name_of(SweepSetting::Applies applies) {
  constexpr std::array<std::string_view, 3> names = {"both", "target", "draft"};
  return names.at(static_cast<std::size_t>(applies));
}

class TraceAnalyzer::State {
 public:
  State(const traces::TraceMetadata& metadata, std::int64_t depths, TraceAnalysisOptions options)
      : options_(std::move(options)),
        observer_(metadata, options_.observe),
        calibration_(options_.observe.confidence_bins) {
    core::require_in("TraceAnalyzer", "max_gamma", options_.max_gamma, 1, theory::largest_replayed_gamma);
    lenience_.resize(options_.observe.lenience.size());
    of_other_text_ = metadata.path == traces::TextSource::other;
    greedy_of_sampled_text_ =
        observer_.rule() == traces::AcceptanceRule::greedy && !of_other_text_ && metadata.temperature.value_or(1) != 0;
    sampling_stated_ = of_other_text_ || states_sampling(metadata, options_.observe);
    reshaped_ = is_reshaped(metadata, options_.observe);
    if (!reshaped_) {
      for (const SweepSetting& setting : options_.sweep) sweeps_of_.push_back(sweep_of(setting, metadata, options_));
    }
    if (!of_other_text_ || options_.force_replay)
      replay_.emplace(observer_.replayed_depths(depths, options_.max_gamma), options_);
  }

  const Observations& add(const traces::PositionSource& source, const traces::PositionBatch& batch) {
    seen_ = observer_.observe(source, batch);
    tiers_[batch.tier] += batch.size;
    for (const std::int32_t task : batch.task) ++positions_by_task_[task];
    acceptance_.add(seen_);
    calibration_.add(seen_);
    if (!seen_.d_lk.empty()) d_lk_.add(seen_.labels(), seen_.d_lk.lower, seen_.d_lk.upper);
    add_lenience();
    add_sweep(source, batch);
    if (replay_) replay_->add(seen_, batch, observer_.proposes_one_token());
    return seen_;
  }

  void merge(State& other) {
    end();
    other.end();
    observer_.merge(other.observer_);
    add_counts(tiers_, other.tiers_);
    add_counts(positions_by_task_, other.positions_by_task_);
    acceptance_.merge(other.acceptance_);
    calibration_.merge(other.calibration_);
    d_lk_.merge(other.d_lk_);
    for (std::size_t l = 0; l < lenience_.size(); ++l) lenience_[l].merge(other.lenience_[l]);
    leave_sweeps_to_whole_rows();
    for (std::size_t s = 0; s < sweeps_of_.size(); ++s) sweeps_of_[s].acceptance.merge(other.sweeps_of_[s].acceptance);
    if (replay_) replay_->merge(*other.replay_);
  }

  template <class Archive>
  void exchange(Archive& archive) {
    archive(observer_, tiers_, positions_by_task_, acceptance_, calibration_, d_lk_, core::fixed_length(lenience_));
    leave_sweeps_to_whole_rows();
    for (Sweep& sweep : sweeps_of_) archive(sweep.acceptance);
    if (replay_) replay_->exchange(archive);
  }

  TraceAnalysis finish(const std::vector<std::string>& task_names) {
    end();
    TraceAnalysis result;
    result.rule = observer_.rule();
    result.positions = acceptance_.positions();
    result.sequences = acceptance_.sequences();
    result.tiers = tiers_;
    result.alpha = acceptance_.from_mean_acceptance();
    result.alpha_emitted = acceptance_.from_emitted();
    for (std::size_t rule = 0; rule < result.alpha_by_rule.size(); ++rule) {
      result.alpha_by_rule[rule] = acceptance_.by_rule(static_cast<traces::AcceptanceRule>(rule));
    }
    result.text_source = observer_.text_source();
    result.replay_refused = result.text_source.suspicious() && !options_.force_replay;
    notes_ = observer_.notes();
    note_what_is_missing(result);
    note_alphas(result, notes_);
    if (!sampling_stated_) note_unstated_sampling(result, notes_);
    note_part_of_positions(result, notes_);
    note_clusters(result, notes_);
    result.d_lk = d_lk_.overall();
    finish_lenience(result);
    finish_calibration(result);
    finish_sweep(result);
    finish_replay(result);
    finish_tasks(result, task_names);
    result.notes = std::move(notes_);
    return result;
  }

  const ReplayColumns* replayed() const { return replays() ? &replay_->columns() : nullptr; }
  std::int64_t positions() const { return acceptance_.positions(); }
  std::int64_t sequences() const { return acceptance_.sequences(); }

 private:
  bool whole_rows() const { return tiers_.empty() || (tiers_.size() == 1 && tiers_.count(Tier::full) > 0); }
  bool replays() const { return replay_ && !replay_->says_nothing(); }

  void end() {
    if (replay_) replay_->end();
  }

  void add_lenience() {
    for (std::size_t l = 0; l < lenience_.size() && l < seen_.lenient_acceptance.size(); ++l) {
      lenience_[l].alpha.add(seen_.labels(), seen_.lenient_acceptance[l], {});
      lenience_[l].strict.add(seen_.labels(), seen_.lenient_distance_strict[l], {});
      lenience_[l].lenient.add(seen_.labels(), seen_.lenient_distance_lenient[l], {});
    }
  }

  /// Another standardisation means nothing unless it is that of all positions.
  void leave_sweeps_to_whole_rows() {
    if (!whole_rows()) sweeps_of_.clear();
  }

  void add_sweep(const traces::PositionSource& source, const traces::PositionBatch& batch) {
    leave_sweeps_to_whole_rows();
    for (Sweep& sweep : sweeps_of_) sweep.acceptance.add(sweep.observer.observe(source, batch));
  }

  void note_what_is_missing(TraceAnalysis& result) {
    if (of_other_text_ && !options_.force_replay) {
      result.not_replayed =
          "the text is not the target's own, so that replay means nothing; --force-replay computes it all the same";
      notes_.push_back({"path_other", result.not_replayed});
    }
    if (greedy_of_sampled_text_) {
      notes_.push_back({"greedy_of_sampled_text",
                        "acceptance is greedy, but the text was not recorded as one of temperature 0: its prefixes are "
                        "not those that greedy decoding meets"});
    }
    note_missing_sweep();
    if (replay_ && replay_->says_nothing()) {
      result.not_replayed = nothing_of_acceptance(replay_->lacks_tokens());
      notes_.push_back({"no_replay", result.not_replayed});
    }
    note_missing_adaptive(result);
  }

  void note_missing_sweep() {
    const bool expected = options_.asked_for_sweep || tiers_.count(Tier::full) > 0;
    if (options_.sweep.empty() || !expected) return;
    if (reshaped_) {
      notes_.push_back({"sweep_needs_raw_rows",
                        "the rows were kept after temperature, top-k, top-p or min-p, so that no other standardisation "
                        "can be computed; record them raw"});
    } else if (!whole_rows()) {
      notes_.push_back({"sweep_needs_full_tier",
                        "another standardisation needs whole rows, which some positions of this recording lack"});
    }
  }

  void note_missing_adaptive(const TraceAnalysis& result) {
    if (!options_.cost || !options_.judges_drafting || !replays() || result.positions == 0) return;
    if (replay_->columns().depths() > 1) {
      notes_.push_back({"adaptive_needs_one_depth",
                        "the draft's acceptance depends on the depth in the round, which adaptive drafting does not "
                        "know"});
    } else if (replay_->is_bracketed()) {
      notes_.push_back({"adaptive_needs_exact_acceptance",
                        "adaptive drafting is computed from exact acceptances, but some are known in brackets only"});
    }
  }

  void finish_calibration(TraceAnalysis& result) {
    result.calibration = calibration_.by_token();
    result.calibration_by_top = calibration_.by_top();
    if (result.calibration.empty() || calibration_.positions() == result.positions) return;
    notes_.push_back({"calibration_of_full_tier",
                      fmt::format("acceptance by the probability of the drafted token is that of {} of {} positions: "
                                  "the others have no whole rows",
                                  calibration_.positions(), result.positions)});
  }

  void finish_lenience(TraceAnalysis& result) {
    if (!options_.asked_for_lenience && tiers_.count(Tier::full) == 0) return;
    if (!observer_.lenience_tells() && tiers_.count(Tier::full) > 0) {
      if (lenience_.empty()) return;
      notes_.push_back({"lenience_needs_raw_rows",
                        "lenience compares the target's probability of the draft's token with its largest one, but "
                        "the target's rows stand on one token each, as after temperature 0; record them raw"});
      return;
    }
    for (std::size_t l = 0; l < lenience_.size(); ++l) {
      const auto alpha = exact_rate(lenience_[l].alpha);
      if (!alpha) continue;
      result.lenience.push_back(
          {options_.observe.lenience[l], *alpha, *exact_rate(lenience_[l].strict), *exact_rate(lenience_[l].lenient)});
    }
    if (result.lenience.empty() && !lenience_.empty()) {
      notes_.push_back({"lenience_needs_full_tier", "lenience needs whole rows, which this recording lacks"});
    } else if (!result.lenience.empty() && tiers_.size() > 1) {
      notes_.push_back({"lenience_of_full_tier", "lenience is that of the positions with whole rows"});
    }
  }

  void finish_sweep(TraceAnalysis& result) const {
    for (const Sweep& sweep : sweeps_of_) {
      if (const auto row = row_of(sweep, options_)) result.sweep.push_back(*row);
    }
  }

  void finish_replay(TraceAnalysis& result) {
    if (replay_) result.depths = replay_->columns().depths();
    const AlphaEnds alpha = alpha_of(result.alpha, result.alpha_emitted);
    if (replays() && result.positions > 0) {
      replay_->finish(alpha, observer_.proposes_one_token(), result, notes_);
    } else {
      result.iid = iid_rows(alpha, options_);
    }
  }

  AlphaEnds alpha_of(const std::optional<AcceptanceEstimate>& mean,
                     const std::optional<AcceptanceEstimate>& emitted) const {
    return alpha_ends(mean, emitted, replay_ && replay_->is_bracketed());
  }

  void finish_tasks(TraceAnalysis& result, const std::vector<std::string>& task_names) {
    const auto means = acceptance_.tasks_from_mean_acceptance();
    const auto emitted = acceptance_.tasks_from_emitted();
    const auto find = [](const auto& by_task, std::int32_t id) {
      const auto found = by_task.find(id);
      return found == by_task.end() ? std::nullopt : std::optional(found->second);
    };
    std::map<std::int32_t, double> alphas_lower, alphas_upper;
    for (const auto& [id, count] : positions_by_task_) {
      const AlphaEnds alpha = alpha_of(find(means, id), find(emitted, id));
      if (alpha.lower) alphas_lower[id] = *alpha.lower;
      if (alpha.upper) alphas_upper[id] = *alpha.upper;
    }
    const bool replayed = result.replay.has_value();
    std::map<std::int32_t, estimate::ReplayReport> lower, upper;
    if (replayed) {
      lower = replay_->lower_by_task(alphas_lower);
      upper = replay_->upper_by_task(alphas_upper);
    }
    for (const auto& [id, positions] : positions_by_task_) {
      TaskAnalysis task;
      task.name = traces::task_name(task_names, id);
      task.positions = positions;
      task.alpha = find(means, id);
      task.alpha_emitted = find(emitted, id);
      if (task.alpha) task.sequences = task.alpha->sequences;
      if (task.alpha_emitted) task.sequences = std::max(task.sequences, task.alpha_emitted->sequences);
      task.replay = find(lower, id);
      task.replay_upper = find(upper, id);
      if (!replayed) task.iid = iid_rows(alpha_of(task.alpha, task.alpha_emitted), options_);
      result.tasks.push_back(std::move(task));
    }
    result.tasks_share_clusters = acceptance_.tasks_share_clusters();
  }

  TraceAnalysisOptions options_;
  estimate::Observer observer_;
  Observations seen_;
  std::map<Tier, std::int64_t> tiers_;
  std::map<std::int32_t, std::int64_t> positions_by_task_;
  estimate::AcceptanceAccumulator acceptance_;
  estimate::DraftCalibration calibration_;
  estimate::RateAccumulator d_lk_;
  std::vector<LenienceMeans> lenience_;
  bool of_other_text_ = false, greedy_of_sampled_text_ = false;
  bool reshaped_ = false, sampling_stated_ = true;
  std::vector<Sweep> sweeps_of_;           // empty once a position lacks whole rows
  std::optional<RecordingReplay> replay_;  // empty if the text must not be replayed
  std::vector<Note> notes_;
};

const AcceptanceEstimate* TraceAnalysis::best_alpha() const { return of_more_positions(alpha, alpha_emitted); }

TraceAnalyzer::TraceAnalyzer(const traces::TraceMetadata& metadata, std::int64_t depths, TraceAnalysisOptions options)
    : state_(std::make_unique<State>(metadata, depths, std::move(options))) {}
TraceAnalyzer::~TraceAnalyzer() = default;
TraceAnalyzer::TraceAnalyzer(TraceAnalyzer&&) noexcept = default;
TraceAnalyzer& TraceAnalyzer::operator=(TraceAnalyzer&&) noexcept = default;

const Observations& TraceAnalyzer::add(const traces::PositionSource& source, const traces::PositionBatch& batch) {
  return state_->add(source, batch);
}

void TraceAnalyzer::merge(TraceAnalyzer& other) { state_->merge(*other.state_); }
void TraceAnalyzer::exchange(core::StateWriter& archive) { state_->exchange(archive); }
void TraceAnalyzer::exchange(core::StateReader& archive) { state_->exchange(archive); }
std::int64_t TraceAnalyzer::positions() const { return state_->positions(); }
std::int64_t TraceAnalyzer::sequences() const { return state_->sequences(); }

TraceAnalysis TraceAnalyzer::finish(const std::vector<std::string>& task_names) { return state_->finish(task_names); }

const ReplayColumns* TraceAnalyzer::replayed() const { return state_->replayed(); }

TraceAnalysis analyse(traces::PositionSource& source, const TraceAnalysisOptions& options) {
  TraceAnalyzer analyzer(source.metadata(), source.depths(), options);
  traces::PositionBatch batch;
  while (source.read(batch)) analyzer.add(source, batch);
  return analyzer.finish(source.metadata().task_names);
}

}  // namespace specdec::planning
