#include "cli/capacity_question.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "cli/planned.hpp"
#include "cli/usage_error.hpp"
#include "sim/serving/recorded_workload.hpp"
#include "traces/formats/request_trace.hpp"

namespace specdec::cli {
namespace {

planner::CapacityQuestion question_of(const CapacityOptions& o, std::vector<std::string>& files) {
  planner::CapacityQuestion q = o.question;
  if (o.requests) {
    q.workload = sim::recorded_workload(traces::read_request_trace(*o.requests));
    q.workload.requests = o.question.workload.requests;
    files.push_back(*o.requests);
  } else {
    q.workload.prompt_tokens = *o.prompt_tokens;
    q.workload.output_tokens = *o.output_tokens;
  }
  q.tensor_parallel = o.shared.roofline.options.tensor_parallel;
  return q;
}

/// Acceptance and costs of benchmark runs.
void take_runs(const CapacityOptions& o, AskedCapacity& asked) {
  planner::BenchFiles files = bench_files(o.shared);
  files.prompts_apart = true;
  files.prompt_tokens_per_second = o.question.prefill_tokens_per_second;
  const planner::Plan plan = planned_of_runs(o.shared, files);
  if (!plan.bench->acceptance) {
    throw UsageError("--bench has runs with trees of drafts alone (topk above 1), but capacity is of chains");
  }
  asked.cost.rounds = plan.bench->cost;
  asked.cost.draft = o.shared.draft();
  asked.cost.kind = plan.bench->cost->kind();
  asked.cost.target_model = plan.target_model;
  asked.cost.files = plan.files;
  asked.cost.warnings = plan.warnings;
  asked.acceptance.emplace();
  asked.acceptance->curve = plan.bench->acceptance;
  asked.acceptance->text = fmt::format("{} benchmark runs", plan.bench->runs.size());
}

planner::Cost cost_of_capacity(const CapacityOptions& o, bool drafts) {
  planner::DraftWords draft = o.shared.draft();
  if (o.shared.roofline.hardware) return hardware_cost(o.shared.roofline, o.shared.model, draft, drafts);
  if (!drafts) draft.kind = cost::DraftKind::ngram;
  return cost_of(o.shared, draft);
}

}  // namespace

AskedCapacity asked_capacity(const CapacityOptions& o) {
  require_consistent(o);
  AskedCapacity asked;
  asked.question = question_of(o, asked.files);
  const bool has_acceptance = o.knows_acceptance();
  const std::int64_t gamma = asked.question.largest_gamma(has_acceptance);
  if (!o.shared.bench.empty()) {
    take_runs(o, asked);
    return asked;
  }
  if (has_acceptance && !o.shared.leaves_acceptance_to_draft()) {
    // Here --model names what is priced.
    asked.acceptance = acceptance_of(o.shared, {std::max<std::int64_t>(1, gamma), true, false});
  }
  asked.cost = cost_of_capacity(o, gamma > 0);
  if (gamma > 0 && o.shared.leaves_acceptance_to_draft()) asked.acceptance = planner::Acceptance::prior_for(asked.cost);
  return asked;
}

std::vector<std::string> files_of(const AskedCapacity& asked, const planner::Capacity& capacity) {
  std::vector<std::string> files = capacity.files;
  files.insert(files.end(), asked.files.begin(), asked.files.end());
  return files;
}

}  // namespace specdec::cli
