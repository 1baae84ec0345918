#include "traces/formats/labels.hpp"

#include <fmt/format.h>

#include <functional>

#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {

std::optional<LabelError> SequenceNumbers::next(std::optional<std::string_view> label,
                                                std::optional<std::int64_t> place) {
  if (place && *place < 0) return LabelError{"pos", fmt::format("{}", *place), "at least 0"};
  const bool first = sequence_ < 0 || begin_;
  bool begins = first;
  if (label) {
    begins = first || *label != label_;
    if (begins) {
      if (auto error = enter(*label)) return error;
    }
  } else if (place) {
    begins = first || *place <= place_;
  }
  if (!begins && place && *place != place_ + 1) {
    return LabelError{"pos", fmt::format("{}", *place), fmt::format("{}, one more than before it", place_ + 1)};
  }
  begin_ = false;
  if (begins) ++sequence_;
  place_ = place ? *place : (begins ? 0 : place_ + 1);
  return std::nullopt;
}

std::optional<LabelError> SequenceNumbers::enter(std::string_view label) {
  const std::optional<std::int64_t> number = number_in<std::int64_t>(label);
  const bool rises = number && (!largest_number_ || *number > *largest_number_);
  if (number && rises) largest_number_ = number;
  if (seen_.size() < most_names) {
    if (!seen_.insert(std::hash<std::string_view>{}(label)).second) {
      return LabelError{"sequence", fmt::format("{} again", printable(label)),
                        "in one piece: all rows of a sequence stand together"};
    }
  } else if (!rises) {
    return LabelError{"sequence", printable(label),
                      fmt::format("a rising number in a recording of more than {} sequences", most_names)};
  }
  label_ = label;
  return std::nullopt;
}

std::optional<std::int32_t> TaskIds::id_of(std::string_view name, std::vector<std::string>& names) {
  if (name.empty()) return -1;
  const auto found = ids_.find(name);
  if (found != ids_.end()) return found->second;
  if (name.size() > longest_name || ids_.size() == most_tasks) return std::nullopt;
  const auto id = static_cast<std::int32_t>(ids_.size());
  ids_.emplace(name, id);
  names.emplace_back(name);
  return id;
}

std::string TaskIds::expected() {
  return fmt::format("one of at most {} names of at most {} bytes", most_tasks, longest_name);
}

}  // namespace specdec::traces
