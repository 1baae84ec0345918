#include "cli/capacity_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <string_view>

#include "cli/given_options.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"

namespace specdec::cli {
namespace {

void require_workload(const CapacityOptions& o) {
  if (o.question.arrival_rate && o.question.concurrency) {
    throw UsageError("--concurrency is given, but must not be beside --arrival-rate");
  }
  if (o.requests) {
    return refuse_given(
        {{"--prompt-tokens", o.prompt_tokens.has_value()}, {"--output-tokens", o.output_tokens.has_value()}},
        "--requests brings its own lengths");
  }
}

/// Names at once all that no question goes without.
void require_all_named(const CapacityOptions& o) {
  std::vector<std::string_view> missing;
  if (!o.requests && !o.prompt_tokens) missing.push_back("--prompt-tokens MEAN");
  if (!o.requests && !o.output_tokens) missing.push_back("--output-tokens MEAN");
  if (!o.shared.roofline.hardware && o.shared.cost_files.empty() && o.shared.bench.empty())
    missing.push_back("--hardware DEVICE with --model NAME (or --cost or --bench)");
  else if (o.shared.roofline.hardware && !o.shared.model)
    missing.push_back("--model NAME");
  const bool by_times = !o.shared.roofline.hardware && (!o.shared.cost_files.empty() || !o.shared.bench.empty());
  if (by_times && !o.question.kv_cache_tokens)
    missing.push_back("--kv-cache-tokens N, the room for contexts that a server prints");
  if (by_times && !o.shared.bench.empty() && !o.question.prefill_tokens_per_second && !o.question.decode_only)
    missing.push_back("--prefill-tokens-per-second X (or --decode-only), since --bench prices rounds alone");
  if (!missing.empty())
    throw UsageError(fmt::format("missing: {}{}", fmt::join(missing, ", "),
                                 o.requests || o.prompt_tokens ? "" : "; --requests FILE has the lengths of recorded requests"));
}

void require_costs(const CapacityOptions& o) {
  const auto given = names_given({{"--hardware", o.shared.roofline.hardware.has_value()},
                                  {"--cost", !o.shared.cost_files.empty()},
                                  {"--bench", !o.shared.bench.empty()}});
  if (given.size() > 1) throw UsageError(fmt::format("{} are given, but must be one", fmt::join(given, " and ")));
  if (o.shared.roofline.hardware) {
    refuse_given({{"--c", o.shared.cost.c.has_value()},
                  {"--draft-cost", !o.shared.draft_cost_files.empty()},
                  {"--overhead-seconds", o.shared.overhead_seconds.has_value()},
                  {"--prefill-tokens-per-second", o.question.prefill_tokens_per_second.has_value()}},
                 "--hardware prices that");
    refuse_given({{"--kv-cache-tokens", o.question.kv_cache_tokens.has_value()}},
                 "--hardware knows the memory: --gpu-memory-utilization and --activation-reserve-gb say what is free");
    return;
  }
  for (const auto& [name, is_given] : given_beside_hardware(o.shared.roofline)) {
    if (is_given && name != "--tensor-parallel-size") {
      throw UsageError(fmt::format("{} is given, but needs --hardware beside it", name));
    }
  }
  if (!o.shared.bench.empty()) {
    refuse_given({{"--c", o.shared.cost.c.has_value()},
                  {"--draft-cost", !o.shared.draft_cost_files.empty()},
                  {"--overhead-seconds", o.shared.overhead_seconds.has_value()}},
                 "--bench brings its own costs");
  }
}

void require_acceptance(const CapacityOptions& o) {
  const PlanOptions& s = o.shared;
  if (s.states_acceptance() && !s.bench.empty())
    throw UsageError("--bench is given beside another acceptance, but brings its own");
  if (s.states_acceptance() || !s.bench.empty()) {
    if (s.acceptance != "recorded" && s.trace.empty())
      throw UsageError("--acceptance is given, but goes with --trace only");
    return require_consistent_acceptance(s);
  }
  refuse_given({{"--alpha-spread", o.question.alpha_spread.has_value()},
                {"--schedule", !o.question.schedule.empty() && !s.leaves_acceptance_to_draft()},
                {"--at", s.at.has_value()},
                {"--rounds", s.rounds.has_value()},
                {"--conditional", s.conditional},
                {"--acceptance", s.acceptance != "recorded"},
                {"--by", s.by.has_value()},
                {"--mix-by", s.mix_by != "tokens"},
                {"--mix", s.mix.has_value()}},
               "needs an acceptance beside it");
}

/// "1000" or "1000:0.5".
sim::LengthLaw parse_lengths(std::string_view option, const std::string& text) {
  const auto parts = split(text, ':');
  if (parts.size() > 2) refuse(option, text, "MEAN or MEAN:CV");
  sim::LengthLaw law;
  law.mean = parse_number(option, parts[0], {1.0, 1e7});
  if (parts.size() == 2) law.variation = parse_number(fmt::format("CV of {}", option), parts[1], {0.0, 10.0});
  return law;
}

void declare_lengths(Options& options, const std::string& name, std::optional<sim::LengthLaw>& lengths,
                     const std::string& help) {
  options.value(name, "MEAN[:CV]", help, [&lengths](std::string_view option, const std::string& text) {
    lengths = parse_lengths(option, text);
  });
}

/// "0,1,3" or "1-8", rising; 0, plain decoding, is compared anyway.
std::vector<std::int64_t> parse_gammas(const std::string& text) {
  constexpr std::string_view option = "--gamma";
  constexpr auto largest = static_cast<std::int64_t>(planner::capacity_ranges.gamma.hi);
  std::vector<std::int64_t> gammas;
  for (const std::string_view part : split(text, ',')) {
    const auto ends = split(part, '-');
    if (ends.size() > 2) refuse(option, part, "a number or LOW-HIGH");
    const std::int64_t low = parse_integer(option, ends.front(), 0, largest);
    const std::int64_t high = parse_integer(option, ends.back(), low, largest);
    for (std::int64_t gamma = low; gamma <= high; ++gamma) {
      if (!gammas.empty() && gamma <= gammas.back()) refuse(option, text, "a rising list");
      gammas.push_back(gamma);
    }
  }
  gammas.erase(std::remove(gammas.begin(), gammas.end(), 0), gammas.end());
  return gammas;
}

/// With the acceptance of its requests and the hardware that serves them.
void declare_workload(Options& options, CapacityOptions& o) {
  constexpr const planner::CapacityRanges& legal = planner::capacity_ranges;
  options.group("Workload");
  options.number("--arrival-rate,--request-rate,--rps", o.question.arrival_rate, legal.arrival_rate,
                 "requests/s of all replicas [that of --requests; else\nwhat one replica can take is answered]");
  options.integer("--concurrency", o.question.concurrency, legal.concurrency,
                  "instead: clients, each of which sends its next request\nwhen its last one has ended");
  options.number("--outside-ms", o.question.outside_ms, legal.outside_ms,
                 "of each request beside the engine, there and back:\ntransport, tokenizer");
  declare_lengths(options, "--prompt-tokens", o.prompt_tokens, "lengths: mean, standard deviation / mean [0]");
  declare_lengths(options, "--output-tokens", o.output_tokens, "the same");
  options.text("--requests", o.requests, "FILE",
               "requests that arrived: Azure, Mooncake, or a table\n(docs/reference/formats.md)");
  options.number("--prefix-cache-hit-rate", o.question.prefix_cache_hit_rate, legal.prefix_cache_hit_rate,
                 "share of the prompts that is found in the cache");
  options.integer(
      "--shared-prefixes", o.question.shared_prefixes, legal.shared_prefixes,
      "different prefixes that requests of a replica share:\neach is held once [each request holds its own]");
  options.flag("--decode-only", o.question.decode_only, "prompts are computed elsewhere");
  PlanOptions& s = o.shared;
  declare_acceptance(options, s, "at most one of; requests and sequences in files each have their own");
  options.number("--alpha-spread", o.question.alpha_spread, legal.alpha_spread,
                 "standard deviation of a Beta law of the rate over\nrequests, each of which keeps its own");
  declare(options, o.shared.roofline);
}

void declare_models_and_costs(Options& options, CapacityOptions& o) {
  constexpr const planner::CapacityRanges& legal = planner::capacity_ranges;
  PlanOptions& s = o.shared;
  options.group("Models");
  options.text("--model", s.model, "NAME|FILE", "target: a preset, a configuration, or its name in files");
  options.text("--draft-model", s.draft().model, "NAME|FILE", "draft, the same");
  declare_draft_kind(options, s.draft().kind);
  declare_lookups(options, s.draft());
  options.group("Costs (instead of --hardware)");
  options.texts("--cost", s.cost_files, "FILE", "measured times of the target's passes, or engines' logs");
  options.texts("--draft-cost", s.draft_cost_files, "FILE", "the same of the draft; or one model of --cost");
  options.number("-c,--c", s.cost.c, {}, "draft step time / target step time, with --cost");
  options.number("--overhead-seconds", s.overhead_seconds, {}, "other time of a speculative step, with --cost [0]");
  options.texts("--bench", s.bench, "FILE", "benchmark runs: costs and acceptance");
  options.number("--prefill-tokens-per-second", o.question.prefill_tokens_per_second, legal.prefill_tokens_per_second,
                 "speed of prompts [further positions of the same pass]");
}

void declare_deployment(Options& options, CapacityOptions& o) {
  constexpr const planner::CapacityRanges& legal = planner::capacity_ranges;
  options.group("Deployment");
  options.integer("--gpus", o.question.gpus, legal.gpus,
                  "accelerators that there are: finds the layout of --tp,\n--dp, --ep and replicas on them\n[with "
                  "--arrival-rate and no layout as many as it needs]");
  options.integer("--replicas", o.question.replicas, legal.replicas, "how many there are [as many as the load needs]");
  options.number("--price", o.question.price, legal.price, "of a GPU for an hour, in any currency");
}

/// In the group of the deployment.
void declare_engine(Options& options, CapacityOptions& o) {
  constexpr const planner::CapacityRanges& legal = planner::capacity_ranges;
  options.number("--gpu-memory-utilization", o.question.gpu_memory_utilization, legal.gpu_memory_utilization,
                 "share that the engine takes");
  options.number(
      "--activation-reserve-gb", o.question.activation_reserve_gb, legal.activation_reserve_gb,
      "10^9 bytes per GPU of that for activations and buffers\n[by the model's shape, docs/theory.md#memory]");
  options.integer("--kv-cache-tokens", o.question.kv_cache_tokens, legal.kv_cache_tokens,
                  "tokens that a replica's cache holds, without --hardware");
  options.value(
      "--max-num-seqs", "N1,N2,...", "sequences that run together; each is tried",
      [&q = o.question](std::string_view option, const std::string& text) {
        q.max_num_seqs = rising_integers(option, text, 1, static_cast<std::int64_t>(legal.max_num_seqs.hi));
      },
      "256");
  options.integer("--max-num-batched-tokens", o.question.max_num_batched_tokens, legal.max_num_batched_tokens,
                  "positions of an iteration");
  options.flag("--prefill-first", o.question.prefill_first,
               "prompts have iterations of their own, before rounds, as\nin SGLang, and do not share them");
}

/// Declares the scenarios to compare, their limits and the number of runs.
void declare_comparison(Options& options, CapacityOptions& o) {
  constexpr const planner::CapacityRanges& legal = planner::capacity_ranges;
  options.group("Compared with plain decoding");
  options.value("-k,--gamma,--num-speculative-tokens", "G1,G2,...|LOW-HIGH",
                "drafted tokens per step [1-8 with an acceptance]",
                [&q = o.question](std::string_view, const std::string& text) { q.gamma = parse_gammas(text); });
  declare_schedule(options, o.question.schedule, "gammas by batch: 1-64:3,65-128:1,129-512:0");
  options.flag(
      "--verification-budget", o.question.verification_budget,
      "also each with a budget: of the drafts of a batch those\nare verified that make most tokens for their time");
  options.group("Limits");
  options.number("--ttft-ms", o.question.ttft_ms, legal.ttft_ms, "time to first token, at the percentile");
  options.number("--tpot-ms", o.question.tpot_ms, legal.tpot_ms, "time per output token after it, at the percentile");
  options.number("--percentile", o.question.percentile, legal.percentile, "of the requests");
  options.group("Simulation");
  options.integer("--replications", o.question.replications, legal.replications, "independent runs behind each figure");
  options.integer("--num-requests", o.question.workload.requests, legal.num_requests,
                  "requests of a run [1000; with --concurrency 10 for each\nof a replica's clients]");
  options.integer("--seed", o.question.seed, legal.seed, "seed of all random numbers");
  options.integer("--threads", o.question.threads, legal.threads, "threads; results do not depend on them");
}

}  // namespace

bool CapacityOptions::knows_acceptance() const {
  return shared.states_acceptance() || !shared.bench.empty() || shared.leaves_acceptance_to_draft();
}

void declare(Options& options, CapacityOptions& o) {
  declare_workload(options, o);
  declare_models_and_costs(options, o);
  declare_deployment(options, o);
  declare_engine(options, o);
  declare_comparison(options, o);
  options.footer(
      "Examples:\n"
      "  specdec capacity --hardware h100-sxm --tp 4 --model llama-3.3-70b --draft-model llama-3.2-1b \\\n"
      "    --alpha 0.7 --arrival-rate 20 --prompt-tokens 1000:0.5 --output-tokens 250:0.5 --tpot-ms 40\n"
      "  specdec capacity --bench results/*.json --prefill-tokens-per-second 20000 --kv-cache-tokens 400000 \\\n"
      "    --requests AzureLLMInferenceTrace_conv.csv --ttft-ms 1000");
  options.shown_first({"--hardware", "--tp", "--model", "--draft-model", "--alpha", "--counters", "--bench",
                       "--prompt-tokens", "--output-tokens", "--requests", "--arrival-rate", "--concurrency", "--gpus",
                       "--ttft-ms", "--tpot-ms", "--price"});
}

void require_consistent(const CapacityOptions& o) {
  require_all_named(o);
  require_workload(o);
  require_costs(o);
  require_acceptance(o);
  if (!o.question.ttft_ms && !o.question.tpot_ms)
    refuse_given({{"--percentile", o.question.percentile != planner::CapacityQuestion().percentile}},
                 "needs a limit beside it, --ttft-ms or --tpot-ms");
}

}  // namespace specdec::cli
