#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/cost/round_cost.hpp"

namespace specdec::cost {

/// A logarithm's normal law.
struct LogNormal {
  /// > 0
  double median = 1;
  /// Standard deviation of the logarithm, > 0.
  double spread = 1;
};

/// One family of servers: what a round with drafts takes beyond a plain step, in plain steps.
struct RoundPrior {
  /// Share of servers, > 0.
  double weight = 1;
  /// Of every round with drafts.
  LogNormal fixed = {};
  /// Of each draft, whatever the batch.
  LogNormal per_draft = {};
};

/// The families of servers with this kind of drafts, or with any that computes them, each with its share; of dense
/// targets, of mixtures of experts, or half of each where `experts` is empty.
std::vector<RoundPrior> usual_rounds(std::optional<DraftKind> kind, std::optional<bool> experts = std::nullopt);

/// Whether the model of that name is a mixture of experts: "Qwen3-30B-A3B", "Mixtral-8x7B", "DeepSeek-V3". Empty for
/// names that do not say.
std::optional<bool> named_with_experts(std::string_view model);

}  // namespace specdec::cost
