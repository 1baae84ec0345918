#include "cli/page/planner_start.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/planned.hpp"
#include "cli/stated_acceptance.hpp"
#include "render/page/page_inputs.hpp"
#include "render/text.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using nlohmann::ordered_json;

/// A rate that a recording or counters measured is where to start from, no more.
double to_four_digits(double rate) { return std::round(rate * 1e4) / 1e4; }

class PlannerStart {
 public:
  PlannerStart(const PlanOptions& o, const PlanReport& plan, const ordered_json& inputs, const ordered_json& analysis)
      : o_(o),
        plan_(plan),
        d_(plan.plan->has_points() ? plan.plan.get() : nullptr),
        inputs_(inputs),
        analysis_(analysis) {
    if (d_ != nullptr && !d_->drafts.empty()) draft_ = &d_->drafts[d_->shown()];
    if (d_ != nullptr) point_ = &d_->points().front();
  }

  ordered_json document() {
    start_["about"] = "";
    put_acceptance();
    put_cost();
    put_question();
    put_lenience();
    start_["about"] = about();
    return start_;
  }

 private:
  bool is_closed_form() const { return plan_.plan->closed_form.has_value(); }

  /// Whether the acceptance is nothing but a rate, by --alpha or --published.
  bool is_alpha() const {
    if (is_closed_form()) return o_.alpha || o_.published;
    return draft_ != nullptr && draft_->acceptance.stated && !o_.rejection &&
           draft_->acceptance.stated->profile.measured_positions() == 0 && !draft_->acceptance.stated->measured_at;
  }

  /// What the report's acceptance is called, for the control.
  std::string acceptance_label() const {
    if (o_.acceptance_length) return "the report's acceptance length";
    if (o_.acceptance_per_position) return "the report's, by position";
    if (o_.rejection) return "the report's --rejection";
    if (draft_ == nullptr) return "as the benchmark runs counted";
    return draft_->acceptance.stated ? "the report's" : "as measured: " + draft_->acceptance.text;
  }

  ordered_json acceptance_request() const {
    ordered_json request = ordered_json::object();
    if (is_closed_form()) {
      for (const char* key :
           {"rejection", "acceptance_length", "acceptance_per_position", "at", "rounds", "conditional"}) {
        take(request, key);
      }
      return request;
    }
    planner::Acceptance of_runs;
    if (draft_ == nullptr) of_runs.curve = d_->bench->acceptance;
    request["acceptance"] = page_input(draft_ != nullptr ? draft_->acceptance : of_runs, d_->max_gamma);
    request["max_gamma"] = std::max<std::size_t>(request["acceptance"]["by_gamma"].size() - 1, 1);
    return request;
  }

  void put_acceptance() {
    start_["acceptance"] = nullptr;
    if (!is_alpha()) start_["acceptance"] = {{"label", acceptance_label()}, {"request", acceptance_request()}};
    double low = 0, high = 0;
    if (is_alpha()) {
      const planner::StatedAcceptance stated = *(is_closed_form() ? stated_acceptance(o_) : draft_->acceptance).stated;
      const core::AcceptanceRate rate = stated.rate();
      low = (stated.interval ? stated.interval->low : rate).alpha();
      high = (stated.interval ? stated.interval->high : rate).alpha();
    } else if (is_closed_form()) {
      low = high = to_four_digits(stated_acceptance(o_).stated->rate().alpha());
    } else if (draft_ != nullptr && draft_->acceptance.alpha) {
      const estimate::Interval alpha = draft_->acceptance.alpha_ci95.value_or(
          estimate::Interval{*draft_->acceptance.alpha, *draft_->acceptance.alpha});
      low = to_four_digits(alpha.lo);
      high = to_four_digits(alpha.hi);
    } else {
      // Of one draft, which is accepted or not.
      const auto& curve = draft_ != nullptr ? *draft_->acceptance.curve : *d_->bench->acceptance;
      low = high = to_four_digits(curve.tokens_per_step(1).value - 1);
    }
    start_["alpha_low"] = low;
    start_["alpha_high"] = high;
  }

  /// Whether the cost is that of measured times or runs, which the page has not.
  bool is_measured() const { return !o_.cost_files.empty() || !o_.bench.empty(); }

  cost::DraftKind kind() const {
    return draft_ != nullptr ? draft_->cost.kind : planner::draft_kind(draft_words(o_), o_.model, {}, false);
  }

  /// The time of one pass of the draft, in plain steps, as far as the report's cost tells it.
  double drafting() const {
    if (!is_measured() && o_.cost.c) return *o_.cost.c;
    if (point_->rows.size() < 2) return 0;
    const planning::DeploymentRow& row = point_->rows[std::max<std::size_t>(1, point_->optimal_row.value_or(1))];
    const double passes = cost::draft_passes(kind(), static_cast<double>(row.gamma));
    if (!d_->cost().parts_known({row.gamma, point_->batch, point_->context}) || passes == 0) return 0;
    return row.time.draft / (passes * point_->rows.front().time.total());
  }

  /// "2:1.02,3:1.04,...": what of the rounds of gamma = 1, 2, ... is not drafting, in plain steps, as far as the cost
  /// was measured.
  std::string rest_of_rounds(double c) const {
    std::vector<std::string> factors;
    const auto extrapolates = [&](std::int64_t gamma) {
      return d_->cost().extrapolates({gamma, point_->batch, point_->context});
    };
    for (const planning::DeploymentRow& row : point_->rows) {
      if (row.gamma == 0) continue;
      // Where plain decoding was not measured there, nothing was, and no gamma is preferred for it.
      if (extrapolates(row.gamma) && !extrapolates(0)) break;
      const double rest = row.time.total() / point_->rows.front().time.total() -
                          c * cost::draft_passes(kind(), static_cast<double>(row.gamma));
      if (!(rest > 0)) break;
      factors.push_back(fmt::format("{}:{}", row.gamma + 1, rest));
    }
    return fmt::format("{}", fmt::join(factors, ","));
  }

  void put_cost() {
    const bool priced = draft_ != nullptr && draft_->cost.roofline != nullptr;
    start_["cost"] = priced ? "hardware" : "c";
    double c = point_ == nullptr ? *o_.cost.c : drafting();
    // The rest of the rounds takes up what is rounded.
    if (is_measured()) c = to_four_digits(c);
    start_["c"] = c;
    ordered_json& options = start_["c_options"] = ordered_json::object();
    if (is_measured()) {
      const std::string rest = rest_of_rounds(c);
      if (!rest.empty()) options["verify_factor"] = rest;
    } else if (!priced) {
      for (const char* key : {"verify_factor", "overhead"}) take(options, key);
    }
    if (is_closed_form()) {
      for (const char* key : {"c_hat", "tokens", "min_gain"}) take(options, key);
    } else if (!priced) {
      options["batch"] = fmt::format("{}", point_->batch);
      options["context"] = fmt::format("{}", point_->context);
      options["draft_kind"] = name_of(kind());
      for (const char* key : {"min_gain", "max_num_seqs", "model", "draft_model"}) take(options, key);
    }

    const cost::HardwareSpec* const device = priced ? cost::hardware_preset(*o_.roofline.hardware) : nullptr;
    const auto model = [&](const std::string& name) {
      const cost::ModelSpec* const preset = cost::model_preset(name);
      return preset != nullptr ? preset->name : name;
    };
    start_["hardware"] = !priced ? "h100-sxm" : device != nullptr ? device->name : *o_.roofline.hardware;
    start_["model"] = priced ? model(*o_.model) : "llama-3.1-70b";
    const std::string draft_model = priced ? draft_->cost.draft.model.value_or("") : "llama-3.2-1b";
    start_["draft_model"] = draft_model.empty() ? ordered_json() : ordered_json(model(draft_model));
    start_["draft_kind"] = name_of(kind());
    start_["tensor_parallel_size"] = priced ? o_.roofline.tensor_parallel.value_or(1) : 4;
    start_["draft_tensor_parallel_size"] = nullptr;
    if (priced && draft_->cost.draft.tensor_parallel) {
      start_["draft_tensor_parallel_size"] = *draft_->cost.draft.tensor_parallel;
    }
    for (const char* key : {"weight_dtype", "draft_weight_dtype", "kv_cache_dtype"}) start_[key] = of_inputs(key);
    ordered_json& hardware = start_["hardware_options"] = ordered_json::object();
    for (const char* key :
         {"bandwidth_efficiency", "compute_efficiency", "link_efficiency", "all_reduce_latency_us", "launch_seconds",
          "draft_launch_seconds", "layer_seconds", "scheduling_seconds", "calibrate", "min_gain", "max_num_seqs"}) {
      take(hardware, key);
    }
    start_["specs"] = page_input(d_ != nullptr ? d_->specs : planner::NamedSpecs{});
  }

  void put_question() {
    const bool at_point = point_ != nullptr && !is_closed_form();
    start_["batch"] = at_point ? point_->batch : 8;
    start_["context"] = at_point ? point_->context : 1024;
    start_["gamma"] = of_inputs("gamma");
    ordered_json& options = start_["options"] = ordered_json::object();
    for (const char* key : {"max_gamma", "tolerance", "schedule", "max_regret"}) take(options, key);
    std::set<double> batches;
    if (at_point) {
      for (const planning::PointPlan& point : d_->points()) batches.insert(point.batch);
    }
    start_["batches"] = batches;
  }

  void put_lenience() {
    ordered_json& lenience = start_["lenience"] = ordered_json::array();
    if (analysis_.is_null()) return;
    for (const ordered_json& row : analysis_["lenience"]) {
      if (row["lenience"] == 1.0) continue;
      const ordered_json interval =
          row["alpha_ci95"].is_array() ? row["alpha_ci95"] : ordered_json{row["alpha"], row["alpha"]};
      lenience.push_back(
          {{"lenience", row["lenience"]},
           {"alpha", row["alpha"]},
           {"interval", {to_four_digits(interval[0].get<double>()), to_four_digits(interval[1].get<double>())}}});
    }
  }

  std::string about() const {
    const bool several = point_ != nullptr && d_->points().size() > 1;
    std::string text = several ? fmt::format("The first values are those of the report at batch {}, context {}.",
                                             brief(point_->batch), brief(point_->context))
                               : "The first values are those of the report.";
    if (is_measured()) {
      text +=
          " What it measured of the cost is here c and, beside it, the rest of each round, both taken as exact: "
          "intervals are those of the acceptance alone.";
    }
    return text;
  }

  ordered_json of_inputs(const char* key) const { return inputs_.contains(key) ? inputs_[key] : ordered_json(); }
  void take(ordered_json& into, const char* key) const {
    const ordered_json value = of_inputs(key);
    if (!value.is_null() && !(value.is_array() && value.empty())) into[key] = value;
  }

  const PlanOptions& o_;
  const PlanReport& plan_;
  const planner::Plan* d_;
  const planner::Draft* draft_ = nullptr;
  const planning::PointPlan* point_ = nullptr;
  const ordered_json& inputs_;
  const ordered_json& analysis_;
  ordered_json start_ = ordered_json::object();
};

}  // namespace

ordered_json planner_start(const PlanOptions& o, const PlanReport& plan, const ordered_json& inputs,
                           const ordered_json& analysis) {
  return PlannerStart(o, plan, inputs, analysis).document();
}

}  // namespace specdec::cli
