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
#include "analysis/planning/regret.hpp"
#include "analysis/planning/request_laws.hpp"
#include "planner/assumption.hpp"
#include "traces/note.hpp"
#include "traces/trace_metadata.hpp"

namespace specdec::planning {
struct PublishedAcceptance;
}
namespace specdec::traces {
class PositionSource;
}

namespace specdec::planner {

/// An acceptance that somebody states: a rate, an interval of it, or figures by length or position.
struct StatedAcceptance {
  core::AcceptanceProfile profile;
  std::optional<planning::RateInterval> interval = {};
  /// False where the figures are no survival function within their rounding.
  bool monotone = true;
  /// The longest draft that the figures speak of.
  std::optional<std::int64_t> measured_at = {};
  /// The shortest one.
  std::int64_t measured_from = 1;
  /// Where it is one that others printed.
  const planning::PublishedAcceptance* published = nullptr;
  /// What was typed as a length or by position, with what it may mean elsewhere.
  std::optional<estimate::TypedAcceptance> typed = {};
  bool by_position = false;
  /// As 1 - alpha.
  bool by_rejection = false;

  /// The one rate that it comes to.
  core::AcceptanceRate rate() const;
  /// Typed figures of whose rounds nothing is known, so that ranges hold their rounding alone.
  bool lacks_sampling_error() const { return typed && typed->ci95.empty(); }
  /// Whether what it leaves open is a range of figures or rates as typed, and no 95% interval.
  bool is_range() const { return lacks_sampling_error() || (interval && published == nullptr); }
};

/// Where counters come from, and how they are read.
struct CountersOptions {
  /// Of the target, where the files hold several; needed there.
  std::optional<std::string> model = {};
  /// Drafted tokens of a round, where the files do not say it.
  std::optional<std::int64_t> at = {};
  /// The engine's acceptance rule, where the files do not say it.
  std::optional<traces::AcceptanceRule> acceptance = {};
  /// Drafts behind the longest one that was counted.
  estimate::BeyondObserved beyond = estimate::BeyondObserved::hold;
  /// Also the rates of single requests.
  bool by_request = false;
};

struct RecordingOptions {
  /// The draft's name or array, where the recording holds several.
  std::optional<std::string> draft_array = {};
  /// Empty: the rule that the recording names.
  std::optional<traces::AcceptanceRule> acceptance = {};
  /// Replayed up to this gamma.
  std::int64_t max_gamma = 32;
  /// Of a step where it is the same everywhere: tells which gammas cannot be told apart.
  std::optional<core::StepCost> cost = {};
  /// Also the rates of single sequences.
  bool by_request = false;
  /// Takes the share of the positions that were read, in [0, 1], where the recording says how many it has.
  std::function<void(double share)> progress = {};
};

/// How many drafted tokens are accepted, for every gamma, wherever it is known from.
struct Acceptance {
  std::shared_ptr<const estimate::AcceptanceCurve> curve;
  /// The same with three times the variance, where it was taken from rounds as if they were independent.
  std::shared_ptr<const estimate::AcceptanceCurve> curve_at_design_effect_3;
  /// Where it is stated.
  std::optional<StatedAcceptance> stated;
  std::optional<traces::AcceptanceRule> rule;
  /// Whether somebody states the rule, instead of a file.
  bool rule_stated = false;
  /// Requests, windows, ... behind the interval.
  std::optional<std::int64_t> clusters;
  /// "alpha 0.8", "counters of m (vllm metrics)", ... for people.
  std::string text;
  /// The rate and its 95% interval, where there is one.
  std::optional<double> alpha;
  std::optional<estimate::Interval> alpha_ci95;
  /// The target model that it was counted or recorded with, where the files say it.
  std::optional<std::string> model;
  /// That counted, where it is one: "vllm", "sglang", "tensorrt-llm", "llama.cpp".
  std::optional<std::string> engine;
  /// How the interval came about: "exact", "stated", "iid_rounds", "clusters", "batch_means", "sequences".
  std::string method;
  /// Of requests or sequences, where they were asked for and there are any.
  std::vector<planning::RequestRate> request_rates;
  /// Gammas that the recording cannot tell from the best one, paired over its texts; of a recording at a constant cost.
  std::vector<std::int64_t> not_told_apart;
  std::vector<std::string> files;
  std::vector<Assumption> assumptions;
  std::vector<Note> warnings;

  using Rule = std::optional<traces::AcceptanceRule>;

  /// One rate for all drafts, alpha in [0, 1].
  /// @throws std::domain_error outside that
  static Acceptance of_rate(double alpha, Rule rule = {});
  /// A rate somewhere in [low, high].
  /// @throws std::domain_error outside [0, 1]; std::invalid_argument for low > high
  static Acceptance of_interval(double low, double high, Rule rule = {});
  /// The same as 1 - alpha, exact where alpha is close to 1.
  static Acceptance of_rejection(double low, double high, Rule rule = {});
  /// Tokens per step by gamma, bonus token included.
  /// @param rounds  that each length is the mean of, for an interval
  /// @throws as estimate::typed_lengths
  static Acceptance of_lengths(std::span<const estimate::TypedLength> lengths, std::optional<double> rounds = {},
                               Rule rule = {});
  /// Rates by position: of drafts reached and accepted, or with `conditional` given that all before are accepted.
  /// @throws QuestionError where rates of all rounds rise by more than their rounding; as estimate::typed_positions
  static Acceptance of_positions(std::span<const estimate::TypedRate> rates, bool conditional = false,
                                 std::optional<double> rounds = {}, Rule rule = {});
  /// A rate that others printed, by its name in planning::published_acceptances().
  /// @throws QuestionError if there is none of that name
  static Acceptance published(std::string_view name, Rule rule = {});
  static Acceptance of(StatedAcceptance stated, Rule rule = {});
  /// What a server counted, in any format of docs/counters.md. Component `sources`.
  /// @throws QuestionError, traces::FileError
  static Acceptance from_counters(const std::vector<std::string>& files, const CountersOptions& options = {});
  /// Exact replay of a recording, in any format of docs/trace_format.md. Component `sources`.
  /// @throws QuestionError, traces::FileError
  static Acceptance from_recording(const std::vector<std::string>& files, const RecordingOptions& options = {});
  /// The same of one that is open, whose draft is already chosen.
  static Acceptance from_recording(traces::PositionSource& recording, const RecordingOptions& options = {});
};

/// What a published acceptance is, with its source.
Assumption assumption_of(const planning::PublishedAcceptance& published);
/// What a reader should know of what was typed.
std::vector<Note> warnings_of(const StatedAcceptance& acceptance);
/// What typed figures are taken to mean; none for a rate.
std::vector<Assumption> assumptions_of(const StatedAcceptance& acceptance);

}  // namespace specdec::planner
