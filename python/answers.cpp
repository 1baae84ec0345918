#include "python/bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "analysis/core/run_hooks.hpp"
#include "planner/checkup/checkup.hpp"
#include "planner/difference.hpp"
#include "planner/load/capacity.hpp"
#include "planner/methods/comparison.hpp"
#include "planner/plan.hpp"
#include "planner/question_error.hpp"
#include "planner/recordings/analysis.hpp"
#include "planner/recordings/recording_parts.hpp"
#include "planner/recordings/recording_summary.hpp"
#include "planner/synthetic.hpp"
#include "planner/traffic_mix.hpp"
#include "python/arguments.hpp"
#include "python/interruption.hpp"
#include "python/recordings.hpp"
#include "render/analysis.hpp"
#include "render/capacity.hpp"
#include "render/checkup.hpp"
#include "render/comparison.hpp"
#include "render/difference.hpp"
#include "render/figures/chart_data.hpp"
#include "render/figures/chart_words.hpp"
#include "render/figures/trace_charts.hpp"
#include "render/json_values.hpp"
#include "render/page/answer_page.hpp"
#include "render/page/chart_page.hpp"
#include "render/page/page_charts.hpp"
#include "render/plan.hpp"
#include "render/synthetic.hpp"
#include "render/text.hpp"
#include "render/version.hpp"
#include "sim/serving/recorded_workload.hpp"
#include "traces/formats/request_trace.hpp"
#include "traces/sharded_recording.hpp"

namespace nb = nanobind;

namespace specdec::python {
namespace {

using nlohmann::ordered_json;
using planner::Acceptance;
using planner::Cost;

struct Figures {
  std::vector<render::Chart> charts;
  /// As they stand on a page; empty where they are the same there.
  std::vector<render::Chart> of_page;
};

/// An answer as it is shown.
struct Answer {
  /// Without schema, version and inputs.
  std::string json;
  std::string text;
  std::vector<std::string> files;
  /// JSON, too; empty where none were used.
  std::string presets;
  /// A plan's configuration for an engine, where one was asked for and there is one to be written.
  std::optional<std::string> config;
  /// The beginning of a page, JSON: "subject" and "words", null where there are none, and "warnings" without
  /// those that explain a null, and of a plan "plan", its sections. Also "columns", a row by the name of each table
  /// whose nulls have columns of their own.
  std::string about;
  /// Its figures; empty where it has none.
  std::function<Figures()> figures;
};

std::string written(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

using RowsByTable = std::map<std::string, ordered_json, std::less<>>;

std::string about(const std::vector<Note>& warnings, const ordered_json& subject, const ordered_json& words,
                  const RowsByTable& columns, const ordered_json& plan = nullptr) {
  std::vector<Note> shown;
  std::copy_if(warnings.begin(), warnings.end(), std::back_inserter(shown),
               [](const Note& warning) { return !warning.explains_null; });
  return written({{"subject", subject},
                  {"words", words},
                  {"warnings", render::notes_json(shown)},
                  {"columns", columns},
                  {"plan", plan}});
}

/// @param answered  a plan, a capacity, an analysis or what became of methods
template <class Answered>
Answer shown(const Answered& answered, const std::vector<std::string>& more_files = {}) {
  const render::Spoken spoken = render::spoken(answered);
  ordered_json json = {{"decision", render::json_of(spoken.decision)},
                       {"assumptions", answered.assumptions},
                       {"warnings", render::notes_json(answered.warnings)}};
  json.update(render::json_of(answered));
  Answer answer;
  answer.json = written(json);
  RowsByTable columns;
  if constexpr (std::is_base_of_v<planner::MethodRuns, Answered>) columns = render::rows_of_empty_tables(answered);
  answer.about = about(answered.warnings, nullptr, nullptr, columns);
  answer.text = render::text_of(spoken, answered.assumptions, answered.warnings, false);
  answer.files = answered.files;
  if constexpr (!std::is_base_of_v<planner::MethodRuns, Answered>) {
    std::set<std::string> files(answered.files.begin(), answered.files.end());
    files.insert(more_files.begin(), more_files.end());
    answer.files.assign(files.begin(), files.end());
  }
  if constexpr (requires { answered.presets; })
    if (!answered.presets.empty()) answer.presets = ordered_json(answered.presets).dump();
  return answer;
}

Answer shown(planner::Plan planned) {
  const auto plan = std::make_shared<const planner::Plan>(std::move(planned));
  Answer answer = shown<planner::Plan>(*plan);
  if (plan->config && plan->config->not_to_be_written.empty()) answer.config = plan->config->text;
  const render::PlanSections sections = render::sections_of(*plan);
  answer.about = about(plan->warnings, render::subject_of(*plan), render::words_of(planner::decision_of(*plan)), render::rows_of_empty_runs(),
                       {{"configuration", sections.configuration},
                        {"numbers", sections.numbers},
                        {"backtest", sections.backtest},
                        {"next", sections.next}});
  answer.figures = [plan] { return Figures{render::plan_charts(*plan), render::plan_charts(*plan, render::page_map)}; };
  return answer;
}

/// @param recording  its name
Answer shown(planner::Analysis analysed, const std::string& recording) {
  const auto analysis = std::make_shared<const planner::Analysis>(std::move(analysed));
  Answer answer = shown<planner::Analysis>(*analysis);
  answer.about = about(analysis->warnings, recording, render::words_of(render::spoken(*analysis).decision), render::rows_of_empty_analysis());
  answer.figures = [analysis, recording] {
    return Figures{render::recording_charts(analysis->recording, recording).charts, {}};
  };
  return answer;
}

/// @param who  the deployment
Answer shown(planner::Capacity answered, const std::vector<std::string>& more_files, const std::string& who) {
  const auto capacity = std::make_shared<const planner::Capacity>(std::move(answered));
  Answer answer = shown<planner::Capacity>(*capacity, more_files);
  answer.about = about(capacity->warnings, who, nullptr, {});
  answer.figures = [capacity, who] { return Figures{render::capacity_charts(*capacity, who), {}}; };
  return answer;
}

/// Names of an answer's figures, each as `specdec plot` writes it in JSON, and as it stands on a page, where `drawing`
/// takes the place of its drawing.
std::vector<std::tuple<std::string, std::string, std::string>> figures(const Answer& answer,
                                                                       const std::string& drawing) {
  const nb::gil_scoped_release released;
  std::vector<std::tuple<std::string, std::string, std::string>> named;
  if (!answer.figures) return named;
  const Figures made = answer.figures();
  for (std::size_t i = 0; i < made.charts.size(); ++i) {
    const render::Chart& chart = made.charts[i];
    named.emplace_back(chart.name, written(render::chart_json(chart)),
                       render::figure_html({made.of_page.empty() ? chart : made.of_page[i], drawing}));
  }
  return named;
}

/// A page of what Python puts on it, in JSON.
std::string page(const std::string& given) {
  const nb::gil_scoped_release released;
  const ordered_json put = ordered_json::parse(given);
  render::AnswerPage page;
  page.version = render::version();
  page.subject = put.at("subject");
  page.made_on = put.at("made_on");
  page.words = put.at("words");
  page.inputs = put.at("inputs");
  page.figures = put.at("figures");
  for (const ordered_json& warning : put.at("warnings"))
    page.warnings.push_back({warning.at("code"), warning.at("message")});
  for (const ordered_json& assumption : put.at("assumptions"))
    page.assumptions.push_back({assumption.at("name"), assumption.at("value"), assumption.at("source")});
  if (const ordered_json& plan = put.at("plan"); plan.is_null()) {
    page.text = put.at("text");
    for (const auto& [caption, rows] : put.at("tables").items())
      page.tables.push_back(render::table_of_rows(caption, rows));
  } else {
    page.plan = {plan.at("configuration"), plan.at("numbers"), plan.at("backtest"), plan.at("next")};
  }
  return render::html_of(page);
}

planner::PlanQuestion plan_question(const nb::dict& given) {
  const Arguments arguments(given);
  planner::PlanQuestion question;
  SPECDEC_TAKE_MEMBERS(question, batch, context, max_num_seqs, min_gain, gamma, schedule, max_regret, max_gamma, tokens,
                       c_hat, emit)
  return question;
}

Answer plan(const std::vector<std::tuple<std::optional<std::string>, Acceptance, Cost>>& given_drafts,
            const nb::dict& given) {
  const planner::PlanQuestion question = plan_question(given);
  const nb::gil_scoped_release released;
  if (given_drafts.size() == 1 && !std::get<0>(given_drafts.front())) {
    const auto& [name, acceptance, cost] = given_drafts.front();
    return shown(planner::plan(acceptance, cost, question));
  }
  std::vector<planner::Draft> drafts;
  for (const auto& [name, acceptance, cost] : given_drafts) drafts.push_back({name.value_or(""), acceptance, cost});
  return shown(planner::plan(std::move(drafts), question));
}

Answer plan_runs(const std::optional<Acceptance>& acceptance, const nb::dict& given_files, const nb::dict& given) {
  const Arguments arguments(given_files);
  planner::BenchFiles files;
  arguments.take("bench", files.bench);
  arguments.take("holdout", files.holdout);
  arguments.take("model", files.model);
  arguments.take("draft_model", files.draft.model);
  arguments.take("draft_kind", files.draft.kind);
  arguments.take("at", files.at);
  arguments.take("rule", files.acceptance);
  const planner::PlanQuestion question = plan_question(given);
  const nb::gil_scoped_release released;
  return shown(planner::plan_runs(files, acceptance, question));
}

Answer synthetic(const Acceptance& acceptance, const nb::dict& given) {
  const Arguments arguments(given);
  planner::SyntheticQuestion question;
  arguments.take("gamma", question.gamma);
  arguments.take("emit", question.emit);
  const nb::gil_scoped_release released;
  return shown(planner::synthetic(acceptance, question));
}

Answer difference(const std::string& a, const std::string& b, const nb::dict& given) {
  const Arguments arguments(given);
  planner::DifferenceQuestion question;
  question.a.file = a;
  question.b.file = b;
  arguments.take("gamma", question.gamma);
  arguments.take("draft_array_a", question.a.draft_array);
  arguments.take("draft_array_b", question.b.draft_array);
  if (arguments.has("by")) question.by = planner::label_groups(arguments.get<std::string>("by"));
  arguments.take("unpaired", question.unpaired);
  const nb::gil_scoped_release released;
  const planner::RunsDifference found = planner::difference(question);
  Answer answer = shown(found);
  answer.about = about(found.warnings, nullptr, nullptr, render::rows_of_empty_difference());
  return answer;
}

Answer doctor(const std::vector<std::string>& files, const nb::dict& given) {
  const Arguments arguments(given);
  planner::CheckupQuestion question;
  question.files = files;
  arguments.take("gamma", question.gamma);
  arguments.take("draft_kind", question.draft_kind);
  arguments.take("threads", question.threads);
  Answer answer;
  answer.files = files;
  if (arguments.has("target")) {
    question.pair.emplace();
    question.pair->how.target = arguments.get<std::string>("target");
    question.pair->how.draft = arguments.get<std::string>("draft");
    for (const char* const half : {"target", "draft"}) answer.files.push_back(arguments.get<std::string>(half));
  }
  if (arguments.has("draft_cost")) {
    planner::DraftTimes& times = question.draft_times.emplace();
    arguments.take("draft_cost", times.files);
    arguments.take("hardware", times.hardware);
    arguments.take("model", times.model);
    arguments.take("draft_model", times.options.draft.model);
    arguments.take("tensor_parallel_size", times.options.tensor_parallel);
    arguments.take("draft_kind", times.options.draft.kind);
    answer.files.insert(answer.files.end(), times.files.begin(), times.files.end());
  }
  const nb::gil_scoped_release released;
  const planner::Checkup checkup = planner::check_up(question);
  const render::Spoken spoken = render::spoken(checkup);
  ordered_json json = {{"decision", render::json_of(spoken.decision)},
                       {"assumptions", ordered_json::array()},
                       {"warnings", ordered_json::array()}};
  json.update(render::json_of(checkup));
  answer.json = written(json);
  answer.text = render::text_of(spoken, {}, {}, false);
  answer.about = about({}, nullptr, nullptr, render::rows_of_empty_checkup());
  return answer;
}

planner::CapacityQuestion capacity_question(const nb::dict& given, std::vector<std::string>& files) {
  const Arguments arguments(given);
  planner::CapacityQuestion question;
  if (arguments.has("requests")) {
    files.push_back(arguments.get<std::string>("requests"));
    question.workload = sim::recorded_workload(traces::read_request_trace(files.back()));
  }
  arguments.take("prompt_tokens", question.workload.prompt_tokens);
  arguments.take("output_tokens", question.workload.output_tokens);
  arguments.take("num_requests", question.workload.requests);
  SPECDEC_TAKE_MEMBERS(question, arrival_rate, concurrency, outside_ms, prefix_cache_hit_rate, shared_prefixes,
                       decode_only, alpha_spread)
  arguments.take("tensor_parallel_size", question.tensor_parallel);
  SPECDEC_TAKE_MEMBERS(question, prefill_tokens_per_second, gpus, replicas, price, gpu_memory_utilization,
                       activation_reserve_gb, kv_cache_tokens)
  if (arguments.has("max_num_seqs")) {
    question.max_num_seqs.clear();
    arguments.take("max_num_seqs", question.max_num_seqs);
  }
  SPECDEC_TAKE_MEMBERS(question, max_num_batched_tokens, prefill_first, gamma, schedule, verification_budget, ttft_ms,
                       tpot_ms, percentile, replications, seed, threads)
  return question;
}

/// The answer that `run` gives to hooks; a Ctrl-C ends it with what there is, or, if that is nothing, as Python's
/// exception.
/// @param run  called without the interpreter's lock
template <class Run>
std::invoke_result_t<Run, core::RunHooks> until_interrupted(const nb::object& progress, const Run& run) {
  Interruption interruption;
  try {
    auto answered = run(interruption.hooks(progress));
    interruption.end_unless(answered.partial);
    return answered;
  } catch (const planner::QuestionError&) {
    interruption.end_unless(false);
    throw;
  }
}

Answer capacity(const std::optional<Acceptance>& acceptance, const Cost& cost, const nb::dict& given,
                const nb::object& progress) {
  std::vector<std::string> files;
  const planner::CapacityQuestion question = capacity_question(given, files);
  const nb::gil_scoped_release released;
  const auto run = [&](const core::RunHooks& hooks) { return planner::capacity(acceptance, cost, question, hooks); };
  return shown(until_interrupted(progress, run), files, render::deployment_of(cost.target_model, &cost));
}

/// The largest gamma of any scenario, up to which acceptance has to be known.
std::int64_t largest_gamma(const nb::dict& given, bool has_acceptance) {
  planner::CapacityQuestion question;
  const Arguments arguments(given);
  arguments.take("gamma", question.gamma);
  arguments.take("schedule", question.schedule);
  return question.largest_gamma(has_acceptance);
}

planner::AnalysisQuestion analysis_question(const nb::dict& given) {
  const Arguments arguments(given);
  planner::AnalysisQuestion question;
  arguments.take("rule", question.rules.acceptance);
  arguments.take("assume_processed", question.rules.assume_processed);
  arguments.take("force_replay", question.rules.force_replay);
  arguments.take("row_tolerance", question.row_tolerance);
  if (arguments.has("by")) question.by = planner::label_groups(arguments.get<std::string>("by"));
  arguments.take("c", question.cost.c);
  arguments.take("verify_factor", question.cost.verify_factor);
  arguments.take("overhead", question.cost.overhead);
  SPECDEC_TAKE_MEMBERS(question, gamma, lenience, standardise, threads)
  return question;
}

Answer analyze(const Recording& recording, const nb::dict& given, const nb::object& progress) {
  const planner::AnalysisQuestion question = analysis_question(given);
  const nb::gil_scoped_release released;
  const auto run = [&](const core::RunHooks& hooks) {
    return planner::analyze(*planner::grouped_recording(recording.open(), question.by), question, hooks);
  };
  return shown(until_interrupted(progress, run), render::name_of_recording(recording.files()));
}

/// The summary of a share of a recording, as bytes for merged().
nb::bytes summary(const Recording& recording, const nb::dict& given, std::int64_t index, std::int64_t of) {
  const planner::AnalysisQuestion question = analysis_question(given);
  std::string state;
  {
    const nb::gil_scoped_release released;
    traces::ShardedRecording share(planner::grouped_recording(recording.open(), question.by), {index, of});
    state = planner::RecordingSummary::of(share, question).state();
  }
  return nb::bytes(state.data(), state.size());
}

/// The same, kept in a folder as a part, from where it is taken if it is there.
/// @param origin  JSON of PartOrigin's options, other_options and files
nb::bytes kept_summary(const Recording& recording, const nb::dict& given, std::int64_t index, std::int64_t of,
                       const std::string& folder, const std::string& origin) {
  const planner::AnalysisQuestion question = analysis_question(given);
  std::string state;
  {
    const nb::gil_scoped_release released;
    const auto said = nlohmann::ordered_json::parse(origin);
    const planner::PartOrigin kept{
        "analyze",       {index, of}, std::string(render::version()), said.at("options"), said.at("other_options"),
        said.at("files")};
    state = planner::kept_share(folder, kept, [&] {
              traces::ShardedRecording share(planner::grouped_recording(recording.open(), question.by), {index, of});
              return planner::RecordingSummary::of(share, question);
            }).state();
  }
  return nb::bytes(state.data(), state.size());
}

/// The answer of analyze() from the summaries of all shares of a recording.
Answer merged(const Recording& recording, const std::vector<nb::bytes>& summaries) {
  std::vector<std::string_view> states;
  for (const nb::bytes& one : summaries) states.emplace_back(one.c_str(), one.size());
  const nb::gil_scoped_release released;
  auto all = planner::RecordingSummary::from_state(states.front());
  for (std::size_t i = 1; i < states.size(); ++i) {
    auto next = planner::RecordingSummary::from_state(states[i]);
    all.merge(next);
  }
  return shown(all.answer(), render::name_of_recording(recording.files()));
}

/// @param run  compare or simulate, of a question and hooks
template <class Run>
Answer run_methods(const nb::object& progress, const Run& run) {
  const nb::gil_scoped_release released;
  return shown(until_interrupted(progress, run));
}

Answer compare(const nb::dict& given, const std::string& shipped_models, const nb::object& progress) {
  const planner::ComparisonQuestion question = comparison_question(given);
  return run_methods(progress, [&](const auto& hooks) { return planner::compare(question, shipped_models, hooks); });
}

Answer simulate(const nb::dict& given, const std::string& shipped_models, const nb::object& progress) {
  const planner::SimulationQuestion question = simulation_question(given);
  return run_methods(progress, [&](const auto& hooks) { return planner::simulate(question, shipped_models, hooks); });
}

}  // namespace

void bind_answers(nb::module_& module) {
  nb::class_<Answer>(module, "Answer")
      .def_ro("json", &Answer::json)
      .def_ro("text", &Answer::text)
      .def_ro("files", &Answer::files)
      .def_ro("presets", &Answer::presets)
      .def_ro("config", &Answer::config)
      .def_ro("about", &Answer::about)
      .def("figures", figures);
  module.def("page", page);
  module.def("plan", plan);
  module.def("plan_runs", plan_runs, nb::arg("acceptance").none(), nb::arg("files"), nb::arg("question"));
  module.def("synthetic", synthetic);
  module.def("difference", difference);
  module.def("doctor", doctor);
  module.def("largest_compared_gamma", [](const nb::dict& question, bool of_runs) {
    return plan_question(question).largest_compared_gamma(of_runs ? planner::usual_max_gamma_of_runs
                                                                  : planner::usual_max_gamma);
  });
  module.def("capacity", capacity, nb::arg("acceptance").none(), nb::arg("cost"), nb::arg("question"),
             nb::arg("progress").none());
  module.def("largest_gamma", largest_gamma);
  module.def("compare", compare, nb::arg("question"), nb::arg("shipped_models"), nb::arg("progress").none());
  module.def("simulate", simulate, nb::arg("question"), nb::arg("shipped_models"), nb::arg("progress").none());
  module.def("analyze", analyze, nb::arg("recording"), nb::arg("question"), nb::arg("progress").none());
  module.def("summary", summary);
  module.def("kept_summary", kept_summary);
  module.def("merged", merged);
}

}  // namespace specdec::python
