#include "analysis/planning/recording_replay.hpp"

#include <fmt/format.h>
#include <utility>

namespace specdec::planning {
namespace {

using estimate::AcceptanceEstimate;

estimate::ReplayEstimateOptions replay_options(std::int64_t depths, const TraceAnalysisOptions& options) {
  estimate::ReplayEstimateOptions replay;
  replay.replay = {options.max_gamma, depths, true};
  replay.cost = options.cost;
  replay.threads = options.observe.threads;
  return replay;
}

}  // namespace

const AcceptanceEstimate* of_more_positions(const std::optional<AcceptanceEstimate>& first,
                                            const std::optional<AcceptanceEstimate>& second) {
  if (first && !(second && second->positions > first->positions)) return &*first;
  return second ? &*second : nullptr;
}

AlphaEnds alpha_ends(const std::optional<AcceptanceEstimate>& mean, const std::optional<AcceptanceEstimate>& emitted,
                     bool bracketed) {
  const AcceptanceEstimate* const first = of_more_positions(mean, emitted);
  for (const AcceptanceEstimate* const alpha : {first, of_more_positions(emitted, mean)}) {
    if (alpha && alpha->value) return {alpha->value, alpha->value};
  }
  if (!first || !bracketed) return {};
  return {first->bounds.lo, first->bounds.hi};
}

RecordingReplay::RecordingReplay(std::int64_t depths, const TraceAnalysisOptions& options)
    : max_gamma_(options.max_gamma),
      columns_(depths),
      lower_(replay_options(depths, options)),
      confidence_(options.observe.confidence_bins) {
  if (options.cost && options.judges_drafting && depths == 1) begin_adaptive(options);
}

void RecordingReplay::begin_adaptive(const TraceAnalysisOptions& options) {
  estimate::AdaptiveOptions adaptive;
  adaptive.max_gamma = options.max_gamma;
  adaptive.cost = *options.cost;
  adaptive.thresholds = confidence_.thresholds();
  adaptive.threads = options.observe.threads;
  adaptive_.emplace(std::move(adaptive));
}

void RecordingReplay::add(const estimate::Observations& seen, const traces::PositionBatch& batch,
                          bool proposes_one_token) {
  if (!columns_.take(seen)) {
    says_nothing_ = true;
    lacks_tokens_ = lacks_tokens_ || planning::lacks_tokens(batch);
  }
  if (says_nothing_) return;
  if (!columns_.exact()) begin_upper();
  lower_.add({columns_.lower(), seen.labels()});
  if (upper_) upper_->add({columns_.highest(), seen.labels()});
  add_adaptive(seen, proposes_one_token);
}

void RecordingReplay::add_adaptive(const estimate::Observations& seen, bool proposes_one_token) {
  if (!adaptive_) return;
  confidence_.take(seen, proposes_one_token);
  estimate::DraftedColumns drafted{columns_.lower(), {}, {}, seen.labels()};
  confidence_.fill(drafted);
  adaptive_->add(drafted);
}

/// Until here both ends were the same.
void RecordingReplay::begin_upper() {
  if (!upper_) upper_ = lower_;
  adaptive_.reset();
}

void RecordingReplay::end() {
  lower_.finish();
  if (upper_) upper_->finish();
  if (adaptive_) adaptive_->finish();
}

void RecordingReplay::merge(RecordingReplay& other) {
  says_nothing_ = says_nothing_ || other.says_nothing_;
  lacks_tokens_ = lacks_tokens_ || other.lacks_tokens_;
  columns_.merge(other.columns_);
  if (other.upper_) begin_upper();
  if (upper_) upper_->merge(other.upper_ ? *other.upper_ : other.lower_);
  lower_.merge(other.lower_);
  confidence_.merge(other.confidence_);
  if (adaptive_) adaptive_->merge(*other.adaptive_);
}

void RecordingReplay::finish(const AlphaEnds& alpha, bool proposes_one_token, TraceAnalysis& result,
                             std::vector<Note>& notes) {
  std::int64_t last_gamma = max_gamma_;
  if (const auto longest = columns_.longest_draft(); longest && *longest < last_gamma) {
    last_gamma = *longest;
    result.longest_draft = longest;
    lower_.end_at(last_gamma);
    if (upper_) upper_->end_at(last_gamma);
    notes.push_back({"gamma_not_drafted",
                     fmt::format("gammas above {} are left out: {}", last_gamma, no_longer_draft(last_gamma))});
  }
  ReplayAnalysis replay;
  replay.lower = lower_.report(alpha.lower);
  if (upper_) replay.upper = upper_->report(alpha.upper);
  replay.positions = position_acceptance(lower_, upper_ ? &*upper_ : nullptr, last_gamma);
  result.replay = std::move(replay);
  if (const auto note = columns_.depth_held(last_gamma)) notes.push_back(*note);
  for (const std::string& note : result.replay->highest().notes) notes.push_back({"replay", note});
  finish_adaptive(proposes_one_token, result, notes);
}

void RecordingReplay::finish_adaptive(bool proposes_one_token, TraceAnalysis& result, std::vector<Note>& notes) const {
  if (!adaptive_) return;
  result.adaptive = adaptive_->report(lower_.halves());
  for (const std::string& note : result.adaptive->notes) notes.push_back({"adaptive", note});
  if (confidence_.tells() || confidence_.thresholds().empty()) return;
  result.adaptive->threshold.reset();
  notes.push_back({"no_confidence",
                   proposes_one_token
                       ? "whether a confidence threshold pays cannot be told: the draft's probability of its "
                         "proposals was not recorded; rows of the draft, raw at temperature 0, would tell it"
                       : "whether a confidence threshold pays cannot be told: of rejected drafts nothing is "
                         "recorded; whole rows would tell their law",
                   true});
}

std::map<std::int32_t, estimate::ReplayReport> RecordingReplay::lower_by_task(
    const std::map<std::int32_t, double>& alphas) const {
  return lower_.by_task(alphas);
}

std::map<std::int32_t, estimate::ReplayReport> RecordingReplay::upper_by_task(
    const std::map<std::int32_t, double>& alphas) const {
  return upper_ ? upper_->by_task(alphas) : std::map<std::int32_t, estimate::ReplayReport>{};
}

}  // namespace specdec::planning
