#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/cost/hardware_spec.hpp"
#include "analysis/cost/iteration_cost.hpp"
#include "analysis/cost/kernel_times.hpp"
#include "analysis/cost/model_spec.hpp"
#include "analysis/cost/round_cost.hpp"

namespace specdec::cost {

/// The part that bounds a pass.
enum class PassBound { weights, weight_products, cache, attention, communication, overhead };
/// "weights", "weight_products", "cache", "attention", "communication", "overhead".
std::string_view name_of(PassBound bound);

/// Losses of a deployment against the ideal, in which both shares are 1 and all seconds 0.
struct RooflineLosses {
  /// Achieved share of the memory bandwidth and of the dense peak, (0, 1].
  UncertainValue bandwidth_efficiency = {1, 1, 1};
  UncertainValue compute_efficiency = {1, 1, 1};
  /// Seconds of each all-reduce beside its bytes, >= 0; no range where every model is on one accelerator.
  UncertainValue all_reduce_latency_seconds = {};
  /// Seconds of each pass of a model, and of each iteration of the engine, >= 0.
  UncertainValue launch_seconds = {};
  UncertainValue scheduling_seconds = {};
  /// Seconds of each pass of the drafting model where it is another one; empty: the same.
  std::optional<UncertainValue> draft_launch_seconds = {};
  /// Seconds of each layer of a pass, target's or draft's: kernels that start, wait for each other and end, >= 0.
  UncertainValue layer_seconds = {};
  /// Achieved share of the link's bandwidth, (0, 1].
  UncertainValue link_efficiency = {1, 1, 1};
};

/// A model on its accelerators, tensor_parallel data_parallel of them.
struct PlacedModel {
  ModelSpec model = {};
  /// Type of all weights; routed experts may have their own. Empty: what the model's file says, else bf16.
  std::optional<NumberType> weight_type = {}, expert_weight_type = {};
  NumberType cache_type = NumberType::bf16;
  /// Accelerators that the layers are divided over, >= 1.
  std::int64_t tensor_parallel = 1;
  /// Groups of so many accelerators, each of which holds all layers but their routed experts and serves sequences of
  /// its own, >= 1; above 1 only where there are experts.
  std::int64_t data_parallel = 1;
  /// Number of equal parts that whole experts are divided into over all accelerators, a divisor of their number; each
  /// expert is divided over the accelerators of its part.
  std::int64_t expert_parallel = 1;

  std::int64_t accelerators() const { return tensor_parallel * data_parallel; }
};

struct RooflineOptions {
  HardwareSpec hardware = {};
  PlacedModel target = {};
  DraftKind kind = DraftKind::model;
  /// Empty if kind is `ngram`; for `mtp` the module of next_token_module().
  std::optional<PlacedModel> draft = {};
  RooflineLosses losses = {};
  /// Times of an engine's kernels, in place of the shares of bandwidth, peak and link and of the all-reduces' latency
  /// in `losses`, which then are ideal.
  std::optional<KernelTimes> kernels = {};
  /// Without kernels and with ranges in the losses, standard deviations of ln(measured / priced), >= 0: between
  /// deployments that nothing timed, at a point around its deployment, and of what prompts add to an iteration. By
  /// default what published times of devices without kernels show.
  /// Source:   docs/validation.md#published-timings
  double deployment_error = 0.35, point_error = 0.2, prompt_error = 0.5;
  /// 0 for none; without ranges in the losses there is none either.
  std::size_t replicates = 500;
  std::uint64_t seed = 0;
};

/// Seconds of one pass, by what takes them.
struct PassSeconds {
  double weights = 0, weight_products = 0, cache = 0, attention = 0, communication = 0, overhead = 0;
  /// With measured kernels: their calls, the activations they move, and what rounded corners add to the maxima; else 0.
  double kernels = 0;
  /// max(weights, weight_products) + max(cache, attention) + communication + overhead + kernels
  double total() const;
  /// The largest of those that count.
  PassBound bound() const;
};

/// A timed iteration of the deployment that is planned, to fit the losses to.
struct CalibrationPoint {
  /// Sequences, > 0.
  double batch = 1;
  /// Seconds of the round, > 0: time per output token * tokens per step.
  double round_seconds = 0;
  std::int64_t gamma = 0;
  /// Tokens in the cache per sequence, >= 0.
  double context = 0;
};

/// A prompt that an idle server took so long to read: tokens >= 1, seconds to its first token > 0.
struct TimedPrompt {
  double tokens = 1, seconds = 0;
};

/// Seconds from what a model reads and computes and what the hardware can do:
///
///   T(B, n, x) = max(W / BW, 2 P B n / F) + max(B cache(x + n) / BW, B sum_{i=1..n} pairs(x + i) / F) + all-reduce
///                + launch
///
/// W: bytes of the weights that are read, of the experts only those that B n tokens are expected to touch; P: active
/// parameters; both with the output head, without the input embedding. cache(x): bytes in the cache of a sequence of x
/// tokens, states counted twice, as they are read and written; pairs(x): FLOP of attention of one position to x, at
/// most the window's, and of updating states. BW and F: bandwidth and dense peak of all accelerators that share the
/// model, times their efficiencies; each F that of the type of the weights, that of attention 16 bits, 32
/// where the cache holds fp32. All-reduce: 2 per layer, each latency + 2 (t - 1)/t bytes / link with 16 bits per value,
/// where t > 1 accelerators share the model, the link's bandwidth times its efficiency. Launch: of the pass and of its
/// layers. The cache is kept twice where they are more than its shards.
///
/// With data_parallel d > 1 B is the sequences of one of d groups of t accelerators, whose share of the weights, peaks
/// and cache is that of t, experts and their positions excepted: those are of all d groups. In place of the second
/// all-reduce of a layer with experts its tokens travel to their experts and back, two all-to-alls over all t d:
///
///   each latency + (t d - 1)/(t d) bytes / link,   bytes = positions / t width 2 s e (1 - (1 - 1/e)^k)
///
/// of an accelerator: k experts of a token are in e (1 - (1 - 1/e)^k) of e = expert_parallel parts of s = t d / e
/// accelerators each. The part with most work has e^expert_load_exponent times the mean of the experts' positions, and
/// as many weights as the others. If there are fewer prompts than groups, one group computes one.
///
///   round = T_p(B, gamma + 1, x) + passes T_q(B, 1, x) + f (T_q(B, 2, x) - T_q(B, 1, x)) + scheduling
///
/// All passes are priced at the round's first context; `parallel` drafts take one pass over gamma positions. overhead
/// is what the target's pass costs beside arithmetic, launching and its layers, and scheduling; the same of the draft's
/// passes belongs to `draft`. In an iteration the positions of prompts go through
/// the same pass of the target and, where gamma > 0, through the first pass of the draft; the head sees only their
/// last.
///
/// Replicates draw every loss from a uniform law over its range, the same for all passes, and take iterations times
/// exp(s z + w e(n)), with z and e as below and s and w the options deployment_error and point_error: what the formula
/// errs by in one deployment beside another, until a timed iteration corrects it, and at one number of positions
/// beside another.
///
/// With measured kernels the products of each type of weights, experts, attention and all-reduces take what KernelTimes
/// says, scheduling takes its seconds of each sequence more, and the rest stays. Replicates take iterations times
/// exp(s z + w e(n)), z normal, s and w the deviations between deployments and between points of one, n = B (gamma + 1)
/// positions that are decoded, at least 1, and e a stationary normal process of deviation 1 whose values at n and m > n
/// have the correlation (n / m)^(1 / point_error_reach). What prompts add to an iteration is taken exp(prompt_error
/// z'') times, z'' normal, since decoding tells little of it. Whatever its errors, no iteration is shorter
/// than its work at the peaks. No round is shorter than a plain step and the draft's passes at the peaks. A deployment
/// that would take less for a plain step of one sequence is slower throughout.
/// Source:   Williams et al. 2009 (roofline); Uhlenbeck and Ornstein 1930; docs/theory.md#roofline,
///           docs/theory.md#measured-kernels
class RooflineCost final : public RoundCost, public IterationCost {
 public:
  /// By ln n, of how far point errors resemble each other. Source:   docs/validation.md
  static constexpr double point_error_reach = 1.2;
  /// ln(positions of the part of experts with most work / their mean) / ln(parts), where routing is as skewed as that
  /// of measured experts. Source:   docs/validation.md#experts-apart
  static constexpr double expert_load_exponent = 0.4;
  /// The same by ln (context + 500), of what a calibration tells of other contexts.
  static constexpr double point_error_context_reach = 0.3;

  /// @throws std::domain_error if a value is outside its range
  /// @throws std::invalid_argument if the draft is missing, the hardware lacks a figure that is needed, the kernels
  ///         have no all-reduce over as many accelerators, or stand beside losses that they measure
  explicit RooflineCost(RooflineOptions options);

  std::string_view name() const override { return "roofline"; }
  bool in_seconds() const override { return true; }
  DraftKind kind() const override { return options_.kind; }
  CostOrigin origin() const override { return CostOrigin::modelled; }
  RoundTime price(std::size_t version, const RoundPoint& point) const override;
  bool extrapolates(const RoundPoint&) const override { return false; }
  std::size_t replicates() const override { return losses_.size() - 1; }
  void totals_of_replicates(const RoundPoint& point, std::span<double> totals) const override;
  /// "losses_taken_as_exact" where no loss is a range, "roofline_uncalibrated" where a loss is a range that no timed
  /// iteration narrowed, "roofline_misfit" where timed iterations cannot be met, "kernel_times_of_bf16" where a type's
  /// kernels were not measured, "kernel_times_without_experts" where no experts were, "tensor_parallel_beyond_link"
  /// where more accelerators share a model than its link joins, "all_to_alls_of_others" where those over as many
  /// accelerators were not measured.
  std::span<const Note> findings() const override { return findings_; }

  double price(std::size_t version, const Iteration& iteration) const override;

  /// Seconds of a pass of the target over `tokens` positions of each of `batch` sequences; its overhead is its launch.
  /// @param batch > 0  @param tokens > 0  @param context >= 0, per sequence
  /// @throws std::domain_error if a value is outside its range
  PassSeconds target_pass(double batch, double tokens, double context) const;
  /// Seconds of a pass of the drafting model. @throws std::logic_error without one
  PassSeconds draft_pass(double batch, double tokens, double context) const;

  /// The same deployment given timed iterations. Its losses stay. Its errors (see the class), normal before, are after
  /// the points what they are given
  ///
  ///   ln(t_j / T_j) = s z + w e(n_j) + v z' [gamma_j > 0] + relative_error z_j
  ///
  /// where v is the deviation that the losses' ranges leave a speculative round: the estimate takes their mean, each
  /// replicate its draw. Beyond the most positions m that were timed e is e(m) and what e(m) does not tell. Where plain
  /// times rose with the batch b by a power k of it more than is priced, by over 1.1 in all, and none had drafts, the
  /// rise goes on ("calibration_rises"): w e gains k ln(n / m), in replicates 2 u times that, u uniform in (0, 1). At
  /// another context than the nearest timed one e is r e + sqrt(1 - r^2) e' with an independent e' and r the ratio of
  /// the contexts, each + 500, to the power -1 / point_error_context_reach; the estimate is no less than that at a
  /// shorter timed context, and no more than that at a longer one. Where the points together are further from T than
  /// those of 999 in 1000 such deployments, s, w and v are larger by the root of their mean squared standardised
  /// distance ("roofline_misfit"). Where even so a point is missed by more than 3 relative_error, replicates take plain
  /// rounds times exp(m z_0 / 1.96) and others times exp(m z_1 / 1.96), z normal and m the largest such miss.
  ///
  /// Times of one gamma, batch and context (within 5%) that differ by more than three such errors are reported
  /// ("calibration_contradicts_itself"), and each is taken to be off by half of that; so are rounds that took less than
  /// a plain step beside them ("round_below_target_pass").
  ///
  /// Source:   Rasmussen and Williams 2006, section 2.2; docs/theory.md#calibration
  /// @param points        at least one
  /// @param relative_error  standard deviation of a point's relative error, > 0
  /// @throws std::invalid_argument if points is empty; std::domain_error if a value is outside its range
  RooflineCost calibrated(std::span<const CalibrationPoint> points, double relative_error = 0.03) const;
  /// The same deployment, in every version of which prompts take what was measured, in the geometric mean.
  /// @param relative_error  standard deviation of the logarithm by which prompts at other loads differ from it, > 0;
  ///   docs/validation.md#served-times-that-others-measured
  /// @throws std::domain_error if a value is outside its range
  RooflineCost with_prompts(std::span<const TimedPrompt> prompts, double relative_error = 0.3) const;
  bool is_calibrated() const { return calibrated_; }
  /// Rounds given to calibrated() that took less than a plain step beside them by more than two errors of 2%.
  std::string impossible() const override { return impossible_; }
  /// The factor of the deployment's errors on the times at the calibrated points, as a geometric mean; 1 before.
  double factor() const { return factor_; }

  /// The same deployment without losses, kernels and errors.
  RooflineCost at_peaks() const;

  const RooflineOptions& options() const { return options_; }

 private:
  static constexpr std::size_t loss_count = 8;
  /// In the order of RooflineLosses; the draft's launch is that of every pass where it has none of its own.
  using Losses = std::array<double, loss_count>;

  /// Layers of one window: seconds at the peaks, per token of the context and per (query, key) pair. Each token of
  /// those that select attends to as many positions of its own choice.
  struct AttentionPart {
    double window = 0;
    bool selects = false;
    double cache = 0, attention = 0;
  };
  /// Calls of attention of layers alike, in which `group` of the query heads that an accelerator holds share keys and
  /// values; cache is seconds at the peak per token of a context without windows.
  struct AttentionCalls {
    double layers = 0, query_heads = 0, group = 0, window = 0, cache = 0;
  };
  /// Products with weights of one type as an engine's kernels take them, in seconds: at the peaks, of activations at
  /// the achieved bandwidth, and of calls. routing and log_missed are those of experts, else 1 and nothing.
  struct ProductPart {
    ProductTimes times = {};
    double routing = 1;
    double weights = 0, per_position = 0, per_headed_position = 0;
    double moved_per_position = 0, moved_per_headed_position = 0, calls = 0;
    std::optional<double> log_missed = {};
  };
  /// Layers with experts of one kind: seconds at the peak to read all, ln(1 - k/E).
  struct ExpertPart {
    double weights = 0, log_missed = 0;
  };
  /// A placed model, in seconds at the peaks. Positions are those of a group of accelerators, those of experts and
  /// routed ones of all groups.
  struct PricedModel {
    double weights = 0, products_per_position = 0, products_per_headed_position = 0, link_per_position = 0;
    double routed_products_per_position = 0;
    double states_per_sequence = 0, state_products_per_position = 0, layers = 0, all_reduces = 0;
    std::vector<AttentionPart> attention = {};
    std::vector<ExpertPart> experts = {};
    /// With measured kernels alone.
    std::vector<ProductPart> products = {};
    AttentionTimes attention_times = {};
    CollectiveTimes all_reduce_times = {}, all_to_all_times = {};
    std::vector<AttentionCalls> attention_calls = {};
    double attention_layers = 0, cache_heads = 0, reduced_bytes_per_position = 0;
    double groups = 1, all_to_alls = 0, exchanged_bytes_per_position = 0, prompt_experts = 1;

    void add(const AttentionPart& part);
  };
  /// `count` sequences of `context` tokens, of which `tokens` positions are computed each; `headed` is the number of
  /// all positions whose next token is predicted.
  struct PassPart {
    double count = 0, tokens = 0, context = 0, headed = 0;
  };
  /// A pass at the peaks.
  struct PassWork {
    double weights = 0, weight_products = 0, cache = 0, attention = 0, link = 0, collectives = 0, layers = 0;
    /// max(weights, weight_products) + max(cache, attention), of routed experts the weights of one token alone: no pass
    /// takes less, however tokens are routed.
    double least = 0;
    /// With measured kernels: what they take beside the maxima of the above, and collectives, seconds.
    double kernels = 0, reduced = 0;
  };
  /// The passes of an iteration: the target's; the draft's first one, without and with the token of a full accept, and
  /// the others.
  struct IterationWork {
    PassWork target = {}, first = {}, caught_up = {}, other = {};
    double full_accepts = 0, draft_passes = 0;
    /// Seconds that an engine takes for the sequences, with measured kernels.
    double sequences = 0;
    /// Seconds that the target's pass with its overhead takes at least, with measured kernels.
    double least_pass = 0;

    double least_draft() const;
  };

  class KernelProducts;
  PricedModel priced(const PlacedModel& placed, std::string_view role) const;
  void add_collectives(const PlacedModel& placed, std::string_view role, PricedModel& priced) const;
  void add_kernels(const PlacedModel& placed, PricedModel& priced) const;
  void add_attention_calls(const LayerGroup& group, const PlacedModel& placed, PricedModel& priced) const;
  /// @param positions  positions of all groups; the parts are of one
  static void add_kernels(const PricedModel& model, double positions, const PassPart& decoding, const PassPart& prompts,
                          PassWork& work);
  /// The part of a pass that falls to the group of accelerators with most of it.
  static PassPart of_group(const PricedModel& model, PassPart part);
  static void add_verification(const PricedModel& model, const PassPart& decoding, PassWork& work);
  static PassWork work_of(const PricedModel& model, const PassPart& decoding, const PassPart& prompts);
  IterationWork work_of(const Iteration& iteration) const;
  static double seconds_of(const PassWork& work, const Losses& losses);
  static RoundTime seconds_of(const IterationWork& work, const Losses& losses);
  PassSeconds pass_seconds(const PricedModel& model, double batch, double tokens, double context, double launch) const;
  /// The point error of a number of positions is a weighted sum of those of two neighbours.
  struct PointPlace {
    std::size_t left = 0;
    double of_left = 1, of_right = 0;
    /// Correlation of its point errors with those of the contexts that were timed, [0, 1].
    double likeness = 1;
    std::array<std::pair<std::size_t, double>, 2> nodes() const { return {{{left, of_left}, {left + 1, of_right}}}; }
  };
  /// ln of what iterations take more than the kernels say, with these: all of them, those with drafts, and by positions
  /// beside, at the contexts that were timed and independently of them; and of what prompts add, beside these.
  struct DeploymentErrors {
    /// None.
    DeploymentErrors();
    double all = 0, drafting = 0, prompts = 0;
    std::vector<double> points, elsewhere;
    double at(const PointPlace& place, bool drafts) const;
  };
  struct ErrorDeviations {
    double deployments = 0, points = 0, drafting = 0;
  };
  struct TimedPlace {
    PointPlace positions;
    bool drafts = false;
  };
  /// A timed iteration, and what every version says that it takes.
  struct TimedSeconds {
    Iteration iteration;
    std::vector<double> by_version;
    /// What its drafts take at least.
    double least_draft = 0;
  };
  static PointPlace point_place(double positions);
  static std::vector<TimedPlace> timed_places(std::span<const CalibrationPoint> points);
  /// The same with the likeness of the context.
  PointPlace place_of(double positions, double context) const;
  PointPlace place_of(const Iteration& iteration) const;
  /// The factor of a version on iterations at the place, by their errors.
  double error_factor(std::size_t version, const PointPlace& place, std::int64_t gamma) const;
  /// What the version errs by; null if it errs by nothing.
  const DeploymentErrors* errors_of(std::size_t version) const;
  bool has_errors(std::size_t version) const;
  class AllVersions;
  /// Makes the replicates differ by as much as a time is missed, plain rounds and those with drafts apart.
  void widen_by(double largest_miss);
  void draw_losses();
  /// Replicates of deployments whose times differ by the options' errors.
  void draw_deployments();
  /// Learns the errors of the deployment.
  RooflineCost conditioned(std::span<const CalibrationPoint> points, double relative_error) const;
  void report_misfit(std::span<const CalibrationPoint> points, std::span<const TimedPlace> places,
                     std::span<const double> misses, bool unlike_others, double relative_error);
  /// Plain times that rise with the batch more than is priced, by exp(log_ratio).
  struct Rise {
    double first_batch = 0, last_batch = 0, log_ratio = 0;
  };
  /// Empty if they do not, or a time with drafts tells what more positions take.
  static std::optional<Rise> rise_of(std::span<const CalibrationPoint> points, std::span<const double> misses);
  void report_rise(const Rise& rise);
  double deviation_by_losses(const IterationWork& work) const;
  /// Keeps what every version says of timed iterations, which bound others: with more sequences, context and prompts
  /// none is faster.
  void remember(std::span<const CalibrationPoint> points);
  /// The seconds, within what the version says of timed iterations of the gamma that hold no more, and no less; a plain
  /// step within timed rounds that hold it, less their drafts.
  double between_timed(std::size_t version, const Iteration& iteration, double seconds) const;
  /// Finds times of one place that differ, and rounds below the plain step that they hold.
  /// @return the error of a time that such differences show, at least relative_error
  double checked_error(std::span<const CalibrationPoint> points, double relative_error);
  static double covariance(const TimedPlace& a, const TimedPlace& b, const ErrorDeviations& deviations);
  static double node_correlation(std::size_t a, std::size_t b);
  /// Adds the mean of the errors given those at timed places, as far as these differ by covariances times weights.
  static void add_expected(std::span<const TimedPlace> places, std::span<const double> weights,
                           const ErrorDeviations& deviations, DeploymentErrors& errors);
  /// Beyond the most positions that were timed the errors by positions are those there, and what is new beside them:
  /// they do not fall back to what nothing timed.
  /// @param before    those of the replicate without the times
  /// @param log_rise  their growth with the logarithm of the positions
  static void carry_on(std::span<const TimedPlace> places, std::span<const double> before, double log_rise,
                       std::vector<double>& after);
  /// Refuses a point with this error that the hardware's peaks do not allow.
  void require_below_peaks(const CalibrationPoint& point, double relative_error) const;
  /// Types whose kernels were not measured.
  void find_unmeasured(const PlacedModel& placed);
  void find_uncalibrated();

  RooflineOptions options_;
  PricedModel target_;
  std::optional<PricedModel> draft_;
  /// [0] is the estimate, [1 + i] replicate i.
  std::vector<Losses> losses_;
  /// [i]: of replicate i; empty where losses are exact.
  std::vector<DeploymentErrors> deployment_errors_;
  /// Their mean given the points of a calibration.
  std::optional<DeploymentErrors> expected_errors_;
  /// Those of the points of a calibration.
  std::vector<double> timed_contexts_;
  std::vector<TimedSeconds> timed_seconds_;
  /// Returned by factor().
  double factor_ = 1;
  bool calibrated_ = false;
  std::string impossible_;
  std::vector<Note> findings_;
};

/// Bytes of the weights that an accelerator of the group holds, head and embedding included where they are the model's
/// own: what the model's file says, else parameters times bits of their types.
/// Source:   docs/reference/formats.md#weights
double weight_bytes_per_gpu(const PlacedModel& placed);
/// Bytes of the cache that an accelerator holds for one token of the context; windows ignored.
double cache_bytes_per_token_per_gpu(const PlacedModel& placed);

/// The heads of the model that its accelerators cannot divide evenly, as engines want it: those of queries by their
/// number, those of keys and values by it or as so many copies of each. "3 accelerators cannot evenly divide 64 heads
/// of llama-3.3-70b"; empty where they can.
std::string uneven_heads(const PlacedModel& placed);

}  // namespace specdec::cost
