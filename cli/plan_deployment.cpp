#include "cli/plan_deployment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "analysis/cost/fitted_cost.hpp"
#include "analysis/cost/measured_cost.hpp"
#include "analysis/cost/observed_rounds.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/plan_points.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "traces/acceptance_rules.hpp"
#include "traces/formats/timing_table.hpp"
#include "traces/serving/engine_log.hpp"
#include "traces/serving/read_serving_counts.hpp"

namespace specdec::cli {
namespace {

using cost::DraftKind;
using planning::ScheduleStretch;
using traces::TimedPass;

/// Runs of benchmarks and windows of logs.
std::vector<traces::ServingCounts> counts_in(const std::vector<std::string>& files, Deployment& d) {
  std::vector<traces::ServingCounts> counts;
  traces::CountsSink sink;
  sink.take = [&](const traces::ServingCounts& unit) { counts.push_back(unit); };
  sink.warn = [&](const traces::CountsWarning& warning) { d.warnings.push_back({warning.code, warning.message}); };
  sink.plain_windows = true;
  const std::vector<std::filesystem::path> paths(files.begin(), files.end());
  traces::read_serving_counts(paths, sink);
  d.files.insert(d.files.end(), files.begin(), files.end());
  return counts;
}

/// Timed passes of all models in several files.
class Timings {
 public:
  Timings(const std::vector<std::string>& files, Deployment& d) {
    for (const std::string& file : files) {
      tables_.push_back(traces::read_timing_table(file));
      d.files.push_back(file);
      for (const traces::CountsWarning& warning : tables_.back().warnings) {
        d.warnings.push_back({warning.code, warning.message});
      }
    }
  }

  bool of_llamacpp() const {
    return std::any_of(tables_.begin(), tables_.end(),
                       [](const auto& table) { return table.format.starts_with("llama"); });
  }

  std::vector<std::string> models() const {
    std::vector<std::string> names;
    for (const traces::TimingTable& table : tables_) {
      for (const std::string& name : table.models()) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
    return names;
  }

  std::vector<TimedPass> passes_of(const std::string& model) const {
    std::vector<TimedPass> passes;
    for (const traces::TimingTable& table : tables_) {
      for (const TimedPass& pass : table.passes_of(model)) passes.push_back(pass);
    }
    return passes;
  }

  /// Of the named model, or of the only one.
  std::vector<TimedPass> passes(std::string_view files_option, std::string_view name_option,
                                const std::optional<std::string>& name) const {
    const std::vector<std::string> names = models();
    if (names.size() == 1) return passes_of(names.front());
    if (!name) {
      throw UsageError(
          fmt::format("{} is missing: {} holds the models {}", name_option, files_option, fmt::join(names, ", ")));
    }
    if (std::find(names.begin(), names.end(), *name) == names.end()) {
      refuse(name_option, *name, fmt::format("one of {}", fmt::join(names, ", ")));
    }
    return passes_of(*name);
  }

  bool knows(const std::string& model) const {
    const std::vector<std::string> names = models();
    return names.size() > 1 && std::find(names.begin(), names.end(), model) != names.end();
  }

 private:
  std::vector<traces::TimingTable> tables_;
};

/// What a draft costs, before it is known where the target's times come from.
struct DraftCost {
  std::optional<double> c;
  std::vector<std::string> files;
  std::optional<std::string> model;
};

void require_drafts_told(const std::vector<traces::ServingCounts>& windows, std::optional<std::int64_t> gamma) {
  if (gamma) return;
  for (const traces::ServingCounts& window : windows) {
    if (!window.tokens_per_round || window.gamma) continue;
    throw UsageError(fmt::format("--at is missing: {} does not say how many tokens a round drafted; --at G says it",
                                 window.file.string()));
  }
}

bool is_log(const std::string& file) { return file != "-" && traces::has_engine_windows(traces::FileHead::of(file)); }

/// Whether the files of --cost are engines' logs and no tables.
bool are_logs(const std::vector<std::string>& files) {
  const auto log = std::find_if(files.begin(), files.end(), is_log);
  if (log == files.end()) return false;
  const auto table = std::find_if_not(files.begin(), files.end(), is_log);
  if (table == files.end()) return true;
  throw UsageError(
      fmt::format("--cost is {}, an engine's log, and {}, which is none, but must be logs alone or tables of "
                  "times alone",
                  *log, *table));
}

/// Builds the costs of all drafts of one target.
class Costs {
 public:
  Costs(const PlanOptions& o, Deployment& d) : o_(o), d_(d) {
    if (o.cost_files.empty()) return;
    if (are_logs(o.cost_files)) {
      read_logs();
    } else {
      target_.emplace(o.cost_files, d);
    }
  }

  /// Sets the draft's cost and its error scale.
  void price(PlannedDraft& draft, const DraftCost& its_cost, std::string_view who) const {
    if (o_.roofline.hardware) return price_by_hardware(draft, its_cost, who);
    draft.cost = !log_.empty() ? fitted(draft, its_cost, who)
                 : target_     ? measured(draft.kind, its_cost, who)
                               : constant(draft.kind, its_cost, who);
    for (const cost::CostFinding& finding : draft.cost->findings()) {
      d_.warnings.push_back({finding.code, finding.message});
    }
  }

  bool of_llamacpp() const { return target_ && target_->of_llamacpp(); }

  /// What was measured, where a log says it; else 1.
  std::vector<double> usual_batches() const { return usual_batches_.empty() ? std::vector<double>{1} : usual_batches_; }

 private:
  std::shared_ptr<const cost::RoundCost> constant(DraftKind kind, const DraftCost& draft, std::string_view who) const {
    if (!draft.files.empty()) throw UsageError(fmt::format("{}cost is given, but needs --cost beside it", who));
    return constant_cost(o_, kind, draft.c, who);
  }

  std::shared_ptr<const cost::RoundCost> measured(DraftKind kind, const DraftCost& draft, std::string_view who) const {
    cost::MeasuredOptions options;
    options.kind = kind;
    options.c = c_of_kind(kind, draft.c, who);
    options.overhead_seconds = o_.overhead_seconds.value_or(0);
    options.curve.extrapolate = o_.extrapolate;
    const std::vector<TimedPass> target = target_->passes("--cost", "--model", o_.model);
    std::vector<TimedPass> passes;
    if (!draft.files.empty()) {
      passes = Timings(draft.files, d_).passes(fmt::format("{}cost", who), fmt::format("{}model", who), draft.model);
    } else if (!draft.c && draft.model && target_->knows(*draft.model)) {
      passes = target_->passes_of(*draft.model);
    } else if (!draft.c && kind != DraftKind::ngram) {
      throw UsageError(fmt::format(
          "{}c is missing: the time of one draft step / one target step, or the draft's own times with {}", who,
          who == "--" ? "--draft-cost, or --draft-model where --cost holds them"
                      : "cost=FILE, or model=NAME where --cost holds them"));
    }
    return std::make_shared<cost::MeasuredCost>(target, passes, std::move(options));
  }

  void read_logs() {
    const std::vector<traces::ServingCounts> windows = counts_in(o_.cost_files, d_);
    require_drafts_told(windows, o_.at);
    const auto gamma = o_.at ? std::optional(static_cast<double>(*o_.at)) : std::nullopt;
    cost::LogRounds log = cost::log_rounds(windows, gamma);
    const auto drafts = [](const cost::ObservedRound& round) { return round.gamma > 0; };
    if (std::none_of(log.rounds.begin(), log.rounds.end(), drafts)) {
      throw UsageError(
          fmt::format("--cost: no steady window of {} drafted, so that they do not say what drafting costs",
                      fmt::join(o_.cost_files, ", ")));
    }
    d_.warnings.push_back({"rounds_of_logs", fmt::format("{} of {} windows of --cost are steady: they price rounds",
                                                         log.steady_windows, log.windows)});
    if (o_.context) {
      d_.warnings.push_back(
          {"context_not_told", "logs do not tell contexts: what they price is the same at all of them"});
    }
    if (const auto batch = cost::join_batches(log.rounds))
      usual_batches_ = {*batch};
    else
      usual_batches_ = log.usual_batches();
    log_ = std::move(log.rounds);
    d_.cost_from_log = true;
    d_.engine = windows.front().engine;
  }

  std::shared_ptr<const cost::RoundCost> fitted(PlannedDraft& draft, const DraftCost& its_cost,
                                                std::string_view who) const {
    const auto refuse = [&](std::string_view what) {
      throw UsageError(fmt::format("{}{} is given, but the log of --cost holds that time", who, what));
    };
    if (!o_.drafts.empty()) throw UsageError("--draft is given, but the log of --cost is of one draft");
    if (its_cost.c) refuse("c");
    if (!its_cost.files.empty()) refuse("draft-cost");
    if (o_.overhead_seconds) refuse("overhead-seconds");
    cost::FitOptions options = planning::fit_of_runs();
    options.kind = draft.kind;
    if (o_.extrapolate) options.unidentified = cost::Unidentified::span;
    return std::make_shared<cost::FittedCost>(log_, options);
  }

  void price_by_hardware(PlannedDraft& draft, const DraftCost& its_cost, std::string_view who) const {
    const auto refuse_cost = [&](std::string_view key) {
      throw UsageError(fmt::format("{}{} is given, but --hardware prices rounds", who, key));
    };
    if (its_cost.c) refuse_cost("c");
    if (!its_cost.files.empty()) refuse_cost("cost");
    cli::price_by_hardware(o_, its_cost.model, who, draft, d_);
  }

  const PlanOptions& o_;
  Deployment& d_;
  std::optional<Timings> target_;
  /// Rounds of the logs of --cost.
  std::vector<cost::ObservedRound> log_;
  std::vector<double> usual_batches_;
};

/// "NAME:key=value,key=value".
struct DraftWords {
  std::string name;
  std::vector<std::pair<std::string, std::string>> values;

  std::optional<std::string> one(std::string_view key) const {
    std::optional<std::string> found;
    for (const auto& [its_key, value] : values) {
      if (its_key != key) continue;
      if (found) throw UsageError(fmt::format("--draft {}: {} is given twice, but must be given once", name, key));
      found = value;
    }
    return found;
  }
  std::vector<std::string> all(std::string_view key) const {
    std::vector<std::string> found;
    for (const auto& [its_key, value] : values) {
      if (its_key == key) found.push_back(value);
    }
    return found;
  }
};

DraftWords words_of(const std::string& text) {
  constexpr std::array<std::string_view, 11> keys = {
      "alpha", "acceptance-length", "at", "counters", "trace", "c", "cost", "kind", "model", "tp", "rule"};
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0) refuse("--draft", text, "NAME:KEY=VALUE,...");
  DraftWords words;
  words.name = text.substr(0, colon);
  for (const std::string_view part : split(std::string_view(text).substr(colon + 1), ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    if (equals == std::string_view::npos || std::find(keys.begin(), keys.end(), key) == keys.end()) {
      refuse(fmt::format("--draft {}", words.name), part,
             fmt::format("KEY=VALUE with a key of {}", fmt::join(keys, ", ")));
    }
    words.values.emplace_back(key, part.substr(equals + 1));
  }
  return words;
}

PlannedAcceptance acceptance_of(const DraftWords& words, const PlanOptions& o, std::int64_t max_gamma) {
  const std::string prefix = fmt::format("--draft {}: ", words.name);
  PlanOptions own;
  own.alpha = words.one("alpha");
  own.acceptance_length = words.one("acceptance-length");
  if (const auto at = words.one("at")) own.at = parse_integer(prefix + "at", *at, 1, largest_max_gamma);
  own.counters = words.all("counters");
  own.trace = words.all("trace");
  const int given =
      own.alpha.has_value() + own.acceptance_length.has_value() + !own.counters.empty() + !own.trace.empty();
  if (given != 1) {
    throw UsageError(
        fmt::format("{}{} of alpha, acceptance-length, counters and trace are given, but must be one", prefix, given));
  }
  const std::string rule = words.one("rule").value_or(o.acceptance);
  try {
    if (own.alpha || own.acceptance_length) return planned(stated_acceptance(own), rule);
  } catch (const UsageError& error) {
    throw UsageError(prefix + error.what());
  }
  AcceptanceSource source = acceptance_source(o, max_gamma);
  source.counters = own.counters;
  source.trace = own.trace;
  if (own.at) source.gamma = own.at;
  source.rule = rule;
  return acceptance_from(source);
}

PlannedDraft draft_of(const DraftWords& words, const PlanOptions& o, std::int64_t max_gamma, const Costs& costs) {
  const std::string prefix = fmt::format("--draft {}: ", words.name);
  PlannedDraft draft;
  draft.name = words.name;
  draft.kind = kind_named(prefix + "kind", words.one("kind").value_or("model"));
  draft.draft_model = words.one("model").value_or("");
  if (const auto tp = words.one("tp")) draft.tensor_parallel = parse_integer(prefix + "tp", *tp, 1, 1024);
  draft.acceptance = acceptance_of(words, o, max_gamma);
  DraftCost its_cost;
  if (const auto c = words.one("c")) its_cost.c = parse_number(prefix + "c", *c, {});
  its_cost.files = words.all("cost");
  if (!draft.draft_model.empty()) its_cost.model = draft.draft_model;
  costs.price(draft, its_cost, prefix);
  return draft;
}

/// What the options outside --draft say of the only draft, but for its cost.
PlannedDraft only_draft(const PlanOptions& o, std::int64_t max_gamma) {
  PlannedDraft draft = named_draft(o);
  const bool from_files = !o.counters.empty() || !o.trace.empty();
  draft.acceptance =
      from_files ? acceptance_from(acceptance_source(o, max_gamma)) : planned(stated_acceptance(o), o.acceptance);
  return draft;
}

void plan_from_options(const PlanOptions& o, Deployment& d) {
  const Costs costs(o, d);
  for (const std::string& text : o.drafts) d.drafts.push_back(draft_of(words_of(text), o, d.max_gamma, costs));
  if (o.drafts.empty()) {
    d.drafts.push_back(only_draft(o, d.max_gamma));
    costs.price(d.drafts.back(), {o.cost.c, o.draft_cost_files, o.draft_model}, "--");
  }
  if (!d.engine) d.engine = d.drafts.front().acceptance.engine;
  if (!d.engine && costs.of_llamacpp()) d.engine = "llama.cpp";
  plan_drafts(o, costs.usual_batches(), d);
}

void plan_from_runs(const PlanOptions& o, Deployment& d) {
  planning::BenchQuestion question;
  for (traces::ServingCounts& counts : counts_in(o.bench, d)) {
    const bool window = counts.unit == traces::CountUnit::window && !counts.bench;
    (window ? question.windows : question.runs).push_back(std::move(counts));
  }
  if (question.runs.empty()) {
    throw UsageError(
        fmt::format("--bench: {} has no benchmark run; to plan from logs alone, give them to --cost, and to "
                    "--counters those with speculation",
                    fmt::join(o.bench, ", ")));
  }
  if (!o.holdout.empty()) question.holdout = counts_in(o.holdout, d);
  question.model = o.model;
  question.draft = o.draft_model;
  // With --acceptance-length it is the gamma of that length.
  const std::optional<std::int64_t> at = o.acceptance_length ? std::nullopt : o.at;
  question.gamma = at ? at : o.gamma && *o.gamma > 0 ? o.gamma : std::nullopt;
  require_drafts_told(question.windows, question.gamma);
  question.kind = kind_named("--draft-kind", o.draft_kind.value_or("model"));
  if (o.states_acceptance()) {
    d.drafts.push_back(only_draft(o, d.max_gamma));
    const PlannedAcceptance& acceptance = d.drafts.back().acceptance;
    question.acceptance = acceptance.curve;
    question.clusters = acceptance.clusters;
    take_acceptance(acceptance, d);
  }
  question.batches = asked_batches(o);
  question.contexts = asked_contexts(o);
  require_scheduled(o, d, question.batches);
  if (o.max_num_seqs) {
    question.schedule_up_to = o.max_num_seqs;
  } else if (!question.batches.empty()) {
    question.schedule_up_to = scheduled_up_to(o, question.batches);
  }
  question.max_gamma = d.max_gamma;
  question.tolerance = o.tolerance;
  question.min_gain = d.min_gain;
  question.deployed = d.deployed;
  question.max_regret = o.max_regret;
  question.extrapolate = o.extrapolate;
  d.engine = question.runs.front().engine;
  d.bench = planning::plan_bench(question);
  d.plan = d.bench->plan;
  d.in_seconds = true;
  d.target_model = o.model.value_or(d.bench->model);
  for (const planning::PlanNote& note : d.bench->notes) d.warnings.push_back({note.code, note.message});
  if (d.drafts.empty()) return;
  d.drafts.back().cost = d.bench->cost;
  if (!d.drafts.back().acceptance.curve_at_design_effect_3) return;
  question.acceptance = d.drafts.back().acceptance.curve_at_design_effect_3;
  d.at_design_effect_3 = planning::plan_bench(question).plan;
}

}  // namespace

std::shared_ptr<const cost::RoundCost> priced_rounds(const PlanOptions& o, DraftKind kind, Deployment& d) {
  PlannedDraft draft;
  draft.kind = kind;
  Costs(o, d).price(draft, {o.cost.c, o.draft_cost_files, o.draft_model}, "--");
  return draft.cost;
}

Deployment planned_deployment(const PlanOptions& o) {
  Deployment d = asked_deployment(o);
  if (o.bench.empty()) {
    plan_from_options(o, d);
  } else {
    plan_from_runs(o, d);
  }
  conclude(o, d);
  return d;
}

}  // namespace specdec::cli
