#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace specdec::estimate {

/// The grouping of requests or texts: by the value of a label, or by ranges of it.
struct LabelGroups {
  /// If empty, all are one group.
  std::string label = {};
  /// Rising; if not empty, groups are the numbers below the first, from each to below the next, and from the last on.
  std::vector<double> bounds = {};

  /// The group that a value belongs to: the value itself, or "<B1", "B1-B2", ">=B2"; empty for a value that is no
  /// number where there are bounds.
  std::string group_of(std::string_view value) const;
  /// The names of all ranges, in order.
  std::vector<std::string> ranges() const;
};

}  // namespace specdec::estimate
