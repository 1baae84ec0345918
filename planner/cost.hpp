#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/core/step_cost.hpp"
#include "analysis/cost/iteration_cost.hpp"
#include "analysis/cost/roofline_cost.hpp"
#include "analysis/cost/round_cost.hpp"
#include "planner/assumption.hpp"
#include "planner/draft_pairs.hpp"
#include "planner/named_specs.hpp"
#include "traces/formats/timing_table.hpp"
#include "traces/note.hpp"

namespace specdec::planner {

struct Acceptance;

/// The times of a speculative step, in plain target steps.
struct StepTimes {
  /// Draft step / target step, >= 0; required, except for drafts without steps of their own.
  std::optional<double> c = {};
  /// v(n): scoring n tokens / one token; 1 if not given.
  std::optional<core::VerificationCost> verify_factor = {};
  /// Other time of a speculative step, >= 0; 0 if not given.
  std::optional<double> overhead = {};

  /// The cost of a step with this c.
  core::StepCost with_c(double its_c) const;
  /// The default values used for times that nobody states.
  std::vector<Assumption> assumptions() const;
  /// "verify_factor_below_1" if scoring several tokens is stated to take less time than scoring one.
  std::vector<Note> warnings() const;
};

/// A time that was measured on a server, for calibration.
struct TimedIteration {
  /// Number of sequences, > 0.
  double batch = 1;
  /// Of an output token, or to the first one after prompt_tokens; > 0.
  double seconds = 0;
  /// If given, what an idle server read, >= 1; of the others only the name means anything.
  std::optional<double> prompt_tokens = {};
  std::int64_t gamma = 0;
  /// [1, gamma + 1]; required if gamma > 0.
  std::optional<double> tokens_per_step = {};
  /// Tokens in the cache per sequence; 0 if not given.
  std::optional<double> context = {};
  /// Its name in assumptions.
  std::string name = {};
};

/// Settings of the models on their hardware. Losses that are not given are ranges from published measurements.
struct HardwareOptions {
  DraftWords draft = {};
  /// False: nothing drafts, and the draft's settings are ignored.
  bool drafts = true;
  /// Accelerators that share the target; 1 if not given.
  std::optional<std::int64_t> tensor_parallel = {};
  /// Groups of so many accelerators that serve sequences of their own and share the routed experts, and parts that
  /// whole experts are divided into over all groups; 1 if not given.
  std::optional<std::int64_t> data_parallel = {};
  std::optional<std::int64_t> expert_parallel = {};
  /// If empty, as in the models' files, else bf16; bf16 for the cache.
  std::optional<cost::NumberType> weight_dtype = {};
  std::optional<cost::NumberType> draft_weight_dtype = {};
  std::optional<cost::NumberType> kv_cache_dtype = {};
  /// An engine whose measured kernels come with the program for the hardware, or a file of one: in place of the shares
  /// of the peaks and of the all-reduces' latency, which then must not be given; or "none". If empty, vLLM's where they
  /// come with the program, hold what is asked for, and none of these is given.
  std::optional<std::string> kernel_times = {};
  /// Achieved shares of the peaks, (0, 1].
  std::optional<cost::UncertainValue> bandwidth_efficiency = {};
  std::optional<cost::UncertainValue> compute_efficiency = {};
  std::optional<cost::UncertainValue> link_efficiency = {};
  /// Seconds, >= 0: of an all-reduce apart from its bytes, of each pass, of the draft's passes, of each layer and of
  /// each iteration.
  std::optional<cost::UncertainValue> all_reduce_latency_seconds = {};
  std::optional<cost::UncertainValue> launch_seconds = {};
  std::optional<cost::UncertainValue> draft_launch_seconds = {};
  std::optional<cost::UncertainValue> layer_seconds = {};
  std::optional<cost::UncertainValue> scheduling_seconds = {};
  /// Measured times that tell the deployment's errors.
  std::vector<TimedIteration> calibrate = {};
  /// Files that have been read and need not be read again.
  NamedSpecs known = {};
};

/// A cost as it is stated: constants, or hardware and the models on it. Members have the meaning of the options of
/// `specdec plan` of that name.
struct CostWords {
  StepTimes times = {};
  /// The arguments of Cost::of_hardware; the target's name goes with constants, too.
  std::optional<std::string> hardware = {};
  std::optional<std::string> model = {};
  /// Settings of the models there; the draft's name and kind go with constants, too.
  HardwareOptions options = {};
};

/// Timed passes of all models in several files: specdec's (batch, tokens, context, seconds) or llama-bench's.
class Timings {
 public:
  /// @param option  the name of the option with the files, for messages
  /// @throws QuestionError for a file that counts rounds or times answers, and no passes; traces::FileError
  explicit Timings(const std::vector<std::string>& files, std::string option = "--cost");

  bool of_llamacpp() const;
  bool has_several_models() const { return models().size() > 1; }
  std::vector<std::string> models() const;
  /// The passes of the named model, or of the only one.
  /// @param name_option  the option that gives the name
  /// @throws QuestionError if there are several and none is named, or there is none with that name
  std::vector<traces::TimedPass> passes(const std::string& name_option, const std::optional<std::string>& name) const;
  const std::vector<std::string>& files() const { return files_; }
  const std::vector<Note>& warnings() const { return warnings_; }

 private:
  std::vector<traces::TimedPass> passes_of(const std::string& model) const;
  std::optional<std::string> named(const std::string& name) const;

  std::string option_;
  std::vector<std::string> files_;
  std::vector<traces::TimingTable> tables_;
  std::vector<Note> warnings_;
};

/// Options of times that were measured: of passes, or in logs.
struct TimingOptions {
  /// The target, if the files hold several models.
  std::optional<std::string> model = {};
  DraftWords draft = {};
  /// Draft step / target step; or the draft's own times, in these files or together with the target's. Of passes.
  std::optional<double> c = {};
  std::vector<std::string> draft_cost = {};
  /// Drafted tokens per round, if logs do not state it.
  std::optional<std::int64_t> at = {};
  /// Other time of a speculative step, which the rounds of logs lack, >= 0.
  std::optional<double> overhead_seconds = {};
};

/// The cost of a round, and its sources.
struct Cost : Provenance {
  std::shared_ptr<const cost::RoundCost> rounds;
  /// The same, if priced from hardware.
  std::shared_ptr<const cost::RooflineCost> roofline;
  /// Whole iterations, if they are priced in another way than the roofline's own.
  std::shared_ptr<const cost::IterationCost> iterations = {};
  /// The constants, including c.
  std::optional<StepTimes> constants;
  /// The words that state constants or hardware, with the specifications that were read from files; empty for others.
  std::optional<CostWords> words;
  /// The kind of the draft, and the settings stated for it.
  cost::DraftKind kind = cost::DraftKind::model;
  DraftWords draft;
  /// The target as requested; empty if it is not named.
  std::string target_model;
  /// The measured batches, else 1.
  std::vector<double> usual_batches = {1};
  /// The engine of logs or timings, as these name it.
  std::optional<std::string> engine;
  /// True if rounds were priced from the windows of a log.
  bool from_log = false;
  /// True if what was timed are steps as they ran, those without a draft or with a short one included.
  bool of_steps = false;
  /// The hardware and models described by files.
  NamedSpecs specs;

  /// Multiples of a plain target step, independent of batch and context: Theorem 3.8.
  /// @throws QuestionError without c if the draft makes steps, or with a c other than 0 if it makes none
  static Cost of_constants(const StepTimes& times, DraftWords draft = {}, std::string target_model = {});
  /// The paper's costs: c alone.
  static Cost of_constants(double c);
  /// A roofline from what the models read and compute and what the hardware can do.
  /// @param hardware  a name of cost::hardware_presets(), or a file
  /// @param model     a name of cost::model_presets(), a config.json, its folder or a GGUF file
  /// @param options   drafts of the kind eagle without a model are those of the target's published head
  /// @throws QuestionError for an invalid value or name; traces::FileError
  static Cost of_hardware(const std::string& hardware, const std::string& model, HardwareOptions options = {});
  /// The cost that the words state.
  /// @throws QuestionError for members that do not go together; as the functions above
  static Cost of(const CostWords& words);
  /// Timed passes of the target and, unless c is given, of the draft. Component `sources`.
  /// @throws QuestionError, traces::FileError
  static Cost of_timings(const Timings& target, const TimingOptions& options = {});
  /// The steady windows of engines' logs and the windows between scrapes, plain and speculative.
  /// Component `sources`.
  /// @throws QuestionError, traces::FileError
  static Cost of_logs(const std::vector<std::string>& files, const TimingOptions& options = {});
};

/// ", once joined by a link, ..." for advice to divide a model over accelerators whose link is not known; else empty.
std::string without_link(const cost::HardwareSpec& hardware);

/// The cost where llama.cpp drafts: of a whole model without a stated kind made again from its words with `mirrored`
/// drafts; the prices of others, and of timed passes and logs, stay.
Cost with_drafts_of_llamacpp(const Cost& cost);

/// Doubts about the timed iterations of a cost beside what is asked: "calibration_without_context" if one counts as of
/// an empty cache and the question does not, "calibration_acceptance_differs" if one states tokens per step that lie
/// outside the interval of the acceptance by more than 5%, "prior_beside_measured" if it states some beside a prior.
/// @param acceptance  null: nothing drafts
/// @param context     one that is asked for
std::vector<Note> calibration_doubts(const Cost& cost, const Acceptance* acceptance, double context);

}  // namespace specdec::planner
