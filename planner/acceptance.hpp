#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/core/step_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/measured_acceptance.hpp"
#include "analysis/estimate/typed_acceptance.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "analysis/planning/engine_config.hpp"
#include "analysis/planning/best_gamma.hpp"
#include "analysis/planning/request_laws.hpp"
#include "planner/assumption.hpp"
#include "planner/traffic_mix.hpp"
#include "traces/note.hpp"
#include "traces/trace_metadata.hpp"

namespace specdec::planning {
struct PublishedAcceptance;
struct PublishedPrior;
}  // namespace specdec::planning
namespace specdec::traces {
class PositionSource;
}

namespace specdec::planner {

/// The warning of typed lengths that no one draft has.
inline constexpr std::string_view lengths_contradict = "non_monotone_survival";

/// A stated acceptance: a rate, an interval of rates, or figures by length or position.
struct StatedAcceptance {
  /// The equivalent single rate.
  core::AcceptanceRate rate;
  std::optional<planning::RateInterval> interval = {};
  /// Set if the acceptance is a published rate, or a prior from published lengths.
  const planning::PublishedAcceptance* published = nullptr;
  const planning::PublishedPrior* prior = nullptr;
  /// The typed lengths or positions.
  std::optional<estimate::TypedAcceptance> typed = {};
  /// True if some position is typed as accepted as often as the one before, and not as given that one.
  bool equal_positions = false;

  /// True for typed figures from an unknown number of rounds, so that ranges contain their rounding only.
  bool lacks_sampling_error() const { return typed && !typed->is_sampled; }
  /// True if the uncertainty is a range of figures or rates as typed, not a 95% interval.
  bool is_range() const { return lacks_sampling_error() || (interval && published == nullptr); }
};

/// Options for reading counters.
struct CountersOptions {
  /// The target, required if the files hold several.
  std::optional<std::string> model = {};
  /// Drafted tokens per round, if the files do not state it.
  std::optional<std::int64_t> at = {};
  /// The engine's acceptance rule, if the files do not state it.
  std::optional<traces::AcceptanceRule> acceptance = {};
  /// The kind of the drafts, where it is known: how acceptance changes with depth depends on it.
  std::optional<cost::DraftKind> kind = {};
  /// Also compute the rates of single requests.
  bool by_request = false;
  /// The traffic to plan for, as shares of groups of the requests counted; as they were counted if not given.
  std::optional<TrafficMix> mix = {};
};

struct RecordingOptions {
  /// The draft's name or array, if the recording holds several.
  std::optional<std::string> draft_array = {};
  /// If empty, the rule that the recording names.
  std::optional<traces::AcceptanceRule> acceptance = {};
  /// The engine that is to be configured. If it has one rule alone, that is followed where no other is stated.
  std::optional<planning::Engine> engine = {};
  /// The largest gamma to replay.
  std::int64_t max_gamma = 32;
  /// Also compute the rates of single sequences; none of a mix, or by context.
  bool by_request = false;
  /// The traffic to plan for, as shares of the recording's tasks or contexts; as it was recorded if not given.
  std::optional<TrafficMix> mix = {};
  /// Where ranges of contexts begin, rising, above 0: each has its own acceptance. Not beside a mix.
  std::vector<double> context_bounds = {};
  /// Receives the share of the positions read so far, in [0, 1], if the recording states how many it has.
  std::function<void(double share)> progress = {};
};

/// Drafts that are looked up, according to counters.
struct CountedLookups {
  /// The share of the steps in which a lookup found something; empty if the counts do not tell the others.
  std::optional<double> hit_rate;
  /// m of core::LookupLaw; empty if hits fill gamma.
  std::optional<double> mean_length;
  /// The longest draft of these counts.
  std::int64_t gamma = 1;
  /// The acceptance of all steps, the misses and the ends of short drafts included: traces::counted_by_step. Null
  /// without a hit rate.
  std::shared_ptr<const estimate::AcceptanceCurve> curve;
};

struct Acceptance;
struct Cost;

/// An interval of rates; one rate if its ends are the same.
struct RateRange {
  double low = 0;
  double high = 0;
};

/// An acceptance that another program read from files, known up to a gamma.
struct KnownAcceptance {
  std::shared_ptr<const Acceptance> acceptance;
  std::int64_t last_gamma = 0;
};

/// Acceptance as it is stated: exactly one of the first six members, and those that go with it. Members have the
/// meaning of the options of `specdec plan` of that name.
struct AcceptanceWords {
  /// True unless none of the members states an acceptance.
  bool states_any() const;

  /// In [0, 1]; `rejection` is 1 - alpha, in [0, 1], too.
  std::optional<RateRange> alpha = {};
  std::optional<RateRange> rejection = {};
  std::vector<estimate::TypedLength> acceptance_length = {};
  std::vector<estimate::TypedRate> acceptance_per_position = {};
  std::optional<std::string> published = {};
  std::optional<KnownAcceptance> known = {};
  /// Rates by position are those given that all before are accepted.
  bool conditional = false;
  /// Rounds behind each length or rate by position, [1, 1e15].
  std::optional<double> rounds = {};
  std::optional<traces::AcceptanceRule> rule = {};
};

/// The number of drafted tokens that are accepted, for every gamma, from any source.
struct Acceptance : Provenance {
  std::shared_ptr<const estimate::AcceptanceCurve> curve;
  /// From contexts on, if a recording was replayed by context; `curve` is then that of all of them together.
  std::vector<planning::ContextAcceptance> by_context;
  /// P(the first j drafts of a step are all accepted), j = 1 .. the largest gamma, of the steps of that gamma in an
  /// exact replay of a recording; empty for other sources and for a mix.
  std::vector<double> replayed_survival;
  /// Set if the acceptance is stated, with the words that state it.
  std::optional<StatedAcceptance> stated;
  std::optional<AcceptanceWords> words;
  std::optional<traces::AcceptanceRule> rule;
  /// The source of the rule, as in an Assumption; empty without a rule.
  std::string rule_source;
  /// What counters tell of drafts that are looked up; `curve` is that of what was proposed.
  std::optional<CountedLookups> lookups;
  /// The number of requests, windows, ... behind the interval.
  std::optional<std::int64_t> clusters;
  /// "alpha 0.8", "counters of m (vllm metrics)", ... for human readers.
  std::string text;
  /// The rate and its 95% interval, if there is one.
  std::optional<double> alpha;
  std::optional<estimate::Interval> alpha_ci95;
  /// The target model that it was counted or recorded with, if the files state it.
  std::optional<std::string> model;
  /// The engine that counted, if any: "vllm", "sglang", "tensorrt-llm", "llama.cpp".
  std::optional<std::string> engine;
  bool is_of_llamacpp() const { return engine == "llama.cpp"; }
  /// The origin of the interval: "exact", "stated", "iid_rounds", "clusters", "batch_means", "sequences".
  std::string method;
  /// Rates of requests or sequences, if requested and available.
  std::vector<planning::RequestRate> request_rates;

  using Rule = std::optional<traces::AcceptanceRule>;

  /// One rate for all drafts, alpha in [0, 1].
  /// @throws std::domain_error if alpha is outside that range
  static Acceptance of_rate(double alpha, Rule rule = {});
  /// A rate between low and high.
  /// @throws std::domain_error outside [0, 1]; std::invalid_argument for low > high
  static Acceptance of_interval(double low, double high, Rule rule = {});
  /// The same as 1 - alpha, exact if alpha is close to 1.
  static Acceptance of_rejection(double low, double high, Rule rule = {});
  /// Tokens per step by gamma, including the bonus token.
  /// @param rounds  the number of rounds behind each mean, for an interval
  /// @throws as estimate::typed_lengths
  static Acceptance of_lengths(std::span<const estimate::TypedLength> lengths, std::optional<double> rounds = {},
                               Rule rule = {});
  /// Rates by position: share of rounds whose draft there is accepted, or with `conditional` given that all before are.
  /// @throws QuestionError if rates of all rounds rise by more than their rounding; as estimate::typed_positions
  static Acceptance of_positions(std::span<const estimate::TypedRate> rates, bool conditional = false,
                                 std::optional<double> rounds = {}, Rule rule = {});
  /// A published rate, by its name in planning::published_acceptances(), or a prior, by its name in
  /// planning::published_priors().
  /// @throws QuestionError if there is none with that name
  static Acceptance published(std::string_view name, Rule rule = {});
  /// The prior for the draft that a cost is of, on its target: planning::prior_of.
  /// @throws QuestionError if no length was published of drafts of its kind
  static Acceptance prior_for(const Cost& cost, Rule rule = {});
  static Acceptance of(StatedAcceptance stated, Rule rule = {});
  /// The acceptance that the words state.
  /// @throws QuestionError unless they state exactly one, and nothing that goes with another; as the functions above
  static Acceptance of(const AcceptanceWords& words);
  /// The same, or if they state none the prior for the draft that the cost names.
  static Acceptance of(const AcceptanceWords& words, const Cost& cost);
  /// Carries typed figures to other gammas as drafts do of the kind that the cost names, if it names one.
  void take_draft_of(const Cost& cost);
  /// Server counters, in any format of docs/reference/formats.md. Component `sources`.
  /// @throws QuestionError, traces::FileError
  static Acceptance from_counters(const std::vector<std::string>& files, const CountersOptions& options = {});
  /// Exact replay of a recording, in any format of docs/reference/formats.md. Component `sources`.
  /// @throws QuestionError, traces::FileError
  static Acceptance from_recording(const std::vector<std::string>& files, const RecordingOptions& options = {});
  /// The same for an open recording whose draft has been chosen.
  static Acceptance from_recording(traces::PositionSource& recording, const RecordingOptions& options = {});
};

/// A published acceptance as an assumption, with its source.
Assumption assumption_of(const planning::PublishedAcceptance& published);
/// Notes for the reader about typed figures.
std::vector<Note> warnings_of(const StatedAcceptance& acceptance);
/// The assumptions behind typed figures; none for a rate.
std::vector<Assumption> assumptions_of(const StatedAcceptance& acceptance);

}  // namespace specdec::planner
