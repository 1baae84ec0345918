#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/planning/deployment_plan.hpp"
#include "analysis/worlds/speeds.hpp"

namespace specdec::planning {

/// A draft's acceptance in all worlds, drawn once, and what its rounds cost there at any batch and context.
class DraftWorlds {
 public:
  DraftWorlds(const DeploymentDraft& draft, const DeploymentQuestion& question);

  const DeploymentDraft& draft() const { return *draft_; }
  /// What is compared: plain decoding first.
  const worlds::Options& options() const { return options_; }
  std::size_t find(std::int64_t gamma) const;
  /// The reason why there are no more gammas; empty if all that were requested are there.
  const std::string& limit() const { return limit_; }
  cost::RoundPoint point(std::size_t option, double batch, double context) const;

  worlds::PricedWorlds price(double batch, double context) const;
  /// That of plain decoding; extrapolated also where no drafts were timed near it.
  PriceBasis basis(double batch, double context) const;
  /// The options that lie within what was measured at a point.
  std::vector<bool> measured(double batch, double context, std::size_t options) const;

 private:
  /// The acceptance of the contexts from one on.
  struct AtContext {
    double from = 0;
    estimate::TokenWorlds tokens;
  };
  const estimate::TokenWorlds& tokens_at(double context) const;

  const DeploymentDraft* draft_;
  worlds::Options options_;
  std::vector<bool> extrapolated_;
  std::vector<AtContext> by_context_;
  std::string limit_;
};

/// The constant acceptance rate above which some gamma is faster than plain decoding:
///
///   the smallest root alpha over gamma >= 1 of (1 + alpha + ... + alpha^gamma) round(0) = round(gamma)
///
/// with alpha^gamma as the share of full accepts.
/// Source:   docs/theory.md#break-even
/// @param gammas  as many as are compared: 0, 1, ...
/// @return 0 if some round costs no more than a plain one; empty if no rate below 1 pays
/// Accuracy: absolute error <= 1e-12
std::optional<double> break_even_alpha(const cost::RoundCost& cost, double batch, double context, std::size_t gammas);

/// Plans one point.
/// @param deployed   the gamma in use there, which must be among those compared
/// @param scheduled  the gamma of the schedule there, which is recommended then; by itself the point chooses its own
PointPlan plan_point(const DraftWorlds& draft, const PlanPoint& at, const DeploymentQuestion& question,
                     std::optional<std::int64_t> deployed, std::optional<std::int64_t> scheduled);

/// Plans all batches from 1 to question.schedule_up_to: fills in the schedule, the fixed gamma and the crossover.
///
/// Prices every whole batch up to 32, and beyond it those that rise by an eighth; a batch that a point of the plan
/// rounds to is priced at that point. Half of the weight is of the points, since somebody asks for them; the other half
/// goes by the batches' stretches of ln(batch).
/// @param points  of the plan
void plan_schedule(const DraftWorlds& draft, const std::vector<PlanPoint>& points, const DeploymentQuestion& question,
                   DraftPlan& plan);

}  // namespace specdec::planning
