#include "cli/plan_points.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "analysis/cost/constant_cost.hpp"
#include "analysis/planning/kv_memory.hpp"
#include "analysis/planning/plan.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/text.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "traces/acceptance_rules.hpp"

namespace specdec::cli {
namespace {

using cost::DraftKind;
using planning::ScheduleStretch;

constexpr Range batch_range = {0.0, static_cast<double>(planning::largest_scheduled_batch), true};
constexpr Range context_range = {0.0, 1e9};
constexpr std::int64_t usual_max_gamma_of_runs = 16;

std::vector<ScheduleStretch> deployed_of(const PlanOptions& o, std::int64_t max_gamma) {
  if (o.schedule) return parse_schedule(*o.schedule);
  if (!o.gamma) return {};
  if (*o.gamma > max_gamma && o.max_gamma) {
    refuse("--gamma", fmt::format("{}", *o.gamma), fmt::format("at most --max-gamma, {}", *o.max_gamma));
  }
  if (*o.gamma > planning::largest_scanned_gamma) {
    refuse("--gamma", fmt::format("{}", *o.gamma), fmt::format("at most {}", planning::largest_scanned_gamma));
  }
  return {{1, planning::largest_scheduled_batch, *o.gamma}};
}

std::int64_t max_gamma_of(const PlanOptions& o) {
  std::int64_t usual = o.bench.empty() ? usual_max_gamma : usual_max_gamma_of_runs;
  if (o.gamma) usual = std::max(usual, std::min(*o.gamma, planning::largest_scanned_gamma));
  return std::min(o.max_gamma.value_or(usual), planning::largest_scanned_gamma);
}

/// The largest gamma that a stated acceptance speaks of.
std::int64_t known_gamma(const PlannedAcceptance& acceptance) {
  if (!acceptance.stated) return planning::largest_scanned_gamma;
  planning::PlanQuestion question{acceptance.stated->profile};
  question.measured_at = acceptance.stated->measured_at;
  question.monotone = acceptance.stated->monotone;
  return planning::largest_known_gamma(question);
}

/// The tokens in the cache that the measurements were made at.
double usual_context(const std::vector<PlannedDraft>& drafts) {
  double context = 0;
  for (const PlannedDraft& draft : drafts) context = std::max(context, draft.cost->usual_context());
  return context;
}

/// Points that the memory does not hold: a warning of the first one.
void warn_of_memory(Deployment& d) {
  if (!d.has_roofline()) return;
  const cost::RooflineOptions& options = d.drafts[d.shown()].roofline->options();
  planning::ReplicaHolds holds;
  holds.memory_bytes_per_gpu = options.hardware.memory_bytes.value;
  holds.utilization = 1;
  holds.target = options.target;
  holds.draft = options.draft;
  holds.block_size = 1;
  const auto warn = [&](const char* code, const std::string& what, double bytes) {
    const auto enough = planning::gpus_that_hold(holds);
    const std::string remedy = enough ? fmt::format("{} of them would hold that", *enough)
                                      : std::string("dividing the models over more would not help");
    d.warnings.push_back({code, fmt::format("{} {} GB of each {}, which has {} GB; {}", what, brief(bytes / 1e9),
                                            options.hardware.name, brief(holds.memory_bytes_per_gpu / 1e9), remedy)});
  };
  const planning::KvMemory empty = planning::kv_memory(holds);
  const double weights = empty.target_weight_bytes + empty.draft_weight_bytes;
  if (weights > holds.memory_bytes_per_gpu) return warn("weights_do_not_fit", "the weights take", weights);
  for (const planning::PointPlan& point : d.points()) {
    const double tokens = point.batch * (point.context + static_cast<double>(point.optimal().gamma) + 1);
    holds.max_num_seqs = static_cast<std::int64_t>(std::ceil(point.batch));
    holds.block_size = static_cast<std::int64_t>(std::ceil(tokens));
    const planning::KvMemory memory = planning::kv_memory(holds);
    if (memory.blocks > 0) continue;
    return warn(
        "cache_does_not_fit",
        fmt::format("at batch {} and context {} weights and caches take", brief(point.batch), brief(point.context)),
        weights + memory.state_bytes + tokens * memory.bytes_per_token);
  }
}

planning::EngineConfig config_of(const PlanOptions& o, const Deployment& d) {
  planning::EngineRequest request;
  const planning::DraftPlan& plan = d.shown_plan();
  request.schedule = plan.schedule;
  request.fixed = planning::least_regret_gamma(plan);
  request.target_model = d.target_model;
  if (!d.drafts.empty()) {
    const PlannedDraft& draft = d.drafts[d.shown()];
    request.rule = draft.acceptance.rule;
    request.draft_model = draft.draft_model;
    request.kind = draft.kind;
    request.draft_tensor_parallel = draft.tensor_parallel;
  } else {
    request.rule = traces::acceptance_rule_named(o.acceptance);
    request.draft_model = o.draft_model.value_or("");
    request.kind = kind_named("--draft-kind", o.draft_kind.value_or("model"));
  }
  return planning::engine_config(*planning::engine_named(*o.emit), request);
}

}  // namespace

Deployment asked_deployment(const PlanOptions& o) {
  Deployment d;
  d.min_gain = o.min_gain.value_or(default_min_gain);
  d.max_gamma = max_gamma_of(o);
  d.deployed = deployed_of(o, d.max_gamma);
  d.target_model = o.model.value_or("");
  return d;
}

PlannedDraft named_draft(const PlanOptions& o) {
  PlannedDraft draft;
  draft.name = o.draft_model.value_or("draft");
  draft.kind = kind_named("--draft-kind", o.draft_kind.value_or("model"));
  draft.draft_model = o.draft_model.value_or("");
  return draft;
}

std::int64_t scheduled_up_to(const PlanOptions& o, const std::vector<double>& batches) {
  const double largest = std::min(std::ceil(batches.back()), static_cast<double>(planning::largest_scheduled_batch));
  return o.max_num_seqs.value_or(static_cast<std::int64_t>(largest));
}

std::vector<double> asked_batches(const PlanOptions& o) {
  return o.batch ? rising_list("--batch", *o.batch, batch_range) : std::vector<double>{};
}

std::vector<double> asked_contexts(const PlanOptions& o) {
  return o.context ? rising_list("--context", *o.context, context_range) : std::vector<double>{};
}

void require_scheduled(const PlanOptions& o, const Deployment& d, const std::vector<double>& batches) {
  if (d.deployed.empty() || batches.empty()) return;
  if (static_cast<double>(d.deployed.back().batch_high) >= batches.back()) return;
  refuse("--schedule", *o.schedule, fmt::format("a schedule up to batch {}", brief(batches.back())));
}

void take_acceptance(const PlannedAcceptance& acceptance, Deployment& d) {
  d.max_gamma = std::min(d.max_gamma, known_gamma(acceptance));
  for (const Warning& warning : acceptance.warnings) d.warnings.push_back(warning);
  for (const std::string& file : acceptance.files) d.files.push_back(file);
}

void price_by_hardware(const PlanOptions& o, const std::optional<std::string>& model, std::string_view who,
                       PlannedDraft& draft, Deployment& d) {
  RooflineModels models;
  models.target = o.model;
  models.kind = draft.kind;
  models.draft = model;
  models.draft_tensor_parallel = draft.tensor_parallel;
  if (!o.drafts.empty()) models.draft_option = fmt::format("{}model", who);
  PricedRoofline priced = roofline_from(o.roofline, models);
  const auto add_new = [](auto& all, auto& some, const auto& same) {
    for (auto& one : some) {
      const auto is_same = [&](const auto& other) { return same(one, other); };
      if (std::none_of(all.begin(), all.end(), is_same)) all.push_back(std::move(one));
    }
  };
  add_new(d.presets, priced.presets, [](const auto& a, const auto& b) { return a == b; });
  add_new(d.cost_assumptions, priced.assumptions,
          [](const Assumption& a, const Assumption& b) { return a.name == b.name && a.value == b.value; });
  add_new(d.warnings, priced.warnings,
          [](const Warning& a, const Warning& b) { return a.code == b.code && a.message == b.message; });
  d.files.insert(d.files.end(), priced.files.begin(), priced.files.end());
  d.specs.hardware.merge(priced.specs.hardware);
  d.specs.models.merge(priced.specs.models);
  draft.cost = draft.roofline = std::move(priced.cost);
}

std::optional<double> c_of_kind(DraftKind kind, const std::optional<double>& c, std::string_view who) {
  if (!c || cost::draft_passes(kind, 1) > 0) return c;
  if (*c != 0) {
    throw UsageError(
        fmt::format("{}c is {}, but must be 0: a draft of this kind ({}) makes no draft step", who, *c, name_of(kind)));
  }
  return std::nullopt;
}

std::shared_ptr<const cost::RoundCost> constant_cost(const PlanOptions& o, DraftKind kind,
                                                     const std::optional<double>& c, std::string_view who) {
  if (!c && kind != DraftKind::ngram) {
    throw UsageError(fmt::format("{}c is missing: the time of one draft step / one target step, a number in {}", who,
                                 Range{}.to_string()));
  }
  cost::ConstantOptions options;
  options.step = o.cost.with_c(c_of_kind(kind, c, who).value_or(0));
  options.kind = kind;
  return std::make_shared<cost::ConstantCost>(std::move(options));
}

void plan_drafts(const PlanOptions& o, const std::vector<double>& usual_batches, Deployment& d) {
  planning::DeploymentQuestion question;
  std::set<std::string> names;
  for (const PlannedDraft& draft : d.drafts) {
    if (!names.insert(draft.name).second) throw UsageError(fmt::format("--draft {} is given twice", draft.name));
    question.drafts.push_back({draft.name, draft.acceptance.curve, draft.cost, draft.acceptance.clusters});
    take_acceptance(draft.acceptance, d);
  }
  d.in_seconds = d.drafts.front().cost->in_seconds();
  question.batches = asked_batches(o);
  if (question.batches.empty()) question.batches = usual_batches;
  question.contexts = asked_contexts(o);
  if (question.contexts.empty()) question.contexts = {usual_context(d.drafts)};
  require_scheduled(o, d, question.batches);
  question.max_gamma = d.max_gamma;
  question.tolerance = o.tolerance;
  question.min_gain = d.min_gain;
  question.deployed = d.deployed;
  question.max_regret = o.max_regret;
  question.schedule_up_to = scheduled_up_to(o, question.batches);
  d.plan = planning::plan_deployment(question);

  bool any_iid = false;
  for (std::size_t i = 0; i < d.drafts.size(); ++i) {
    if (!d.drafts[i].acceptance.curve_at_design_effect_3) continue;
    question.drafts[i].acceptance = d.drafts[i].acceptance.curve_at_design_effect_3;
    any_iid = true;
  }
  if (any_iid) d.at_design_effect_3 = planning::plan_deployment(question);
}

void conclude(const PlanOptions& o, Deployment& d) {
  if (o.emit) d.engine = o.emit;
  for (const planning::DraftPlan& draft : d.plan.drafts) {
    const std::string who = d.plan.drafts.size() > 1 ? draft.name + ": " : "";
    for (const planning::PlanNote& note : draft.notes) d.warnings.push_back({note.code, who + note.message});
  }
  warn_of_memory(d);
  if (o.emit) d.config = config_of(o, d);
}

std::optional<std::string_view> bound_of(const Deployment& d, const planning::PointPlan& point, std::int64_t gamma) {
  if (!d.has_roofline()) return std::nullopt;
  const double tokens = static_cast<double>(gamma) + 1;
  return cost::name_of(d.drafts[d.shown()].roofline->target_pass(point.batch, tokens, point.context).bound());
}

std::string_view name_of(planning::Verdict verdict) {
  switch (verdict) {
    case planning::Verdict::speculate:
      return "speculate";
    case planning::Verdict::do_not_speculate:
      return "do not speculate";
    case planning::Verdict::cannot_tell:
      break;
  }
  return "cannot tell";
}

std::string_view name_of(planning::UncertaintySource source) {
  switch (source) {
    case planning::UncertaintySource::acceptance:
      return "acceptance";
    case planning::UncertaintySource::cost:
      return "cost";
    case planning::UncertaintySource::extrapolation:
      break;
  }
  return "extrapolation";
}

std::string served_name(const cost::ModelSpec& model, const std::string& name) {
  const auto is_repository = [](const std::string& alias) { return alias.find('/') != std::string::npos; };
  const auto found = std::find_if(model.aliases.begin(), model.aliases.end(), is_repository);
  return found == model.aliases.end() || is_repository(name) ? name : *found;
}

std::string command_for(const Deployment& d, const planning::NextMeasurement& next) {
  const std::string model = d.has_roofline()
                                ? served_name(d.drafts[d.shown()].roofline->options().target.model, d.target_model)
                                : d.target_model;
  return command_for(d.engine.value_or(""), model, next, std::nullopt);
}

std::string command_for(std::string_view asked_engine, std::string_view asked_model,
                        const planning::NextMeasurement& next, const std::optional<PromptLengths>& lengths) {
  const std::string_view model = asked_model.empty() ? "MODEL" : asked_model;
  const std::string_view engine = asked_engine.empty() ? "vllm" : asked_engine;
  const auto concurrency = static_cast<std::int64_t>(std::max(1.0, std::ceil(next.batch)));
  const std::int64_t requests = std::max(next.requests.value_or(8 * concurrency), concurrency);
  const std::string random =
      lengths ? fmt::format(" --dataset-name random --random-input-len {:.0f} --random-output-len {:.0f}",
                            lengths->prompt, lengths->output)
              : "";
  if (engine == "sglang") {
    return fmt::format(
        "python -m sglang.bench_serving --model {}{} --num-prompts {} --max-concurrency {} --output-file run.jsonl",
        model, random, requests, concurrency);
  }
  if (engine == "trtllm" || engine == "tensorrt-llm") {
    return fmt::format(
        "python -m tensorrt_llm.serve.scripts.benchmark_serving --model {} --dataset-name trtllm_custom "
        "--dataset-path PROMPTS --num-prompts {} --max-concurrency {} --save-result",
        model, requests, concurrency);
  }
  if (engine == "llamacpp" || engine == "llama.cpp") {
    // The script of llama.cpp's tools/server/bench; the duration is the longest.
    return fmt::format("SERVER_BENCH_N_PROMPTS={} k6 run script.js --duration 24h --iterations {} --vus {}", requests,
                       requests, concurrency);
  }
  return fmt::format("vllm bench serve --model {}{} --num-prompts {} --max-concurrency {} --save-result", model, random,
                     requests, concurrency);
}

}  // namespace specdec::cli
