#include "cli/plan_deployment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "analysis/cost/constant_cost.hpp"
#include "analysis/cost/fitted_cost.hpp"
#include "analysis/cost/measured_cost.hpp"
#include "analysis/cost/observed_rounds.hpp"
#include "analysis/planning/kv_memory.hpp"
#include "analysis/planning/plan.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/text.hpp"
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

constexpr Range batch_range = {0.0, static_cast<double>(planning::largest_scheduled_batch), true};
constexpr Range context_range = {0.0, 1e9};
constexpr std::int64_t usual_max_gamma_of_runs = 16;

std::vector<ScheduleStretch> deployed_of(const PlanOptions& o, std::int64_t max_gamma) {
  if (o.schedule) return parse_schedule(*o.schedule);
  if (!o.gamma) return {};
  if (*o.gamma > max_gamma && o.max_gamma) {
    refuse("--gamma", fmt::format("{}", *o.gamma), fmt::format("at most --max-gamma, {}", *o.max_gamma));
  }
  if (*o.gamma > planning::largest_scanned_gamma) {
    refuse("--gamma", fmt::format("{}", *o.gamma), fmt::format("at most {}", planning::largest_scanned_gamma));
  }
  return {{1, planning::largest_scheduled_batch, *o.gamma}};
}

std::int64_t max_gamma_of(const PlanOptions& o) {
  std::int64_t usual = o.bench.empty() ? usual_max_gamma : usual_max_gamma_of_runs;
  if (o.gamma) usual = std::max(usual, std::min(*o.gamma, planning::largest_scanned_gamma));
  return std::min(o.max_gamma.value_or(usual), planning::largest_scanned_gamma);
}

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
    if (!draft.c && kind != DraftKind::ngram) {
      throw UsageError(
          fmt::format("{}c is missing: the time of one draft step / one target step, a number in [0, inf)", who));
    }
    cost::ConstantOptions options;
    options.step = o_.cost.with_c(draft.c.value_or(0));
    options.kind = kind;
    return std::make_shared<cost::ConstantCost>(std::move(options));
  }

  std::shared_ptr<const cost::RoundCost> measured(DraftKind kind, const DraftCost& draft, std::string_view who) const {
    cost::MeasuredOptions options;
    options.kind = kind;
    options.c = draft.c;
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
    RooflineModels models;
    models.target = o_.model;
    models.kind = draft.kind;
    models.draft = its_cost.model;
    models.draft_tensor_parallel = draft.tensor_parallel;
    if (!o_.drafts.empty()) models.draft_option = fmt::format("{}model", who);
    PricedRoofline priced = roofline_from(o_.roofline, models);
    const auto add_new = [](auto& all, auto& some, const auto& same) {
      for (auto& one : some) {
        const auto is_same = [&](const auto& other) { return same(one, other); };
        if (std::none_of(all.begin(), all.end(), is_same)) all.push_back(std::move(one));
      }
    };
    add_new(d_.presets, priced.presets, [](const auto& a, const auto& b) { return a == b; });
    add_new(d_.cost_assumptions, priced.assumptions,
            [](const Assumption& a, const Assumption& b) { return a.name == b.name && a.value == b.value; });
    add_new(d_.warnings, priced.warnings,
            [](const Warning& a, const Warning& b) { return a.code == b.code && a.message == b.message; });
    d_.files.insert(d_.files.end(), priced.files.begin(), priced.files.end());
    draft.cost = draft.roofline = std::move(priced.cost);
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

AcceptanceSource source_of(const PlanOptions& o, std::int64_t max_gamma) {
  AcceptanceSource source;
  source.counters = o.counters;
  source.trace = o.trace;
  source.gamma = o.at;
  source.model = o.model;
  source.rule = o.acceptance;
  source.beyond = o.beyond;
  source.max_gamma = max_gamma;
  return source;
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
  AcceptanceSource source = source_of(o, max_gamma);
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
  PlannedDraft draft;
  draft.name = o.draft_model.value_or("draft");
  draft.kind = kind_named("--draft-kind", o.draft_kind.value_or("model"));
  draft.draft_model = o.draft_model.value_or("");
  const bool from_files = !o.counters.empty() || !o.trace.empty();
  draft.acceptance =
      from_files ? acceptance_from(source_of(o, max_gamma)) : planned(stated_acceptance(o), o.acceptance);
  return draft;
}

/// The largest gamma that a stated acceptance speaks of.
std::int64_t known_gamma(const PlannedAcceptance& acceptance) {
  if (!acceptance.stated) return planning::largest_scanned_gamma;
  planning::PlanQuestion question{acceptance.stated->profile};
  question.measured_at = acceptance.stated->measured_at;
  question.monotone = acceptance.stated->monotone;
  return planning::largest_known_gamma(question);
}

/// The tokens in the cache that the measurements were made at.
double usual_context(const std::vector<PlannedDraft>& drafts) {
  double context = 0;
  for (const PlannedDraft& draft : drafts) context = std::max(context, draft.cost->usual_context());
  return context;
}

std::int64_t scheduled_up_to(const PlanOptions& o, const std::vector<double>& batches) {
  const double largest = std::min(std::ceil(batches.back()), static_cast<double>(planning::largest_scheduled_batch));
  return o.max_num_seqs.value_or(static_cast<std::int64_t>(largest));
}

/// Of --batch; empty where it is not given.
std::vector<double> asked_batches(const PlanOptions& o) {
  return o.batch ? rising_list("--batch", *o.batch, batch_range) : std::vector<double>{};
}

std::vector<double> asked_contexts(const PlanOptions& o) {
  return o.context ? rising_list("--context", *o.context, context_range) : std::vector<double>{};
}

void require_scheduled(const PlanOptions& o, const Deployment& d, const std::vector<double>& batches) {
  if (d.deployed.empty() || batches.empty()) return;
  if (static_cast<double>(d.deployed.back().batch_high) >= batches.back()) return;
  refuse("--schedule", *o.schedule, fmt::format("a schedule up to batch {}", brief(batches.back())));
}

void take_acceptance(const PlannedAcceptance& acceptance, Deployment& d) {
  d.max_gamma = std::min(d.max_gamma, known_gamma(acceptance));
  for (const Warning& warning : acceptance.warnings) d.warnings.push_back(warning);
  for (const std::string& file : acceptance.files) d.files.push_back(file);
}

void plan_from_options(const PlanOptions& o, Deployment& d) {
  const Costs costs(o, d);
  for (const std::string& text : o.drafts) d.drafts.push_back(draft_of(words_of(text), o, d.max_gamma, costs));
  if (o.drafts.empty()) {
    d.drafts.push_back(only_draft(o, d.max_gamma));
    costs.price(d.drafts.back(), {o.cost.c, o.draft_cost_files, o.draft_model}, "--");
  }

  planning::DeploymentQuestion question;
  std::set<std::string> names;
  for (const PlannedDraft& draft : d.drafts) {
    if (!names.insert(draft.name).second) throw UsageError(fmt::format("--draft {} is given twice", draft.name));
    question.drafts.push_back({draft.name, draft.acceptance.curve, draft.cost, draft.acceptance.clusters});
    take_acceptance(draft.acceptance, d);
  }
  if (!d.engine) d.engine = d.drafts.front().acceptance.engine;
  if (!d.engine && costs.of_llamacpp()) d.engine = "llama.cpp";
  d.in_seconds = d.drafts.front().cost->in_seconds();
  question.batches = asked_batches(o);
  if (question.batches.empty()) question.batches = costs.usual_batches();
  question.contexts = asked_contexts(o);
  if (question.contexts.empty()) question.contexts = {usual_context(d.drafts)};
  require_scheduled(o, d, question.batches);
  question.max_gamma = d.max_gamma;
  question.tolerance = o.tolerance;
  question.min_gain = d.min_gain;
  question.deployed = d.deployed;
  question.max_regret = o.max_regret;
  question.schedule_up_to = scheduled_up_to(o, question.batches);
  d.plan = planning::plan_deployment(question);

  bool any_iid = false;
  for (std::size_t i = 0; i < d.drafts.size(); ++i) {
    if (!d.drafts[i].acceptance.curve_at_design_effect_3) continue;
    question.drafts[i].acceptance = d.drafts[i].acceptance.curve_at_design_effect_3;
    any_iid = true;
  }
  if (any_iid) d.at_design_effect_3 = planning::plan_deployment(question);
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

/// Points that the memory does not hold: a warning of the first one.
void warn_of_memory(Deployment& d) {
  if (!d.has_roofline()) return;
  const cost::RooflineOptions& options = d.drafts[d.shown()].roofline->options();
  planning::ReplicaHolds holds;
  holds.memory_bytes_per_gpu = options.hardware.memory_bytes.value;
  holds.utilization = 1;
  holds.target = options.target;
  holds.draft = options.draft;
  holds.block_size = 1;
  const auto warn = [&](const char* code, const std::string& what, double bytes) {
    const auto enough = planning::gpus_that_hold(holds);
    const std::string remedy = enough ? fmt::format("{} of them would hold that", *enough)
                                      : std::string("dividing the models over more would not help");
    d.warnings.push_back({code, fmt::format("{} {} GB of each {}, which has {} GB; {}", what, brief(bytes / 1e9),
                                            options.hardware.name, brief(holds.memory_bytes_per_gpu / 1e9), remedy)});
  };
  const planning::KvMemory empty = planning::kv_memory(holds);
  const double weights = empty.target_weight_bytes + empty.draft_weight_bytes;
  if (weights > holds.memory_bytes_per_gpu) return warn("weights_do_not_fit", "the weights take", weights);
  for (const planning::PointPlan& point : d.points()) {
    const double tokens = point.batch * (point.context + static_cast<double>(point.optimal().gamma) + 1);
    holds.max_num_seqs = static_cast<std::int64_t>(std::ceil(point.batch));
    holds.block_size = static_cast<std::int64_t>(std::ceil(tokens));
    const planning::KvMemory memory = planning::kv_memory(holds);
    if (memory.blocks > 0) continue;
    return warn(
        "cache_does_not_fit",
        fmt::format("at batch {} and context {} weights and caches take", brief(point.batch), brief(point.context)),
        weights + memory.state_bytes + tokens * memory.bytes_per_token);
  }
}

planning::EngineConfig config_of(const PlanOptions& o, const Deployment& d) {
  planning::EngineRequest request;
  const planning::DraftPlan& plan = d.shown_plan();
  request.schedule = plan.schedule;
  request.fixed = planning::least_regret_gamma(plan);
  request.target_model = d.target_model;
  if (!d.drafts.empty()) {
    const PlannedDraft& draft = d.drafts[d.shown()];
    request.rule = draft.acceptance.rule;
    request.draft_model = draft.draft_model;
    request.kind = draft.kind;
    request.draft_tensor_parallel = draft.tensor_parallel;
  } else {
    request.rule = traces::acceptance_rule_named(o.acceptance);
    request.draft_model = o.draft_model.value_or("");
    request.kind = kind_named("--draft-kind", o.draft_kind.value_or("model"));
  }
  return planning::engine_config(*planning::engine_named(*o.emit), request);
}

}  // namespace

std::shared_ptr<const cost::RoundCost> priced_rounds(const PlanOptions& o, DraftKind kind, Deployment& d) {
  PlannedDraft draft;
  draft.kind = kind;
  Costs(o, d).price(draft, {o.cost.c, o.draft_cost_files, o.draft_model}, "--");
  return draft.cost;
}

Deployment planned_deployment(const PlanOptions& o) {
  Deployment d;
  d.min_gain = o.min_gain.value_or(default_min_gain);
  d.max_gamma = max_gamma_of(o);
  d.deployed = deployed_of(o, d.max_gamma);
  d.target_model = o.model.value_or("");
  if (o.bench.empty()) {
    plan_from_options(o, d);
  } else {
    plan_from_runs(o, d);
  }
  if (o.emit) d.engine = o.emit;
  for (const planning::DraftPlan& draft : d.plan.drafts) {
    const std::string who = d.plan.drafts.size() > 1 ? draft.name + ": " : "";
    for (const planning::PlanNote& note : draft.notes) d.warnings.push_back({note.code, who + note.message});
  }
  warn_of_memory(d);
  if (o.emit) d.config = config_of(o, d);
  return d;
}

std::optional<std::string_view> bound_of(const Deployment& d, const planning::PointPlan& point, std::int64_t gamma) {
  if (!d.has_roofline()) return std::nullopt;
  const double tokens = static_cast<double>(gamma) + 1;
  return cost::name_of(d.drafts[d.shown()].roofline->target_pass(point.batch, tokens, point.context).bound());
}

std::string_view name_of(planning::Verdict verdict) {
  switch (verdict) {
    case planning::Verdict::speculate:
      return "speculate";
    case planning::Verdict::do_not_speculate:
      return "do not speculate";
    case planning::Verdict::cannot_tell:
      break;
  }
  return "cannot tell";
}

std::string_view name_of(planning::UncertaintySource source) {
  switch (source) {
    case planning::UncertaintySource::acceptance:
      return "acceptance";
    case planning::UncertaintySource::cost:
      return "cost";
    case planning::UncertaintySource::extrapolation:
      break;
  }
  return "extrapolation";
}

std::string command_for(const Deployment& d, const planning::NextMeasurement& next) {
  const std::string model = d.target_model.empty() ? "MODEL" : d.target_model;
  const auto concurrency = static_cast<std::int64_t>(std::max(1.0, std::ceil(next.batch)));
  const std::int64_t requests = std::max(next.requests.value_or(8 * concurrency), concurrency);
  const std::string engine = d.engine.value_or("vllm");
  if (engine == "sglang") {
    return fmt::format(
        "python -m sglang.bench_serving --model {} --num-prompts {} --max-concurrency {} --output-file run.jsonl",
        model, requests, concurrency);
  }
  if (engine == "trtllm" || engine == "tensorrt-llm") {
    return fmt::format(
        "python -m tensorrt_llm.serve.scripts.benchmark_serving --model {} --dataset-name trtllm_custom "
        "--dataset-path PROMPTS --num-prompts {} --max-concurrency {} --save-result",
        model, requests, concurrency);
  }
  if (engine == "llamacpp" || engine == "llama.cpp") {
    // The script of llama.cpp's tools/server/bench; the duration is the longest.
    return fmt::format("SERVER_BENCH_N_PROMPTS={} k6 run script.js --duration 24h --iterations {} --vus {}", requests,
                       requests, concurrency);
  }
  return fmt::format("vllm bench serve --model {} --num-prompts {} --max-concurrency {} --save-result", model, requests,
                     concurrency);
}

}  // namespace specdec::cli
