#pragma once

#include <optional>

#include "analysis/cost/round_cost.hpp"

/// Acceptance of first drafts against what published drafts reach.
namespace specdec::planner {

/// Rounds of first drafts.
struct FirstDrafts {
  double accepted = 0, rounds = 0;
  /// Requests that they are of: as told, else one for each rounds_of_a_request.
  double requests = 1;
};

/// Rounds of a request, where nothing tells requests.
inline constexpr double rounds_of_a_request = 200;

/// P(so few accepted first drafts, or fewer) where drafts are as published ones of their kind: those of models where it
/// is unknown, which are accepted least of all that are not looked up, with a deviation of mu a quarter larger. With mu and sigma of
/// estimate::population_prior, the mean of m requests has log-odds b ~ N(mu, s_mu^2 + sigma^2 / m), and first drafts are
/// accepted at its rate.
/// Source:   docs/reference/formats.md#what-doctor-checks
double as_rare_as_published(const FirstDrafts& drafts, std::optional<cost::DraftKind> kind);
/// The same of a part of a record whose other rounds are accepted at this rate: requests differ about it by sigma alone.
double as_rare_beside(const FirstDrafts& drafts, std::optional<cost::DraftKind> kind, double rate_of_others);

/// The rate of first drafts that 99 in 100 published drafts of the kind exceed.
double least_published(std::optional<cost::DraftKind> kind);

/// The rate below which nine of ten such counts would have had a probability below `p_value`; empty if none would.
std::optional<double> shown_below(const FirstDrafts& drafts, std::optional<cost::DraftKind> kind, double p_value);

}  // namespace specdec::planner
