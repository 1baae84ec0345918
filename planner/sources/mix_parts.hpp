#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/planning/mixed_curve.hpp"
#include "planner/acceptance.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {

// A header of the library's own sources; it is not installed.

/// A mix names a group that there is not.
[[noreturn]] inline void refuse_group(const std::string& group, const std::vector<std::string>& known,
                                      std::string_view of) {
  throw QuestionError(fmt::format("--mix names {}, but must name groups of {}: {}", group, of,
                                  known.empty() ? "there is none" : fmt::format("{}", fmt::join(known, ", "))));
}

/// The groups of a mix with their shares of the output tokens; those of requests weigh by their tokens.
class MixParts {
 public:
  using Errors = planning::MixedCurve::Errors;
  explicit MixParts(const TrafficMix& mix, Errors errors = Errors::independent) : mix_(mix), errors_(errors) {}

  /// @param tokens_per_request  the group's
  void add(const TrafficMix::Part& part, std::shared_ptr<const estimate::AcceptanceCurve> curve,
           double tokens_per_request) {
    parts_.push_back({std::move(curve), part.share * (mix_.by_requests ? tokens_per_request : 1)});
  }
  std::shared_ptr<const estimate::AcceptanceCurve> curve() const {
    return std::make_shared<planning::MixedCurve>(parts_, errors_);
  }

 private:
  const TrafficMix& mix_;
  Errors errors_;
  std::vector<planning::TrafficPart> parts_;
};

inline Assumption assumption_of(const TrafficMix& mix, const std::string& label) {
  return {"mix", fmt::format("{}, by {}", mix.text(), label), "user"};
}

}  // namespace specdec::planner
