#include "planner/sources/seen_labels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/estimate/serving_summary.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {

void SeenLabels::add(const traces::ServingCounts& counts) {
  if (by_.label.empty()) return;
  for (const traces::CountLabel& label : counts.labels) {
    if (!names_.contains(label.name)) names_.insert(label.name);
  }
  if (grouped_) return;
  const std::string_view value = estimate::label_value(counts, by_);
  grouped_ = !by_.group_of(value).empty();
  if (!grouped_) ungrouped_ = value;
}

void SeenLabels::require(std::string_view option) const {
  if (by_.label.empty() || grouped_) return;
  if (by_.label != "file" && !names_.contains(by_.label)) {
    refuse(option, by_.label,
           names_.empty() ? "file, since the counts have no labels"
                          : fmt::format("file or a label of the counts: {}", fmt::join(names_, ", ")));
  }
  if (by_.bounds.empty() || ungrouped_.empty()) return;
  refuse(option, fmt::format("{}:{}", by_.label, fmt::join(by_.bounds, ",")),
         fmt::format("a label without bounds, or one of numbers: {} is {}", by_.label, ungrouped_));
}

}  // namespace specdec::planner
