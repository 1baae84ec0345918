#include "planner/benchmark_command.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "analysis/planning/served_model.hpp"

namespace specdec::planner {

using planning::Engine;

std::string served_name(Engine engine, const std::string& name) {
  const planning::ServedModel served = planning::served_model(engine, name);
  return served.name.empty() ? name : served.name;
}

std::string server_setting(Engine engine, const planning::NextMeasurement& next, cost::DraftKind kind) {
  if (next.gamma == 0) return "without speculation";
  // SGLang counts the token before the drafts, too, and takes the options of a chain together or not at all.
  const cost::DraftTree shape = next.tree.value_or(cost::DraftTree{next.gamma, 1, next.gamma + 1});
  const bool looked_up = engine == Engine::sglang && cost::looks_up(kind);
  const std::string setting =
      looked_up                               ? fmt::format("--speculative-num-draft-tokens {}", shape.verified)
      : next.tree || engine == Engine::sglang ? fmt::format(
                                                    "--speculative-num-steps {} --speculative-eagle-topk {} "
                                                    "--speculative-num-draft-tokens {}",
                                                    shape.depth, shape.top_k, shape.verified)
      : engine == Engine::llamacpp
          ? fmt::format("--spec-{}-n-max {}", cost::looks_up(kind) ? "ngram-mod" : "draft", next.gamma)
      : engine == Engine::trtllm ? fmt::format("max_draft_len {}", next.gamma)
                                 : fmt::format("num_speculative_tokens {}", next.gamma);
  return fmt::format("with {}{}", setting, next.with_baseline ? ", and once without speculation" : "");
}

Engine engine_of(const Plan& plan) { return planning::engine_or_vllm(plan.engine.value_or("")); }

PromptLengths lengths_around(double context) {
  constexpr double usual_output = 256;
  const double output = std::min(usual_output, std::floor(context));
  return {std::max(1.0, context - output / 2), output};
}

std::string benchmark_command(const Plan& plan, const planning::NextMeasurement& next) {
  const Engine engine = engine_of(plan);
  const bool has_length = plan.has_roofline() && next.context >= 2;
  return benchmark_command(engine, served_name(engine, plan.target_model), next,
                           has_length ? std::optional(lengths_around(next.context)) : std::nullopt);
}

std::string next_run_command(const Plan& plan) {
  const planning::NextRun run = plan.next_run().value();
  const planning::NextMeasurement next = {run.gamma, run.batch, run.context};
  const Engine engine = engine_of(plan);
  std::optional<PromptLengths> lengths;
  if (has_several_contexts(plan)) {
    const auto& runs = plan.bench->runs;
    const auto nearest = std::min_element(runs.begin(), runs.end(), [&](const auto& a, const auto& b) {
      return std::abs(a.context - next.context) < std::abs(b.context - next.context);
    });
    lengths = PromptLengths{nearest->input_tokens, nearest->output_tokens};
  }
  return benchmark_command(engine, served_name(engine, plan.target_model), next, lengths);
}

std::string benchmark_command(Engine engine, std::string_view asked_model, const planning::NextMeasurement& next,
                              const std::optional<PromptLengths>& lengths) {
  const std::string_view model = asked_model.empty() ? "MODEL" : asked_model;
  // A mean of 1.003 sequences was measured with one request in flight.
  constexpr double measured_above = 0.05;
  const auto concurrency = static_cast<std::int64_t>(std::max(1.0, std::ceil(next.batch - measured_above)));
  const std::int64_t requests = 8 * concurrency;
  const std::string prompts = lengths ? fmt::format("PROMPTS_OF_{:.0f}_TOKENS", lengths->prompt) : "PROMPTS";
  const std::string path = " --dataset-name custom --dataset-path " + prompts;
  const std::string output = lengths ? fmt::format("{:.0f}", lengths->output) : "";
  if (engine == Engine::sglang) {
    return fmt::format(
        "python -m sglang.bench_serving --model {}{}{} --num-prompts {} --max-concurrency {} --output-file run.jsonl",
        model, path, output.empty() ? "" : " --sharegpt-output-len " + output, requests, concurrency);
  }
  if (engine == Engine::trtllm) {
    return fmt::format(
        "python -m tensorrt_llm.serve.scripts.benchmark_serving --model {} --dataset-name trtllm_custom "
        "--dataset-path {} --num-prompts {} --max-concurrency {} --save-result",
        model, prompts, requests, concurrency);
  }
  if (engine == Engine::llamacpp) {
    return fmt::format(
        "python tools/server/bench/speed-bench/speed_bench.py --bench qualitative --concurrency {} --output run.json",
        concurrency);
  }
  return fmt::format("vllm bench serve --model {}{}{} --num-prompts {} --max-concurrency {} --save-result", model, path,
                     output.empty() ? "" : " --custom-output-len " + output, requests, concurrency);
}

}  // namespace specdec::planner
