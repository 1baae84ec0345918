#include "sim/validation/recorded_methods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "analysis/estimate/observe.hpp"
#include "analysis/planning/replay_columns.hpp"
#include "analysis/planning/trace_analysis.hpp"
#include "analysis/theory/replay.hpp"
#include "sim/batch_verification.hpp"
#include "sim/validation/batch_rules.hpp"
#include "sim/validation/finished_sequences.hpp"
#include "sim/validation/validate.hpp"

namespace specdec::validation {
namespace {

/// A lack of the recording, as an exception: at the first positions, or at later ones.
class NotRecorded : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// The data to be played: the acceptance's column, and the policy.
struct RecordedPlay {
  std::string_view verifier;
  DraftedLength length;
  double threshold = 0;
  bool knows_drafted = true;

  bool needs_probability() const { return verifier == "matching" || length.policy.stops_after; }
  /// Positions at which the draft is not sure enough are left out.
  bool leaves_out() const { return static_cast<bool>(length.policy.stops_before); }
  bool changes_gamma() const { return static_cast<bool>(length.policy.next_gamma); }
};

RecordedPlay play_of(const Method& method, const MethodSettings& settings) {
  const DraftedLength length =
      method.policy->length == nullptr ? DraftedLength{settings.gamma} : method.policy->length(settings);
  return {method.verifier->name, length, settings.threshold, recording_tells_drafts(method)};
}

/// The acceptances of a recording's positions, batch by batch.
class RecordedAcceptance {
 public:
  RecordedAcceptance(const RecordedPlay& play, const MethodContext& context)
      : play_(play), source_(context.source().recording()), observer_(source_->metadata(), options(play, context)) {
    if (source_->metadata().path == traces::TextSource::other)
      throw NotRecorded("the text is not the target's own (path is other), and only such a text can be replayed");
  }

  /// @return false at the end
  bool read() {
    if (!source_->read(batch_)) {
      if (!columns_) throw NotRecorded("the recording holds no position");
      return false;
    }
    seen_ = observer_.observe(*source_, batch_);
    if (!columns_) columns_.emplace(observer_.replayed_depths(source_->depths(), play_.length.gamma));
    require_recorded();
    return true;
  }

  const traces::PositionSource& source() const { return *source_; }
  const estimate::Observations& seen() const { return seen_; }
  std::int64_t depths() const { return columns_->depths(); }
  /// Shape: (positions, depths)
  std::span<const double> acceptance() const {
    if (play_.verifier == "matching") return seen_.draft_token_probability;
    return play_.verifier == "rejection" ? seen_.rejection_sampling_acceptance : columns_->lower();
  }
  /// Positions at which the policy confidence drafts nothing.
  bool is_left_out(std::size_t i) const {
    return play_.leaves_out() && seen_.draft_top_probability[i] < play_.threshold;
  }
  std::vector<Note> notes() const {
    std::vector<Note> notes = observer_.notes();
    append(notes, source_->notes());
    if (const auto longest = columns_->longest_draft(); longest && play_.length.gamma > *longest) {
      notes.push_back({"gamma_not_drafted", fmt::format("gamma is {}, but {}: longer drafts are taken for rejected",
                                                        play_.length.gamma, planning::no_longer_draft(*longest))});
    }
    return notes;
  }

 private:
  static estimate::ObserveOptions options(const RecordedPlay& play, const MethodContext& context) {
    estimate::ObserveOptions options;
    options.rule =
        play.verifier == "greedy-draft" ? traces::AcceptanceRule::greedy_draft : traces::AcceptanceRule::rejection;
    options.rejection_sampling = play.verifier == "rejection";
    options.threads = context.settings().threads;
    return options;
  }

  static bool has_unknown(const std::vector<double>& column) {
    return std::any_of(column.begin(), column.end(), [](double value) { return std::isnan(value); });
  }

  /// True if the rule that is played is the recording's, or the default of recordings that name none.
  bool rule_known() const { return source_->metadata().acceptance || seen_.rule == traces::AcceptanceRule::rejection; }

  void require_recorded() {
    const bool own_column = play_.verifier == "matching" || play_.verifier == "rejection";
    if (!columns_->take(seen_)) throw NotRecorded("the recording says nothing of acceptance under this rule");
    if (play_.verifier == "rejection" && seen_.rejection_sampling_acceptance.empty())
      throw NotRecorded("the recording holds no whole rows, of which min q / p is taken");
    if (play_.needs_probability() && seen_.draft_token_probability.empty())
      throw NotRecorded("the recording does not hold the draft's probability of each token");
    if (play_.leaves_out() && seen_.draft_top_probability.empty())
      throw NotRecorded("the recording does not hold the draft's largest probability");
    if (!own_column && !columns_->exact())
      throw NotRecorded("the recording knows acceptance within bounds alone; specdec analyze replays both ends");
    if (play_.needs_probability() && has_unknown(seen_.draft_token_probability))
      throw NotRecorded(own_column ? "the recording knows acceptance within bounds alone"
                                   : "the recording knows the draft's probability of some tokens within bounds alone");
    if (!seen_.accepted_length.empty() && !rule_known())
      throw NotRecorded(
          "the recording does not name the rule of its accepted lengths, which are taken for rejection's");
    if (depths() > 1 && (own_column || play_.changes_gamma() || play_.length.gamma > depths()))
      throw NotRecorded(fmt::format("drafts are recorded to depth {}, and this needs other ones", depths()));
    if (play_.changes_gamma() && !seen_.accepted_length.empty())
      throw NotRecorded("accepted lengths are those of a fixed gamma");
  }

  RecordedPlay play_;
  std::unique_ptr<traces::PositionSource> source_;
  estimate::Observer observer_;
  traces::PositionBatch batch_;
  estimate::Observations seen_;
  std::optional<planning::ReplayColumns> columns_;
};

/// One sequence of the recording while it is collected, and its outcome.
struct RecordedSequence {
  std::int64_t number = 0;
  std::int32_t task = -1;
  /// estimate::PositionLabels::cluster: its prompt, or itself where that is unknown.
  std::uint64_t cluster = 0;
  std::vector<double> acceptance = {};
  std::vector<double> probability = {};
  std::vector<bool> left_out = {};

  std::size_t tokens() const { return left_out.size(); }
};

struct ReplayedSequence {
  std::int32_t task = -1;
  std::uint64_t cluster = 0;
  MethodRun run;
  theory::ReplayedSteps exact;
};

/// The cost of a batch's round, in plain steps of one text each; 1 a text where nothing is known.
sim::BatchCost batch_cost(const std::optional<core::StepCost>& cost) {
  return [cost](std::int64_t sequences, std::int64_t drafted, std::int64_t verified) {
    const auto texts = static_cast<double>(sequences);
    if (!cost || drafted == 0) return texts;
    const double target = static_cast<double>(
        cost->verification.extended(1 + static_cast<long double>(verified) / static_cast<long double>(sequences)));
    return texts * (target + cost->c * static_cast<double>(drafted) + cost->overhead);
  };
}

class RecordedExperiment {
 public:
  RecordedExperiment(const Method& method, const MethodContext& context)
      : method_(method), context_(context), play_(play_of(method, context.settings())) {}

  void run(const core::RunHooks& hooks, ComparedMethods& compared) {
    RecordedAcceptance positions(play_, context_);
    std::optional<RecordedSequence> sequence;
    while (positions.read()) {
      const estimate::Observations& seen = positions.seen();
      for (std::size_t i = 0; i < seen.sequence.size(); ++i) {
        if (!sequence || sequence->number != seen.sequence[i]) {
          if (sequence) take(std::move(*sequence), positions.depths());
          if (hooks.interrupted()) return summarise(positions, compared);
          sequence = RecordedSequence{
              .number = seen.sequence[i], .task = seen.labels().task_of(i), .cluster = seen.labels().cluster(i)};
          texts_without_prompt_ += seen.labels().has_prompt(i) ? 0 : 1;
        }
        collect(positions, i, *sequence);
      }
      if (const auto all = positions.source().positions(); hooks.progress && all)
        hooks.progress(static_cast<double>(seen.first + seen.size) / static_cast<double>(*all));
    }
    take(std::move(*sequence), positions.depths());
    if (method_.policy->batch_rule != nullptr) replay_together(positions.depths(), hooks);
    summarise(positions, compared);
  }

 private:
  /// A text whose end has been read.
  void take(RecordedSequence sequence, std::int64_t depths) {
    if (method_.policy->batch_rule == nullptr) return replay(sequence, depths);
    kept_.push_back(std::move(sequence));
  }

  void replay_together(std::int64_t depths, const core::RunHooks& hooks) {
    const MethodSettings& settings = context_.settings();
    std::vector<sim::BatchedText> texts;
    for (const RecordedSequence& one : kept_) texts.push_back(text_of(one, depths));
    const sim::BatchCost cost = batch_cost(settings.cost);
    const std::unique_ptr<sim::BatchRule> rule = method_.policy->batch_rule(settings, cost);
    const std::vector<sim::BatchedRun> runs =
        sim::decode_in_batches(texts, settings.batch, *rule, cost, settings.seed, [&] { return hooks.interrupted(); });
    for (std::size_t s = 0; s < runs.size(); ++s)
      if (runs[s].tokens == texts[s].tokens) sequences_.push_back(result_of(runs[s], kept_[s]));
  }

  static ReplayedSequence result_of(const sim::BatchedRun& run, const RecordedSequence& sequence) {
    ReplayedSequence result{sequence.task, sequence.cluster, {}, {}};
    result.run.rounds.accepted.expected = run.accepted_expected;
    result.run.rounds.judged = static_cast<double>(run.judged);
    result.run.cost = run.cost;
    sim::Counters& counters = result.run.counters;
    counters.steps = counters.target_calls = run.steps;
    counters.tokens = run.tokens;
    counters.accepted = run.accepted;
    counters.drafted = run.verified;
    counters.draft_calls = counters.draft_positions = run.drafted;
    counters.drafted_at = run.verified_at;
    counters.accepted_at = run.accepted_at;
    counters.accepted_at.resize(counters.drafted_at.size());
    return result;
  }

  static void collect(const RecordedAcceptance& positions, std::size_t i, RecordedSequence& sequence) {
    const estimate::Observations& seen = positions.seen();
    const auto depths = static_cast<std::size_t>(positions.depths());
    const std::span<const double> row = positions.acceptance().subspan(i * depths, depths);
    sequence.acceptance.insert(sequence.acceptance.end(), row.begin(), row.end());
    if (!seen.draft_token_probability.empty()) sequence.probability.push_back(seen.draft_token_probability[i]);
    sequence.left_out.push_back(positions.is_left_out(i));
  }

  sim::BatchedText text_of(const RecordedSequence& sequence, std::int64_t depths) const {
    return {.sequence = sequence.number,
            .tokens = static_cast<std::int64_t>(sequence.tokens()),
            .depths = depths,
            .acceptance = sequence.acceptance,
            .group = sequence.task + 1};
  }

  void replay(const RecordedSequence& sequence, std::int64_t depths) {
    const MethodSettings& settings = context_.settings();
    const sim::DraftingPolicy& policy = play_.length.policy;
    std::vector<std::int64_t> most;
    if (!play_.changes_gamma()) most = drafts_from(play_.length.gamma, policy, sequence.probability, sequence.left_out);
    PolicyRule rule(play_.length.gamma, policy.next_gamma, most);
    const sim::BatchedText text = text_of(sequence, depths);
    const auto runs = sim::decode_in_batches({&text, 1}, 1, rule, batch_cost(settings.cost), settings.seed);
    ReplayedSequence& result = sequences_.emplace_back(result_of(runs.front(), sequence));
    if (!play_.knows_drafted) {
      sim::Counters& counters = result.run.counters;
      counters.drafted = counters.draft_calls = counters.draft_positions = 0;
      counters.drafted_at.clear();
      counters.accepted_at.clear();
    }
    if (!play_.changes_gamma()) result.exact = theory::replay_steps_within(sequence.acceptance, depths, most);
  }

  void summarise(const RecordedAcceptance& positions, ComparedMethods& compared) const {
    std::vector<Note> notes = positions.notes();
    if (texts_without_prompt_ > 0 && sequences_.size() > 1)
      notes.push_back(planning::texts_taken_as_independent(texts_without_prompt_, std::ssize(sequences_)));
    for (const Note& note : notes)
      if (std::ranges::find(compared.notes, note.message, &Note::message) == compared.notes.end())
        compared.notes.push_back(note);
    if (sequences_.empty()) return;
    std::map<std::int32_t, std::vector<const ReplayedSequence*>> by_task;
    std::vector<const ReplayedSequence*> all;
    for (const ReplayedSequence& sequence : sequences_) {
      all.push_back(&sequence);
      by_task[sequence.task].push_back(&sequence);
    }
    compared.results.push_back(summary("", all));
    if (by_task.size() < 2) return;
    const traces::TraceMetadata& metadata = positions.source().metadata();
    for (const auto& [task, members] : by_task)
      compared.results.push_back(summary(traces::task_name(metadata.task_names, task), members));
  }

  MethodResult summary(const std::string& task, const std::vector<const ReplayedSequence*>& members) const {
    std::vector<FinishedSequence> sequences;
    theory::ReplayedSteps exact;
    for (const ReplayedSequence* member : members) {
      sequences.push_back({member->cluster, &member->run});
      exact.expected += member->exact.expected;
      exact.variance += member->exact.variance;
    }
    MethodResult result = summary_of(method_, task, sequences, context_.settings().cost);
    if (exact.expected > 0)
      result.closed_form_tokens_per_step = static_cast<double>(result.counters.tokens) / exact.expected;
    if (exact.variance >= least_variance)
      result.deviation_standard_errors =
          (exact.expected - static_cast<double>(result.counters.steps)) / std::sqrt(exact.variance);
    if (!play_.knows_drafted) {
      result.draft_calls_per_token.reset();
      result.speedup.reset();
    }
    return result;
  }

  Method method_;
  const MethodContext& context_;
  RecordedPlay play_;
  /// For policies that decide for a batch of texts.
  std::vector<RecordedSequence> kept_;
  std::vector<ReplayedSequence> sequences_;
  std::int64_t texts_without_prompt_ = 0;
};

/// The reason why no recording can replay the method; empty if one may.
std::string beyond_recordings(const Method& method, const MethodContext& context) {
  if (method.is_plain()) return "a recording replays a draft with a verifier";
  if (method.draft != &draft_kinds().front()) return "a recording replays the draft that was recorded, model, alone";
  const std::string_view verifier = method.verifier->name;
  if (method.verifier->tree != nullptr) return "a recording knows one draft of a position, not several";
  if (!method.verifier->lossless) return "a lossy rule makes another text than the one that was recorded";
  if (verifier == "block") return "rejected drafts are judged, too, which a recording does not hold";
  if (method.policy->in_hindsight) return "a recording does not hold what hindsight compares";
  return method.policy->lacks == nullptr ? std::string() : method.policy->lacks(context, *method.verifier);
}

}  // namespace

bool recording_tells_drafts(const Method& method) {
  const std::string_view policy = method.policy == nullptr ? std::string_view() : method.policy->name;
  if (method.policy != nullptr && method.policy->batch_rule != nullptr) return true;
  return policy == "fixed" || policy == "heuristic" || policy == "batch";
}

std::string lacking_in_recording(const Method& method, const MethodContext& context) {
  if (std::string lack = beyond_recordings(method, context); !lack.empty()) return lack;
  try {
    RecordedAcceptance(play_of(method, context.settings()), context).read();
  } catch (const NotRecorded& lack) {
    return lack.what();
  } catch (const estimate::RuleUndefined& lack) {
    return lack.what();
  }
  return "";
}

void replay_method(const Method& method, const MethodContext& context, const core::RunHooks& hooks,
                   ComparedMethods& compared) {
  RecordedExperiment(method, context).run(hooks, compared);
}

}  // namespace specdec::validation
