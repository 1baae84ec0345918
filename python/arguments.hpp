#pragma once

#include <nanobind/nanobind.h>

#include <boost/preprocessor/seq/for_each.hpp>
#include <boost/preprocessor/stringize.hpp>
#include <boost/preprocessor/variadic/to_seq.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/core/step_cost.hpp"
#include "analysis/cost/hardware_spec.hpp"
#include "analysis/cost/roofline_cost.hpp"
#include "analysis/cost/round_cost.hpp"
#include "analysis/estimate/measured_acceptance.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "analysis/planning/engine_config.hpp"
#include "analysis/planning/trace_analysis.hpp"
#include "planner/cost.hpp"
#include "planner/methods/method_question.hpp"
#include "sim/serving/capacity.hpp"
#include "traces/trace_metadata.hpp"

/// The arguments of a Python call, as the libraries take them.
namespace specdec::python {

/// Converts the value given for `name` into the member of a structure.
/// @throws nanobind::type_error naming it and what it must be; planner::QuestionError for a word that is none of
/// several
void convert(const char* name, nanobind::handle given, bool& member);
void convert(const char* name, nanobind::handle given, double& member);
void convert(const char* name, nanobind::handle given, std::int64_t& member);
void convert(const char* name, nanobind::handle given, std::string& member);
/// A factor of all numbers of tokens but 1, or factors by tokens: {2: 1.02, 5: 1.1}.
void convert(const char* name, nanobind::handle given, core::VerificationCost& member);
void convert(const char* name, nanobind::handle given, traces::AcceptanceRule& member);
void convert(const char* name, nanobind::handle given, cost::DraftKind& member);
void convert(const char* name, nanobind::handle given, cost::NumberType& member);
void convert(const char* name, nanobind::handle given, planning::Engine& member);
/// A number, or the two ends of a range, whose value is the middle.
void convert(const char* name, nanobind::handle given, cost::UncertainValue& member);
/// A mean, or mean and variation.
void convert(const char* name, nanobind::handle given, sim::LengthLaw& member);
/// (first batch, last batch, gamma).
void convert(const char* name, nanobind::handle given, planning::ScheduleStretch& member);
/// {"model", "temperature", "top_k", "top_p", "min_p", "temperature_last"}, of both models, "target" or "draft".
void convert(const char* name, nanobind::handle given, planning::SweepSetting& member);
/// (children of every node, levels).
void convert(const char* name, nanobind::handle given, planner::TreeShape& member);
/// {"batch", "tpot_ms", "gamma", "tokens_per_step", "context"} or {"prompt", "ttft_ms"}.
void convert(const char* name, nanobind::handle given, planner::TimedIteration& member);

template <class Value>
void convert(const char* name, nanobind::handle given, std::vector<Value>& member);

template <class Value>
void convert(const char* name, nanobind::handle given, std::optional<Value>& member) {
  convert(name, given, member.emplace());
}

template <class Value>
void convert(const char* name, nanobind::handle given, std::vector<Value>& member) {
  if (nanobind::isinstance<nanobind::str>(given)) {
    throw nanobind::type_error((std::string(name) + " must be a sequence, not a string").c_str());
  }
  for (const nanobind::handle one : given) convert(name, one, member.emplace_back());
}

/// The arguments of a call by their names; one that is None was not given.
class Arguments {
 public:
  explicit Arguments(const nanobind::dict& given) : given_(given) {}

  bool has(const char* name) const { return given_.contains(name) && !given_[name].is_none(); }
  /// Leaves `member` as it is where nothing is given.
  /// @throws as convert
  template <class Member>
  void take(const char* name, Member& member) const {
    if (has(name)) convert(name, nanobind::object(given_[name]), member);
  }
  template <class Member>
  Member get(const char* name) const {
    Member member{};
    take(name, member);
    return member;
  }

 private:
  nanobind::dict given_;
};

#define SPECDEC_TAKE(r, structure, name) arguments.take(BOOST_PP_STRINGIZE(name), structure.name);
/// Takes from `arguments` those that have the names of members of a structure.
#define SPECDEC_TAKE_MEMBERS(structure, ...) \
  BOOST_PP_SEQ_FOR_EACH(SPECDEC_TAKE, structure, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__))

}  // namespace specdec::python
