#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/estimate/label_groups.hpp"

namespace specdec::planner {

/// Traffic as shares of groups of requests.
struct TrafficMix {
  struct Part {
    std::string group;
    /// (0, 1]; all of a mix sum to 1.
    double share = 1;
  };

  /// Groups of requests: by a label of counters, "category" if empty; by "task" (if empty) or "context" of a
  /// recording.
  estimate::LabelGroups groups = {};
  std::vector<Part> parts = {};
  /// Shares are those of requests, not of the tokens put out.
  bool by_requests = false;

  /// "code 0.6, chat 0.4 of the output tokens".
  std::string text() const;
};

/// "LABEL", or with bounds "LABEL:B1,B2,...": below B1, from B1 to below B2, ..., from the last one on.
/// @throws QuestionError for a label or bounds that are none
estimate::LabelGroups label_groups(const std::string& by);

/// Where the ranges of contexts of "context:N1,N2,..." begin: acceptance by context, without a mix.
/// @throws QuestionError for anything else
std::vector<double> context_bounds(const std::string& by);

/// @param by   as for label_groups; empty: by what the source has
/// @param mix  "GROUP=SHARE,GROUP=SHARE,..."
/// @throws QuestionError unless the shares are above 0 and sum to 1 within 0.001, each group named once
TrafficMix traffic_mix(const std::optional<std::string>& by, const std::string& mix, bool by_requests);

}  // namespace specdec::planner
