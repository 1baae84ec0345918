#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/cost/observed_rounds.hpp"
#include "planner/lookup_drafts.hpp"
#include "planner/model_names.hpp"
#include "planner/planning_steps.hpp"
#include "planner/question_error.hpp"
#include "planner/sources/server_files.hpp"
#include "traces/serving/counts_formats.hpp"

namespace specdec::planner {
namespace {

using cost::DraftKind;
using traces::ServingCounts;

/// Separates runs from windows of logs.
void take_counts(const BenchFiles& files, Plan& p, planning::BenchQuestion& question) {
  for (ServingCounts& counts : counts_in(files.bench, p.warnings)) {
    const bool window = counts.unit == traces::CountUnit::window && !counts.bench;
    (window ? question.windows : question.runs).push_back(std::move(counts));
  }
  p.files = files.bench;
  if (question.runs.empty()) {
    throw QuestionError(
        fmt::format("--bench: {} has no benchmark run; to plan from logs alone, give them to --cost, and to "
                    "--counters those with speculation",
                    fmt::join(files.bench, ", ")));
  }
  if (files.holdout.empty()) return;
  question.holdout = counts_in(files.holdout, p.warnings);
  p.files.insert(p.files.end(), files.holdout.begin(), files.holdout.end());
}

/// True if one of them drafted and does not state how many tokens.
bool leaves_gamma_open(const std::vector<ServingCounts>& counts) {
  return std::any_of(counts.begin(), counts.end(), [](const ServingCounts& one) {
    return !one.gamma && (one.rounds.value_or(0) > 0 || one.tokens_per_round || cost::drafts_uncounted(one));
  });
}

/// The kind of drafts that the runs of that draft name, or all of them; empty where they differ or name none.
std::optional<cost::DraftKind> kind_of_runs(const std::vector<ServingCounts>& runs,
                                            const std::optional<std::string>& draft) {
  std::set<cost::DraftKind> kinds;
  for (const ServingCounts& run : runs) {
    const auto kind = cost::kind_of_method(run.draft_method);
    if (kind && (!draft || run.label("draft") == *draft)) kinds.insert(*kind);
  }
  return kinds.size() == 1 ? std::optional(*kinds.begin()) : std::nullopt;
}

/// Sets how the runs' drafts were made, and the number of drafted tokens for those that do not state it.
/// @return true if rounds are steps as they ran, for all that the runs tell
bool take_drafts(const BenchFiles& files, const PlanQuestion& q, planning::BenchQuestion& question,
                 std::vector<Note>& warnings) {
  question.model = files.model;
  if (files.hardware) {
    // Together with --hardware a model is a preset's or a file's name, which runs need not know.
    const auto is_of_it = [&](const ServingCounts& run) { return run.label("model_name") == *files.model; };
    if (std::none_of(question.runs.begin(), question.runs.end(), is_of_it)) question.model.reset();
    question.beyond = files.hardware->rounds;
  }
  question.draft = files.draft.model;
  question.gamma = files.at ? files.at : q.gamma && *q.gamma > 0 ? q.gamma : std::nullopt;
  DraftWords draft = files.draft;
  draft.of_llamacpp = draft.of_llamacpp || question.runs.front().engine == "llama.cpp";
  if (!draft.kind) draft.kind = kind_of_runs(question.runs, draft.model);
  question.kind = draft_kind(draft, files.model, {}, false);
  question.kind_told = draft.tells_kind();
  const bool of_steps = count_as_timed(question.runs, question.kind, question.gamma, warnings) ||
                        std::none_of(question.runs.begin(), question.runs.end(), [](const ServingCounts& run) {
                          return run.drafted.value_or(0) > 0 && run.engine != traces::run_table_engine;
                        });
  std::vector<Note> said;
  for (auto* others : {&question.windows, &question.holdout})
    count_as_timed(*others, question.kind, question.gamma, said);
  require_drafts_told(question.windows, question.gamma);
  require_drafts_told(question.runs, question.gamma);
  question.overhead_seconds = files.overhead_seconds.value_or(0);
  question.overhead_steps = files.overhead.value_or(0);
  return of_steps;
}

/// Runs that name no model are taken to be of the model to plan for.
/// @throws QuestionError if no run is of the chosen model
void require_runs(planning::BenchQuestion& question) {
  std::set<std::string_view> models;
  for (const ServingCounts& run : question.runs) models.insert(run.label("model_name"));
  if (models == std::set<std::string_view>{""}) question.model.reset();
  if (question.model && models.count(*question.model) == 0) {
    refuse("--model", *question.model, fmt::format("a model of the runs: {}", fmt::join(models, ", ")));
  }
}

/// The engine of runs that state it; neither a table nor a plain run of AIPerf identifies a server. Trees of this shape
/// are SGLang's.
std::optional<std::string> engine_of(const std::vector<ServingCounts>& runs) {
  const std::string& first = runs.front().engine;
  if (first != traces::run_table_engine && first != traces::aiperf_engine) return first;
  const bool has_tree = std::any_of(runs.begin(), runs.end(),
                                    [](const ServingCounts& run) { return run.shape == traces::DraftShape::tree; });
  return has_tree ? std::optional<std::string>("sglang") : std::nullopt;
}

/// Copies where to plan, and the limits.
void take_question(const Plan& p, planning::BenchQuestion& question) {
  const PlanQuestion& q = p.question;
  question.batches = q.batch;
  question.contexts = q.context;
  require_scheduled(p, question.batches);
  if (q.max_num_seqs) question.schedule_up_to = *q.max_num_seqs;
  if (q.emit && !question.batches.empty()) question.schedule_up_to = scheduled_up_to(q, question.batches);
  question.schedules = q.emit.has_value();
  take_limits(p, question);
}

/// Number of points among which a run is sought; evenly spaced ones if there are more.
constexpr std::size_t market_points = 6;

/// Means over the runs that state it.
double output_tokens_of(const planning::BenchPlan& bench, double usual) {
  double sum = 0, count = 0;
  for (const planning::BenchFigures& run : bench.runs) {
    if (run.output_tokens <= 0) continue;
    sum += run.output_tokens;
    ++count;
  }
  return count > 0 ? sum / count : usual;
}

bool has_plain_run(const planning::BenchPlan& bench) {
  return std::any_of(bench.runs.begin(), bench.runs.end(),
                     [](const planning::BenchFigures& run) { return run.gamma == 0; });
}

std::optional<planning::RunValues> run_values(const Plan& p, bool tells_acceptance) {
  // The runs of a tree tell of no other drafts.
  if (!p.bench->acceptance) return std::nullopt;
  planning::NextRunQuestion question;
  question.plan = p.bench->question;
  question.draft = question.plan.drafts.front();
  const std::vector<planning::PointPlan>& points = p.deployment.drafts.front().points;
  const std::size_t count = std::min(points.size(), market_points);
  for (std::size_t i = 0; i < count; ++i) {
    const planning::PointPlan& point = points[i * points.size() / count];
    if (point.rows.size() > 1) question.points.push_back({point.batch, point.context});
  }
  if (question.points.empty()) return std::nullopt;
  question.lacks_plain_run = !has_plain_run(*p.bench);
  question.run_error = p.bench->run_error;
  question.tells_acceptance = tells_acceptance;
  question.output_tokens = output_tokens_of(*p.bench, question.output_tokens);
  return planning::run_values(question);
}

/// Lengths that are typed beside runs which say none are figures of these runs, as if they stood in their files.
/// @return false, and nothing changed, unless there are runs with drafts and each of them has one then
bool take_typed_lengths(const Acceptance& acceptance, const std::optional<std::int64_t>& at,
                        std::vector<ServingCounts>& runs) {
  if (!acceptance.words || acceptance.words->acceptance_length.empty()) return false;
  const auto length_of = [&](const ServingCounts& run) -> const estimate::TypedLength* {
    for (const estimate::TypedLength& typed : acceptance.words->acceptance_length)
      if (typed.gamma == (run.gamma ? run.gamma : at)) return &typed;
    return nullptr;
  };
  const auto has_own = [](const ServingCounts& run) {
    return run.rounds.value_or(0) > 0 || run.tokens_per_round || run.shape == traces::DraftShape::tree;
  };
  std::vector<ServingCounts> told = runs;
  bool drafted = false;
  for (ServingCounts& run : told) {
    if (has_own(run)) return false;
    if (!cost::drafts_uncounted(run)) continue;
    const estimate::TypedLength* const length = length_of(run);
    if (length == nullptr) return false;
    drafted = true;
    run.tokens_per_round = length->tokens_per_step;
    if (!acceptance.words->rounds) continue;
    run.rounds = acceptance.words->rounds;
    run.accepted = (length->tokens_per_step - 1) * *run.rounds;
    run.from_rates = true;
  }
  if (drafted) runs = std::move(told);
  return drafted;
}

/// The draft whose acceptance comes from another source than the runs.
Draft draft_of(const BenchFiles& files, const Acceptance& acceptance, bool of_steps) {
  Draft draft{files.draft.model.value_or("draft"), acceptance, {}};
  draft.cost.draft = files.draft;
  draft.cost.kind = draft_kind(files.draft, files.model, {}, false);
  draft.cost.of_steps = of_steps;
  take_draft(&draft.acceptance, draft.cost);
  return draft;
}

}  // namespace

Plan plan_runs(const BenchFiles& files, const std::optional<Acceptance>& given, const PlanQuestion& q) {
  std::optional<Acceptance> acceptance = given;
  Plan p = asked_plan(q, usual_max_gamma_of_runs);
  planning::BenchQuestion question;
  take_counts(files, p, question);
  // Counters, too, may lack the gamma at which they counted.
  const bool is_read = (acceptance && !acceptance->stated) || leaves_gamma_open(question.runs) ||
                       leaves_gamma_open(question.windows) || leaves_gamma_open(question.holdout);
  if (files.at && !is_read)
    throw QuestionError(
        "--at is given, but no run leaves open how many tokens a round drafted: one without counts of drafts is taken "
        "as plain");
  const bool of_steps = take_drafts(files, q, question, p.warnings);
  if (question.kind_told && !files.draft.tells_kind())
    p.assumptions.push_back({"draft_kind", cost::name_of(question.kind), "file"});
  require_runs(question);
  if (acceptance && take_typed_lengths(*acceptance, question.gamma, question.runs)) acceptance.reset();
  if (acceptance) {
    p.drafts.push_back(draft_of(files, *acceptance, of_steps));
    const Draft& draft = p.drafts.back();
    append_new(p.warnings, draft.cost.warnings);
    question.acceptance = draft.acceptance.curve;
    take_acceptance(draft.acceptance, p);
  }
  if (const auto falling = cost::falling_throughput(question.runs)) {
    Note& warning = p.warnings.emplace_back(cost::warning_of(*falling));
    warning.message += fmt::format("; {}", cost::remedy_of_falling_throughput);
  }
  take_question(p, question);
  question.prompts_apart = files.prompts_apart;
  question.prompt_tokens_per_second = files.prompt_tokens_per_second;
  if (files.hardware) take_cost(*files.hardware, p);
  p.engine = engine_of(question.runs);
  const auto measured = p.engine ? planning::engine_named(*p.engine) : q.emit;
  question.has_kernel_step = measured == planning::Engine::llamacpp;
  p.schedule_prices = question.schedule_prices = schedule_prices(q, p.engine, question.kind, question.kind_told);
  p.bench = planning::plan_bench(question);
  p.deployment = p.bench->plan;
  p.in_seconds = true;
  p.target_model = files.model.value_or(p.bench->model);
  append_new(p.warnings, p.bench->notes);
  if (acceptance) {
    if (auto warning = other_model(acceptance->model, names_of(p.bench->model, nullptr))) {
      p.warnings.push_back(*warning);
    }
    p.drafts.back().cost.rounds = p.bench->cost;
  }
  if (p.bench->cost->impossible().empty()) p.run_values = run_values(p, !acceptance);
  conclude(&files, p);
  compare_drafts(p);
  warn_of_regret(p);
  assume(&files, p);
  return p;
}

}  // namespace specdec::planner
