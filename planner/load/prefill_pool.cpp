#include "planner/load/prefill_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/core/parsed_number.hpp"
#include "analysis/cost/link_presets.hpp"
#include "analysis/planning/kv_memory.hpp"
#include "planner/near_names.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

constexpr std::string_view node_link = "link";

/// Bytes/s of one accelerator.
double link_bytes_per_second(const std::string& name, const cost::HardwareSpec& hardware) {
  if (name == node_link && hardware.link_bytes_per_second) return hardware.link_bytes_per_second->value;
  if (const cost::LinkSpec* const preset = cost::link_preset(name)) return preset->bytes_per_second.value;
  constexpr LegalRange gigabytes = {.lo = 1e-3, .hi = 1e5};
  const std::optional<double> stated = core::parsed_number(name);
  if (stated && gigabytes.contains(*stated)) return *stated * bytes_per_gigabyte;
  std::vector<std::string> known = {std::string(node_link)};
  for (const cost::LinkSpec& link : cost::link_presets()) known.push_back(link.name);
  refuse("--kv-link", name,
         fmt::format("GB/s of one accelerator in [0.001, 100000], or one of {}{}", fmt::join(known, ", "),
                     near_names(name, known)));
}

Layout layout_of(const PrefillQuestion& asked, const cost::PlacedModel& decoding) {
  Layout layout = planner::layout_of(decoding);
  layout.tensor_parallel = asked.tensor_parallel.value_or(layout.tensor_parallel);
  layout.data_parallel = asked.data_parallel.value_or(layout.data_parallel);
  layout.expert_parallel = asked.expert_parallel.value_or(std::min(layout.expert_parallel, layout.accelerators()));
  return layout;
}

/// Milliseconds that are left of the limit.
double time_for_prompts(const Capacity& decoding, double transfer_seconds) {
  const CapacityQuestion& q = decoding.question;
  const auto& first = decoding.scenarios()[decoding.shown()].ttft_seconds;
  const double beside = 1000 * (transfer_seconds + (first ? first->asked.value : 0.0));
  if (beside < *q.ttft_ms) return *q.ttft_ms - beside;
  refuse("--ttft-ms", brief(*q.ttft_ms),
         fmt::format("above {}, which the way of the caches and the first round take", brief(beside, 3)));
}

CapacityQuestion prompts_of(const Capacity& decoding, double transfer_seconds) {
  CapacityQuestion q = decoding.question;
  const sim::CapacityScenario& shown = decoding.scenarios()[decoding.shown()].scenario;
  q.prefill.reset();
  q.gpus.reset();
  q.replicas.reset();
  q.decode_only = false;
  q.schedule.clear();
  q.gamma = {std::max<std::int64_t>(0, shown.engine.schedule.back().gamma)};
  q.max_num_seqs = {decoding.question.max_num_seqs.front()};
  q.tpot_ms.reset();
  if (q.ttft_ms) q.ttft_ms = time_for_prompts(decoding, transfer_seconds);
  q.workload.output_tokens = {.mean = 1};
  for (sim::SimulatedRequest& request : q.workload.recorded) request.output_tokens = 1;
  q.arrival_rate = pool_requests_per_second(decoding);
  return q;
}

double mean_prompt(const sim::Workload& workload) {
  if (workload.recorded.empty()) return workload.prompt_tokens.mean;
  double sum = 0;
  for (const sim::SimulatedRequest& request : workload.recorded) sum += static_cast<double>(request.prompt_tokens);
  return sum / static_cast<double>(workload.recorded.size());
}

double cache_bytes(const cost::PlacedModel& placed, double tokens) {
  return cost::cache_bytes(placed.model, tokens, cost::stored_bits(placed.cache_type) / 8);
}

}  // namespace

BothPools both_pools(const Capacity& capacity) {
  BothPools both;
  const sim::ScenarioCapacity& decoding = capacity.scenarios()[capacity.shown()];
  const sim::ScenarioCapacity& prompts = capacity.prefill->scenario();
  if (decoding.ttft_seconds && prompts.ttft_seconds) {
    both.ttft_seconds =
        prompts.ttft_seconds->asked.value + capacity.prefill->transfer_seconds + decoding.ttft_seconds->asked.value;
  }
  const std::vector<std::optional<sim::GpuRange>>& ranges = capacity.range.gpus;
  const std::optional<sim::GpuRange> of_decoding = ranges.empty() ? std::nullopt : ranges[capacity.shown()];
  const std::vector<std::optional<sim::GpuRange>>& prompt_ranges = capacity.prefill->range.gpus;
  const std::optional<sim::GpuRange> of_prompts = prompt_ranges.empty() ? std::nullopt : prompt_ranges.front();
  if (of_decoding && of_prompts) {
    both.gpu_range = sim::GpuRange{of_decoding->lo + of_prompts->lo, of_decoding->hi + of_prompts->hi,
                                   of_decoding->some_never || of_prompts->some_never};
  }
  if (!decoding.gpus || !prompts.gpus || !(decoding.gpu_seconds_per_token > 0)) return both;
  both.gpus = *decoding.gpus + *prompts.gpus;
  // The pool that decodes serves that load; the other takes the same.
  both.gpu_seconds_per_token =
      decoding.gpu_seconds_per_token * (static_cast<double>(*both.gpus) / static_cast<double>(*decoding.gpus));
  if (capacity.question.price)
    both.cost_per_million_tokens = *capacity.question.price / 3600 * *both.gpu_seconds_per_token * 1e6;
  return both;
}

double pool_requests_per_second(const Capacity& decoding) {
  const auto& asked = decoding.simulation.workload.requests_per_second;
  return asked ? *asked : decoding.scenarios()[decoding.shown()].at_requests_per_second;
}

PrefillPool prefill_pool(const std::optional<Acceptance>& acceptance, const Cost& cost, const Capacity& decoding,
                         const core::RunHooks& hooks) {
  const PrefillQuestion& asked = *decoding.question.prefill;
  const cost::RooflineOptions& placed = cost.roofline->options();
  const bool drafts = !sim::is_plain(decoding.scenarios()[decoding.shown()].scenario) && placed.draft;
  PrefillPool pool;
  pool.layout = layout_of(asked, placed.target);
  pool.link = asked.link;
  pool.link_bytes_per_second = link_bytes_per_second(asked.link, placed.hardware);
  const double prompt = mean_prompt(decoding.simulation.workload);
  pool.cache_bytes = cache_bytes(placed.target, prompt) + (drafts ? cache_bytes(*placed.draft, prompt) : 0.0);
  // One group of accelerators computes a prompt, one keeps its cache.
  const std::int64_t pairs = std::min(pool.layout.tensor_parallel, placed.target.tensor_parallel);
  pool.transfer_seconds = pool.cache_bytes / (static_cast<double>(pairs) * pool.link_bytes_per_second);

  const std::optional<Acceptance> of_prompts = drafts ? acceptance : std::nullopt;
  CapacityQuestion question = prompts_of(decoding, pool.transfer_seconds);
  if (!drafts) question.gamma = std::vector<std::int64_t>{};
  sim::CapacityQuestion simulation = asked_capacity(of_prompts, in_layout(cost, pool.layout), question).simulation;
  simulation.scenarios = {simulation.scenarios.back()};
  pool.range.answer = sim::plan_capacity(simulation, {{}, hooks.interrupt});
  if (pool.range.answer.interrupted) throw QuestionError("interrupted before the prompts' pool was simulated");
  pool.range = sim::over_versions(simulation, std::move(pool.range.answer), {}, {{}, hooks.interrupt});
  return pool;
}

}  // namespace specdec::planner
