#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "traces/formats/timing_table.hpp"

namespace specdec::cost {

struct CurveOptions {
  /// At least 1.
  std::size_t replicates = 200;
  std::uint64_t seed = 0;
};

/// Seconds of one pass of a model from timed passes:
///
///   T(batch, tokens, context) = f(batch tokens) + k batch context
///
/// f is linear between the total tokens that were timed and takes their values there, so that steps stay steps. Where a
/// pass over fewer tokens took longer than one over more, a first, cold measurement or noise, neighbours are averaged,
/// weighted by repetitions, until nothing falls (isotonic regression), and findings() names the passes. k >= 0
/// is the least-squares slope over passes with the same (batch, tokens) and different contexts; without such passes
/// over those of the same batch tokens and different batches, where these differ by more than 10% and by more than
/// their scatter explains (Student's t, 2.5%); without those it is unknown, f holds the context's share, and passes
/// last as long at other contexts, which about() says.
///
/// Beyond the timed tokens each replicate has a law of its own: above them pass_beyond at a uniform share, and below
/// them passes save a uniform share of the first slope.
///
/// Passes that vary the batch and passes that vary the tokens of one sequence never meet in one curve: where both were
/// timed, batch = 1 is read from the second and any other batch from the first. Several tokens of several sequences
/// that were never timed together are priced by total tokens, and findings() says so; so is a batch beyond those that
/// were timed, which extrapolates() and about() say.
///
/// Replicates also redraw each timed pass: its repetitions with replacement, else a log-normal law with its mean and
/// the standard error of its mean (the standard deviation itself where the number of repetitions is unknown). f and k
/// are formed anew from each.
///
/// Source:   docs/theory.md#cost-of-a-round
class PassCurve {
 public:
  /// @param passes  passes of one model, at least one
  /// @throws std::invalid_argument if passes is empty or of several models
  /// @throws std::domain_error if a value is outside the range that TimedPass states
  PassCurve(std::string_view role, std::span<const traces::TimedPass> passes, const CurveOptions& options);

  /// @param batch > 0  @param tokens  per sequence, > 0  @param context  per sequence, >= 0
  /// @param version  as in RoundCost::price
  double seconds(double batch, double tokens, double context, std::size_t version = 0) const;
  /// The batch, the total tokens or the context lie outside those that were timed.
  bool extrapolates(double batch, double tokens, double context) const;
  /// As RoundCost::about.
  std::string about(double batch, double context) const;

  std::size_t replicates() const { return options_.replicates; }
  std::span<const Note> findings() const { return findings_; }
  double usual_context() const { return usual_context_; }

 private:
  /// The curve of the passes of one axis.
  struct Axis {
    traces::TimingAxis axis = traces::TimingAxis::grid;
    /// Those of its knots.
    std::vector<double> total_tokens;
    /// Whether the contexts tell k.
    bool tells_context = false;
    Range batches, contexts;
    /// In a pass, per sequence: longer ones of a smaller batch are priced by total tokens.
    double most_tokens = 1;
  };
  /// The law outside of the timed tokens: uniforms, 1/2 each for the estimate.
  struct Ends {
    /// The share of the first slope that fewer tokens save.
    double below = 0.5;
    /// Where operations begin to limit passes, between the ends of its logarithm.
    double above = 0.5;
  };
  struct Version {
    std::vector<double> seconds;  ///< f, (knots of the axis)
    double per_context_token = 0;
    Ends ends = {};
  };
  class Place;

  const Axis& axis_for(double batch) const;
  std::size_t number_of(const Axis& axis) const { return static_cast<std::size_t>(&axis - axes_.data()); }

  std::string role_;
  CurveOptions options_;
  std::vector<Axis> axes_;
  /// [axis][0] is the estimate, [axis][1 + i] replicate i.
  std::vector<std::vector<Version>> versions_;
  double usual_context_ = 0;
  std::vector<Note> findings_;
};

struct MeasuredOptions {
  DraftKind kind = DraftKind::model;
  /// A draft pass over the target's plain step at the same batch and context, where the draft was not timed; >= 0.
  std::optional<double> c = {};
  /// Per speculative round, outside both models; >= 0.
  double overhead_seconds = 0;
  CurveOptions curve = {};
};

/// Seconds from timed passes of the target and of the draft:
///
///   target = T_p(batch, gamma + 1, context);   at gamma = 0 that is the round
///   draft  = passes(gamma) T_q(batch, 1, context) + f (T_q(batch, 2, context) - T_q(batch, 1, context))
///            mirrored: gamma T_q(batch, 1, context) + T_q(batch, gamma + 1, context)
///
/// with f the share of rounds after a full accept. Where the draft was not timed T_q = c T_p(batch, 1, context) for any
/// number of tokens. All passes of a round are priced at the round's first context.
/// Source:   docs/theory.md#cost-of-a-round
class MeasuredCost final : public RoundCost {
 public:
  /// @param draft  empty where kind is `ngram` or c is given
  /// @throws std::invalid_argument if target is empty, passes are of several models, or the draft's time is given
  ///   twice or not at all
  /// @throws std::domain_error if a value is outside its range
  MeasuredCost(std::span<const traces::TimedPass> target, std::span<const traces::TimedPass> draft,
               MeasuredOptions options);

  std::string_view name() const override { return "measured"; }
  bool in_seconds() const override { return true; }
  DraftKind kind() const override { return options_.kind; }
  RoundTime price(std::size_t version, const RoundPoint& point) const override;
  bool extrapolates(const RoundPoint& point) const override;
  std::string about(double batch, double context) const override;
  double usual_context() const override { return target_.usual_context(); }
  std::size_t replicates() const override { return options_.curve.replicates; }
  std::span<const Note> findings() const override { return findings_; }

 private:
  MeasuredOptions options_;
  PassCurve target_;
  std::optional<PassCurve> draft_;
  std::vector<Note> findings_;
};

}  // namespace specdec::cost
