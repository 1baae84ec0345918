#include "planner/plan_request.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/json_members.hpp"
#include "planner/known_inputs.hpp"
#include "planner/planning_steps.hpp"

namespace specdec::planner::json {

constexpr LegalRange positive = {.lo_open = true};
constexpr LegalRange share = {1e-6, 1};
constexpr LegalRange count = {1, 65536};
constexpr LegalRange accelerators = {1, 1024};
constexpr LegalRange some_gamma = {1, static_cast<double>(largest_max_gamma)};

// A rate, or [low, high].

ordered_json written_value(const Place&, const RateRange& range) {
  if (range.low == range.high) return range.low;
  return {range.low, range.high};
}

void read_value(const ordered_json& from, const Place& place, const LegalRange&, RateRange& range) {
  const auto is_rate = [](const ordered_json& one) {
    return one.is_number() && probability.contains(one.get<double>());
  };
  if (is_rate(from)) {
    range.low = range.high = from.get<double>();
    return;
  }
  const bool is_pair = from.is_array() && from.size() == 2 && is_rate(from[0]) && is_rate(from[1]);
  if (!is_pair || from[0] > from[1]) place.refuse(from, "a number in [0, 1] or [low, high] with low <= high");
  range = {from[0].get<double>(), from[1].get<double>()};
}

// A number, [low, high] around its middle, or [low, value, high].

ordered_json written_value(const Place&, const cost::UncertainValue& value) {
  if (value.low == value.value && value.value == value.high) return value.value;
  if (value.value == value.low + (value.high - value.low) / 2) return {value.low, value.high};
  return {value.low, value.value, value.high};
}

void read_value(const ordered_json& from, const Place& place, const LegalRange& bounds, cost::UncertainValue& value) {
  const ordered_json list = from.is_array() ? from : ordered_json::array({from});
  std::vector<double> numbers;
  for (const ordered_json& one : list) {
    if (one.is_number() && bounds.contains(one.get<double>())) numbers.push_back(one.get<double>());
  }
  const bool is_legal = numbers.size() == list.size() && 1 <= numbers.size() && numbers.size() <= 3;
  if (!is_legal || !std::is_sorted(numbers.begin(), numbers.end())) {
    place.refuse(from, "a number, [low, high] or [low, value, high], rising, in " + bounds.to_string());
  }
  const double low = numbers.front(), high = numbers.back();
  value = {low, numbers.size() == 3 ? numbers[1] : low + (high - low) / 2, high};
}

// One factor, or its points.

template <class Members>
void list_members(Members& members, core::VerificationCost::Point& point) {
  members("tokens", point.tokens, LegalRange{1, 9e15});
  members("factor", point.factor, positive);
}

ordered_json written_value(const Place&, const core::VerificationCost& factor) {
  const auto points = factor.points();
  const core::VerificationCost::Point last = points.empty() ? core::VerificationCost::Point{1, 1} : points.back();
  if (!factor.extrapolates(last.tokens + 1)) return last.factor;
  return Writer::written(std::vector<core::VerificationCost::Point>(points.begin() + 1, points.end()));
}

void read_value(const ordered_json& from, const Place& place, const LegalRange&, core::VerificationCost& factor) {
  if (!from.is_array()) {
    double value = 1;
    Reader::read(from, place, positive, value);
    factor = core::VerificationCost::constant(value);
    return;
  }
  std::vector<core::VerificationCost::Point> points;
  Reader::read(from, place, any_number, points);
  std::int64_t last = 1;
  for (const core::VerificationCost::Point& point : points) {
    if (point.tokens <= last) place.refuse(from, "points of rising tokens, each above 1");
    last = point.tokens;
  }
  if (points.empty()) place.refuse(from, "a factor or at least one point");
  factor = core::VerificationCost::table(points);
}

ordered_json written_value(const Place&, const KnownAcceptance& known) {
  return known_json(*known.acceptance, known.last_gamma);
}
void read_value(const ordered_json& from, const Place&, const LegalRange&, KnownAcceptance& known) {
  known = known_acceptance(from);
}
ordered_json written_value(const Place&, const NamedSpecs& specs) {
  const bool is_empty = specs.hardware.empty() && specs.models.empty() && specs.kernels.empty();
  return is_empty ? ordered_json() : known_json(specs);
}
void read_value(const ordered_json& from, const Place&, const LegalRange&, NamedSpecs& specs) {
  specs = known_specs(from);
}

template <class Members>
void list_members(Members& members, estimate::TypedLength& length) {
  members("gamma", length.gamma, some_gamma);
  members("tokens_per_step", length.tokens_per_step, LegalRange{1});
  members.optional("half_unit", length.half_unit, probability);
}

template <class Members>
void list_members(Members& members, estimate::TypedRate& rate) {
  members("rate", rate.rate, probability);
  members.optional("half_unit", rate.half_unit, probability);
}

template <class Members>
void list_members(Members& members, AcceptanceWords& words) {
  members.optional("alpha", words.alpha);
  members.optional("rejection", words.rejection);
  members.optional("acceptance_length", words.acceptance_length);
  members.optional("acceptance_per_position", words.acceptance_per_position);
  members.optional("published", words.published);
  members.optional("known", words.known);
  members.optional("conditional", words.conditional);
  members.optional("rounds", words.rounds, LegalRange{1, 1e15});
  members.optional("rule", words.rule);
}

template <class Members>
void list_members(Members& members, TimedIteration& timed) {
  members("batch", timed.batch, positive);
  members("seconds", timed.seconds, positive);
  members.optional("prompt_tokens", timed.prompt_tokens, LegalRange{1});
  members.optional("gamma", timed.gamma, LegalRange{0, 1e6});
  members.optional("tokens_per_step", timed.tokens_per_step, LegalRange{1});
  members.optional("context", timed.context, LegalRange{});
  members.optional("name", timed.name);
}

template <class Members>
void list_members(Members& members, CostWords& words) {
  members.optional("c", words.times.c, LegalRange{});
  members.optional("verify_factor", words.times.verify_factor);
  members.optional("overhead", words.times.overhead, LegalRange{});
  members.optional("hardware", words.hardware);
  members.optional("model", words.model);
  HardwareOptions& o = words.options;
  members.optional("draft_model", o.draft.model);
  members.optional("draft_kind", o.draft.kind);
  members.optional("hit_rate", o.draft.hit_rate, LegalRange{0, 1});
  members.optional("mean_draft_length", o.draft.mean_draft_length, LegalRange{1, 1e6});
  members.optional("draft_tensor_parallel_size", o.draft.tensor_parallel, accelerators);
  members.optional("tensor_parallel_size", o.tensor_parallel, accelerators);
  members.optional("data_parallel_size", o.data_parallel, accelerators);
  members.optional("expert_parallel_size", o.expert_parallel, accelerators);
  members.optional("weight_dtype", o.weight_dtype);
  members.optional("draft_weight_dtype", o.draft_weight_dtype);
  members.optional("kv_cache_dtype", o.kv_cache_dtype);
  members.optional("kernel_times", o.kernel_times);
  members.optional("bandwidth_efficiency", o.bandwidth_efficiency, share);
  members.optional("compute_efficiency", o.compute_efficiency, share);
  members.optional("link_efficiency", o.link_efficiency, share);
  members.optional("all_reduce_latency_seconds", o.all_reduce_latency_seconds, LegalRange{});
  members.optional("launch_seconds", o.launch_seconds, LegalRange{});
  members.optional("draft_launch_seconds", o.draft_launch_seconds, LegalRange{});
  members.optional("layer_seconds", o.layer_seconds, LegalRange{});
  members.optional("scheduling_seconds", o.scheduling_seconds, LegalRange{});
  members.optional("calibrate", o.calibrate);
  members.optional("specs", o.known);
}

template <class Members>
void list_members(Members& members, planning::ScheduleStretch& stretch) {
  members("batch_low", stretch.batch_low, count);
  members("batch_high", stretch.batch_high, count);
  members("gamma", stretch.gamma, LegalRange{0, static_cast<double>(planning::largest_scanned_gamma)});
}

template <class Members>
void list_members(Members& members, PlanQuestion& question) {
  members.optional("batch", question.batch);
  members.optional("context", question.context);
  members.optional("max_num_seqs", question.max_num_seqs, count);
  members.optional("min_gain", question.min_gain);
  members.optional("gamma", question.gamma);
  members.optional("schedule", question.schedule);
  members.optional("max_regret", question.max_regret);
  members.optional("max_gamma", question.max_gamma);
  members.optional("tokens", question.tokens, LegalRange{1, 1e6});
  members.optional("c_hat", question.c_hat, LegalRange{});
  members.optional("emit", question.emit);
  members.optional("config_file", question.config_file);
}

}  // namespace specdec::planner::json

namespace specdec::planner {
namespace {

using nlohmann::ordered_json;

template <class Words>
ordered_json members_of(const Words& words) {
  json::Writer members;
  Words copy = words;
  list_members(members, copy);
  return std::move(members.object);
}

/// Members are named as parameters are, without the part that they stand in.
template <class Words>
Words words_from(const ordered_json& from, const char* part) {
  if (!from.is_object()) json::Place{part}.refuse(from, "an object");
  return json::read_object<Words>(from);
}

}  // namespace

Plan plan(const PlanRequest& request) {
  const Cost cost = Cost::of(request.cost);
  return plan(Acceptance::of(request.acceptance, cost), cost, request.question);
}

void to_json(ordered_json& json, const AcceptanceWords& words) { json = members_of(words); }
void to_json(ordered_json& json, const CostWords& words) { json = members_of(words); }
void to_json(ordered_json& json, const PlanQuestion& question) { json = members_of(question); }
void to_json(ordered_json& json, const PlanRequest& request) {
  json = {{"acceptance", request.acceptance}, {"cost", request.cost}, {"question", request.question}};
}

void from_json(const ordered_json& json, AcceptanceWords& words) {
  words = words_from<AcceptanceWords>(json, "acceptance");
}
void from_json(const ordered_json& json, CostWords& words) { words = words_from<CostWords>(json, "cost"); }
void from_json(const ordered_json& json, PlanQuestion& question) {
  question = words_from<PlanQuestion>(json, "question");
  require_ranges(question);
}
void from_json(const ordered_json& json, PlanRequest& request) {
  if (!json.is_object()) json::Place{"request"}.refuse(json, "an object");
  PlanRequest read;
  for (const auto& [key, part] : json.items()) {
    if (key == "acceptance") {
      from_json(part, read.acceptance);
    } else if (key == "cost") {
      from_json(part, read.cost);
    } else if (key == "question") {
      from_json(part, read.question);
    } else {
      json::Place{key}.refuse(part, "left out: the keys here are acceptance, cost, question");
    }
  }
  request = std::move(read);
}

}  // namespace specdec::planner
