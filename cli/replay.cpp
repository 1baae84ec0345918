#include "cli/replay.hpp"

#include <fmt/format.h>
#include <memory>
#include <thread>
#include <vector>

#include "analysis/estimate/observe.hpp"
#include "analysis/planning/replay_columns.hpp"
#include "analysis/theory/policy_replay.hpp"
#include "analysis/theory/streaming_replay.hpp"
#include "cli/acceptance_options.hpp"
#include "cli/progress.hpp"
#include "cli/trace_input.hpp"
#include "cli/usage_error.hpp"
#include "planner/sources/recording_files.hpp"
#include "render/table.hpp"
#include "render/text.hpp"
#include "sim/replay_simulation.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using nlohmann::ordered_json;

/// Rounds beyond these are counted, but not listed.
constexpr std::size_t most_listed_rounds = 100'000;

struct ReplayOptions {
  TraceInput input;
  std::int64_t gamma = 5;
  std::string policy = "fixed";
  std::optional<double> threshold;
  AcceptanceOptions acceptance;
  std::int64_t seed = 1;
  bool steps = false;
  std::int64_t threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);
};

sim::ReplayedPolicy policy_of(const ReplayOptions& o) {
  if (o.policy == "fixed" && o.threshold)
    throw UsageError("--threshold is given, but goes with --policy threshold or product only");
  if (o.policy != "fixed" && !o.threshold)
    throw UsageError(fmt::format("--policy {} needs --threshold, a probability", o.policy));
  const sim::DraftPolicy policy = o.policy == "threshold" ? sim::DraftPolicy::threshold
                                  : o.policy == "product" ? sim::DraftPolicy::product
                                                          : sim::DraftPolicy::fixed;
  return {.gamma = o.gamma, .policy = policy, .threshold = o.threshold.value_or(0)};
}

theory::DraftingLimit limit_of(const sim::ReplayedPolicy& policy) {
  theory::DraftingLimit limit{.gamma = policy.gamma};
  if (policy.policy == sim::DraftPolicy::threshold) limit.token_threshold = policy.threshold;
  if (policy.policy == sim::DraftPolicy::product) limit.product_threshold = policy.threshold;
  return limit;
}

estimate::ObserveOptions observe_options(const ReplayOptions& o) {
  estimate::ObserveOptions options;
  options.rule = o.acceptance.rules().acceptance;
  options.assume_processed = o.acceptance.assume_processed;
  options.threads = o.threads;
  return options;
}

/// The simulation and the exact law over the same acceptances.
struct PlayedRun {
  PlayedRun(const sim::ReplayedPolicy& policy, std::uint64_t seed, sim::ReplaySimulation::OnRound on_round)
      : simulation(policy, seed, std::move(on_round)), exact(limit_of(policy)) {}

  void add(const estimate::Observations& seen, std::span<const double> acceptance, std::int64_t depths) {
    simulation.add({.sequence = seen.sequence,
                    .place = seen.place,
                    .acceptance = acceptance,
                    .depths = depths,
                    .draft_probability = seen.draft_token_probability});
    exact.add(seen.sequence, acceptance, depths, seen.draft_token_probability);
  }

  /// The same run so far, of whose rounds nobody hears.
  PlayedRun unheard() const {
    PlayedRun run = *this;
    run.simulation.on_round({});
    return run;
  }

  sim::ReplaySimulation simulation;
  theory::PolicyReplay exact;
};

struct Played {
  traces::AcceptanceRule rule = traces::AcceptanceRule::rejection;
  /// One run, or one at each end of the brackets where acceptance is not known exactly.
  std::optional<PlayedRun> lower;
  std::optional<PlayedRun> upper;
  std::vector<sim::ReplayedRound> rounds;
};

void require_replayable(const traces::TraceMetadata& metadata, const ReplayOptions& o) {
  if (metadata.path != traces::TextSource::other || o.acceptance.force_replay) return;
  throw UsageError(
      "the text is not the target's own (path is other), and only such a text can be replayed; "
      "--force-replay does it all the same");
}

void require_probabilities(const estimate::Observations& seen, const ReplayOptions& o) {
  if (o.policy == "fixed" || !seen.draft_token_probability.empty()) return;
  throw UsageError(
      fmt::format("--policy {} needs the draft's probability of each token, which the recording does not "
                  "hold",
                  o.policy));
}

void play(traces::PositionSource& source, const ReplayOptions& o, const Progress& progress, Report& report,
          Played& played) {
  const sim::ReplayedPolicy policy = policy_of(o);
  const auto seed = static_cast<std::uint64_t>(o.seed);
  require_replayable(source.metadata(), o);
  estimate::Observer observer(source.metadata(), observe_options(o));
  played.rule = observer.rule();
  std::optional<planning::ReplayColumns> columns;
  played.lower.emplace(policy, seed, [&](const sim::ReplayedRound& round) {
    if (o.steps && played.rounds.size() < most_listed_rounds) played.rounds.push_back(round);
  });
  traces::PositionBatch batch;
  while (source.read(batch)) {
    const estimate::Observations seen = observer.observe(source, batch);
    if (!columns) columns.emplace(observer.replayed_depths(source.depths(), std::max<std::int64_t>(1, o.gamma)));
    if (!columns->take(seen)) throw UsageError(planning::nothing_of_acceptance(planning::lacks_tokens(batch)));
    require_probabilities(seen, o);
    if (!columns->exact() && !played.upper) played.upper = played.lower->unheard();
    played.lower->add(seen, columns->lower(), columns->depths());
    if (played.upper) played.upper->add(seen, columns->highest(), columns->depths());
    planner::tell_of_reading(progress, source, batch);
  }
  if (!columns) throw UsageError("the recording holds no position");
  planner::require_drafted(columns->longest_draft(), o.gamma);
  played.lower->simulation.finish();
  if (played.upper) played.upper->simulation.finish();
  append(report.warnings, observer.notes());
  if (const auto note = columns->depth_held(o.gamma)) report.warnings.push_back(*note);
}

/// Drafted tokens, a bracket where a policy's end is not recorded.
ordered_json count_json(std::int64_t least, std::int64_t most) {
  return {{"value", least == most ? ordered_json(least) : ordered_json()}, {"bounds", {least, most}}};
}

ordered_json run_json(const PlayedRun& run, const std::string& end) {
  const sim::ReplayCounters& c = run.simulation.counters();
  const auto tokens = static_cast<double>(c.tokens);
  return {{"acceptance", end},
          {"sequences", c.sequences},
          {"tokens", c.tokens},
          {"steps", c.rounds},
          {"expected_steps", run.exact.expected_steps()},
          {"accepted", c.accepted},
          {"drafted", count_json(c.drafted_least, c.drafted_most)},
          {"tokens_per_step", tokens / static_cast<double>(c.rounds)},
          {"expected_tokens_per_step", tokens / run.exact.expected_steps()}};
}

ordered_json positions_json(const sim::ReplayCounters& c) {
  ordered_json rows = ordered_json::array();
  for (std::size_t j = 0; j < c.examined_at.size(); ++j) {
    const auto accepted = static_cast<double>(c.accepted_at[j]);
    rows.push_back({{"position", j + 1},
                    {"examined", c.examined_at[j]},
                    {"accepted", c.accepted_at[j]},
                    {"unconditional", accepted / static_cast<double>(c.rounds)},
                    {"conditional", accepted / static_cast<double>(c.examined_at[j])}});
  }
  return rows;
}

ordered_json rounds_json(const std::vector<sim::ReplayedRound>& rounds) {
  ordered_json rows = ordered_json::array();
  for (const sim::ReplayedRound& r : rounds) {
    rows.push_back({{"sequence", r.sequence},
                    {"place", r.place},
                    {"drafted", count_json(r.drafted_least, r.drafted_most)},
                    {"accepted", r.accepted},
                    {"emitted", r.emitted},
                    {"rejected", r.rejected}});
  }
  return rows;
}

std::string range_text(const ordered_json& bounds) {
  const auto least = bounds[0].get<std::int64_t>();
  const auto most = bounds[1].get<std::int64_t>();
  return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
}

/// A column of the numbers that rows have under a key.
Column<ordered_json> numbers_of(const char* key, std::string heading) {
  return {std::move(heading), [key](const ordered_json& row) {
            return row[key].is_number_float() ? in_column(row[key].get<double>()) : row[key].dump();
          }};
}

Column<ordered_json> drafted_column() {
  return {"drafted", [](const auto& row) { return range_text(row["drafted"]["bounds"]); }};
}

Spoken replayed(const ordered_json& json) {
  const ordered_json& first = json["runs"][0];
  std::string certainty =
      fmt::format("One run, seed {}, policy {}", json["seed"].get<std::int64_t>(), json["policy"].get<std::string>());
  if (!json["threshold"].is_null()) certainty += fmt::format(", threshold {}", json["threshold"].get<double>());
  Spoken answer = said(fmt::format("{} tokens per step with {}; the exact law gives {}.",
                                   brief(first["tokens_per_step"].get<double>(), 3),
                                   counted(json["gamma"].get<std::int64_t>(), "draft token"),
                                   brief(first["expected_tokens_per_step"].get<double>(), 3)),
                       certainty + ".");
  answer.table = make_table(
      json["position_acceptance"],
      {numbers_of("position", "draft"), numbers_of("examined", "looked at"), numbers_of("accepted", "accepted"),
       numbers_of("unconditional", "of all steps"), numbers_of("conditional", "of those looked at")});
  answer.more = text_of(make_table(
      json["runs"],
      {{"acceptance", {Align::left}, [](const auto& run) { return run["acceptance"].template get<std::string>(); }},
       numbers_of("tokens", "tokens"),
       numbers_of("steps", "steps"),
       {"expected", [](const auto& run) { return fixed(run["expected_steps"].template get<double>(), 1); }},
       drafted_column(),
       numbers_of("accepted", "accepted"),
       numbers_of("tokens_per_step", "tokens per step"),
       numbers_of("expected_tokens_per_step", "expected")}));
  if (!json["rounds"].empty())
    answer.note = '\n' + text_of(make_table(json["rounds"], {numbers_of("sequence", "sequence"),
                                                             numbers_of("place", "place"), drafted_column(),
                                                             numbers_of("accepted", "accepted"),
                                                             numbers_of("emitted", "emitted")}));
  return answer;
}

Report run(const ReplayOptions& o, bool quiet) {
  policy_of(o);  // refuses before anything is opened
  const auto source = o.input.open();
  Report report;
  Played played;
  play(*source, o, progress_line("replaying", quiet), report, played);
  report.json = {{"gamma", o.gamma},
                 {"policy", o.policy},
                 {"threshold", number_or_null(o.threshold)},
                 {"acceptance", traces::name_of(played.rule)},
                 {"seed", o.seed}};
  ordered_json& runs = report.json["runs"] = ordered_json::array();
  runs.push_back(run_json(*played.lower, played.upper ? "lower" : "exact"));
  if (played.upper) runs.push_back(run_json(*played.upper, "upper"));
  report.json["position_acceptance"] = positions_json(played.lower->simulation.counters());
  report.json["rounds"] = rounds_json(played.rounds);
  report.spoken = replayed(report.json);

  report.assumptions = o.acceptance.rules().assumptions(source->metadata(), played.rule);
  if (played.upper)
    report.warnings.push_back({"acceptance_bracketed",
                               "acceptance is known within brackets only: one run at each of "
                               "their ends; positions and rounds are those at the lower"});
  if (o.steps && static_cast<std::int64_t>(played.rounds.size()) < played.lower->simulation.counters().rounds)
    report.warnings.push_back({"rounds_cut", fmt::format("the first {} rounds are listed", most_listed_rounds)});
  o.input.describe(*source, report);
  return report;
}

}  // namespace

Command replay_command() {
  return {"replay",
          "One simulated run over a recording, next to the exact law",
          {{"runs", "/runs"}, {"position-acceptance", "/position_acceptance"}, {"rounds", "/rounds"}},
          [](Options& options) {
            const auto o = std::make_shared<ReplayOptions>();
            options.group("What to run");
            options.integer("-k,--gamma,--num-speculative-tokens", o->gamma,
                            {.lo = 0, .hi = theory::largest_replayed_gamma}, "most drafted tokens per step");
            options.choice("--policy", o->policy, {"fixed", "threshold", "product"},
                           "stop a draft early: after a token whose probability, or the product of the step's so far, "
                           "is below the threshold");
            options.number("--threshold", o->threshold, {.lo = 0, .hi = 1}, "of the policy");
            o->acceptance.declare(options);
            options.flag("--steps", o->steps, "list the rounds");
            options.integer("--seed", o->seed, {}, "seed of all random numbers");
            options.integer("--threads", o->threads, {.lo = 1, .hi = 1024}, "threads; results do not depend on them");
            o->input.declare(options);
            options.footer(
                "specdec replay trace.safetensors --gamma 4 --steps\n"
                "specdec replay trace.safetensors --gamma 10 --policy threshold --threshold 0.4");
            return std::function<Report()>([o, &options] {
              if (!o->steps && options.effective().at("table") == "rounds")
                throw UsageError("--table rounds needs --steps, which lists them");
              return run(*o, options.quiet());
            });
          }};
}

}  // namespace specdec::cli
