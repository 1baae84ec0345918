#include <fmt/format.h>
#include <algorithm>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/trace_output.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "sim/synthetic_traces.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using nlohmann::ordered_json;

struct GenerateOptions {
  std::string law = "beta";
  std::optional<double> alpha;
  std::optional<std::string> tasks;
  std::optional<double> concentration;
  std::optional<std::string> betas;
  std::optional<std::string> stay;
  std::optional<std::int64_t> vocab;
  sim::SyntheticOptions size;
  std::int64_t seed = 1;
  std::int64_t threads = default_threads();
  TierChoice tier;
  TraceOutput output;
};

constexpr double least_dirichlet_sum = 1e-6;

/// An option that says nothing about the chosen law is a mistake.
void require_of_law(const GenerateOptions& o) {
  const struct {
    std::string_view name;
    bool given;
    std::vector<std::string_view> laws;
  } uses[] = {{"--alpha", o.alpha.has_value(), {"beta", "logit-noise", "dirichlet"}},
              {"--tasks", o.tasks.has_value(), {"beta", "logit-noise", "dirichlet"}},
              {"--concentration", o.concentration.has_value(), {"beta", "dirichlet"}},
              {"--betas", o.betas.has_value(), {"markov"}},
              {"--stay", o.stay.has_value(), {"markov"}},
              {"--vocab", o.vocab.has_value(), {"logit-noise", "dirichlet"}}};
  for (const auto& [name, given, laws] : uses) {
    if (given && std::find(laws.begin(), laws.end(), o.law) == laws.end())
      throw UsageError(fmt::format("{} is given, but goes with --law {} only", name, fmt::join(laws, " or ")));
  }
  if (o.alpha && o.tasks) throw UsageError("--alpha and --tasks are both given, but --tasks names the alphas");
}

template <class Law>
Law pair_law(const GenerateOptions& o, double alpha) {
  Law law;
  law.alpha = alpha;
  law.vocab = o.vocab.value_or(law.vocab);
  return law;
}

sim::SyntheticLaw law_of(const GenerateOptions& o, double alpha) {
  if (o.law == "beta")
    return sim::BetaLaw{.alpha = alpha,
                        .concentration = o.concentration.value_or(sim::BetaLaw{}.concentration)};
  if (o.law == "markov") {
    sim::MarkovLaw law;
    if (o.betas) law.betas = parse_numbers("--betas", *o.betas, {.lo = 0, .hi = 1});
    if (o.stay) law.stay = parse_numbers("--stay", *o.stay, {.lo = 0, .hi = 1});
    if (law.betas.size() != law.stay.size() || law.betas.size() < 2)
      throw UsageError(
          fmt::format("--betas has {} and --stay {} entries, but both must have one for each state, 2 or "
                      "more",
                      law.betas.size(), law.stay.size()));
    return law;
  }
  if (o.law == "dirichlet") {
    auto law = pair_law<sim::DirichletLaw>(o, alpha);
    law.concentration = o.concentration.value_or(law.concentration);
    if (law.concentration < least_dirichlet_sum)
      refuse("--concentration", fmt::format("{}", law.concentration),
             fmt::format("a number in [{}, 1000000000] for --law dirichlet", least_dirichlet_sum));
    return law;
  }
  return pair_law<sim::LogitNoiseLaw>(o, alpha);
}

std::vector<sim::SyntheticTask> tasks_of(const GenerateOptions& o) {
  constexpr double usual_alpha = 0.8;
  if (!o.tasks) return {{"", law_of(o, o.alpha.value_or(usual_alpha))}};
  std::vector<sim::SyntheticTask> tasks;
  for (const std::string_view part : split(*o.tasks, ',')) {
    const std::size_t colon = part.rfind(':');
    if (colon == std::string_view::npos || colon == 0) refuse("--tasks", part, "NAME:ALPHA");
    const auto same = [&](const sim::SyntheticTask& task) { return task.name == part.substr(0, colon); };
    if (std::any_of(tasks.begin(), tasks.end(), same))
      refuse("--tasks", *o.tasks, fmt::format("each task once; {} is there twice", part.substr(0, colon)));
    const double alpha = parse_number("--tasks", part.substr(colon + 1), {.lo = 0, .hi = 1});
    tasks.push_back({std::string(part.substr(0, colon)), law_of(o, alpha)});
  }
  return tasks;
}

ordered_json tasks_json(const traces::TraceMetadata& metadata) {
  ordered_json tasks = ordered_json::array();
  const auto row = [&](const ordered_json& name, const std::string& suffix) {
    return ordered_json{{"task", name},
                        {"law", metadata.other.at("truth.law" + suffix)},
                        {"alpha", std::stod(metadata.other.at("truth.alpha" + suffix))}};
  };
  for (const std::string& name : metadata.task_names) tasks.push_back(row(name, '.' + name));
  if (tasks.empty()) tasks.push_back(row(nullptr, ""));
  return tasks;
}

Report run(const GenerateOptions& chosen, const Options& options) {
  require_k_of_tier(options, chosen.tier.tier);
  GenerateOptions o = chosen;
  o.output.require_path();
  require_of_law(o);
  o.size.seed = static_cast<std::uint64_t>(o.seed);
  o.size.threads = o.tier.threads = o.threads;
  const auto source = sim::synthetic_trace(tasks_of(o), o.size);
  const bool scalar_law = o.law == "beta" || o.law == "markov";
  if (scalar_law && o.tier.tier != "same" && o.tier.tier != "scalar")
    refuse("--tier", o.tier.tier, fmt::format("scalar, which is all that --law {} gives", o.law));
  traces::TraceWriter writer = o.output.open(source->metadata(), {.expected_positions = source->positions()});
  Report report =
      report_of(copy_trace(*source, writer, o.tier.conversion(), progress_line("writing", options.quiet())), o.output);
  report.json.erase("rows");
  report.json["alpha"] = std::stod(source->metadata().other.at("truth.alpha"));
  report.json["tasks"] = tasks_json(source->metadata());
  std::string& text = report.spoken.note;
  text = fmt::format("\nThe true alpha is {}.\n", brief(report.json["alpha"].get<double>(), 10));
  for (const ordered_json& task : report.json["tasks"]) {
    if (task["task"].is_string()) text += task["task"].get<std::string>() + ": ";
    text += task["law"].get<std::string>() + '\n';
  }
  return report;
}

void declare_generation(Options& options, GenerateOptions& o) {
  o.output.declare(options);
  options.group("Law");
  options.choice("--law", o.law, {"beta", "markov", "logit-noise", "dirichlet"},
                 "of the acceptance: independent betas, sticky ones, or whole distributions");
  options.number("--alpha", o.alpha, {.lo = 0, .hi = 1}, "mean acceptance (default: 0.8)");
  options.text("--tasks,--task", o.tasks, "LIST", "NAME:ALPHA,...: sequences of several tasks in turn");
  options.number("--concentration", o.concentration, {.lo = 0, .hi = 1e9},
                 "beta: sum of the shapes (default: 10; 0 for betas of 0 and 1); dirichlet: sum of the "
                 "parameters (default: 8)");
  options.text("--betas", o.betas, "LIST", "markov: beta of each state (default: 0.9,0.3)");
  options.text("--stay", o.stay, "LIST", "markov: chance to stay in each state (default: 0.9,0.8)");
  options.integer("--vocab", o.vocab, {.lo = 2, .hi = 1 << 24}, "logit-noise, dirichlet: tokens (default: 1024)");
  options.group("Size");
  options.integer("--sequences", o.size.sequences, {.lo = 1, .hi = std::int64_t{1} << 40U}, "texts");
  options.integer("--tokens", o.size.tokens, {.lo = 1, .hi = std::int64_t{1} << 32U}, "tokens of each text");
  options.choice("--tier", o.tier.tier, {"same", "full", "topk", "scalar"},
                 "how much of each position to keep; same is all that the law gives");
  options.integer("--k", o.tier.k, {.lo = 1, .hi = 1'000'000}, "tokens that --tier topk keeps");
  options.integer("--seed", o.seed, {.hi = unbounded}, "seed of all random numbers");
  options.integer("--threads", o.threads, {.lo = 1, .hi = 1024}, "threads; the trace is the same");
  options.footer(
      "specdec trace generate --law markov --tokens 100000 --output sticky.safetensors\n"
      "specdec trace generate --tasks easy:0.9,hard:0.5 --output mixture\n"
      "specdec trace generate --law logit-noise --alpha 0.7 --vocab 32000 --output full");
}

}  // namespace

Command trace_generate_command() {
  return {"trace generate",
          "Write a synthetic trace whose true alpha and law are known",
          {{"tasks", "/tasks"}},
          setup_of<GenerateOptions>(run, declare_generation),
          true};
}

}  // namespace specdec::cli
