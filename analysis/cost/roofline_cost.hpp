#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/cost/hardware_spec.hpp"
#include "analysis/cost/iteration_cost.hpp"
#include "analysis/cost/model_spec.hpp"
#include "analysis/cost/round_cost.hpp"

namespace specdec::cost {

/// What bounds a pass.
enum class PassBound { weights, weight_products, cache, attention, communication, overhead };
/// "weights", "weight_products", "cache", "attention", "communication", "overhead".
std::string_view name_of(PassBound bound);

/// A value between two others, low <= value <= high.
struct UncertainValue {
  double low = 0;
  double value = 0;
  double high = 0;
};

/// How far a deployment stays behind the ideal; 1, 1, 0, 0, 0 is the ideal of math.
struct RooflineLosses {
  /// Achieved share of the memory bandwidth and of the dense peak, (0, 1].
  UncertainValue bandwidth_efficiency = {1, 1, 1};
  UncertainValue compute_efficiency = {1, 1, 1};
  /// Of each all-reduce beside its bytes, seconds, >= 0.
  UncertainValue all_reduce_latency_seconds = {};
  /// Of each pass of a model, and of each iteration of the engine, seconds, >= 0.
  UncertainValue launch_seconds = {};
  UncertainValue scheduling_seconds = {};
};

/// A model on its accelerators.
struct PlacedModel {
  ModelSpec model = {};
  /// Of all weights; routed experts may have their own. Nothing: what the model's file says, else bf16.
  std::optional<NumberType> weight_type = {}, expert_weight_type = {};
  NumberType cache_type = NumberType::bf16;
  /// Accelerators that the layers are divided over, >= 1.
  std::int64_t tensor_parallel = 1;
};

struct RooflineOptions {
  HardwareSpec hardware = {};
  PlacedModel target = {};
  DraftKind kind = DraftKind::model;
  /// Nothing where kind is `ngram`; for `mtp` the module of next_token_module().
  std::optional<PlacedModel> draft = {};
  RooflineLosses losses = {};
  /// 0 for none; without ranges in the losses there is none either.
  std::size_t replicates = 200;
  std::uint64_t seed = 0;
};

/// Seconds of one pass, by what takes them.
struct PassSeconds {
  double weights = 0, weight_products = 0, cache = 0, attention = 0, communication = 0, overhead = 0;
  /// max(weights, weight_products) + max(cache, attention) + communication + overhead
  double total() const;
  /// The largest of those that count.
  PassBound bound() const;
};

/// A timed iteration of the deployment that is planned, to fit the losses to.
struct CalibrationPoint {
  /// Sequences, > 0.
  double batch = 1;
  /// Of the round, > 0: time per output token * tokens per step.
  double round_seconds = 0;
  std::int64_t gamma = 0;
  /// Tokens in the cache per sequence, >= 0.
  double context = 0;
};

/// Seconds from what a model reads and computes and what the hardware can do:
///
///   T(B, n, x) = max(W / BW, 2 P B n / F) + max(B cache(x + n) / BW, B sum_i pairs(x + i) / F) + all-reduce + launch
///
/// W: bytes of the weights that are read, of the experts only those that B n tokens are expected to touch; P: active
/// parameters; both with the output head, without the input embedding. cache(x): bytes in the cache of a sequence of x
/// tokens; pairs: FLOP of attention, at most the window's. BW and F: bandwidth and dense peak of all accelerators that
/// share the model times their efficiencies. All-reduce: 2 per layer, each latency + 2 (t - 1)/t bytes / link, where
/// t > 1 accelerators share it.
///
/// Replicates draw every loss from a uniform law over its range.
/// Source:   Williams et al. 2009 (roofline); docs/capacity.md#roofline
class RooflineCost final : public RoundCost, public IterationCost {
 public:
  /// @throws std::domain_error if a value is outside its range
  /// @throws std::invalid_argument if the draft is missing, or the hardware lacks a figure that is needed
  explicit RooflineCost(RooflineOptions options);

  std::string_view name() const override { return "roofline"; }
  bool in_seconds() const override { return true; }
  RoundTime round(const RoundPoint& point) const override;
  bool extrapolates(const RoundPoint&) const override { return false; }
  std::size_t replicates() const override;
  RoundTime round_of_replicate(std::size_t index, const RoundPoint& point) const override;
  std::span<const CostFinding> findings() const override { return findings_; }

  double seconds(const Iteration& iteration) const override;
  double seconds_of_replicate(std::size_t index, const Iteration& iteration) const override;

  /// Of the target over `tokens` positions of each of `batch` sequences.
  PassSeconds target_pass(double batch, double tokens, double context) const;
  /// Of the drafting model. @throws std::logic_error without one
  PassSeconds draft_pass(double batch, double tokens, double context) const;

  /// The same deployment with losses fitted to timed iterations: each replicate starts from its own draw of the ranges
  /// and moves as little as it must to meet the points within their error, so that what the points do not tell keeps
  /// its range.
  /// @param points        at least one
  /// @param relative_error  of a point, standard deviation, > 0
  /// @throws std::invalid_argument if points is empty; std::domain_error if a value is outside its range
  RooflineCost calibrated(std::span<const CalibrationPoint> points, double relative_error = 0.03) const;
  bool is_calibrated() const;

  const RooflineOptions& options() const { return options_; }

 private:
  RooflineOptions options_;
  std::vector<CostFinding> findings_;
};

/// Bytes of the weights that an accelerator of the group holds, head and embedding included.
double weight_bytes_per_gpu(const PlacedModel& placed);
/// Bytes of the cache that an accelerator holds for one token of the context; windows ignored.
double cache_bytes_per_token_per_gpu(const PlacedModel& placed);

}  // namespace specdec::cost
