#include "planner/cost.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <utility>
#include <nlohmann/json.hpp>

#include "analysis/cost/constant_cost.hpp"
#include "planner/number_text.hpp"
#include "planner/plan_request.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

/// "1.2", or "2:1.02,5:1.1" without the first point, which is always (1, 1).
std::string text_of(const core::VerificationCost& factor) {
  const auto points = factor.points();
  if (points.size() == 2 && points[1].tokens == 2 && factor.last_slope() == 0 && !factor.extrapolates(3)) {
    return fmt::format("{}", points[1].factor);
  }
  std::vector<std::string> parts;
  for (const auto& point : points.subspan(std::min<std::size_t>(1, points.size()))) {
    parts.push_back(fmt::format("{}:{}", point.tokens, point.factor));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace

core::StepCost StepTimes::with_c(double its_c) const {
  return {its_c, overhead.value_or(0), verify_factor.value_or(core::VerificationCost{})};
}

std::vector<Assumption> StepTimes::assumptions() const {
  return {{"verify_factor", verify_factor ? text_of(*verify_factor) : "1", verify_factor ? "user" : "default"},
          {"overhead", overhead.value_or(0), overhead ? "user" : "default"}};
}

std::vector<Note> StepTimes::warnings() const {
  if (!verify_factor) return {};
  for (const core::VerificationCost::Point& point : verify_factor->points()) {
    if (point.factor >= 1) continue;
    return {{"verify_factor_below_1",
             fmt::format("--verify-factor has the target score {} tokens in {} of the time of one, which no measured "
                         "pass does: every speedup rests on that",
                         point.tokens, brief(point.factor))}};
  }
  return {};
}

Cost Cost::of_constants(double c) {
  StepTimes times;
  times.c = c;
  return of_constants(times);
}

Cost Cost::of_constants(const StepTimes& times, DraftWords draft, std::string target_model) {
  Cost cost;
  const std::optional<std::string> target =
      target_model.empty() ? std::nullopt : std::optional<std::string>(target_model);
  cost.kind = draft_kind(draft, target, {}, false);
  cost::ConstantOptions options;
  const std::optional<double> c = c_of_kind(cost.kind, times.c, draft);
  if (!c && cost::draft_passes(cost.kind, 1) > 0) {
    throw QuestionError(
        fmt::format("{} is missing: draft step time / target step time, typically 0.02 to 0.1; or --hardware, --cost or "
                    "--bench",
                    option_of(draft, "c")));
  }
  options.step = times.with_c(c.value_or(0));
  options.kind = cost.kind;
  if (auto kind = assumed_kind(draft, cost.kind)) cost.assumptions.push_back(*std::move(kind));
  append_new(cost.assumptions, times.assumptions());
  cost.rounds = std::make_shared<cost::ConstantCost>(std::move(options));
  cost.constants = times;
  cost.words = CostWords{times, {}, target, {.draft = draft}};
  // Nothing is shared where no hardware is named.
  cost.words->options.draft.tensor_parallel.reset();
  cost.draft = std::move(draft);
  cost.target_model = std::move(target_model);
  cost.warnings = cost.constants->warnings();
  append(cost.warnings, cost.rounds->findings());
  return cost;
}

Cost with_drafts_of_llamacpp(const Cost& cost) {
  Cost made = cost;
  if (cost.words && !cost.draft.kind && cost.kind == cost::DraftKind::model) {
    CostWords words = *cost.words;
    words.options.draft.of_llamacpp = true;
    made = Cost::of(words);
    made.draft = cost.draft;
  }
  made.draft.of_llamacpp = true;
  return made;
}

Cost Cost::of(const CostWords& words) {
  const HardwareOptions& o = words.options;
  if (!words.hardware) {
    CostWords of_hardware;
    of_hardware.options = o;
    of_hardware.options.draft = {.tensor_parallel = o.draft.tensor_parallel};
    of_hardware.options.known = {};
    const nlohmann::ordered_json given = of_hardware;
    if (!given.empty()) {
      std::string option = "--" + given.begin().key();
      std::replace(option.begin(), option.end(), '_', '-');
      throw QuestionError(fmt::format("{} is given, but needs --hardware beside it", option));
    }
    return of_constants(words.times, o.draft, words.model.value_or(""));
  }
  const StepTimes& times = words.times;
  if (times.c || times.verify_factor || times.overhead) {
    throw QuestionError(fmt::format("{} is given, but --hardware prices rounds", times.c ? "--c"
                                                                                 : times.verify_factor
                                                                                     ? "--verify-factor"
                                                                                     : "--overhead"));
  }
  if (!words.model) throw QuestionError("--model is missing: --hardware prices it");
  return of_hardware(*words.hardware, *words.model, o);
}

}  // namespace specdec::planner
