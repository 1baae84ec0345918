#include "cli/capacity_question.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "cli/files.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/planned.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "sim/serving/recorded_workload.hpp"
#include "traces/formats/request_trace.hpp"

namespace specdec::cli {
namespace {

constexpr auto largest_gamma = static_cast<std::int64_t>(planner::capacity_ranges.gamma.hi);
constexpr auto most_num_seqs = static_cast<std::int64_t>(planner::capacity_ranges.max_num_seqs.hi);

/// "1000" or "1000:0.5".
sim::LengthLaw parse_lengths(std::string_view option, const std::string& text) {
  const auto parts = split(text, ':');
  if (parts.size() > 2) refuse(option, text, "MEAN or MEAN:CV");
  sim::LengthLaw law;
  law.mean = parse_number(option, parts[0], {1.0, 1e7});
  if (parts.size() == 2) law.variation = parse_number(fmt::format("CV of {}", option), parts[1], {0.0, 10.0});
  return law;
}

/// "0,1,3" or "1-8", rising; 0, plain decoding, is compared anyway.
std::vector<std::int64_t> parse_gammas(const std::string& text) {
  constexpr std::string_view option = "--gamma";
  std::vector<std::int64_t> gammas;
  for (const std::string_view part : split(text, ',')) {
    const auto ends = split(part, '-');
    if (ends.size() > 2) refuse(option, part, "a number or LOW-HIGH");
    const std::int64_t low = parse_integer(option, ends.front(), 0, largest_gamma);
    const std::int64_t high = parse_integer(option, ends.back(), low, largest_gamma);
    for (std::int64_t gamma = low; gamma <= high; ++gamma) {
      if (!gammas.empty() && gamma <= gammas.back()) refuse(option, text, "a rising list");
      gammas.push_back(gamma);
    }
  }
  gammas.erase(std::remove(gammas.begin(), gammas.end(), 0), gammas.end());
  return gammas;
}

std::vector<std::int64_t> parse_num_seqs(const CapacityOptions& o) {
  std::vector<std::int64_t> found;
  for (const std::string_view part : split(o.max_num_seqs, ',')) {
    found.push_back(parse_integer("--max-num-seqs", part, 1, most_num_seqs));
    if (found.size() > 1 && found.back() <= found[found.size() - 2]) {
      refuse("--max-num-seqs", o.max_num_seqs, "a rising list");
    }
  }
  return found;
}

sim::Workload workload_of(const CapacityOptions& o, std::vector<std::string>& files) {
  sim::Workload workload;
  if (o.requests) {
    workload = sim::recorded_workload(traces::read_request_trace(*o.requests));
    files.push_back(*o.requests);
  } else {
    workload.prompt_tokens = parse_lengths("--prompt-tokens", *o.prompt_tokens);
    workload.output_tokens = parse_lengths("--output-tokens", *o.output_tokens);
  }
  workload.requests = o.num_requests;
  return workload;
}

planner::CapacityQuestion question_of(const CapacityOptions& o, std::vector<std::string>& files) {
  planner::CapacityQuestion q;
  q.workload = workload_of(o, files);
  q.arrival_rate = o.arrival_rate;
  q.concurrency = o.concurrency;
  q.outside_ms = o.outside_ms;
  q.prefix_cache_hit_rate = o.prefix_cache_hit_rate;
  q.decode_only = o.decode_only;
  q.alpha_spread = o.alpha_spread;
  q.tensor_parallel = o.roofline.tensor_parallel;
  q.prefill_tokens_per_second = o.prefill_tokens_per_second;
  q.gpus = o.gpus;
  q.replicas = o.replicas;
  q.price = o.price;
  q.gpu_memory_utilization = o.gpu_memory_utilization;
  q.activation_reserve_gb = o.activation_reserve_gb;
  q.kv_cache_tokens = o.kv_cache_tokens;
  if (o.gamma) q.gamma = parse_gammas(*o.gamma);
  if (o.schedule) q.schedule = parse_schedule(*o.schedule);
  q.max_num_seqs = parse_num_seqs(o);
  q.max_num_batched_tokens = o.max_num_batched_tokens;
  q.prefill_first = o.prefill_first;
  q.verification_budget = o.verification_budget;
  q.ttft_ms = o.ttft_ms;
  q.tpot_ms = o.tpot_ms;
  q.percentile = o.percentile;
  q.replications = o.replications;
  q.seed = o.seed;
  q.threads = o.threads;
  return q;
}

/// Acceptance and costs of benchmark runs.
void take_runs(const CapacityOptions& o, AskedCapacity& asked) {
  planner::BenchFiles files = bench_files(o.shared);
  files.prompts_apart = true;
  files.prompt_tokens_per_second = o.prefill_tokens_per_second;
  const planner::Plan plan = planned_of_runs(o.shared, files);
  if (!plan.bench->acceptance) {
    throw UsageError("--bench has runs with trees of drafts alone (topk above 1), but capacity is of chains");
  }
  asked.cost.rounds = plan.bench->cost;
  asked.cost.draft = draft_words(o.shared);
  asked.cost.kind = plan.bench->cost->kind();
  asked.cost.target_model = plan.target_model;
  asked.cost.files = plan.files;
  asked.cost.warnings = plan.warnings;
  asked.acceptance.emplace();
  asked.acceptance->curve = plan.bench->acceptance;
  asked.acceptance->text = fmt::format("{} benchmark runs", plan.bench->runs.size());
}

planner::Cost cost_of_capacity(const CapacityOptions& o, bool drafts) {
  planner::DraftWords draft = draft_words(o.shared);
  if (o.roofline.hardware) return hardware_cost(o.roofline, o.shared.model, draft, drafts);
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

std::vector<nlohmann::ordered_json> file_facts_of(const AskedCapacity& asked, const planner::Capacity& capacity) {
  std::vector<std::string> files = capacity.files;
  files.insert(files.end(), asked.files.begin(), asked.files.end());
  return facts_of_each(files);
}

}  // namespace specdec::cli
