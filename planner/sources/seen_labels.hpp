#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/estimate/label_groups.hpp"
#include "traces/serving/serving_counts.hpp"

namespace specdec::planner {

/// The labels of counts, for an error message if those asked for are not among them.
class SeenLabels {
 public:
  explicit SeenLabels(estimate::LabelGroups by) : by_(std::move(by)) {}

  void add(const traces::ServingCounts& counts);
  /// @param option  for the message
  /// @throws QuestionError if groups are asked for by a label that no count has, or by ranges of one without numbers
  void require(std::string_view option) const;

 private:
  estimate::LabelGroups by_;
  std::set<std::string, std::less<>> names_;
  /// Whether some value falls into a group; and a value that does not.
  bool grouped_ = false;
  std::string ungrouped_;
};

}  // namespace specdec::planner
