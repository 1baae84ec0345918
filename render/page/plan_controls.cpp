#include "render/page/plan_controls.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/planning/tabulated_curve.hpp"
#include "planner/known_inputs.hpp"
#include "planner/plan_request.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using nlohmann::ordered_json;
using planner::AcceptanceWords;
using planner::CostWords;
using planner::Plan;
using planner::PlanQuestion;

/// A rate that a recording or counters measured is where to start from, no more.
double to_four_digits(double rate) { return std::round(rate * 1e4) / 1e4; }

template <class Named>
ordered_json named(const std::optional<Named>& value) {
  return value ? ordered_json(name_of(*value)) : ordered_json();
}

/// The draft, the point and the cost that the controls show.
struct Shown {
  explicit Shown(const Plan& of) : plan(of) {
    if (!plan.drafts.empty()) draft = &plan.drafts[plan.shown()];
    point = &plan.points().front();
  }

  bool is_closed_form() const { return plan.closed_form.has_value(); }
  /// The words that state the acceptance; null if it was measured.
  const AcceptanceWords* acceptance_words() const {
    return draft != nullptr && draft->acceptance.words ? &*draft->acceptance.words : nullptr;
  }
  /// Whether the acceptance is nothing but a rate or an interval of it.
  bool is_alpha() const {
    const AcceptanceWords* const words = acceptance_words();
    return words != nullptr && (words->alpha || (words->published && draft->acceptance.stated->prior == nullptr));
  }
  bool is_priced() const { return draft != nullptr && draft->cost.roofline != nullptr; }
  /// Whether the cost is that of measured times or runs, which the page does not have.
  bool is_measured() const { return draft == nullptr || !draft->cost.words; }
  cost::DraftKind kind() const { return draft != nullptr ? draft->cost.kind : plan.bench->cost->kind(); }
  const estimate::AcceptanceCurve& curve() const {
    return draft != nullptr ? *draft->acceptance.curve : *plan.bench->acceptance;
  }

  const Plan& plan;
  /// Empty where benchmark runs bring their own acceptance, or gammas are too large for a point.
  const planner::Draft* draft = nullptr;
  const planning::PointPlan* point = nullptr;
};

/// Label of the acceptance, for the control.
std::string acceptance_label(const Shown& shown) {
  if (shown.draft == nullptr) return "as the benchmark runs counted";
  const AcceptanceWords* const words = shown.acceptance_words();
  if (words == nullptr) return "as measured: " + shown.draft->acceptance.text;
  if (!words->acceptance_length.empty()) return "the report's acceptance length";
  if (!words->acceptance_per_position.empty()) return "the report's, by position";
  if (words->published) return "as published: " + *words->published;
  return words->rejection ? "the report's 1 - alpha" : "the report's";
}

ordered_json acceptance_of(const Shown& shown) {
  if (shown.is_alpha()) return nullptr;
  PlanQuestion question;
  AcceptanceWords words;
  if (const AcceptanceWords* const said = shown.acceptance_words()) {
    words = *said;
  } else {
    planner::Acceptance known;
    if (shown.draft != nullptr) {
      known = shown.draft->acceptance;
      // The share of steps that meet the end of a text is that of one gamma, and the controls change the cost.
      std::erase_if(known.warnings, [](const Note& warning) { return warning.code == "short_texts"; });
    } else {
      known.curve = shown.plan.bench->acceptance;
    }
    const auto last = static_cast<std::int64_t>(estimate::tabulated(*known.curve, shown.plan.max_gamma).size()) - 1;
    words.known = {std::make_shared<const planner::Acceptance>(std::move(known)), last};
    const bool by_default = !shown.plan.question.max_gamma && shown.draft != nullptr;
    if (!by_default) question.max_gamma = std::max<std::int64_t>(last, 1);
  }
  return {{"label", acceptance_label(shown)}, {"words", words}, {"question", question}};
}

estimate::Interval rates_of(const Shown& shown) {
  if (shown.is_alpha()) {
    const planner::StatedAcceptance& stated = *shown.draft->acceptance.stated;
    return {(stated.interval ? stated.interval->low : stated.rate).alpha(),
            (stated.interval ? stated.interval->high : stated.rate).alpha()};
  }
  if (shown.draft != nullptr && shown.draft->acceptance.alpha) {
    const double alpha = *shown.draft->acceptance.alpha;
    const estimate::Interval interval = shown.draft->acceptance.alpha_ci95.value_or(estimate::Interval{alpha, alpha});
    return {to_four_digits(interval.lo), to_four_digits(interval.hi)};
  }
  // The rate at which a single draft is accepted.
  const double rate = to_four_digits(shown.curve().tokens_per_step(1).value - 1);
  return {rate, rate};
}

/// The time of one pass of the draft, in plain steps, as far as the plan's cost tells it.
double drafting(const Shown& shown) {
  if (shown.draft != nullptr && shown.draft->cost.constants) return shown.draft->cost.constants->c.value_or(0);
  const planning::PointPlan& point = *shown.point;
  if (point.rows.size() < 2) return 0;
  const planning::DeploymentRow& row = point.rows[std::max<std::size_t>(1, point.optimal_row)];
  const double passes = cost::draft_passes(shown.kind(), static_cast<double>(row.gamma));
  if (!shown.plan.cost().parts_known({row.gamma, point.batch, point.context}) || passes == 0) return 0;
  return row.time.draft / (passes * point.rows.front().time.total());
}

/// The part of the rounds of gamma = 1, 2, ... that is not drafting, in plain steps, as far as the cost was measured;
/// empty if it was not.
std::optional<core::VerificationCost> rest_of_rounds(const Shown& shown, double c) {
  const planning::PointPlan& point = *shown.point;
  std::vector<core::VerificationCost::Point> factors;
  const auto extrapolates = [&](std::int64_t gamma) {
    return shown.plan.cost().extrapolates({gamma, point.batch, point.context});
  };
  for (const planning::DeploymentRow& row : point.rows) {
    if (row.gamma == 0) continue;
    // Where plain decoding was not measured there, nothing was, and no gamma is preferred for it.
    if (extrapolates(row.gamma) && !extrapolates(0)) break;
    const double rest = row.time.total() / point.rows.front().time.total() -
                        c * cost::draft_passes(shown.kind(), static_cast<double>(row.gamma));
    if (!(rest > 0)) break;
    factors.push_back({row.gamma + 1, rest});
  }
  if (factors.empty()) return std::nullopt;
  return core::VerificationCost::table(factors);
}

/// Members that requests by c have beside it.
ordered_json with_c(const Shown& shown, double c) {
  CostWords words;
  PlanQuestion question;
  if (shown.is_measured()) {
    words.times.verify_factor = rest_of_rounds(shown, c);
  } else if (!shown.is_priced()) {
    words.times = shown.draft->cost.words->times;
    words.times.c.reset();
  }
  if (shown.is_closed_form()) {
    question.c_hat = shown.plan.question.c_hat;
    question.tokens = shown.plan.question.tokens;
  } else if (!shown.is_priced()) {
    question.batch = {shown.point->batch};
    question.context = {shown.point->context};
    question.max_num_seqs = shown.plan.question.max_num_seqs;
    words.options.draft.kind = shown.kind();
    if (shown.draft != nullptr) words.options.draft.model = shown.draft->cost.draft.model;
    if (!shown.plan.target_model.empty()) words.model = shown.plan.target_model;
  }
  return {{"cost", words}, {"question", question}};
}

/// Members that requests by hardware have beside the controls.
ordered_json with_hardware(const Shown& shown) {
  CostWords words;
  if (shown.is_priced()) words = *shown.draft->cost.words;
  planner::HardwareOptions& options = words.options;
  words.hardware.reset();
  words.model.reset();
  options.draft = {};
  options.known = {};
  options.tensor_parallel.reset();
  options.weight_dtype.reset();
  options.draft_weight_dtype.reset();
  options.kv_cache_dtype.reset();
  PlanQuestion question;
  question.max_num_seqs = shown.plan.question.max_num_seqs;
  return {{"cost", words}, {"question", question}};
}

std::string preset_name(const std::string& model) {
  const cost::ModelSpec* const preset = cost::model_preset(model);
  return preset != nullptr ? preset->name : model;
}

/// The first values of the controls of hardware and models: the plan's, else usual ones.
void put_hardware(const Shown& shown, ordered_json& start) {
  CostWords words;
  if (shown.is_priced()) {
    words = *shown.draft->cost.words;
  } else {
    words.hardware = "h100-sxm";
    words.model = "llama-3.1-70b";
    words.options.tensor_parallel = 4;
    words.options.draft.model = "llama-3.2-1b";
  }
  const planner::HardwareOptions& options = words.options;
  const cost::HardwareSpec* const device = cost::hardware_preset(*words.hardware);
  start["hardware"] = device != nullptr ? device->name : *words.hardware;
  start["model"] = preset_name(*words.model);
  start["draft_model"] = options.draft.model ? ordered_json(preset_name(*options.draft.model)) : ordered_json();
  start["draft_kind"] = name_of(shown.kind());
  start["tensor_parallel_size"] = options.tensor_parallel.value_or(1);
  start["draft_tensor_parallel_size"] = nullptr;
  if (options.draft.tensor_parallel) start["draft_tensor_parallel_size"] = *options.draft.tensor_parallel;
  start["weight_dtype"] = named(options.weight_dtype);
  start["draft_weight_dtype"] = named(options.draft_weight_dtype);
  start["kv_cache_dtype"] = named(options.kv_cache_dtype);
}

/// Members of every request's question, whatever its cost.
PlanQuestion always_asked(const PlanQuestion& asked) {
  PlanQuestion question;
  question.max_gamma = asked.max_gamma;
  question.schedule = asked.schedule;
  question.max_regret = asked.max_regret;
  question.min_gain = asked.min_gain;
  return question;
}

ordered_json lenience_of(std::span<const planning::LenienceEstimate> rows) {
  ordered_json list = ordered_json::array();
  for (const planning::LenienceEstimate& row : rows) {
    if (row.lenience == 1) continue;
    const estimate::Interval rates = row.alpha.ci95.value_or(estimate::Interval{row.alpha.value, row.alpha.value});
    list.push_back({{"lenience", row.lenience},
                    {"alpha", row.alpha.value},
                    {"interval", {to_four_digits(rates.lo), to_four_digits(rates.hi)}}});
  }
  return list;
}

std::string about(const Shown& shown) {
  const bool several = shown.point != nullptr && shown.plan.points().size() > 1;
  std::string text = several ? fmt::format("The first values are those of the report at {}.",
                                           point_words(shown.point->batch, shown.point->context))
                             : "The first values are those of the report.";
  if (shown.is_measured()) {
    text +=
        " What it measured of the cost is here c and, beside it, the rest of each round, both taken as exact: "
        "intervals are those of the acceptance alone.";
  }
  return text;
}

}  // namespace

ordered_json plan_controls(const Plan& plan, std::span<const planning::LenienceEstimate> lenience) {
  const Shown shown(plan);
  const estimate::Interval rates = rates_of(shown);
  double c = drafting(shown);
  // The rest of the rounds takes up what is rounded.
  if (shown.is_measured()) c = to_four_digits(c);
  const bool at_point = shown.point != nullptr && !shown.is_closed_form();
  std::set<double> batches;
  if (at_point) {
    for (const planning::PointPlan& point : plan.points()) batches.insert(point.batch);
  }
  ordered_json start = {
      {"about", about(shown)},     {"acceptance", acceptance_of(shown)},           {"alpha_low", rates.lo},
      {"alpha_high", rates.hi},    {"cost", shown.is_priced() ? "hardware" : "c"}, {"c", c},
      {"with_c", with_c(shown, c)}};
  put_hardware(shown, start);
  start["with_hardware"] = with_hardware(shown);
  start["specs"] = planner::known_json(plan.specs);
  start["batch"] = at_point ? shown.point->batch : 8;
  start["context"] = at_point ? shown.point->context : 1024;
  start["gamma"] = plan.question.gamma ? ordered_json(*plan.question.gamma) : ordered_json();
  start["question"] = always_asked(plan.question);
  start["batches"] = batches;
  start["lenience"] = lenience_of(lenience);
  return start;
}

}  // namespace specdec::render
