#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <string_view>
#include <vector>

#include "planner/assumption.hpp"
#include "planner/question_error.hpp"
#include "planner/traffic_mix.hpp"

namespace specdec::planner {

// A header of the library's own sources; it is not installed.

/// A mix names a group that there is not.
[[noreturn]] inline void refuse_group(const std::string& group, const std::vector<std::string>& known,
                                      std::string_view of) {
  throw QuestionError(fmt::format("--mix names {}, but must name groups of {}: {}", group, of,
                                  known.empty() ? "there is none" : fmt::format("{}", fmt::join(known, ", "))));
}

inline Assumption assumption_of(const TrafficMix& mix, const std::string& label) {
  return {"mix", fmt::format("{}, by {}", mix.text(), label), "user"};
}

}  // namespace specdec::planner
