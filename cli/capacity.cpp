#include "cli/capacity.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "cli/capacity_answer.hpp"
#include "cli/capacity_question.hpp"
#include "cli/plan_deployment.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/text.hpp"

namespace specdec::cli {
namespace {

/// The simulated percentile that a limit is on; nothing where it is none of those that are kept.
std::optional<double> limited_percentile(const std::optional<sim::SimulatedPercentiles>& percentiles,
                                         double percentile) {
  if (!percentiles) return std::nullopt;
  if (percentile == 50) return percentiles->p50.value;
  if (percentile == 90) return percentiles->p90.value;
  return percentile == 99 ? std::optional(percentiles->p99.value) : std::nullopt;
}

/// Where the recommended scenario's load is within the simulation's error of the largest one.
void warn_of_edge(const CapacityReport& r, std::vector<Warning>& warnings) {
  if (!r.asks_for_load() || !r.answer().recommended) return;
  const sim::ScenarioCapacity& s = r.scenarios()[*r.answer().recommended];
  const sim::CapacityLimits& limits = r.question.limits;
  const auto check = [&](std::string_view what, const auto& percentiles, const std::optional<double>& limit) {
    const std::optional<double> found = limited_percentile(percentiles, limits.percentile);
    if (!limit || !found || *found <= *limit) return;
    warnings.push_back(
        {"load_within_error_of_limit",
         fmt::format("{} of {} is {} ms at p{} of all runs' requests, above its limit: the load is so close to the "
                     "largest one that some runs take it and others do not; more --replications or --num-requests tell",
                     what, s.scenario.name, brief(1000 * *found), brief(limits.percentile))});
  };
  check("time to first token", s.ttft_seconds, limits.ttft_seconds);
  check("time per output token", s.tpot_seconds, limits.tpot_seconds);
}

void add_warnings(const CapacityReport& r, std::vector<Warning>& warnings) {
  const auto explain_null = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message), true});
  };
  if (!r.answer().recommended) {
    warnings.push_back({"no_scenario_meets_the_limits",
                        r.has_limits() ? "no scenario meets the limits at any load, or at the load asked for"
                                       : "no scenario takes the load asked for"});
  }
  warn_of_edge(r, warnings);
  if (r.answer().recommended && r.is_extrapolated(*r.answer().recommended)) {
    warnings.push_back(
        {"optimum_extrapolated",
         fmt::format("{} drafts beyond gamma {}, the longest draft that was measured, of which "
                     "its intervals know nothing; --gamma 1-{} compares what was measured",
                     r.scenarios()[*r.answer().recommended].scenario.name, r.measured_gamma, r.measured_gamma)});
  } else if (r.answer().passed_over) {
    warnings.push_back(
        {"measured_preferred",
         fmt::format(
             "{} would do with less, or be faster, if acceptance goes on as before beyond gamma {}, the longest "
             "draft that was measured, but by no more than {}; the best one that was measured is taken",
             r.scenarios()[*r.answer().passed_over].scenario.name, r.measured_gamma,
             percent(r.question.prefer_measured))});
  } else if (r.has_extrapolated()) {
    warnings.push_back(
        {"extrapolated", fmt::format("gammas above {}, the longest draft that was measured, rest on an acceptance that "
                                     "goes on as before, of which their intervals know nothing",
                                     r.measured_gamma)});
  }
  if (r.options.schedule) {
    const planning::ScheduleStretch last = parse_schedule(*r.options.schedule).back();
    const std::int64_t batches = r.question.scenarios.back().engine.max_num_seqs;
    if (last.batch_high < batches) {
      warnings.push_back(
          {"schedule_goes_on", fmt::format("--schedule ends at batch {}; its last gamma, {}, is taken up "
                                           "to batch {}, too",
                                           last.batch_high, last.gamma, batches)});
    }
  }
  if (r.acceptance.empty()) explain_null("no_acceptance", "nothing is drafted: no acceptance is given");
  if (!r.options.price) explain_null("no_price", "cost_per_million_tokens is null without --price");
  if (!r.question.watts_per_gpu) explain_null("no_power", "joules_per_token is null without --watts-per-gpu");
  const sim::ScenarioCapacity& shown = r.scenarios()[r.shown()];
  if (!shown.steady) {
    explain_null("no_steady_state", "engines_agree is null where the formulas have no equilibrium at the load shown");
  }
}

Report run(const CapacityOptions& o) {
  CapacityInputs inputs;
  CapacityReport r = asked_capacity(o, inputs);
  r.range = sim::over_versions(r.question, sim::plan_capacity(r.question), r.acceptance_ends);

  Report report;
  add_warnings(r, inputs.warnings);
  report.json = json_of(r);
  report.text = text_of(r);
  report.files = file_facts_of(inputs);
  report.assumptions = std::move(inputs.assumptions);
  report.warnings = std::move(inputs.warnings);
  report.presets = std::move(inputs.presets);
  report.exit_code = r.answer().recommended ? success : check_failed;
  return report;
}

}  // namespace

std::optional<std::int64_t> gamma_of(const sim::CapacityScenario& scenario) {
  const auto& schedule = scenario.engine.schedule;
  const std::int64_t gamma = schedule.front().gamma;
  const bool one = std::all_of(schedule.begin(), schedule.end(),
                               [gamma](const sim::GammaFrom& stretch) { return stretch.gamma == gamma; });
  return one ? std::optional(gamma) : std::nullopt;
}

bool CapacityReport::has_extrapolated() const {
  return std::any_of(scenarios().begin(), scenarios().end(),
                     [](const sim::ScenarioCapacity& s) { return s.scenario.extrapolated; });
}

std::optional<sim::CapacityDoubt> CapacityReport::doubt() const {
  auto found = sim::capacity_doubt(question, range, shown());
  const bool is_done = found && found->source == planning::UncertaintySource::cost && calibrated.value_or(false);
  return is_done ? std::nullopt : found;
}

std::string command_for(const CapacityReport& r, const sim::CapacityDoubt& doubt) {
  // Random prompts say nothing of acceptance.
  std::optional<PromptLengths> lengths;
  const sim::Workload& workload = r.question.workload;
  if (doubt.source == planning::UncertaintySource::cost && workload.recorded.empty()) {
    lengths = PromptLengths{workload.prompt_tokens.mean, workload.output_tokens.mean};
  }
  return command_for(r.engine, r.served_model, doubt.next, lengths);
}

std::size_t CapacityReport::plain() const {
  std::size_t best = 0;
  for (std::size_t i = 0; i < scenarios().size(); ++i) {
    if (!sim::is_plain(scenarios()[i].scenario)) continue;
    const sim::ScenarioCapacity& a = scenarios()[i];
    const sim::ScenarioCapacity& b = scenarios()[best];
    const auto gpus = [](const sim::ScenarioCapacity& s) {
      return s.meets_load && s.gpus ? *s.gpus : std::numeric_limits<std::int64_t>::max();
    };
    const bool better = gpus(a) != gpus(b)
                            ? gpus(a) < gpus(b)
                            : a.requests_per_second_per_replica.value > b.requests_per_second_per_replica.value;
    if (better) best = i;
  }
  return best;
}

Command capacity_command() {
  return {"capacity",
          "How much load a deployment takes, and how many GPUs a load needs",
          {{"scenarios", "/scenarios"},
           {"schedules", "/scenarios/*/schedule", {"name", "max_num_seqs"}},
           {"frontier", "/frontier"}},
          [](Options& options) {
            const auto chosen = std::make_shared<CapacityOptions>();
            chosen->threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);
            declare(options, *chosen);
            return std::function<Report()>([chosen] { return run(*chosen); });
          }};
}

}  // namespace specdec::cli
